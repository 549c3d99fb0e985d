package loadouttest

import (
	"context"
	"errors"
	"io/fs"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/skill"
)

// Source tests a source of skills. It lists src several times and opens every
// skill. src should provide at least one skill and must not change during the
// test. If src is a [catalog.Watcher], Source tests Watch, too. It does not
// close src.
func Source(t *testing.T, src catalog.Source) {
	t.Run("label", func(t *testing.T) { testSourceLabel(t, src) })
	t.Run("entries", func(t *testing.T) { testEntries(t, src) })
	t.Run("files", func(t *testing.T) { testFiles(t, src) })
	t.Run("missing skill", func(t *testing.T) { testMissingSkill(t, src) })
	t.Run("unchanged listing", func(t *testing.T) { testUnchangedListing(t, src) })
	t.Run("slices of the caller", func(t *testing.T) { testListCopies(t, src) })
	if w, ok := src.(catalog.Watcher); ok {
		t.Run("watch", func(t *testing.T) { testWatch(t, w) })
	}
}

// testSourceLabel checks that a source's label is valid and constant.
func testSourceLabel(t *testing.T, src catalog.Source) {
	if _, err := catalog.New([]catalog.Source{src}, nil); err != nil {
		t.Error(err)
	}
	origin, scope := src.Origin(), src.Scope()
	listEntries(t, src)
	if src.Origin() != origin || src.Scope() != scope {
		t.Errorf("label %s (%s) before List, %s (%s) after it", origin, scope, src.Origin(), src.Scope())
	}
}

func testEntries(t *testing.T, src catalog.Source) {
	dirs := map[string]bool{}
	for _, e := range listEntries(t, src) {
		switch {
		case e == nil:
			t.Fatal("List returned a nil entry")
		case e.Name == "" || e.Description == "":
			t.Errorf("%s: no name or no description", e.Key())
		case e.Origin != src.Origin() || e.Scope != src.Scope():
			t.Errorf("%s: origin %s and scope %s, want %s and %s", e.Key(), e.Origin, e.Scope, src.Origin(), src.Scope())
		case !fs.ValidPath(e.Dir):
			t.Errorf("%s: directory %q is not a slashed path within the source", e.Key(), e.Dir)
		case dirs[e.Dir]:
			t.Errorf("%s: two skills in one directory", e.Key())
		case e.Path == "":
			t.Errorf("%s: no path to show to users", e.Key())
		}
		dirs[e.Dir] = true
	}
}

// testFiles opens each skill twice and compares its SKILL.md with its entry.
func testFiles(t *testing.T, src catalog.Source) {
	for _, e := range listEntries(t, src) {
		first, second := openSkill(t, src, e), openSkill(t, src, e)
		if first == nil || second == nil {
			continue
		}
		s, ds, err := skill.Parse(first.FS, first.Folder)
		if err != nil || !ds.Loads() {
			t.Errorf("%s: SKILL.md of the opened files does not load: %v %v", e.Key(), err, ds)
			continue
		}
		compareEntry(t, e, catalog.EntryOf(src, s, e.Dir))
		if err := first.Close(); err != nil {
			t.Errorf("%s: close: %v", e.Key(), err)
		}
		if _, _, err := skill.ReadManifest(second.FS); err != nil {
			t.Errorf("%s: read after another bundle of the skill was closed: %v", e.Key(), err)
		}
	}
}

// compareEntry compares the fields of two entries that affect how a skill is
// selected and used.
func compareEntry(t *testing.T, got, want *catalog.Entry) {
	for _, fact := range []struct {
		name      string
		got, want any
	}{
		{"Name", got.Name, want.Name},
		{"Description", got.Description, want.Description},
		{"Version", got.Version, want.Version},
		{"BindShells", got.BindShells, want.BindShells},
		{"Dependencies", got.Dependencies, want.Dependencies},
		{"DisableModelInvocation", got.DisableModelInvocation, want.DisableModelInvocation},
		{"UserInvocable", got.UserInvocable, want.UserInvocable},
		{"ProvidesTools", got.ProvidesTools, want.ProvidesTools},
	} {
		if !reflect.DeepEqual(fact.got, fact.want) {
			t.Errorf("%s: %s is %v, but SKILL.md says %v; make entries with catalog.EntryOf", got.Key(), fact.name, fact.got, fact.want)
		}
	}
}

// testMissingSkill checks the error for opening a skill that does not exist. It
// skips a source that consists of a single skill, because such a source ignores
// the directory.
func testMissingSkill(t *testing.T, src catalog.Source) {
	if l := listEntries(t, src); len(l) == 1 && l[0].Dir == "." {
		t.Skip("the source is a single skill")
	}
	e := &catalog.Entry{Name: "no-such-skill", Origin: src.Origin(), Scope: src.Scope(), Dir: "no-such-skill", Path: "no-such-skill"}
	b, err := src.Open(t.Context(), e)
	if err == nil {
		defer b.Close()
		_, _, err = skill.Parse(b.FS, b.Folder)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("opening a missing skill: %v, want an error that wraps fs.ErrNotExist", err)
	}
}

// testUnchangedListing checks that listing an unchanged source again does not change
// the catalog.
func testUnchangedListing(t *testing.T, src catalog.Source) {
	c, err := catalog.New([]catalog.Source{src}, nil)
	if err != nil {
		t.Fatal(err)
	}
	reload(t, c)
	before := c.Snapshot()
	reload(t, c)
	if after := c.Snapshot(); after != before {
		t.Error("listing an unchanged source again changes the catalog; return the same entries, or make them with catalog.EntryOf")
	}
}

// testListCopies checks that the caller may modify the slices that List returns.
func testListCopies(t *testing.T, src catalog.Source) {
	l, err := src.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	n := len(listEntries(t, src))
	clear(l.Entries)
	clear(l.Problems)
	for _, e := range listEntries(t, src) {
		if e == nil {
			t.Fatal("List returns a slice that it returned before")
		}
	}
	if again := len(listEntries(t, src)); again != n {
		t.Errorf("%d entries, then %d", n, again)
	}
}

// testWatch checks that Watch returns when its context is done.
func testWatch(t *testing.T, w catalog.Watcher) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := w.Watch(ctx, func() {}); err != nil {
		t.Errorf("Watch after its context ended: %v, want nil", err)
	}
}

func listEntries(t *testing.T, src catalog.Source) []*catalog.Entry {
	t.Helper()
	l, err := src.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range l.Problems {
		if p.Origin != src.Origin() || strings.TrimSpace(p.Message) == "" {
			t.Errorf("problem %v: want the origin %s and a message", p, src.Origin())
		}
	}
	if l.Layer != nil {
		return slices.Collect(l.Layer.All())
	}
	return l.Entries
}

func openSkill(t *testing.T, src catalog.Source, e *catalog.Entry) *skill.Bundle {
	t.Helper()
	b, err := src.Open(t.Context(), e)
	if err != nil {
		t.Errorf("%s: open: %v", e.Key(), err)
		return nil
	}
	t.Cleanup(func() { b.Close() })
	return b
}

func reload(t *testing.T, c *catalog.Catalog) {
	t.Helper()
	if err := c.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
}
