package catalog

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"

	"github.com/loadout-dev/loadout/skill"
)

// DependencyError says why the skills that a skill needs cannot be loaded.
type DependencyError struct {
	Path   []string // from the skill that was asked for to the one at fault
	Reason string
}

func (e *DependencyError) Error() string {
	return strings.Join(e.Path, " → ") + ": " + e.Reason
}

const (
	// maxDependencies bounds how many skills one load can bring.
	maxDependencies = 64
	// maxRounds bounds how often the choice of versions is begun again.
	maxRounds = 16
)

// LoadOrder returns the skills that e needs and e itself, each after those it
// needs. Where several skills need one, it is the first version that suits all
// of them. A cycle, a skill that is hidden and needs that exclude each other are
// a [*DependencyError] that names the way to it. What no skill answers to is
// left out, as real files name packages of other systems there; see
// [Snapshot.Missing].
func (s *Snapshot) LoadOrder(e *Entry) ([]*Entry, error) {
	o := ordering{s: s, needs: map[string][]need{}}
	var err error
	for range maxRounds {
		o.root, o.chosen, o.seen, o.order = e, map[string]*Entry{}, map[*Entry]bool{}, nil
		if err = o.add(e, nil); err == nil {
			return o.order, nil
		}
		if err != errAgain {
			return nil, err
		}
	}
	return nil, &DependencyError{[]string{e.Name}, "no versions were found that suit each other; relax a version constraint"}
}

// Missing returns the dependencies of e that no skill answers to.
func (s *Snapshot) Missing(e *Entry) []string {
	var out []string
	for _, ref := range e.Dependencies {
		if q := s.question(ref); !q.bad && len(q.candidates) == 0 {
			out = append(out, ref)
		}
	}
	return out
}

// need is what one skill asks of another.
type need struct {
	by, ref string
	want    *semver.Constraints
}

func (n need) String() string   { return n.by + " asks for " + n.ref }
func (n need) same(m need) bool { return n.by == m.by && n.ref == m.ref }

type ordering struct {
	s      *Snapshot
	root   *Entry
	needs  map[string][]need // by name, of this round and those before
	chosen map[string]*Entry // by name
	seen   map[*Entry]bool
	order  []*Entry
}

// errAgain says that a need came up for which another version has to be chosen
// from the start.
var errAgain = errors.New("choose again")

func (o *ordering) add(e *Entry, way []*Entry) error {
	if slices.Contains(way, e) {
		return &DependencyError{pathOf(way, e.Name), "the skills need each other in a circle; remove one of the dependencies"}
	}
	if o.seen[e] {
		return nil
	}
	if o.seen[e] = true; len(o.seen) > maxDependencies {
		return &DependencyError{pathOf(way, e.Name), fmt.Sprintf("more than %d skills are needed", maxDependencies)}
	}
	way = append(slices.Clip(way), e)
	for _, ref := range e.Dependencies {
		dep, err := o.choose(ref, way)
		if err != nil {
			return err
		}
		if dep == nil {
			continue // unknown
		}
		if err := o.add(dep, way); err != nil {
			return err
		}
	}
	o.order = append(o.order, e)
	return nil
}

// choose returns the skill that a dependency stands for, the same one for
// every skill that needs it.
func (o *ordering) choose(ref string, way []*Entry) (*Entry, error) {
	q := o.s.question(ref)
	fault := func(format string, args ...any) error {
		return &DependencyError{pathOf(way, ref), fmt.Sprintf(format, args...)}
	}
	if q.bad {
		return nil, fault("%q is no version constraint", q.constraint)
	}
	name := skill.NormalizeName(q.name)
	n := need{way[len(way)-1].Name, ref, q.want}
	if !slices.ContainsFunc(o.needs[name], n.same) {
		o.needs[name] = append(o.needs[name], n)
	}
	dep := o.chosen[name]
	switch {
	case name == o.root.Name: // what is loaded answers to its own name
		dep = o.root
	case dep == nil:
		if dep = o.suits(q.candidates, o.needs[name]); dep == nil {
			if len(q.candidates) == 0 {
				return nil, nil
			}
			if o.s.answer(q) == nil {
				return nil, fault("%v", o.s.notFound(q))
			}
			return nil, fault("no version suits all: %s", needTexts(o.needs[name]))
		}
		o.chosen[name] = dep
		return dep, nil
	}
	if satisfies(dep.Version, q.want) {
		return dep, nil
	}
	if dep != o.root && o.suits(q.candidates, o.needs[name]) != nil {
		return nil, errAgain
	}
	if others := slices.DeleteFunc(slices.Clone(o.needs[name]), n.same); len(others) > 0 {
		return nil, fault("%s, but %s is %s, chosen because %s", n, name, versionText(dep), needTexts(others))
	}
	return nil, fault("%s, but %s is %s", n, name, versionText(dep))
}

// suits returns the first of the candidates that is available and satisfies
// all needs.
func (o *ordering) suits(candidates []*Entry, needs []need) *Entry {
	for _, e := range candidates {
		if o.s.hidden[e] == "" && !slices.ContainsFunc(needs, func(n need) bool { return !satisfies(e.Version, n.want) }) {
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

func pathOf(way []*Entry, last string) []string {
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

// Dependents are the skills that need e, directly or through others, in order
// of their names.
func (s *Snapshot) Dependents(e *Entry) []*Entry {
	needs := map[*Entry][]*Entry{} // who names it
	for _, other := range s.shown {
		for _, ref := range other.Dependencies {
			if dep := s.answer(s.question(ref)); dep != nil {
				needs[dep] = append(needs[dep], other)
			}
		}
	}
	found := map[*Entry]bool{e: true}
	var out []*Entry
	for queue := []*Entry{e}; len(queue) > 0; queue = queue[1:] {
		for _, other := range needs[queue[0]] {
			if !found[other] {
				found[other] = true
				out = append(out, other)
				queue = append(queue, other)
			}
		}
	}
	slices.SortFunc(out, func(a, b *Entry) int { return cmp.Compare(a.Name, b.Name) })
	return out
}
