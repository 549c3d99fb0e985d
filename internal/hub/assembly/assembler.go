// Package assembly prepares the setup of a hub's conversation or MCP endpoint:
// the skills that a principal may use, the tools of servers and loaded skills,
// the sandbox for their code, and a model. Start reading at [Assembler.Open].
//
// The package makes no authorization decisions; packages library and agents do.
// It never runs code from a skill or document that is not approved. A [Setup]
// belongs to one principal. Setups of a principal with the same skills and
// servers share a catalog, connections and processes, which stay open for a while
// after the last setup is closed. Changes to permissions, documents, secrets or
// reviews affect the next setup; changes to skills also affect open setups.
//
// If several skills have the same name, the first of these takes precedence:
// skills that the agent names and default skills, including hidden ones and
// pinned versions; then the user's own, those of groups, and public ones; then
// bundled ones. Settings of the hub and of groups take effect immediately, even
// for running code.
package assembly

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/agents"
	"github.com/loadout-dev/loadout/internal/hub/library"
	"github.com/loadout-dev/loadout/internal/hub/queue"
	"github.com/loadout-dev/loadout/internal/hub/serverauth"
	"github.com/loadout-dev/loadout/internal/hub/usage"
	"github.com/loadout-dev/loadout/internal/llm/vendors"
	"github.com/loadout-dev/loadout/internal/spawn"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/upstream"
	"github.com/loadout-dev/loadout/llm"
	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/sandbox"
	"github.com/loadout-dev/loadout/session"
	"github.com/loadout-dev/loadout/tools"
)

// Options configures an [Assembler]. DB, Library, Agents and Model are
// required.
type Options struct {
	DB      *store.DB
	Library *library.Library
	Agents  *agents.Registry
	// Single means that the hub has no accounts: its only user configured all
	// servers, in every namespace.
	Single bool
	// Model returns the model for a choice with its API key. A nil choice selects
	// the hub's default model.
	Model func(choice *agents.ModelChoice, key string) (llm.Model, error)
	// Images reports whether the hub's default model, which reports the given name,
	// reads images. If it is nil, this depends on the name.
	Images func(name string) bool
	// Window returns the context window in tokens of the model that reports a name, or
	// 0 if it is unknown. If Window is nil, all are unknown.
	Window func(name string) int
	// Sandbox runs code. If it is nil, no code can run.
	Sandbox sandbox.Backend
	// Bounds limits the permissions of code. The zero value permits no network
	// access and applies the default limits. Granted secrets and the working
	// directory are always allowed.
	Bounds policy.Bounds
	// Packages installs script dependencies. If it is nil, scripts with
	// dependencies cannot run.
	Packages *loadout.Packages
	// Getenv is used to find interpreters; see [loadout.Scripts].
	Getenv func(string) string
	// RunQueue limits the amount of code running at once; nil means no limit.
	// Scripts and commands occupy a slot while they run, servers while they
	// start.
	RunQueue *queue.Queue
	// Executable is the path of the loadout command; see [loadout.Scripts].
	Executable string
	// Dir is the directory for this node's files; "" means that there is none.
	Dir string
	// PrivateNetworks lists non-public addresses to which servers may connect.
	PrivateNetworks []netip.Prefix
	// SignIns manages users' sign-ins to servers. It may be nil.
	SignIns *serverauth.Servers
	// Providers holds the built-in servers by the names that skills use for them.
	Providers map[string]*mcp.Server
	// StopTurn stops a conversation's turn after skills are switched off.
	StopTurn func(conversation, reason string)
	// OnDecision is called with each policy decision and the context in which it
	// was made. It must be safe for concurrent use. It may be nil.
	OnDecision func(context.Context, policy.Record)
	// IdleTimeout is how long shared parts stay open after their last setup is
	// closed. 0 means 10 minutes; a negative value closes them immediately.
	IdleTimeout time.Duration
	// Version is the program version sent to servers.
	Version string
	Logger  *slog.Logger // nil discards
}

// Limits per node.
const (
	openTimeout    = 30 * time.Second
	serverIdle     = 5 * time.Minute
	maxConnections = 1000
	maxIdle        = 256 // maximum number of unused bases
)

var errClosed = errors.New("server is shutting down; try again")

// Assembler resolves the skills, servers and model of each conversation into a
// [chat.Setup]. It is safe for concurrent use.
type Assembler struct {
	o        Options
	pool     *upstream.Pool
	spawner  *spawn.Spawner // starts the operator's servers
	services serviceLimits
	bundled  *staticSource
	layers   filteredLayers
	// toolLists maps each toolList to the definitions of its tools, which never
	// change.
	toolLists sync.Map
	durations *usage.Buffer[durations]

	bundledDigests func() (map[string]bool, error)
	bundledCatalog func() (*catalog.Catalog, error)

	mu sync.Mutex // guards the fields below and the counters of bases
	// folderRefused reports whether the sandbox refuses the working directories
	// of conversations; nil means unknown.
	folderRefused *bool
	bases         map[string]*base
	sources       map[string]*sharedSource // skills of MCP servers, by key
	closed        bool
	ending        sync.WaitGroup // bases being closed
}

// New returns an assembler. Close it when done.
func New(o Options) *Assembler {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Window == nil {
		o.Window = func(string) int { return 0 }
	}
	if o.Images == nil {
		o.Images = vendors.ReadsImages
	}
	if o.IdleTimeout == 0 {
		o.IdleTimeout = 10 * time.Minute
	}
	o.Bounds.Secrets, o.Bounds.WorkspaceWrite = []string{"*"}, true
	k := &Assembler{o: o, spawner: spawn.New(nil), bundled: newBundled(), bases: map[string]*base{}, sources: map[string]*sharedSource{}}
	k.pool = k.newPool()
	k.durations = usage.NewBuffer(durationDelay, k.storeDurations)
	k.bundledDigests = sync.OnceValues(func() (map[string]bool, error) { return k.bundled.skillDigests(context.Background()) })
	k.bundledCatalog = sync.OnceValues(func() (*catalog.Catalog, error) {
		c, err := catalog.New([]catalog.Source{k.bundled}, nil)
		if err == nil {
			err = c.Reload(context.Background())
		}
		return c, err
	})
	return k
}

// Close releases the resources that setups share. All setups must be closed
// first.
func (k *Assembler) Close() error {
	k.mu.Lock()
	k.closed = true
	var all []*base
	for _, b := range k.bases {
		all = append(all, b)
	}
	k.mu.Unlock()
	var errs []error
	for _, b := range all {
		errs = append(errs, k.endBase(b))
	}
	k.ending.Wait()
	k.durations.Close()
	return errors.Join(append(errs, k.pool.Close())...)
}

// createDir creates a directory below [Options.Dir] and returns its path, or ""
// if that is not possible.
func (k *Assembler) createDir(name string) string {
	if k.o.Dir == "" {
		return ""
	}
	dir := filepath.Join(k.o.Dir, name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		k.o.Logger.Error("cannot create node directory", "error", err)
		return ""
	}
	return dir
}

// searchBundled returns the bundled skills that match a query, best first.
func (k *Assembler) searchBundled(ctx context.Context, query string, limit int) ([]catalog.Match, error) {
	c, err := k.bundledCatalog()
	if err != nil {
		return nil, err
	}
	hits, err := c.Search(ctx, query, catalog.SearchOptions{Limit: limit})
	return matchesOf(hits), err
}

// matchesOf returns the names of skills that a search has found.
func matchesOf(hits []catalog.Hit) []catalog.Match {
	out := make([]catalog.Match, len(hits))
	for i, h := range hits {
		out[i] = catalog.Match{Name: h.Name, Fit: h.Fit}
	}
	return out
}

// Request describes the setup to open.
type Request struct {
	Principal account.Principal
	// Kind, Namespace and Name select a Ghost, Bot or Team; see
	// [agents.Registry.Profile]. An empty Kind means no agent: the setup then has
	// all skills and servers that the principal can use.
	Kind, Namespace, Name string
	// Session is the ID of the conversation; "" for an MCP endpoint.
	Session string
	// Model is the ID of the Model that the user chose instead of the agent's; "" if
	// none was chosen.
	Model string
	// Draft adds the conversation's draft skill, which takes precedence over all
	// other skills.
	Draft bool
	// Trial takes the documents of the agent from the conversation instead of those
	// that are saved.
	Trial bool

	profile *agents.Profile // profile of a Team member; replaces Kind, Namespace and Name
}

// Setup holds the skills and tools of a conversation or endpoint. It is safe for
// concurrent use. Close it when done.
type Setup struct {
	Runtime *loadout.Runtime
	Tools   *tools.Set
	Profile *agents.Profile // nil if the request has no Kind
	Preload []string        // skills to load when the conversation starts
	// PreloadReason explains why a skill is in Preload.
	PreloadReason func(skill string) string
	// Problems describes the parts of the agent that are unavailable.
	Problems []string
	// Principal is the user on whose behalf tools are called.
	Principal policy.Principal
	// SkillID returns the ID of a skill, or "" if the skill is not in the
	// library.
	SkillID func(session.ID) string
	// FirstSkills returns the keys of the skills that come first in lists that are
	// too long. The result changes at most once a day, or with the skills. If ok is
	// false, the database failed, and a later call may return the keys.
	FirstSkills func(context.Context) (keys []string, ok bool)
	// Refresh updates the skills. It is cheap if none changed.
	Refresh func(context.Context) error

	base  *base
	close func() error
}

// Open opens a setup. An endpoint's skills are updated automatically, a
// conversation's skills by Refresh.
func (k *Assembler) Open(ctx context.Context, w Request) (*Setup, error) {
	p, err := k.newPlan(ctx, w)
	if err != nil {
		return nil, err
	}
	b, err := k.acquireBase(ctx, p)
	if err != nil {
		return nil, err
	}
	over, unwatch := b.addConversation(w.Session), func() {}
	if w.Session == "" {
		unwatch = b.watchCatalog()
	}
	return &Setup{
		Runtime: b.rt, Tools: b.set, Profile: p.profile, Preload: p.preload, PreloadReason: func(skill string) string { return p.preloadReasons[skill] }, Problems: p.problems, Principal: b.policyPrincipal,
		SkillID: func(id session.ID) string { return b.skillID(id.Origin, id.Dir) }, Refresh: b.refresh, base: b,
		FirstSkills: func(ctx context.Context) ([]string, bool) {
			return b.firstSkills(ctx, b.rt.Catalog().Snapshot(), orderDay(time.Now()))
		},
		close: sync.OnceValue(func() error {
			unwatch()
			over()
			return k.releaseBase(b)
		}),
	}, nil
}

// agentNamespace returns the agent's namespace, or "" if there is no agent.
func (k *Setup) agentNamespace() store.Namespace {
	if k.Profile == nil {
		return ""
	}
	return k.Profile.In
}

// Close releases the setup. It may be called more than once.
func (k *Setup) Close() error { return k.close() }
