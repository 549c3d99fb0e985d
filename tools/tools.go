// Package tools puts MCP tools at the hand of an agent: those of the person's own
// servers, of a profile's, and those that skills bring when they are loaded. It
// finds out which servers a skill means ([Set.Bring]), finds tools by what they
// are for ([Set.Find]), and calls them ([Set.Call]) under the rules of policy and what
// a person allowed before ([Set.Grant]). A planner is told what there is by
// [Set.Capabilities].
//
// It starts nothing of a skill that was not approved, keeps no conversation, and
// shows no secret. One server that fails takes nothing else down: what is wrong
// with it is part of every answer.
package tools

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/skill"
	"github.com/loadout-dev/loadout/upstream"
)

// Skills is what the set needs of the skills; [github.com/loadout-dev/loadout.Runtime]
// has it.
type Skills interface {
	Catalog() *catalog.Catalog
}

// Leave is permission to use what a skill brings. It ends when it is withdrawn.
type Leave struct {
	Digest  policy.Digest // of the skill
	Ended   <-chan struct{}
	Release func()
	// Check asks again, before a call: what was withdrawn or changed by then counts.
	Check func(ctx context.Context) error
	// User and Secret return the values that were granted to the skill.
	User, Secret func(name string) (string, bool)
}

// Options are what a set is made of.
type Options struct {
	Skills Skills
	// Pool keeps the connections. The set closes what it opened, not the pool.
	Pool *upstream.Pool
	// Own are the servers of the person, and Profile those of the profile that is
	// served, which win over them.
	Own, Profile []*upstream.Config
	// Variables resolve what Own and Profile say.
	Variables upstream.Variables
	// VariablesFor, where set, resolves what one of Own and Profile says, in place of
	// Variables: values that were granted to some of them only. It is called by [New].
	VariablesFor func(c *upstream.Config) upstream.Variables
	// Identity is whose connections they are, but for those of servers without an owner:
	// sets of one pool share them where it is the same.
	Identity string
	// Personal says whether connections to a server without an owner are of Identity too,
	// as where the person signed in to it; nil is no. It is called by [New].
	Personal func(c *upstream.Config) bool
	// Permit asks for leave to use the servers and providers of a skill; nil
	// permits none. The error says how to approve it.
	Permit func(ctx context.Context, e *catalog.Entry) (*Leave, error)
	// Permits reports whether Permit would give it, which leaves no trace: a search
	// asks so for skills that nobody loaded. Nil is that it does not say, and then
	// tools of those are not found.
	Permits func(ctx context.Context, e *catalog.Entry) bool
	// Provide returns the server of the provider of a skill, without a name, and
	// what is to be said of it; nil has none.
	Provide func(ctx context.Context, e *catalog.Entry, s *skill.Skill) (*upstream.Config, []string, error)
	// Providers are servers of the program that embeds the set, by the name by which
	// skills declare tools of them. A skill sees those that it declares, and needs no
	// approval for them; it chooses their configuration, so that a person is asked
	// about those that may change something.
	Providers map[string]*upstream.Config
	// Rules decide on calls until [Set.SetRules]; the zero value has the defaults of
	// [policy.Rules].
	Rules policy.Rules
	// DefaultSafety is the level of servers that say none; zero is MEDIUM.
	DefaultSafety policy.Level
	// Grants keep what a person allowed beyond one call; nil keeps none.
	Grants policy.Store
	// Audit receives each decision on a call; nil discards them. A decision that
	// cannot be recorded is a refusal.
	Audit func(ctx context.Context, r policy.Record) error
	// Ended is told how each call ended, by several goroutines at once, and must not
	// wait; nil is told nothing.
	Ended func(Ended)
	// Deadline bounds how long a load waits for its servers; default 20 s.
	Deadline time.Duration
	// Pins remembers how tools are defined; nil notices no change.
	Pins   Definitions
	Logger *slog.Logger // nil discards
}

// Set is the tools that are at hand. It is safe for concurrent use; close it
// when done.
type Set struct {
	opts  Options
	rules atomic.Pointer[policy.Rules]

	mu      sync.Mutex
	own     []*server          // in the order of the configuration, the profile's first
	brought map[string]*bundle // by key of the skill
	holders map[string][]*Hold // by key of the skill: the conversations that need it
	shared  map[string]bool    // by key: it was brought for no conversation, and stays
	closed  bool
	cancel  context.CancelFunc // of what was begun at the start
	running sync.WaitGroup     // that, and those who wait for the end of a leave
}

// bundle is what one skill brought, as it and the skills whose providers it uses
// were.
type bundle struct {
	version string // digests of all of them
	servers []*server
	leaves  []*Leave
	key     string // of the skill
}

// server is one server by the name that its tools have.
type server struct {
	name   string
	skill  string // name of the skill that brings it, "" for the person's own
	config *upstream.Config
	bundle *bundle          // it is of, nil for the person's own
	full   *upstream.Config // with the values of its variables, nil where some are missing
	unset  []upstream.Unset // variables without a value: it is not configured
	// settings are those of tools by their names, for who is told them with a call.
	settings map[string]any
	*upstream.Server
	screened atomic.Pointer[screened]
}

// New returns a set. Servers that are to be connected at the start are, and those
// of skills that are marked preload, in the background, until the set is closed.
func New(opts *Options) *Set {
	s := &Set{opts: *opts, brought: map[string]*bundle{}, holders: map[string][]*Hold{}, shared: map[string]bool{}}
	s.rules.Store(&opts.Rules)
	if s.opts.Deadline == 0 {
		s.opts.Deadline = 20 * time.Second
	}
	if s.opts.DefaultSafety == policy.Unknown {
		s.opts.DefaultSafety = policy.Medium
	}
	taken := map[string]bool{}
	profile := slices.DeleteFunc(slices.Clone(opts.Profile), func(c *upstream.Config) bool {
		// What is not the person's takes no name of theirs: rules go by names.
		return c.Owner != "" && slices.ContainsFunc(opts.Own, func(o *upstream.Config) bool { return o.Name == c.Name })
	})
	for _, c := range slices.Concat(profile, opts.Own) {
		if taken[c.Name] || c.Disabled {
			taken[c.Name] = true
			continue
		}
		taken[c.Name] = true
		s.own = append(s.own, s.open(c.Name, "", c, opts.variables(c)))
	}
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	for _, sv := range s.own {
		if sv.Server != nil && sv.config.AtStart {
			s.running.Go(func() { s.connect(ctx, sv) }) // what came of it is in its status
		}
	}
	for _, e := range opts.Skills.Catalog().Snapshot().Offered() {
		if e.Preload && e.Brings && opts.Permit != nil {
			s.running.Go(func() { s.Bring(ctx, []*catalog.Entry{e}) }) // and what is wrong, the load says
		}
	}
	return s
}

// variables are those for a server of the person or the profile.
func (o *Options) variables(c *upstream.Config) upstream.Variables {
	switch v := o.Variables; {
	case o.VariablesFor != nil:
		return o.VariablesFor(c)
	case c.Owner != "": // of a project that is trusted, which is not the person
		return upstream.Variables{User: v.User, Workspace: v.Workspace}
	default:
		return v
	}
}

// SetRules has other rules decide from the next decision on.
func (s *Set) SetRules(r policy.Rules) { s.rules.Store(&r) }

// open resolves the variables of a server and gets it from the pool. Nothing is
// connected.
func (s *Set) open(name, skill string, c *upstream.Config, v upstream.Variables) *server {
	sv := &server{name: name, skill: skill, config: c}
	resolved, unset := c.Resolve(v) // values make connections of their own
	identity := ""
	if c.Owner != "" || s.opts.Personal != nil && s.opts.Personal(c) {
		identity = s.opts.Identity
	}
	if sv.full, sv.unset = resolved, unset; len(unset) == 0 {
		sv.Server = s.opts.Pool.Server(resolved, identity)
	}
	return sv
}

// Close releases the connections of the set.
func (s *Set) Close() error {
	s.mu.Lock()
	brought, own := s.brought, s.own
	s.brought, s.own, s.closed = map[string]*bundle{}, nil, true
	s.mu.Unlock()
	s.cancel()
	for _, b := range brought {
		b.release()
	}
	for _, sv := range own {
		sv.release()
	}
	s.running.Wait()
	return nil
}

func (b *bundle) release() {
	for _, sv := range b.servers {
		sv.release()
	}
	for _, l := range b.leaves {
		l.Release()
	}
}

func (sv *server) release() {
	if sv.Server != nil {
		sv.Release()
	}
}

// all are the servers that are known now, own ones first.
func (s *Set) all() []*server {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := slices.Clone(s.own)
	keys := make([]string, 0, len(s.brought))
	for k := range s.brought {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	for _, k := range keys {
		out = append(out, s.brought[k].servers...)
	}
	return out
}

// NotConfigured is the state of a server that lacks the value of a variable.
const NotConfigured upstream.State = "NOT_CONFIGURED"

func (sv *server) status() upstream.Status {
	if sv.Server == nil {
		return upstream.Status{Name: sv.name, Transport: sv.config.Type, State: NotConfigured, Error: missing(sv.unset)}
	}
	st := sv.Status()
	st.Name = sv.name
	return st
}

// missing says which values are not there, and what to do about it.
func missing(unset []upstream.Unset) string {
	var parts []string
	for _, u := range unset {
		parts = append(parts, u.String())
	}
	return "not configured: " + strings.Join(parts, "; ")
}

// Tool is a tool that can be called.
type Tool struct {
	Name        string // by which it is called here
	Server      string // the server's name here
	Skill       string // that brings it, "" for the person's own
	State       upstream.State
	Definition  *mcp.Tool // as its server defines it; do not change it
	NeedsPerson bool      // a person is asked before it is called; [Set.Plan] says for whom
	server      *server
	definition  *definition
}

// Subject identifies the tool for who remembers a decision about it: its server,
// as it is configured, and its definition. It is "" where the definition is not
// known.
func (t *Tool) Subject() policy.Digest {
	if t.definition == nil {
		return ""
	}
	return t.definition.subject()
}

// SkillKey identifies the skill that brings it, as [catalog.Entry.Key] does; "" is the
// person's own.
func (t *Tool) SkillKey() string {
	if t.server == nil || t.server.bundle == nil {
		return ""
	}
	return t.server.bundle.key
}

// Owner says for people whose the tool's server is.
func (t *Tool) Owner() string {
	switch {
	case t.Skill != "":
		return "the skill " + t.Skill
	case t.server.config.Owner != "":
		if owner := t.server.config.Owner; owner != "project" {
			return "the server " + t.Server + " of " + owner
		}
		return "the server " + t.Server + " of this project"
	}
	return "your MCP server " + t.Server
}

// tools are those of a server that are known without connecting.
func (s *Set) tools(sv *server) []Tool {
	if sv.Server == nil {
		return nil
	}
	return s.listed(sv, sv.Known())
}

func (s *Set) listed(sv *server, l *upstream.Listing) []Tool {
	if l == nil {
		return nil
	}
	state := sv.Status().State
	screened := s.screen(sv, l)
	out := make([]Tool, 0, len(screened.usable))
	for _, t := range screened.usable {
		if tool := s.tool(sv, screened.named[t.Name], state); tool != nil {
			out = append(out, *tool)
		}
	}
	return out
}

// tool is a tool as agents are told of it, nil where a rule denies all its calls:
// to them there is none.
func (s *Set) tool(sv *server, d *definition, state upstream.State) *Tool {
	t := s.denied(sv, d, state)
	decision := s.decide(t, &Call{})
	t.NeedsPerson = decision.NeedsPerson() // for who has no grant; see Plan
	if !decision.Allow() && !decision.NeedsPerson() {
		return nil
	}
	return t
}

// denied is a tool whatever the rules say.
func (s *Set) denied(sv *server, d *definition, state upstream.State) *Tool {
	return &Tool{Name: d.name, Server: sv.name, Skill: sv.skill, State: state, Definition: d.Tool, server: sv, definition: d}
}

// known returns the tool of a name here, nil where it is not known to be one of
// the server's.
func (s *Set) known(sv *server, name string) *Tool {
	if sv.Server == nil {
		return nil
	}
	l := sv.Known()
	if l == nil {
		return nil
	}
	d := s.screen(sv, l).here[name]
	if d == nil {
		return nil
	}
	return s.denied(sv, d, sv.Status().State) // a call of it says which rule
}

func (s *Set) log() *slog.Logger {
	if s.opts.Logger != nil {
		return s.opts.Logger
	}
	return slog.New(slog.DiscardHandler)
}

// ErrClosed says that the set was closed.
var ErrClosed = errors.New("the tools are closed")

// Connect connects the servers that are known, or the one of a name, in parallel
// and under the deadline of the set. It returns what is wrong, by the name of the
// server.
func (s *Set) Connect(ctx context.Context, name string) map[string]string {
	ctx, cancel := context.WithTimeout(ctx, s.opts.Deadline)
	defer cancel()
	servers := s.all()
	if name != "" {
		servers = nil
		if sv := s.locate(ctx, name); sv != nil {
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

// locate returns the server of a name; a skill that may bring it is asked to.
func (s *Set) locate(ctx context.Context, name string) *server {
	if sv := s.byName(name); sv != nil {
		return sv
	}
	for _, e := range s.opts.Skills.Catalog().Snapshot().Skills() {
		if strings.HasPrefix(name, e.Name+"_") {
			s.serversOf(ctx, e)
			if sv := s.byName(name); sv != nil {
				return sv
			}
		}
	}
	return nil
}

func (s *Set) byName(name string) *server {
	all := s.all()
	if i := slices.IndexFunc(all, func(sv *server) bool { return sv.name == name }); i >= 0 {
		return all[i]
	}
	return nil
}

// Server is what is known of one server.
type Server struct {
	upstream.Status
	Skill  string           // that brings it
	Config *upstream.Config // with its variables, not their values
	Known  *upstream.Listing
	// Problem is what is wrong with its tools: they changed and are held back, or
	// are not those that its configuration names.
	Problem string
	// Held are names of tools, as it calls them, that are held back.
	Held []string
}

// Resolved is the configuration of a server with the values of its variables, for
// a connection beside those of the pool; nil where there is none. It holds
// secrets.
func (s *Set) Resolved(name string) *upstream.Config {
	if sv := s.byName(name); sv != nil {
		return sv.full
	}
	return nil
}

// Servers says what is known of each server. It connects nothing.
func (s *Set) Servers() []Server {
	var out []Server
	for _, sv := range s.all() {
		one := Server{Status: sv.status(), Skill: sv.skill, Config: sv.config}
		if sv.Server != nil {
			if one.Known = sv.Known(); one.Known != nil {
				screened := s.screen(sv, one.Known)
				one.Problem, one.Held = problems(screened.problem, s.check(sv, one.Known)), screened.held
			}
		}
		out = append(out, one)
	}
	return out
}
