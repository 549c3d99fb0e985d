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
	"github.com/loadout-dev/loadout/mcpserver"
	"github.com/loadout-dev/loadout/mcpserver/direct"
	"github.com/loadout-dev/loadout/profile"
	"github.com/loadout-dev/loadout/skill"
)

// ghosts are the profiles that count: the person's own, then the project's where
// it is trusted as it is.
func (a *app) ghosts() ([]*profile.Profile, error) { return a.ghostsNoting(a.note) }

// ghostsNoting is ghosts; note is told what is wrong with some.
func (a *app) ghostsNoting(note func(format string, args ...any)) ([]*profile.Profile, error) {
	out, err := a.ownGhosts(note)
	if err != nil {
		return nil, err
	}
	root := projectRoot(a.configInput().WorkDir)
	if root == "" {
		return out, nil
	}
	p, err := a.readProject(root)
	if err != nil || !p.trusted {
		return out, nil
	}
	for _, f := range p.files {
		if path.Dir(f.Path) != projectGhosts {
			continue
		}
		file := filepath.Join(p.dir, filepath.FromSlash(f.Path))
		data, err := readSmall(file, 1<<20)
		if err != nil || !a.coversFile(p, file, data) {
			note("%s is passed over: it changed since the project was trusted", file)
			continue
		}
		all, findings := profile.Parse(data, f.Path)
		for _, d := range findings {
			if d.Severity == skill.Error || d.Severity == skill.Warning {
				note("%s:%d: %s", f.Path, d.Line, d.Message)
			}
		}
		for _, g := range all {
			g.Owner = ofProject
			for _, m := range g.MCPServers {
				m.Owner = ofProject
			}
		}
		out = append(out, all...)
	}
	return out, nil
}

// ownGhosts are the person's own profiles; note is told what is wrong with some.
func (a *app) ownGhosts(note func(format string, args ...any)) ([]*profile.Profile, error) {
	dir := a.ghostDir()
	if dir == "" {
		return nil, nil
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, nil // there need be none
	}
	defer root.Close()
	all, problems, err := profile.ReadDir(root.FS())
	if err != nil {
		return nil, fail(exitFound, "mend it, or leave --profile out", "profiles in %s: %w", dir, err)
	}
	for _, p := range problems {
		note("%s: %s", dir, p)
	}
	return all, nil
}

// projectGhosts is where a project has profiles.
const projectGhosts = ".loadout/ghosts"

// ghostDir is the directory of the person's own profiles.
func (a *app) ghostDir() string {
	if f := config.UserFile(a.configInput()); f != "" {
		return filepath.Join(filepath.Dir(f), "ghosts")
	}
	return ""
}

// profile reads the profile of a name, nil for "".
func (a *app) profile(name string) (*profile.Profile, error) {
	if name == "" {
		return nil, nil
	}
	all, err := a.ghosts()
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
	hint := "write it into " + a.ghostDir()
	root := projectRoot(a.configInput().WorkDir)
	if len(names) > 0 {
		hint = "there are " + strings.Join(names, ", ")
	} else if root != "" && exists(filepath.Join(root, filepath.FromSlash(projectGhosts))) {
		hint = "those of this project count once you trust it: loadout trust " + quoted(root)
	}
	return nil, fail(exitNotFound, hint, "there is no profile %q", name)
}

// profileFlag lets a command be about what a profile has, and no more.
func (a *app) profileFlag(f *pflag.FlagSet) {
	f.StringVar(&a.ghost, "profile", "", "only what the profile `NAME` has")
}

// lead is what a profile says to the model first.
func lead(p *profile.Profile) string {
	if p == nil {
		return ""
	}
	return p.SystemPrompt
}

// chosen are the skills of a profile; nil is all.
func chosen(p *profile.Profile) []string {
	if p == nil || len(p.Skills) == 0 {
		return nil
	}
	return p.Skills
}

// ofProject is the owner of servers that a trusted project defines: they see
// nothing of the environment, and their commands run in the sandbox.
const ofProject = "project"

// projectRoot is the root of the repository around a directory, "" for none.
func projectRoot(dir string) string {
	_, root := config.ProjectFile(dir)
	return root
}

// profiles serves each profile at /mcp/p/NAME, with its tools as they are. One is
// made when it is first asked for.
type profiles struct {
	a       *app
	c       *config.Config
	options mcpserver.Options
	http    *mcpserver.HTTPOptions
	files   []string
	ctx     context.Context // of the program

	published *publication

	mu     sync.Mutex
	served map[string]*servedProfile
}

// servedProfile is a profile that is served.
type servedProfile struct {
	handler http.Handler
	close   []func()
}

// ServeHTTP serves the profile that the path names.
func (s *profiles) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p, err := s.get(strings.TrimPrefix(r.URL.Path, profilePath))
	if err != nil {
		code := http.StatusInternalServerError
		if e, ok := errors.AsType[*exitError](err); ok && e.code == exitNotFound {
			code = http.StatusNotFound
		}
		http.Error(w, err.Error(), code)
		return
	}
	p.handler.ServeHTTP(w, r)
}

// profilePath is where profiles are served, each by its name behind it.
const profilePath = "/mcp/p/"

func (s *profiles) get(name string) (*servedProfile, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if have := s.served[name]; have != nil {
		return have, nil
	}
	if s.served == nil { // closed
		return nil, context.Canceled
	}
	p, err := s.a.profile(name)
	if err == nil && p == nil {
		err = fail(exitNotFound, "give its name behind "+profilePath, "no profile is named")
	}
	if err != nil {
		return nil, err
	}
	rt, err := s.a.runtimeOf(s.ctx, s.c, true, chosen(p))
	if err != nil {
		return nil, err
	}
	s.a.noteAbsent(s.ctx, s.c, p, rt)
	set, _, err := s.a.toolset(s.ctx, s.c, rt, s.files, p)
	if err != nil {
		rt.Close()
		return nil, err
	}
	follow := s.a.newFollower(rt, s.c, set, p)
	o := s.options
	o.Lead = lead(p)
	o.Tools, o.Refresh = set.Set, follow.refresh
	server := mcpserver.New(rt, &o)
	stop := follow.start(s.ctx)
	d := s.a.exposeDirect(s.c, server, set, "server")
	out := &servedProfile{handler: d.Endpoint(s.http), close: []func(){stop, func() { d.Close() }, func() { server.Close() }, func() { set.Close() }, func() { rt.Close() }}}
	s.published.add(name, set)
	s.served[name] = out
	return out, nil
}

// Close ends what was made.
func (s *profiles) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.served {
		for _, f := range p.close {
			f()
		}
	}
	s.served = nil
}

// exposed is what a client is shown.
type exposed interface {
	Run(ctx context.Context, t mcp.Transport) error
	Handler(o *mcpserver.HTTPOptions) http.Handler
	Close() error
}

// exposeDirect lists the tools of the servers as they are, beside those of s.
func (a *app) exposeDirect(c *config.Config, s *mcpserver.Server, set *toolset, prefix string) *direct.Server {
	ups := []direct.Upstream{{Name: "loadout", Opener: direct.Over(func(ctx context.Context) (mcp.Transport, error) {
		here, there := mcp.NewInMemoryTransports()
		go s.Run(context.WithoutCancel(ctx), there) // ends with its client, or with s
		return here, nil
	}, "")}}
	taken := map[string]bool{"loadout": true}
	for _, sv := range set.Servers() {
		c := set.Resolved(sv.Name)
		if c == nil || taken[sv.Name] {
			why := sv.Error
			if sv.Name == "loadout" {
				why = "the name is Loadout's own: give the server another one"
			}
			a.note("MCP server %s is left out: %s", sv.Name, why)
			continue
		}
		taken[sv.Name] = true
		up := direct.Upstream{Name: sv.Name, Opener: direct.Dialed(set.pool, c), Allow: func(t *mcp.Tool) bool {
			return c.Allows(t) && set.Usable(context.Background(), sv.Name, t)
		}}
		if prefix == "server" {
			up.Prefix = sv.Name
		}
		ups = append(ups, up)
	}
	return direct.New(ups, &direct.Options{Version: buildVersion().Version, Logger: a.logger(),
		Called: a.usedDirectly(c),
		Report: func(server string, err error) { a.note("MCP server %s: %v", server, err) },
		PermitServer: func(_ context.Context, server, kind, name string) error {
			if server == "loadout" {
				return nil
			}
			return set.PermitPart(server, kind, name)
		},
		Permit: func(ctx context.Context, req *mcp.CallToolRequest, server, tool string) (*mcp.CallToolResult, func(string) string, error) {
			if server == "loadout" {
				return nil, nil, nil // which decides by itself
			}
			return s.Permit(ctx, req, server, tool)
		}})
}
