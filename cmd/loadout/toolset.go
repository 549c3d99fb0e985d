package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/config"
	"github.com/loadout-dev/loadout/internal/spawn"
	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/profile"
	"github.com/loadout-dev/loadout/provider"
	"github.com/loadout-dev/loadout/sandbox"
	"github.com/loadout-dev/loadout/skill"
	"github.com/loadout-dev/loadout/tools"
	"github.com/loadout-dev/loadout/upstream"
	"github.com/loadout-dev/loadout/workspace"
)

// toolset is the MCP servers at hand, and what they need.
type toolset struct {
	*tools.Set
	pool  *upstream.Pool
	rules policy.Rules // for what is part of this program, behind the person's
}

func (t *toolset) Close() error {
	return errors.Join(t.Set.Close(), t.pool.Close())
}

// serverFiles are the files and directories with the person's MCP servers.
func (a *app) serverFiles(c *config.Config, given []string) []string {
	var out []string
	if f := config.UserFile(a.configInput()); f != "" {
		for _, name := range []string{"servers.yaml", "mcp.json"} {
			if p := filepath.Join(filepath.Dir(f), name); exists(p) {
				out = append(out, p)
			}
		}
	}
	return slices.Concat(given, c.Servers.Files, c.Servers.Dirs, c.Servers.Inherited, out)
}

func exists(p string) bool {
	_, err := os.Stat(p)
	return err == nil
}

// servers reads the person's MCP servers. What is wrong with one of them is said
// and the others are there; a file that the person gave has to be readable.
func (a *app) servers(c *config.Config, given []string) ([]*upstream.Config, []string, error) {
	var all []*upstream.Config
	var findings []string
	at := map[string]string{}
	paths := a.serverFiles(c, given)
	own := len(paths)
	for i, path := range append(paths, c.Servers.Project...) {
		files, err := serverFilesIn(path)
		if err != nil {
			if i < len(given) {
				code, hint := missing(err, "the path given with --mcp-config")
				return nil, nil, fail(code, hint, "%s: %w", path, reason(err))
			}
			findings = append(findings, fmt.Sprintf("%s: %v", path, reason(err)))
			continue
		}
		for _, file := range files {
			b, err := readSmall(file, 1<<20)
			if err != nil {
				findings = append(findings, fmt.Sprintf("%s: %v", file, reason(err)))
				continue
			}
			if i >= own && !a.covered(file, b) {
				findings = append(findings, file+" is not of what was trusted of the project: move it into .loadout, and trust the project again")
				continue
			}
			f, ds := upstream.Parse(b, upstream.ParseOptions{Name: file})
			for _, d := range ds {
				if d.Severity == skill.Error || d.Severity == skill.Warning {
					findings = append(findings, fmt.Sprintf("%s:%d:%d: %s", file, d.Line, d.Column, d.Message))
				}
			}
			for _, s := range f.Servers {
				if first, taken := at[s.Name]; taken {
					findings = append(findings, fmt.Sprintf("%s:%d: the MCP server %s is passed over: %s has one of that name", file, s.Line, s.Name, first))
					continue
				}
				at[s.Name] = file
				if i >= own {
					s.Owner = ofProject
				}
				if c.Servers.Connect == "at-start" {
					s.AtStart = true
				}
				all = append(all, s)
			}
		}
	}
	return all, findings, nil
}

// profileRules are the rules of a profile, behind the person's own: they can allow
// only what those say nothing about. A project's may only deny.
func profileRules(p *profile.Profile) (policy.Rules, []policy.Problem) {
	if p.Policy == nil {
		return policy.Rules{}, nil
	}
	var stated struct{ Rules []string }
	if err := json.Unmarshal(p.Policy, &stated); err != nil {
		r, _ := policy.ParseRules([]string{"deny"}) // what cannot be read denies
		return r, []policy.Problem{{Where: "policy", Message: "it is not {rules: [...]}"}}
	}
	rules, problems := policy.ParseRules(stated.Rules)
	if p.Owner == ofProject {
		rules = rules.Denials()
	}
	return rules, problems
}

// rules are the person's own with those of a profile, which may be nil.
func (a *app) rules(c *config.Config, p *profile.Profile) policy.Rules {
	rules, problems := policy.ParseRules(c.Policy.Rules)
	for _, p := range problems {
		a.note("policy.rules: %s; until it is mended no tool is called", p)
	}
	rules.Threshold, _ = policy.ParseLevel(c.Policy.Threshold)
	if p == nil {
		return rules
	}
	more, problems := profileRules(p)
	for _, problem := range problems {
		a.note("policy of profile %s: %s; until it is mended no tool is called", p.Name, problem)
	}
	return rules.Then(more)
}

// serverFilesIn are the files of a directory that may have servers, or the file.
func serverFilesIn(path string) ([]string, error) {
	fi, err := os.Stat(path)
	if err != nil || !fi.IsDir() {
		return []string{path}, err
	}
	entries, err := os.ReadDir(path)
	var out []string
	for _, e := range entries {
		switch filepath.Ext(e.Name()) {
		case ".json", ".jsonc", ".json5", ".yaml", ".yml", ".toml":
			out = append(out, filepath.Join(path, e.Name()))
		}
	}
	return out, err
}

// toolset connects nothing yet.
func (a *app) toolset(ctx context.Context, c *config.Config, rt *loadout.Runtime, given []string, p *profile.Profile) (*toolset, []string, error) {
	return a.toolsetOf(ctx, c, rt, toolsetOptions{files: given, profile: p})
}

// toolsetOptions say which servers there are, and how long they may take.
type toolsetOptions struct {
	files    []string         // that the person gave
	profile  *profile.Profile // may be nil
	deadline time.Duration    // for connecting; 0 is that of the configuration
	session  string           // the conversation that they are for, "" for none
	// builtin is a server of this program, before all others, the folder that it works
	// on, so that what a person allows is for that one, and the rules for it, behind
	// the person's.
	builtin *mcp.Server
	folder  string
	rules   policy.Rules
}

// face is by which face of the program calls are counted.
func (o *toolsetOptions) face() string {
	if o.builtin != nil {
		return faceChat
	}
	return faceMCP
}

// builtinName is the name of the server that is part of this program.
const builtinName = workspace.Name

func (a *app) toolsetOf(ctx context.Context, c *config.Config, rt *loadout.Runtime, o toolsetOptions) (*toolset, []string, error) {
	given, p := o.files, o.profile
	configured := time.Duration(c.Servers.Deadline) * time.Second
	project := a.projectServers()
	own, findings, err := a.servers(c, given)
	if err != nil {
		return nil, nil, err
	}
	for _, f := range findings {
		a.note("%s", f)
	}
	rules := a.rules(c, p).Then(o.rules)
	safety, _ := policy.ParseLevel(c.Servers.Safety)
	var theirs []*upstream.Config
	if p != nil {
		theirs = p.MCPServers
		if len(p.ServerNames) > 0 { // of the person's own, those that it names
			for _, text := range absentServers(p, own) {
				a.note("profile %s: %s", p.Name, text)
			}
			own = slices.DeleteFunc(own, func(s *upstream.Config) bool { return !slices.Contains(p.ServerNames, s.Name) })
		}
	}
	patient(own, configured)
	patient(theirs, configured)
	if o.builtin != nil {
		if slices.ContainsFunc(own, func(s *upstream.Config) bool { return s.Name == builtinName }) {
			a.note("your MCP server %s is left out: in a chat that is the name of the working folder; give it another one", builtinName)
		}
		own = append([]*upstream.Config{{Name: builtinName, Type: memory, URLs: []string{builtinName}, Dir: o.folder, Safety: policy.High.String()}}, own...)
	}
	t := &toolset{rules: o.rules}
	sandboxed := &skillServers{rt: rt, project: project, flags: a.flags(), off: scriptsOff(c), session: o.session}
	dialer := &upstream.Dialer{OAuth: a.oauth(given), Spawn: sandboxed.spawner(a.inServerDir(spawn.New(nil).Start)), Logger: a.logger(), Private: privateOf(c), Client: mcp.Implementation{Name: "loadout", Title: "Loadout", Version: buildVersion().Version}}
	if o.builtin != nil {
		dialer.Transports = map[string]func(*upstream.Config, string) (mcp.Transport, error){memory: tools.Memory(map[string]*mcp.Server{builtinName: o.builtin})}
	}
	t.pool = upstream.NewPool(&upstream.PoolOptions{
		Dialer: dialer, Cache: a.toolCache(), Idle: time.Duration(c.Servers.Idle) * time.Second, Logger: a.logger(),
	})
	variables := a.variables(c)
	var pins tools.Definitions
	var grants policy.Store
	if d := a.stateDir(); d != "" {
		pins = &tools.Pins{Dir: filepath.Join(d, "pins")}
		grants = a.grants()
	}
	t.Set = tools.New(&tools.Options{
		Skills: rt, Pool: t.pool, Own: own, Profile: theirs, Pins: pins, Variables: variables, Rules: rules, DefaultSafety: safety,
		Deadline: cmp.Or(o.deadline, configured), Logger: a.logger(),
		Permit: sandboxed.permit(variables.User, o.session),
		Permits: func(ctx context.Context, e *catalog.Entry) bool {
			return rt.WouldLeave(ctx, e.Key(), policy.Principal{}, o.session)
		},
		Provide: sandboxed.provide,
		Grants:  grants,
		Audit:   auditCalls(a.audit()),
		Ended:   a.usedTools(c, o.face()),
	})
	return t, findings, nil
}

// memory is the transport of a server that is part of this program.
const memory = "memory"

// privateOf are the private addresses that servers of skills may have.
func privateOf(c *config.Config) []netip.Prefix {
	var out []netip.Prefix
	for _, text := range c.Sandbox.Private {
		if p, err := netip.ParsePrefix(text); err == nil {
			out = append(out, p)
		} else if a, err := netip.ParseAddr(text); err == nil {
			out = append(out, netip.PrefixFrom(a, a.BitLen()))
		}
	}
	return out
}

func auditCalls(to loadout.Auditor) func(context.Context, policy.Record) error {
	if to == nil {
		return nil
	}
	return to.Append
}

// variables are what the person's own configuration may say.
func (a *app) variables(c *config.Config) upstream.Variables {
	dir, _ := os.Getwd()
	secret := func(name string) (string, bool) {
		v, err := a.secret(context.Background(), name)
		return v, err == nil && v != ""
	}
	return upstream.Variables{
		Home: a.home(), Secret: secret, Input: secret, // what a client would ask for is kept as a secret
		Env: func(name string) (string, bool) { v := a.getenv(name); return v, v != "" }, Workspace: dir,
		User: func(name string) (string, bool) { v, ok := c.User[name]; return v, ok },
		File: a.envFile, Dir: a.serverDir(),
	}
}

// skillServers starts what skills bring, and what a project has, in the sandbox.
type skillServers struct {
	rt      *loadout.Runtime
	project *projectServers
	flags   string   // for commands that a person is told to type
	off     string   // why no command is started, or ""
	session string   // the conversation that they are for, "" for none
	files   sync.Map // of providers, by the variant
}

// permit asks for leave to use what a skill brings, in a session.
func (s *skillServers) permit(user func(string) (string, bool), session string) func(context.Context, *catalog.Entry) (*tools.Leave, error) {
	return func(ctx context.Context, e *catalog.Entry) (*tools.Leave, error) {
		l, err := s.rt.Leave(ctx, e.Key(), policy.Principal{}, session)
		if refused, ok := errors.AsType[*loadout.RefusedError](err); ok {
			return nil, fmt.Errorf("%s; to approve them as they are now: %s%s", refused.Decision.Reason, refused.Decision.Next, s.flags)
		}
		if err != nil {
			return nil, err
		}
		secret := func(name string) (string, bool) { return l.Secret(context.WithoutCancel(ctx), name) }
		return &tools.Leave{Digest: l.Digest, Ended: l.Ended(), Release: l.Release, Check: l.Check, User: user, Secret: secret}, nil
	}
}

// provide is the server of a skill's provider.
func (s *skillServers) provide(_ context.Context, e *catalog.Entry, sk *skill.Skill) (*upstream.Config, []string, error) {
	start, err := provider.Plan(sk, provider.Options{Person: policy.Local().ID})
	if err != nil {
		return nil, nil, err
	}
	s.files.Store(start.Env[provider.Variant], start.Files)
	return &upstream.Config{Type: upstream.Stdio, Command: start.Command[0], Args: start.Command[1:], Env: start.Env}, nil, nil
}

// spawner starts the commands of skills and projects in the sandbox, and those of
// the person plainly.
func (s *skillServers) spawner(plain upstream.Spawner) upstream.Spawner {
	return func(ctx context.Context, c *upstream.Config) (upstream.Process, error) {
		if c.Owner == "" {
			return plain(ctx, c)
		}
		if s.off != "" {
			return nil, errors.New("commands of skills and projects are not started: " + s.off)
		}
		if c.Owner == ofProject {
			service, err := s.project.service(c)
			if err != nil {
				return nil, err
			}
			return s.rt.Serve(ctx, service)
		}
		key, digest := c.Owner, policy.Digest("")
		if i := strings.LastIndex(c.Owner, "@sha256:"); i >= 0 {
			key, digest = c.Owner[:i], policy.Digest(c.Owner[i+1:])
		}
		service := loadout.Service{Skill: key, Digest: digest, Session: s.session, Command: append([]string{c.Command}, c.Args...), Env: c.Env}
		for _, v := range c.Hidden() { // it must not say what its configuration was given
			service.Redact = append(service.Redact, sandbox.NewSecret("of its configuration", v))
		}
		if files, ok := s.files.Load(c.Env[provider.Variant]); ok {
			service.Files = files.(map[string][]byte)
		}
		return s.rt.Serve(ctx, service)
	}
}

// toolCache is where the tools of servers are kept for the next start.
func (a *app) toolCache() upstream.Cache {
	if d := a.stateDir(); d != "" {
		return &upstream.Files{Dir: filepath.Join(d, "tools")}
	}
	return nil
}
