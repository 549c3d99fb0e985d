package installed_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loadout-dev/loadout/internal/installed"
)

// small is a file system of this many pages. A file takes at least one.
func small(t *testing.T, pages int) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("none", dir, "tmpfs", 0, fmt.Sprintf("nr_blocks=%d", pages)); err != nil {
		t.Skipf("no file system of a small size, which takes root: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// With every amount of room from none to enough: all of a change, or nothing.
func TestFullDiskChangesNothing(t *testing.T) {
	const pages = 64
	full, enough := 0, 0
	for room := 0; enough < 3; room++ {
		if room == pages/2 {
			t.Fatal("there is never enough room")
		}
		top := small(t, pages)
		dir := installed.Open(filepath.Join(top, "skills"))
		put(t, dir, "kept@1", "old@1", "gone@1")
		write(t, dir.Path(), "by-hand/SKILL.md", "mine")
		fill(t, filepath.Join(top, "ballast"), room)
		start := tree(t, dir.Path())
		err := change(t.Context(), dir, update)
		switch {
		case err == nil:
			enough++
			must(t, os.Remove(filepath.Join(top, "ballast")))
			settled(t, dir, after)
		case errors.Is(err, syscall.ENOSPC):
			full++
			if diff := cmp.Diff(start, tree(t, dir.Path())); diff != "" {
				t.Errorf("with %d pages: something changed (-before +after):\n%s", room, diff)
			}
			must(t, os.Remove(filepath.Join(top, "ballast")))
			settled(t, dir, before)
		default:
			t.Fatal(err)
		}
	}
	if full < 5 {
		t.Errorf("the disk was full %d times only", full)
	}
}

// fill leaves a file system with that many pages.
func fill(t *testing.T, path string, leave int) {
	t.Helper()
	f, err := os.Create(path)
	must(t, err)
	defer f.Close()
	page := bytes.Repeat([]byte{1}, 4096)
	n := 0
	for ; err == nil; n++ {
		_, err = f.Write(page)
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	must(t, f.Truncate(int64(max(0, n-1-leave))*int64(len(page))))
}

func BenchmarkPut400(b *testing.B) {
	for b.Loop() {
		dir := installed.Open(b.TempDir())
		err := change(b.Context(), dir, func(ctx context.Context, c *installed.Change) error {
			for i := range 400 {
				name := fmt.Sprintf("skill-%d", i)
				if _, err := c.Put(ctx, name, entry(), document(name, "1")); err != nil {
					return err
				}
			}
			return nil
		})
		must(b, err)
	}
}

func TestReadOnlyDirectoriesAreReplaced(t *testing.T) {
	dir := installed.Open(filepath.Join(t.TempDir(), "skills"))
	put(t, dir, "pdf@1")
	if os.Geteuid() == 0 { // ignores file modes
		must(t, os.Lchown(filepath.Dir(filepath.Dir(dir.Path())), nobody, nobody))
		must(t, filepath.WalkDir(filepath.Dir(dir.Path()), func(p string, _ fs.DirEntry, err error) error {
			return errors.Join(err, os.Lchown(p, nobody, nobody))
		}))
	}
	must(t, os.Chmod(filepath.Join(dir.Path(), "pdf", "scripts"), 0o555))
	done := make(chan error)
	go func() {
		if os.Geteuid() == 0 {
			runtime.LockOSThread() // and the thread ends with this
			if err := syscall.Setfsuid(nobody); err != nil {
				done <- err
				return
			}
		}
		done <- change(t.Context(), dir, func(ctx context.Context, c *installed.Change) error {
			_, err := c.Put(ctx, "pdf", entry(), document("pdf", "2"))
			return err
		})
	}()
	must(t, <-done)
	if got := versions(t, dir); !slices.Equal(got, []string{"pdf@2"}) {
		t.Errorf("installed is %q", got)
	}
	clean(t, dir)
}

const nobody = 65534
