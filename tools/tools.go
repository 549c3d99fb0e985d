// Package tools finds and calls MCP tools: those of the user's servers, of a
// profile's servers, and of the servers that skills provide.
// [Set.ConnectSkills] connects skill servers. [Set.Find] searches for tools.
// [Set.Call] calls a tool if the policy rules and the grants of [Set.Grant]
// allow it. [Set.Capabilities] lists all tools and skills for a planner. Start
// with [ForRuntime].
//
// The package never starts a server of a skill that was not approved, stores no
// conversation and shows no secret. A failing server does not affect the
// others: its problem is part of each result.
package tools

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/toolset"
	"github.com/loadout-dev/loadout/internal/upstream"
	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/skill"
)

// permission allows a set to use a skill's servers and providers until it is
// released or revoked.
type permission struct {
	digest policy.Digest // digest of the skill
	// isolated is set if commands run in a sandbox without network access,
	// secrets and write access to the workspace.
	isolated bool
	done     <-chan struct{}
	release  func()
	// check is called before each call. It returns an error if the permission
	// was revoked or the skill changed.
	check func(ctx context.Context) error
	// values provides the values granted to the skill.
	values Variables
}

// skillAccess decides on the use of skills' servers and providers.
type skillAccess struct {
	// acquire acquires permission to use a skill's servers and providers. Its
	// error says how to approve the skill.
	acquire func(ctx context.Context, e *catalog.Entry) (*permission, error)
	// isPermitted reports whether acquire would succeed, without recording a
	// decision. Searches call it for skills that are not loaded.
	isPermitted func(ctx context.Context, e *catalog.Entry) bool
	// provide returns the server configuration of a skill's provider, without
	// a name, and notes for the user.
	provide func(ctx context.Context, e *catalog.Entry, s *skill.Skill) (*upstream.Config, []string, error)
}

// Options configures a [Set]. The zero value has only the servers of skills.
// [ForRuntime] copies it. Its functions must be safe for concurrent use.
type Options struct {
	// Own lists the user's servers. Profile lists the servers of the active
	// profile, which take precedence over those in Own.
	Own, Profile []*ServerConfig
	// InProcess holds further servers of the user, which run in this program,
	// by name. To configure one, for example its Safety, add a configuration
	// with that name and without a command and URLs to Own.
	InProcess map[string]*mcp.Server
	// StartCommands allows the set to start the commands of Own and Profile. They
	// run as host processes without a sandbox, with a minimal environment: PATH, HOME
	// and similar variables, and those configured for the server. Without it, such
	// servers are not connected.
	StartCommands bool
	// PrivateNetworks lists the non-public address ranges that servers of
	// skills may connect to. Servers in Own may connect to any address.
	PrivateNetworks []netip.Prefix
	// OAuth returns the handler for a response with status 401 from the server
	// at url. It is called once per connection. If OAuth or the handler is nil,
	// such a response is an error.
	OAuth func(c *ServerConfig, url string) auth.OAuthHandler
	// SkillServers configures skill servers and providers.
	SkillServers SkillServers
	// Variables are the values for the variables in Own and Profile.
	Variables Variables
	// VariablesFor, if set, replaces Variables for each server of Own and
	// Profile, so that values can be granted per server. [ForRuntime]
	// calls it.
	VariablesFor func(c *ServerConfig) Variables
	// Shared reports whether someone other than the user wrote a server's
	// configuration, for example for a group. Lists for models mark such servers.
	// Nil means false.
	Shared func(c *ServerConfig) bool
	// Providers holds servers of the embedding program, by the provider name
	// that skills use. A skill can use only the tools that it declares and
	// needs no approval for them. Because the skill chooses their
	// configuration, calls that may modify something need approval.
	Providers map[string]*mcp.Server
	// Rules decide on calls until [Set.SetRules] replaces them. For the zero
	// value, see [policy.Rules].
	Rules policy.Rules
	// DefaultSafety is the safety level of servers that declare none. The zero
	// value means MEDIUM.
	DefaultSafety policy.Level
	// Grants stores permissions for more than one call. If it is nil, none are
	// stored.
	Grants policy.Store
	// Audit records each decision on a call. If it returns an error, the call
	// is refused. Nil discards decisions.
	Audit func(ctx context.Context, r policy.Record) error
	// OnCallEnd, if set, is called with the outcome of each call. It must not
	// block.
	OnCallEnd func(CallOutcome)
	// Deadline is how long an operation waits for servers to connect and list
	// their tools; 0 means 20 seconds. It does not limit calls.
	Deadline time.Duration
	// DefinitionsDir is the directory in which the definitions of tools are
	// stored as first seen or accepted, to detect servers that change a tool after
	// its approval. It must be private to the user. Several processes can use it.
	// It is created if necessary. If it is "", changes are not detected.
	DefinitionsDir string
	// CacheDir is the directory in which the last tool lists of Own and Profile
	// and of skills are stored, so that a later process knows them before it
	// connects. It must be private to the user and not DefinitionsDir. Several
	// processes can use it. It is created if necessary. If it is "", the lists are
	// not stored.
	CacheDir string
	Logger   *slog.Logger // nil discards messages

	further toolset.Options
}

// Set is a set of tools from several servers. It is safe for concurrent use.
// Create it with [ForRuntime]. The caller must close it.
type Set struct {
	rt      *loadout.Runtime // its catalog contains the skills
	opts    Options
	rules   atomic.Pointer[policy.Rules]
	access  skillAccess
	starter *runtimeServers         // starts commands that do not belong to the user
	pool    *upstream.Pool          // closed with the set; nil if the caller owns the pool
	pins    toolset.DefinitionStore // nil detects no changes

	mu            sync.Mutex
	own           []*server                  // in configuration order, the profile's first
	groups        map[string]*serverGroup    // groups by skill key
	conversations map[string][]*sessionTools // conversations that use each skill, by skill key
	persistent    map[string]bool            // keys of skills connected outside a conversation, until the set is closed
	closed        bool
	cancel        context.CancelFunc // stops the connections started by newSet
	running       sync.WaitGroup     // connections started by newSet, and goroutines that watch permissions
}

// serverGroup holds the servers of a skill, for one version of the skill and of
// the skills whose providers it uses.
type serverGroup struct {
	version     string // digests of these skills
	servers     []*server
	permissions []*permission
	key         string
}

// server is a configured server with the name under which its tools are listed.
type server struct {
	name   string
	skill  string // name of the skill that provides the server; "" for the user's own servers
	config *upstream.Config
	group  *serverGroup             // the server's group; nil for the user's own servers
	full   *upstream.Config         // configuration with variables resolved; nil if values are missing
	unset  []upstream.UnsetVariable // variables without a value, which prevent a connection
	// settings are sent with calls, by tool name.
	settings map[string]any
	// isolated is set for a skill's command in a sandbox without network access,
	// secrets and write access to the workspace.
	isolated bool
	*upstream.Server
	screened atomic.Pointer[screened]
	summary  atomic.Pointer[cachedSummary]
}

// newSet returns a set that owns pool, which may be nil.
func newSet(rt *loadout.Runtime, opts *Options, access skillAccess, starter *runtimeServers, pool *upstream.Pool) *Set {
	s := &Set{rt: rt, opts: *opts, access: access, starter: starter, pool: pool, groups: map[string]*serverGroup{}, conversations: map[string][]*sessionTools{}, persistent: map[string]bool{}}
	s.rules.Store(&opts.Rules)
	s.pins = opts.further.Definitions
	if s.pins == nil && opts.DefinitionsDir != "" {
		s.pins = &pinFiles{opts.DefinitionsDir, opts.further.HowToAccept}
	}
	if s.opts.Deadline == 0 {
		s.opts.Deadline = 20 * time.Second
	}
	if s.opts.DefaultSafety == policy.Unknown {
		s.opts.DefaultSafety = policy.Medium
	}
	taken := map[string]bool{}
	profile := slices.DeleteFunc(slices.Clone(opts.Profile), func(c *upstream.Config) bool {
		// Another owner's server must not use the name of a user's server,
		// because rules refer to names.
		return c.Owner != "" && slices.ContainsFunc(opts.Own, func(o *upstream.Config) bool { return o.Name == c.Name })
	})
	for _, c := range slices.Concat(profile, opts.Own) {
		if taken[c.Name] || c.Disabled {
			taken[c.Name] = true
			continue
		}
		taken[c.Name] = true
		s.own = append(s.own, s.openServer(c.Name, "", c, opts.variables(c)))
	}
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	for _, sv := range s.own {
		if sv.Server != nil && sv.config.AtStart {
			s.running.Go(func() { s.connect(ctx, sv) }) // the outcome is in the server's status
		}
	}
	for _, e := range rt.Catalog().Snapshot().Preloaded() {
		if e.ProvidesTools {
			s.running.Go(func() { s.ConnectSkills(ctx, []*catalog.Entry{e}) }) // a later load reports problems
		}
	}
	return s
}

// variables returns the variables for a server in Own or Profile.
func (o *Options) variables(c *upstream.Config) upstream.Variables {
	switch v := o.Variables; {
	case o.VariablesFor != nil:
		return o.VariablesFor(c)
	case c.Owner != "": // server of a trusted project, which must not get the user's secrets
		return upstream.Variables{User: v.User, Workspace: v.Workspace, HowToSet: v.HowToSet}
	default:
		return v
	}
}

// SetRules replaces the rules. Later decisions use r; calls that were allowed
// before continue.
func (s *Set) SetRules(r policy.Rules) { s.rules.Store(&r) }

// openServer resolves a server's variables and opens it in the pool, without
// connecting.
func (s *Set) openServer(name, skill string, c *upstream.Config, v upstream.Variables) *server {
	sv := &server{name: name, skill: skill, config: c}
	resolved, unset := c.Resolve(v) // different values use different connections
	identity := ""
	if c.Owner != "" || s.opts.further.Personal != nil && s.opts.further.Personal(c) {
		identity = s.opts.further.Identity
	}
	if sv.full, sv.unset = resolved, unset; len(unset) == 0 {
		sv.Server = s.opts.further.Pool.Server(resolved, identity)
	}
	return sv
}

// Close releases the set's connections and waits for its background work to
// finish. It may be called more than once. Afterwards, the set has no servers.
func (s *Set) Close() error {
	s.mu.Lock()
	provided, own := s.groups, s.own
	s.groups, s.own, s.closed = map[string]*serverGroup{}, nil, true
	s.mu.Unlock()
	s.cancel()
	for _, b := range provided {
		b.release()
	}
	for _, sv := range own {
		sv.release()
	}
	s.running.Wait()
	if s.pool != nil {
		return s.pool.Close()
	}
	return nil
}

func (b *serverGroup) release() {
	for _, sv := range b.servers {
		sv.release()
	}
	for _, l := range b.permissions {
		l.release()
	}
}

func (sv *server) release() {
	if sv.Server != nil {
		sv.Release()
	}
}

// allServers returns the known servers. The user's own servers come first.
func (s *Set) allServers() []*server {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := slices.Clone(s.own)
	keys := make([]string, 0, len(s.groups))
	for k := range s.groups {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	for _, k := range keys {
		out = append(out, s.groups[k].servers...)
	}
	return out
}

func (sv *server) status() upstream.Status {
	if sv.Server == nil {
		return upstream.Status{Name: sv.name, Transport: sv.config.Type, State: upstream.NotConfigured, Error: upstream.JoinUnset(sv.unset)}
	}
	st := sv.Status()
	st.Name = sv.name
	return st
}

// notConfigured returns the problem to report for a server with a variable that
// has no value.
func (sv *server) notConfigured() string {
	return "MCP server " + sv.name + " is not configured: " + upstream.JoinUnset(sv.unset)
}

// Tool is a tool in a [Set].
type Tool struct {
	Name          string         // name for calls, of up to 48 letters, digits, _ and -
	Server        string         // server name in the set
	Skill         string         // name of the skill that provides the server; "" for the user's own servers
	State         upstream.State // state of the connection to the server
	Definition    *mcp.Tool      // as defined by its server; must not be modified
	NeedsApproval bool           // whether a call needs approval; see [Set.ResolveApprovals]
	ReadOnly      bool           // whether [Call.ReadOnly] is possible; see [Set.ResolveApprovals]
	server        *server
	definition    *definition
}

// subject returns the digest that identifies the tool in grants. It covers the
// tool's definition and its server's configuration. It is "" if the definition
// is unknown.
func (t *Tool) subject() policy.Digest {
	if t.definition == nil {
		return ""
	}
	return t.definition.subject()
}

// skillKey returns the [catalog.Entry.Key] of the skill that provides the tool.
// It returns "" for the user's own tools.
func (t *Tool) skillKey() string {
	if t.server == nil || t.server.group == nil {
		return ""
	}
	return t.server.group.key
}

// owner returns a description of the owner of the tool's server, for display.
func (t *Tool) owner() string {
	switch {
	case t.Skill != "":
		return "the skill " + t.Skill
	case t.server.config.Owner != "":
		if owner := t.server.config.Owner; owner != upstream.ProjectOwner {
			return "the server " + t.Server + " of " + string(owner)
		}
		return "the server " + t.Server + " of this project"
	}
	return "your MCP server " + t.Server
}

// knownTools returns a server's tools that are known without connecting.
func (s *Set) knownTools(sv *server) []Tool {
	if sv.Server == nil {
		return nil
	}
	return s.listedTools(sv, sv.LastListing())
}

func (s *Set) listedTools(sv *server, l *upstream.Listing) []Tool {
	if l == nil {
		return nil
	}
	state := sv.Status().State
	screened := s.screenListing(sv, l)
	out := make([]Tool, 0, len(screened.usable))
	for _, t := range screened.usable {
		if tool := s.visibleTool(sv, screened.byServerName[t.Name], state); tool != nil {
			out = append(out, *tool)
		}
	}
	return out
}

// visibleTool returns the tool as visible to an agent. It returns nil if a rule
// denies all calls to the tool, because agents do not see such tools.
func (s *Set) visibleTool(sv *server, d *definition, state upstream.State) *Tool {
	t := s.newTool(sv, d, state)
	verdict := s.decide(t, &Call{})
	t.NeedsApproval = verdict.Effect == policy.Ask // ignores grants; ResolveApprovals considers them
	if verdict.Effect == policy.Deny {
		return nil
	}
	return t
}

// newTool returns the tool regardless of the rules.
func (s *Set) newTool(sv *server, d *definition, state upstream.State) *Tool {
	return &Tool{Name: d.name, Server: sv.name, Skill: sv.skill, State: state, Definition: d.Tool, server: sv, definition: d}
}

// knownTool returns a server's tool by its name in the set. It returns nil if
// the server is not known to have the tool.
func (s *Set) knownTool(sv *server, name string) *Tool {
	if sv.Server == nil {
		return nil
	}
	l := sv.LastListing()
	if l == nil {
		return nil
	}
	d := s.screenListing(sv, l).byLocalName[name]
	if d == nil {
		return nil
	}
	return s.newTool(sv, d, sv.Status().State) // the call itself reports a denying rule
}

func (s *Set) log() *slog.Logger {
	if s.opts.Logger != nil {
		return s.opts.Logger
	}
	return slog.New(slog.DiscardHandler)
}

// errClosed is returned if the set was closed.
var errClosed = errors.New("tool set is closed")

// Connect connects to all known servers, or only to the named one, concurrently
// and within [Options.Deadline]. It returns the problems by server name. The map
// is empty if there are none or if the set has no such server.
func (s *Set) Connect(ctx context.Context, name string) map[string]string {
	ctx, cancel := context.WithTimeout(ctx, s.opts.Deadline)
	defer cancel()
	servers := s.allServers()
	if name != "" {
		servers = nil
		if sv := s.findServer(ctx, name); sv != nil {
			servers = []*server{sv}
		}
	}
	all := make([]string, len(servers))
	var running sync.WaitGroup
	for i, sv := range servers {
		running.Go(func() { _, all[i] = s.connect(ctx, sv) })
	}
	running.Wait()
	out := map[string]string{}
	for i, sv := range servers {
		if all[i] != "" {
			out[sv.name] = all[i]
		}
	}
	return out
}

// findServer returns the server with the given name. If necessary, it opens the
// servers of the skill that may have it.
func (s *Set) findServer(ctx context.Context, name string) *server {
	if sv := s.serverByName(name); sv != nil {
		return sv
	}
	for e := range s.rt.Catalog().Snapshot().Visible() {
		if strings.HasPrefix(name, e.Name+"_") {
			s.serversOf(ctx, e)
			if sv := s.serverByName(name); sv != nil {
				return sv
			}
		}
	}
	return nil
}

func (s *Set) serverByName(name string) *server {
	all := s.allServers()
	if i := slices.IndexFunc(all, func(sv *server) bool { return sv.name == name }); i >= 0 {
		return all[i]
	}
	return nil
}

// Server describes a server in a [Set] at the time of [Set.Servers]. The caller
// must not modify what it points to.
type Server struct {
	upstream.Status
	Skill   string            // skill that provides the server; "" for the user's own
	Config  *upstream.Config  // configuration with unresolved variables
	Listing *upstream.Listing // last tool list, possibly from an earlier process; nil if unknown
	// Problem describes quarantined tools, and tools that are configured but
	// missing.
	Problem string
	// Quarantined lists the tools that cannot be used until they are accepted,
	// by the server's own names.
	Quarantined []string
}

// ResolvedConfig returns a server's configuration with its variables resolved,
// for a connection outside the pool. It contains secrets. The caller must not
// modify it. It is nil if there is no such server or a value is missing.
func (s *Set) ResolvedConfig(name string) *upstream.Config {
	if sv := s.serverByName(name); sv != nil {
		return sv.full
	}
	return nil
}

// Servers describes all known servers, the user's own first. It does not connect
// to them.
func (s *Set) Servers() []Server {
	var out []Server
	for _, sv := range s.allServers() {
		one := Server{Status: sv.status(), Skill: sv.skill, Config: sv.config}
		if sv.Server != nil {
			if one.Listing = sv.LastListing(); one.Listing != nil {
				screened := s.screenListing(sv, one.Listing)
				one.Problem, one.Quarantined = joinProblems(screened.problem, s.checkListing(sv, one.Listing)), screened.quarantined
			}
		}
		out = append(out, one)
	}
	return out
}
