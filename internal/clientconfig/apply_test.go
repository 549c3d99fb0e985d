package clientconfig_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/clientconfig"
)

func TestApplyModes(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no such modes")
	}
	target := at(t, "cursor", []byte("{}"))
	for _, mode := range []os.FileMode{0o600, 0o640, 0o664} {
		if err := os.Chmod(target.File, mode); err != nil {
			t.Fatal(err)
		}
		ch := connect(t, target, command)
		for file, want := range map[string]os.FileMode{target.File: mode, ch.Backup: 0o600} {
			if info, err := os.Stat(file); err != nil || info.Mode().Perm() != want {
				t.Errorf("%s has mode %v, want %v (%v)", file, info.Mode(), want, err)
			}
		}
		undo(t, target)
	}

	target.File = filepath.Join(filepath.Dir(target.File), "a", "b", "config")
	connect(t, target, command)
	for file, want := range map[string]os.FileMode{target.File: 0o600, filepath.Dir(target.File): 0o700, filepath.Dir(filepath.Dir(target.File)): 0o700} {
		if info, err := os.Stat(file); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s has mode %v, want %v (%v)", file, info.Mode(), want, err)
		}
	}
}

func TestApplyChanged(t *testing.T) {
	for name, change := range map[string]func(file string) error{
		"edited":  func(f string) error { return os.WriteFile(f, []byte("{ }"), 0o600) },
		"deleted": os.Remove,
		"linked elsewhere": func(f string) error {
			return errors.Join(os.Rename(f, f+"2"), os.Symlink(f+"2", f))
		},
		"backup": func(f string) error { return os.WriteFile(f+".loadout-backup", []byte("theirs"), 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			target := at(t, "cursor", []byte("{}"))
			ch, err := clientconfig.Plan(target, command)
			if err != nil {
				t.Fatal(err)
			}
			if err := change(target.File); err != nil {
				t.Skip(err)
			}
			if err := ch.Apply(); !errors.Is(err, clientconfig.ErrChanged) {
				t.Errorf("got %v", err)
			}
			files, _ := filepath.Glob(filepath.Join(filepath.Dir(target.File), "*"))
			hidden, _ := filepath.Glob(filepath.Join(filepath.Dir(target.File), ".*"))
			for _, f := range append(files, hidden...) {
				if text := read(t, f); strings.Contains(text, "loadout") {
					t.Errorf("%s was written: %s", f, text)
				}
			}
		})
	}

	target := at(t, "cursor", nil)
	ch, err := clientconfig.Plan(target, command)
	if err != nil {
		t.Fatal(err)
	}
	write(t, target.File, []byte("{}"))
	if err := ch.Apply(); !errors.Is(err, clientconfig.ErrChanged) {
		t.Errorf("created meanwhile: got %v", err)
	}

	ch = connect(t, target, command)
	if err := ch.Apply(); !errors.Is(err, clientconfig.ErrChanged) {
		t.Errorf("twice: got %v", err)
	}
}

func TestApplyLinks(t *testing.T) {
	home := t.TempDir()
	home, err := filepath.EvalSymlinks(home)
	if err != nil {
		t.Fatal(err)
	}
	target := clientconfig.Target{Client: lookup(t, "cursor"), Environment: clientconfig.Environment{OS: "linux", Home: home, Dir: home}}
	link := filepath.Join(home, ".cursor", "mcp.json")
	dotfiles := filepath.Join(home, "dotfiles", "cursor.json")
	if err := errors.Join(os.Mkdir(filepath.Dir(link), 0o700), os.Mkdir(filepath.Dir(dotfiles), 0o700)); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("../dotfiles/hop.json", link); err != nil {
		t.Skip(err)
	}
	if err := os.Symlink("cursor.json", filepath.Join(home, "dotfiles", "hop.json")); err != nil {
		t.Fatal(err)
	}
	isLink := func() {
		t.Helper()
		if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
			t.Errorf("the link is not a longer one: %v %v", info.Mode(), err)
		}
	}

	// A symlink to a missing file.
	ch := connect(t, target, command)
	if ch.File != link || ch.Target != dotfiles || len(ch.Notes) == 0 || !strings.Contains(ch.Notes[0], dotfiles) {
		t.Errorf("got %+v", ch)
	}
	isLink()
	undo(t, target)
	isLink()
	if _, err := os.Stat(dotfiles); !os.IsNotExist(err) {
		t.Errorf("undo left %v", err)
	}

	// And to one that is.
	write(t, dotfiles, []byte("{}"))
	if ch = connect(t, target, command); ch.Backup != link+".loadout-backup" {
		t.Errorf("the backup is %s", ch.Backup)
	}
	isLink()
	if !strings.Contains(read(t, dotfiles), "loadout") {
		t.Error("the file behind the link is not written")
	}
	undo(t, target)
	isLink()
	if got := read(t, dotfiles); got != "{}" {
		t.Errorf("undo left %q", got)
	}

	// A ring.
	if err := errors.Join(os.Remove(dotfiles), os.Symlink("hop.json", dotfiles)); err != nil {
		t.Fatal(err)
	}
	if _, err := clientconfig.Plan(target, command); err == nil {
		t.Error("a ring of links is accepted")
	}
}

// Symlinks in a repository must not select another file of the user.
func TestProjectLinks(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	secret := filepath.Join(outside, "mcp.json")
	write(t, secret, []byte("{}"))
	target := clientconfig.Target{Client: lookup(t, "cursor"), Scope: clientconfig.Project, Environment: clientconfig.Environment{OS: "linux", Dir: dir}}
	if err := os.Symlink(outside, filepath.Join(dir, ".cursor")); err != nil {
		t.Skip(err)
	}
	_, err := clientconfig.Plan(target, command)
	var file *clientconfig.FileError
	if !errors.As(err, &file) || !strings.Contains(file.Problem, "out of the project") {
		t.Errorf("got %v", err)
	}
	if _, err := clientconfig.PlanUndo(target, ""); !errors.As(err, &file) {
		t.Errorf("undo: got %v", err)
	}
	// A file named by the user may be a symlink.
	target.File = ".cursor/mcp.json"
	connect(t, target, command)
	if !strings.Contains(read(t, secret), "loadout") {
		t.Error("the named file is not written")
	}
	// And inside the project a link is as good as a file.
	target.File = ""
	if err := errors.Join(os.Remove(filepath.Join(dir, ".cursor")), os.Mkdir(filepath.Join(dir, "cfg"), 0o700), os.Symlink("cfg", filepath.Join(dir, ".cursor"))); err != nil {
		t.Fatal(err)
	}
	if ch := connect(t, target, command); ch.Action != clientconfig.Create {
		t.Errorf("got %+v", ch)
	}
}

func TestBackups(t *testing.T) {
	target := at(t, "cursor", []byte("{}"))
	first := connect(t, target, clientconfig.Entry{Command: "/one/loadout", Args: []string{"mcp"}})
	if first.Backup != target.File+".loadout-backup" {
		t.Errorf("got %s", first.Backup)
	}
	second := connect(t, target, clientconfig.Entry{Command: "/two/loadout", Args: []string{"mcp"}})
	if second.Backup != target.File+".loadout-backup-2" || !strings.Contains(read(t, second.Backup), `"/one/loadout"`) {
		t.Errorf("got %s", second.Backup)
	}
	if read(t, first.Backup) != "{}" {
		t.Error("the first backup changed")
	}
	// Back to one: its bytes are there already.
	connect(t, target, clientconfig.Entry{Command: "/one/loadout", Args: []string{"mcp"}})
	if again := connect(t, target, clientconfig.Entry{Command: "/three/loadout", Args: []string{"mcp"}}); again.Backup != second.Backup {
		t.Errorf("got %s", again.Backup)
	}
	back := undo(t, target)
	if read(t, target.File) != "{}" || len(back.Removes) != 3 {
		t.Errorf("undo left %q and removed %v", read(t, target.File), back.Removes)
	}
	if left, _ := filepath.Glob(target.File + ".*"); len(left) > 0 {
		t.Errorf("left: %v", left)
	}

	for i := range 9 {
		connect(t, target, clientconfig.Entry{Command: fmt.Sprintf("/%d/loadout", i), Args: []string{"mcp"}})
	}
	_, err := clientconfig.Plan(target, clientconfig.Entry{Command: "/ten/loadout", Args: []string{"mcp"}})
	if err == nil || !strings.Contains(err.Error(), "too many backups (limit 9)") {
		t.Errorf("got %v", err)
	}
	if back := undo(t, target); len(back.Removes) != 9 || read(t, target.File) != "{}" {
		t.Errorf("undo removed %v and left %q", back.Removes, read(t, target.File))
	}
}

// A backup that was there before, even a link, is not touched by connecting.
func TestForeignBackups(t *testing.T) {
	target := at(t, "cursor", []byte("{}"))
	other := filepath.Join(filepath.Dir(target.File), "other")
	write(t, other, []byte("{}"))
	if err := os.Symlink(other, target.File+".loadout-backup"); err != nil {
		t.Skip(err)
	}
	write(t, target.File+".loadout-backup-2", []byte("old"))
	ch := connect(t, target, command)
	if ch.Backup != target.File+".loadout-backup-3" {
		t.Errorf("got %s", ch.Backup)
	}
	if read(t, other) != "{}" || read(t, target.File+".loadout-backup-2") != "old" {
		t.Error("a file that is not ours changed")
	}
	undo(t, target)
	if read(t, target.File) != "{}" || read(t, other) != "{}" {
		t.Error("undo did not give the file back")
	}
	if _, err := os.Lstat(target.File + ".loadout-backup"); err != nil {
		t.Errorf("the link is gone: %v", err)
	}
}

// With nothing to undo, backups stay: they may be all there is.
func TestUndoWithoutBackup(t *testing.T) {
	target := at(t, "cursor", nil)
	if ch := undo(t, target); ch.Action != clientconfig.None || ch.Diff() != "" {
		t.Errorf("got %+v", ch)
	}
	write(t, target.File, []byte("{}"))
	ch := connect(t, target, command)
	write(t, target.File, []byte("{\"lost\": true}"))
	back := undo(t, target)
	if back.Action != clientconfig.None || len(back.Notes) != 1 || !strings.Contains(back.Notes[0], ch.Backup) {
		t.Errorf("got %+v", back)
	}
	if read(t, ch.Backup) != "{}" {
		t.Error("the backup is gone")
	}
}

func TestApplyWithoutFilePermission(t *testing.T) {
	if os.Getuid() == 0 || runtime.GOOS == "windows" {
		t.Skip("root may write everywhere")
	}
	target := at(t, "cursor", []byte("{}"))
	ch, err := clientconfig.Plan(target, command)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Dir(target.File)
	if err := os.Chmod(dir, 0o500); err != nil {
		t.Fatal(err)
	}
	defer os.Chmod(dir, 0o700)
	err = ch.Apply()
	var file *clientconfig.FileError
	if !errors.As(err, &file) || !errors.Is(err, os.ErrPermission) {
		t.Errorf("got %v", err)
	}
}

func TestNotes(t *testing.T) {
	dir := t.TempDir()
	place := clientconfig.Environment{OS: "linux", Home: dir, Dir: dir}
	write(t, filepath.Join(dir, ".mcp.json"), []byte("{} // x"))
	ch, err := clientconfig.Plan(clientconfig.Target{Client: lookup(t, "claude-code"), Scope: clientconfig.Project, Environment: place}, command)
	if err != nil {
		t.Fatal(err)
	}
	if notes := strings.Join(ch.Notes, "\n"); !strings.Contains(notes, "asks each user once") || !strings.Contains(notes, "comments or trailing commas, which") {
		t.Errorf("got %s", notes)
	}
	if ch.Next == "" {
		t.Error("it does not say what is next")
	}
}
