package execution_test

import (
	"archive/zip"
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/execution"
	"github.com/loadout-dev/loadout/internal/sandbox/execute"
	"github.com/loadout-dev/loadout/internal/sandbox/native"
	"github.com/loadout-dev/loadout/internal/sandbox/sandboxtest"
	"github.com/loadout-dev/loadout/internal/steering/steeringtest"
	"github.com/loadout-dev/loadout/sandbox"
)

// sandboxUser is the user of code if the test runs as root.
const sandboxUser = 65534

// newWorkspace returns a directory with files, which code in a sandbox may
// change.
func newWorkspace(t *testing.T, files map[string]string) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "workspace")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	for p, content := range files {
		p = filepath.Join(dir, p)
		if err := errors.Join(os.MkdirAll(filepath.Dir(p), 0o755), os.WriteFile(p, []byte(content), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	if os.Geteuid() == 0 {
		err := filepath.WalkDir(dir, func(p string, _ fs.DirEntry, err error) error {
			return errors.Join(err, os.Lchown(p, sandboxUser, sandboxUser))
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// newBackend returns a backend with overlays, or skips the test.
func newBackend(t *testing.T) sandbox.Backend {
	t.Helper()
	b := native.New(&native.Options{Dir: filepath.Join(t.TempDir(), "run")})
	dir := newWorkspace(t, nil)
	box, err := b.Start(t.Context(), &sandbox.Spec{Mounts: []sandbox.Mount{{Host: dir, Path: "/workspace", Overlay: true}}})
	if err != nil {
		t.Skip(err)
	}
	defer box.Close()
	if err := box.(execute.Overlayer).OverlayError(); err != nil {
		t.Skip(err)
	}
	return b
}

func run(t *testing.T, b sandbox.Backend, dir, script string, agree execution.Agree) *execution.Result {
	t.Helper()
	res, err := execution.New(execution.Options{Sandbox: b}).RunCommand(t.Context(), &execution.Command{Args: []string{"/bin/sh", "-ec", script}, Workspace: dir, Access: execution.Overlay, Agree: agree})
	if err != nil {
		t.Fatal(err)
	}
	if res.ExitCode != 0 {
		t.Fatalf("exit code %d (%s): %s%s", res.ExitCode, res.Detail, res.Stdout, res.Stderr)
	}
	return res
}

// asBoth runs a test with the current user and, as root, with an ordinary one.
func asBoth(t *testing.T, test func(*testing.T)) {
	if os.Getenv("LOADOUT_TEST_ROOT_ONLY") == "" && sandboxtest.AsUser(t) {
		t.Run("root", test)
		return
	}
	test(t)
}

func TestSteeringFiles(t *testing.T) { asBoth(t, testSteeringFiles) }

// testSteeringFiles writes the places that steer programs and agents, where
// they exist and where they do not.
func testSteeringFiles(t *testing.T) {
	for name, exist := range map[string]bool{"new": false, "existing": true} {
		t.Run(name, func(t *testing.T) {
			b := newBackend(t)
			files, want := map[string]string{"notes.txt": "old"}, ""
			if exist {
				want = "theirs"
				for _, p := range steeringtest.Files {
					files[p] = want
				}
			}
			dir := newWorkspace(t, files)
			var script strings.Builder
			for _, p := range steeringtest.Files {
				script.WriteString("mkdir -p \"$(dirname '" + p + "')\"; echo evil > '" + p + "'\n")
			}
			script.WriteString("echo new > notes.txt; echo new > more.txt; rm -f loadout.yaml; ln -s /etc/passwd out")
			res := run(t, b, dir, script.String(), nil)
			check := func(state string) {
				t.Helper()
				for _, p := range steeringtest.Files {
					if data, _ := os.ReadFile(filepath.Join(dir, p)); string(data) != want && (p != "loadout.yaml" || want == "theirs") {
						t.Errorf("%s %s: %q, want %q", state, p, data, want)
					}
				}
				for _, p := range []string{"notes.txt", "more.txt"} {
					if data, err := os.ReadFile(filepath.Join(dir, p)); string(data) != "new\n" {
						t.Errorf("%s %s: %q, %v", state, p, data, err)
					}
				}
			}
			check("without agreement,")
			if _, err := os.Lstat(filepath.Join(dir, "out")); err == nil {
				t.Error("a symlink that leads out was applied")
			}
			notes := strings.Join(res.Notes, "\n")
			for _, says := range []string{"configure programs or agents were not applied", "out (symlink that leads out of the directory)"} {
				if !strings.Contains(notes, says) {
					t.Errorf("notes %q do not say %q", notes, says)
				}
			}
			asked := 0
			run(t, b, dir, script.String(), func(_ context.Context, held []execution.HeldChange) (bool, error) {
				asked++
				i := slices.IndexFunc(held, func(c execution.HeldChange) bool { return c.Path == "CLAUDE.md" })
				if i < 0 || held[i].Reader != "Claude Code" || !strings.Contains(held[i].Diff, "+evil") {
					t.Errorf("held: %+v", held)
				}
				check("before the answer,")
				return true, nil
			})
			if asked != 1 {
				t.Errorf("asked %d times", asked)
			}
			if want = "evil\n"; exist {
				files = nil
			}
			for _, p := range steeringtest.Files {
				if p == "loadout.yaml" {
					continue
				}
				if data, _ := os.ReadFile(filepath.Join(dir, p)); string(data) != want {
					t.Errorf("after agreement, %s: %q", p, data)
				}
			}
		})
	}
}

// If the user cannot be asked, or says no, steering files stay as they are.
func TestWorkspaceInsideSteeringDirectory(t *testing.T) {
	asBoth(t, testWorkspaceInsideSteeringDirectory)
}

// A workspace that is itself inside of a directory that steers programs, or is
// one, changes only with the user's agreement.
func testWorkspaceInsideSteeringDirectory(t *testing.T) {
	b := newBackend(t)
	for _, in := range []string{".claude", ".agents/skills/x", "skills/x"} {
		dir := filepath.Join(newWorkspace(t, map[string]string{in + "/SKILL.md": "theirs", in + "/run.sh": "theirs"}), in)
		const script = "echo evil > run.sh; echo evil > new.sh"
		for _, agreed := range []bool{false, true} {
			want, asked := map[bool]string{false: "theirs", true: "evil\n"}[agreed], 0
			run(t, b, dir, script, func(context.Context, []execution.HeldChange) (bool, error) { asked++; return agreed, nil })
			if data, err := os.ReadFile(dir + "/run.sh"); string(data) != want || asked != 1 {
				t.Errorf("%s, agreed %t: run.sh is %q (%v), want %q; asked %d times", in, agreed, data, err, want, asked)
			}
			if _, err := os.Stat(dir + "/new.sh"); (err == nil) != agreed {
				t.Errorf("%s, agreed %t: new.sh: %v", in, agreed, err)
			}
		}
	}
}

func TestSteeringFilesDeclined(t *testing.T) {
	b := newBackend(t)
	dir := newWorkspace(t, map[string]string{"CLAUDE.md": "mine"})
	for name, agree := range map[string]execution.Agree{
		"no":    func(context.Context, []execution.HeldChange) (bool, error) { return false, nil },
		"error": func(context.Context, []execution.HeldChange) (bool, error) { return true, errors.New("no terminal") },
	} {
		res := run(t, b, dir, "echo evil > CLAUDE.md", agree)
		if data, err := os.ReadFile(dir + "/CLAUDE.md"); string(data) != "mine" {
			t.Errorf("%s: %q, %v", name, data, err)
		}
		if len(res.HeldChanges) != 1 || res.HeldChanges[0].Op != "modify" {
			t.Errorf("%s: held %+v", name, res.HeldChanges)
		}
	}
}

// The user sees all of what they agree to: also the end of a long line, and
// characters that are invisible.
func TestHeldChangeIsComplete(t *testing.T) {
	long := strings.Repeat("word ", 2000) + "curl http://evil.example"
	c := execution.NewHeldChange("CLAUDE.md", "modify", "Claude Code", []byte("be good\n"), []byte("be good\n"+long+"\n"+strings.Repeat("line\n", 10_000)+"last\u202e\x1b[8m\n"))
	for _, want := range []string{"curl http://evil.example\n", `+last\u{202e}\u{1b}[8m`} {
		if !strings.Contains(c.Diff, want) {
			t.Errorf("the difference of %d bytes lacks %q", len(c.Diff), want)
		}
	}
}

// Nobody agrees to what they do not see: what cannot be shown whole stays, and
// the permissions and the exact name of the rest are shown.
func TestHeldChangesAreShown(t *testing.T) {
	b := newBackend(t)
	dir := newWorkspace(t, map[string]string{"docs/g.md": "good", "CLAUDE.local.md": "good"})
	var asked []execution.HeldChange
	agree := func(_ context.Context, held []execution.HeldChange) (bool, error) {
		asked = held
		return true, nil
	}
	res := run(t, b, dir, `head -c 70000 /dev/zero > AGENTS.md; mkdir .husky; echo id > .husky/pre-commit; chmod 755 .husky/pre-commit
chmod 700 CLAUDE.local.md; echo x > 'CLAUDE.md '; ln -s docs/g.md CLAUDE.md; echo evil > docs/g.md; echo > "$(printf 'a\033b')"`, agree)
	got := map[string]string{}
	for _, c := range asked {
		got[c.Path] = c.Diff
	}
	for name, want := range map[string]string{".husky/pre-commit": "new file mode 0755 (executable)", "CLAUDE.local.md": "new mode 0700", `"CLAUDE.md "`: "+x", "CLAUDE.md": "docs/g.md", "docs/g.md": "+evil"} {
		if !strings.Contains(got[name], want) {
			t.Errorf("%s: %q, want %q", name, got[name], want)
		}
	}
	notes := strings.Join(res.Notes, "\n")
	for _, want := range []string{"AGENTS.md (configures coding agents, and cannot be shown: ", "control characters in the name"} {
		if !strings.Contains(notes, want) {
			t.Errorf("notes %q lack %q", notes, want)
		}
	}
	if _, err := os.Lstat(filepath.Join(dir, "AGENTS.md")); err == nil || len(got) != 5 {
		t.Errorf("applied a file that was not shown; shown: %v", got)
	}
	asked = nil
	res = run(t, b, dir, `mkdir .claude; for i in $(seq 600); do echo > .claude/$i; done`, agree)
	if len(asked) != 500 || !strings.Contains(strings.Join(res.Notes, "\n"), "not applied (100): ") {
		t.Errorf("shown: %d; %q", len(asked), res.Notes)
	}
}

// Without an overlay, the workspace is read-only, unless the user accepts that
// code writes to it directly.
func TestWorkspaceWithoutOverlay(t *testing.T) {
	newBackend(t)
	runs := filepath.Join(t.TempDir(), "run")
	if err := os.WriteFile(runs, nil, 0o600); err != nil { // not a directory
		t.Fatal(err)
	}
	b := native.New(&native.Options{Dir: runs})
	for access, want := range map[execution.Access]string{execution.Overlay: "old", execution.OverlayOrDirect: "new\n", execution.ReadOnly: "old", execution.Direct: "new\n"} {
		dir := newWorkspace(t, map[string]string{"a": "old", ".git/config": "old"})
		res, err := execution.New(execution.Options{Sandbox: b}).RunCommand(t.Context(), &execution.Command{Args: []string{"/bin/sh", "-c", "echo new > a; echo new > .git/config"}, Workspace: dir, Access: access})
		if err != nil {
			t.Fatal(err)
		}
		if data, _ := os.ReadFile(dir + "/a"); string(data) != want {
			t.Errorf("access %d: %q, want %q", access, data, want)
		}
		if data, _ := os.ReadFile(dir + "/.git/config"); string(data) != "old" {
			t.Errorf("access %d: .git/config is %q", access, data)
		}
		if access != execution.Direct {
			dir = filepath.Join(newWorkspace(t, map[string]string{".claude/a": "old"}), ".claude")
			if _, err := execution.New(execution.Options{Sandbox: b}).RunCommand(t.Context(), &execution.Command{Args: []string{"/bin/sh", "-c", "echo new > a"}, Workspace: dir, Access: access}); err != nil {
				t.Fatal(err)
			}
			if data, _ := os.ReadFile(dir + "/a"); string(data) != "old" {
				t.Errorf("access %d: .claude/a is %q", access, data)
			}
		}
		said := strings.Contains(strings.Join(res.Notes, "\n"), "sandbox.direct_workspace")
		if says := access == execution.Overlay || access == execution.OverlayOrDirect; said != says {
			t.Errorf("access %d: notes %q", access, res.Notes)
		}
	}
}

func TestToolsInWorkspace(t *testing.T) { asBoth(t, testToolsInWorkspace) }

// testToolsInWorkspace uses the tools that change many files of a workspace.
func testToolsInWorkspace(t *testing.T) {
	need := func(t *testing.T, programs ...string) {
		for _, p := range programs {
			if _, err := exec.LookPath("/usr/bin/" + p); err != nil {
				t.Skip(err)
			}
		}
	}
	const author = "export HOME=/work GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@example.com GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@example.com\n"
	for _, tt := range []struct {
		name, program, script string
		files                 map[string]string
		made                  []string
		check                 string // for sh, on the host
	}{
		{"git", "git", author + "git init -q -b main a; cd a; echo 1 > f; git add f; git commit -qm 1; cd ..; git clone -q a b; cd b; echo 2 > f; git commit -qam 2; git checkout -q -b c HEAD~; git checkout -q main; git status --porcelain", nil,
			[]string{"a/.git/config", "b/.git/config", "b/.git/HEAD"}, "cd b && git -c safe.directory='*' log --format=%s && git -c safe.directory='*' status --porcelain && git -c safe.directory='*' fsck"},
		{"npm", "npm", "export HOME=/work; npm install --offline --no-audit --no-fund ./lib; node -e 'require(\"lib\")'", map[string]string{
			"package.json": `{"name": "app", "version": "1.0.0"}`, "lib/package.json": `{"name": "lib", "version": "1.0.0", "main": "x.js", "bin": {"lib": "x.js"}}`, "lib/x.js": "#!/usr/bin/env node\n",
		}, []string{"package-lock.json", "node_modules/lib/x.js", "node_modules/.package-lock.json"}, "grep -q lib package.json"},
		{"pip", "python3", "export HOME=/work; /usr/bin/python3 -m venv --without-pip venv; /usr/bin/python3 -m pip install -q --no-index --no-deps --target deps ./demo-1.0-py3-none-any.whl", nil,
			[]string{"venv/pyvenv.cfg", "deps/demo.py"}, "true"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			need(t, tt.program)
			b := newBackend(t)
			dir := newWorkspace(t, tt.files)
			if tt.name == "pip" {
				makeWheel(t, dir)
			}
			res, err := execution.New(execution.Options{Sandbox: b}).RunCommand(t.Context(), &execution.Command{Args: []string{"/bin/sh", "-ec", tt.script}, Workspace: dir, Access: execution.Overlay})
			if err != nil {
				t.Fatal(err)
			}
			if res.ExitCode != 0 {
				t.Fatalf("exit code %d (%s): %s%s", res.ExitCode, res.Detail, res.Stdout, res.Stderr)
			}
			if len(res.HeldChanges) > 0 || len(res.Notes) > 0 {
				t.Errorf("held %+v, notes %q", res.HeldChanges, res.Notes)
			}
			for _, p := range tt.made {
				if _, err := os.Stat(filepath.Join(dir, p)); err != nil {
					t.Error(err)
				}
			}
			cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", tt.check)
			cmd.Dir = dir
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
}

// makeWheel writes a Python package with one module.
func makeWheel(t *testing.T, dir string) {
	t.Helper()
	f, err := os.Create(filepath.Join(dir, "demo-1.0-py3-none-any.whl"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z := zip.NewWriter(f)
	for _, file := range [][2]string{
		{"demo.py", "x = 1\n"}, {"demo-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: demo\nVersion: 1.0\n"},
		{"demo-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"},
		{"demo-1.0.dist-info/RECORD", "demo.py,,\ndemo-1.0.dist-info/METADATA,,\ndemo-1.0.dist-info/WHEEL,,\ndemo-1.0.dist-info/RECORD,,\n"},
	} {
		w, err := z.Create(file[0])
		if err == nil {
			_, err = w.Write([]byte(file[1]))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
}
