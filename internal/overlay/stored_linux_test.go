package overlay_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loadout-dev/loadout/internal/overlay"
)

// Stored changes do what [overlay.Set.Apply] does, after the set is closed.
func TestStoredChanges(t *testing.T) {
	lower := tree{
		"a": "fone", "same": "fsame", "gone": "fold", "dir": "d", "dir/x": "fx", "dir/y": "fy", "del": "d", "del/z": "fz",
		"link": "la", "becomes-file": "la", "becomes-link": "ftext", "run.sh": "frun",
	}
	merged := tree{
		"a": "ftwo", "same": "fsame", "dir": "d", "dir/x": "fchanged", "dir/y": "fy", "new": "d", "new/sub": "d", "new/sub/f": "fnew", "empty": "f",
		"link": "lsame", "becomes-file": "ftext", "becomes-link": "la", "new-link": "ldir/x", "run.sh": "frun",
	}
	dir, upper := dirs(t, lower, merged)
	if err := errors.Join(os.WriteFile(upper+"/run.sh", []byte("run"), 0o644), os.Chmod(upper+"/run.sh", 0o755), os.Chmod(upper+"/empty", 0o755)); err != nil {
		t.Fatal(err)
	}
	s := read(t, dir, upper)
	var all []overlay.Stored
	for i := range s.List {
		c := &s.List[i]
		if c.Refused != "" {
			t.Fatalf("%s: %s", c.Path, c.Refused)
		}
		stored, err := s.Store(c)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, stored)
	}
	s.Close()
	contents := map[string][2]string{
		"modify a": {"one", "two"}, "delete gone": {"old", ""}, "modify dir/x": {"x", "changed"}, "create new/sub/f": {"", "new"}, "create new": {"", ""}, "create empty": {"", ""},
		"mode run.sh": {"run", "run"}, "create new-link": {"", "symlink to dir/x\n"}, "delete becomes-link": {"text", ""}, "create becomes-link": {"", "symlink to a\n"},
	}
	for _, c := range all {
		name := string(c.Op) + " " + c.Path
		want, ok := contents[name]
		before, after, err := c.Contents(dir)
		if ok && (string(before) != want[0] || string(after) != want[1]) || err != nil {
			t.Errorf("%s: %q before, %q after, %v", name, before, after, err)
		}
		if err := c.Apply(dir); err != nil {
			t.Errorf("%s %s: %v", c.Op, c.Path, err)
		}
		delete(contents, name)
	}
	if len(contents) > 0 {
		t.Errorf("not changed: %v", contents)
	}
	if diff := cmp.Diff(merged, readTree(t, dir)); diff != "" {
		t.Error(diff)
	}
	for p, want := range map[string]fs.FileMode{"run.sh": 0o755, "empty": 0o755, "a": 0o644, "new": fs.ModeDir | 0o755} {
		if fi, err := os.Lstat(filepath.Join(dir, p)); err != nil || fi.Mode() != want {
			t.Errorf("%s has mode %v, want %v", p, fi.Mode(), want)
		}
	}
	for _, c := range all {
		if err := c.Apply(dir); !errors.Is(err, overlay.ErrStale) && !(c.Op == overlay.Create && c.Mode.IsDir()) {
			t.Errorf("%s %s again: %v", c.Op, c.Path, err)
		}
		if _, _, err := c.Contents(dir); !errors.Is(err, overlay.ErrStale) && !(c.Op == overlay.Create && c.Mode.IsDir()) {
			t.Errorf("contents of %s %s again: %v", c.Op, c.Path, err)
		}
	}
}

// New files belong to the owner of their directory, whoever applies the change.
func TestStoredChangesKeepOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can change the files of others")
	}
	const uid = 60599
	dir := t.TempDir()
	if err := os.Chown(dir, uid, uid); err != nil {
		t.Fatal(err)
	}
	for _, c := range []overlay.Stored{
		{Path: "f", Op: overlay.Create, Mode: 0o644, Content: []byte("x")}, {Path: "d", Op: overlay.Create, Mode: fs.ModeDir | 0o755}, {Path: "l", Op: overlay.Create, Mode: fs.ModeSymlink | 0o777, Target: "f"},
	} {
		if err := c.Apply(dir); err != nil {
			t.Error(err)
		}
		var got uint32
		if fi, err := os.Lstat(filepath.Join(dir, c.Path)); err == nil {
			got = ownerOf(fi)
		}
		if got != uid {
			t.Errorf("%s belongs to user %d", c.Path, got)
		}
	}
}

func TestInvalidStoredChanges(t *testing.T) {
	dir := t.TempDir()
	tree{"dir": "d", "dir/f": "fx", "link": "ldir", "file": "fx"}.write(t, dir)
	large := strings.Repeat("x", overlay.MaxStored+1)
	if err := os.WriteFile(dir+"/large", []byte(large), 0o644); err != nil {
		t.Fatal(err)
	}
	valid := overlay.Stored{Path: "new", Op: overlay.Create, Mode: 0o644}
	for name, tt := range map[string]struct {
		change func(*overlay.Stored)
		want   string // part of the error
	}{
		"no path":            {func(c *overlay.Stored) { c.Path = "" }, "invalid path"},
		"the directory":      {func(c *overlay.Stored) { c.Path = "." }, "invalid path"},
		"a parent":           {func(c *overlay.Stored) { c.Path = "../x" }, "invalid path"},
		"no text":            {func(c *overlay.Stored) { c.Path = "\xff" }, "invalid path"},
		"no operation":       {func(c *overlay.Stored) { c.Op = "" }, "invalid operation"},
		"too large":          {func(c *overlay.Stored) { c.Content = []byte(large) }, "too large"},
		"a pipe":             {func(c *overlay.Stored) { c.Mode = fs.ModeNamedPipe }, "not a file, directory or symlink"},
		"below a file":       {func(c *overlay.Stored) { c.Path = "file/new" }, "file/new: "},
		"below a symlink":    {func(c *overlay.Stored) { c.Path = "link/new" }, "link/new: "},
		"no such directory":  {func(c *overlay.Stored) { c.Path = "none/new" }, "none/new: "},
		"a file that exists": {func(c *overlay.Stored) { c.Path = "file" }, overlay.ErrStale.Error()},
		"a large file":       {func(c *overlay.Stored) { c.Path, c.Op = "large", overlay.Delete }, "large: "},
		"a full directory":   {func(c *overlay.Stored) { c.Path, c.Op, c.Before = "dir", overlay.Delete, "directory" }, "dir: "},
		"an empty target":    {func(c *overlay.Stored) { c.Mode = fs.ModeSymlink }, "new: "},
	} {
		c := valid
		tt.change(&c)
		if err := c.Apply(dir); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
	}
	c := valid
	for _, missing := range []string{filepath.Join(dir, "none"), filepath.Join(dir, "file")} {
		if err := c.Apply(missing); err == nil {
			t.Error("applied to ", missing)
		}
		if _, _, err := c.Contents(missing); err == nil {
			t.Error("contents of ", missing)
		}
	}
	if left, _ := os.ReadDir(dir); len(left) != 4 {
		t.Errorf("left %v", left)
	}
}

// A file that is too large to store is named.
func TestLargeChangeIsNotStored(t *testing.T) {
	for size, stores := range map[int]bool{overlay.MaxStored: true, overlay.MaxStored + 1: false} {
		dir, upper := dirs(t, tree{}, tree{"big": "f" + strings.Repeat("x", size)})
		s := read(t, dir, upper)
		c, err := s.Store(&s.List[0])
		if (err == nil) != stores || stores && len(c.Content) != size || !stores && !strings.HasPrefix(err.Error(), "big: ") {
			t.Errorf("%d bytes: stored %d, %v", size, len(c.Content), err)
		}
	}
	dir, upper := dirs(t, tree{"big": "f" + strings.Repeat("x", overlay.MaxStored+1)}, tree{"big": "fsmall"})
	s := read(t, dir, upper)
	if _, err := s.Store(&s.List[0]); err == nil {
		t.Error("the state of a large file was stored")
	}
}

// The contents of changes that have not been applied can be shown.
func TestContents(t *testing.T) {
	lower := tree{"a": "fone", "gone": "fold", "link": "la", "big": "f" + strings.Repeat("x", 100)}
	dir, upper := dirs(t, lower, tree{"a": "ftwo", "new": "fnew", "link": "lnew", "big": "fsmall"})
	s := read(t, dir, upper)
	got := map[string][2]string{}
	for i := range s.List {
		c := &s.List[i]
		before, after, err := s.Contents(c, 50)
		if err != nil {
			before = []byte(err.Error())
		}
		got[c.Path] = [2]string{string(before), string(after)}
		if mode, ok := c.OldMode(); ok != (lower[c.Path] != "") || ok && mode.Perm() == 0 {
			t.Errorf("%s had mode %v, %t", c.Path, mode, ok)
		}
	}
	want := map[string][2]string{
		"a": {"one", "two"}, "new": {"", "new"}, "gone": {"old", ""}, "link": {"symlink to a\n", "symlink to new\n"},
		"big": {"read original file big: too large to show (100 bytes, limit 50)", ""},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func ownerOf(fi fs.FileInfo) uint32 { return fi.Sys().(*syscall.Stat_t).Uid }
