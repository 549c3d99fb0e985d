// Package agents manages the documents of a hub: Ghosts, Bots, Teams, Models
// and MCP servers. Start reading at [Parse], which reads documents, and
// [Registry.Apply], which applies all of them or none. [Registry.Profile]
// resolves the configuration of a conversation or an MCP endpoint, [Secrets]
// stores the secrets of servers and skills, and [Registry.Filter] and
// [Registry.WithKillSwitch] apply the settings for skills.
//
// Each method takes the calling principal and authorizes it with package account.
// A change and its audit record are stored in one transaction. Items that a
// principal is not allowed to see are reported as not found. Documents are
// untrusted: their size is limited, their servers see no environment variables,
// and their commands must be reviewed.
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
	"github.com/loadout-dev/loadout/internal/hub/quota"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/upstream"
)

// API versions of documents. Wegent's version is accepted but never written.
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

// kindOrder is the order in which documents are applied. A kind refers only to
// earlier kinds, so references cannot be cyclic.
var kindOrder = []string{SkillKind, ModelKind, ServerKind, GhostKind, BotKind, TeamKind}

// Limits of documents.
const (
	MaxDocuments  = 500       // documents per call of Apply
	MaxReferences = 4000      // references in all documents of a call
	MaxSpec       = 512 << 10 // bytes per spec, as JSON
	MaxSkills     = 400       // skills per Ghost or Bot
	MaxServers    = 100       // servers per Ghost or Bot
	MaxMembers    = 20        // members per Team
)

// Default durations for [Registry.Run].
const (
	DefaultPoll            = time.Second
	DefaultFailClosedAfter = 10 * time.Second
)

// Options configures a [Registry]. The zero value selects the defaults.
type Options struct {
	// Cipher encrypts secrets. If it is nil, secrets cannot be stored.
	Cipher *encryption.Cipher
	// Servers lists the servers in the operator's configuration. All users can use
	// them, and their commands need no review.
	Servers []*upstream.Config
	// Bundled lists the names of bundled skills. Documents may refer to them, but
	// hub skills take precedence.
	Bundled []string
	// Private lists non-public addresses that documents may contain.
	Private []netip.Prefix
	// Single means that the hub has no accounts. Its Models may then also contain
	// loopback addresses.
	Single bool
	// ApplySkill creates or updates a skill in the transaction. It authorizes the
	// principal, and returns a [*SkillError] to refuse the document. If ApplySkill
	// is nil, all skill documents are refused.
	ApplySkill func(ctx context.Context, tx *store.Tx, p account.Principal, f SkillFile) (AppliedSkill, error)
	// WithheldReason explains why a user must not access the version of a skill with the
	// given digest, or its current version if digest is "". It returns "" if the user
	// may access it. If WithheldReason is nil, users may access all versions.
	WithheldReason func(ctx context.Context, p account.Principal, s store.Skill, digest string) (string, error)
	// Quotas limits what each namespace stores. The zero value has no limits.
	Quotas quota.Quotas
	// Bus notifies other nodes of changed settings. If it is nil, nodes only poll.
	// The caller must close it.
	Bus bus.Bus
	// Poll is the interval at which Run checks for changed settings; 0 means
	// [DefaultPoll].
	Poll time.Duration
	// FailClosedAfter is how long the settings may be unreadable before running
	// skills are stopped; 0 means [DefaultFailClosedAfter].
	FailClosedAfter time.Duration
	Logger          *slog.Logger // nil discards logs
}

// Registry manages the documents of a hub. It is safe for concurrent use.
// Several registries may share a database.
type Registry struct {
	db    *store.DB
	opts  Options
	watch watchers
}

// New returns a registry that stores documents in db. The caller must close db.
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
