package loadout_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/sandbox"
)

const echoServer = `import os, sys
print("noise", file=sys.stderr, flush=True)
for line in sys.stdin:
    w = line.strip()
    print({"cwd": os.getcwd(), "home": os.environ["HOME"], "argv": " ".join(sys.argv[1:]), "stubborn": "",
           "file": os.path.exists("/needs/.loadout/f.txt") and open("/needs/.loadout/f.txt").read()}.get(w, os.environ.get(w, w)), flush=True)
    if w == "stubborn":
        import time
        time.sleep(600)
    if w == "fail":
        sys.exit(3)
`

func echo() files {
	return files{
		"echo/SKILL.md":      skillText("echo", "x"),
		"echo/server.py":     echoServer,
		"echo/pkg/module.py": echoServer,
		"echo/server.js":     "process.stdin.on('data', d => process.stdout.write(d))\n",
		"echo/server.sh":     "cat\n",
		"echo/data.json":     "{}\n",
	}
}

// serve starts a service for an agent.
func (s *shop) serve(t testing.TB, svc loadout.Service) (*loadout.Served, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel() // it bounds the start only
	if svc.Principal == (policy.Principal{}) && !svc.Typed {
		svc.Principal = robot
	}
	if s.scripts.Getenv == nil {
		s.scripts.Getenv = os.Getenv
	}
	served, err := s.Serve(ctx, svc)
	if err == nil {
		t.Cleanup(func() { served.Close() })
	}
	return served, err
}

// say writes a line and returns the next one.
func say(t *testing.T, s *loadout.Served, r *bufio.Reader, line string) string {
	t.Helper()
	if _, err := io.WriteString(s, line+"\n"); err != nil {
		t.Fatal(err)
	}
	got, err := r.ReadString('\n')
	if err != nil {
		t.Fatalf("after %q: %v; it said:\n%s", line, err, s.Stderr())
	}
	return strings.TrimSuffix(got, "\n")
}

func TestServe(t *testing.T) {
	s := newShop(t, echo(), nil)
	s.approve(t, "echo")
	for name, command := range map[string][]string{
		"a path":            {"server.py", "a", "b c"},
		"a path with a dot": {"./server.py", "a", "b c"},
		"the folder":        {"${SKILL_DIR}/server.py", "a", "b c"},
		"an interpreter":    {"python3", "server.py", "a", "b c"},
		"with the folder":   {"python", "{baseDir}/server.py", "a", "b c"},
		"a module":          {"python3", "-m", "pkg.module", "a", "b c"},
	} {
		t.Run(name, func(t *testing.T) {
			served, err := s.serve(t, loadout.Service{Skill: "echo", Command: command, Env: map[string]string{"WHERE": "${SKILL_DIR}/x"},
				Files: map[string][]byte{"f.txt": []byte("of the caller")}})
			if err != nil {
				t.Fatal(err)
			}
			r := bufio.NewReader(served)
			for asked, want := range map[string]string{"hello": "hello", "cwd": "/skill", "home": "/work", "argv": "a b c", "WHERE": "/skill/x", "file": "of the caller"} {
				if got := say(t, served, r, asked); got != want {
					t.Errorf("%s is %q, want %q", asked, got, want)
				}
			}
			if err := served.Close(); err != nil {
				t.Error(err)
			}
			if err := served.Err(); err != nil {
				t.Errorf("closed: %v", err)
			}
			if got := served.Stderr(); got != "noise\n" {
				t.Errorf("stderr is %q", got)
			}
			if _, err := r.ReadString('\n'); err != io.EOF {
				t.Errorf("read after the end: %v", err)
			}
		})
	}
	for _, command := range [][]string{{"node", "server.js"}, {"server.js"}, {"bash", "server.sh"}, {"cat"}, {"/bin/cat", "-"}} {
		served, err := s.serve(t, loadout.Service{Skill: "echo", Command: command})
		if err != nil {
			t.Errorf("%q: %v", command, err)
			continue
		}
		if got := say(t, served, bufio.NewReader(served), "hello"); got != "hello" {
			t.Errorf("%q says %q", command, got)
		}
		served.Close()
	}
}

func TestServeRefuses(t *testing.T) {
	s := newShop(t, echo(), nil)
	if _, err := s.serve(t, loadout.Service{Skill: "echo", Command: []string{"server.py"}}); !isRefused(err) {
		t.Errorf("what nobody approved: %v", err)
	}
	s.approve(t, "echo")
	for _, tt := range []struct {
		command []string
		want    string
	}{
		{[]string{"docker", "run", "-i", "mcp/x"}, "no containers can be started"},
		{[]string{"/usr/bin/podman", "run", "x"}, "no containers can be started"},
		{[]string{}, "it is empty"},
		{[]string{"data.json"}, "not a script"},
		{[]string{"./gone.py"}, "no script"},
		{[]string{"nowhere-to-be-found"}, "is missing"},
		{[]string{"npx", "github:x/y"}, "not a package of the registry"},
		{[]string{"npx", "-c", "rm"}, "not supported"},
		{[]string{"uvx", "git+https://example.com/x"}, "not a package of the index"},
		{[]string{"npx", "-y", "x@1.0.0"}, "x"}, // this runtime installs nothing
	} {
		served, err := s.serve(t, loadout.Service{Skill: "echo", Command: tt.command})
		if err == nil {
			served.Close()
			t.Errorf("%q was started", tt.command)
		} else if !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q: %v; want %q", tt.command, err, tt.want)
		}
	}
	if _, err := anyShop(t, echo(), func(_ *shop, o *loadout.Options) { o.Scripts = nil }).serve(t, loadout.Service{Skill: "echo", Command: []string{"server.py"}}); !errors.Is(err, loadout.ErrNoScripts) {
		t.Errorf("without a sandbox: %v", err)
	}
}

func isRefused(err error) bool {
	_, ok := errors.AsType[*loadout.RefusedError](err)
	return ok
}

func TestServedEnds(t *testing.T) {
	s := newShop(t, echo(), nil)
	s.approve(t, "echo")
	start := func() (*loadout.Served, *bufio.Reader) {
		t.Helper()
		served, err := s.serve(t, loadout.Service{Skill: "echo", Command: []string{"server.py"}})
		if err != nil {
			t.Fatal(err)
		}
		r := bufio.NewReader(served)
		say(t, served, r, "begun")
		return served, r
	}
	t.Run("by itself", func(t *testing.T) {
		served, r := start()
		say(t, served, r, "fail")
		<-served.Done()
		if err := served.Err(); err == nil || !strings.Contains(err.Error(), "exit code 3") {
			t.Errorf("got %v", err)
		}
		if _, err := r.ReadByte(); err != io.EOF {
			t.Errorf("read: %v", err)
		}
		served.Close()
		served.Close()
	})
	t.Run("closed though it goes on", func(t *testing.T) {
		served, r := start()
		say(t, served, r, "stubborn")
		if err := served.Close(); err != nil || served.Err() != nil {
			t.Errorf("got %v, %v", err, served.Err())
		}
	})
	t.Run("withdrawn", func(t *testing.T) {
		g := s.approve(t, "echo")
		served, r := start()
		if _, err := s.grants.Revoke(t.Context(), g.ID); err != nil {
			t.Fatal(err)
		}
		<-served.Done()
		if err := served.Err(); !errors.Is(err, sandbox.ErrDisabled) {
			t.Errorf("got %v", err)
		}
		if _, err := r.ReadByte(); !errors.Is(err, sandbox.ErrDisabled) {
			t.Errorf("read: %v", err)
		}
		served.Close()
		decisions, _ := s.audit.take()
		if !slices.ContainsFunc(decisions, func(r policy.Record) bool { return r.Action == "served" && r.Reason == "disabled" }) {
			t.Error("how it ended is not in the audit log")
		}
	})
}

func TestServedSecretsAreNotShown(t *testing.T) {
	tree := echo()
	tree["echo/SKILL.md"] = "---\nname: echo\ndescription: x\nsandbox: {secrets: [TOKEN]}\n---\n"
	tree["echo/server.py"] = "import sys\nv = open('/run/secrets/TOKEN').read()\nprint('err', v, file=sys.stderr, flush=True)\nprint('out', v, flush=True)\nsys.stdin.read()\n"
	s := newShop(t, tree, func(s *shop, o *loadout.Options) { s.scripts.Bounds.Secrets = []string{"TOKEN"} })
	s.approve(t, "echo")
	served, err := s.serve(t, loadout.Service{Skill: "echo", Command: []string{"server.py"}, Secrets: []sandbox.Secret{sandbox.NewSecret("TOKEN", "hush-hush-hush")}})
	if err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(served).ReadString('\n')
	served.Close()
	for _, got := range []string{line, served.Stderr()} {
		if strings.Contains(got, "hush") || !strings.Contains(got, "TOKEN") {
			t.Errorf("it shows %q (%v)", got, err)
		}
	}
}

func TestAWishNamesServices(t *testing.T) {
	s := anyShop(t, files{"w/SKILL.md": `---
name: w
description: x
mcpServers:
  here: {command: server.py, args: [--fast], env: {KEY: "${{secrets.KEY}}", AT: "${SKILL_DIR}"}}
  boat: {command: docker, args: [run, x]}
  there: {type: http, url: "https://mcp.example.com/x", headers: {Authorization: "Bearer ${TOKEN:-none}"}}
provider: {module: provider, class: P}
---
`, "w/server.py": "", "w/provider.py": ""}, nil)
	w, err := s.Wish(t.Context(), "w")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, v := range w.Services {
		got = append(got, strings.Join([]string{v.Name, strings.Join(v.Command, " "), strings.Join(v.Hosts, " "), strings.Join(v.Variables, " "), v.Refused[:min(6, len(v.Refused))]}, "|"))
	}
	want := []string{"boat|docker run x|||docker", "here|server.py --fast||AT KEY secrets.KEY|", "there||mcp.example.com|Authorization TOKEN|", "provider|python3 provider.py P|||"}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
