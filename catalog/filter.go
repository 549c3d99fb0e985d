package catalog

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/loadout-dev/loadout/internal/semver"
	"github.com/loadout-dev/loadout/internal/skillname"
)

// Filter decides which skills are available. The zero value allows all skills.
type Filter struct {
	// Disabled disables all skills.
	Disabled bool
	// Allow, if not empty, lists the available skills as names, globs
	// (docs-*), or either with a version constraint (pdf@>=1.2). Globs have the
	// syntax of [path.Match]. A skill without a semantic version satisfies no
	// constraint.
	Allow []string
	// Select, if not nil, lists the skills assigned to an agent, as "name" or
	// "origin/name". If Allow is not empty, a skill must also be in Allow.
	Select []string
	// Shell is the kind of user interface. It hides skills whose bindShells
	// lists only other kinds; letter case is ignored. If Shell is empty, it
	// hides nothing.
	Shell string
}

// Matcher returns a function that returns the reason why the filter hides a
// skill, or "" if it does not. It is for sources that wrap another source. The
// function is safe for concurrent use and ignores later changes to the filter.
// Matcher returns an error if a pattern is invalid.
func (f Filter) Matcher() (hides func(*Entry) string, err error) {
	compiled, err := f.compile()
	if err != nil {
		return nil, err
	}
	return func(e *Entry) string {
		if compiled.disabled {
			return "skills are switched off"
		}
		return compiled.reason(e)
	}, nil
}

type filter struct {
	disabled bool
	shell    string
	allow    []allowRule
	chosen   map[string]bool // "name" or "origin/name"; nil allows all
}

type allowRule struct {
	pattern string
	want    *semver.Constraint
}

// compile parses the patterns. It returns an error if a pattern is invalid,
// because an allowlist must not allow more than intended.
func (f Filter) compile() (*filter, error) {
	out := &filter{disabled: f.Disabled, shell: f.Shell}
	for _, a := range f.Allow {
		pattern, constraint, versioned := strings.Cut(strings.TrimSpace(a), "@")
		if _, err := path.Match(pattern, ""); err != nil || pattern == "" {
			return nil, fmt.Errorf("allowlist: invalid pattern %q: want a name or a glob such as docs-*", a)
		}
		rule := allowRule{pattern: skillname.Normalize(pattern)}
		if versioned {
			want, ok := semver.ParseConstraint(constraint)
			if !ok {
				return nil, fmt.Errorf("allowlist: invalid version constraint in %q: want a constraint such as %s@>=1.2", a, pattern)
			}
			rule.want = want
		}
		out.allow = append(out.allow, rule)
	}
	if f.Select != nil {
		out.chosen = make(map[string]bool, len(f.Select))
		for _, s := range f.Select {
			out.chosen[skillname.Normalize(strings.TrimSpace(s))] = true
		}
	}
	return out, nil
}

// selects reports whether the filter can hide individual skills, rather than
// all or none of them.
func (f *filter) selects() bool { return len(f.allow) > 0 || f.chosen != nil || f.shell != "" }

// reason returns the reason why a skill is not available, or "" if it is.
func (f *filter) reason(e *Entry) string {
	if len(f.allow) > 0 && !slices.ContainsFunc(f.allow, func(a allowRule) bool {
		ok, _ := path.Match(a.pattern, e.Name)
		return ok && satisfies(e.Version, a.want)
	}) {
		return "not on the allowlist (skills.allow)"
	}
	if f.chosen != nil && !f.chosen[e.Name] && !f.chosen[e.Origin+"/"+e.Name] {
		return "not among the skills of this profile"
	}
	if f.shell != "" && len(e.BindShells) > 0 && !slices.ContainsFunc(e.BindShells, func(s string) bool { return strings.EqualFold(s, f.shell) }) {
		return fmt.Sprintf("bound to %s (bindShells), but this is %s", strings.Join(e.BindShells, ", "), f.shell)
	}
	return ""
}
