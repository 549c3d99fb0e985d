package loadout_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/sandbox"
)

// sh returns a skill whose scripts run their arguments.
func sh() files {
	return files{"sh/SKILL.md": skillText("sh", "x"), "sh/do.sh": `eval "$1"` + "\n"}
}

func do(line string) loadout.Run {
	return loadout.Run{Skill: "sh", Script: "do.sh", Args: []string{line}}
}

func TestInputs(t *testing.T) {
	dir := t.TempDir()
	files{"a.csv": "a,b\n", "deep/b.txt": "bee", "deep/er/c.txt": "sea", "deep/.hidden/.d": "dee", "run.sh": "echo run"}.write(t, dir)
	for _, err := range []error{
		os.Chmod(filepath.Join(dir, "run.sh"), 0o755),
		os.Symlink("/etc/passwd", filepath.Join(dir, "deep/outside")),
		os.Symlink("b.txt", filepath.Join(dir, "deep/inside")),
		os.Symlink("deep", filepath.Join(dir, "link")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	s := newShop(t, sh(), nil)
	at := os.DirFS(dir)
	const list = `cd /work/in && find . -type f | sort | while read f; do echo "$f: $(cat "$f")"; done; find . -type l`
	for _, tt := range []struct {
		name   string
		inputs []loadout.Input
		script string
		want   string
	}{
		{"none: there is the directory", nil, "ls -a /work/in", ".\n..\n"},
		{"text", []loadout.Input{{Name: "a/b.txt", Data: []byte("x\x00é")}}, "od -An -tx1 /work/in/a/b.txt", " 78 00 c3 a9\n"},
		{"a file by another name", []loadout.Input{{Name: "in.csv", FS: at, Path: "a.csv"}}, list, "./in.csv: a,b\n"},
		{"a directory, without links", []loadout.Input{{Name: "d", FS: at, Path: "deep"}}, list, "./d/.hidden/.d: dee\n./d/b.txt: bee\n./d/er/c.txt: sea\n"},
		{"a whole tree: names with a dot keep it", []loadout.Input{{Name: "d", FS: os.DirFS(filepath.Join(dir, "deep", ".hidden")), Path: "."}}, list, "./d/.d: dee\n"},
		{"a link to a directory, by its name", []loadout.Input{{Name: "l", FS: at, Path: "link/er"}}, list, "./l/c.txt: sea\n"},
		{"several, into one another", []loadout.Input{{Name: "d", FS: at, Path: "deep/er"}, {Name: "d/new", Data: []byte("n")}}, list, "./d/c.txt: sea\n./d/new: n\n"},
		{"what may be executed", []loadout.Input{{Name: "run", FS: at, Path: "run.sh"}}, "/work/in/run", "run\n"},
		{"they can be changed", []loadout.Input{{Name: "a", FS: at, Path: "a.csv"}}, "echo more >> /work/in/a; cat in/a; rm in/a; ls in", "a,b\nmore\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			run := do(tt.script)
			run.Inputs = tt.inputs
			if got := s.says(t, run); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
	if b, err := os.ReadFile(filepath.Join(dir, "a.csv")); string(b) != "a,b\n" {
		t.Errorf("the user's own file is %q, %v", b, err)
	}
	pipe := filepath.Join(dir, "pipe")
	if !makePipe(pipe) {
		t.Skip("this system has no pipes with a name")
	}
	for _, tt := range []struct {
		name   string
		inputs []loadout.Input
		want   string
	}{
		{"twice", []loadout.Input{{Name: "a"}, {Name: "a"}}, "duplicate input name a"},
		{"a file where a directory is", []loadout.Input{{Name: "a/b"}, {Name: "a"}}, "a is both a file and a directory"},
		{"a directory where a file is", []loadout.Input{{Name: "a"}, {Name: "a/b/c"}}, "a is both a file and a directory"},
		{"above", []loadout.Input{{Name: "../x"}}, `invalid input name "../x"`},
		{"absolute", []loadout.Input{{Name: "/x"}}, `invalid input name "/x"`},
		{"none", []loadout.Input{{Name: ""}}, `invalid input name ""`},
		{"the directory itself", []loadout.Input{{Name: "."}}, `invalid input name "."`},
		{"with a zero byte", []loadout.Input{{Name: "a\x00"}}, "invalid path"},
		{"missing", []loadout.Input{{Name: "a", FS: at, Path: "no.csv"}}, "input a: stat no.csv"},
		{"a pipe", []loadout.Input{{Name: "a", FS: at, Path: "pipe"}}, "not a regular file"},
	} {
		t.Run("refused: "+tt.name, func(t *testing.T) {
			run := do("echo ran")
			run.Inputs, run.ByUser = tt.inputs, true
			if res, err := s.try(t, run); err == nil || res != nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %+v, %v; want %q", res, err, tt.want)
			}
		})
	}
}

// tree reads a directory as files, with symbolic links as "-> target".
func readTree(t *testing.T, dir string) files {
	t.Helper()
	out := files{}
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, _ := filepath.Rel(dir, p)
		if to, err := os.Readlink(p); err == nil {
			out[rel] = "-> " + to
			return nil
		}
		b, err := os.ReadFile(p)
		out[rel] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestOutReceivesOutputFiles(t *testing.T) {
	s := newShop(t, sh(), nil)
	make := func(t *testing.T, was files, links map[string]string) string {
		dir := filepath.Join(t.TempDir(), "results")
		was.write(t, dir)
		for name, to := range links {
			if err := errors.Join(os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755), os.Symlink(to, filepath.Join(dir, name))); err != nil {
				t.Fatal(err)
			}
		}
		return dir
	}
	outside := t.TempDir()
	files{"theirs": "mine"}.write(t, outside)
	for _, tt := range []struct {
		name   string
		was    files
		links  map[string]string
		script string
		want   files
	}{
		{"a new directory", nil, nil, "echo a > out/a; mkdir -p out/d/e; echo b > out/d/e/b", files{"a": "a\n", "d/e/b": "b\n"}},
		{"others stay, of the same name is replaced", files{"a": "old", "b": "stays"}, nil, "echo a > out/a", files{"a": "a\n", "b": "stays"}},
		{"a link is replaced, not followed", nil, map[string]string{"a": filepath.Join(outside, "theirs")}, "echo a > out/a", files{"a": "a\n"}},
		{"a link to a directory too", nil, map[string]string{"d": outside}, "mkdir out/d; echo a > out/d/theirs", files{"d/theirs": "a\n"}},
		{"and one that stays inside", files{"e/x": "x"}, map[string]string{"d": "e"}, "mkdir out/d; echo a > out/d/x", files{"d/x": "a\n", "e/x": "x"}},
		{"a file in place of a directory", files{"d": "file"}, nil, "mkdir out/d; echo a > out/d/x", files{"d/x": "a\n"}},
		{"links that the script made are nothing", nil, nil, "ln -s /etc/passwd out/p; echo a > out/a; ln -s a out/b", files{"a": "a\n"}},
		{"nothing", files{"a": "a"}, nil, "true", files{"a": "a"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := make(t, tt.was, tt.links)
			run := do(tt.script)
			run.OutputDir = dir
			s.says(t, run)
			if diff := cmp.Diff(tt.want, readTree(t, dir)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(files{"theirs": "mine"}, readTree(t, outside)); diff != "" {
				t.Errorf("what the link leads to:\n%s", diff)
			}
		})
	}
	t.Run("directory with a foreign parent", func(t *testing.T) {
		dir := make(t, nil, nil)
		if err := errors.Join(os.MkdirAll(dir, 0o755), os.Chmod(filepath.Dir(dir), 0o555)); err != nil {
			t.Fatal(err)
		}
		defer os.Chmod(filepath.Dir(dir), 0o755)
		run := do("echo a > out/a")
		run.OutputDir = dir
		s.says(t, run)
		if diff := cmp.Diff(files{"a": "a\n"}, readTree(t, dir)); diff != "" {
			t.Error(diff)
		}
		if entries, err := os.ReadDir(filepath.Dir(dir)); err != nil || len(entries) != 1 {
			t.Errorf("beside it there is %v, %v", entries, err)
		}
	})
	t.Run("file in place of the user's directory", func(t *testing.T) {
		dir := make(t, files{"d/x": "x"}, nil)
		run := do("echo a > out/d; echo said")
		run.OutputDir, run.ByUser = dir, true
		res, err := s.try(t, run)
		if err == nil || !strings.Contains(err.Error(), "save files") || res == nil || res.Stdout != "said\n" {
			t.Errorf("got %+v, %v; want the result with the error", res, err)
		}
		if diff := cmp.Diff(files{"d/x": "x"}, readTree(t, dir)); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("modes", func(t *testing.T) {
		dir := make(t, nil, nil)
		run := do("echo a > out/a; echo b > out/b; chmod 4777 out/b 2>/dev/null || chmod 777 out/b")
		run.OutputDir = dir
		s.says(t, run)
		for name, exec := range map[string]bool{"a": false, "b": true} {
			fi, err := os.Stat(filepath.Join(dir, name))
			if err != nil || fi.Mode()&0o111 != 0 != exec || fi.Mode()&^0o755 != 0 {
				t.Errorf("%s: %v, %v", name, fi.Mode(), err)
			}
		}
	})
	t.Run("without a query the result lists and counts them", func(t *testing.T) {
		res := s.ran(t, do("echo a > out/a; mkdir out/d; echo b > out/d/b; echo c > c; mkdir d; echo d > d/d; echo h > .h"))
		var names []string
		for _, f := range res.Files {
			names = append(names, f.Path)
			if len(f.SHA256) != 64 || f.Size != 2 {
				t.Errorf("%+v", f)
			}
		}
		if !slices.Equal(names, []string{"a", "d/b"}) || res.UnsavedFiles != 2 || res.Folder != "" {
			t.Errorf("files %q, %d left, folder %q", names, res.UnsavedFiles, res.Folder)
		}
	})
}

func TestWorkspacePersists(t *testing.T) {
	s := newShop(t, sh(), nil)
	in := func(folder, script string) *loadout.RunResult {
		t.Helper()
		run := do(script)
		run.Folder, run.NewFolder = folder, true
		res := s.ran(t, run)
		if res.Reason != sandbox.OK {
			t.Fatalf("got %+v", res)
		}
		return res
	}
	names := func(r *loadout.RunResult) string {
		var out []string
		for _, f := range r.Files {
			out = append(out, f.Path)
		}
		return strings.Join(out, " ")
	}
	res := in("", "echo one > a; mkdir -p out/d; echo two > out/d/b; echo dot > .rc; printf '#!/bin/sh\necho run\n' > x; chmod +x x")
	folder := res.Folder
	dir, err := s.FolderPath(folder)
	if err != nil || names(res) != ".rc a out/d/b x" || res.UnsavedFiles != 0 {
		t.Fatalf("got %+v, %v", res, err)
	}
	if diff := cmp.Diff(files{".rc": "dot\n", "a": "one\n", "out/d/b": "two\n", "x": "#!/bin/sh\necho run\n"}, readTree(t, dir)); diff != "" {
		t.Error(diff)
	}
	if fi, err := os.Stat(dir); err != nil || fi.Mode().Perm() != 0o700 {
		t.Errorf("the folder: %v, %v", fi.Mode(), err)
	}
	res = in(folder, "cat a out/d/b .rc; ./x; rm a; echo changed > out/d/b")
	if res.Stdout != "one\ntwo\ndot\nrun\n" || res.Folder != folder || names(res) != ".rc out/d/b x" {
		t.Errorf("the second run: %+v", res)
	}
	run := do("ls -A . in out/d; echo given >> in/g")
	run.Folder, run.Inputs = folder, []loadout.Input{{Name: "g", Data: []byte("given")}}
	if res := s.ran(t, run); res.Stdout != ".:\n.rc\nin\nout\nx\n\nin:\ng\n\nout/d:\nb\n" || names(res) != ".rc out/d/b x" {
		t.Errorf("with an input: %+v", res)
	}
	res = in(folder, "rm -r .rc x out/*")
	if res.Folder != folder || len(res.Files) != 0 {
		t.Errorf("all removed: %+v", res)
	}
	if res = in(folder, "echo more > b"); names(res) != "b" {
		t.Errorf("in the empty folder: %+v", res)
	}
	if res := in("", "echo nothing left"); res.Folder != "" {
		t.Errorf("a folder of nothing is stored: %+v", res)
	}
	leftovers(t, s.scripts.FolderDir, folder)
}

// leftovers checks that only the folders with these handles exist.
func leftovers(t *testing.T, dir string, handles ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !slices.Contains(handles, strings.TrimSuffix(e.Name(), ".lock")) {
			t.Errorf("%s is left", e.Name())
		}
	}
}

func TestFailedRunLeavesWorkspaceUnchanged(t *testing.T) {
	s := newShop(t, sh(), nil)
	run := do("echo one > a")
	run.NewFolder = true
	folder := s.ran(t, run).Folder
	files{"sh/do.sh": "echo other\n"}.write(t, s.dir)
	for _, handle := range []string{folder, ""} {
		run = do("echo two > a")
		run.Folder, run.NewFolder, run.ByUser = handle, true, true
		run.Progress = func(string) { files{"sh/do.sh": "echo swapped\n"}.write(t, s.dir) }
		if res, err := s.try(t, run); err == nil {
			t.Fatalf("got %+v", res)
		}
		files{"sh/do.sh": `eval "$1"` + "\n"}.write(t, s.dir)
	}
	dir, _ := s.FolderPath(folder)
	if diff := cmp.Diff(files{"a": "one\n"}, readTree(t, dir)); diff != "" {
		t.Error(diff)
	}
	leftovers(t, s.scripts.FolderDir, folder)
	// A script that fails is different: its files stay.
	run = do("echo two > a; exit 3")
	run.Folder = folder
	if res := s.ran(t, run); res.ExitCode != 3 || res.Reason != sandbox.Exited || res.Folder != folder {
		t.Errorf("got %+v", res)
	}
	if diff := cmp.Diff(files{"a": "two\n"}, readTree(t, dir)); diff != "" {
		t.Error(diff)
	}
}

func TestUnknownWorkspaceHandle(t *testing.T) {
	s := newShop(t, sh(), nil)
	for _, handle := range []string{"..", "../../etc", "abcdefghijklmnop", strings.Repeat("a", 17), "ABCDEFGHIJKLMNOP", "abcdefghijklmn/.", "abcdefghijklmnop.lock"} {
		run := do("echo ran")
		run.Folder, run.ByUser = handle, true
		if res, err := s.try(t, run); !errors.Is(err, loadout.ErrNoFolder) || res != nil {
			t.Errorf("%q: %+v, %v", handle, res, err)
		}
	}
	leftovers(t, s.scripts.FolderDir)
	if _, err := s.FolderPath("../x"); !errors.Is(err, loadout.ErrNoFolder) {
		t.Errorf("its path: %v", err)
	}
	s.scripts.FolderDir = ""
	run := do("echo ran")
	run.NewFolder, run.ByUser = true, true
	if res, err := s.try(t, run); !errors.Is(err, loadout.ErrNoFolder) {
		t.Errorf("without a place for folders: %+v, %v", res, err)
	}
}

func TestOldWorkspacesAreRemoved(t *testing.T) {
	s := newShop(t, sh(), nil)
	keep := func() string {
		run := do("echo one > a")
		run.NewFolder = true
		return s.ran(t, run).Folder
	}
	old, used, busy := keep(), keep(), keep()
	long := time.Now().Add(-8 * 24 * time.Hour)
	for _, name := range []string{old, old + ".lock", used + ".lock", busy, busy + ".lock"} {
		if err := os.Chtimes(filepath.Join(s.scripts.FolderDir, name), long, long); err != nil {
			t.Fatal(err)
		}
	}
	began, sleeping := newSignal(), make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		run := do("echo began; exec sleep 600")
		run.Folder, run.ByUser, run.Stdout = busy, true, began
		_, err := s.Run(ctx, run)
		sleeping <- err
	}()
	<-began.c
	fresh := keep()
	arriving, _ := filepath.Glob(filepath.Join(s.scripts.FolderDir, ".loadout-out-*")) // of the running script
	if len(arriving) != 1 {
		t.Fatalf("there arrive %q", arriving)
	}
	leftovers(t, s.scripts.FolderDir, used, busy, fresh, filepath.Base(arriving[0]))
	for _, name := range []string{used + ".lock", busy, busy + ".lock"} {
		if _, err := os.Stat(filepath.Join(s.scripts.FolderDir, name)); err != nil {
			t.Error(err)
		}
	}
	cancel()
	if err := <-sleeping; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

const childVariable = "LOADOUT_TEST_CHILD"

const count = `n=$(cat n 2>/dev/null); mkdir busy || exit 1; echo $((n + 1)) > n; rmdir busy`

// child is another process that runs scripts in a working folder of this one.
func child() int {
	skills, rest, _ := strings.Cut(os.Getenv(childVariable), "|")
	folders, folder, _ := strings.Cut(rest, "|")
	ctx := context.Background()
	rt, err := loadout.New(ctx, &loadout.Options{Sources: []catalog.Source{catalog.NewDir("local", catalog.User, skills, nil)},
		Scripts: &loadout.Scripts{Sandbox: backend(), FolderDir: folders}})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	defer rt.Close()
	for range 3 {
		run := do(count)
		run.Folder, run.ByUser = folder, true
		if res, err := rt.Run(ctx, run); err != nil || res.ExitCode != 0 {
			fmt.Println(res, err)
			return 1
		}
	}
	return 0
}

func TestRunsInOneWorkspaceAreSerialized(t *testing.T) {
	s := newShop(t, sh(), nil)
	run := do(count)
	run.NewFolder = true
	folder := s.ran(t, run).Folder
	var running sync.WaitGroup
	for range 2 {
		running.Go(func() {
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), childVariable+"="+s.dir+"|"+s.scripts.FolderDir+"|"+folder)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("another process: %v\n%s", err, out)
			}
		})
	}
	for range 3 {
		running.Go(func() {
			run := do(count)
			run.Folder, run.ByUser = folder, true
			if res, err := s.try(t, run); err != nil || res.ExitCode != 0 {
				t.Errorf("got %+v, %v", res, err)
			}
		})
	}
	running.Wait()
	run = do("cat n")
	run.Folder = folder
	if out := s.says(t, run); out != "10\n" {
		t.Errorf("after 10 runs it counts %q", out)
	}
	leftovers(t, s.scripts.FolderDir, folder)
}

func TestWaitForWorkspaceCanBeCancelled(t *testing.T) {
	s := newShop(t, sh(), nil)
	run := do("echo one > a")
	run.NewFolder = true
	folder := s.ran(t, run).Folder
	began, first := newSignal(), make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		run := do("echo began; exec sleep 600")
		run.Folder, run.ByUser, run.Stdout = folder, true, began
		_, err := s.Run(ctx, run)
		first <- err
	}()
	<-began.c
	second, giveUp := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer giveUp()
	run = do("echo ran")
	run.Folder, run.ByUser = folder, true
	if res, err := s.Run(second, run); !errors.Is(err, context.DeadlineExceeded) || res != nil {
		t.Errorf("got %+v, %v", res, err)
	}
	cancel()
	if err := <-first; !errors.Is(err, context.Canceled) {
		t.Errorf("the first ends with %v", err)
	}
}

// In a directory of the user, names that begin with a dot make other programs
// run code.
func TestOutReceivesNoHiddenNames(t *testing.T) {
	s := newShop(t, files{"a/SKILL.md": skillText("a", "x"), "a/do.sh": "mkdir -p out/.git/hooks out/sub; echo x > out/.git/hooks/pre-commit; echo x > out/.bashrc; echo x > out/sub/.keep; echo x > out/plain\n"}, nil)
	s.approve(t, "a")
	dir := t.TempDir()
	res, err := s.try(t, loadout.Run{Skill: "a", Script: "do.sh", OutputDir: dir})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range res.Files {
		got = append(got, f.Path)
	}
	if want := []string{"plain", "sub/.keep"}; !slices.Equal(got, want) || !strings.Contains(strings.Join(res.Notes, " "), "2 files not saved") {
		t.Errorf("handed over %q, want %q; notes %q", got, want, res.Notes)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 2 {
		t.Errorf("in the directory: %v, %v", entries, err)
	}
}

// Names that packages refuse are refused in a user's directory too.
func TestOutReceivesNoUnsafeNames(t *testing.T) {
	s := newShop(t, files{"a/SKILL.md": skillText("a", "x"), "a/do.sh": `cd out; mkdir -p sub; echo x > plain
for n in "$(printf 'a\033]0;x\007b')" "$(printf 'x\ny')" "$(printf 'r\342\200\256l')" CON sub/nul.txt 'a:b' 'b\c' 'end.'; do echo x > "$n"; done
`}, nil)
	s.approve(t, "a")
	dir := t.TempDir()
	res, err := s.try(t, loadout.Run{Skill: "a", Script: "do.sh", OutputDir: dir})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range res.Files {
		got = append(got, f.Path)
	}
	notes := strings.Join(res.Notes, " ")
	if !slices.Equal(got, []string{"plain"}) || !strings.Contains(notes, "8 files not saved") || strings.ContainsAny(notes, "\x1b\n") {
		t.Errorf("saved %q, want plain; notes %q", got, res.Notes)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("in the directory: %v, %v", entries, err)
	}
}
