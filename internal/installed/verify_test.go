package installed_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/installed"
)

func TestVerify(t *testing.T) {
	for _, tt := range []struct {
		name string
		edit func(t *testing.T, dir string)
		want []string
	}{
		{"as installed", func(*testing.T, string) {}, nil},
		{"edited, added, removed", func(t *testing.T, dir string) {
			write(t, dir, "pdf/SKILL.md", "mine")
			write(t, dir, "pdf/notes/a.md", "mine")
			must(t, os.Remove(filepath.Join(dir, "pdf", "scripts", "run.sh")))
		}, []string{"pdf SKILL.md is changed", "pdf notes/a.md is added", "pdf scripts/run.sh is missing"}},
		{"what does not count", func(t *testing.T, dir string) {
			write(t, dir, "pdf/__pycache__/a.pyc", "x")
			write(t, dir, "pdf/.DS_Store", "x")
			write(t, dir, "pdf/SKILL.md~", "x")
			must(t, os.Mkdir(filepath.Join(dir, "pdf", "empty"), 0o755))
			must(t, os.Chmod(filepath.Join(dir, "pdf", "SKILL.md"), 0o755))
		}, nil},
		{"gone", func(t *testing.T, dir string) { must(t, os.RemoveAll(filepath.Join(dir, "csv"))) }, []string{"csv absent"}},
		{"a file in its place", func(t *testing.T, dir string) {
			must(t, os.RemoveAll(filepath.Join(dir, "csv")))
			write(t, dir, "csv", "mine")
		}, []string{"csv not-plain"}},
		{"a link in its place", func(t *testing.T, dir string) {
			must(t, os.Rename(filepath.Join(dir, "csv"), filepath.Join(dir, "real")))
			link(t, "real", filepath.Join(dir, "csv"))
		}, []string{"csv not-plain"}},
		{"a directory in the place of a file", func(t *testing.T, dir string) {
			must(t, os.Remove(filepath.Join(dir, "pdf", "SKILL.md")))
			write(t, dir, "pdf/SKILL.md/x", "mine")
		}, []string{"pdf SKILL.md is changed", "pdf SKILL.md/x is added"}},
		{"a link out in the place of a file", func(t *testing.T, dir string) {
			data, err := os.ReadFile(filepath.Join(dir, "pdf", "SKILL.md"))
			must(t, err)
			write(t, dir, "same", string(data))
			must(t, os.Remove(filepath.Join(dir, "pdf", "SKILL.md")))
			link(t, "../same", filepath.Join(dir, "pdf", "SKILL.md"))
		}, []string{"pdf SKILL.md is changed"}},
		{"a pipe in the place of a file", func(t *testing.T, dir string) {
			must(t, os.Remove(filepath.Join(dir, "pdf", "SKILL.md")))
			pipe(t, filepath.Join(dir, "pdf", "SKILL.md"))
		}, []string{"pdf SKILL.md is changed"}},
		{"by hand", func(t *testing.T, dir string) { write(t, dir, "by-hand/SKILL.md", "mine") }, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := installed.Open(t.TempDir())
			put(t, dir, "pdf@1", "csv@1")
			tt.edit(t, dir.Path())
			got, err := dir.Verify(t.Context())
			must(t, err)
			if !slices.Equal(texts(got), tt.want) {
				t.Errorf("got %q, want %q", texts(got), tt.want)
			}
			for _, name := range []string{"pdf", "csv"} {
				got, err := dir.Verify(t.Context(), name)
				must(t, err)
				want := slices.DeleteFunc(slices.Clone(tt.want), func(s string) bool { return !strings.HasPrefix(s, name) })
				if !slices.Equal(texts(got), want) {
					t.Errorf("of %s: %q, want %q", name, texts(got), want)
				}
			}
		})
	}
}

func TestVerifyNotInstalled(t *testing.T) {
	dir := installed.Open(filepath.Join(t.TempDir(), "skills"))
	for range 2 {
		if _, err := dir.Verify(t.Context(), "odf"); !isNotInstalled(err) {
			t.Errorf("got %v, want a NotInstalledError", err)
		}
		if got, err := dir.Verify(t.Context()); err != nil || len(got) > 0 {
			t.Errorf("of all: %v, %v", got, err)
		}
		put(t, dir, "pdf@1")
	}
}

func isNotInstalled(err error) bool {
	_, ok := errors.AsType[*installed.NotInstalledError](err)
	return ok
}

func TestVerifyReportsUnfinishedChange(t *testing.T) {
	dir := scene(t)
	for n := 1; ; n++ {
		if step := stopAt(t, dir, n, ""); step == "rename "+installed.Staging+"/loadout.lock" {
			break
		}
		open(t, dir)
		dir = scene(t)
	}
	if _, err := dir.Verify(t.Context()); !errors.Is(err, installed.ErrUnfinished) {
		t.Errorf("got %v, want %v", err, installed.ErrUnfinished)
	}
	open(t, dir)
	clean(t, dir)
}

func TestUnlockedListsManuallyCopiedSkills(t *testing.T) {
	dir := installed.Open(filepath.Join(t.TempDir(), "skills"))
	if got, err := dir.Untracked(t.Context()); err != nil || len(got) > 0 {
		t.Errorf("of nothing: %q, %v", got, err)
	}
	put(t, dir, "pdf@1")
	write(t, dir.Path(), "by-hand/SKILL.md", "mine")
	write(t, dir.Path(), "PDF/skill.md", "mine")
	write(t, dir.Path(), "notes/a.md", "mine")
	write(t, dir.Path(), ".hidden/SKILL.md", "mine")
	write(t, dir.Path(), "README.md", "mine")
	link(t, "by-hand", filepath.Join(dir.Path(), "linked"))
	got, err := dir.Untracked(t.Context())
	must(t, err)
	want := []string{"PDF", "by-hand"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	for name, want := range map[string]bool{"pdf": true, "by-hand": true, "README.md": true, "nothing": false} {
		if has, err := dir.Has(name); has != want || err != nil {
			t.Errorf("Has(%q) is %v, %v", name, has, err)
		}
	}
}
