package setup

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/internal/config"
	"github.com/loadout-dev/loadout/internal/configfile"
	"github.com/loadout-dev/loadout/internal/exit"
	"github.com/loadout-dev/loadout/internal/fileerror"
	"github.com/loadout-dev/loadout/internal/printable"
	"github.com/loadout-dev/loadout/internal/profile"
	"github.com/loadout-dev/loadout/internal/spawn"
	"github.com/loadout-dev/loadout/internal/toolset"
	"github.com/loadout-dev/loadout/internal/upstream"
	"github.com/loadout-dev/loadout/internal/usage"
	"github.com/loadout-dev/loadout/internal/workspace"
	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/skill"
	"github.com/loadout-dev/loadout/tools"
)

// Toolset connects to a set of MCP servers and applies the user's rules.
type Toolset struct {
	*tools.Set
	rules policy.Rules // rules for the built-in server, applied after the user's rules
	// unshare stops the sources of server skills from using the connections.
	unshare func()
}

// ToolsetOptions selects servers and sets their limits.
type ToolsetOptions struct {
	Files    []string         // server files given with --mcp-config
	Profile  *profile.Profile // may be nil
	Deadline time.Duration    // timeout for connecting; 0 means the configured timeout
	Session  string           // conversation that uses the servers, or ""
	// Builtin is a server in this process, listed first. The user's permissions
	// for it apply to Folder. Rules apply to it after the user's rules.
	Builtin *mcp.Server
	Folder  string
	Rules   policy.Rules
}

// NewToolset calls [Setup.NewToolsetWith] with options that contain only the
// given server files and the profile.
func (s *Setup) NewToolset(ctx context.Context, c *config.Config, rt *loadout.Runtime, given []string, p *profile.Profile) (*Toolset, []string, error) {
	return s.NewToolsetWith(ctx, c, rt, ToolsetOptions{Files: given, Profile: p})
}

// NewToolsetWith creates a toolset without connecting to its servers. It also
// returns the problems of the server configurations. The caller must close the
// toolset.
func (s *Setup) NewToolsetWith(ctx context.Context, c *config.Config, rt *loadout.Runtime, o ToolsetOptions) (*Toolset, []string, error) {
	given, p := o.Files, o.Profile
	configured := time.Duration(c.Servers.Deadline) * time.Second
	project := s.newProjectServers()
	own, findings, err := s.ReadServers(c, given)
	if err != nil {
		return nil, nil, err
	}
	for _, f := range findings {
		s.Note("%s", f)
	}
	rules := s.policyRules(c, p).Append(o.Rules)
	safety, _ := policy.ParseLevel(c.Servers.Safety)
	var theirs []*upstream.Config
	if p != nil {
		theirs = p.MCPServers
		if len(p.ServerNames) > 0 { // keep only the servers that the profile names
			for _, text := range MissingServers(p, own) {
				s.Note("profile %s: %s", p.Name, text)
			}
			own = slices.DeleteFunc(own, func(server *upstream.Config) bool { return !slices.Contains(p.ServerNames, server.Name) })
		}
	}
	spawn.ExtendTimeouts(own, configured)
	spawn.ExtendTimeouts(theirs, configured)
	if o.Builtin != nil {
		if slices.ContainsFunc(own, func(server *upstream.Config) bool { return server.Name == BuiltinName }) {
			s.Note("MCP server %s ignored: the name is reserved for the working folder of a chat; rename the server", BuiltinName)
		}
		own = append([]*upstream.Config{{Name: BuiltinName, Dir: o.Folder, Safety: policy.High.String()}}, own...)
	}
	t := &Toolset{rules: o.Rules}
	dialer := s.newDialer(c, given)
	var builtin map[string]*mcp.Server
	if o.Builtin != nil {
		builtin = map[string]*mcp.Server{BuiltinName: o.Builtin}
	}
	variables := s.ServerVariables(c)
	pins := ""
	var grants policy.Store
	if d := s.StateDir(); d != "" {
		pins = filepath.Join(d, "pins")
		if !c.Managed() { // otherwise prompts offer to allow a single call only
			grants = currentGrants{s}
		}
	}
	t.Set = tools.ForRuntime(rt, toolset.With(&tools.Options{
		Own: own, Profile: theirs, InProcess: builtin, DefinitionsDir: pins, Variables: variables, Rules: rules, DefaultSafety: safety,
		Deadline: cmp.Or(o.Deadline, configured), Logger: s.Logger(),
		SkillServers: tools.SkillServers{
			Session: o.Session, UserName: policy.LocalUser().ID, Disabled: c.CommandsDisabledBy(),
			HowToApprove: func(e *loadout.RefusedError) string { return s.HowToApprove(e) },
		},
		Grants:    grants,
		Audit:     s.AuditLog(),
		OnCallEnd: s.recordToolUse(c, o.usageInterface()),
	}, toolset.Options{
		PoolOptions:  upstream.PoolOptions{Dialer: dialer, Cache: s.newToolCache(), IdleTimeout: time.Duration(c.Servers.Idle) * time.Second, Logger: s.Logger()},
		OtherService: project.Service,
		HowToAccept:  func(server string) string { return "loadout servers accept " + server },
	}))
	t.unshare = t.shareConnections(rt)
	return t, findings, nil
}

// BuiltinName is the name of the built-in server, which provides the tools of
// the working directory.
const BuiltinName = workspace.Name

// serverFiles returns the files and directories that configure the user's MCP
// servers.
func (s *Setup) serverFiles(c *config.Config, given []string) []string {
	var out []string
	if f := config.UserFile(s.ConfigInput()); f != "" {
		for _, name := range []string{"servers.yaml", "mcp.json"} {
			if p := filepath.Join(filepath.Dir(f), name); Exists(p) {
				out = append(out, p)
			}
		}
	}
	return slices.Concat(given, c.Servers.Files, c.Servers.Dirs, c.Servers.Inherited, out)
}

// Exists reports whether a file or directory exists at path p.
func Exists(p string) bool {
	_, err := os.Stat(p)
	return err == nil
}

// ReadServers reads the user's MCP servers. It skips invalid servers and files
// and reports them in the findings. It returns an error only if a file given by
// the user is unreadable.
func (s *Setup) ReadServers(c *config.Config, given []string) ([]*upstream.Config, []string, error) {
	var all []*upstream.Config
	var findings []string
	at := map[string]string{}
	paths := s.serverFiles(c, given)
	own := len(paths)
	for i, path := range append(paths, c.Servers.Project...) {
		files, err := configfile.ListFiles(path)
		if err != nil {
			if i < len(given) {
				code, hint := exit.FileHint(err, "the path given with --mcp-config")
				return nil, nil, exit.Errorf(code, hint, "%s: %w", path, fileerror.Cause(err))
			}
			findings = append(findings, fmt.Sprintf("%s: %v", path, fileerror.Cause(err)))
			continue
		}
		for _, file := range files {
			b, err := configfile.ReadFile(file, 1<<20)
			if err != nil {
				findings = append(findings, fmt.Sprintf("%s: %v", file, fileerror.Cause(err)))
				continue
			}
			if i >= own && !s.isCovered(file, b) {
				findings = append(findings, file+" is not covered by the trust in the project: move it into .loadout, and trust the project again")
				continue
			}
			f, ds := upstream.Parse(b, upstream.ParseOptions{Name: file})
			for _, d := range ds {
				if d.Severity == skill.Error || d.Severity == skill.Warning {
					findings = append(findings, fmt.Sprintf("%s:%d:%d: %s", file, d.Line, d.Column, d.Message))
				}
			}
			for _, server := range f.Servers {
				if first, taken := at[server.Name]; taken {
					findings = append(findings, fmt.Sprintf("%s:%d: MCP server %s ignored: %s has one of the same name", file, server.Line, server.Name, first))
					continue
				}
				at[server.Name] = file
				if i >= own {
					server.Owner = upstream.ProjectOwner
				}
				if c.Servers.Connect == "at-start" {
					server.AtStart = true
				}
				all = append(all, server)
			}
		}
	}
	return all, findings, nil
}

// policyRules returns the user's rules, followed by those of the profile if p
// is not nil.
func (s *Setup) policyRules(c *config.Config, p *profile.Profile) policy.Rules {
	rules, problems := policy.ParseRules(c.Policy.Rules)
	for _, p := range problems {
		s.Note("policy.rules: %s; no tool can be called until this is fixed", p)
	}
	rules.Threshold, _ = policy.ParseLevel(c.Policy.Threshold)
	if p == nil {
		return rules
	}
	more, problems := ParseProfileRules(p, c.Managed())
	for _, problem := range problems {
		s.Note("policy of profile %s: %s; no tool can be called until this is fixed", p.Name, problem)
	}
	return rules.Append(more)
}

// ServerVariables returns the variables for use in the user's own server
// configuration.
func (s *Setup) ServerVariables(c *config.Config) upstream.Variables {
	dir, _ := os.Getwd()
	secret := func(name string) (string, bool) {
		v, err := s.SecretValue(context.Background(), name)
		return v, err == nil && v != ""
	}
	return upstream.Variables{
		Home: s.Home(), Secret: secret, Input: secret, // inputs are stored as secrets
		Env: func(name string) (string, bool) { v := s.Getenv(name); return v, v != "" }, Workspace: dir,
		User:     func(name string) (string, bool) { v, ok := c.User[name]; return v, ok },
		Platform: s.platformValue(c), Names: s.variableNames(c),
		File: s.readEnvFile, Dir: s.serverDir(), HowToSet: howToSetVariable,
	}
}

// platformValue returns a function that returns the user's platform values. It
// never reads them from the environment.
func (s *Setup) platformValue(c *config.Config) func(name string) (string, bool) {
	return func(name string) (string, bool) {
		v, ok := c.Variables[name]
		if !ok || v.Secret == "" {
			return v.Value, ok
		}
		store, err := s.SecretStore()
		if err != nil {
			return "", false
		}
		value, err := store.Get(v.Secret)
		return value, err == nil
	}
}

// variableNames returns a function that lists the names of the user's values for
// [upstream.Variables].
func (s *Setup) variableNames(c *config.Config) func(kind string) []string {
	return func(kind string) []string {
		var names []string
		switch kind {
		case upstream.FromUser:
			names = slices.Collect(maps.Keys(c.User))
		case upstream.FromPlatform:
			for name := range c.Variables {
				if _, ok := s.platformValue(c)(name); ok {
					names = append(names, name)
				}
			}
		case upstream.FromSecret:
			if store, err := s.SecretStore(); err == nil {
				stored, _ := store.List()
				for _, secret := range stored {
					names = append(names, secret.Name)
				}
			}
		}
		return names
	}
}

// howToSetVariable returns instructions for setting a variable that a server's
// configuration uses.
func howToSetVariable(owner upstream.Owner, kind, name string) string {
	switch kind {
	case upstream.FromPlatform:
		return "add it to your configuration, under variables: as " + name
	case upstream.FromUser:
		return "add it to your configuration, under user: as " + name
	}
	next := "loadout secret set " + name
	if skill, _, ok := owner.Skill(); ok && kind == upstream.FromSecret {
		next += "; then grant it to the skill: loadout secret grant " + name + " --skill " + printable.OneLine(skill)
	}
	return next
}

// newToolCache returns the cache of tool definitions, or nil if there is no
// state directory.
func (s *Setup) newToolCache() upstream.Cache {
	if d := s.StateDir(); d != "" {
		return &upstream.Files{Dir: filepath.Join(d, "tools")}
	}
	return nil
}

// ServersFile returns the path of the user's servers file, or "" if there is no
// directory for it.
func (s *Setup) ServersFile() string {
	f := config.UserFile(s.ConfigInput())
	if f == "" {
		return ""
	}
	return filepath.Join(filepath.Dir(f), ServersFileName)
}

// usageInterface returns the interface (kind of entry point) under which calls are
// recorded.
func (o *ToolsetOptions) usageInterface() string {
	if o.Builtin != nil {
		return usage.InterfaceChat
	}
	return usage.InterfaceMCP
}

// ServersFileName is the name of the user's servers file, in the same directory
// as the user's configuration.
const ServersFileName = "servers.yaml"
