// Package hub is the program a team runs: people, skills, agents and conversations over
// HTTP, on one database, by one process or many.
//
// It is the outermost layer of a hub, and decides nothing: each domain package below,
// as people, takes the principal who acts and checks what he may do. This package finds
// out who that is, reads requests, writes answers, and turns typed errors into statuses
// at one place. It keeps no state that another node would have to know.
//
// Neither requests nor their bodies, tokens, cookies, passwords and queries are logged.
package hub

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/internal/account"
	"github.com/loadout-dev/loadout/internal/bus"
	"github.com/loadout-dev/loadout/internal/hub/chat"
	"github.com/loadout-dev/loadout/internal/hub/kinds"
	"github.com/loadout-dev/loadout/internal/hub/kit"
	"github.com/loadout-dev/loadout/internal/hub/library"
	"github.com/loadout-dev/loadout/internal/hub/people"
	"github.com/loadout-dev/loadout/internal/hub/queue"
	"github.com/loadout-dev/loadout/internal/hub/signin"
	"github.com/loadout-dev/loadout/internal/seal"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/telemetry"
	"github.com/loadout-dev/loadout/llm"
	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/sandbox"
	"github.com/loadout-dev/loadout/upstream"
)

// Options are the settings of [Open]. Data has to be set.
type Options struct {
	// Data is the directory of this node, made where it is missing, for its owner only:
	// of the SQLite database and the key, where these are nowhere else.
	Data string
	// Database is an address as [store.Open] reads it; "" is hub.db in Data.
	Database string
	// Redis is the redis:// URL by which nodes wake each other; "" is one node.
	Redis string
	// Keys seal secrets; the first one seals. None is the file key in Data, which with
	// SQLite is made where it is missing, and with PostgreSQL has to be the same for
	// all nodes and so is not looked for.
	Keys []seal.Key

	// Accounts asks people to sign in. Without, the hub serves one person at this
	// machine, unless it has an administrator already.
	Accounts bool
	// First is the administrator who is made where there is none, instead of by a link.
	First *First
	// Public is the address by which people reach the hub, as https://hub.example.com.
	Public string
	// Proxies are the addresses and networks of reverse proxies, whose word is taken for
	// who is behind them.
	Proxies []string
	// Provider signs people in by OpenID Connect; it needs Public.
	Provider *Provider

	// Model returns the model of a choice with its key, the hub's own where the choice is
	// nil. Default: the demonstration for all that need none other.
	Model func(choice *kinds.ModelChoice, key string) (llm.Model, error)
	// Price returns what a model costs, by its name as vendor:name, where that is known; nil
	// knows of none.
	Price func(model string) (llm.Price, bool)
	// Window returns how many tokens a model takes at once, 0 where that is not known; nil
	// knows of none.
	Window func(model string) int
	// Servers are the MCP servers of the operator's own configuration, for everybody.
	Servers []*upstream.Config
	// Private are addresses that skills, servers and imports may have though they are
	// not public.
	Private []netip.Prefix
	// Sandbox is where code of skills runs; nil runs none.
	Sandbox sandbox.Backend
	// Bounds are the most that code of skills is given, Packages installs what it needs
	// and Getenv finds interpreters: see [kit.Options].
	Bounds   policy.Bounds
	Packages *loadout.Packages
	Getenv   func(string) string
	// Runs is how many pieces of code run at once on this node; 0 is 4.
	Runs int
	// Command is an executable of the command loadout, as in [loadout.Scripts].
	Command string

	// Rate is how many requests a second a user, or a network without one, may make for
	// long, and four times as many at once; 0 is 100, below 0 any number.
	Rate int
	// Cost is that of password hashes; the zero value is [account.DefaultCost].
	Cost account.Cost
	// Drain is how long requests that are under way may take to end; 0 is 10 s.
	Drain time.Duration
	// Tracer takes spans of requests, turns and what is in them; nil takes none. It is the
	// caller's to close, behind the hub.
	Tracer *telemetry.Tracer
	// Version is what the hub says it is.
	Version string
	// Logger gets one line a request at info, and what goes wrong; nil discards.
	Logger *slog.Logger
}

// DatabaseFile is the name of the SQLite database in [Options.Data].
const DatabaseFile = "hub.db"

// First is an administrator to begin with.
type First struct{ Name, Password string }

// Provider is an OpenID provider.
type Provider struct {
	Issuer, ClientID, ClientSecret string
	Scopes                         []string // "" asks for profile and email
	NameClaim, GroupsClaim         string   // see [account.OIDCOptions]
	// Everyone gives an account to whoever the provider knows, and not only to who is in
	// a group that a rule names.
	Everyone bool
}

// Hub is an open hub. It is safe for concurrent use.
type Hub struct {
	opts      Options
	log       *slog.Logger
	db        *store.DB
	bus       bus.Bus
	sealer    *seal.Sealer
	people    *people.People
	library   *library.Library
	kinds     *kinds.Registry
	runs      *queue.Queue    // places for code that runs
	drafts    *queue.Queue    // places for large skills that are being written
	signIns   *signin.Servers // of people to MCP servers
	kits      *kit.Kits
	chat      *chat.Engine
	endpoints *endpoints                                  // for MCP clients
	inUse     *heldTokens                                 // by requests that go on
	free      func(dir string) (bytes uint64, known bool) // of a disk
	node      string                                      // the name of this process among the nodes
	unlock    func() error                                // gives the directory back
	door      *door
	metrics   *metrics
	mux       *http.ServeMux
	spec      []byte // the OpenAPI document
	streams   *crowd // of events
	sockets   *crowd

	looking     sync.WaitGroup // at tokens
	stopLooking func()

	drain    sync.Once
	draining chan struct{} // closed when the hub is about to end
}

// Open opens the database of a hub, and its key, and makes the administrator of
// [Options.First] where there is none. What it fails with is a [*KeyError], or errors of
// packages store, account and people. The caller closes it.
func Open(ctx context.Context, o Options) (*Hub, error) {
	h, err := open(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("open the hub: %w", err)
	}
	return h, nil
}

func open(ctx context.Context, o Options) (_ *Hub, err error) {
	o = o.orDefaults()
	if o.Data == "" {
		return nil, errors.New("a directory is needed")
	}
	if err := os.MkdirAll(o.Data, 0o700); err != nil {
		return nil, err
	}
	h := &Hub{opts: o, log: o.Logger, node: rand.Text(), free: diskFree, draining: make(chan struct{})}
	defer func() {
		if err != nil {
			err = errors.Join(err, h.Close())
		}
	}()
	if h.db, err = store.Open(ctx, o.Database, nil); err != nil {
		return nil, err
	}
	if h.bus, err = openBus(o); err != nil {
		return nil, err
	}
	if h.sealer, err = openSealer(ctx, h.db, o); err != nil {
		return nil, err
	}
	passwords := account.NewPasswords(o.Cost, passwordsAtOnce)
	h.people = people.New(h.db, people.Options{Passwords: passwords, Sealer: h.sealer})
	if err := h.settle(ctx); err != nil {
		return nil, err
	}
	if h.door, err = newDoor(h); err != nil {
		return nil, err
	}
	h.metrics = newMetrics(o.Version)
	if err := h.openParts(ctx); err != nil {
		return nil, err
	}
	if err := h.metrics.registry.Register(state{h}); err != nil {
		return nil, err
	}
	return h, h.routes()
}

// passwordsAtOnce bounds how many passwords are hashed at once: each takes 64 MiB.
const passwordsAtOnce = 2

func (o Options) orDefaults() Options {
	if o.Database == "" {
		o.Database = "sqlite:" + filepath.Join(o.Data, DatabaseFile)
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Cost == (account.Cost{}) {
		o.Cost = account.DefaultCost()
	}
	if o.Drain == 0 {
		o.Drain = 10 * time.Second
	}
	if o.Rate == 0 {
		o.Rate = 100
	}
	if o.Runs == 0 {
		o.Runs = defaultRuns
	}
	if o.Model == nil {
		o.Model = demonstration
	}
	o.Public = strings.TrimSuffix(o.Public, "/")
	return o
}

func openBus(o Options) (bus.Bus, error) {
	if o.Redis == "" {
		return bus.New(), nil
	}
	return bus.Dial(o.Redis, &bus.Options{Logger: o.Logger})
}

// settle decides whether people sign in, and sees to the one who is there first.
func (h *Hub) settle(ctx context.Context) error {
	vacant, err := h.people.SignIns.Vacant(ctx)
	if err != nil {
		return err
	}
	h.opts.Accounts = h.opts.Accounts || !vacant
	if !h.opts.Accounts {
		return h.people.SignIns.Local(ctx)
	}
	if f := h.opts.First; vacant && f != nil {
		_, err := h.people.SignIns.Found(ctx, f.Name, f.Password)
		if err != nil && !errors.Is(err, people.ErrHasAdmin) { // another node was first
			return fmt.Errorf("make the first administrator: %w", err)
		}
	}
	return nil
}

// Single reports whether the hub serves one person who signs in nowhere. It must listen
// on loopback only then.
func (h *Hub) Single() bool { return !h.opts.Accounts }

// SetupPath is the path of the page with which the first administrator is made, "" where
// there is one or nobody signs in. It is a secret of the operator, good for a day.
func (h *Hub) SetupPath(ctx context.Context) (string, error) {
	if h.Single() {
		return "", nil
	}
	vacant, err := h.people.SignIns.Vacant(ctx)
	if err != nil || !vacant {
		return "", err
	}
	text, err := h.people.SignIns.Setup()
	return "/setup/" + text, err
}

// Close closes what the hub opened. [Hub.Serve] has returned before.
func (h *Hub) Close() error {
	errs := []error{h.closeParts()}
	if h.bus != nil {
		errs = append(errs, h.bus.Close())
	}
	if h.db != nil {
		errs = append(errs, h.db.Close())
	}
	return errors.Join(errs...)
}
