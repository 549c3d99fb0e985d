package main

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/spf13/pflag"

	"github.com/loadout-dev/loadout/internal/config"
	"github.com/loadout-dev/loadout/internal/configfile"
	"github.com/loadout-dev/loadout/internal/console"
	"github.com/loadout-dev/loadout/internal/exit"
	"github.com/loadout-dev/loadout/internal/mcpproxy"
	"github.com/loadout-dev/loadout/internal/profile"
	"github.com/loadout-dev/loadout/internal/trust"
	"github.com/loadout-dev/loadout/internal/upstream"
	"github.com/loadout-dev/loadout/mcpserver"
	"github.com/loadout-dev/loadout/skill"
)

// loadProfiles returns the active profiles: the user's own, then those of the
// trusted project.
func (a *app) loadProfiles() ([]*profile.Profile, error) { return a.loadProfilesNoting(a.Note) }

// loadProfilesNoting is loadProfiles with a function that reports problems.
func (a *app) loadProfilesNoting(note func(format string, args ...any)) ([]*profile.Profile, error) {
	out, err := a.loadOwnProfiles(note)
	if err != nil {
		return nil, err
	}
	root := repositoryRoot(a.configInput().WorkDir)
	if root == "" {
		return out, nil
	}
	p, err := a.readProject(root)
	if err != nil || !p.Trusted {
		return out, nil
	}
	for _, f := range p.Files {
		if path.Dir(f.Path) != trust.ProfilesDir {
			continue
		}
		file := filepath.Join(p.Dir, filepath.FromSlash(f.Path))
		data, err := configfile.ReadFile(file, 1<<20)
		if err != nil || !p.Covers(file, data) {
			note("%s ignored: it changed since the project was trusted", file)
			continue
		}
		all, findings := profile.Parse(data, f.Path)
		for _, d := range findings {
			if d.Severity == skill.Error || d.Severity == skill.Warning {
				note("%s:%d: %s", f.Path, d.Line, d.Message)
			}
		}
		for _, g := range all {
			g.Owner = projectOwner
			for _, m := range g.MCPServers {
				m.Owner = upstream.ProjectOwner
			}
		}
		out = append(out, all...)
	}
	return out, nil
}

// loadOwnProfiles returns the user's own profiles. It reports problems with
// note.
func (a *app) loadOwnProfiles(note func(format string, args ...any)) ([]*profile.Profile, error) {
	dir := a.profilesDir()
	if dir == "" {
		return nil, nil
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, nil // the directory is optional
	}
	defer root.Close()
	all, problems, err := profile.ReadDir(root.FS())
	if err != nil {
		return nil, exit.Errorf(exit.Failure, "fix it, or omit --profile", "profiles in %s: %w", dir, err)
	}
	for _, p := range problems {
		note("%s: %s", dir, p)
	}
	return all, nil
}

// profilesDir returns the directory of the user's own profiles.
func (a *app) profilesDir() string {
	if f := config.UserFile(a.configInput()); f != "" {
		return filepath.Join(filepath.Dir(f), "ghosts")
	}
	return ""
}

// findProfile returns the profile with a name, or nil for "".
func (a *app) findProfile(name string) (*profile.Profile, error) {
	if name == "" {
		return nil, nil
	}
	all, err := a.loadProfiles()
	if err != nil {
		return nil, err
	}
	var names []string
	for _, p := range all {
		if p.Name == name {
			return p, nil
		}
		names = append(names, p.Name)
	}
	hint := "create it in " + a.profilesDir()
	root := repositoryRoot(a.configInput().WorkDir)
	if len(names) > 0 {
		hint = "available profiles: " + strings.Join(names, ", ")
	} else if root != "" && exists(filepath.Join(root, filepath.FromSlash(trust.ProfilesDir))) {
		hint = "to use the profiles of this project, trust it: loadout trust " + console.ShellQuote(root)
	}
	return nil, exit.Errorf(exit.NotFound, hint, "profile %q not found", name)
}

// profileFlag adds the flag --profile.
func (a *app) profileFlag(f *pflag.FlagSet) {
	f.StringVar(&a.profileName, "profile", "", "use only the skills and servers of the profile `NAME`")
}

// profilePrompt returns the system prompt of a profile.
func profilePrompt(p *profile.Profile) string {
	if p == nil {
		return ""
	}
	return p.SystemPrompt
}

// profileSkills returns the skills of a profile; nil means all.
func profileSkills(p *profile.Profile) []string {
	if p == nil || len(p.Skills) == 0 {
		return nil
	}
	return p.Skills
}

// projectOwner is the owner of profiles defined by a trusted project. Their
// servers see no environment variables, and run in the sandbox.
const projectOwner = string(upstream.ProjectOwner)

// repositoryRoot returns the root of the repository around a directory, or "".
func repositoryRoot(dir string) string {
	_, root := config.ProjectFile(dir)
	return root
}

// profileServer serves each profile at /mcp/p/NAME, with its tools listed
// directly. It creates the server of a profile on the first request.
type profileServer struct {
	a       *app
	c       *config.Config
	options mcpserver.Options
	http    *mcpserver.HTTPOptions
	files   []string
	ctx     context.Context // of the program

	published *statePublisher

	mu     sync.Mutex
	served map[string]*servedProfile
}

// servedProfile is the server of one profile.
type servedProfile struct {
	handler http.Handler
	close   []func()
}

// ServeHTTP serves the profile named in the path.
func (s *profileServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p, err := s.open(strings.TrimPrefix(r.URL.Path, profilePath))
	if err != nil {
		code := http.StatusInternalServerError
		if e, ok := errors.AsType[*exit.Error](err); ok && e.Code == exit.NotFound {
			code = http.StatusNotFound
		}
		http.Error(w, err.Error(), code)
		return
	}
	p.handler.ServeHTTP(w, r)
}

// profilePath is the path prefix of profiles.
const profilePath = "/mcp/p/"

func (s *profileServer) open(name string) (*servedProfile, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if have := s.served[name]; have != nil {
		return have, nil
	}
	if s.served == nil { // closed
		return nil, context.Canceled
	}
	p, err := s.a.findProfile(name)
	if err == nil && p == nil {
		err = exit.Errorf(exit.NotFound, "append a profile name to "+profilePath, "no profile in the path")
	}
	if err != nil {
		return nil, err
	}
	rt, err := s.a.newRuntimeWith(s.ctx, s.c, true, profileSkills(p))
	if err != nil {
		return nil, err
	}
	s.a.noteMissingSkills(s.ctx, s.c, p, rt)
	set, _, err := s.a.newToolset(s.ctx, s.c, rt, s.files, p)
	if err != nil {
		rt.Close()
		return nil, err
	}
	follow := s.a.newConfigWatcher(rt, s.c, set, p)
	o := s.options
	o.Preamble = profilePrompt(p)
	o.Tools, o.Refresh = set.Set, follow.refresh
	server := mcpserver.New(rt, &o)
	stop := follow.start(s.ctx)
	d := s.a.newDirectServer(s.c, server, set, "server")
	out := &servedProfile{handler: d.Endpoint(s.http), close: []func(){stop, func() { d.Close() }, func() { server.Close() }, func() { set.Close() }, func() { rt.Close() }}}
	s.published.add(name, set)
	s.served[name] = out
	return out, nil
}

// Close closes the servers of all profiles.
func (s *profileServer) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.served {
		for _, f := range p.close {
			f()
		}
	}
	s.served = nil
}

// mcpEndpoint is a server for MCP clients.
type mcpEndpoint interface {
	Run(ctx context.Context, t mcp.Transport) error
	Handler(o *mcpserver.HTTPOptions) http.Handler
	Close() error
}

// newDirectServer returns a server that lists the tools of the MCP servers
// directly, beside those of s.
func (a *app) newDirectServer(c *config.Config, s *mcpserver.Server, set *toolset, prefix string) *mcpproxy.Server {
	ups := []mcpproxy.Upstream{{Name: "loadout", Opener: mcpproxy.NewTransportOpener(func(ctx context.Context) (mcp.Transport, error) {
		here, there := mcp.NewInMemoryTransports()
		go s.Run(context.WithoutCancel(ctx), there) // ends with its client, or with s
		return here, nil
	}, "")}}
	taken := map[string]bool{"loadout": true}
	for _, sv := range set.Servers() {
		c := set.ResolvedConfig(sv.Name)
		if c == nil || taken[sv.Name] {
			why := sv.Error
			if sv.Name == "loadout" {
				why = "the name is reserved for Loadout: rename the server"
			}
			a.Note("MCP server %s ignored: %s", sv.Name, why)
			continue
		}
		taken[sv.Name] = true
		up := mcpproxy.Upstream{Name: sv.Name, Opener: mcpproxy.NewDialOpener(set.Pool(), c), Allow: func(t *mcp.Tool) bool {
			return c.Allows(t) && set.Usable(context.Background(), sv.Name, t)
		}}
		if prefix == "server" {
			up.Prefix = sv.Name
		}
		ups = append(ups, up)
	}
	return mcpproxy.New(ups, &mcpproxy.Options{Version: buildVersion().Version, Logger: a.logger(),
		OnCall:  a.recordDirectUse(c),
		OnError: func(server string, err error) { a.Note("MCP server %s: %v", server, err) },
		AuthorizeAccess: func(_ context.Context, server, kind, name string) error {
			if server == "loadout" {
				return nil
			}
			return set.AuthorizeResource(server, kind, name)
		},
		AuthorizeCall: func(ctx context.Context, req *mcp.CallToolRequest, server, tool string) (*mcp.CallToolResult, func(string) string, error) {
			if server == "loadout" {
				return nil, nil, nil // s decides by itself
			}
			return s.Authorize(ctx, req, server, tool)
		}})
}
