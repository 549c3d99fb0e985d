package linediff_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/loadout-dev/loadout/internal/linediff"
)

const enough = 1 << 20

// ops returns the operations of the steps.
func ops(steps []linediff.Step) string {
	var b strings.Builder
	for _, s := range steps {
		b.WriteByte(s.Op)
	}
	return b.String()
}

func TestCompare(t *testing.T) {
	for _, test := range []struct{ a, b, want string }{
		{"", "", ""},
		{"a", "", "-"},
		{"", "a", "+"},
		{"a b c", "a b c", "   "},
		{"a b c", "a x c", " -+ "},
		{"a b c", "a c", " - "},
		{"a c", "a b c", " + "},
		{"a b c d", "b c x d", "-  + "},
		{"a a", "a a a", "  +"},
	} {
		if got := ops(linediff.Compare(strings.Fields(test.a), strings.Fields(test.b), enough)); got != test.want {
			t.Errorf("%q to %q: %q, want %q", test.a, test.b, got, test.want)
		}
	}
}

// Texts that need a larger table count as replaced, except for their common ends.
func TestCompareLimits(t *testing.T) {
	a, b := strings.Fields("x a b c y"), strings.Fields("x b c a y")
	if got := ops(linediff.Compare(a, b, 16)); strings.Count(got, " ") != 4 {
		t.Errorf("a table of 16 entries: %q", got)
	}
	if got := ops(linediff.Compare(a, b, 15)); got != " ---+++ " {
		t.Errorf("too small a table: %q", got)
	}
	if got := ops(linediff.Compare(a, b, 0)); got != " ---+++ " {
		t.Errorf("no table: %q", got)
	}
}

// The steps transform one text into the other, whatever the limit of the table.
func TestStepsTransformTheText(t *testing.T) {
	text := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c", ""}), 0, 12)
	rapid.Check(t, func(t *rapid.T) {
		a, b := text.Draw(t, "a"), text.Draw(t, "b")
		steps := linediff.Compare(a, b, rapid.SampledFrom([]int{0, 20, enough}).Draw(t, "maxTable"))
		i, j := 0, 0
		for _, s := range steps {
			if s.A != i || s.B != j {
				t.Fatalf("step %+v at %d, %d", s, i, j)
			}
			if s.Op == ' ' && a[i] != b[j] {
				t.Fatalf("%q is stored as %q", a[i], b[j])
			}
			if s.Op != '+' {
				i++
			}
			if s.Op != '-' {
				j++
			}
		}
		if i != len(a) || j != len(b) {
			t.Fatalf("the steps end at %d of %d and %d of %d", i, len(a), j, len(b))
		}
		hunks := linediff.Hunks(steps, rapid.IntRange(0, 3).Draw(t, "context"))
		for _, h := range hunks {
			var pairs linediff.Hunk
			for s, other := range h.Pairs() {
				pairs = append(pairs, s)
				if other >= 0 && (s.Op == ' ' || s.Op == '-' && other >= len(b) || s.Op == '+' && other >= len(a)) {
					t.Fatalf("step %+v has the counterpart %d", s, other)
				}
			}
			if !slices.Equal(pairs, h) {
				t.Fatalf("pairs of %v are %v", h, pairs)
			}
		}
		if got, want := ops(slices.Concat(hunks...)), ops(steps); strings.Count(got, "-") != strings.Count(want, "-") || strings.Count(got, "+") != strings.Count(want, "+") {
			t.Fatalf("hunks %q of %q", got, want)
		}
	})
}

func TestHunks(t *testing.T) {
	numbers := func(n int) (out []string) {
		for i := range n {
			out = append(out, fmt.Sprint(i))
		}
		return out
	}
	changed := func(n int, at ...int) []string {
		out := numbers(n)
		for _, i := range at {
			out[i] = "x"
		}
		return out
	}
	for _, test := range []struct {
		name string
		a, b []string
		want []string
	}{
		{"the same", numbers(5), numbers(5), nil},
		{"in the middle", numbers(20), changed(20, 9), []string{"@@ -7,7 +7,7 @@"}},
		{"at the ends", numbers(20), changed(20, 0, 19), []string{"@@ -1,4 +1,4 @@", "@@ -17,4 +17,4 @@"}},
		{"that touch", numbers(20), changed(20, 5, 12), []string{"@@ -3,14 +3,14 @@"}},
		{"that do not", numbers(20), changed(20, 5, 13), []string{"@@ -3,7 +3,7 @@", "@@ -11,7 +11,7 @@"}},
		{"all new", nil, numbers(2), []string{"@@ -0,0 +1,2 @@"}},
		{"all gone", numbers(2), nil, []string{"@@ -1,2 +0,0 @@"}},
		{"a line added", numbers(9), append(numbers(9), "x"), []string{"@@ -7,3 +7,4 @@"}},
	} {
		var got []string
		for _, h := range linediff.Hunks(linediff.Compare(test.a, test.b, enough), 3) {
			got = append(got, h.Header())
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}

func TestPairs(t *testing.T) {
	a, b := strings.Fields("same old1 old2 same old3"), strings.Fields("same new1 same new3 new4")
	var got []string
	for _, h := range linediff.Hunks(linediff.Compare(a, b, enough), 1) {
		for s, other := range h.Pairs() {
			got = append(got, fmt.Sprintf("%c%s %d", s.Op, s.Line(a, b), other))
		}
	}
	if want := []string{" same -1", "-old1 1", "-old2 -1", "+new1 1", " same -1", "-old3 3", "+new3 4", "+new4 -1"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestElide(t *testing.T) {
	x := strings.Repeat("ä", 100)
	end := strings.Repeat("ä", 30)
	for _, test := range []struct{ name, a, b, wantA, wantB string }{
		{"short ones stay", "aaab", "aaac", "aaab", "aaac"},
		{"both ends", x + "b" + x, x + "c" + x, "…" + end + "b" + end + "…", "…" + end + "c" + end + "…"},
		{"160 characters stay", strings.Repeat("ä", 159) + "b", strings.Repeat("ä", 159) + "c", strings.Repeat("ä", 159) + "b", strings.Repeat("ä", 159) + "c"},
		{"161 characters", strings.Repeat("ä", 160) + "b", "", strings.Repeat("ä", 160) + "b", ""},
		{"161 characters, alike", strings.Repeat("ä", 160) + "b", strings.Repeat("ä", 160), "…" + end + "b", "…" + end},
		{"nothing in common", strings.Repeat("a", 200), "b", strings.Repeat("a", 200), "b"},
		{"the one begins as the other", x + x, x + x + "b", "…" + end, "…" + end + "b"},
	} {
		if a, b := linediff.Elide(test.a, test.b); a != test.wantA || b != test.wantB {
			t.Errorf("%s: %q, %q", test.name, a, b)
		}
	}
}

// Ranges of lines are as in a unified diff: without lines, that of the line before.
func TestHunkHeader(t *testing.T) {
	for _, tt := range []struct{ a, b, want string }{
		{"", "x", "@@ -0,0 +1,1 @@"}, {"x", "", "@@ -1,1 +0,0 @@"}, {"a b", "a c", "@@ -1,2 +1,2 @@"}, {"a", "a b", "@@ -1,1 +1,2 @@"},
	} {
		hunks := linediff.Hunks(linediff.Compare(strings.Fields(tt.a), strings.Fields(tt.b), enough), 1)
		if len(hunks) != 1 || hunks[0].Header() != tt.want {
			t.Errorf("%q to %q: %v, want %s", tt.a, tt.b, hunks, tt.want)
		}
	}
	if hunks := linediff.Hunks(linediff.Compare(strings.Fields("a b c d e f"), strings.Fields("x b c d e y"), enough), 2); len(hunks) != 1 {
		t.Errorf("hunks that touch are %d", len(hunks))
	}
	if hunks := linediff.Hunks(linediff.Compare(strings.Fields("a b c d e f"), strings.Fields("x b c d e y"), enough), 1); len(hunks) != 2 {
		t.Errorf("hunks apart are %d", len(hunks))
	}
}
