package catalog

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/loadout-dev/loadout/internal/semver"
	"github.com/loadout-dev/loadout/internal/skillname"
	"github.com/loadout-dev/loadout/skill"
)

// DependencyError is returned by [Catalog.LoadOrder] if a skill's dependencies
// cannot be loaded.
type DependencyError struct {
	Path   []string // from the requested skill to the reference that causes the error
	Reason string
}

func (e *DependencyError) Error() string {
	return strings.Join(e.Path, " → ") + ": " + e.Reason
}

const (
	// maxDependencies is the maximum number of skills in a load.
	maxDependencies = 64
	// maxRounds is the maximum number of attempts to select versions.
	maxRounds = 16
)

// Loaded is a skill with the current content of its SKILL.md.
type Loaded struct {
	Entry  *Entry
	Skill  *skill.Skill
	Source []byte // content of SKILL.md
	// Files lists the files without hashes, and FilesError is the reason why they
	// cannot be listed. Only [Catalog.LoadWithFiles] sets them.
	Files      skill.Manifest
	FilesError error
	// Needs lists the names of the skills that this skill depends on. Missing
	// lists the references to dependencies that the catalog does not have,
	// without those that name Python modules, as in app.tools.requests.
	Needs, Missing []string
}

// LoadOrder reads e and the skills that it depends on, and returns each skill
// after its dependencies. It uses the dependencies in both the entry and the
// SKILL.md, so that a source cannot omit any. If several skills depend on the
// same name, LoadOrder selects the first version that satisfies all of them.
//
// LoadOrder returns a [*DependencyError] for a cycle, a hidden skill, a version
// conflict or more than 64 skills. A missing dependency is not an error,
// because published skills also list packages of other systems. It is listed in
// Missing. LoadOrder also returns any error from [Catalog.Read].
func (c *Catalog) LoadOrder(ctx context.Context, e *Entry) ([]*Loaded, error) {
	return c.loadOrder(ctx, e, false)
}

// LoadWithFiles is like LoadOrder, but also lists the files of the skills, as
// [Catalog.ListFiles] does.
func (c *Catalog) LoadWithFiles(ctx context.Context, e *Entry) ([]*Loaded, error) {
	return c.loadOrder(ctx, e, true)
}

func (c *Catalog) loadOrder(ctx context.Context, e *Entry, list bool) ([]*Loaded, error) {
	s := c.Snapshot()
	read := map[*Entry]*Loaded{}
	o := ordering{s: s, needs: map[string][]need{}, dependencies: func(e *Entry) ([]string, error) {
		l := read[e]
		if l == nil {
			var err error
			if l, err = c.load(ctx, e, list); err != nil {
				return nil, err
			}
			read[e] = l
		}
		return l.dependencies(), nil
	}}
	order, err := o.run(e)
	if err != nil {
		return nil, err
	}
	out := make([]*Loaded, len(order))
	for i, e := range order {
		out[i] = read[e]
		out[i].resolve(s)
	}
	return out, nil
}

// dependencies returns the dependencies listed in the entry and in its
// SKILL.md.
func (l *Loaded) dependencies() []string {
	if l.Entry.Server != "" { // each skill of a server is loaded by its own request
		return nil
	}
	all := slices.Clip(l.Entry.Dependencies)
	for _, ref := range l.Skill.Dependencies {
		if !slices.Contains(l.Entry.Dependencies, ref) {
			all = append(all, ref)
		}
	}
	return all
}

// resolve adds the dependencies of l that s contains to l.Needs, and those that
// are missing to l.Missing.
func (l *Loaded) resolve(s *Snapshot) {
	for _, ref := range l.dependencies() {
		q := s.parseRef(ref)
		if dep := s.find(q); dep != nil {
			l.Needs = append(l.Needs, dep.Name)
		} else if !q.bad && len(q.candidates) == 0 && !skillname.IsPythonModule(ref) {
			l.Missing = append(l.Missing, ref)
		}
	}
}

// need is a dependency of one skill on another.
type need struct {
	by, ref string
	want    *semver.Constraint
}

func (n need) String() string   { return n.by + " requires " + n.ref }
func (n need) same(m need) bool { return n.by == m.by && n.ref == m.ref }

type ordering struct {
	s *Snapshot
	// dependencies returns a skill's dependencies. It may be called more than
	// once for the same skill.
	dependencies func(*Entry) ([]string, error)

	root   *Entry
	needs  map[string][]need // dependencies by name, from this round and earlier ones
	chosen map[string]*Entry // chosen skills by name
	seen   map[*Entry]bool
	order  []*Entry
}

// errRestart is returned if a new constraint requires a different version, so
// that the selection must start over.
var errRestart = errors.New("restart dependency selection")

// run returns the skills to load for e, dependencies first.
func (o *ordering) run(e *Entry) ([]*Entry, error) {
	for range maxRounds {
		o.root, o.chosen, o.seen, o.order = e, map[string]*Entry{}, map[*Entry]bool{}, nil
		err := o.add(e, nil)
		if err == nil {
			return o.order, nil
		}
		if err != errRestart {
			return nil, err
		}
	}
	return nil, &DependencyError{[]string{e.Name}, "no versions were found that suit each other; relax a version constraint"}
}

func (o *ordering) add(e *Entry, way []*Entry) error {
	if slices.Contains(way, e) {
		return &DependencyError{dependencyPath(way, e.Name), "circular dependency; remove one of the dependencies"}
	}
	if o.seen[e] {
		return nil
	}
	if o.seen[e] = true; len(o.seen) > maxDependencies {
		return &DependencyError{dependencyPath(way, e.Name), fmt.Sprintf("too many dependencies (limit %d)", maxDependencies)}
	}
	way = append(slices.Clip(way), e)
	needs, err := o.dependencies(e)
	if err != nil {
		return err
	}
	for _, ref := range needs {
		dep, err := o.choose(ref, way)
		if err != nil {
			return err
		}
		if dep == nil {
			continue // unknown dependency
		}
		if err := o.add(dep, way); err != nil {
			return err
		}
	}
	o.order = append(o.order, e)
	return nil
}

// choose returns the skill for a dependency. All skills with that dependency
// get the same one.
func (o *ordering) choose(ref string, way []*Entry) (*Entry, error) {
	q := o.s.parseRef(ref)
	fault := func(format string, args ...any) error {
		return &DependencyError{dependencyPath(way, ref), fmt.Sprintf(format, args...)}
	}
	if q.bad {
		return nil, fault("invalid version constraint %q", q.constraint)
	}
	name := skillname.Normalize(q.name)
	n := need{way[len(way)-1].Name, ref, q.want}
	if !slices.ContainsFunc(o.needs[name], n.same) {
		o.needs[name] = append(o.needs[name], n)
	}
	dep := o.chosen[name]
	switch {
	case name == o.root.Name: // the requested skill is never replaced
		dep = o.root
	case dep == nil:
		if dep = o.firstSatisfying(q.candidates, o.needs[name]); dep == nil {
			if len(q.candidates) == 0 {
				return nil, nil
			}
			if o.s.find(q) == nil {
				return nil, fault("%v", o.s.notFound(q))
			}
			return nil, fault("no version satisfies all of: %s", needTexts(o.needs[name]))
		}
		o.chosen[name] = dep
		return dep, nil
	}
	if satisfies(dep.Version, q.want) {
		return dep, nil
	}
	if dep != o.root && o.firstSatisfying(q.candidates, o.needs[name]) != nil {
		return nil, errRestart
	}
	if others := slices.DeleteFunc(slices.Clone(o.needs[name]), n.same); len(others) > 0 {
		return nil, fault("%s, but %s is %s, chosen because %s", n, name, versionText(dep), needTexts(others))
	}
	return nil, fault("%s, but %s is %s", n, name, versionText(dep))
}

// firstSatisfying returns the first candidate that is available and satisfies
// all constraints.
func (o *ordering) firstSatisfying(candidates []*Entry, needs []need) *Entry {
	for _, e := range candidates {
		if o.s.hidden(e) == "" && !slices.ContainsFunc(needs, func(n need) bool { return !satisfies(e.Version, n.want) }) {
			return e
		}
	}
	return nil
}

func needTexts(needs []need) string {
	var out []string
	for _, n := range needs[:min(len(needs), 5)] {
		out = append(out, n.String())
	}
	return strings.Join(out, ", ")
}

func dependencyPath(way []*Entry, last string) []string {
	var out []string
	for _, e := range way {
		out = append(out, e.Name)
	}
	return append(out, last)
}

func versionText(e *Entry) string {
	if e.Version == "" {
		return "without a version"
	}
	return "version " + e.Version
}
