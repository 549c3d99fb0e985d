package installed_test

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/loadout-dev/loadout/internal/installed"
	"github.com/loadout-dev/loadout/skill"
)

func TestB11InstallListUpdateUninstall(t *testing.T) {
	dir := installed.Open(filepath.Join(t.TempDir(), ".loadout", "skills"))
	if lock, err := dir.Lockfile(); err != nil || len(lock.Skills) != 0 {
		t.Fatalf("of nothing: %v, %v", lock, err)
	}
	put(t, dir, "pdf@1", "csv@1")
	lock, err := dir.Lockfile()
	must(t, err)
	got := lock.Skills["pdf"]
	want := entry()
	want.Digest, want.Files = digest(t, document("pdf", "1")), map[string]string{}
	m, _, err := skill.ReadManifest(document("pdf", "1"))
	must(t, err)
	for _, f := range m {
		want.Files[f.Path] = f.SHA256
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the source record is not what was given (-want +got):\n%s", diff)
	}
	if runtime.GOOS != "windows" {
		files := tree(t, filepath.Join(dir.Path(), "pdf"))
		if _, ok := files["scripts/run.sh*"]; !ok {
			t.Errorf("the script is not executable: %q", slices.Sorted(maps.Keys(files)))
		}
	}
	put(t, dir, "pdf@2")
	if got := versions(t, dir); !slices.Equal(got, []string{"csv@1", "pdf@2"}) {
		t.Errorf("after an update: %q", got)
	}
	must(t, change(t.Context(), dir, func(ctx context.Context, c *installed.Change) error { return c.Remove(ctx, "pdf") }))
	if got := versions(t, dir); !slices.Equal(got, []string{"csv@1"}) {
		t.Errorf("after an uninstallation: %q", got)
	}
	clean(t, dir)
	if _, err := os.Lstat(filepath.Join(dir.Path(), "pdf")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the directory is still there: %v", err)
	}
}

// Measured in the system that had B11: uninstall("../s/okdir") deleted a directory
// outside.
func TestB11UninstallStaysInside(t *testing.T) {
	top := t.TempDir()
	dir := installed.Open(filepath.Join(top, "skills"))
	put(t, dir, "pdf@1")
	write(t, dir.Path(), "by-hand/SKILL.md", "mine")
	write(t, top, "s/okdir/SKILL.md", "not ours")
	start := tree(t, top)
	for _, name := range []string{"../s/okdir", filepath.Join(top, "s", "okdir"), ".", "..", "", "pdf/", "pdf/scripts", "PDF", installed.Staging, ".staging", installed.LockfileName, "con", "lpt1", "a\x1b[2Jb"} {
		for what, do := range map[string]func(*installed.Change, context.Context, string) error{
			"remove": (*installed.Change).Remove, "discard": (*installed.Change).ForceRemove,
			"put": func(c *installed.Change, ctx context.Context, name string) error {
				_, err := c.Replace(ctx, name, entry(), document("x", "1"))
				return err
			},
		} {
			err := change(t.Context(), dir, func(ctx context.Context, c *installed.Change) error { return do(c, ctx, name) })
			ne, ok := errors.AsType[*installed.NameError](err)
			if !ok || ne.Name != name {
				t.Errorf("%s %q: %v, want a NameError", what, name, err)
			}
			if err != nil && strings.ContainsRune(err.Error(), '\x1b') {
				t.Errorf("the error has an escape: %q", err)
			}
		}
	}
	for _, name := range []string{"by-hand", "pfd"} {
		err := change(t.Context(), dir, func(ctx context.Context, c *installed.Change) error { return c.ForceRemove(ctx, name) })
		ni, ok := errors.AsType[*installed.NotInstalledError](err)
		if !ok {
			t.Errorf("discard %s: %v, want a NotInstalledError", name, err)
		} else if name == "pfd" && !slices.Equal(ni.Suggestions, []string{"pdf"}) {
			t.Errorf("what is near %s: %q", name, ni.Suggestions)
		}
	}
	if diff := cmp.Diff(start, tree(t, top)); diff != "" {
		t.Errorf("something changed:\n%s", diff)
	}
}

func TestB12Conflict(t *testing.T) {
	for _, tt := range []struct {
		name   string
		make   func(t *testing.T, dir string)
		locked bool
		want   []string // differences
		yields bool     // to Replace
	}{
		{"by hand", func(t *testing.T, dir string) { write(t, dir, "new/SKILL.md", "mine") }, false, []string{}, true},
		{"empty directory", func(t *testing.T, dir string) { must(t, os.Mkdir(filepath.Join(dir, "new"), 0o755)) }, false, []string{}, true},
		{"file", func(t *testing.T, dir string) { write(t, dir, "new", "mine") }, false, []string{"new not-plain"}, false},
		{"edited", func(t *testing.T, dir string) { write(t, dir, "pdf/SKILL.md", "mine") }, true, []string{"pdf SKILL.md is changed"}, true},
		{"more files", func(t *testing.T, dir string) { write(t, dir, "pdf/notes.txt", "mine") }, true, []string{"pdf notes.txt is added"}, true},
		{"link", func(t *testing.T, dir string) {
			must(t, os.Rename(filepath.Join(dir, "pdf"), filepath.Join(dir, "elsewhere")))
			link(t, "elsewhere", filepath.Join(dir, "pdf"))
		}, true, []string{"pdf not-plain"}, false},
		{"link by hand", func(t *testing.T, dir string) { link(t, "pdf", filepath.Join(dir, "new")) }, false, []string{"new not-plain"}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := installed.Open(t.TempDir())
			put(t, dir, "pdf@1")
			tt.make(t, dir.Path())
			name := "new"
			if tt.locked {
				name = "pdf"
			}
			start := tree(t, dir.Path())
			for what, do := range map[string]func(context.Context, *installed.Change) error{
				"put": func(ctx context.Context, c *installed.Change) error {
					_, err := c.Put(ctx, name, entry(), document(name, "2"))
					return err
				},
				"remove": func(ctx context.Context, c *installed.Change) error { return c.Remove(ctx, name) },
			} {
				err := change(t.Context(), dir, do)
				ce, ok := errors.AsType[*installed.ConflictError](err)
				switch {
				case !tt.locked && what == "remove":
					if _, ok := errors.AsType[*installed.NotInstalledError](err); !ok {
						t.Errorf("remove: %v, want a NotInstalledError", err)
					}
				case !ok:
					t.Errorf("%s: %v, want a ConflictError", what, err)
				case ce.Name != name || ce.InLockfile != tt.locked || ce.Replaceable() != tt.yields || !slices.Equal(texts(ce.Differences), tt.want):
					t.Errorf("%s: %+v", what, ce)
				}
			}
			if diff := cmp.Diff(start, tree(t, dir.Path())); diff != "" {
				t.Errorf("something changed:\n%s", diff)
			}
			err := change(t.Context(), dir, func(ctx context.Context, c *installed.Change) error {
				_, err := c.Replace(ctx, name, entry(), document(name, "2"))
				return err
			})
			if (err == nil) != tt.yields {
				t.Fatalf("replace: %v", err)
			}
			if tt.yields {
				clean(t, dir)
			} else if diff := cmp.Diff(start, tree(t, dir.Path())); diff != "" {
				t.Errorf("something changed:\n%s", diff)
			}
		})
	}
}

func link(t *testing.T, target, name string) {
	t.Helper()
	if err := os.Symlink(target, name); err != nil {
		t.Skipf("no links here: %v", err)
	}
}

func TestNamesDifferingInCaseConflict(t *testing.T) {
	dir := installed.Open(t.TempDir())
	write(t, dir.Path(), "PDF/SKILL.md", "mine")
	err := change(t.Context(), dir, func(ctx context.Context, c *installed.Change) error {
		_, err := c.Replace(ctx, "pdf", entry(), document("pdf", "1"))
		return err
	})
	if ne, ok := errors.AsType[*installed.NameError](err); !ok || ne.Other != "PDF" {
		t.Errorf("got %v, want a NameError that names PDF", err)
	}
	if has, err := dir.Has("pdf"); !has || err != nil {
		t.Errorf("Has: %v, %v", has, err)
	}
}

func TestEditedSkillIsDiscardedOnlyOnRequest(t *testing.T) {
	dir := installed.Open(t.TempDir())
	put(t, dir, "pdf@1")
	write(t, dir.Path(), "pdf/SKILL.md", "mine")
	must(t, change(t.Context(), dir, func(ctx context.Context, c *installed.Change) error { return c.ForceRemove(ctx, "pdf") }))
	settledEmpty(t, dir)
}

func TestMissingSkillIsRemovedFromLockfile(t *testing.T) {
	dir := installed.Open(t.TempDir())
	put(t, dir, "pdf@1")
	must(t, os.RemoveAll(filepath.Join(dir.Path(), "pdf")))
	must(t, change(t.Context(), dir, func(ctx context.Context, c *installed.Change) error { return c.Remove(ctx, "pdf") }))
	settledEmpty(t, dir)
}

func settledEmpty(t *testing.T, dir *installed.Dir) {
	t.Helper()
	if diff := cmp.Diff(map[string]string{"./": "", installed.LockfileName: "{\n  \"version\": 1,\n  \"skills\": {}\n}\n"}, tree(t, dir.Path())); diff != "" {
		t.Errorf("the directory is not empty (-want +got):\n%s", diff)
	}
}

// cut is a tree in which one file cannot be read to its end.
type cut struct {
	fs.FS
	path string
	end  func() error
}

func (c cut) Open(name string) (fs.File, error) {
	f, err := c.FS.Open(name)
	if err == nil && name == c.path {
		return &cutFile{f, c.end, false}, nil
	}
	return f, err
}

type cutFile struct {
	fs.File
	end  func() error
	half bool
}

func (f *cutFile) Read(p []byte) (int, error) {
	if f.half {
		if err := f.end(); err != nil {
			return 0, err
		}
		return f.File.Read(p)
	}
	f.half = true
	return f.File.Read(p[:min(len(p), 3)])
}

func TestFailedCopyChangesNothing(t *testing.T) {
	errGone := errors.New("the connection was cut")
	for _, tt := range []struct {
		name string
		do   func(ctx context.Context, stop context.CancelCauseFunc, c *installed.Change) error
		want func(error) bool
	}{
		{"cut off", func(ctx context.Context, _ context.CancelCauseFunc, c *installed.Change) error {
			_, err := c.Put(ctx, "b", entry(), cut{document("b", "1"), "scripts/run.sh", func() error { return errGone }})
			return err
		}, func(err error) bool { return errors.Is(err, errGone) }},
		{"ended", func(ctx context.Context, stop context.CancelCauseFunc, c *installed.Change) error {
			_, err := c.Put(ctx, "b", entry(), cut{document("b", "1"), "scripts/run.sh", func() error { stop(errGone); return nil }})
			return err
		}, func(err error) bool { return errors.Is(err, errGone) }},
		{"ended before the commit", func(ctx context.Context, stop context.CancelCauseFunc, c *installed.Change) error {
			_, err := c.Put(ctx, "b", entry(), document("b", "1"))
			stop(errGone)
			return err
		}, func(err error) bool { return errors.Is(err, errGone) }},
		{"ended while the disk was awaited", func(ctx context.Context, stop context.CancelCauseFunc, c *installed.Change) error {
			c.At(func(step string) error {
				if step == "settle" {
					stop(errGone)
				}
				return nil
			})
			_, err := c.Put(ctx, "b", entry(), document("b", "1"))
			return err
		}, func(err error) bool { return errors.Is(err, errGone) }},
		{"another digest", func(ctx context.Context, _ context.CancelCauseFunc, c *installed.Change) error {
			e := entry()
			e.Digest = digest(t, document("b", "2"))
			_, err := c.Put(ctx, "b", e, document("b", "1"))
			return err
		}, func(err error) bool {
			de, ok := errors.AsType[*installed.DigestError](err)
			return ok && de.Name == "b" && de.Got == digest(t, document("b", "1"))
		}},
		{"no skill", func(ctx context.Context, _ context.CancelCauseFunc, c *installed.Change) error {
			_, err := c.Put(ctx, "b", entry(), fstest.MapFS{"README.md": {}})
			return err
		}, refusedFor("no-skill-md")},
		{"reserved name", func(ctx context.Context, _ context.CancelCauseFunc, c *installed.Change) error {
			_, err := c.Put(ctx, "b", entry(), fstest.MapFS{"SKILL.md": {}, "a/Aux.txt": {}})
			return err
		}, refusedFor("path")},
		{"backslash", func(ctx context.Context, _ context.CancelCauseFunc, c *installed.Change) error {
			_, err := c.Put(ctx, "b", entry(), fstest.MapFS{"SKILL.md": {}, `..\x`: {}})
			return err
		}, refusedFor("path")},
		{"case", func(ctx context.Context, _ context.CancelCauseFunc, c *installed.Change) error {
			_, err := c.Put(ctx, "b", entry(), fstest.MapFS{"SKILL.md": {}, "a": {}, "A": {}})
			return err
		}, refusedFor("collision")},
		{"device", func(ctx context.Context, _ context.CancelCauseFunc, c *installed.Change) error {
			_, err := c.Put(ctx, "b", entry(), fstest.MapFS{"SKILL.md": {}, "a": {Mode: fs.ModeNamedPipe}})
			return err
		}, refusedFor("file-special")},
		{"password", func(ctx context.Context, _ context.CancelCauseFunc, c *installed.Change) error {
			e := entry()
			e.From.URL = "https://me:hunter2@example.com/skills"
			_, err := c.Put(ctx, "b", e, document("b", "1"))
			return err
		}, func(err error) bool {
			_, ok := errors.AsType[*installed.LockfileError](err)
			return ok && !strings.Contains(err.Error(), "hunter2")
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := installed.Open(t.TempDir())
			put(t, dir, "b@1")
			start := tree(t, dir.Path())
			ctx, stop := context.WithCancelCause(t.Context())
			defer stop(nil)
			err := change(ctx, dir, func(ctx context.Context, c *installed.Change) error { return tt.do(ctx, stop, c) })
			if err == nil || !tt.want(err) {
				t.Errorf("got %v", err)
			}
			if diff := cmp.Diff(start, tree(t, dir.Path())); diff != "" {
				t.Errorf("something changed:\n%s", diff)
			}
		})
	}
}

func refusedFor(code string) func(error) bool {
	return func(err error) bool {
		refused, ok := errors.AsType[*skill.RefusedError](err)
		return ok && slices.ContainsFunc(refused.Refusals, func(r skill.Refusal) bool { return r.Code == code })
	}
}

// endless is a skill with a file that does not end.
type endless struct{ fs.FS }

func (e endless) Open(name string) (fs.File, error) {
	f, err := e.FS.Open(name)
	if err == nil && name == "scripts/run.sh" {
		return endlessFile{f}, nil
	}
	return f, err
}

type endlessFile struct{ fs.File }

func (f endlessFile) Read(p []byte) (int, error) { return len(p), nil }

func TestSkillLimits(t *testing.T) {
	if testing.Short() {
		t.Skip("it writes as much as a skill may have")
	}
	dir := installed.Open(t.TempDir())
	err := change(t.Context(), dir, func(ctx context.Context, c *installed.Change) error {
		_, err := c.Put(ctx, "b", entry(), endless{document("b", "1")})
		return err
	})
	if !errors.Is(err, skill.ErrTooLarge) {
		t.Errorf("got %v, want %v", err, skill.ErrTooLarge)
	}
}

func TestFailedPutKeepsPreviousSkill(t *testing.T) {
	dir := installed.Open(t.TempDir())
	must(t, change(t.Context(), dir, func(ctx context.Context, c *installed.Change) error {
		if _, err := c.Put(ctx, "b", entry(), document("b", "1")); err != nil {
			return err
		}
		if _, err := c.Put(ctx, "b", entry(), cut{document("b", "2"), "SKILL.md", func() error { return io.ErrUnexpectedEOF }}); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("got %v", err)
		}
		return nil
	}))
	if got := versions(t, dir); !slices.Equal(got, []string{"b@1"}) {
		t.Errorf("installed is %q", got)
	}
	clean(t, dir)
}

func TestEmptyChangeWritesNothing(t *testing.T) {
	top := t.TempDir()
	open(t, installed.Open(filepath.Join(top, "a", "b")))
	if got := tree(t, top); len(got) != 1 {
		t.Errorf("it left %q", slices.Sorted(maps.Keys(got)))
	}
}

func TestChangeIsCommittedOnce(t *testing.T) {
	dir := installed.Open(t.TempDir())
	c, err := dir.Begin(t.Context())
	must(t, err)
	_, err = c.Put(t.Context(), "b", entry(), document("b", "1"))
	must(t, err)
	must(t, c.Commit(t.Context()))
	_, put := c.Put(t.Context(), "b", entry(), document("b", "1"))
	for _, err := range []error{put, c.Remove(t.Context(), "b"), c.Commit(t.Context())} {
		if !errors.Is(err, installed.ErrChangeEnded) {
			t.Errorf("got %v, want %v", err, installed.ErrChangeEnded)
		}
	}
	must(t, c.Close())
	must(t, c.Close())
}
