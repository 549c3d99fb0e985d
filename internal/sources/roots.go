package sources

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/loadout-dev/loadout/catalog"
)

// Root is a directory that an MCP client named as one of its projects, with the
// sources in it.
type Root struct {
	Dir     string           // absolute, with symlinks resolved
	Sources []catalog.Source // from the directory up to its repository root

	label string
	paths []string // of Sources
}

// maxRootSources is the maximum number of sources in all roots.
const maxRootSources = 512

// NewRoots returns the default locations of a project in each of the directories,
// from it up to its repository root. It omits the locations of the project in
// o.WorkDir and those of earlier directories, and roots for which no locations
// remain. A root that is also in current keeps its sources. The labels of the
// other roots differ from those in known and current. skipped has an error for
// each directory that does not exist, or that is not a project because it
// contains the home directory. o.WorkDir must be absolute. NewRoots reads no
// skills.
func NewRoots(o *Options, known []catalog.Source, current []Root, dirs []string) (roots []Root, skipped []error) {
	b := sourceBuilder{opts: o, workDir: o.WorkDir, used: map[string]bool{bundledLabel: true}}
	for _, s := range known {
		b.used[s.Origin()] = true
	}
	labels := map[string]bool{}
	for _, r := range current {
		labels[r.label] = true
	}
	total := 0
	home := o.home()
	if real, err := filepath.EvalSymlinks(home); err == nil && home != "" {
		home = real
	}
	listed := map[string]bool{} // directories whose locations are known
	if real, err := filepath.EvalSymlinks(o.WorkDir); err == nil && !o.NoProject {
		for _, dir := range ProjectDirs(real) {
			listed[dir] = true
		}
	}
	for _, dir := range dirs {
		real, err := resolveRoot(dir, home)
		if err != nil {
			skipped = append(skipped, err)
			continue
		}
		label := rootLabel
		for n := 2; labels[label]; n++ {
			label = rootLabel + strconv.Itoa(n)
		}
		locations := projectLocations(real, home, label, func(dir string) bool { return listed[dir] || containsHome(dir, home) })
		if total += len(locations); total > maxRootSources {
			total -= len(locations)
			skipped = append(skipped, fmt.Errorf("%s: too many skill directories in all roots (limit %d)", dir, maxRootSources))
			continue
		}
		for _, dir := range ProjectDirs(real) {
			listed[dir] = true
		}
		if len(locations) == 0 {
			continue
		}
		root := Root{Dir: real, label: label}
		for _, l := range locations {
			root.paths = append(root.paths, l.Path)
		}
		if i := slices.IndexFunc(current, func(r Root) bool { return slices.Equal(r.paths, root.paths) }); i >= 0 {
			roots = append(roots, current[i])
			continue
		}
		labels[label], b.sources = true, nil
		for _, l := range locations {
			b.add(l)
		}
		root.Sources = b.sources
		roots = append(roots, root)
	}
	return roots, skipped
}

// ProjectKey returns the key that a root's skill would have if the root were
// the working directory.
func ProjectKey(e *catalog.Entry) string {
	_, rest, _ := strings.Cut(e.Origin, ".")
	return projectLabel + "." + rest + "/" + e.Dir
}

// resolveRoot returns a root with its symlinks resolved.
func resolveRoot(dir, home string) (string, error) {
	if !filepath.IsAbs(dir) {
		return "", fmt.Errorf("%s: not an absolute path", dir)
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return "", err
	}
	fi, err := os.Stat(real)
	switch {
	case err != nil:
		return "", err
	case !fi.IsDir():
		return "", fmt.Errorf("%s: not a directory", dir)
	case real == filepath.Dir(real):
		return "", errors.New("the root of the file system is not a project")
	case containsHome(real, home):
		return "", fmt.Errorf("%s: not a project, because it contains the home directory", dir)
	}
	return real, nil
}

// containsHome reports whether dir is the home directory or above it.
func containsHome(dir, home string) bool {
	return home != "" && (within(home, dir) || sameDir(dir, home))
}
