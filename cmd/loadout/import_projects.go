package main

import (
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/loadout-dev/loadout/internal/clientconfig"
	"github.com/loadout-dev/loadout/internal/lazyregexp"
	"github.com/loadout-dev/loadout/internal/upstream"
)

// clientServer is a server in the configuration of a client.
type clientServer struct {
	project string // project it is limited to; "" for all
	name    string
	value   any
}

// collectServers returns the servers to import: the user's, and those of the
// current project or of all projects.
func (im *importRun) collectServers(found *clientconfig.Servers) []clientServer {
	var out []clientServer
	add := func(project string, servers map[string]any) {
		for _, name := range slices.Sorted(maps.Keys(servers)) {
			if !isOwnEntry(name, servers[name]) {
				out = append(out, clientServer{project, name, servers[name]})
			}
		}
	}
	add("", found.ByName)
	projects := found.Projects()
	chosen := slices.Sorted(maps.Keys(projects))
	if !im.flags.allProjects {
		chosen = slices.DeleteFunc([]string{findProject(projects, im.target.Place.Dir)}, func(p string) bool { return p == "" })
	}
	for _, p := range chosen {
		add(p, projects[p])
	}
	im.noteOtherProjects(projects, chosen)
	return out
}

// noteOtherProjects adds a note about the servers of projects that are not
// imported.
func (im *importRun) noteOtherProjects(projects map[string]map[string]any, chosen []string) {
	n := 0
	for p, servers := range projects {
		for name, value := range servers {
			if !slices.Contains(chosen, p) && !isOwnEntry(name, value) {
				n++
			}
		}
	}
	if n > 0 {
		im.out.Notes = append(im.out.Notes, fmt.Sprintf("other projects have %s; to import them: loadout import %s --all-projects%s",
			pluralize(n, "server"), im.client.Name, im.fileFlag()))
	}
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

// isBelow reports whether dir is top or below it.
func isBelow(top, dir string) bool {
	if runtime.GOOS == "windows" {
		top, dir = strings.ToLower(top), strings.ToLower(dir)
	}
	rel, err := filepath.Rel(top, dir)
	return err == nil && filepath.IsLocal(rel)
}

var notInFolder = lazyregexp.New(`[^A-Za-z0-9._-]+`)

// nameSuffix returns a suffix that distinguishes a server from another of the
// same name: the directory of its project, or the name of its client.
func (im *importRun) nameSuffix(f clientServer) string {
	if f.project == "" {
		return im.client.Name
	}
	folder := f.project[strings.LastIndexAny(strings.TrimRight(f.project, `/\`), `/\`)+1:]
	return cmp.Or(strings.Trim(notInFolder().ReplaceAllString(folder, "-"), "-"), "project")
}

// setWorkDir sets the working directory of a project's server to the project,
// where its client starts it. Arguments may be relative paths.
func setWorkDir(c *upstream.Config, project string) {
	if project != "" && c.Type == upstream.Stdio && c.Dir == "" {
		c.Dir = strings.ReplaceAll(project, "${", "$${")
	}
}

// noteProject adds notes about the changes for a server of a project.
func (im *importRun) noteProject(f clientServer, s importedServer) {
	if s.As != f.name {
		im.out.Notes = append(im.out.Notes, fmt.Sprintf("server %s of the project %s is now named %s: another server has its name", f.name, f.project, s.As))
	}
	note := "imported servers of a project are available in all projects; limit them with a profile"
	if !slices.Contains(im.out.Notes, note) {
		im.out.Notes = append(im.out.Notes, note)
	}
}
