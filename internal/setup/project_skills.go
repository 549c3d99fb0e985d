package setup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/config"
	"github.com/loadout-dev/loadout/internal/console"
	"github.com/loadout-dev/loadout/internal/privatefile"
	"github.com/loadout-dev/loadout/internal/sources"
	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/skill"
)

// projectSkills decides which skills of an untrusted project are pending until
// the user confirms them: those that would replace another skill, and those that
// were added after the project or the directory was first listed. An agent or a
// script may have added them. It is safe for concurrent use.
type projectSkills struct {
	s      *Setup
	config *config.Config

	mu      sync.Mutex
	dirs    map[string]*projectDir // directories of the sources in projects, by origin
	listed  listedSkills
	stamp   time.Time           // modification time of the file with listed
	unknown error               // why the listed skills are unknown
	changed map[string][]string // directories and skills to store
	checked time.Time           // when the fields below were read
	trusted map[string]bool     // whether the project around a directory is trusted
	granted []policy.Grant
}

// projectDir is a directory of skills in a project.
type projectDir struct {
	path    string // as in the source
	name    string // in the file; see listedDirectory
	project string // directory in the project: the working directory, or the root of a client
	isRoot  bool   // whether project is the root of a client
	leaving bool   // whether the sources of the catalog are being replaced by others
	later   bool   // whether the project may not have had it when it was first listed
}

// confirmInterval is how long the results of trust and approval checks are
// cached. A project can have many pending skills.
const confirmInterval = time.Second

// newProjectSkills returns the state of the project skills in the given
// sources. It returns nil if no skill can be pending: directories given with
// --skills are the user's choice.
func (s *Setup) newProjectSkills(c *config.Config, sources []catalog.Source) *projectSkills {
	if s.ShowPending || len(s.Skills) > 0 {
		return nil
	}
	p := &projectSkills{s: s, config: c, dirs: map[string]*projectDir{}, changed: map[string][]string{}}
	if err := p.readListed(); err != nil {
		s.Note("cannot tell which skills were added to a project: %v", err)
		if _, unsafe := errors.AsType[*privatefile.UnsafeError](err); !unsafe && !errors.Is(err, fs.ErrPermission) {
			p.unknown = err // the file exists, but its content is not understood
		}
	}
	p.addProject(s.ConfigInput().WorkDir, false, sources)
	return p
}

// addProject adds the sources in the project that contains a directory, unless they
// are known. It must be called before they are added to a catalog. p.mu must be
// held if a catalog uses p.
func (p *projectSkills) addProject(dir string, isRoot bool, sources []catalog.Source) {
	root, real := listedRoot(dir)
	isListed := p.s.isProjectListed(real, p.listed)
	for _, source := range sources {
		if p.dirs[source.Origin()] != nil {
			continue
		}
		if at, ok := source.(interface{ Root() string }); ok && source.Scope() == catalog.Project {
			d := &projectDir{path: at.Root(), name: listedDirectory(at.Root(), root, real), project: dir, isRoot: isRoot}
			_, known := p.listed[d.name]
			d.later = isListed && !known
			p.dirs[source.Origin()] = d
		}
	}
}

// addRoots adds a client's projects before their sources are added to a
// catalog. Nothing is recorded about projects that are no longer in roots. p
// may be nil.
func (p *projectSkills) addRoots(roots []sources.Root) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = p.readListed() // the skills that are known stay known
	for _, r := range roots {
		p.addProject(r.Dir, true, r.Sources)
	}
	keep := originsOf(roots)
	for origin, d := range p.dirs {
		d.leaving = d.isRoot && !keep[origin]
	}
	p.checked = time.Time{}
}

func originsOf(roots []sources.Root) map[string]bool {
	origins := map[string]bool{}
	for _, r := range roots {
		for _, source := range r.Sources {
			origins[source.Origin()] = true
		}
	}
	return origins
}

// removeRoots removes the projects of a client that are not among roots. It must be
// called after their sources were removed from the catalog. p may be nil.
func (p *projectSkills) removeRoots(roots []sources.Root) {
	if p == nil {
		return
	}
	keep := originsOf(roots)
	p.mu.Lock()
	defer p.mu.Unlock()
	maps.DeleteFunc(p.dirs, func(origin string, d *projectDir) bool { return d.isRoot && !keep[origin] })
}

// rootOf returns the client root that contains a skill, or "" if there is none.
// p may be nil.
func (p *projectSkills) rootOf(e *catalog.Entry) string {
	if p == nil {
		return ""
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if d := p.dirs[e.Origin]; d != nil && d.isRoot {
		return d.project
	}
	return ""
}

// readListed reads the file with the listed skills if it changed. Another process
// may have added some.
func (p *projectSkills) readListed() error {
	var stamp time.Time
	if info, err := os.Stat(p.s.listedPath()); err == nil {
		stamp = info.ModTime()
	}
	if p.listed != nil && stamp.Equal(p.stamp) {
		return nil
	}
	listed, err := p.s.readListedSkills()
	if p.listed == nil || err == nil {
		p.listed, p.stamp, p.unknown = listed, stamp, nil
	}
	return err
}

// confirm implements [catalog.Options.Confirm].
func (p *projectSkills) confirm(r catalog.ProjectSkill, manifest func() (skill.Manifest, error)) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	dir := p.dirs[r.Entry.Origin]
	if dir == nil { // an archive
		dir = &projectDir{project: p.s.ConfigInput().WorkDir}
	}
	added := p.isAdded(dir, r.Entry)
	if added && p.readListed() == nil {
		added = p.isAdded(dir, r.Entry)
	}
	if r.Replaced == nil && !added {
		return ""
	}
	p.refresh()
	if p.isTrusted(dir.project) || p.isApproved(r.Entry.Name, manifest) {
		if added {
			p.add(dir.name, listedKey(r.Entry))
		}
		return ""
	}
	command := "loadout approve " + console.ShellQuote(r.Entry.Key())
	if dir.isRoot { // other commands do not know the roots of a client
		command = inDirectory(dir.project, "loadout approve "+console.ShellQuote(sources.ProjectKey(r.Entry)))
	}
	if r.Replaced != nil {
		return fmt.Sprintf("pending until you confirm it with `%s`: it would replace %s", command, r.Replaced.Key())
	}
	if set := p.listed[dir.name]; p.unknown != nil || set != nil && set.incomplete {
		return fmt.Sprintf("pending until you confirm it with `%s`: Loadout has no complete list of the skills that the project had", command)
	}
	return fmt.Sprintf("pending until you confirm it with `%s`: it may have been added after Loadout first listed the project", command)
}

// isAdded reports whether a skill was, or may have been, added after its
// project or its directory was first listed.
func (p *projectSkills) isAdded(dir *projectDir, e *catalog.Entry) bool {
	if p.unknown != nil {
		return true
	}
	set, ok := p.listed[dir.name]
	if !ok {
		return dir.later
	}
	return !set.unread && !set.skills[listedKey(e)]
}

// keySeparator separates the folder of a skill from its name. A folder never
// contains it.
const keySeparator = "//"

// listedKey returns the key under which a skill is stored: its folder, and its
// name if that differs. A skill whose name changes counts as a new skill.
func listedKey(e *catalog.Entry) string {
	if e.Name == path.Base(e.Dir) {
		return e.Dir
	}
	return e.Dir + keySeparator + e.Name
}

// add records a skill as listed.
func (p *projectSkills) add(dir, skill string) {
	p.listed.add(dir, []string{skill})
	p.changed[dir] = append(p.changed[dir], skill)
}

// refresh updates which projects are trusted and which skills are approved.
func (p *projectSkills) refresh() {
	if time.Since(p.checked) < confirmInterval {
		return
	}
	p.trusted = map[string]bool{}
	p.granted, _, _ = p.s.GrantStore().List(context.Background()) // without it, nothing is approved
	p.checked = time.Now()
}

// isTrusted reports whether the user trusts the project that contains a
// directory.
func (p *projectSkills) isTrusted(dir string) bool {
	trusted, ok := p.trusted[dir]
	if !ok {
		trusted = p.s.isProjectTrusted(dir)
		p.trusted[dir] = trusted
	}
	return trusted
}

// record stores which skills each source in a project had when it was first
// listed completely, and those that were confirmed since. more reports whether
// some skills were not stored because of a limit; these skills become pending.
func (p *projectSkills) record(ctx context.Context, now *catalog.Snapshot) (more bool) {
	if p == nil || now.Disabled {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.unknown != nil {
		return false // the file cannot be changed either
	}
	var incomplete []string // origins
	for _, problem := range now.Problems() {
		if d := p.dirs[problem.Origin]; d != nil && problem.Path == d.path && slices.Contains(incompleteCodes, problem.Code) {
			incomplete = append(incomplete, problem.Origin)
		}
	}
	first := map[string][]string{} // by origin
	var unread []string
	for origin, d := range p.dirs {
		dir := d.name
		set, ok := p.listed[dir]
		switch {
		case d.leaving: // it may be unread, and has no problem that says so
		case !ok && d.later:
			p.listed.add(dir, nil)
			p.changed[dir] = nil
		case (!ok || set.unread) && !slices.Contains(incomplete, origin):
			first[origin] = []string{}
		case !ok: // without this, its skills would be pending from now on
			unread = append(unread, dir)
		case ok && !set.unread && time.Since(set.used) > listedUseInterval:
			if _, ok := p.changed[dir]; !ok {
				p.changed[dir] = nil // stores the time
			}
		}
	}
	if len(first) > 0 {
		for e := range now.Entries() {
			if found, ok := first[e.Origin]; ok {
				first[e.Origin] = append(found, listedKey(e))
			}
		}
		for origin, found := range first {
			dir := p.dirs[origin].name
			p.listed.add(dir, found)
			p.listed[dir].unread = false
			p.changed[dir] = append(p.changed[dir], found...)
		}
	}
	if len(p.changed)+len(unread) == 0 {
		return false
	}
	changed := p.changed
	p.changed = map[string][]string{}
	stored, err := p.s.storeListedSkills(ctx, changed, unread...)
	if err != nil {
		p.s.Note("cannot store which skills the project has: %v", err)
	}
	if stored == nil {
		return false
	}
	p.listed = stored
	for dir := range changed {
		more = more || stored[dir] == nil || stored[dir].incomplete
	}
	return more
}

// incompleteCodes lists the codes of problems that can make a source's skill
// list incomplete.
var incompleteCodes = []string{"still-reading", "unreadable", "directory-limit", "entry-limit", "time-limit"}

// listedDirectory returns the name of a directory in the file with the listed
// skills. root is the root of the project, and real is root with symlinks resolved,
// or "". The name does not depend on the path by which the user enters the project,
// nor on symlinks in the project, which a script or a git pull can change.
func listedDirectory(dir, root, real string) string {
	if real == "" {
		return dir
	}
	rel, err := filepath.Rel(root, dir)
	if err != nil || !filepath.IsLocal(rel) {
		return dir
	}
	return filepath.Join(real, rel)
}

// listedRoot returns the root of the project that contains a directory. real is the
// root with symlinks resolved, or "" if that fails. Outside of a Git repository, the
// root is the directory itself.
func listedRoot(dir string) (root, real string) {
	if _, root = config.ProjectFile(dir); root == "" {
		root = dir
	}
	real, err := filepath.EvalSymlinks(root)
	if err != nil {
		return root, ""
	}
	return root, real
}

// isProjectListed reports whether the project with the given root was listed.
// Symlinks in root must be resolved. The home directory is never considered a
// listed project: if it is a repository, the directories below it are separate
// projects.
func (s *Setup) isProjectListed(root string, listed listedSkills) bool {
	home, err := filepath.EvalSymlinks(s.Home())
	return root != "" && (err != nil || home != root) && listed.hasProject(root)
}

// isProjectTrusted reports whether the user trusts the project that contains a
// directory.
func (s *Setup) isProjectTrusted(dir string) bool {
	file, root := config.ProjectFile(dir)
	dirs := []string{root}
	if file != "" {
		dirs = append(dirs, config.ProjectDir(file))
	}
	return slices.ContainsFunc(dirs, func(dir string) bool {
		if dir == "" {
			return false
		}
		p, err := s.ReadProject(dir)
		return err == nil && p.Trusted
	})
}

// isApproved reports whether the user or the configuration approved the version
// of a skill with these files. It reads the files only if a version of that name
// is approved.
func (p *projectSkills) isApproved(name string, manifest func() (skill.Manifest, error)) bool {
	known := slices.ContainsFunc(p.granted, func(g policy.Grant) bool { return g.Name == name })
	if !known && len(p.config.Policy.Approved) == 0 {
		return false
	}
	m, err := manifest()
	if err != nil {
		return false
	}
	if slices.Contains(p.config.Policy.Approved, name+"="+m.Digest()) {
		return true
	}
	g, err := p.s.GrantStore().Find(context.Background(), policy.LocalUser(), policy.Digest(m.Digest()), "")
	return err == nil && g.Permissions.Run
}

// RecordListed stores skills that the user added to a directory, so that they
// are not pending. skills holds the names of their folders.
func (s *Setup) RecordListed(ctx context.Context, dir string, skills []string) {
	root, real := listedRoot(s.ConfigInput().WorkDir)
	dir = listedDirectory(dir, root, real)
	listed, err := s.readListedSkills()
	switch set, ok := listed[dir]; {
	case err != nil: // reported
		return
	case ok && set.unread, !ok && !s.isProjectListed(real, listed):
		return // it will be listed for the first time
	}
	if _, err := s.storeListedSkills(ctx, map[string][]string{dir: skills}); err != nil {
		s.Note("cannot store which skills the project has: %v", err)
	}
}
