// Package semver compares semantic versions and checks them against constraints
// such as "^1.2 || 3.x". Start reading at [ParseConstraint].
//
// It accepts what github.com/Masterminds/semver accepts, and also reads a range that
// directly follows "||" correctly. That library compiles five regular expressions
// whenever the program starts. A test compares the two.
package semver

import (
	"strconv"

	"golang.org/x/mod/semver"

	"github.com/loadout-dev/loadout/internal/lazyregexp"
)

// Version is a semantic version without its build metadata.
type Version struct {
	numbers [3]uint64 // major, minor, patch
	pre     string
}

const (
	maxVersion = 256 // in bytes
	suffix     = `(?:-([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?(?:\+[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?`
)

var versionPattern = lazyregexp.New(`^v?([0-9]+)(?:\.([0-9]+))?(?:\.([0-9]+))?` + suffix + `$`)

// Parse parses a version such as 1.2.3-rc.1+linux. A leading v is ignored, and
// missing numbers are 0. Parse returns false if s is not a version.
func Parse(s string) (Version, bool) {
	m := versionPattern.FindStringSubmatch(s)
	if m == nil || len(s) > maxVersion {
		return Version{}, false
	}
	b, ok := newBound(m[1:])
	return b.Version, ok
}

// newBound returns the bound with the given numbers and prerelease.
func newBound(parts []string) (b bound, ok bool) {
	for i, part := range parts[:3] {
		if part == "" || part == "x" || part == "X" || part == "*" {
			break // the numbers that follow are ignored
		}
		n, err := strconv.ParseUint(part, 10, 64)
		if err != nil {
			return bound{}, false
		}
		b.numbers[i], b.known = n, i+1
	}
	b.pre = parts[3]
	return b, b.pre == "" || semver.IsValid("v0.0.0-"+b.pre)
}

// Prerelease returns the part of v after the hyphen, or "".
func (v Version) Prerelease() string { return v.pre }

// Compare returns -1, 0 or 1. A prerelease is less than its release.
func (v Version) Compare(w Version) int {
	switch order := compareLeading(v, w, 3); {
	case order != 0 || v.pre == w.pre:
		return order
	case v.pre == "":
		return 1
	case w.pre == "":
		return -1
	}
	return semver.Compare("v0.0.0-"+v.pre, "v0.0.0-"+w.pre)
}
