package execution

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/sandbox/execute"
	"github.com/loadout-dev/loadout/sandbox"
)

// saveFiles saves files as a run with this output would.
func saveFiles(t *testing.T, out Output, files map[string]string) (*collector, *execute.Result) {
	t.Helper()
	o, err := newCollector(t.Context(), out, &sandbox.Spec{})
	if err != nil {
		t.Fatal(err)
	}
	res := &execute.Result{}
	for p, text := range files {
		f := sandbox.File{Path: p, Exec: strings.HasSuffix(p, ".sh")}
		saved, err := o.collect(f, strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		if saved {
			res.Files = append(res.Files, f)
		}
	}
	if err := o.commit(res); err != nil {
		t.Fatal(err)
	}
	return o, res
}

func dirNames(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return strings.Join(names, " ")
}

func TestWorkingFolder(t *testing.T) {
	dir := t.TempDir()
	if o, _ := saveFiles(t, Output{FolderDir: dir, NewFolder: true}, nil); o.handle != "" || dirNames(t, dir) != "" {
		t.Errorf("an empty new folder has the handle %q and leaves %q", o.handle, dirNames(t, dir))
	}
	o, _ := saveFiles(t, Output{FolderDir: dir, NewFolder: true}, map[string]string{"a.txt": "1", "out/b.txt": "2", ".c": "3"})
	handle := o.handle
	if got, want := dirNames(t, dir), handle+" "+handle+".lock"; handle == "" || got != want {
		t.Fatalf("the directory has %q, want %q", got, want)
	}
	if got := dirNames(t, filepath.Join(dir, handle)); got != ".c a.txt out" {
		t.Errorf("the folder has %q", got)
	}
	// The folder then has what the next run leaves, even if that is nothing.
	saveFiles(t, Output{FolderDir: dir, Folder: handle}, map[string]string{"d.txt": "4"})
	if got := dirNames(t, filepath.Join(dir, handle)); got != "d.txt" {
		t.Errorf("the folder has %q", got)
	}
	if o, _ := saveFiles(t, Output{FolderDir: dir, Folder: handle}, nil); o.handle != handle || dirNames(t, filepath.Join(dir, handle)) != "" {
		t.Errorf("an emptied folder has the handle %q and files %q", o.handle, dirNames(t, filepath.Join(dir, handle)))
	}
	for _, out := range []Output{
		{FolderDir: dir, Folder: "../" + handle}, {FolderDir: dir, Folder: strings.Repeat("a", 16)}, {Folder: handle}, {NewFolder: true},
	} {
		if _, err := newCollector(t.Context(), out, &sandbox.Spec{}); !errors.Is(err, ErrNoFolder) {
			t.Errorf("%+v: error is %v", out, err)
		}
	}
	if got, want := dirNames(t, dir), handle+" "+handle+".lock"; got != want {
		t.Errorf("the directory has %q, want %q", got, want)
	}
}

func TestAbandonedFolder(t *testing.T) {
	dir := t.TempDir()
	o, err := newCollector(t.Context(), Output{FolderDir: dir, NewFolder: true}, &sandbox.Spec{})
	if err != nil {
		t.Fatal(err)
	}
	o.discard()
	if got := dirNames(t, dir); got != "" {
		t.Errorf("it leaves %q", got)
	}
}

func TestOutputDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new")
	o, res := saveFiles(t, Output{Dir: dir}, map[string]string{
		"out/a.txt": "1", "out/sub/run.sh": "2", "out/.git/hooks/x": "3", "out/con.txt": "4", "work.txt": "5", ".cache/x": "6",
	})
	if got := dirNames(t, dir); got != "a.txt sub" || len(res.Files) != 2 {
		t.Errorf("the directory has %q, the result %v", got, res.Files)
	}
	for _, f := range res.Files {
		if strings.HasPrefix(f.Path, "out/") {
			t.Errorf("path is %s", f.Path)
		}
	}
	if o.unsaved != 1 || o.hidden != 1 || o.unsafe != 1 || !strings.HasPrefix(o.reason, "con.txt: ") {
		t.Errorf("%d not saved, %d hidden, %d unsafe: %s", o.unsaved, o.hidden, o.unsafe, o.reason)
	}
	if fi, err := os.Stat(filepath.Join(dir, "sub", "run.sh")); err != nil || fi.Mode()&0o100 == 0 {
		t.Errorf("the script is %v, %v", fi, err)
	}

	// Symlinks and files in the way are replaced, never followed.
	other := filepath.Join(t.TempDir(), "other")
	if err := errors.Join(os.WriteFile(other, []byte("mine"), 0o600), os.Remove(filepath.Join(dir, "a.txt")), os.Symlink(other, filepath.Join(dir, "a.txt")),
		os.RemoveAll(filepath.Join(dir, "sub")), os.WriteFile(filepath.Join(dir, "sub"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	saveFiles(t, Output{Dir: dir}, map[string]string{"out/a.txt": "7", "out/sub/b.txt": "8"})
	for file, want := range map[string]string{other: "mine", filepath.Join(dir, "a.txt"): "7", filepath.Join(dir, "sub", "b.txt"): "8"} {
		if got, err := os.ReadFile(file); err != nil || string(got) != want {
			t.Errorf("%s has %q, %v; want %q", file, got, err, want)
		}
	}
	if got := dirNames(t, dir); got != "a.txt sub" {
		t.Errorf("the directory has %q", got)
	}
}

func TestNoOutput(t *testing.T) {
	o, _ := saveFiles(t, Output{}, map[string]string{"out/a": "1", "b": "2"})
	if o.root != nil || o.unsaved != 1 {
		t.Errorf("%d not saved", o.unsaved)
	}
}
