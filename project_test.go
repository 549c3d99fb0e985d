package loadout_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/loadout-dev/loadout/internal/execution"
	"github.com/loadout-dev/loadout/internal/sandbox/execute"
	"github.com/loadout-dev/loadout/internal/sandbox/mountpoint"
	"github.com/loadout-dev/loadout/policy"
)

// prober answers questions about the permissions of a command.
const prober = `#!/usr/bin/env python3
import os, socket, sys

def probe(what, of):
    if what == "cwd":
        return os.getcwd()
    if what == "read":
        return open(of).read().strip()
    if what == "write":
        open(of, "w").write("x")
        return "written"
    if what == "env":
        return os.environ.get(of, "unset")
    if what == "reach":
        socket.create_connection(("127.0.0.1", int(of)), 2)
        return "reached"
    return what

for line in sys.stdin:
    what, _, of = line.strip().partition(" ")
    try:
        print(probe(what, of), flush=True)
    except OSError as e:
        print("no:", type(e).__name__, flush=True)
`

// trustedProject is a project on disk whose trust can be revoked.
type trustedProject struct {
	*execution.Project
	withdrawn atomic.Bool
}

var errWithdrawn = errors.New("it changed since it was trusted: loadout trust there")

func newProject(t *testing.T) *trustedProject {
	t.Helper()
	p := &trustedProject{}
	p.Project = &execution.Project{Dir: t.TempDir(), Digest: "sha256:" + policy.Digest(strings.Repeat("a", 64)), Check: func(context.Context) error {
		if p.withdrawn.Load() {
			return errWithdrawn
		}
		return nil
	}}
	files{"server.py": prober, "sub/note.txt": "a note\n"}.put(t, p.Dir)
	if err := errors.Join(os.Chmod(p.Dir, 0o755), os.Chmod(filepath.Join(p.Dir, "server.py"), 0o755)); err != nil {
		t.Fatal(err)
	}
	return p
}

func TestServeProject(t *testing.T) {
	s := newShop(t, files{}, nil)
	t.Setenv("LOADOUT_TEST_TOKEN", "of the person")
	home := filepath.Join(t.TempDir(), "private")
	if err := os.WriteFile(home, []byte("private"), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, command := range map[string][]string{
		"an interpreter": {"python3", "server.py"},
		"a path":         {"./server.py"},
		"the workspace":  {mountpoint.Workspace + "/server.py"},
		"python by path": {"/usr/bin/python3", mountpoint.Workspace + "/server.py"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newProject(t)
			served, err := s.serve(t, execution.ServiceRequest{Project: p.Project, Command: command, Env: map[string]string{"OWN": "of the configuration"},
				Hosts: []string{"*"}})
			if err != nil {
				t.Fatal(err)
			}
			r := bufio.NewReader(served)
			for asked, want := range map[string]string{
				"cwd":                    mountpoint.Workspace,
				"read sub/note.txt":      "a note",
				"read " + home:           "no: FileNotFoundError",
				"env HOME":               "/work",
				"env LOADOUT_TEST_TOKEN": "unset",
				"env KEY":                "unset",
				"env OWN":                "of the configuration",
				"write /work/x":          "written",
			} {
				if got := say(t, served, r, asked); got != want {
					t.Errorf("%s: %q, want %q", asked, got, want)
				}
			}
			for _, asked := range []string{"write new.txt", "write sub/note.txt", "reach 1"} {
				if got := say(t, served, r, asked); !strings.HasPrefix(got, "no: ") {
					t.Errorf("%s: %q, want no", asked, got)
				}
			}
			if served.Digest != p.Digest || served.Skill != "" {
				t.Errorf("served is of %q %q", served.Skill, served.Digest)
			}
			if err := served.Close(); err != nil || served.Err() != nil {
				t.Errorf("closed: %v, %v", err, served.Err())
			}
		})
	}
}

func TestServeProjectStartsInSubdirectory(t *testing.T) {
	s := newShop(t, files{}, nil)
	p := newProject(t)
	p.Subdir = "sub"
	served, err := s.serve(t, execution.ServiceRequest{Project: p.Project, Command: []string{"../server.py"}})
	if err != nil {
		t.Fatal(err)
	}
	if got := say(t, served, bufio.NewReader(served), "read note.txt"); got != "a note" {
		t.Errorf("got %q", got)
	}
}

func TestServeProjectEndsWithTrust(t *testing.T) {
	s := newShop(t, files{}, nil)
	p := newProject(t)
	start := func() *execution.Service {
		t.Helper()
		served, err := s.serve(t, execution.ServiceRequest{Project: p.Project, Command: []string{"python3", "server.py"}})
		if err != nil {
			t.Fatal(err)
		}
		say(t, served, bufio.NewReader(served), "begun")
		return served
	}
	for name, next := range map[string]func(*execution.Service){
		"at the next call": func(served *execution.Service) {
			if _, err := io.WriteString(served, "more\n"); !errors.Is(err, errWithdrawn) {
				t.Errorf("written: %v", err)
			}
		},
		"by itself": func(*execution.Service) {},
	} {
		t.Run(name, func(t *testing.T) {
			p.withdrawn.Store(false)
			served := start()
			p.withdrawn.Store(true)
			next(served)
			<-served.Done()
			if err := served.Err(); !errors.Is(err, execute.ErrDisabled) || !errors.Is(err, errWithdrawn) {
				t.Errorf("it ended with %v", err)
			}
		})
	}
	if _, err := s.serve(t, execution.ServiceRequest{Project: p.Project, Command: []string{"python3", "server.py"}}); !errors.Is(err, errWithdrawn) {
		t.Errorf("started again: %v", err)
	}
	var decisions []string
	for _, r := range s.audit.all {
		if r.Action == "run" {
			decisions = append(decisions, r.Decision)
		}
	}
	if got := strings.Join(decisions, " "); got != "allow allow deny" {
		t.Errorf("recorded %s", got)
	}
}

func TestServeProjectRefuses(t *testing.T) {
	s := newShop(t, files{}, nil)
	p := newProject(t)
	for _, tt := range []struct {
		command []string
		want    string
	}{
		{[]string{"docker", "run", "x"}, "cannot start containers"},
		{[]string{}, "empty command; write a program"},
		{[]string{"./gone.py"}, "file not found in the project"},
		{[]string{"../../bin/sh"}, "file not found in the project"},
		{[]string{"nowhere-to-be-found"}, "but not installed"},
		{[]string{"uv", "run", "server.py"}, "uvx PACKAGE==VERSION"},
		{[]string{"npx", "github:x/y"}, "not a package name"},
		{[]string{"npx", "-y", "x@1.0.0"}, "x"}, // this runtime installs nothing
	} {
		served, err := s.serve(t, execution.ServiceRequest{Project: p.Project, Command: tt.command})
		if err == nil {
			served.Close()
			t.Errorf("%q was started", tt.command)
		} else if !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "skill ") {
			t.Errorf("%q: %v; want %q", tt.command, err, tt.want)
		}
	}
	for name, bad := range map[string]*execution.Project{
		"outside":        {Dir: p.Dir, Subdir: "../other", Digest: p.Digest, Check: p.Check},
		"everything":     {Dir: "/", Digest: p.Digest, Check: p.Check},
		"not absolute":   {Dir: "x", Digest: p.Digest, Check: p.Check},
		"nobody to say":  {Dir: p.Dir, Digest: p.Digest},
		"what decides":   {Dir: filepath.Dir(s.scripts.FolderDir), Digest: p.Digest, Check: p.Check},
		"is not a place": {Dir: filepath.Join(p.Dir, "gone"), Digest: p.Digest, Check: p.Check},
	} {
		if served, err := s.serve(t, execution.ServiceRequest{Project: bad, Command: []string{"python3", "server.py"}}); err == nil {
			served.Close()
			t.Errorf("%s: started", name)
		}
	}
}

// The package of npx is installed first; node uses the modules beside a file.
func TestServeProjectWithPackages(t *testing.T) {
	if _, err := exec.LookPath("npm"); err != nil {
		t.Skip("npm is not installed")
	}
	s, registry, _ := fetching(t, "npx", "-y", "tool")
	registry.npm(t, "tool", "1.0.0", strings.Replace(jsServer, "VERSION", "fetched", 1))
	p := newProject(t)
	files{
		"server.js":                    "const beside = require('beside'); process.stdin.on('data', d => process.stdout.write(beside + ' ' + d))\n",
		"node_modules/beside/index.js": "module.exports = 'beside'\n",
	}.put(t, p.Dir)
	for _, tt := range []struct {
		command []string
		want    string
	}{
		{[]string{"npx", "-y", "-p", "tool@1.0.0", "serve", "a"}, "fetched a hello"},
		{[]string{"node", "server.js"}, "beside hello"},
	} {
		served, err := s.serve(t, execution.ServiceRequest{Project: p.Project, Command: tt.command})
		if err != nil {
			t.Errorf("%q: %v", tt.command, err)
			continue
		}
		if got := say(t, served, bufio.NewReader(served), "hello"); got != tt.want {
			t.Errorf("%q returned %q, want %q", tt.command, got, tt.want)
		}
		served.Close()
	}
}
