// Package hub is the server for a team: users, skills, agents and conversations
// over HTTP, on one database and any number of nodes.
//
// It is the outermost layer of a hub. Lower-level packages authorize each principal
// themselves, and accountapi, skillapi, agentapi, sessionapi and mcpapi serve them.
// This package opens and connects them, authenticates each request, and maintains
// the data. It holds no state that another node needs.
//
// It does not log request bodies, tokens, cookies, passwords or queries.
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
	"github.com/loadout-dev/loadout/catalog"
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
	"github.com/loadout-dev/loadout/internal/hub/quota"
	"github.com/loadout-dev/loadout/internal/hub/serverauth"
	"github.com/loadout-dev/loadout/internal/hub/sessionapi"
	"github.com/loadout-dev/loadout/internal/hub/users"
	"github.com/loadout-dev/loadout/internal/llm/vendors"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/telemetry"
	"github.com/loadout-dev/loadout/internal/upstream"
	"github.com/loadout-dev/loadout/internal/usage"
	"github.com/loadout-dev/loadout/llm"
	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/sandbox"
	"github.com/loadout-dev/loadout/session"
)

// Options configures [Open]. Data is required.
type Options struct {
	// Data is the directory of this node, for the SQLite database and the key. If
	// it is missing, Open creates it, readable only by its owner.
	Data string
	// Database is a database address as for [store.Open]; "" means hub.db in Data.
	Database string
	// Redis is the redis:// URL through which nodes notify each other. It is ""
	// for a single node.
	Redis string
	// Keys encrypt secrets; the first key encrypts new ones. Without keys, the
	// hub uses the key file in Data. With SQLite, Open creates the file if it is
	// missing. With PostgreSQL, Keys is required, and all nodes need the same keys.
	Keys []encryption.Key

	// Accounts requires users to sign in. A hub that already has an administrator
	// always requires that. Any other hub serves one user on this machine if
	// Accounts is not set.
	Accounts bool
	// FirstAdmin is created if there is no administrator. If it is nil, a setup
	// link is used instead.
	FirstAdmin *FirstAdmin
	// Public is the address at which users reach the hub, for example
	// https://hub.example.com.
	Public string
	// Proxies lists the addresses and networks of trusted reverse proxies.
	Proxies []string
	// Provider signs users in through OpenID Connect. It requires Public.
	Provider *Provider

	// Model returns the model for a choice and its API key, or the hub's own model
	// if choice is nil. If Model is nil, the hub uses the built-in demo.
	Model func(choice *agents.ModelChoice, key string) (llm.Model, error)
	// Price returns the price of a model named vendor:name, if known. If Price is
	// nil, all prices are unknown.
	Price func(model string) (usage.Price, bool)
	// Window returns the context window of a model in tokens, or 0 if unknown. If
	// Window is nil, all sizes are unknown.
	Window func(model string) int
	// Images reports whether the hub's own model reads images. If it is nil, this
	// depends on the name of the model.
	Images func(model string) bool
	// Skills returns the operator's directories, whose skills all users can read.
	// single reports whether the hub serves only one user, whose own directories
	// may be among them. With PostgreSQL, a node that gets no directories leaves
	// the skills from other nodes' directories unchanged. If Skills is nil, there
	// are none.
	Skills func(single bool) ([]catalog.Source, error)
	// BundledSkills specifies whether the library lists the skills that ship
	// with the program. Conversations can use them in any case.
	BundledSkills bool
	// Updates determines what conversations do when a skill changes that they
	// have loaded; see [session.Options].
	Updates session.UpdateMode
	// Servers lists the MCP servers that the operator configured for all users.
	Servers []*upstream.Config
	// Private lists non-public addresses that skills, servers and imports may use.
	Private []netip.Prefix
	// ImportFrom lists directories and ssh hosts from which users may import skills; see
	// [library.Options].
	ImportFrom []string
	// Sandbox runs skill code. If it is nil, skill code is disabled.
	Sandbox sandbox.Backend
	// Bounds limits skill code, Packages installs its dependencies, and Getenv is
	// used to find interpreters. See [assembly.Options].
	Bounds   policy.Bounds
	Packages *loadout.Packages
	Getenv   func(string) string
	// Runs is the maximum number of programs running skill code at the same time on
	// this node; 0 means 4.
	Runs int
	// ModelTitles lets the model of a conversation write its title after the first
	// answer. Otherwise, the first message gives the title.
	ModelTitles bool
	// Sharing says who can open shares of conversations: SharingOff, SharingMembers or
	// SharingLinks; "" means SharingMembers. ShareDays is the maximum lifetime of a
	// share, in days; 0 means 90. On a hub without accounts, conversations cannot be
	// shared.
	Sharing   string
	ShareDays int
	// Inviters says who may invite users, as [users.Inviters].
	Inviters string
	// Command is the path of the loadout program, as in [loadout.Scripts].
	Command string

	// MinDisk is the minimum free space, in bytes, on the disk that contains
	// Data. With less, the disk counts as full and the node is not ready. 0 means
	// 64 MiB. With SQLite, which has a single node, the node remains ready and
	// reports the full disk.
	MinDisk uint64
	// Rate is the maximum sustained number of requests per second from a user, or
	// from a network for anonymous requests. Bursts may be four times as large. 0
	// means 100; a negative value means no limit.
	Rate int
	// Cost is the cost of password hashing; the zero value means
	// [account.DefaultCost].
	Cost account.Cost
	// Drain is how long running requests may take to finish at shutdown; 0 means
	// 10 s.
	Drain time.Duration
	// Tracer traces requests and turns; nil disables tracing. The caller must
	// close it after the hub.
	Tracer *telemetry.Tracer
	// Version is the version that the hub reports.
	Version string
	// Logger logs errors, and one line per request at level info. Nil discards
	// all logs.
	Logger *slog.Logger
}

// DatabaseFile is the name of the SQLite database in [Options.Data].
const DatabaseFile = "hub.db"

// FirstAdmin holds the credentials of the initial administrator.
type FirstAdmin struct{ Name, Password string }

// Provider configures an OpenID Connect provider.
type Provider struct {
	Issuer, ClientID, ClientSecret string
	Scopes                         []string // empty requests profile and email
	NameClaim, GroupsClaim         string   // see [account.OIDCOptions]
	// Everyone creates an account for every user of the provider, not only for
	// members of groups that a rule names.
	Everyone bool
}

// Hub is a server for a team. It is safe for concurrent use.
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
	mirrors   []*library.Mirror
	runs      *queue.Queue // slots for running skill code

	signIns    *serverauth.Servers // users' sign-ins to MCP servers
	assemblies *assembly.Assembler
	chat       *chat.Engine
	sessions   *sessionapi.Handlers
	mcp        *mcpapi.Handlers
	passwords  *account.Passwords
	diskFree   func(dir string) (bytes uint64, known bool) // free space on the disk that contains dir
	node       string                                      // unique name of this process
	identity   identity
	writes     writeCheck
	unlock     func() error // unlocks the data directory
	gate       *auth.Gate
	metrics    *metrics.Metrics
	mux        *http.ServeMux
	spec       func() ([]byte, error) // OpenAPI document, written at the first request

	credentialWatch      *auth.CredentialWatch // tokens and sign-ins used by long-running requests
	credentialChecks     sync.WaitGroup        // running checks
	stopCredentialChecks func()

	drain    sync.Once
	draining chan struct{} // closed when shutdown starts
}

// Open opens a hub's database and keys, and creates [Options.FirstAdmin] if there
// is no administrator. It returns a [*KeyError], or an error from package store,
// account or users. The caller must close the hub.
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
		return nil, errors.New("no data directory configured")
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
	h.passwords = account.NewPasswords(o.Cost, passwordsAtOnce)
	h.directory = users.New(h.db, users.Options{Passwords: h.passwords, Cipher: h.cipher, Inviters: users.Inviters(o.Inviters)})
	if err := h.setUpAccounts(ctx); err != nil {
		return nil, err
	}
	if !h.Single() {
		h.directory.Quotas.Quotas.Default = quota.Default()
	}
	if h.gate, err = auth.New(h.gateOptions()); err != nil {
		return nil, err
	}
	h.metrics = metrics.New(o.Version)
	if err := h.openServices(ctx); err != nil {
		return nil, err
	}
	h.metrics.SetState(h.state())
	return h, h.routes()
}

// passwordsAtOnce is the maximum number of passwords hashed at the same time. Each
// takes 64 MiB.
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
	if o.MinDisk == 0 {
		o.MinDisk = 64 << 20
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
	if o.Skills == nil {
		o.Skills = func(bool) ([]catalog.Source, error) { return nil, nil }
	}
	if o.Price == nil {
		o.Price = func(string) (usage.Price, bool) { return usage.Price{}, false }
	}
	if o.Images == nil {
		o.Images = vendors.ReadsImages
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

// setUpAccounts determines whether users must sign in, and creates the first
// user.
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
		if err != nil && !errors.Is(err, users.ErrHasAdmin) { // another node may have created it first
			return fmt.Errorf("create first administrator: %w", err)
		}
	}
	return nil
}

// Single reports whether the hub serves one user without sign-in. Such a hub must
// listen only on loopback addresses.
func (h *Hub) Single() bool { return !h.opts.Accounts }

// SetupPath returns the path of the page that creates the first administrator. It
// returns "" if there already is one or if users do not sign in. The path is secret
// and valid for one day.
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

// Close gives running turns [Options.Drain] to finish and releases the hub's
// resources. Call it after [Hub.Serve] has returned.
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

// state returns the functions through which metrics read this node's state.
func (h *Hub) state() metrics.State {
	return metrics.State{Turns: func() (int, int) { return h.chat.TurnStats() }, Runs: h.runs.Stats, SignIns: h.passwords.Stats, Pools: h.db.Pools, Bus: h.bus.Healthy,
		DiskFree: func() (uint64, bool) { return h.diskFree(h.opts.Data) }}
}
