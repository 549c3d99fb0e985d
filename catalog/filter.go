package catalog

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"

	"github.com/loadout-dev/loadout/skill"
)

// Filter decides which of the known skills are available. It is the one place
// where that is checked. The zero Filter lets everything through.
type Filter struct {
	// Disabled switches skills off.
	Disabled bool
	// Allow, where not empty, names the only skills that are available:
	// names, globs (docs-*), or either with a version constraint
	// (pdf@>=1.2).
	Allow []string
	// Select, where not nil, names the skills that an agent was given: of what
	// Allow lets through only these are available, by name or "origin/name".
	Select []string
	// Shell is the kind of face that asks, for skills bound to some kinds
	// by bindShells; "" hides none.
	Shell string
}

// Matcher returns what says of a skill why the filter hides it, "" where it does not: for
// who wraps a source. A pattern that cannot be read is an error.
func (f Filter) Matcher() (hides func(*Entry) string, err error) {
	compiled, err := f.compile()
	if err != nil {
		return nil, err
	}
	return func(e *Entry) string {
		if compiled.disabled {
			return "skills are switched off"
		}
		return compiled.hides(e)
	}, nil
}

type filter struct {
	disabled bool
	shell    string
	allow    []allowed
	chosen   []string // names, or origin and name; nil chooses all
}

type allowed struct {
	pattern string
	want    *semver.Constraints
}

// compile checks the patterns. A pattern that cannot be read is an error: an
// allow-list must not let more through than was meant.
func (f Filter) compile() (*filter, error) {
	out := &filter{disabled: f.Disabled, shell: f.Shell}
	for _, a := range f.Allow {
		pattern, constraint, versioned := strings.Cut(strings.TrimSpace(a), "@")
		if _, err := path.Match(pattern, ""); err != nil || pattern == "" {
			return nil, fmt.Errorf("allow-list: %q is no name and no pattern; write names, or globs as docs-*", a)
		}
		rule := allowed{pattern: skill.NormalizeName(pattern)}
		if versioned {
			want, err := semver.NewConstraint(constraint)
			if err != nil {
				return nil, fmt.Errorf("allow-list: %q has no valid version constraint; write for example %s@>=1.2", a, pattern)
			}
			rule.want = want
		}
		out.allow = append(out.allow, rule)
	}
	if f.Select != nil {
		out.chosen = []string{}
		for _, s := range f.Select {
			out.chosen = append(out.chosen, skill.NormalizeName(strings.TrimSpace(s)))
		}
	}
	return out, nil
}

// selects reports whether there is anything that some skills are hidden for.
func (f *filter) selects() bool { return len(f.allow) > 0 || f.chosen != nil || f.shell != "" }

// hides returns why a skill is not available, "" where it is.
func (f *filter) hides(e *Entry) string {
	if len(f.allow) > 0 && !slices.ContainsFunc(f.allow, func(a allowed) bool {
		ok, _ := path.Match(a.pattern, e.Name)
		return ok && satisfies(e.Version, a.want)
	}) {
		return "not on the allow-list (skills.allow)"
	}
	if f.chosen != nil && !slices.Contains(f.chosen, e.Name) && !slices.Contains(f.chosen, e.Origin+"/"+e.Name) {
		return "not among the skills of this profile"
	}
	if f.shell != "" && len(e.BindShells) > 0 && !slices.ContainsFunc(e.BindShells, func(s string) bool { return strings.EqualFold(s, f.shell) }) {
		return fmt.Sprintf("bound to %s (bindShells), and this is %s", strings.Join(e.BindShells, ", "), f.shell)
	}
	return ""
}
