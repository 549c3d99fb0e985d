package workspace_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"

	"github.com/loadout-dev/loadout/internal/execution"
	"github.com/loadout-dev/loadout/internal/steering/steeringtest"
	"github.com/loadout-dev/loadout/internal/workspace"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// open returns a function that calls the tools of a workspace with these files.
func open(t *testing.T, files map[string]string, o *workspace.Options) (call func(name string, args map[string]any) (string, bool), dir string) {
	t.Helper()
	dir = t.TempDir()
	for name, text := range files {
		p := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(text), 0o640); err != nil {
			t.Fatal(err)
		}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	here, there := mcp.NewInMemoryTransports()
	if _, err := workspace.New(root, o).Connect(t.Context(), there, nil); err != nil {
		t.Fatal(err)
	}
	cs, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), here, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cs.Close(); root.Close() })
	return func(name string, args map[string]any) (string, bool) {
		t.Helper()
		res, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: name, Arguments: args})
		if err != nil {
			t.Fatal(err)
		}
		return res.Content[0].(*mcp.TextContent).Text, !res.IsError
	}, dir
}

func TestFiles(t *testing.T) {
	long := strings.Repeat("é", workspace.MaxRead) // two bytes each
	for _, tt := range []struct {
		tool string
		args map[string]any
		ok   bool
		want string // in the answer
		file string // and the resulting a.txt
	}{
		{"read_file", map[string]any{"path": "a.txt"}, true, "one two one", "one two one"},
		{"read_file", map[string]any{"path": "/workspace/a.txt", "offset": 4}, true, "two one", "one two one"},
		{"read_file", map[string]any{"path": "long.txt"}, true, "read on with offset 65536", "one two one"},
		{"read_file", map[string]any{"path": "picture"}, false, "not a text file", "one two one"},
		{"read_file", map[string]any{"path": "gone.txt"}, false, "gone.txt: no such file", "one two one"},
		{"read_file", map[string]any{"path": "sub"}, false, "not a regular file", "one two one"},
		{"read_file", map[string]any{"path": "../x"}, false, "is not inside the folder", "one two one"},
		{"read_file", map[string]any{"path": "/etc/passwd"}, false, "is not inside the folder", "one two one"},
		{"read_file", map[string]any{"path": "out"}, false, "out: ", "one two one"}, // a link that leaves it
		{"list_files", map[string]any{}, true, "sub/b.csv (1 bytes)\n", "one two one"},
		{"list_files", map[string]any{"path": "sub", "pattern": "*.txt"}, true, "There are no files.", "one two one"},
		{"list_files", map[string]any{"pattern": "["}, false, "invalid pattern", "one two one"},
		{"write_file", map[string]any{"path": "a.txt", "content": "new"}, true, "Wrote a.txt, 3 bytes.", "new"},
		{"write_file", map[string]any{"path": "deep/er/c.txt", "content": "new"}, true, "Wrote deep/er/c.txt", "one two one"},
		{"write_file", map[string]any{"path": "out/x", "content": "new"}, false, "out/x: ", "one two one"},
		{"write_file", map[string]any{"path": ".git/hooks/pre-commit", "content": "rm"}, false, "protected, because it controls", "one two one"},
		{"write_file", map[string]any{"path": "sub/.VSCode/tasks.json", "content": "rm"}, false, "protected, because it controls", "one two one"},
		{"write_file", map[string]any{"path": "big", "content": strings.Repeat("x", workspace.MaxFile+1)}, false, "too large", "one two one"},
		{"edit_file", map[string]any{"path": "a.txt", "old": "two", "new": "2"}, true, "Replaced it 1 times", "one 2 one"},
		{"edit_file", map[string]any{"path": "a.txt", "old": "one", "new": "1"}, false, "occurs 2 times", "one two one"},
		{"edit_file", map[string]any{"path": "a.txt", "old": "one", "new": "1", "all": true}, true, "Replaced it 2 times", "1 two 1"},
		{"edit_file", map[string]any{"path": "a.txt", "old": "four", "new": "4"}, false, "a.txt: text not found", "one two one"},
		{"edit_file", map[string]any{"path": "a.txt", "old": "", "new": "4"}, false, "missing old text", "one two one"},
	} {
		t.Run(tt.tool+" "+tt.want, func(t *testing.T) {
			call, dir := open(t, map[string]string{"a.txt": "one two one", "sub/b.csv": "1", "long.txt": long, "picture": "\x00\xff"}, nil)
			if err := os.Symlink(t.TempDir(), filepath.Join(dir, "out")); err != nil {
				t.Fatal(err)
			}
			if got, ok := call(tt.tool, tt.args); ok != tt.ok || !strings.Contains(got, tt.want) {
				t.Errorf("%t %q, want %t with %q", ok, got[:min(len(got), 300)], tt.ok, tt.want)
			}
			data, err := os.ReadFile(filepath.Join(dir, "a.txt"))
			if err != nil || string(data) != tt.file {
				t.Errorf("a.txt is %q (%v), want %q", data, err, tt.file)
			}
			if left, _ := filepath.Glob(filepath.Join(dir, ".loadout-*")); len(left) > 0 {
				t.Errorf("there is left %v", left)
			}
		})
	}
}

// A file that steers programs or agents is written only if the user agrees to
// the difference.
func TestSteeringFiles(t *testing.T) {
	for _, tt := range []struct {
		name  string
		agree bool
		err   error
		ok    bool
		want  string
	}{{"yes", true, nil, true, "be bad"}, {"no", false, nil, false, "be good"}, {"nobody", true, errors.New("no terminal"), false, "be good"}} {
		t.Run(tt.name, func(t *testing.T) {
			var asked []execution.HeldChange
			call, dir := open(t, map[string]string{"CLAUDE.md": "be good"}, &workspace.Options{Agree: func(_ context.Context, held []execution.HeldChange) (bool, error) {
				asked = append(asked, held...)
				return tt.agree, tt.err
			}})
			if got, ok := call("edit_file", map[string]any{"path": "CLAUDE.md", "old": "good", "new": "bad"}); ok != tt.ok {
				t.Errorf("edit: %q", got)
			}
			if data, err := os.ReadFile(dir + "/CLAUDE.md"); string(data) != tt.want {
				t.Errorf("CLAUDE.md is %q (%v), want %q", data, err, tt.want)
			}
			if got, ok := call("write_file", map[string]any{"path": ".agents/skills/x/SKILL.md", "content": "x"}); ok != tt.ok {
				t.Errorf("write: %q", got)
			}
			if _, err := os.Stat(dir + "/.agents"); (err == nil) != tt.ok {
				t.Errorf(".agents: %v", err)
			}
			if len(asked) != 2 || asked[0].Op != "modify" || asked[0].Reader != "Claude Code" || !strings.Contains(asked[0].Diff, "-be good") || asked[1].Op != "create" {
				t.Errorf("asked about %+v", asked)
			}
			if got, ok := call("write_file", map[string]any{"path": "a.txt", "content": "x"}); !ok || len(asked) != 2 {
				t.Errorf("an ordinary file: %q, asked %d times", got, len(asked))
			}
		})
	}
	for _, p := range steeringtest.Files {
		call, dir := open(t, nil, nil)
		if got, ok := call("write_file", map[string]any{"path": p, "content": "x"}); ok || !strings.Contains(got, "only the user can change it") {
			t.Errorf("%s: %q", p, got)
		}
		if left, _ := os.ReadDir(dir); len(left) > 0 {
			t.Errorf("%s was written", p)
		}
	}
}

// What changes while the user decides is not overwritten.
// What a steering file refers to is one too, and so is what makes a repository.
func TestReferencesOfSteeringFiles(t *testing.T) {
	call, dir := open(t, map[string]string{"docs/guide.md": "good", ".git/config": "[core]\n\thooksPath = hk # ours\n", "x/config": "", "x/HEAD": "", "sub/x.txt": ""}, nil)
	if err := os.Symlink("docs/guide.md", filepath.Join(dir, "CLAUDE.md")); err != nil {
		t.Skip(err)
	}
	for _, p := range []string{"docs/guide.md", "hk/post-checkout", "x/objects/a", ".git/modules/logs/config"} {
		if got, ok := call("write_file", map[string]any{"path": p, "content": "evil"}); ok || !strings.Contains(got, "controls") {
			t.Errorf("%s: %q", p, got)
		}
	}
	if got, ok := call("write_file", map[string]any{"path": "docs/other.md", "content": "text"}); !ok {
		t.Error(got)
	}
}

func TestSteeringFileChangesMeanwhile(t *testing.T) {
	var path string
	call, dir := open(t, map[string]string{"CLAUDE.md": "one"}, &workspace.Options{Agree: func(context.Context, []execution.HeldChange) (bool, error) {
		return true, os.WriteFile(path, []byte("theirs"), 0o600)
	}})
	path = dir + "/CLAUDE.md"
	if got, ok := call("write_file", map[string]any{"path": "CLAUDE.md", "content": "two"}); ok {
		t.Errorf("write: %q", got)
	}
	if data, err := os.ReadFile(path); string(data) != "theirs" {
		t.Errorf("CLAUDE.md is %q (%v)", data, err)
	}
}

// In the directory of a conversation, instructions are files like others, but
// nothing is written that programs run.
func TestOwnFolder(t *testing.T) {
	call, _ := open(t, nil, &workspace.Options{Own: true})
	if got, ok := call("write_file", map[string]any{"path": "CLAUDE.md", "content": "x"}); !ok {
		t.Errorf("CLAUDE.md: %q", got)
	}
	for _, p := range []string{".git/hooks/pre-commit", "sub/.VSCode/tasks.json"} {
		if got, ok := call("write_file", map[string]any{"path": p, "content": "x"}); ok || !strings.Contains(got, "protected, because programs run commands") {
			t.Errorf("%s: %q", p, got)
		}
	}
}

// Writing does not change the mode of a file.
func TestWriteKeepsMode(t *testing.T) {
	call, dir := open(t, map[string]string{"a.txt": "one"}, nil)
	if _, ok := call("write_file", map[string]any{"path": "a.txt", "content": "two"}); !ok {
		t.Error("it was not written")
	}
	if fi, err := os.Stat(filepath.Join(dir, "a.txt")); err != nil || fi.Mode().Perm() != 0o640 {
		t.Errorf("its mode is %v (%v)", fi.Mode(), err)
	}
}

func TestRunCommand(t *testing.T) {
	for _, tt := range []struct {
		name string
		ran  *workspace.CommandResult
		err  error
		want string
		ok   bool
	}{
		{"it succeeds", &workspace.CommandResult{Stdout: "42\n"}, nil, "42\n\n[exit code 0]", true},
		{"it fails", &workspace.CommandResult{ExitCode: 3, Stderr: "no\n"}, nil, "[standard error]\nno\n\n[exit code 3]", false},
		{"it is ended", &workspace.CommandResult{ExitCode: 137, Notes: []string{"it was ended: timeout"}}, nil, "[it was ended: timeout]\n[exit code 137]", false},
		{"it has notes", &workspace.CommandResult{Notes: []string{"skill a\u200bb is not there", "two\nlines"}}, nil, "[skill ab is not there]\n[two lines]\n[exit code 0]", true},
		{"nothing ran", nil, errors.New("no sandbox can be had"), "no sandbox can be had", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			call, _ := open(t, nil, &workspace.Options{Run: func(_ context.Context, args []string, limit time.Duration) (*workspace.CommandResult, error) {
				if args[2] != "echo 42" || limit != 600*time.Second {
					t.Errorf("run %q for %v", args, limit)
				}
				return tt.ran, tt.err
			}})
			if got, ok := call("run_command", map[string]any{"command": "echo 42", "seconds": 10_000}); got != tt.want || ok != tt.ok {
				t.Errorf("%t %q, want %t %q", ok, got, tt.ok, tt.want)
			}
		})
	}
}

func TestWriteFollowsNoSymlink(t *testing.T) {
	call, dir := open(t, map[string]string{".git/hooks/a": "old", "real/b.txt": "old"}, nil)
	for link, to := range map[string]string{"docs": ".git/hooks", "also": "real", "file": "real/b.txt"} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{"docs/pre-commit", "docs/a", "also/b.txt", "file"} {
		if got, ok := call("write_file", map[string]any{"path": path, "content": "new"}); ok {
			t.Errorf("write %s: %q", path, got)
		}
		if got, ok := call("edit_file", map[string]any{"path": path, "old": "old", "new": "new"}); ok {
			t.Errorf("edit %s: %q", path, got)
		}
	}
	for _, name := range []string{".git/hooks/a", "real/b.txt"} {
		if b, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(b) != "old" {
			t.Errorf("%s is %q, %v", name, b, err)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, ".git/hooks/pre-commit")); err == nil {
		t.Error("unexpected hook")
	}
}

// An edit that would exceed the size limit is rejected before it is made.
func TestEditLimits(t *testing.T) {
	call, _ := open(t, map[string]string{"a": strings.Repeat("a", 1<<20)}, nil)
	if got, ok := call("edit_file", map[string]any{"path": "a", "old": "a", "new": strings.Repeat("b", 1<<20), "all": true}); ok || !strings.Contains(got, "too large") {
		t.Errorf("%t %q", ok, got[:min(len(got), 200)])
	}
}

// Concurrent changes are all applied.
func TestChangesAreSerialized(t *testing.T) {
	call, dir := open(t, map[string]string{"a": "0123456789"}, nil)
	var all sync.WaitGroup
	for i := range 10 {
		all.Go(func() {
			call("edit_file", map[string]any{"path": "a", "old": string(rune('0' + i)), "new": string(rune('a' + i))})
		})
	}
	all.Wait()
	if b, err := os.ReadFile(filepath.Join(dir, "a")); err != nil || string(b) != "abcdefghij" {
		t.Errorf("it is %q, %v", b, err)
	}
}
