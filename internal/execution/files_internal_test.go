package execution

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/loadout-dev/loadout/internal/sandbox/execute"
	"github.com/loadout-dev/loadout/internal/sandbox/mountpoint"
	"github.com/loadout-dev/loadout/internal/script"
	"github.com/loadout-dev/loadout/internal/skillfile"
	"github.com/loadout-dev/loadout/sandbox"
	"github.com/loadout-dev/loadout/skill"
)

func TestInputTrees(t *testing.T) {
	dir := fstest.MapFS{"d/a": {Data: []byte("12")}, "d/deep/run.sh": {Data: []byte("123"), Mode: 0o755}, "d/pipe": {Mode: fs.ModeNamedPipe}, "big": {Data: []byte("x")}}
	for _, tt := range []struct {
		name   string
		inputs []Input
		want   string // files, or the error
	}{
		{"none", nil, ""},
		{"a file", []Input{{"x/given", dir, "d/a"}}, "x/given 2 false"},
		{"a text", []Input{{"t", TextFile([]byte("text")), "data"}}, "t 4 false"},
		{"a directory", []Input{{"x", dir, "d"}}, "x/a 2 false, x/deep/run.sh 3 true"},
		{"all", []Input{{"x", dir, "."}}, "x/big 1 false, x/d/a 2 false, x/d/deep/run.sh 3 true"},
		{"two", []Input{{"b", dir, "d/a"}, {"a", dir, "d/a"}}, "a 2 false, b 2 false"},
		{"twice", []Input{{"b", dir, "d/a"}, {"b", dir, "big"}}, "duplicate input name b"},
		{"a file in a file", []Input{{"b", dir, "d/a"}, {"b/c", dir, "big"}}, "b is both a file and a directory"},
		{"a file for a directory", []Input{{"b/c", dir, "d/a"}, {"b", dir, "big"}}, "b is both a file and a directory"},
		{"outside", []Input{{"../b", dir, "d/a"}}, `invalid input name "../b"`},
		{"no name", []Input{{".", dir, "d/a"}}, `invalid input name "."`},
		{"missing", []Input{{"b", dir, "none"}}, "file does not exist"},
		{"a pipe", []Input{{"b", dir, "d/pipe"}}, "not a regular file"},
	} {
		trees, err := inputTrees(tt.inputs)
		if err != nil {
			if !strings.Contains(err.Error(), tt.want) || tt.want == "" {
				t.Errorf("%s: %v", tt.name, err)
			}
			continue
		}
		var got []string
		for _, tree := range trees {
			if tree.Path != mountpoint.In {
				t.Errorf("%s: tree at %s", tt.name, tree.Path)
			}
			for _, f := range tree.Files {
				got = append(got, f.Path+" "+string('0'+rune(f.Size))+map[bool]string{true: " true", false: " false"}[f.Exec])
				if b, err := fs.ReadFile(tree.FS, f.Path); err != nil || int64(len(b)) != f.Size {
					t.Errorf("%s: %s has %q, %v", tt.name, f.Path, b, err)
				}
			}
		}
		if strings.Join(got, ", ") != tt.want {
			t.Errorf("%s: %q, want %s", tt.name, got, tt.want)
		}
	}
}

// Only approved bytes can be read.
func TestVerifiedFS(t *testing.T) {
	content := fstest.MapFS{"a": {Data: []byte("good")}, "d/b.sh": {Data: []byte("good")}, "longer": {Data: []byte("good and more")}, "changed": {Data: []byte("evil")}, "unlisted": {Data: []byte("good")}}
	hash := skillfile.Hash([]byte("good"))
	v := &verifiedFS{fsys: content, files: skill.Manifest{{Path: "a", Size: 4, SHA256: hash}, {Path: "changed", Size: 4, SHA256: hash}, {Path: "d/b.sh", Size: 4, SHA256: hash, Script: true}, {Path: "gone", Size: 4, SHA256: hash}, {Path: "longer", Size: 4, SHA256: hash}}}
	for _, name := range []string{"a", "d/b.sh"} {
		if b, err := fs.ReadFile(v, name); err != nil || string(b) != "good" {
			t.Errorf("%s: %q, %v", name, b, err)
		}
	}
	for _, name := range []string{"gone", "unlisted", "d/c", "e"} {
		if _, err := fs.ReadFile(v, name); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if v.changed != nil {
		t.Errorf("changed: %v", v.changed)
	}
	for _, name := range []string{"longer", "changed"} {
		if _, err := fs.ReadFile(v, name); err == nil {
			t.Errorf("%s can be read", name)
		} else if e, ok := errors.AsType[*sandbox.ChangedError](err); !ok || e.Path != name || e.Tree != mountpoint.Skill {
			t.Errorf("%s: %v", name, err)
		}
	}
	if v.changed == nil || v.changed.Path != "longer" {
		t.Errorf("the first changed file is %v", v.changed)
	}
	for name, want := range map[string]fs.FileMode{".": fs.ModeDir | 0o755, "d": fs.ModeDir | 0o755, "a": 0o644, "d/b.sh": 0o755} {
		if fi, err := fs.Stat(v, name); err != nil || fi.Mode() != want {
			t.Errorf("%s: %v, %v", name, fi, err)
		}
	}
}

func TestCheckWorkspace(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{"work/sub", "state/run", "state-2"} {
		if err := os.MkdirAll(filepath.Join(dir, filepath.FromSlash(p)), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	state := filepath.Join(dir, "state")
	for _, tt := range []struct {
		at    string
		wrong bool
	}{
		{filepath.Join(dir, "work"), false}, {filepath.Join(dir, "state-2"), false}, {state, true}, {filepath.Join(state, "run"), true}, {dir, true},
		{"work", true}, {filepath.VolumeName(dir) + string(filepath.Separator), true},
	} {
		if err := CheckWorkspace(tt.at, "", state); errors.Is(err, ErrWorkspace) != tt.wrong || !tt.wrong && err != nil {
			t.Errorf("%s: %v", tt.at, err)
		}
	}
	if err := CheckWorkspace(filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing directory: %v", err)
	}
	if err := CheckWorkspace(dir, filepath.Join(dir, "later", "state")); !errors.Is(err, ErrWorkspace) {
		t.Errorf("above a state that does not exist yet: %v", err)
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(state, link); err != nil {
		t.Skip(err)
	}
	if err := CheckWorkspace(link, state); !errors.Is(err, ErrWorkspace) {
		t.Errorf("a symlink to the state: %v", err)
	}
	if err := CheckWorkspace(state, filepath.Join(link, "later")); !errors.Is(err, ErrWorkspace) {
		t.Errorf("a state through a symlink: %v", err)
	}
}

func TestMountWorkspace(t *testing.T) {
	dir := t.TempDir()
	if err := errors.Join(os.Mkdir(filepath.Join(dir, ".git"), 0o755), os.WriteFile(filepath.Join(dir, ".mcp.json"), nil, 0o644), os.WriteFile(filepath.Join(dir, "x"), nil, 0o644)); err != nil {
		t.Fatal(err)
	}
	for access, want := range map[Access]sandbox.Mount{ReadOnly: {}, Overlay: {Overlay: true}, OverlayOrDirect: {Overlay: true}, Direct: {Writable: true}} {
		s := &sandbox.Spec{}
		mountWorkspace(s, dir, access)
		want.Host, want.Path = dir, mountpoint.Workspace
		if s.Mounts[0] != want {
			t.Errorf("access %d: %+v", access, s.Mounts[0])
		}
		if n := len(s.Mounts); n != map[bool]int{true: 3, false: 1}[access == Direct] {
			t.Errorf("access %d: %d mounts", access, n)
		}
		for _, m := range s.Mounts[1:] {
			if m.Writable || !IsProtected(filepath.Base(m.Host)) || m.Path != mountpoint.Workspace+"/"+filepath.Base(m.Host) {
				t.Errorf("access %d: %+v", access, m)
			}
		}
	}
	for name, want := range map[string]bool{".git": true, "a/.GIT/config": true, ".github/x": false, "a/loadout.yaml": true, "git": false, "": false} {
		if got := IsProtected(name); got != want {
			t.Errorf("%s is protected: %t", name, got)
		}
	}
}

func TestMissingModuleNote(t *testing.T) {
	const stderr = "Traceback:\nModuleNotFoundError: No module named 'pandas.io'\n"
	for _, tt := range []struct {
		kind   script.Kind
		code   int
		stderr string
		want   string // in the note
	}{
		{script.Python, 1, stderr, "pandas"}, {script.Python, 0, stderr, ""}, {script.Node, 1, stderr, ""}, {script.Python, 1, "ImportError: x", ""},
	} {
		notes := strings.Join(missingModuleNote(&script.Plan{Kind: tt.kind}, &Result{Result: &execute.Result{ExitCode: tt.code, Stderr: []byte(tt.stderr)}}), "\n")
		if !strings.Contains(notes, tt.want) || (notes == "") != (tt.want == "") {
			t.Errorf("%+v: %q", tt, notes)
		}
	}
}
