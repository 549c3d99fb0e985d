package main

import (
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/loadout-dev/loadout/internal/client"
	"github.com/loadout-dev/loadout/internal/pattern"
	"github.com/loadout-dev/loadout/upstream"
)

// foreign is a server as a client has it.
type foreign struct {
	project string // in which alone it counts, "" for everywhere
	name    string
	value   any
}

// foreigners are the servers to look at: the person's, and those of the project
// that is worked in, or of all.
func (im *importing) foreigners(found *client.Servers) []foreign {
	var out []foreign
	add := func(project string, servers map[string]any) {
		for _, name := range slices.Sorted(maps.Keys(servers)) {
			if !ours(name, servers[name]) {
				out = append(out, foreign{project, name, servers[name]})
			}
		}
	}
	add("", found.ByName)
	projects := found.Projects()
	chosen := slices.Sorted(maps.Keys(projects))
	if !im.flags.allProjects {
		chosen = slices.DeleteFunc([]string{projectAt(projects, im.target.Place.Dir)}, func(p string) bool { return p == "" })
	}
	for _, p := range chosen {
		add(p, projects[p])
	}
	im.sayOthers(projects, chosen)
	return out
}

// sayOthers tells of the servers that stay with their projects.
func (im *importing) sayOthers(projects map[string]map[string]any, chosen []string) {
	n := 0
	for p, servers := range projects {
		for name, value := range servers {
			if !slices.Contains(chosen, p) && !ours(name, value) {
				n++
			}
		}
	}
	if n > 0 {
		im.out.Notes = append(im.out.Notes, fmt.Sprintf("left with other projects of yours: %s; to take over all: loadout import %s --all-projects%s",
			counted(n, "server"), im.client.Name, im.fileFlag()))
	}
}

// projectAt is the project of a directory: the nearest one at or above it, "" for
// none.
func projectAt(projects map[string]map[string]any, dir string) string {
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
		if (holds(at, dir) || holds(at, real)) && len(at) > longest {
			best, longest = p, len(at)
		}
	}
	return best
}

// holds reports whether dir is at or below a directory.
func holds(top, dir string) bool {
	if runtime.GOOS == "windows" {
		top, dir = strings.ToLower(top), strings.ToLower(dir)
	}
	rel, err := filepath.Rel(top, dir)
	return err == nil && filepath.IsLocal(rel)
}

var notInFolder = pattern.New(`[^A-Za-z0-9._-]+`)

// suffix tells a server from another of the same name: by the folder of its
// project, or by its client.
func (im *importing) suffix(f foreign) string {
	if f.project == "" {
		return im.client.Name
	}
	folder := f.project[strings.LastIndexAny(strings.TrimRight(f.project, `/\`), `/\`)+1:]
	return cmp.Or(strings.Trim(notInFolder().ReplaceAllString(folder, "-"), "-"), "project")
}

// stayIn keeps the working directory of a server of a project, which its client
// starts there: any argument may name a file by that.
func stayIn(c *upstream.Config, project string) {
	if project != "" && c.Type == upstream.Stdio && c.Dir == "" {
		c.Dir = strings.ReplaceAll(project, "${", "$${")
	}
}

// sayProject says what is other than before about a server of a project.
func (im *importing) sayProject(f foreign, s importedServer) {
	if s.As != f.name {
		im.out.Notes = append(im.out.Notes, fmt.Sprintf("server %s of the project %s has the name %s from now on: another one has its own", f.name, f.project, s.As))
	}
	note := "servers of a project are served in all projects from now on; a profile can choose among them"
	if !slices.Contains(im.out.Notes, note) {
		im.out.Notes = append(im.out.Notes, note)
	}
}
