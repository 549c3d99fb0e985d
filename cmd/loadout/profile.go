package main

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout/internal/config"
	"github.com/loadout-dev/loadout/mcpserver"
	"github.com/loadout-dev/loadout/mcpserver/direct"
	"github.com/loadout-dev/loadout/profile"
)

// ghostDirs are the directories with profiles: the person's own, and the
// project's where it is trusted.
func (a *app) ghostDirs() []string {
	in := a.configInput()
	var out []string
	if f := config.UserFile(in); f != "" {
		out = append(out, filepath.Join(filepath.Dir(f), "ghosts"))
	}
	if root := projectRoot(in.WorkDir); root != "" && a.trusts(root) {
		out = append(out, filepath.Join(root, ".loadout", "ghosts"))
	}
	return out
}

// profile reads the profile of a name, and narrows the skills to its own. It is
// nil for "".
func (a *app) profile(c *config.Config, name string) (*profile.Profile, error) {
	if name == "" {
		return nil, nil
	}
	var names []string
	for _, dir := range a.ghostDirs() {
		root, err := os.OpenRoot(dir)
		if err != nil {
			continue // there need be none
		}
		all, problems, err := profile.ReadDir(root.FS())
		root.Close()
		if err != nil {
			return nil, fail(exitFound, "mend it, or leave --profile out", "profiles in %s: %w", dir, err)
		}
		for _, p := range problems {
			a.note("%s: %s", dir, p)
		}
		for _, p := range all {
			if p.Name != name {
				names = append(names, p.Name)
				continue
			}
			if strings.HasPrefix(dir, projectRoot(a.configInput().WorkDir)+string(filepath.Separator)) {
				for _, m := range p.MCPServers {
					m.Owner = ofProject
				}
			}
			if len(p.Skills) > 0 {
				c.Skills.Allow = p.Skills
			}
			return p, nil
		}
	}
	hint := "write it into " + strings.Join(a.ghostDirs(), " or ")
	if root := projectRoot(a.configInput().WorkDir); root != "" && !a.trusts(root) && exists(filepath.Join(root, ".loadout", "ghosts")) {
		hint = "those of this project count once you trust it: loadout trust " + quoted(root)
	} else if len(names) > 0 {
		hint = "there are " + strings.Join(names, ", ")
	}
	return nil, fail(exitNotFound, hint, "there is no profile %q", name)
}

// trusts reports whether the project at a directory is trusted as it is now.
func (a *app) trusts(root string) bool {
	p, err := a.readProject(root)
	return err == nil && p.trusted
}

// ofProject is the owner of servers that a trusted project defines: they see
// nothing of the environment, and are no commands that run here.
const ofProject = "project"

// projectRoot is the root of the repository around a directory, "" for none.
func projectRoot(dir string) string {
	_, root := config.ProjectFile(dir)
	return root
}

// exposed is what a client is shown.
type exposed interface {
	Run(ctx context.Context, t mcp.Transport) error
	Handler(o *mcpserver.HTTPOptions) http.Handler
	Close() error
}

// exposeDirect lists the tools of the servers as they are, beside those of s.
func (a *app) exposeDirect(s *mcpserver.Server, set *toolset, prefix string) *direct.Server {
	ups := []direct.Upstream{{Name: "loadout", Opener: direct.Over(func(ctx context.Context) (mcp.Transport, error) {
		here, there := mcp.NewInMemoryTransports()
		go s.Run(context.WithoutCancel(ctx), there) // ends with its client, or with s
		return here, nil
	}, "")}}
	taken := map[string]bool{"loadout": true}
	for _, sv := range set.Servers() {
		c := set.Resolved(sv.Name)
		if c == nil || taken[sv.Name] {
			a.note("MCP server %s is left out: %s", sv.Name, sv.Error)
			continue
		}
		taken[sv.Name] = true
		up := direct.Upstream{Name: sv.Name, Opener: direct.Dialed(set.dialer, c), Allow: c.Allows}
		if prefix == "server" {
			up.Prefix = sv.Name
		}
		ups = append(ups, up)
	}
	var said sync.Map // the last problem of each server, which is told once
	return direct.New(ups, &direct.Options{Version: buildVersion().Version, Logger: a.logger(),
		Report: func(server string, err error) {
			if last, _ := said.Swap(server, err.Error()); last != err.Error() {
				a.note("MCP server %s: %v", server, err)
			}
		},
		Permit: func(ctx context.Context, req *mcp.CallToolRequest, server, tool string) (*mcp.CallToolResult, error) {
			if server == "loadout" {
				return nil, nil // which decides by itself
			}
			return s.Permit(ctx, req, server, tool)
		}})
}
