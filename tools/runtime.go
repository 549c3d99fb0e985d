package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/execution"
	"github.com/loadout-dev/loadout/internal/provider"
	"github.com/loadout-dev/loadout/internal/requestedserver"
	"github.com/loadout-dev/loadout/internal/spawn"
	"github.com/loadout-dev/loadout/internal/toolset"
	"github.com/loadout-dev/loadout/internal/upstream"
	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/sandbox"
	"github.com/loadout-dev/loadout/skill"
)

// SkillServers configures how [ForRuntime] starts skill servers and providers.
// The zero value is ready to use. Its functions must be safe for concurrent use.
type SkillServers struct {
	// Session is the conversation that uses the servers, so that grants for a
	// session apply. "" means none.
	Session string
	// UserName is the user's name as passed to providers; "" omits it.
	UserName string
	// Values returns the user values and secrets granted to a skill with the
	// given digest. If it is nil, skills receive the User of
	// [Options.Variables], and the secrets and the Platform values included in
	// their approval. If it returns an error, the skill's servers are not started.
	Values func(ctx context.Context, e *catalog.Entry, d policy.Digest) (Variables, error)
	// HowToApprove returns how the user can approve the skill whose refusal err
	// reports, as the end of a sentence that starts with "the user can". If
	// HowToApprove is nil or returns "", only the reason is reported.
	HowToApprove func(err *loadout.RefusedError) string
	// Disabled is the reason why skill and project commands are not started.
	// "" allows them.
	Disabled string
}

// ForRuntime returns a set for the skills of a runtime. Their servers and
// providers need the runtime's approval, and their commands run in its sandbox.
// See [ReadServers] for [loadout.Scripts]. o may be nil. The caller must close
// the set before the runtime.
//
// ForRuntime does not wait for servers. In the background, it connects preloaded
// skills and servers that are configured to connect at the start.
func ForRuntime(rt *loadout.Runtime, o *Options) *Set {
	opts := Options{}
	if o != nil {
		opts = *o
	}
	r := &runtimeServers{rt: rt, SkillServers: opts.SkillServers, otherService: opts.further.OtherService, variables: opts.Variables}
	access := skillAccess{r.acquirePermission, r.isPermitted, r.provide}
	opts.Own = opts.withInProcess()
	if opts.further.Pool != nil {
		return newSet(rt, &opts, access, r, nil)
	}
	pool := upstream.NewPool(opts.poolOptions(r))
	opts.further.Pool = pool
	return newSet(rt, &opts, access, r, pool)
}

func init() {
	toolset.SetOptions = func(o any, further toolset.Options) {
		options, ok := o.(*Options)
		if !ok {
			panic(fmt.Sprintf("toolset: options have type %T, want *tools.Options", o))
		}
		options.further = further
	}
	toolset.Pool = func(s toolset.Set) *upstream.Pool { return setOf(s).sharedPool() }
	toolset.Start = func(ctx context.Context, s toolset.Set, c *upstream.Config) (upstream.Process, error) {
		return setOf(s).startCommand(ctx, c)
	}
}

// anySet is implemented by *Set and by types that embed it.
type anySet interface {
	sharedPool() *upstream.Pool
	startCommand(ctx context.Context, c *upstream.Config) (upstream.Process, error)
}

// setOf converts s to an anySet. It panics if s is not a *Set and does not
// embed one.
func setOf(s toolset.Set) anySet {
	set, ok := s.(anySet)
	if !ok {
		panic(fmt.Sprintf("toolset: set has type %T, want *tools.Set or a type that embeds it", s))
	}
	return set
}

// sharedPool returns the pool that holds the set's connections.
func (s *Set) sharedPool() *upstream.Pool { return s.opts.further.Pool }

// startCommand starts the command of a server that does not belong to the user.
func (s *Set) startCommand(ctx context.Context, c *upstream.Config) (upstream.Process, error) {
	return s.starter.start(ctx, c)
}

// withInProcess adds the servers in InProcess, sorted by name, to a copy of
// Own.
func (o *Options) withInProcess() []*upstream.Config {
	own := slices.Clone(o.Own)
	for _, name := range slices.Sorted(maps.Keys(o.InProcess)) {
		c := upstream.Config{Name: name}
		i := slices.IndexFunc(own, func(c *upstream.Config) bool { return c.Name == name })
		if i >= 0 {
			c = *own[i]
		}
		c.Type, c.URLs = upstream.InProcess, []string{name}
		if i >= 0 {
			own[i] = &c
		} else {
			own = append(own, &c)
		}
	}
	return own
}

// poolOptions returns the options of the set's own pool, which starts the
// commands of skills with r.
func (o *Options) poolOptions(r *runtimeServers) *upstream.PoolOptions {
	p := o.further.PoolOptions
	if p.Cache == nil && o.CacheDir != "" {
		p.Cache = &upstream.Files{Dir: o.CacheDir}
	}
	d := p.Dialer
	if d == nil {
		d = &upstream.Dialer{Logger: o.Logger}
	}
	start := d.Spawn
	if start == nil && o.StartCommands {
		start = spawn.New(nil).Start
	}
	d = d.WithSpawn(r.spawner(start))
	d.Private = slices.Concat(d.Private, o.PrivateNetworks)
	if o.OAuth != nil {
		d.OAuth = o.OAuth
	}
	d.Transports = maps.Clone(d.Transports)
	if d.Transports == nil {
		d.Transports = map[string]func(*upstream.Config, string) (mcp.Transport, error){}
	}
	if len(o.InProcess) > 0 {
		d.Transports[upstream.InProcess] = upstream.MemoryTransport(o.InProcess)
	}
	if len(o.Providers) > 0 {
		d.Transports[upstream.Provider] = upstream.MemoryTransport(o.Providers)
	}
	p.Dialer = d
	return &p
}

// ReadServers reads a skill's MCP servers with the same parser that is used to
// start them. configs is the JSON form of the mcpServers in the skill's
// frontmatter. file is the name of that file in messages. The error lists up to
// three problems. Assign ReadServers to [loadout.Scripts.ReadServers].
func ReadServers(configs json.RawMessage, file string) ([]loadout.RequestedService, error) {
	return readServers(configs, file, Variables{})
}

// ReadServersWith returns a function like [ReadServers] for skills whose servers
// use platform values, such as ${{backend_url}}. An approval then covers the
// host or command that receives each value; if that changes, the skill needs a
// new approval. Only Platform and User of v are used, which must be those of
// [Options.Variables].
func ReadServersWith(v Variables) func(configs json.RawMessage, file string) ([]loadout.RequestedService, error) {
	v = Variables{Platform: v.Platform, User: v.User}
	return func(configs json.RawMessage, file string) ([]loadout.RequestedService, error) {
		return readServers(configs, file, v)
	}
}

func readServers(configs json.RawMessage, file string, v Variables) ([]loadout.RequestedService, error) {
	f, findings := upstream.ParseMap(configs, file)
	var wrong []string
	for _, d := range findings {
		if d.Severity == skill.Error {
			wrong = append(wrong, d.Message)
		}
	}
	if n := len(wrong); n > 0 {
		text := strings.Join(wrong[:min(n, 3)], "; ")
		if n > 3 {
			text += fmt.Sprintf("; and %d more", n-3)
		}
		return nil, errors.New(text)
	}
	var out []loadout.RequestedService
	for _, c := range f.Servers {
		out = append(out, requestedserver.Describe(c, v))
	}
	return out, nil
}

// runtimeServers starts the servers and providers of a runtime's skills.
type runtimeServers struct {
	SkillServers
	otherService func(ctx context.Context, c *upstream.Config) (*execution.ServiceRequest, error) // see [toolset.Options]
	rt           *loadout.Runtime
	variables    Variables
	files        sync.Map // provider files, by variant
}

// acquirePermission acquires a lease for a skill's servers and provider.
func (r *runtimeServers) acquirePermission(ctx context.Context, e *catalog.Entry) (*permission, error) {
	l, err := r.rt.Runner().AcquireLease(ctx, e.Key(), execution.Caller{Session: r.Session})
	if refused, ok := errors.AsType[*loadout.RefusedError](err); ok {
		return nil, r.describeRefusal(refused)
	}
	if err != nil {
		return nil, err
	}
	p := &permission{digest: l.Digest, isolated: l.Isolated, done: l.Done(), release: l.Release, check: l.Check, values: Variables{
		User: r.variables.User, Secret: func(name string) (string, bool) { return l.Secret(context.WithoutCancel(ctx), name) },
		Platform: r.variables.Platform, CheckPlatform: checkApproved(l), Names: r.namesFor(l)}}
	if r.Values != nil {
		v, err := r.Values(ctx, e, l.Digest)
		if err != nil {
			l.Release()
			return nil, err
		}
		check := v.CheckPlatform
		if check == nil {
			check = checkApproved(l)
		}
		p.values = Variables{User: v.User, Secret: v.Secret, Platform: v.Platform, CheckPlatform: check, Names: v.Names}
	}
	return p, nil
}

// checkApproved returns a function that returns an error unless the skill with
// the lease l is approved to send a platform value to a target.
func checkApproved(l *execution.Lease) func(name, target string) error {
	return func(name, target string) error {
		if l.PermitsVariable(name, target) {
			return nil
		}
		return fmt.Errorf("may not be sent to %s: approve the skill again", target)
	}
}

// namesFor returns a function that lists the names of the values that a skill
// with the lease l may use.
func (r *runtimeServers) namesFor(l *execution.Lease) func(kind string) []string {
	return func(kind string) []string {
		switch {
		case kind == upstream.FromSecret:
			return l.Bounds.Secrets
		case r.variables.Names == nil:
			return nil
		}
		return r.variables.Names(kind)
	}
}

func (r *runtimeServers) describeRefusal(refused *loadout.RefusedError) error {
	if r.HowToApprove != nil {
		switch how := r.HowToApprove(refused); {
		case how == "":
		case !refused.NeedsApproval:
			return fmt.Errorf("%s; %s", refused.Decision.Reason, how)
		default:
			return &notApprovedError{how: how, reason: refused.Decision.Reason}
		}
	}
	return errors.New(refused.Decision.Reason)
}

// notApprovedError reports that a skill is not approved, and how the user can
// approve it.
type notApprovedError struct{ how, reason string }

func (e *notApprovedError) Error() string { return "the user can " + e.how + ": " + e.reason }

func (r *runtimeServers) isPermitted(ctx context.Context, e *catalog.Entry) bool {
	return r.rt.Runner().CanAcquireLease(ctx, e.Key(), execution.Caller{Session: r.Session})
}

// provide returns the server configuration of a skill's provider.
func (r *runtimeServers) provide(_ context.Context, _ *catalog.Entry, s *skill.Skill) (*upstream.Config, []string, error) {
	start, err := provider.Plan(s, provider.Options{UserName: r.UserName})
	if err != nil {
		return nil, nil, err
	}
	r.files.Store(start.Env[provider.Variant], start.Files)
	return &upstream.Config{Type: upstream.Stdio, Command: start.Command[0], Args: start.Command[1:], Env: start.Env}, nil, nil
}

// spawner returns a spawner that starts the user's commands with hostSpawner
// and all other commands in the sandbox.
func (r *runtimeServers) spawner(hostSpawner upstream.Spawner) upstream.Spawner {
	return func(ctx context.Context, c *upstream.Config) (upstream.Process, error) {
		switch {
		case c.Owner != "":
			return r.start(ctx, c)
		case hostSpawner == nil:
			return nil, errors.New("stdio servers are disabled; use a url, or set StartCommands in tools.Options")
		}
		return hostSpawner(ctx, c)
	}
}

func (r *runtimeServers) start(ctx context.Context, c *upstream.Config) (upstream.Process, error) {
	if r.Disabled != "" {
		return nil, errors.New("commands of skills and projects are disabled: " + r.Disabled)
	}
	service, err := r.service(ctx, c)
	if err != nil {
		return nil, err
	}
	return r.rt.Runner().Serve(ctx, service)
}

// service returns the request to start a server's command in the runtime's
// sandbox.
func (r *runtimeServers) service(ctx context.Context, c *upstream.Config) (*execution.ServiceRequest, error) {
	key, digest, ok := c.Owner.Skill()
	switch {
	case !ok && r.otherService == nil:
		return nil, &upstream.NotAllowedError{Reason: "command was not reviewed"}
	case !ok:
		return r.otherService(ctx, c)
	}
	s := &execution.ServiceRequest{Skill: key, Digest: policy.Digest(digest), Caller: execution.Caller{Session: r.Session}, Command: append([]string{c.Command}, c.Args...), Env: c.Env}
	for _, v := range c.SecretValues() { // redacted from the output of the server
		s.Redact = append(s.Redact, sandbox.NewSecret("of its configuration", v))
	}
	if files, ok := r.files.Load(c.Env[provider.Variant]); ok {
		s.Files = files.(map[string][]byte)
	}
	return s, nil
}
