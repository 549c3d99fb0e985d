package catalog

import (
	"fmt"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
)

// DependencyError says why the skills that a skill needs cannot be loaded.
type DependencyError struct {
	Path   []string // from the skill that was asked for to the one at fault
	Reason string
}

func (e *DependencyError) Error() string {
	return strings.Join(e.Path, " → ") + ": " + e.Reason
}

// maxDependencies bounds how many skills one load can bring.
const maxDependencies = 64

// LoadOrder returns the skills that e needs and e itself, each after those it
// needs. A cycle, a missing skill or two needs that exclude each other are a
// [*DependencyError] that names the way to it.
func (s *Snapshot) LoadOrder(e *Entry) ([]*Entry, error) {
	o := ordering{s: s, chosen: map[string]*Entry{e.Name: e}, why: map[string]string{}}
	if err := o.add(e, nil); err != nil {
		return nil, err
	}
	return o.order, nil
}

type ordering struct {
	s      *Snapshot
	chosen map[string]*Entry // by name
	why    map[string]string // who asked first, and for what
	order  []*Entry
}

func (o *ordering) add(e *Entry, way []string) error {
	if i := slices.Index(way, e.Name); i >= 0 {
		return &DependencyError{append(slices.Clone(way), e.Name), "the skills need each other in a circle; remove one of the dependencies"}
	}
	if slices.Contains(o.order, e) {
		return nil
	}
	if len(o.chosen) > maxDependencies {
		return &DependencyError{append(slices.Clone(way), e.Name), fmt.Sprintf("more than %d skills are needed", maxDependencies)}
	}
	way = append(slices.Clone(way), e.Name)
	for _, ref := range e.Dependencies {
		dep, err := o.choose(ref, way)
		if err != nil {
			return err
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
func (o *ordering) choose(ref string, way []string) (*Entry, error) {
	name, constraint, _ := strings.Cut(ref, "@")
	name = strings.TrimSpace(name)
	asked := fmt.Sprintf("%s asks for %s", way[len(way)-1], ref)
	dep := o.chosen[name]
	if dep == nil {
		var err error
		if dep, err = o.s.Get(ref); err != nil {
			return nil, &DependencyError{append(slices.Clone(way), ref), err.Error()}
		}
		o.chosen[name], o.why[name] = dep, asked
		return dep, nil
	}
	if constraint == "" {
		return dep, nil
	}
	want, err := semver.NewConstraint(constraint)
	if err != nil {
		return nil, &DependencyError{append(slices.Clone(way), ref), fmt.Sprintf("%q is no version constraint", constraint)}
	}
	if !satisfies(dep.Version, want) {
		reason := fmt.Sprintf("%s, but %s is %s", asked, name, versionText(dep))
		if first := o.why[name]; first != "" {
			reason += ", chosen because " + first
		}
		return nil, &DependencyError{append(slices.Clone(way), ref), reason}
	}
	return dep, nil
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
	var out []*Entry
	for _, other := range s.shown {
		if other == e || len(other.Dependencies) == 0 {
			continue
		}
		if order, err := s.LoadOrder(other); err == nil && slices.Contains(order, e) {
			out = append(out, other)
		}
	}
	return out
}
