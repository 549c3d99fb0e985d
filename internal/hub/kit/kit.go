// Package kit puts together what a conversation or an MCP endpoint of a hub works with:
// the skills that a principal may use, the tools of servers and of loaded skills, the
// sandbox that their code runs in, and a model.
//
// It decides nothing about people and skills, which packages library and kinds do, and
// starts nothing of a skill that was not reviewed. A kit is of one principal: what it
// was made from may change, and then it is put together again.
package kit

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/account"
	"github.com/loadout-dev/loadout/internal/hub/chat"
	"github.com/loadout-dev/loadout/internal/hub/kinds"
	"github.com/loadout-dev/loadout/internal/hub/library"
	"github.com/loadout-dev/loadout/internal/hub/queue"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/llm"
	"github.com/loadout-dev/loadout/sandbox"
	"github.com/loadout-dev/loadout/session"
	"github.com/loadout-dev/loadout/tools"
)

// Options are what kits are made from. DB, Library, Kinds and Model have to be set.
type Options struct {
	DB      *store.DB
	Library *library.Library
	Kinds   *kinds.Registry
	// Model returns the model of a choice with its key, the hub's own where it is nil.
	Model func(choice *kinds.ModelChoice, key string) (llm.Model, error)
	// Sandbox is where code runs; nil runs none.
	Sandbox sandbox.Backend
	// Runs are the places for code that runs at once; nil does not bound it.
	Runs *queue.Queue
	// Command is an executable of the command loadout, as in [loadout.Scripts].
	Command string
	// Dir is for files of this node alone; "" keeps none.
	Dir string
	// Private are addresses that servers may have though they are not public.
	Private []netip.Prefix
	// Stop ends the turn of a conversation, as when skills are switched off for it.
	Stop   func(conversation, reason string)
	Logger *slog.Logger // nil discards
}

// Kits makes kits. It is safe for concurrent use.
type Kits struct{ o Options }

// New returns what makes kits. Close it when done.
func New(o Options) *Kits {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return &Kits{o: o}
}

// Close ends what kits have in common. Those that are open are closed before.
func (k *Kits) Close() error { return nil }

// Want says what a kit is for.
type Want struct {
	Principal account.Principal
	// Kind, Namespace and Name are those of a Ghost, Bot or Team, as
	// [kinds.Registry.Profile] takes them; without a Kind it is all that the principal
	// reaches.
	Kind, Namespace, Name string
	// Session is the conversation, "" for an MCP endpoint.
	Session string
}

// Kit is what one conversation or endpoint works with. It is safe for concurrent use.
// Close it when done.
type Kit struct {
	Runtime *loadout.Runtime
	Tools   *tools.Set
	Profile *kinds.Profile // nil without a Kind
	Preload []string       // skills that are in force from the start
	// SkillID is the id in the store of a skill, "" where it is not of the library.
	SkillID func(session.ID) string

	close []func() error
}

// Open puts a kit together.
func (k *Kits) Open(ctx context.Context, w Want) (*Kit, error) {
	sources, err := k.o.Library.Sources(ctx, w.Principal)
	if err != nil {
		return nil, err
	}
	rt, err := loadout.New(ctx, &loadout.Options{Sources: sources, Filter: catalog.Filter{}, Logger: k.o.Logger})
	if err != nil {
		return nil, err
	}
	return &Kit{Runtime: rt, SkillID: func(session.ID) string { return "" }, close: []func() error{rt.Close}}, nil
}

// Close closes what was put together.
func (k *Kit) Close() error {
	var errs []error
	for _, f := range k.close {
		errs = append(errs, f())
	}
	return errors.Join(errs...)
}

// Setup is a kit for a conversation, with its model: see [chat.Options].
func (k *Kits) Setup(ctx context.Context, r chat.Request) (*chat.Setup, error) {
	kit, err := k.Open(ctx, Want{Principal: r.Principal, Session: r.Conversation.ID})
	if err != nil {
		return nil, err
	}
	model, err := k.o.Model(nil, "")
	if err != nil {
		return nil, errors.Join(err, kit.Close())
	}
	return &chat.Setup{Runtime: kit.Runtime, Model: model, SkillID: kit.SkillID, Close: kit.Close}, nil
}
