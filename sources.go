package loadout

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/bundled"
	"github.com/loadout-dev/loadout/skill"
)

// SourceOptions say where skills are looked for. The zero value means the
// default places.
type SourceOptions struct {
	// WorkDir is the directory whose project is meant; default: the current.
	WorkDir string
	// Home is the home directory; default: the user's. NoHome leaves the
	// places below it out.
	Home   string
	NoHome bool
	// NoProject and NoBundled leave out those skills.
	NoProject, NoBundled bool
	// Extra are further places, preferred to the default ones of the same
	// scope.
	Extra []Place
	// Depth is how deep directories are searched; default 6.
	Depth int
	// CacheDir, where set, keeps the index of each directory.
	CacheDir string
}

// Place is a directory, archive or SKILL.md that holds skills.
type Place struct {
	Path  string // relative to the working directory, or absolute
	Scope catalog.Scope
	// Label is the origin of its skills, of lower-case letters, digits, dots
	// and hyphens; default: made from the path. Where it is taken, a number
	// is added.
	Label string
	// Optional says that it need not exist.
	Optional bool
}

// clientDirs are the directories in which programs for agents keep skills,
// most specific to this program first.
var clientDirs = []string{".loadout/skills", ".agents/skills", ".claude/skills", ".codex/skills", ".gemini/skills", ".cursor/skills", ".github/skills"}

// DefaultSources returns the sources of the default places: those of the
// project from the working directory up to the root of its repository, those
// of the home directory and installed plugins, and the bundled skills.
func DefaultSources(o *SourceOptions) ([]catalog.Source, error) {
	if o == nil {
		o = &SourceOptions{}
	}
	workDir := o.WorkDir
	if workDir == "" {
		var err error
		if workDir, err = os.Getwd(); err != nil {
			return nil, fmt.Errorf("find the working directory: %w", err)
		}
	}
	workDir, err := filepath.Abs(workDir)
	if err != nil {
		return nil, fmt.Errorf("find the working directory: %w", err)
	}
	// No place may take the label of what comes with the program.
	b := sourceBuilder{opts: o, workDir: workDir, used: map[string]bool{bundledLabel: true},
		sources: []catalog.Source{}} // not nil, which New takes for the default places
	for _, p := range append(slices.Clone(o.Extra), defaultPlaces(o, workDir)...) {
		b.add(p)
	}
	if !o.NoBundled {
		b.sources = append(b.sources, catalog.NewFS(bundledLabel, catalog.Bundled, bundled.FS()))
	}
	return b.sources, nil
}

const bundledLabel = "bundled"

type sourceBuilder struct {
	opts    *SourceOptions
	workDir string
	used    map[string]bool // labels
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

func (b *sourceBuilder) add(p Place) {
	if !filepath.IsAbs(p.Path) {
		p.Path = filepath.Join(b.workDir, p.Path)
	}
	label := p.Label
	if label == "" {
		label = labelOf(p.Path)
	}
	label = b.label(label)
	fi, err := os.Stat(p.Path)
	switch {
	case err == nil && fi.IsDir():
	case skill.IsFileName(filepath.Base(p.Path)):
		p.Path = filepath.Dir(p.Path)
	case err == nil && !p.Optional, err != nil && isArchive(p.Path): // perhaps it comes later
		b.sources = append(b.sources, catalog.NewArchive(label, p.Scope, p.Path))
		return
	}
	o := catalog.DirOptions{MaxDepth: b.opts.Depth, Optional: p.Optional}
	if b.opts.CacheDir != "" {
		o.IndexFile = filepath.Join(b.opts.CacheDir, "index", digest([]byte(p.Path))[len("sha256:"):][:24]+".idx")
	}
	b.sources = append(b.sources, catalog.NewDir(label, p.Scope, p.Path, &o))
}

// labelOf makes a label from the last parts of a path that say something.
func labelOf(path string) string {
	base := filepath.Base(path)
	switch {
	case skill.IsFileName(base):
		base = filepath.Base(filepath.Dir(path))
	case base == "skills":
		base = filepath.Base(filepath.Dir(path))
	case isArchive(base):
		base = strings.TrimSuffix(base, filepath.Ext(base))
	}
	return skill.Slug(base)
}

func isArchive(path string) bool {
	ext := filepath.Ext(path)
	return strings.EqualFold(ext, ".zip") || strings.EqualFold(ext, ".skill")
}

func defaultPlaces(o *SourceOptions, workDir string) []Place {
	var places []Place
	home := o.Home
	if home == "" {
		home, _ = os.UserHomeDir() // without one there is nothing to look in
	}
	if !o.NoProject {
		places = projectPlaces(workDir, home)
	}
	if o.NoHome || home == "" {
		return places
	}
	for _, dir := range clientDirs {
		places = append(places, Place{Path: filepath.Join(home, filepath.FromSlash(dir)), Scope: catalog.User, Label: "user." + clientName(dir), Optional: true})
	}
	return append(places, pluginPlaces(home, workDir, o.NoProject)...)
}

func clientName(dir string) string {
	return strings.TrimPrefix(strings.TrimSuffix(dir, "/skills"), ".")
}

// projectPlaces walks from the working directory to the root of its
// repository, or looks in the working directory only where there is none.
func projectPlaces(workDir, home string) []Place {
	var places []Place
	for level, dir := range projectDirs(workDir) {
		prefix := "project."
		if level > 0 {
			prefix = fmt.Sprintf("project.up%d.", level)
		}
		places = append(places, Place{Path: filepath.Join(dir, "skills"), Scope: catalog.Project, Label: prefix + "skills", Optional: true})
		if same(dir, home) {
			continue // its dotted directories are the user's
		}
		for _, name := range clientDirs {
			places = append(places, Place{Path: filepath.Join(dir, filepath.FromSlash(name)), Scope: catalog.Project, Label: prefix + clientName(name), Optional: true})
		}
	}
	return places
}

// same reports whether two paths are of one directory.
func same(a, b string) bool {
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

// projectDirs lists dir and the directories above it up to the one that holds
// .git; only dir where none does.
func projectDirs(dir string) []string {
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

// pluginPlaces are the skills of installed Claude plugins: those for the
// project of the working directory, then those for all.
func pluginPlaces(home, workDir string, noProject bool) []Place {
	b, err := readSmall(filepath.Join(home, ".claude", "plugins", "installed_plugins.json"))
	if err != nil {
		return nil
	}
	var file struct {
		Plugins map[string]json.RawMessage `json:"plugins"`
	}
	if json.Unmarshal(b, &file) != nil {
		return nil
	}
	type install struct {
		InstallPath string `json:"installPath"`
		ProjectPath string `json:"projectPath"`
	}
	var here, all []Place
	for name, raw := range file.Plugins {
		var many []install
		if json.Unmarshal(raw, &many) != nil {
			var one install
			if json.Unmarshal(raw, &one) != nil {
				continue
			}
			many = []install{one}
		}
		plugin, _, _ := strings.Cut(name, "@")
		for _, in := range many {
			p := Place{Path: filepath.Join(in.InstallPath, "skills"), Scope: catalog.User, Label: "plugin." + skill.Slug(plugin), Optional: true}
			switch {
			case !filepath.IsAbs(in.InstallPath):
			case in.ProjectPath == "":
				all = append(all, p)
			case !noProject && within(workDir, in.ProjectPath):
				here = append(here, p)
			}
		}
	}
	for _, places := range [][]Place{here, all} {
		slices.SortFunc(places, func(a, b Place) int {
			return cmp.Or(strings.Compare(a.Label, b.Label), strings.Compare(a.Path, b.Path))
		})
	}
	return append(here, all...)
}

// within reports whether path is root or below it.
func within(path, root string) bool {
	rel, err := filepath.Rel(root, path)
	return err == nil && filepath.IsLocal(rel)
}

// readSmall reads a file that another program wrote for itself.
func readSmall(path string) ([]byte, error) {
	const most = 4 << 20
	fi, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !fi.Mode().IsRegular() || fi.Size() > most {
		return nil, fmt.Errorf("%s is no regular file of at most %d bytes", path, most)
	}
	return os.ReadFile(path)
}
