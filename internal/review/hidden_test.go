package review_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/review"
	"github.com/loadout-dev/loadout/internal/untrusted"
	"github.com/loadout-dev/loadout/policy"
)

const plainSkill = "---\nname: pdf\ndescription: What it does.\n---\nRead it.\n"

// write adds a file to the skill of the entry.
func write(t *testing.T, e *catalog.Entry, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(e.Path, name), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestReadHidden(t *testing.T) {
	rt, e := open(t, plainSkill)
	read := func() *review.Hidden {
		t.Helper()
		r := review.New(&loadout.ApprovalRequest{Entry: e}, review.Options{})
		if err := r.ReadHidden(t.Context(), rt); err != nil {
			t.Fatal(err)
		}
		return r.Hidden
	}
	write(t, e, "notes.md", "nothing to see\n")
	write(t, e, "data.bin", "\x00\u202e\n") // no model gets it as text
	if got := read(); got != nil {
		t.Errorf("a clean skill has hidden lines: %+v", got)
	}
	write(t, e, "notes.md", "one\ntw\u202eo\n")
	got := read()
	if got == nil || len(got.Lines) != 1 || got.Others != 0 || got.Lines[0].File != "notes.md" || strings.Contains(got.Lines[0].Text, "\u202e") {
		t.Fatalf("hidden lines are %+v", got)
	}
	if want, _ := untrusted.VisibleLines("one\ntw\u202eo\n", 20); !cmp.Equal(got.Lines[0].Line, want[0]) {
		t.Errorf("line %+v, want %+v", got.Lines[0].Line, want[0])
	}
	write(t, e, "more.md", strings.Repeat("\u202e\n", 25))
	if got := read(); len(got.Lines) != 20 || got.Others != 6 {
		t.Errorf("%d lines and %d others, want 20 and 6", len(got.Lines), got.Others)
	}
	gone := review.New(&loadout.ApprovalRequest{Entry: &catalog.Entry{Name: "gone", Origin: "nowhere", Path: "gone"}}, review.Options{})
	if err := gone.ReadHidden(t.Context(), rt); err == nil || gone.Hidden != nil {
		t.Errorf("a missing skill: %v", err)
	}
	if err := gone.ReadLimits(t.Context(), rt); err == nil {
		t.Error("a missing skill has limits")
	}
}

func TestChangedGrants(t *testing.T) {
	rt, e := open(t, plainSkill)
	request, err := rt.ReadApprovalRequest(t.Context(), "pdf")
	if err != nil {
		t.Fatal(err)
	}
	grant := func(id string, change func(*policy.Grant)) policy.Grant {
		g := review.New(request, review.Options{}).Grant()
		g.ID = id
		change(&g)
		return g
	}
	grants := []policy.Grant{
		grant("same", func(*policy.Grant) {}),
		grant("digest", func(g *policy.Grant) { g.Subject = "sha256:1" }),
		grant("needs", func(g *policy.Grant) { g.Needs = []policy.Need{{Name: "csv", Digest: "sha256:2"}} }),
		grant("tool", func(g *policy.Grant) { g.Subject, g.Permissions = "sha256:1", policy.Permissions{Call: true} }),
		grant("gone", func(g *policy.Grant) { g.Name = "gone" }),
	}
	changed := func(want ...string) {
		t.Helper()
		got := review.ChangedGrants(t.Context(), rt, grants)
		for _, g := range grants {
			is := false
			for _, w := range want {
				is = is || w == g.ID
			}
			if got[g.ID] != is {
				t.Errorf("%s changed: %t, want %t", g.ID, got[g.ID], is)
			}
		}
	}
	changed("digest", "needs")
	write(t, e, "mcp.json", "{")
	changed("same", "digest", "needs")
}
