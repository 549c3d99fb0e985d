// Package requirement checks the text of Python requirements.
package requirement

import "github.com/loadout-dev/loadout/internal/lazyregexp"

// MaxLength is the maximum length of a requirement in SKILL.md, in bytes.
const MaxLength = 300

const (
	space         = `[ \t]*`
	versionClause = `(?:===|==|!=|<=|>=|~=|<|>)` + space + `[A-Za-z0-9.*+!_-]+`
	versionList   = versionClause + `(?:` + space + `,` + space + versionClause + `)*` + space + `,?`
)

var (
	released = lazyregexp.New(`^[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?` + space +
		`(?:\[[A-Za-z0-9._, \t-]*\])?` + space + `(?:` + versionList + `|\(` + space + versionList + space + `\))?` + space + `(?:;[A-Za-z0-9_.,<>=!~'"() \t+*-]+)?$`)
	direct = lazyregexp.New(`(?i)^(?:(?:git|hg|svn|bzr)\+|[a-z][a-z0-9+.-]*://|file:|\.{0,2}/|\.\.?$|~|[a-z]:\\|\\)|[A-Za-z0-9\]][ \t]*@|\.(?:whl|zip|tar\.gz|tgz|tar\.bz2)$|[/\\]`)
)

// IsReleased reports whether text requires a released package: a name, possibly
// with extras, versions and a marker, as in PEP 508 without URLs.
func IsReleased(text string) bool { return released.MatchString(text) }

// IsDirect reports whether a requirement, given without its marker, refers to a
// URL or a path.
func IsDirect(text string) bool { return direct.MatchString(text) }
