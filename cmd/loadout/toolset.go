package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/internal/config"
	"github.com/loadout-dev/loadout/internal/configfile"
	"github.com/loadout-dev/loadout/internal/exit"
	"github.com/loadout-dev/loadout/internal/profile"
	"github.com/loadout-dev/loadout/internal/spawn"
	"github.com/loadout-dev/loadout/internal/upstream"
	"github.com/loadout-dev/loadout/internal/workspace"
	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/skill"
	"github.com/loadout-dev/loadout/tools"
)

// toolset is a set of MCP servers with their connections.
type toolset struct {
	*tools.Set
	rules policy.Rules // for the built-in server, after the user's rules
}

// serverFiles returns the files and directories with the user's MCP servers.
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

// readServers reads the user's MCP servers. Invalid servers and files are
// skipped and reported in the findings, except that files given by the user
// must be readable.
func (a *app) readServers(c *config.Config, given []string) ([]*upstream.Config, []string, error) {
	var all []*upstream.Config
	var findings []string
	at := map[string]string{}
	paths := a.serverFiles(c, given)
	own := len(paths)
	for i, path := range append(paths, c.Servers.Project...) {
		files, err := configfile.ListFiles(path)
		if err != nil {
			if i < len(given) {
				code, hint := exit.FileHint(err, "the path given with --mcp-config")
				return nil, nil, exit.Errorf(code, hint, "%s: %w", path, exit.FileCause(err))
			}
			findings = append(findings, fmt.Sprintf("%s: %v", path, exit.FileCause(err)))
			continue
		}
		for _, file := range files {
			b, err := configfile.ReadFile(file, 1<<20)
			if err != nil {
				findings = append(findings, fmt.Sprintf("%s: %v", file, exit.FileCause(err)))
				continue
			}
			if i >= own && !a.isCovered(file, b) {
				findings = append(findings, file+" is not covered by the trust in the project: move it into .loadout, and trust the project again")
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
					findings = append(findings, fmt.Sprintf("%s:%d: MCP server %s ignored: %s has one of the same name", file, s.Line, s.Name, first))
					continue
				}
				at[s.Name] = file
				if i >= own {
					s.Owner = upstream.ProjectOwner
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

// parseProfileRules returns the rules of a profile. They apply after the user's
// rules, so they only decide what those leave open. Rules of a project's
// profile can only deny.
func parseProfileRules(p *profile.Profile) (policy.Rules, []policy.Problem) {
	if p.Policy == nil {
		return policy.Rules{}, nil
	}
	var stated struct{ Rules []string }
	if err := json.Unmarshal(p.Policy, &stated); err != nil {
		r, _ := policy.ParseRules([]string{"deny"}) // an unreadable policy denies everything
		return r, []policy.Problem{{Where: "policy", Message: "not of the form {rules: [...]}"}}
	}
	rules, problems := policy.ParseRules(stated.Rules)
	if p.Owner == projectOwner {
		rules = rules.Denials()
	}
	return rules, problems
}

// policyRules returns the user's rules, followed by those of the profile if it
// is not nil.
func (a *app) policyRules(c *config.Config, p *profile.Profile) policy.Rules {
	rules, problems := policy.ParseRules(c.Policy.Rules)
	for _, p := range problems {
		a.Note("policy.rules: %s; no tool can be called until this is fixed", p)
	}
	rules.Threshold, _ = policy.ParseLevel(c.Policy.Threshold)
	if p == nil {
		return rules
	}
	more, problems := parseProfileRules(p)
	for _, problem := range problems {
		a.Note("policy of profile %s: %s; no tool can be called until this is fixed", p.Name, problem)
	}
	return rules.Append(more)
}

// newToolset creates a toolset without connecting to its servers.
func (a *app) newToolset(ctx context.Context, c *config.Config, rt *loadout.Runtime, given []string, p *profile.Profile) (*toolset, []string, error) {
	return a.newToolsetWith(ctx, c, rt, toolsetOptions{files: given, profile: p})
}

// toolsetOptions select servers and set their limits.
type toolsetOptions struct {
	files    []string         // given by the user
	profile  *profile.Profile // may be nil
	deadline time.Duration    // for connecting; 0 means the configured one
	session  string           // conversation that uses the servers, or ""
	// builtin is a server of this program, listed first. Permissions of the
	// user are for this folder. rules apply to it, after the user's rules.
	builtin *mcp.Server
	folder  string
	rules   policy.Rules
}

// usageFace returns the face under which calls are recorded.
func (o *toolsetOptions) usageFace() string {
	if o.builtin != nil {
		return faceChat
	}
	return faceMCP
}

// builtinName is the name of the built-in server.
const builtinName = workspace.Name

func (a *app) newToolsetWith(ctx context.Context, c *config.Config, rt *loadout.Runtime, o toolsetOptions) (*toolset, []string, error) {
	given, p := o.files, o.profile
	configured := time.Duration(c.Servers.Deadline) * time.Second
	project := a.newProjectServers()
	own, findings, err := a.readServers(c, given)
	if err != nil {
		return nil, nil, err
	}
	for _, f := range findings {
		a.Note("%s", f)
	}
	rules := a.policyRules(c, p).Append(o.rules)
	safety, _ := policy.ParseLevel(c.Servers.Safety)
	var theirs []*upstream.Config
	if p != nil {
		theirs = p.MCPServers
		if len(p.ServerNames) > 0 { // keep only the servers that the profile names
			for _, text := range missingServers(p, own) {
				a.Note("profile %s: %s", p.Name, text)
			}
			own = slices.DeleteFunc(own, func(s *upstream.Config) bool { return !slices.Contains(p.ServerNames, s.Name) })
		}
	}
	spawn.ExtendTimeouts(own, configured)
	spawn.ExtendTimeouts(theirs, configured)
	if o.builtin != nil {
		if slices.ContainsFunc(own, func(s *upstream.Config) bool { return s.Name == builtinName }) {
			a.Note("MCP server %s ignored: the name is reserved for the working folder of a chat; rename the server", builtinName)
		}
		own = append([]*upstream.Config{{Name: builtinName, Type: memory, URLs: []string{builtinName}, Dir: o.folder, Safety: policy.High.String()}}, own...)
	}
	t := &toolset{rules: o.rules}
	dialer := &upstream.Dialer{OAuth: a.oauthHandler(given), Spawn: a.spawnInServerDir(tools.NewSpawner()), Logger: a.logger(), Private: privatePrefixes(c), Client: mcp.Implementation{Name: "loadout", Title: "Loadout", Version: buildVersion().Version}}
	if o.builtin != nil {
		dialer.Transports = map[string]func(*upstream.Config, string) (mcp.Transport, error){memory: tools.MemoryTransport(map[string]*mcp.Server{builtinName: o.builtin})}
	}
	variables := a.serverVariables(c)
	var pins tools.DefinitionStore
	var grants policy.Store
	if d := a.stateDir(); d != "" {
		pins = &tools.Pins{Dir: filepath.Join(d, "pins")}
		grants = a.grantStore()
	}
	t.Set = tools.ForRuntime(rt, &tools.Options{
		PoolOptions: &tools.PoolOptions{Dialer: dialer, Cache: a.newToolCache(), IdleTimeout: time.Duration(c.Servers.Idle) * time.Second, Logger: a.logger()},
		Own:         own, Profile: theirs, Pins: pins, Variables: variables, Rules: rules, DefaultSafety: safety,
		Deadline: cmp.Or(o.deadline, configured), Logger: a.logger(),
		SkillServers: tools.SkillServers{
			Session: o.session, UserName: policy.LocalUser().ID, Disabled: c.CommandsDisabledBy(), OtherService: project.Service,
			HowToApprove: func(err *loadout.RefusedError) string { return err.Decision.Hint + a.skillFlags() },
		},
		Grants:    grants,
		Audit:     auditAppender(a.auditLog()),
		OnCallEnd: a.recordToolUse(c, o.usageFace()),
	})
	return t, findings, nil
}

// memory is the transport of the built-in server.
const memory = "memory"

// privatePrefixes returns the private networks that servers of skills may use.
func privatePrefixes(c *config.Config) []netip.Prefix {
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

func auditAppender(to loadout.Auditor) func(context.Context, policy.Record) error {
	if to == nil {
		return nil
	}
	return to.Append
}

// serverVariables returns the variables for the user's own configuration.
func (a *app) serverVariables(c *config.Config) upstream.Variables {
	dir, _ := os.Getwd()
	secret := func(name string) (string, bool) {
		v, err := a.secretValue(context.Background(), name)
		return v, err == nil && v != ""
	}
	return upstream.Variables{
		Home: a.home(), Secret: secret, Input: secret, // inputs are stored as secrets
		Env: func(name string) (string, bool) { v := a.Getenv(name); return v, v != "" }, Workspace: dir,
		User: func(name string) (string, bool) { v, ok := c.User[name]; return v, ok },
		File: a.readEnvFile, Dir: a.serverDir(),
	}
}

// newToolCache returns the cache of tool definitions, or nil if there is no
// state directory.
func (a *app) newToolCache() upstream.Cache {
	if d := a.stateDir(); d != "" {
		return &upstream.Files{Dir: filepath.Join(d, "tools")}
	}
	return nil
}
