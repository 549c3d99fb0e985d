package loadout_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/internal/execution"
	"github.com/loadout-dev/loadout/internal/sandbox/execute"
	"github.com/loadout-dev/loadout/internal/sandbox/stage/stagetest"
	"github.com/loadout-dev/loadout/internal/testprogram"
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

// Clients of servers use a service like a process of their own.
var _ interface {
	io.Reader
	io.WriteCloser
	Stderr() string
} = (*execution.Service)(nil)

func echo() files {
	return files{
		"echo/SKILL.md":      skillText("echo", "x"),
		"echo/server.py":     echoServer,
		"echo/pkg/module.py": echoServer,
		"echo/bin/alone.py":  echoServer,
		"echo/server.js":     "process.stdin.on('data', d => process.stdout.write(d))\n",
		"echo/server.sh":     "cat\n",
		"echo/data.json":     "{}\n",
	}
}

// serve starts a service for an agent.
func (s *shop) serve(t testing.TB, svc execution.ServiceRequest) (*execution.Service, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel() // it limits the start only
	if svc.Caller.Principal == (policy.Principal{}) && !svc.Caller.ByUser {
		svc.Caller.Principal = robot
	}
	if s.scripts.Getenv == nil {
		s.scripts.Getenv = os.Getenv
	}
	served, err := s.Runner().Serve(ctx, &svc)
	if err == nil {
		t.Cleanup(func() { served.Close() })
	}
	return served, err
}

// say writes a line and returns the next line of output.
func say(t *testing.T, s *execution.Service, r *bufio.Reader, line string) string {
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
		"only its name":     {"./alone.py", "a", "b c"},
		"an interpreter":    {"python3", "server.py", "a", "b c"},
		"with the folder":   {"python", "{baseDir}/server.py", "a", "b c"},
		"a module":          {"python3", "-m", "pkg.module", "a", "b c"},
		"uv run":            {"uv", "run", "server.py", "a", "b c"},
	} {
		t.Run(name, func(t *testing.T) {
			served, err := s.serve(t, execution.ServiceRequest{Skill: "echo", Command: command, Env: map[string]string{"WHERE": "${SKILL_DIR}/x"},
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
	for _, command := range [][]string{{"node", "server.js"}, {"server.js"}, {"bash", "server.sh"}, {"cat"}, {"/bin/cat", "-"},
		{"python3", "-uc", "import sys\nfor l in sys.stdin: print(l, end='')", "data.json"}} {
		served, err := s.serve(t, execution.ServiceRequest{Skill: "echo", Command: command})
		if err != nil {
			t.Errorf("%q: %v", command, err)
			continue
		}
		if got := say(t, served, bufio.NewReader(served), "hello"); got != "hello" {
			t.Errorf("%q returned %q", command, got)
		}
		served.Close()
	}
}

func TestServeRefuses(t *testing.T) {
	s := newShop(t, echo(), nil)
	if _, err := s.serve(t, execution.ServiceRequest{Skill: "echo", Command: []string{"server.py"}}); !isRefused(err) {
		t.Errorf("what was not approved: %v", err)
	}
	s.approve(t, "echo")
	for _, tt := range []struct {
		command []string
		want    string
	}{
		{[]string{"docker", "run", "-i", "mcp/x"}, "cannot start containers"},
		{[]string{"/usr/bin/podman", "run", "x"}, "cannot start containers"},
		{[]string{}, "empty command; write a program"},
		{[]string{"data.json"}, "not a script"},
		{[]string{"./gone.py"}, "not found in the skill"},
		{[]string{"nowhere-to-be-found"}, "but not installed"},
		{[]string{"uv", "run", "pytest"}, "want the path of a script"},
		{[]string{"npx", "github:x/y"}, "not a package name"},
		{[]string{"npx", "-c", "rm"}, "unsupported option"},
		{[]string{"uvx", "git+https://example.com/x"}, "not a package name"},
		{[]string{"npx", "-y", "x@1.0.0"}, "x"}, // this runtime installs nothing
	} {
		served, err := s.serve(t, execution.ServiceRequest{Skill: "echo", Command: tt.command})
		if err == nil {
			served.Close()
			t.Errorf("%q was started", tt.command)
		} else if !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q: %v; want %q", tt.command, err, tt.want)
		}
	}
	if _, err := anyShop(t, echo(), func(_ *shop, o *loadout.Options) { o.Scripts = nil }).serve(t, execution.ServiceRequest{Skill: "echo", Command: []string{"server.py"}}); !errors.Is(err, loadout.ErrNoScripts) {
		t.Errorf("without a sandbox: %v", err)
	}
}

func isRefused(err error) bool {
	_, ok := errors.AsType[*loadout.RefusedError](err)
	return ok
}

func TestServedServicesEnd(t *testing.T) {
	s := newShop(t, echo(), nil)
	s.approve(t, "echo")
	start := func() (*execution.Service, *bufio.Reader) {
		t.Helper()
		served, err := s.serve(t, execution.ServiceRequest{Skill: "echo", Command: []string{"server.py"}})
		if err != nil {
			t.Fatal(err)
		}
		r := bufio.NewReader(served)
		say(t, served, r, "begun")
		return served, r
	}
	t.Run("alone", func(t *testing.T) {
		served, r := start()
		say(t, served, r, "fail")
		<-served.Done()
		if err := served.Err(); err == nil || !strings.Contains(err.Error(), "exited with code 3") {
			t.Errorf("got %v", err)
		}
		if _, err := r.ReadByte(); err != io.EOF {
			t.Errorf("read: %v", err)
		}
		served.Close()
		served.Close()
	})
	t.Run("closed while running", func(t *testing.T) {
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
		if err := served.Err(); !errors.Is(err, execute.ErrDisabled) {
			t.Errorf("got %v", err)
		}
		if _, err := r.ReadByte(); !errors.Is(err, execute.ErrDisabled) {
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
	s := newShop(t, tree, func(s *shop, o *loadout.Options) {
		s.scripts.Bounds.Secrets = []string{"TOKEN"}
		s.scripts.Secret = func(context.Context, string) (string, error) { return "hush-hush-hush", nil }
	})
	s.approve(t, "echo")
	served, err := s.serve(t, execution.ServiceRequest{Skill: "echo", Command: []string{"server.py"}})
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

// The output of a service does not contain the secrets in its environment, and
// the service gets no other permissions because of them.
func TestServedRedactsGivenSecrets(t *testing.T) {
	tree := echo()
	tree["echo/server.py"] = "import os, sys\nprint(os.environ['KEY'], os.path.exists('/run/secrets/KEY'), flush=True)\nsys.stdin.read()\n"
	s := newShop(t, tree, nil)
	s.approve(t, "echo")
	served, err := s.serve(t, execution.ServiceRequest{Skill: "echo", Command: []string{"server.py"}, Env: map[string]string{"KEY": "hush-hush-hush"},
		Redact: []sandbox.Secret{sandbox.NewSecret("KEY", "hush-hush-hush")}})
	if err != nil {
		t.Fatal(err)
	}
	defer served.Close()
	if line, err := bufio.NewReader(served).ReadString('\n'); line != "[secret KEY] False\n" {
		t.Errorf("got %q (%v)", line, err)
	}
}

func TestApprovalRequestNamesServices(t *testing.T) {
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
	w, err := s.ReadApprovalRequest(t.Context(), "w")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, v := range w.Services {
		got = append(got, shown(v))
	}
	want := []string{"boat|docker run x||||docker", "here|server.py --fast||AT KEY|secret KEY in env KEY to server.py true|",
		"there||mcp.example.com||env TOKEN in header Authorization to mcp.example.com false|", "provider|python3 provider.py P||||"}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestServedHostsAreMerged(t *testing.T) {
	answer := func(text string) *httptest.Server {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, text) }))
		t.Cleanup(s.Close)
		return s
	}
	a, b, c := answer("one"), answer("two"), answer("three")
	at := func(s *httptest.Server) string { return strings.TrimPrefix(s.URL, "http://") }
	s := newShop(t, files{
		"net/SKILL.md": "---\nname: net\ndescription: x\nsandbox: {network: ['" + at(a) + "', '" + at(b) + "', '" + at(c) + "']}\n---\n",
		"net/get.py": `import sys, urllib.request, urllib.error
for line in sys.stdin:
    try:
        print(urllib.request.urlopen(line.strip()).read().decode(), flush=True)
    except urllib.error.HTTPError as e:
        print(e.code, flush=True)
`}, func(s *shop, o *loadout.Options) {
		s.scripts.Bounds.Network = []string{at(a), at(b)} // of the operator
		s.scripts.PrivateNetworks = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	})
	s.approve(t, "net")
	for _, tt := range []struct {
		hosts []string
		want  [3]string
	}{
		{nil, [3]string{"one", "two", "403"}},
		{[]string{at(a), at(c)}, [3]string{"one", "403", "403"}},
	} {
		served, err := s.serve(t, execution.ServiceRequest{Skill: "net", Command: []string{"get.py"}, Hosts: tt.hosts, Env: map[string]string{"NO_PROXY": "", "no_proxy": ""}})
		if err != nil {
			t.Fatal(err)
		}
		r := bufio.NewReader(served)
		for i, srv := range []*httptest.Server{a, b, c} {
			if got := say(t, served, r, srv.URL); got != tt.want[i] {
				t.Errorf("hosts %q: server %d answered %q, want %q", tt.hosts, i, got, tt.want[i])
			}
		}
		served.Close()
	}
	served, err := s.serve(t, execution.ServiceRequest{Skill: "net", Command: []string{"get.py"}, Hosts: []string{}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(served, a.URL+"\n"); err != nil {
		t.Fatal(err)
	}
	<-served.Done() // the program fails because it has no network
	if !strings.Contains(served.Stderr(), "URLError") {
		t.Errorf("without hosts: %s", served.Stderr())
	}
}

// A WebAssembly module that answers lines runs in the sandboxed runner.
func TestServeWASM(t *testing.T) {
	if testing.Short() {
		t.Skip("builds two programs")
	}
	needSandbox(t)
	dir := stagetest.OpenDir(t)
	exe, module := filepath.Join(dir, "loadout"), filepath.Join(dir, "echo.wasm")
	if err := (testprogram.Program{Package: "testdata/wasmrunner"}).Install(exe); err != nil {
		t.Fatal(err)
	}
	if err := (testprogram.Program{Package: "testdata/echo", Env: []string{"GOOS=wasip1", "GOARCH=wasm"}}).Install(module); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(module)
	if err != nil {
		t.Fatal(err)
	}
	s := newShop(t, files{"w/SKILL.md": skillText("w", "x"), "w/echo.wasm": string(data)}, func(s *shop, _ *loadout.Options) {
		s.scripts.Executable, s.scripts.CacheDir = exe, filepath.Join(dir, "cache")
	})
	s.approve(t, "w")
	served, err := s.serve(t, execution.ServiceRequest{Skill: "w", Command: []string{"/skill/echo.wasm", "a"}, Env: map[string]string{"GREETING": "hi"}})
	if err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(served)
	for _, word := range []string{"one", "two"} {
		if got := say(t, served, r, word); got != "hi 2 "+word {
			t.Errorf("got %q", got)
		}
	}
	if err := served.Close(); err != nil || served.Err() != nil {
		t.Errorf("%v, %v", err, served.Err())
	}
}
