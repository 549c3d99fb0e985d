//go:build unix

package privatefile_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/limittest"
	"github.com/loadout-dev/loadout/internal/privatefile"
	"github.com/loadout-dev/loadout/internal/privatefile/privatefiletest"
)

// set returns an edit that replaces the content.
func set(text string) func([]byte) ([]byte, error) {
	return func([]byte) ([]byte, error) { return []byte(text), nil }
}

func TestFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "dir", "f")
	f := privatefile.New(path, 5)
	if f.Path() != path {
		t.Errorf("the path is %s", f.Path())
	}
	if _, err := f.Read(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without a directory: %v", err)
	}
	edit := func(old []byte) ([]byte, error) {
		if old != nil {
			t.Errorf("a missing file has the content %q", old)
		}
		return []byte("12345"), nil // as large as permitted
	}
	if err := f.Change(t.Context(), edit); err != nil {
		t.Fatal(err)
	}
	if got, err := f.Read(); err != nil || string(got) != "12345" {
		t.Fatalf("read %q, %v", got, err)
	}
	if err := f.Change(t.Context(), set("123456")); err == nil || !strings.Contains(err.Error(), "(6 bytes, limit 5)") {
		t.Errorf("too large a content: %v", err)
	}
	failed := errors.New("not now")
	if err := f.Change(t.Context(), func([]byte) ([]byte, error) { return []byte("x"), failed }); !errors.Is(err, failed) {
		t.Errorf("a failed edit: %v", err)
	}
	if got, err := f.Read(); err != nil || string(got) != "12345" {
		t.Errorf("after failures, read %q, %v", got, err)
	}
	for p, want := range map[string]fs.FileMode{path: 0o600, path + ".lock": 0o600, filepath.Dir(path): 0o700} {
		if fi, err := os.Stat(p); err != nil || fi.Mode().Perm() != want {
			t.Errorf("%s: %v, %v, want mode %o", p, fi.Mode(), err, want)
		}
	}
	if err := os.WriteFile(path, []byte("123456"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := f.Read()
	privatefiletest.WantUnsafe(t, "read too large a file", err, path)
	privatefiletest.WantUnsafe(t, "change too large a file", f.Change(t.Context(), set("")), path)
	if err := os.WriteFile(path, []byte("1234"), 0o640); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	_, err = f.Read()
	privatefiletest.WantUnsafe(t, "read a file that others can read", err, path)
	if err == nil || !strings.HasSuffix(err.Error(), "cannot be trusted: readable by others (mode 0640)") {
		t.Errorf("a file that others can read: %v", err)
	}
}

// Files and directories that another user could have written are neither read
// nor changed.
func TestUnsafeFiles(t *testing.T) {
	for name, tamper := range privatefiletest.Tamper {
		for _, target := range []string{"f", "", "f.lock"} {
			t.Run(name+" "+target, func(t *testing.T) {
				dir := filepath.Join(t.TempDir(), "d")
				f := privatefile.New(filepath.Join(dir, "f"), 100)
				if err := f.Change(t.Context(), set("old")); err != nil {
					t.Fatal(err)
				}
				path := filepath.Join(dir, target)
				tamper(t, path)
				if target != "f.lock" {
					_, err := f.Read()
					privatefiletest.WantUnsafe(t, "read", err, path)
				}
				err := f.Change(t.Context(), set("new"))
				if target == "" && name == "other type" || target == "" && name == "pipe" || target == "" && name == "dangling link" {
					if err == nil {
						t.Error("changed in what is not a directory")
					}
					return
				}
				privatefiletest.WantUnsafe(t, "change", err, path)
			})
		}
	}
}

// Renew replaces what cannot be read, in a directory that is safe.
func TestRenew(t *testing.T) {
	for name, tamper := range privatefiletest.Tamper {
		for _, target := range []string{"f", "", "f.lock"} {
			t.Run(name+" "+target, func(t *testing.T) {
				dir := filepath.Join(t.TempDir(), "d")
				f := privatefile.New(filepath.Join(dir, "f"), 100)
				if err := f.Renew(t.Context(), set("old")); err != nil {
					t.Fatal(err)
				}
				tamper(t, filepath.Join(dir, target))
				err := f.Renew(t.Context(), func(old []byte) ([]byte, error) {
					if old != nil {
						t.Errorf("old content %q", old)
					}
					return []byte("new"), nil
				})
				if target != "f" || name == "other type" { // the file is a directory then
					if err == nil {
						t.Error("no error")
					}
				} else if got, readErr := f.Read(); err != nil || readErr != nil || string(got) != "new" {
					t.Errorf("%v, then read %q, %v", err, got, readErr)
				}
			})
		}
	}
}

func TestChangeWaitsForLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	f := privatefile.New(path, 100)
	enough := errors.New("enough")
	err := f.Change(t.Context(), func([]byte) ([]byte, error) {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(enough)
		if err := privatefile.New(path, 100).Change(ctx, set("second")); !errors.Is(err, enough) {
			t.Errorf("a second change at the same time: %v", err)
		}
		return []byte("first"), nil
	})
	if got, readErr := f.Read(); err != nil || readErr != nil || string(got) != "first" {
		t.Errorf("read %q, %v, %v", got, err, readErr)
	}
	if err := f.Change(t.Context(), set("third")); err != nil {
		t.Errorf("the lock remains: %v", err)
	}
}

func TestLockDir(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "d")
	none := func(*os.Root) error { t.Error("called"); return nil }
	if err := privatefile.LockDir(t.Context(), dir, none); !errors.Is(err, privatefile.ErrNoDir) {
		t.Errorf("a missing directory: %v", err)
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	failed, enough := errors.New("failed"), errors.New("enough")
	err := privatefile.LockDir(t.Context(), dir, func(root *os.Root) error {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(enough)
		if err := privatefile.LockDir(ctx, dir, none); !errors.Is(err, enough) {
			t.Errorf("a second at the same time: %v", err)
		}
		if _, err := root.Stat(".lock"); err != nil {
			t.Error(err)
		}
		return failed
	})
	if !errors.Is(err, failed) {
		t.Errorf("the error of the function is %v", err)
	}
	if err := os.Chmod(dir, 0o702); err != nil {
		t.Fatal(err)
	}
	privatefiletest.WantUnsafe(t, "lock a directory", privatefile.LockDir(t.Context(), dir, none), dir)
}

func TestOpenFile(t *testing.T) {
	dir := t.TempDir()
	root, err := privatefile.OpenDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if _, err := privatefile.OpenFile(root, "f", "shown", os.O_RDWR); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
	f, err := privatefile.OpenFile(root, "f", "shown", os.O_RDWR|os.O_CREATE)
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	if err := os.WriteFile(filepath.Join(dir, "f"), []byte("abc"), 0o600); err != nil {
		t.Fatal(err)
	}
	for limit, safe := range map[int64]bool{2: false, 3: true, 4: true} {
		data, err := privatefile.ReadFile(root, "f", "shown", limit)
		if safe && (err != nil || string(data) != "abc") {
			t.Errorf("limit %d: %q, %v", limit, data, err)
		} else if !safe {
			privatefiletest.WantUnsafe(t, "too large", err, "shown")
		}
	}
	if _, err := privatefile.ReadFile(root, "none", "shown", 1); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("read a missing file: %v", err)
	}
	// Only a new file may come from the flag.
	if err := os.Chmod(filepath.Join(dir, "f"), 0o620); err != nil {
		t.Fatal(err)
	}
	_, err = privatefile.OpenFile(root, "f", "shown", os.O_RDWR|os.O_CREATE)
	privatefiletest.WantUnsafe(t, "open a file that others can write", err, "shown")
}

// A message contains the path once, and no characters that control a terminal.
func TestReason(t *testing.T) {
	for want, err := range map[string]error{
		"symbolic link": errors.Join(&privatefile.UnsafeError{Path: "/p", Reason: "symbolic link"}),
		`bad \x1b`:      errors.Join(&privatefile.DamagedError{Path: "/p", Err: errors.New("bad \x1b")}),
		`other \x1b`:    errors.New("other \x1b"),
	} {
		if got := privatefile.Reason(err); got != want {
			t.Errorf("Reason(%v) = %q, want %q", err, got, want)
		}
	}
	cause := errors.New("bad")
	if err := error(&privatefile.DamagedError{Path: "/p", Err: cause}); err.Error() != "/p: bad" || !errors.Is(err, cause) {
		t.Errorf("got %v", err)
	}
}

func TestCheckInfo(t *testing.T) {
	dir := t.TempDir()
	file, link := filepath.Join(dir, "f"), filepath.Join(dir, "l")
	if err := errors.Join(os.WriteFile(file, nil, 0o600), os.Symlink("f", link)); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		path string
		want fs.FileMode
		text string
	}{
		{file, 0, ""}, {dir, fs.ModeDir, ""},
		{file, fs.ModeDir, "not a directory"}, {dir, 0, "not a regular file"},
		{link, 0, "symbolic link"}, {link, fs.ModeDir, "symbolic link"},
	} {
		info, err := os.Lstat(tt.path)
		if err != nil {
			t.Fatal(err)
		}
		err = privatefile.CheckInfo("shown", info, tt.want)
		u, _ := errors.AsType[*privatefile.UnsafeError](err)
		if tt.text == "" && err != nil || tt.text != "" && (u == nil || u.Reason != tt.text || u.Path != "shown") {
			t.Errorf("%s as %v: %v, want %q", tt.path, tt.want, err, tt.text)
		}
	}
	modes := []fs.FileMode{0o620, 0o602, 0o622, 0o644, 0o600}
	var unsafe []fs.FileMode
	for _, m := range modes {
		if err := os.Chmod(file, m); err != nil {
			t.Fatal(err)
		}
		info, _ := os.Lstat(file)
		if privatefile.CheckInfo(file, info, 0) != nil {
			unsafe = append(unsafe, m)
		}
	}
	if !slices.Equal(unsafe, modes[:3]) {
		t.Errorf("unsafe modes are %o, want %o", unsafe, modes[:3])
	}
}

// On a full disk, and with too many open files, an error is returned. A change
// that fails leaves the old content, unless only the directory was not synced.
func TestLimits(t *testing.T) {
	dir := t.TempDir()
	f := privatefile.New(filepath.Join(dir, "f"), 2*limittest.MaxFileSize)
	if err := f.Change(t.Context(), set("old")); err != nil {
		t.Fatal(err)
	}
	limittest.FullDisk(t, func() {
		if err := f.Change(t.Context(), set(strings.Repeat("x", limittest.MaxFileSize+1))); err == nil {
			t.Error("no error of a full disk")
		}
	})
	if got, err := f.Read(); err != nil || string(got) != "old" {
		t.Errorf("after a full disk, read %q, %v", got, err)
	}
	if all, _ := os.ReadDir(dir); len(all) != 2 { // with the lock
		t.Errorf("temporary files remain: %v", all)
	}
	limittest.EachOpen(t, func() error { return f.Change(t.Context(), set("new")) }, func(failed error) {
		if got, err := f.Read(); err != nil || string(got) != "old" && string(got) != "new" {
			t.Errorf("after %v, read %q, %v", failed, got, err)
		}
	})
	var got []byte
	limittest.EachOpen(t, func() (err error) { got, err = f.Read(); return err }, func(error) {
		if len(got) > 0 {
			t.Errorf("content %q with an error", got)
		}
	})
	if string(got) != "new" {
		t.Errorf("at the end, read %q", got)
	}
	ran := false
	limittest.EachOpen(t, func() error {
		return privatefile.LockDir(t.Context(), dir, func(*os.Root) error { ran = true; return nil })
	}, func(failed error) {
		if ran {
			t.Errorf("ran without the lock: %v", failed)
		}
	})
	if !ran {
		t.Error("did not run with the lock")
	}
}

// A file that another process replaces at the same time is read as a whole.
func TestReadWhileReplaced(t *testing.T) {
	dir := t.TempDir()
	root, err := privatefile.OpenDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if err := privatefile.ReplaceFile(root, "f", []byte("0")); err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() {
		var err error
		for i := 0; i < 200 && err == nil; i++ {
			err = privatefile.ReplaceFile(root, "f", []byte("0"))
		}
		done <- err
	}()
	for {
		select {
		case err := <-done:
			if err != nil {
				t.Error(err)
			}
			return
		default:
			if data, err := privatefile.ReadFile(root, "f", "f", 10); err != nil || string(data) != "0" {
				t.Errorf("read %q, %v", data, err)
			}
		}
	}
}
