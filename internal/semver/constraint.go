package semver

import (
	"slices"
	"strings"

	"github.com/loadout-dev/loadout/internal/lazyregexp"
)

const (
	maxLength = 512 // of a constraint in bytes
	maxGroups = 32  // of bounds, separated by ||
)

// Constraint is a set of versions. A version is in it if it satisfies all bounds of
// one of its groups.
type Constraint struct{ groups [][]bound }

// bound is a condition such as >=1.2.
type bound struct {
	op string // "" for none
	Version
	known int // number of version numbers without wildcard; the others are 0
}

var boundPattern = lazyregexp.New(`^\s*(!=|>=|=>|<=|=<|~>|>|<|=|~|\^)?\s*v?([0-9xX*|]+)(?:\.([0-9xX*|]+))?(?:\.([0-9xX*|]+))?` + suffix)

const spaces = "\t\n\f\r "

// ParseConstraint parses groups of bounds that are separated by ||. The bounds of
// a group are separated by spaces or commas. A bound has one of the operators =,
// !=, >, >=, <, <=, ~ and ^, or is a range such as 1.2 - 1.4. ParseConstraint
// returns false if s is not a constraint.
func ParseConstraint(s string) (*Constraint, bool) {
	parts := strings.Split(s, "||")
	if len(s) > maxLength || len(parts) > maxGroups {
		return nil, false
	}
	c := &Constraint{}
	for _, part := range parts {
		group, ok := parseGroup(part)
		if !ok {
			return nil, false
		}
		c.groups = append(c.groups, group)
	}
	return c, true
}

func parseGroup(s string) (group []bound, ok bool) {
	mayBeRange := true
	for {
		b, rest, ok := scanBound(s)
		if !ok {
			return nil, false
		}
		upper, after, isRange := scanUpper(rest)
		if isRange = isRange && mayBeRange && b.op == ""; isRange {
			b.op, upper.op = ">=", "<="
			group, rest = append(group, b, upper), " "+after
		} else {
			group = append(group, b)
		}
		if s = strings.TrimLeft(rest, spaces); s == "" {
			return group, true
		}
		after, comma := strings.CutPrefix(s, ",")
		if !comma && s == rest {
			return nil, false
		}
		s, mayBeRange = after, comma || isRange
	}
}

// scanBound scans the bound at the start of s.
func scanBound(s string) (b bound, rest string, ok bool) {
	m := boundPattern.FindStringSubmatch(s)
	if m == nil {
		return bound{}, "", false
	}
	b, ok = newBound(m[2:])
	b.op = m[1]
	return b, s[len(m[0]):], ok
}

// scanUpper scans the rest of a range, after its lower bound.
func scanUpper(s string) (upper bound, rest string, ok bool) {
	after, ok := strings.CutPrefix(strings.TrimLeft(s, spaces), "-")
	if !ok || after == "" || !strings.Contains(spaces, s[:1]) || !strings.Contains(spaces, after[:1]) {
		return bound{}, "", false
	}
	upper, rest, ok = scanBound(after)
	return upper, rest, ok && upper.op == ""
}

// Allows reports whether v satisfies c. A prerelease satisfies only groups with a
// bound that is a prerelease too.
func (c *Constraint) Allows(v Version) bool {
	for _, group := range c.groups {
		all, pre := true, false
		for _, b := range group {
			all = all && b.allows(v)
			pre = pre || b.pre != ""
		}
		if all && (v.pre == "" || pre) {
			return true
		}
	}
	return false
}

func (b bound) allows(v Version) bool {
	order := v.Compare(b.Version)
	leading := order // order by the known numbers; * is like 0.0.0 here
	if b.known == 1 || b.known == 2 {
		leading = compareLeading(v, b.Version, b.known)
	}
	switch b.op {
	case "!=":
		return leading != 0 || b.known == 2 && v.pre != b.pre
	case ">":
		return leading > 0
	case "<":
		return order < 0
	case ">=", "=>":
		return order >= 0
	case "<=", "=<":
		return leading <= 0 || b.known == 0 && compareLeading(v, b.Version, 2) <= 0
	case "^": // up to the first number that is not 0
		n := 1
		for n < 3 && b.numbers[n-1] == 0 && b.known != n {
			n++
		}
		return order >= 0 && compareLeading(v, b.Version, n) == 0
	case "", "=":
		if b.known == 3 {
			return order == 0
		}
	}
	if b.numbers == [3]uint64{} && b.known%3 == 0 { // * or 0.0.0
		return order >= 0
	}
	return order >= 0 && compareLeading(v, b.Version, min(b.known, 2)) == 0
}

// compareLeading compares the first n numbers.
func compareLeading(v, w Version, n int) int { return slices.Compare(v.numbers[:n], w.numbers[:n]) }
