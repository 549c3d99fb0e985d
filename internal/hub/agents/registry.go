// Package agents manages the documents of a hub: Ghosts, Bots, Teams, Models
// and MCP servers. Start reading at [Parse], which reads documents, and
// [Registry.Apply], which applies all of them or none. [Registry.Profile]
// resolves the configuration of a conversation or an MCP endpoint, [Secrets]
// stores the secrets of servers and skills, and [Registry.Filter] and
// [Registry.WithKillSwitch] apply the settings for skills.
//
// Each method takes the calling principal and authorizes it with package
// account. Changes write an audit record in their transaction. Items that a
// principal may not see are reported as not found. Documents are untrusted:
// their size is limited, their servers see no environment variables, and
// commands need a review of their digest.
//
// The package never serves a protocol, connects to a server, runs a model or
// starts a process. It has no state that other nodes need.
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

// API versions of documents: ours, and that of Wegent, which is read only.
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

// kindOrder is the order of applying documents. Each kind refers to earlier
// kinds only, so references have no cycles.
var kindOrder = []string{SkillKind, ModelKind, ServerKind, GhostKind, BotKind, TeamKind}

// Limits of documents.
const (
	MaxDocuments  = 500       // per call
	MaxReferences = 4000      // in all documents of a call
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

// Options configures a Registry. The zero value is ready to use.
type Options struct {
	// Cipher encrypts secrets. If nil, secrets cannot be stored.
	Cipher *encryption.Cipher
	// Servers are the servers of the operator's configuration. All users have
	// them, and their commands need no review.
	Servers []*upstream.Config
	// Bundled lists the names of the bundled skills. Documents may name them;
	// skills of the hub take precedence.
	Bundled []string
	// Private lists non-public addresses that documents may name.
	Private []netip.Prefix
	// ApplySkill creates or updates a skill in the transaction and returns its
	// previous SKILL.md, nil if there was none. It authorizes the principal; a
	// [*SkillError] refuses the document. If nil, documents of skills are
	// refused.
	ApplySkill func(ctx context.Context, tx *store.Tx, p account.Principal, f SkillFile) (Outcome, []byte, error)
	// Bus notifies other nodes of changed settings; without it they poll. The
	// registry does not close it.
	Bus bus.Bus
	// Poll is how often Run polls for changed settings; 0 is [DefaultPoll].
	Poll time.Duration
	// FailClosedAfter is how long settings may be unreadable before running
	// skills are stopped; 0 is [DefaultFailClosedAfter].
	FailClosedAfter time.Duration
	Logger          *slog.Logger // nil discards
}

// Registry manages the documents of a hub. It is safe for concurrent use.
// Several registries may share a database.
type Registry struct {
	db    *store.DB
	opts  Options
	watch watchers
}

// New returns a registry on a database, which the caller closes.
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
