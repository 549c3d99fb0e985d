// Package agents keeps what a hub has besides skills: Ghosts, Bots, Teams, Models and
// MCP servers, written as documents ([Parse]) and applied all or none
// ([Registry.Apply]). It answers what a conversation or an MCP endpoint of one of them
// consists of ([Registry.Profile]), keeps secrets that only servers and skills get
// ([Secrets]), and says whether skills are switched off ([Registry.Filter],
// [Registry.WithKillSwitch]).
//
// Each method takes who acts and asks package account itself, and what is changed is
// in the audit log with the change. What somebody may not know of is not there for
// him. Documents are data of strangers: they are bounded, a server of theirs sees no
// environment, and what starts a command waits for a person who looks at its digest.
//
// The package serves no protocol, connects no server, runs no model and starts
// nothing. It keeps nothing in memory that another node would have to know.
package agents

import (
	"context"
	"log/slog"
	"net/netip"
	"time"

	"github.com/loadout-dev/loadout/internal/bus"
	"github.com/loadout-dev/loadout/internal/encryption"
	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/upstream"
)

// API versions of documents: our own, and that of Wegent, which is read.
const (
	APIVersion       = "loadout/v1"
	WegentAPIVersion = "agent.wecode.io/v1"
)

// Kinds of documents.
const (
	GhostKind  = "Ghost"
	BotKind    = "Bot"
	TeamKind   = "Team"
	ModelKind  = "Model"
	ServerKind = "MCPServer"
	SkillKind  = store.SkillKind
)

// kindOrder is that in which documents are applied: each kind refers to earlier ones only,
// so that no circle can be written.
var kindOrder = []string{SkillKind, ModelKind, ServerKind, GhostKind, BotKind, TeamKind}

// Bounds of what is applied.
const (
	MaxDocuments  = 500       // of one call
	MaxReferences = 4000      // of all documents of one call
	MaxSpec       = 512 << 10 // bytes of one spec, as JSON
	MaxSkills     = 400       // of a Ghost or Bot
	MaxServers    = 100       // of a Ghost or Bot
	MaxMembers    = 20        // of a Team
)

// Default times of [Registry.Run].
const (
	DefaultPoll            = time.Second
	DefaultFailClosedAfter = 10 * time.Second
)

// Options are the settings of a Registry. The zero value is useful.
type Options struct {
	// Cipher seals secrets; nil keeps none, and refuses to.
	Cipher *encryption.Cipher
	// Servers are those of the operator's own configuration file. They are there for
	// everybody, and the only ones whose commands need no review.
	Servers []*upstream.Config
	// Bundled are the names of skills that come with the program: whoever names one has
	// it, where no skill of the hub comes before it.
	Bundled []string
	// Private are the addresses that are not public and that documents may name all
	// the same.
	Private []netip.Prefix
	// ApplySkill makes or changes a skill by its SKILL.md, in the transaction, and
	// returns what the file was before, nil where there was none. It decides by itself
	// whether the principal may; a [*SkillError] refuses the document. Nil refuses
	// documents of skills, which come as packages then.
	ApplySkill func(ctx context.Context, tx *store.Tx, p account.Principal, f SkillFile) (Outcome, []byte, error)
	// Bus tells other nodes that settings changed; nil leaves them to their poll. The
	// registry does not close it.
	Bus bus.Bus
	// Poll is how often Run looks for changes of settings; 0 is [DefaultPoll].
	Poll time.Duration
	// FailClosedAfter is for how long settings may be unreadable until what runs is stopped; 0
	// is [DefaultFailClosedAfter].
	FailClosedAfter time.Duration
	Logger          *slog.Logger // nil discards
}

// Registry is the kinds of a hub. It is safe for concurrent use, and so are any number
// of them on one database.
type Registry struct {
	db    *store.DB
	opts  Options
	watch watchers
}

// New returns the kinds that a database keeps. The database stays the caller's.
func New(db *store.DB, opts *Options) *Registry {
	r := &Registry{db: db, watch: watchers{woken: make(chan struct{}, 1), all: map[*watcher]bool{}}}
	if opts != nil {
		r.opts = *opts
	}
	if r.opts.Poll <= 0 {
		r.opts.Poll = DefaultPoll
	}
	if r.opts.FailClosedAfter <= 0 {
		r.opts.FailClosedAfter = DefaultFailClosedAfter
	}
	if r.opts.Logger == nil {
		r.opts.Logger = slog.New(slog.DiscardHandler)
	}
	return r
}
