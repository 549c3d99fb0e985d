package semver

import (
	"strings"
	"testing"

	masterminds "github.com/Masterminds/semver/v3"
	"pgregory.net/rapid"
)

func TestConstraints(t *testing.T) {
	for _, tt := range []struct{ constraint, allows, denies string }{
		{"1.2.3", "1.2.3 v1.2.3 1.2.3+build", "1.2.4 1.2.3-rc"},
		{"1.2", "1.2.0 1.2.9", "1.3.0"},
		{"=1", "1.0.0 1.9.9", "2.0.0"},
		{"*", "0.0.0 9.9.9", "1.0.0-rc"},
		{"1.x", "1.5", "2.0.0"},
		{"!=1.2.3", "1.2.4", "1.2.3"},
		{"!=1.2.x", "1.3.0", "1.2.0 1.2.3"},
		{">1.2", "1.3.0", "1.2.5"},
		{">=1.2 <2", "1.2.0 1.9.0", "1.1.9 2.0.0"},
		{">=1.2, <2", "1.2.0 1.9.0", "1.1.9 2.0.0"},
		{"<=1.2", "1.2.9", "1.3.0"},
		{"~1.2.3", "1.2.9", "1.3.0 1.2.2"},
		{"^1.2.3", "1.9.0", "2.0.0 1.2.2"},
		{"^0.2.3", "0.2.9", "0.3.0"},
		{"^0.0.3", "0.0.3", "0.0.4"},
		{"1.2 - 1.4", "1.2.0 1.4.9", "1.1.0 1.5.0"},
		{"^1.2 || 3.x", "1.3.0 3.0.0", "2.0.0"},
		{"1||3 - 4", "1.2.0 3.5.0", "2.0.0"},
		{">=1.2.3-rc.1", "1.2.3-rc.1 1.2.3-rc.10 1.2.3", "1.2.3-beta"},
		{"1.0.0 - 2.0.0-rc", "1.5.0-beta 2.0.0-rc", "2.0.0"},
	} {
		c, ok := ParseConstraint(tt.constraint)
		if !ok {
			t.Errorf("%q is refused", tt.constraint)
			continue
		}
		for _, version := range strings.Fields(tt.allows) {
			if v, ok := Parse(version); !ok || !c.Allows(v) {
				t.Errorf("%q does not allow %s", tt.constraint, version)
			}
		}
		for _, version := range strings.Fields(tt.denies) {
			if v, ok := Parse(version); !ok || c.Allows(v) {
				t.Errorf("%q allows %s", tt.constraint, version)
			}
		}
	}
	for _, s := range []string{"", "latest", ">", "1.2.", "1.2.3.4", "1,", "|| 1", "1.2.3-01", ">1 - 2", "1 - 2 - 3", "99999999999999999999", strings.Repeat("1 ", 300), strings.Repeat("1||", 40) + "1"} {
		if _, ok := ParseConstraint(s); ok {
			t.Errorf("the constraint %q is accepted", s)
		}
	}
	for _, s := range []string{"", "x", "1.x", ">1", " 1", "1 ", "1.2.3.4", "1.2.3-01", "V1", "1-", "1+", "99999999999999999999"} {
		if _, ok := Parse(s); ok {
			t.Errorf("the version %q is accepted", s)
		}
	}
}

// oneOf returns a generator of texts that consist of tokens.
func oneOf(most int, tokens ...string) *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(rapid.SampledFrom(tokens), 1, most).Draw(t, "tokens"), "")
	})
}

var (
	number      = rapid.SampledFrom([]string{"0", "1", "2", "3", "10", "007"})
	wildcard    = rapid.SampledFrom([]string{"0", "1", "2", "3", "10", "x", "X", "*"})
	identifiers = rapid.SampledFrom([]string{"", "", "", "-rc", "-rc.1", "-rc.10", "-0", "-1", "-a.b", "-rc+5", "+5", "-x", "-00", "-a-b.1"})
	noise       = oneOf(12, "0", "1", "2", "10", "x", "*", "|", "||", ".", ".", "-", " - ", " ", "\t", ",", "+", "v", "^", "~", ">", "<", "=", "!", "a", "rc", "1.2", "1.2.3-rc.1")
)

func drawVersion(t *rapid.T, part *rapid.Generator[string]) string {
	parts := rapid.SliceOfN(part, 1, 3).Draw(t, "numbers")
	return rapid.SampledFrom([]string{"", "", "v"}).Draw(t, "v") + strings.Join(parts, ".") + identifiers.Draw(t, "suffix")
}

func drawConstraint(t *rapid.T) string {
	space := rapid.SampledFrom([]string{"", "", " ", "  "})
	var b strings.Builder
	for i := range rapid.IntRange(1, 4).Draw(t, "bounds") {
		if i > 0 {
			b.WriteString(rapid.SampledFrom([]string{" ", ", ", ",", " || ", "||", " , "}).Draw(t, "separator"))
		}
		b.WriteString(space.Draw(t, "before"))
		b.WriteString(rapid.SampledFrom([]string{"", "", "=", "!=", ">", "<", ">=", "=>", "<=", "=<", "~", "~>", "^"}).Draw(t, "operator"))
		b.WriteString(space.Draw(t, "after"))
		b.WriteString(drawVersion(t, wildcard))
		if rapid.IntRange(0, 4).Draw(t, "range") == 0 {
			b.WriteString(" - " + drawVersion(t, wildcard))
		}
	}
	return b.String()
}

// Masterminds's library accepts the same versions and constraints, with the same
// result.
func TestMatchesMasterminds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		constraint, version := noise.Draw(t, "constraint"), noise.Draw(t, "version")
		if rapid.IntRange(0, 3).Draw(t, "well-formed") > 0 {
			constraint, version = drawConstraint(t), drawVersion(t, number)
		}
		constraint = strings.ReplaceAll(constraint, "||", " || ") // without spaces, it misreads a range after ||
		v, ok := Parse(version)
		wantVersion, err := masterminds.NewVersion(version)
		if ok != (err == nil) {
			t.Fatalf("Parse(%q) is %t, want %v", version, ok, err)
		}
		c, accepted := ParseConstraint(constraint)
		want, err := masterminds.NewConstraint(constraint)
		if accepted != (err == nil) {
			t.Fatalf("ParseConstraint(%q) is %t, want %v", constraint, accepted, err)
		}
		if !ok || !accepted {
			return
		}
		if got, want := c.Allows(v), want.Check(wantVersion); got != want {
			t.Fatalf("%q allows %s: %t, want %t", constraint, version, got, want)
		}
		if got, want := v.Prerelease(), wantVersion.Prerelease(); got != want {
			t.Fatalf("the prerelease of %s is %q, want %q", version, got, want)
		}
		other := drawVersion(t, number)
		if w, ok := Parse(other); ok {
			if got, want := v.Compare(w), wantVersion.Compare(masterminds.MustParse(other)); got != want {
				t.Fatalf("%s and %s compare to %d, want %d", version, other, got, want)
			}
		}
	})
}
