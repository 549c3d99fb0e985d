package clientimport

import (
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/loadout-dev/loadout/internal/lazyregexp"
	"github.com/loadout-dev/loadout/internal/upstream"
)

// clientServer is a server configured in the client's file.
type clientServer struct {
	project string // project to which the server is limited; "" for all
	name    string
	value   any
}

// collectServers returns the servers to import: the user's servers, and those
// of the current project or of all projects. others is the number of servers in
// other projects.
func (im *Importer) collectServers(allProjects bool) (out []clientServer, others int) {
	add := func(project string, servers map[string]any) {
		for _, name := range slices.Sorted(maps.Keys(servers)) {
			if !isOwnEntry(name, servers[name]) {
				out = append(out, clientServer{project, name, servers[name]})
			}
		}
	}
	add("", im.found.ByName)
	projects := im.found.Projects()
	current := findProject(projects, im.target.Environment.Dir)
	for _, p := range slices.Sorted(maps.Keys(projects)) {
		if allProjects || p != "" && p == current {
			add(p, projects[p])
			continue
		}
		for name, value := range projects[p] {
			if !isOwnEntry(name, value) {
				others++
			}
		}
	}
	return out, others
}

// findProject returns the nearest project at or above dir, or "" if there is
// none.
func findProject(projects map[string]map[string]any, dir string) string {
	if dir == "" {
		return ""
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		real = dir
	}
	best, longest := "", -1
	for _, p := range slices.Sorted(maps.Keys(projects)) {
		at := filepath.Clean(filepath.FromSlash(p))
		if (isBelow(at, dir) || isBelow(at, real)) && len(at) > longest {
			best, longest = p, len(at)
		}
	}
	return best
}

// isBelow reports whether dir is top or a directory below it.
func isBelow(top, dir string) bool {
	if runtime.GOOS == "windows" {
		top, dir = strings.ToLower(top), strings.ToLower(dir)
	}
	rel, err := filepath.Rel(top, dir)
	return err == nil && filepath.IsLocal(rel)
}

var notInFolder = lazyregexp.New(`[^A-Za-z0-9._-]+`)

// nameSuffix returns a suffix for a server whose name is already in use: the
// directory of its project, or the name of the client.
func (im *Importer) nameSuffix(f clientServer) string {
	if f.project == "" {
		return im.client.Name
	}
	folder := f.project[strings.LastIndexAny(strings.TrimRight(f.project, `/\`), `/\`)+1:]
	return cmp.Or(strings.Trim(notInFolder.ReplaceAllString(folder, "-"), "-"), "project")
}

// setWorkDir sets the working directory of a project's server to the project
// directory. The client runs the server there, and its arguments may be
// relative paths.
func setWorkDir(c *upstream.Config, project string) {
	if project != "" && c.Type == upstream.Stdio && c.Dir == "" {
		c.Dir = strings.ReplaceAll(project, "${", "$${")
	}
}

// noteProject adds notes about an imported server of a project.
func (p *Plan) noteProject(s Server) {
	if s.As != s.Name {
		p.Notes = append(p.Notes, fmt.Sprintf("server %s of project %s is now named %s, because another server has that name", s.Name, s.Project, s.As))
	}
	note := "imported servers of a project are available in all projects; limit them with a profile"
	if !slices.Contains(p.Notes, note) {
		p.Notes = append(p.Notes, note)
	}
}
