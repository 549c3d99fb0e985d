//go:build unix

package heldchange

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/limittest"
	"github.com/loadout-dev/loadout/internal/overlay"
)

// With too many open files, no change is lost or counts as none.
func TestWithinLimits(t *testing.T) {
	dir := t.TempDir()
	s := New(filepath.Join(t.TempDir(), "changes"))
	limittest.EachOpen(t, func() error { return s.Add(t.Context(), dir, "skill", []overlay.Stored{create("a", "1")}) }, func(err error) {
		if !strings.HasPrefix(err.Error(), "store pending changes: ") {
			t.Error(err)
		}
	})
	var all []Change
	limittest.EachOpen(t, func() (err error) { all, err = s.List(dir); return err }, func(err error) {
		if len(all) > 0 || !strings.HasPrefix(err.Error(), "list pending changes: ") {
			t.Errorf("%v with %v", all, err)
		}
	})
	if len(all) != 1 {
		t.Fatalf("listed %v", all)
	}
	limittest.EachOpen(t, func() error { return s.Remove(t.Context(), dir, all) }, func(err error) {
		if !strings.HasPrefix(err.Error(), "remove pending changes: ") {
			t.Error(err)
		}
	})
	if got := paths(t, s, dir); len(got) > 0 {
		t.Errorf("%q are left", got)
	}
	file := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := New(filepath.Join(file, "x")).Add(t.Context(), dir, "skill", nil); err == nil {
		t.Error("stored below a file")
	}
}

// Only the change that was shown is removed. Directories without changes are not
// listed, and the others are in order.
func TestRemoveAndDirs(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	s := New(filepath.Join(t.TempDir(), "changes"))
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	if err := s.Add(ctx, link, "skill", []overlay.Stored{create("a", "1"), create("b", "1"), create("c", "2")}); err != nil {
		t.Fatal(err)
	}
	all, err := s.List(dir)
	if err != nil || len(all) != 3 {
		t.Fatalf("%v, %v", all, err)
	}
	other := all[0]
	other.Path = "c" // the time of c, but other content
	if err := s.Remove(ctx, dir, []Change{all[1], other}); err != nil {
		t.Fatal(err)
	}
	if got, want := paths(t, s, dir), []string{"a=1", "c=2"}; !slices.Equal(got, want) {
		t.Errorf("left %q, want %q", got, want)
	}
	var want []string
	for range 5 {
		d := resolve(t.TempDir())
		want = append(want, d)
		if err := s.Add(ctx, d, "skill", []overlay.Stored{create("a", "1")}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Remove(ctx, dir, all); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(s.dir, "damaged.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	slices.Sort(want)
	if got := s.Dirs(); !slices.Equal(got, want) {
		t.Errorf("directories %q, want %q", got, want)
	}
}

// Changes that cannot be stored together are not stored at all.
func TestLargeChanges(t *testing.T) {
	s, dir := New(filepath.Join(t.TempDir(), "changes")), t.TempDir()
	part := strings.Repeat("x", maxBytes/8)
	var changes []overlay.Stored
	for _, name := range strings.Split("abcdefgh", "") {
		changes = append(changes, create(name, part))
	}
	if err := s.Add(t.Context(), dir, "skill", changes); err == nil || !strings.Contains(err.Error(), "pending changes too large") {
		t.Errorf("error %v", err)
	}
	if got := paths(t, s, dir); len(got) > 0 {
		t.Errorf("stored %d of them", len(got))
	}
}
