package catalog_test

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/loadout-dev/loadout/catalog"
)

// shut is a file system in which one path cannot be read.
type shut struct {
	fs.FS
	path string
}

func (s shut) Open(name string) (fs.File, error) {
	if name == s.path || strings.HasPrefix(name, s.path+"/") {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
	}
	return s.FS.Open(name)
}

func TestFSIsSearchedLikeADirectory(t *testing.T) {
	files := fstest.MapFS{}
	for _, p := range []string{"a/SKILL.md", "a/b/SKILL.md", "a/scripts/SKILL.md", "a/x/assets/y/SKILL.md", "scripts/SKILL.md", "c/skill.md", "node_modules/d/SKILL.md", ".git/e/SKILL.md", "g/h/SKILL.md"} {
		files[p] = &fstest.MapFile{Data: []byte(doc("n", ""))}
	}
	want := []string{"a", "a/b", "c", "g/h", "scripts"}
	if diff := cmp.Diff(want, dirs(open(t, catalog.NewFS("fs", catalog.Bundled, files)).Snapshot())); diff != "" {
		t.Errorf("in memory (-want +got):\n%s", diff)
	}
	root := t.TempDir()
	for p, f := range files {
		write(t, root, map[string]string{p: string(f.Data)})
	}
	if diff := cmp.Diff(want, dirs(scan(t, root))); diff != "" {
		t.Errorf("on disk (-want +got):\n%s", diff)
	}
	one := catalog.NewFS("one", catalog.Bundled, fstest.MapFS{"SKILL.md": {Data: []byte(doc("one", ""))}})
	if e := get(t, open(t, one).Snapshot(), "one"); e.Dir != "." || e.Key() != "one/." || e.Location() != "" || e.File() != "SKILL.md" {
		t.Errorf("a tree that is one skill: %+v", e)
	}
}

func TestUnreadablePartOfFSIsReported(t *testing.T) {
	files := fstest.MapFS{}
	for _, p := range []string{"a", "bad", "z"} {
		files[p+"/SKILL.md"] = &fstest.MapFile{Data: []byte(doc(p, ""))}
	}
	for path, want := range map[string]string{"bad": "fs:bad unreadable", "bad/SKILL.md": "fs:bad unreadable"} {
		s := open(t, catalog.NewFS("fs", catalog.Bundled, shut{files, path})).Snapshot()
		if got := names(s.Skills()); !slices.Equal(got, []string{"a", "z"}) {
			t.Errorf("%s: skills %q", path, got)
		}
		if p := s.Problems(); len(p) != 1 || p[0].Path+" "+p[0].Code != want {
			t.Errorf("%s: problems %v", path, p)
		}
	}
	s := open(t, catalog.NewFS("fs", catalog.Bundled, shut{files, "."})).Snapshot()
	if p := s.Problems(); len(p) != 1 || p[0].Path != "fs" {
		t.Errorf("the root: problems %v", p)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := catalog.NewFS("fs", catalog.Bundled, files).List(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestScopeStrings(t *testing.T) {
	for _, sc := range allScopes {
		b, err := sc.MarshalText()
		must(t, err)
		var back catalog.Scope
		if err := back.UnmarshalText(b); err != nil || back != sc || string(b) != sc.String() {
			t.Errorf("%s reads back as %s, %v", b, back, err)
		}
	}
	if b, err := catalog.Scope(9).MarshalText(); err == nil || catalog.Scope(9).String() != "Scope(9)" {
		t.Errorf("an invalid scope is %v, %q, %v", catalog.Scope(9), b, err)
	}
	var sc catalog.Scope
	if err := sc.UnmarshalText([]byte("everybody")); err == nil || !strings.Contains(err.Error(), "use project, user, group, public or bundled") {
		t.Errorf("got %v", err)
	}
}
