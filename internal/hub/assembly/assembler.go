// Package assembly puts together what a conversation or an MCP endpoint of a hub works with:
// the skills that a principal may use, the tools of servers and of loaded skills, the
// sandbox that their code runs in, and a model.
//
// It decides nothing about people and skills, which packages library and kinds do, and
// starts nothing of a skill or a document that was not reviewed. A kit is of one
// principal. What kits of one principal with the same skills and servers need is made
// once and stays for a while after the last of them: a catalog of thousands of skills,
// connections, processes. Where rights, documents, secrets or reviews change, the next
// kit is made anew; skills that come, go and change are seen by those that are open.
//
// Skills are, in order of precedence: those that an agent names and the defaults of the
// people, also hidden ones and pinned versions; one's own, those of groups, public ones;
// those that come with the program. The settings of the hub, and of a group for what is
// the group's, are in force at once, also for what runs.
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
	"github.com/loadout-dev/loadout/internal/spawn"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/upstream"
	"github.com/loadout-dev/loadout/llm"
	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/sandbox"
	"github.com/loadout-dev/loadout/session"
	"github.com/loadout-dev/loadout/tools"
)

// Options are what kits are made from. DB, Library, Kinds and Model have to be set.
type Options struct {
	DB      *store.DB
	Library *library.Library
	Agents  *agents.Registry
	// Model returns the model of a choice with its key, the hub's own where it is nil.
	Model func(choice *agents.ModelChoice, key string) (llm.Model, error)
	// Sandbox is where code runs; nil runs none.
	Sandbox sandbox.Backend
	// Bounds are the most that code is given, whatever it asks for. The zero value gives
	// no network and the usual limits; the secrets that were granted, and the folder of
	// the conversation, there are always.
	Bounds policy.Bounds
	// Packages installs what scripts need; nil refuses those that need any.
	Packages *loadout.Packages
	// Getenv finds interpreters, as in [loadout.Scripts].
	Getenv func(string) string
	// RunQueue are the places for code that runs at once; nil does not bound it. A script
	// and a command of an agent have one while they run, a server while it starts.
	RunQueue *queue.Queue
	// Executable is an executable of the command loadout, as in [loadout.Scripts].
	Executable string
	// Dir is for files of this node alone; "" keeps none.
	Dir string
	// PrivateNetworks are addresses that servers may have though they are not public.
	PrivateNetworks []netip.Prefix
	// SignIns are the sign-ins of people to servers; nil has none.
	SignIns *serverauth.Servers
	// Providers are servers of this program, by the name by which skills declare tools
	// of them.
	Providers map[string]*mcp.Server
	// StopTurn ends the turn of a conversation, as when skills are switched off for it.
	StopTurn func(conversation, reason string)
	// OnDecision is told of each decision of policy, with the context of the call that it is
	// about, by several goroutines at once; nil is told nothing.
	OnDecision func(context.Context, policy.Record)
	// IdleTimeout is for how long what kits have in common stays when none is open; 0 is 10
	// minutes, and less is not at all.
	IdleTimeout time.Duration
	// Version is what the program says it is, to servers.
	Version string
	Logger  *slog.Logger // nil discards
}

// Times and bounds of a node.
const (
	openTimeout    = 30 * time.Second
	serverIdle     = 5 * time.Minute
	maxConnections = 1000
	maxIdle        = 256 // bases that nobody uses
)

var errClosed = errors.New("the node is about to end; try again")

// Assembler makes kits. It is safe for concurrent use.
type Assembler struct {
	o        Options
	pool     *upstream.Pool
	spawner  *spawn.Spawner // of the operator's own servers
	services serviceLimits
	bundled  *staticSource

	bundledDigests func() (map[string]bool, error)
	bundledCatalog func() (*catalog.Catalog, error)

	mu     sync.Mutex // guards what follows, and counts of bases
	bases  map[string]*base
	closed bool
	ending sync.WaitGroup // bases that end
}

// New returns what makes kits. Close it when done.
func New(o Options) *Assembler {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.IdleTimeout == 0 {
		o.IdleTimeout = 10 * time.Minute
	}
	o.Bounds.Secrets, o.Bounds.WorkspaceWrite = []string{"*"}, true
	k := &Assembler{o: o, spawner: spawn.New(nil), bundled: newBundled(), bases: map[string]*base{}}
	k.pool = k.newPool()
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

// Close ends what kits have in common. Those that are open are closed before.
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
	return errors.Join(append(errs, k.pool.Close())...)
}

// dir is a directory for files of this node, "" where it keeps none.
func (k *Assembler) dir(name string) string {
	if k.o.Dir == "" {
		return ""
	}
	dir := filepath.Join(k.o.Dir, name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		k.o.Logger.Error("a directory of this node cannot be made", "error", err)
		return ""
	}
	return dir
}

// searchBundled ranks the skills that come with the program.
func (k *Assembler) searchBundled(ctx context.Context, query string, limit int) ([]string, error) {
	c, err := k.bundledCatalog()
	if err != nil {
		return nil, err
	}
	hits, err := c.Search(ctx, query, catalog.SearchOptions{Limit: limit})
	var out []string
	for _, h := range hits {
		out = append(out, h.Name)
	}
	return out, err
}

// Request says what a kit is for.
type Request struct {
	Principal account.Principal
	// Kind, Namespace and Name are those of a Ghost, Bot or Team, as
	// [agents.Registry.Profile] takes them; without a Kind it is all that the principal
	// reaches.
	Kind, Namespace, Name string
	// Session is the conversation, "" for an MCP endpoint.
	Session string
	// Draft says that the conversation has a draft, which comes before all other skills.
	Draft bool

	profile *agents.Profile // of a member of a Team, in place of the above
}

// Setup is what one conversation or endpoint works with. It is safe for concurrent use.
// Close it when done.
type Setup struct {
	Runtime *loadout.Runtime
	Tools   *tools.Set
	Profile *agents.Profile // nil without a Kind
	Preload []string        // skills that are in force from the start
	// PreloadReason says who wants that of one of them.
	PreloadReason func(skill string) string
	// Problems are what is missing of what the agent names, and why.
	Problems []string
	// Principal is for whom tools are called.
	Principal policy.Principal
	// SkillID is the id in the store of a skill, "" where it is not of the library.
	SkillID func(session.ID) string
	// Refresh brings the skills up to what there is now. It is cheap where nothing
	// changed.
	Refresh func(context.Context) error

	base  *base
	close func() error
}

// Open puts a kit together. That of an endpoint keeps up with skills by itself, and
// that of a conversation by [Setup.Refresh].
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
		close: sync.OnceValue(func() error {
			unwatch()
			over()
			return k.releaseBase(b)
		}),
	}, nil
}

// agentNamespace is that of the agent, "" where there is none.
func (k *Setup) agentNamespace() store.Namespace {
	if k.Profile == nil {
		return ""
	}
	return k.Profile.In
}

// Close gives back what was put together. It is safe to call twice.
func (k *Setup) Close() error { return k.close() }
