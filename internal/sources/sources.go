// Package sources finds the directories and archives in which skills are searched
// for. It reads no skills. Start with [New].
package sources

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/bundled"
	"github.com/loadout-dev/loadout/internal/skillfile"
	"github.com/loadout-dev/loadout/internal/skillname"
	"github.com/loadout-dev/loadout/internal/skillpath"
	"github.com/loadout-dev/loadout/internal/steering"
)

// Options configures where skills are searched for. The zero value means
// the default locations.
type Options struct {
	// WorkDir is the working directory. The default is the current one.
	WorkDir string
	// Home is the home directory. The default is the user's home directory.
	// NoHome omits the locations in it.
	Home   string
	NoHome bool
	// NoProject omits the project's skills, and NoBundled the bundled skills.
	NoProject, NoBundled bool
	// Extra are additional locations. They take precedence over the default
	// locations of the same scope.
	Extra []Location
	// Depth is the maximum depth of the directory search below a location;
	// default 6.
	Depth int
	// CacheDir, if set, is the directory for cached directory indexes, which
	// can be deleted at any time.
	CacheDir string
}

// Location is a directory, archive or SKILL.md that contains skills.
type Location struct {
	Path  string // relative to the working directory, or absolute
	Scope catalog.Scope
	// Label identifies the location in the origin of its skills. It consists
	// of lower-case letters, digits, dots and hyphens. The default is derived
	// from the path. If another location has the same label, a number is
	// appended.
	Label string
	// Optional means that the location need not exist.
	Optional bool
	// Within, if set, is an absolute path, such as that of a project. Symlinks
	// that lead out of it are not followed: see [catalog.DirOptions].
	Within string
}

// clientDirs are the directories in which agent programs store skills.
// Loadout's own directory is first.
var clientDirs = []string{".loadout/skills", ".agents/skills", ".claude/skills", ".codex/skills", ".gemini/skills", ".cursor/skills", ".github/skills"}

// New returns the sources in the default locations: the project's,
// from the working directory up to the repository root; those in the home
// directory and in installed Claude plugins; and the bundled skills. Sources of
// [Options.Extra] are first. o may be nil. The result is never nil
// without an error. New reads no skills, and returns an error only
// if the working directory cannot be found.
func New(o *Options) ([]catalog.Source, error) {
	if o == nil {
		o = &Options{}
	}
	workDir := o.WorkDir
	if workDir == "" {
		var err error
		if workDir, err = os.Getwd(); err != nil {
			return nil, fmt.Errorf("find working directory: %w", err)
		}
	}
	workDir, err := filepath.Abs(workDir)
	if err != nil {
		return nil, fmt.Errorf("find working directory: %w", err)
	}
	// No location may use the label of the bundled skills.
	b := sourceBuilder{opts: o, workDir: workDir, used: map[string]bool{bundledLabel: true},
		sources: []catalog.Source{}} // not nil, because New would use the default locations
	for _, p := range append(slices.Clone(o.Extra), defaultLocations(o, workDir)...) {
		b.add(p)
	}
	if !o.NoBundled {
		b.sources = append(b.sources, catalog.NewFS(bundledLabel, catalog.Bundled, bundled.FS()))
	}
	return b.sources, nil
}

const (
	bundledLabel = "bundled"
	projectLabel = "project" // begins the labels of the default locations in the project
	rootLabel    = "root"    // begins those in the roots of a client
)

type sourceBuilder struct {
	opts    *Options
	workDir string
	used    map[string]bool // labels in use
	sources []catalog.Source
}

func (b *sourceBuilder) label(want string) string {
	label := want
	for i := 2; b.used[label]; i++ {
		label = want + "-" + strconv.Itoa(i)
	}
	b.used[label] = true
	return label
}

func (b *sourceBuilder) add(p Location) {
	if !filepath.IsAbs(p.Path) {
		p.Path = filepath.Join(b.workDir, p.Path)
	}
	label := p.Label
	if label == "" {
		label = labelOf(p.Path)
	}
	label = b.label(label)
	if p.isArchive() {
		b.sources = append(b.sources, catalog.NewArchive(label, p.Scope, p.Path))
		return
	}
	if skillpath.IsSkillFile(filepath.Base(p.Path)) {
		if fi, err := os.Stat(p.Path); err != nil || !fi.IsDir() {
			p.Path = filepath.Dir(p.Path)
		}
	}
	o := catalog.DirOptions{MaxDepth: b.opts.Depth, Optional: p.Optional, Within: p.Within}
	if b.opts.CacheDir != "" {
		o.IndexFile = filepath.Join(b.opts.CacheDir, "index", skillfile.Hash([]byte(p.Path))[:24]+".idx")
	}
	b.sources = append(b.sources, catalog.NewDir(label, p.Scope, p.Path, &o))
}

// isArchive reports whether the location is an archive, or a path at which an
// archive may be created later. It returns false for an archive outside of
// Within.
func (p Location) isArchive() bool {
	if p.Within != "" {
		if !isArchive(p.Path) {
			return false
		}
		if real, err := filepath.EvalSymlinks(p.Path); err == nil && real != p.Path {
			root, err := filepath.EvalSymlinks(p.Within)
			if err != nil || !within(real, root) {
				return false // the directory source reports it
			}
		}
	}
	if p.Optional && !isArchive(p.Path) {
		return false // not even inspected, because that may block
	}
	fi, err := os.Stat(p.Path)
	switch {
	case err == nil && fi.IsDir(), skillpath.IsSkillFile(filepath.Base(p.Path)):
		return false
	}
	return err == nil && !p.Optional || err != nil && isArchive(p.Path) // the archive may be created later
}

// labelOf derives a label from the last descriptive component of a path.
func labelOf(path string) string {
	base := filepath.Base(path)
	switch {
	case skillpath.IsSkillFile(base):
		base = filepath.Base(filepath.Dir(path))
	case base == "skills":
		base = filepath.Base(filepath.Dir(path))
	case isArchive(base):
		base = strings.TrimSuffix(base, filepath.Ext(base))
	}
	return skillname.Slug(base)
}

func isArchive(path string) bool {
	ext := filepath.Ext(path)
	return strings.EqualFold(ext, ".zip") || strings.EqualFold(ext, ".skill")
}

func defaultLocations(o *Options, workDir string) []Location {
	var locations []Location
	home := o.home()
	if !o.NoProject {
		locations = projectLocations(workDir, home, projectLabel, nil)
	}
	if o.NoHome || home == "" {
		return locations
	}
	for _, dir := range clientDirs {
		locations = append(locations, Location{Path: filepath.Join(home, filepath.FromSlash(dir)), Scope: catalog.User, Label: "user." + clientName(dir), Optional: true})
	}
	return append(locations, pluginLocations(home, workDir, o.NoProject)...)
}

// home returns the home directory, or "" if there is none. In that case,
// locations below it are omitted.
func (o *Options) home() string {
	if o.Home != "" {
		return o.Home
	}
	home, _ := os.UserHomeDir()
	return home
}

func clientName(dir string) string {
	return strings.TrimPrefix(strings.TrimSuffix(dir, "/skills"), ".")
}

// projectLocations returns the locations from the working directory up to the
// repository root, except those in dependency directories. Outside a
// repository, it returns only those in the working directory. Labels begin with
// label. skip reports whether a directory is omitted; it may be nil.
func projectLocations(workDir, home, label string, skip func(dir string) bool) []Location {
	var locations []Location
	dirs := ProjectDirs(workDir)
	for level, dir := range dirs {
		if isInDependency(dirs[len(dirs)-1], dir) || skip != nil && skip(dir) {
			continue
		}
		within := projectBoundary(dir, dirs[len(dirs)-1], home)
		prefix := label + "."
		if level > 0 {
			prefix += fmt.Sprintf("up%d.", level)
		}
		locations = append(locations, Location{Path: filepath.Join(dir, "skills"), Scope: catalog.Project, Label: prefix + "skills", Optional: true, Within: within})
		if sameDir(dir, home) {
			continue // the home directory's locations belong to the user scope
		}
		for _, name := range clientDirs {
			locations = append(locations, Location{Path: filepath.Join(dir, filepath.FromSlash(name)), Scope: catalog.Project, Label: prefix + clientName(name), Optional: true, Within: within})
		}
	}
	return locations
}

// isInDependency reports whether dir is in a dependency directory below the
// repository root. Code may write there without the user's consent.
func isInDependency(root, dir string) bool {
	rel, err := filepath.Rel(root, dir)
	return err == nil && slices.ContainsFunc(strings.Split(rel, string(filepath.Separator)), steering.IsDependencyDir)
}

// projectBoundary returns the directory that symlinks in a project directory
// must not leave. It is the repository root, or dir if the home directory is
// the repository root. projectBoundary returns "" for the home directory
// itself, because it belongs to the user.
func projectBoundary(dir, root, home string) string {
	switch {
	case !sameDir(root, home):
		return root
	case dir == root:
		return ""
	}
	return dir
}

// sameDir reports whether two paths refer to the same directory.
func sameDir(a, b string) bool {
	if a == b {
		return true
	}
	x, err := os.Stat(a)
	if err != nil {
		return false
	}
	y, err := os.Stat(b)
	return err == nil && os.SameFile(x, y)
}

// ProjectDirs returns dir and its parents up to the repository root, or only
// dir if it is not in a repository.
func ProjectDirs(dir string) []string {
	var dirs []string
	for d := dir; ; d = filepath.Dir(d) {
		dirs = append(dirs, d)
		if _, err := os.Lstat(filepath.Join(d, ".git")); err == nil {
			return dirs
		}
		if d == filepath.Dir(d) {
			return dirs[:1]
		}
	}
}

// within reports whether path is root or below it.
func within(path, root string) bool {
	rel, err := filepath.Rel(root, path)
	return err == nil && filepath.IsLocal(rel)
}
