package heldchange

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/loadout-dev/loadout/internal/overlay"
)

func create(path, content string) overlay.Stored {
	return overlay.Stored{Path: path, Op: overlay.Create, Mode: 0o644, Reader: "agents", Content: []byte(content)}
}

func paths(t *testing.T, s *Store, dir string) []string {
	t.Helper()
	list, err := s.List(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, c := range list {
		out = append(out, c.Path+"="+string(c.Content))
	}
	return out
}

func TestStore(t *testing.T) {
	ctx, dir, other := t.Context(), t.TempDir(), t.TempDir()
	s := New(filepath.Join(t.TempDir(), "changes"))
	add := func(dir string, c ...overlay.Stored) error { return s.Add(ctx, dir, "skill", c) }
	if got := paths(t, s, dir); got != nil {
		t.Errorf("empty store: %q", got)
	}
	for _, err := range []error{add(dir, create("a", "1"), create("b", "1")), add(dir, create("a", "2")), add(other, create("c", "3"))} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if got, want := paths(t, s, dir), []string{"b=1", "a=2"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want the newest change of each file: %q", got, want)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	if got := paths(t, s, link); len(got) != 2 {
		t.Errorf("by a symlink: %q", got)
	}
	if got := s.Dirs(); len(got) != 2 || !slices.Contains(got, resolve(dir)) {
		t.Errorf("directories %q", got)
	}

	// A change that was replaced after it was shown is not removed.
	shown, err := s.List(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := add(dir, create("a", "evil")); err != nil {
		t.Fatal(err)
	}
	if err := s.Remove(ctx, dir, shown); err != nil {
		t.Fatal(err)
	}
	if got, want := paths(t, s, dir), []string{"a=evil"}; !slices.Equal(got, want) {
		t.Errorf("after removal: %q, want %q", got, want)
	}

	// Old changes expire.
	s.now = func() time.Time { return time.Now().Add(31 * 24 * time.Hour) }
	if got := paths(t, s, dir); got != nil {
		t.Errorf("after 31 days: %q", got)
	}
}

func TestStoreIsBounded(t *testing.T) {
	s, dir := New(filepath.Join(t.TempDir(), "changes")), t.TempDir()
	var many []overlay.Stored
	for i := range maxCount {
		many = append(many, create(fmt.Sprint(i), "x"))
	}
	if err := s.Add(t.Context(), dir, "", many); err != nil {
		t.Fatal(err)
	}
	if err := s.Add(t.Context(), dir, "", []overlay.Stored{create("more", "x")}); err == nil || !strings.Contains(err.Error(), "limit 200") {
		t.Errorf("one too many: %v", err)
	}
	big := slices.Clone(many)
	for i := range big {
		big[i].Content = make([]byte, overlay.MaxStored)
	}
	if err := s.Add(t.Context(), dir, "", big); err == nil {
		t.Error("too many bytes: no error")
	}
	if got := paths(t, s, dir); len(got) != maxCount || got[0] != "0=x" {
		t.Errorf("%d changes after refusals", len(got))
	}
}

func TestUnusableFiles(t *testing.T) {
	for content, want := range map[string]string{
		`{"version": 2, "changes": []}`: "version 2 of pending changes is not supported (want 1): update loadout",
		`{`:                             "damaged",
		`{"version": 1, "changes": [{"path": "../x", "op": "create"}]}`: "invalid path",
		`{"version": 1, "changes": [{"path": "x", "op": "run"}]}`:       "invalid operation",
	} {
		s, dir := New(filepath.Join(t.TempDir(), "changes")), t.TempDir()
		if err := s.Add(t.Context(), dir, "", []overlay.Stored{create("a", "1")}); err != nil {
			t.Fatal(err)
		}
		files, err := filepath.Glob(s.dir + "/*.json")
		if err != nil || len(files) != 1 {
			t.Fatal(files, err)
		}
		if err := os.WriteFile(files[0], []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := s.List(dir); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", content, err, want)
		}
		if err := s.Add(t.Context(), dir, "", []overlay.Stored{create("a", "1")}); err == nil {
			t.Errorf("%s: overwritten", content)
		}
	}
}

// Whatever is read is valid, and is read again as it was written.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"version": 1, "dir": "/x", "changes": [{"path": ".claude/x", "op": "create", "mode": 420, "content": "eA=="}]}`))
	f.Add([]byte(`{"version": 2}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		s := New(t.TempDir())
		s.now = func() time.Time { return time.Time{} }
		got, err := s.decode(data)
		if err != nil {
			return
		}
		for _, c := range got.Changes {
			if err := c.Check(); err != nil {
				t.Error(err)
			}
		}
	})
}
