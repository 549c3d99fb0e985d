// Package hub is the server for a team: users, skills, agents and conversations
// over HTTP, on one database and any number of nodes.
//
// It is the outermost layer of a hub. The packages below authorize each
// principal themselves, and accountapi, skillapi, agentapi, sessionapi and mcpapi
// serve them. This package opens and wires them, has each request authenticated,
// and maintains the data. It holds no state that another node needs.
//
// It does not log requests' bodies, tokens, cookies, passwords or queries.
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
	"github.com/loadout-dev/loadout/internal/bus"
	"github.com/loadout-dev/loadout/internal/encryption"
	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/agents"
	"github.com/loadout-dev/loadout/internal/hub/api"
	"github.com/loadout-dev/loadout/internal/hub/assembly"
	"github.com/loadout-dev/loadout/internal/hub/auth"
	"github.com/loadout-dev/loadout/internal/hub/chat"
	"github.com/loadout-dev/loadout/internal/hub/library"
	"github.com/loadout-dev/loadout/internal/hub/mcpapi"
	"github.com/loadout-dev/loadout/internal/hub/metrics"
	"github.com/loadout-dev/loadout/internal/hub/queue"
	"github.com/loadout-dev/loadout/internal/hub/serverauth"
	"github.com/loadout-dev/loadout/internal/hub/sessionapi"
	"github.com/loadout-dev/loadout/internal/hub/users"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/telemetry"
	"github.com/loadout-dev/loadout/internal/upstream"
	"github.com/loadout-dev/loadout/llm"
	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/sandbox"
)

// Options are the settings of [Open]. Data is required.
type Options struct {
	// Data is the directory of this node, for the SQLite database and the key.
	// It is created if missing, readable by its owner only.
	Data string
	// Database is an address as for [store.Open]; "" means hub.db in Data.
	Database string
	// Redis is the redis:// URL through which nodes notify each other; "" for a
	// single node.
	Redis string
	// Keys encrypt secrets; the first one is used for new ones. Without keys
	// the file key in Data is used. With SQLite it is created if missing. With
	// PostgreSQL all nodes need the same keys, so Keys is required.
	Keys []encryption.Key

	// Accounts requires users to sign in. Without it the hub serves one user on
	// this machine, unless it has an administrator.
	Accounts bool
	// FirstAdmin is created if there is no administrator, instead of printing a
	// link.
	FirstAdmin *FirstAdmin
	// Public is the address at which users reach the hub, for example
	// https://hub.example.com.
	Public string
	// Proxies are the addresses and networks of trusted reverse proxies.
	Proxies []string
	// Provider signs users in through OpenID Connect. It needs Public.
	Provider *Provider

	// Model returns the model of a choice with its key, or the model of the hub
	// if choice is nil. The default is the built-in demo.
	Model func(choice *agents.ModelChoice, key string) (llm.Model, error)
	// Price returns the price of a model by its name vendor:name, if known. Nil
	// knows none.
	Price func(model string) (llm.Price, bool)
	// Window returns the context window of a model in tokens, 0 if unknown. Nil
	// knows none.
	Window func(model string) int
	// Servers are the MCP servers that the operator configured for all users.
	Servers []*upstream.Config
	// Private are nonpublic addresses that skills, servers and imports may use.
	Private []netip.Prefix
	// Sandbox runs code of skills. Nil disables code.
	Sandbox sandbox.Backend
	// Bounds limits code of skills, Packages installs its dependencies, and
	// Getenv finds interpreters; see [assembly.Options].
	Bounds   policy.Bounds
	Packages *loadout.Packages
	Getenv   func(string) string
	// Runs limits the code that runs at once on this node; 0 means 4.
	Runs int
	// Command is the path of the loadout program, as in [loadout.Scripts].
	Command string

	// Rate limits the sustained requests per second of a user, or of a network
	// without one. Bursts may be four times as large. 0 means 100, a negative
	// value no limit.
	Rate int
	// Cost is the cost of password hashes; the zero value means
	// [account.DefaultCost].
	Cost account.Cost
	// Drain is how long running requests may take to finish at shutdown; 0
	// means 10 s.
	Drain time.Duration
	// Tracer traces requests and turns; nil disables traces. The caller closes
	// it after the hub.
	Tracer *telemetry.Tracer
	// Version is the version that the hub reports.
	Version string
	// Logger logs one line for each request at level info, and errors. Nil
	// discards.
	Logger *slog.Logger
}

// DatabaseFile is the name of the SQLite database in [Options.Data].
const DatabaseFile = "hub.db"

// FirstAdmin is the initial administrator.
type FirstAdmin struct{ Name, Password string }

// Provider configures an OpenID Connect provider.
type Provider struct {
	Issuer, ClientID, ClientSecret string
	Scopes                         []string // empty requests profile and email
	NameClaim, GroupsClaim         string   // see [account.OIDCOptions]
	// Everyone gives an account to every user of the provider, not only to
	// members of groups that a rule names.
	Everyone bool
}

// Hub is an open hub. It is safe for concurrent use.
type Hub struct {
	opts      Options
	server    *api.Server
	log       *slog.Logger
	db        *store.DB
	bus       bus.Bus
	cipher    *encryption.Cipher
	directory *users.Directory
	library   *library.Library
	kinds     *agents.Registry
	runs      *queue.Queue // slots for running code

	signIns    *serverauth.Servers // of users to MCP servers
	assemblies *assembly.Assembler
	chat       *chat.Engine
	sessions   *sessionapi.Handlers
	mcp        *mcpapi.Handlers
	tokenWatch *auth.TokenWatch                            // tokens of long requests
	diskFree   func(dir string) (bytes uint64, known bool) // of the disk of a directory
	node       string                                      // name of this process among the nodes
	unlock     func() error                                // unlocks the directory
	gate       *auth.Gate
	metrics    *metrics.Metrics
	mux        *http.ServeMux
	spec       []byte // OpenAPI document

	tokenChecks     sync.WaitGroup // checks of tokens
	stopTokenChecks func()

	drain    sync.Once
	draining chan struct{} // closed when shutdown starts
}

// Open opens the database and the key of a hub, and creates
// [Options.FirstAdmin] if there is no administrator. It fails with a
// [*KeyError], or with errors of packages store, account and users. The caller
// closes the hub.
func Open(ctx context.Context, o Options) (*Hub, error) {
	h, err := open(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("open hub: %w", err)
	}
	return h, nil
}

func open(ctx context.Context, o Options) (_ *Hub, err error) {
	o = o.orDefaults()
	if o.Data == "" {
		return nil, errors.New("no data directory")
	}
	if err := os.MkdirAll(o.Data, 0o700); err != nil {
		return nil, err
	}
	h := &Hub{opts: o, log: o.Logger, node: rand.Text(), diskFree: diskFree, draining: make(chan struct{})}
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
	if h.cipher, err = openCipher(ctx, h.db, o); err != nil {
		return nil, err
	}
	passwords := account.NewPasswords(o.Cost, passwordsAtOnce)
	h.directory = users.New(h.db, users.Options{Passwords: passwords, Cipher: h.cipher})
	if err := h.setUpAccounts(ctx); err != nil {
		return nil, err
	}
	if h.gate, err = auth.New(h.gateOptions()); err != nil {
		return nil, err
	}
	h.metrics = metrics.New(o.Version)
	if err := h.openServices(ctx); err != nil {
		return nil, err
	}
	if err := h.metrics.Registry.Register(h.state()); err != nil {
		return nil, err
	}
	return h, h.routes()
}

// passwordsAtOnce limits the passwords that are hashed at once; each takes 64
// MiB.
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
		o.Model = demoModel
	}
	if o.Price == nil {
		o.Price = func(string) (llm.Price, bool) { return llm.Price{}, false }
	}
	if o.Window == nil {
		o.Window = func(string) int { return 0 }
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

// setUpAccounts decides whether users sign in, and creates the first user.
func (h *Hub) setUpAccounts(ctx context.Context) error {
	vacant, err := h.directory.SignIns.HasNoAdmin(ctx)
	if err != nil {
		return err
	}
	h.opts.Accounts = h.opts.Accounts || !vacant
	if !h.opts.Accounts {
		return h.directory.SignIns.EnsureLocalUser(ctx)
	}
	if f := h.opts.FirstAdmin; vacant && f != nil {
		_, err := h.directory.SignIns.CreateFirstAdminAsOperator(ctx, f.Name, f.Password)
		if err != nil && !errors.Is(err, users.ErrHasAdmin) { // another node was faster
			return fmt.Errorf("create first administrator: %w", err)
		}
	}
	return nil
}

// Single reports whether the hub serves one user without sign-in. Such a hub
// must listen on loopback only.
func (h *Hub) Single() bool { return !h.opts.Accounts }

// SetupPath returns the path of the page that creates the first administrator,
// or "" if there is one or nobody signs in. The path is secret and valid for a
// day.
func (h *Hub) SetupPath(ctx context.Context) (string, error) {
	if h.Single() {
		return "", nil
	}
	vacant, err := h.directory.SignIns.HasNoAdmin(ctx)
	if err != nil || !vacant {
		return "", err
	}
	text, err := h.directory.SignIns.NewSetupToken()
	return "/setup/" + text, err
}

// Close closes the hub. Call it after [Hub.Serve] has returned.
func (h *Hub) Close() error {
	errs := []error{h.closeServices()}
	if h.bus != nil {
		errs = append(errs, h.bus.Close())
	}
	if h.db != nil {
		errs = append(errs, h.db.Close())
	}
	return errors.Join(errs...)
}

func (h *Hub) gateOptions() auth.Options {
	o := auth.Options{DB: h.db, Users: h.directory, Single: h.Single(), Public: h.opts.Public, Proxies: h.opts.Proxies, Rate: h.opts.Rate}
	if p := h.opts.Provider; p != nil {
		o.Provider = &account.OIDCOptions{Issuer: p.Issuer, ClientID: p.ClientID, ClientSecret: p.ClientSecret,
			Scopes: p.Scopes, NameClaim: p.NameClaim, GroupsClaim: p.GroupsClaim, Cipher: h.cipher}
	}
	return o
}

// state returns the collector of the state of this node.
func (h *Hub) state() metrics.State {
	return metrics.State{Turns: func() (int, int) { return h.chat.TurnStats() }, Runs: h.runs.Stats, Pools: h.db.Pools, Bus: h.bus.Healthy,
		DiskFree: func() (uint64, bool) { return h.diskFree(h.opts.Data) }}
}
