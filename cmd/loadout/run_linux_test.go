package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/internal/exit"
	"github.com/loadout-dev/loadout/internal/terminal"
)

// scriptSkill writes a skill with one script, and returns the flags that name
// it and the words that run it.
func scriptSkill(t *testing.T, front, name, text string) (skills string) {
	t.Helper()
	skills = filepath.Join(t.TempDir(), "set")
	dir := filepath.Join(skills, "tool")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for file, text := range map[string]string{"SKILL.md": "---\nname: tool\ndescription: Tries things. Use for tests.\n" + front + "---\nRun it.\n", name: text} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return skills
}

// ran runs loadout run --json in a new home directory.
func ran(t *testing.T, exe string, env []string, args ...string) *loadout.RunResult {
	t.Helper()
	home := t.TempDir()
	cmd := exec.Command(exe, append([]string{"run", "--json"}, args...)...)
	cmd.Dir = home
	cmd.Env = append(append(os.Environ(), "HOME="+home, "XDG_CONFIG_HOME=", "XDG_CACHE_HOME=", "XDG_STATE_HOME=", "LOADOUT_STATE="), env...)
	var problems strings.Builder
	cmd.Stderr = &problems
	out, _ := cmd.Output() // the exit code is in the document
	var res loadout.RunResult
	if err := json.Unmarshal(out, &res); err != nil {
		t.Fatalf("%v: %s%s", err, out, problems.String())
	}
	return &res
}

func TestRunHasNoNetwork(t *testing.T) {
	exe := needsSandbox(t)
	var met atomic.Int32
	listen := func(network, address string) string {
		l, err := net.Listen(network, address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				met.Add(1)
				c.Close()
			}
		}()
		return l.Addr().String()
	}
	_, port, _ := net.SplitHostPort(listen("tcp", "127.0.0.1:0"))
	name := fmt.Sprintf("@loadout-test-%d", os.Getpid())
	listen("unix", name)
	skills := scriptSkill(t, "", "try.py", `import socket, sys
for family, address in ((socket.AF_INET, ("127.0.0.1", int(sys.argv[1]))), (socket.AF_UNIX, "\0" + sys.argv[2]), (socket.AF_INET, ("192.0.2.1", 80))):
    try:
        s = socket.socket(family)
        s.settimeout(2)
        s.connect(address)
        print("connected", address)
    except OSError as e:
        print("refused", e.__class__.__name__)
try:
    socket.getaddrinfo("example.com", 80)
    print("connected to a name server")
except OSError:
    print("refused name")
`)
	res := ran(t, exe, nil, "tool", "try.py", "--skills", skills, "--", port, name[1:])
	if strings.Count(res.Stdout, "refused") != 4 || strings.Contains(res.Stdout, "connected") || met.Load() != 0 {
		t.Errorf("%d connections; %+v", met.Load(), res)
	}
}

func TestRunNetworkThroughProxy(t *testing.T) {
	exe := needsSandbox(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "hello from outside") }))
	defer server.Close()
	host := server.Listener.Addr().String()
	skills := scriptSkill(t, fmt.Sprintf("sandbox:\n  network: [%q]\n", host), "get.py", `import os, sys, urllib.request
os.environ.pop("no_proxy"), os.environ.pop("NO_PROXY") # which has this address
for url in sys.argv[1:]:
    try:
        print(urllib.request.urlopen(url, timeout=5).read().decode())
    except OSError as e:
        print("refused", e)
`)
	args := []string{"tool", "get.py", "--skills", skills, "--", server.URL, "http://example.com/"}
	res := ran(t, exe, nil, args...)
	if strings.Contains(res.Stdout, "hello") || !slices.Contains(res.DeniedHosts, host) {
		t.Errorf("a private address that nobody listed: %+v", res)
	}
	res = ran(t, exe, []string{"LOADOUT_SANDBOX_PRIVATE=127.0.0.0/8"}, args...)
	if !strings.Contains(res.Stdout, "hello from outside") || !slices.Equal(res.DeniedHosts, []string{"example.com:80"}) {
		t.Errorf("a private address that the operator listed: %+v", res)
	}
	res = ran(t, exe, []string{"LOADOUT_SANDBOX_PRIVATE=127.0.0.0/8", "LOADOUT_SANDBOX_NETWORK=example.org"}, args...)
	if strings.Contains(res.Stdout, "hello") {
		t.Errorf("a host that the operator gives nobody: %+v", res)
	}
}

// A script that runs for a while completes. The first process of its sandbox is the
// command, and descriptors that its runtime opened at the start must stay open.
func TestRunTimeout(t *testing.T) {
	exe := needsSandbox(t)
	skills := scriptSkill(t, "", "slow.py", "import time\nfor i in range(5):\n    print(i, flush=True)\n    time.sleep(0.1)\n")
	if res := ran(t, exe, nil, "tool", "slow.py", "--skills", skills); res.Reason != "ok" || res.ExitCode != 0 || res.Stdout != "0\n1\n2\n3\n4\n" {
		t.Errorf("%+v", res)
	}
}

// processes are those whose arguments have a text.
func processes(t *testing.T, marker string) []string {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, f := range files {
		if b, err := os.ReadFile(f); err == nil && strings.Contains(string(b), marker) {
			out = append(out, f+": "+strings.ReplaceAll(string(b), "\x00", " "))
		}
	}
	return out
}

// On a terminal output appears as it comes, and Ctrl-C ends the script with all
// that it started.
func TestTerminalRun(t *testing.T) {
	exe := needsSandbox(t)
	marker := fmt.Sprintf("86399.%d", os.Getpid())
	skills := scriptSkill(t, "", "slow.sh", `trap '' INT TERM
setsid sh -c "trap '' INT TERM HUP; sleep `+marker+`" &
sleep `+marker+` &
echo first
read -r _
echo second >&2
wait
sleep `+marker+`
`)
	c := openConsoleOf(t, exe, 100, nil, "run", "tool", "slow.sh", "--skills", skills)
	c.await(t, "first")
	if strings.Contains(c.output(), "second") {
		t.Errorf("the script did not wait:\n%s", c.output())
	}
	c.types(t, "\r")
	c.await(t, "second")
	if len(processes(t, marker)) < 2 {
		t.Fatal("the script is not seen from outside")
	}
	c.types(t, "\x03")
	c.end(t, exit.Interrupted)
	if strings.Contains(c.output(), "loadout:") {
		t.Errorf("an interrupted run is not an error:\n%s", c.output())
	}
	eventually(t, "the script's processes end", func() bool { return len(processes(t, marker)) == 0 })
}

// A script is typed to as the command is.
func TestTerminalRunInput(t *testing.T) {
	exe := needsSandbox(t)
	skills := scriptSkill(t, "", "ask.sh", "echo name?\nread -r name\necho \"hello $name\"\n")
	c := openConsoleOf(t, exe, 100, nil, "run", "tool", "ask.sh", "--skills", skills)
	c.await(t, "name?")
	c.types(t, "Ada\n")
	c.await(t, "hello Ada")
	c.end(t, exit.OK)
}

// What a probe says fits the terminal.
func TestTerminalProbe(t *testing.T) {
	exe := needsSandbox(t)
	c := openConsoleOf(t, exe, 80, nil, "sandbox", "probe")
	c.await(t, "used for scripts")
	c.end(t, exit.OK)
	for line := range strings.Lines(colours.ReplaceAllString(c.output(), "")) {
		line = line[strings.LastIndexByte(line, '\r')+1:] // behind the progress
		if line = strings.TrimSuffix(line, "\n"); terminal.Width(line) > 80 {
			t.Errorf("a line has %d columns: %s", terminal.Width(line), line)
		}
	}
}

// On a terminal approve asks, and records nothing but for a yes.
func TestTerminalApprove(t *testing.T) {
	skills := scriptSkill(t, "", "run.sh", "echo ok\n")
	tests := map[string]struct {
		args, answer string
		code, grants int
	}{
		"yes":          {"", "y\n", exit.OK, 1},
		"no":           {"", "n\n", exit.Refused, 0},
		"nothing":      {"", "\n", exit.Refused, 0},
		"end of input": {"", "\x04", exit.Refused, 0},
		"interrupt":    {"", "\x03", exit.Interrupted, 0},
		"not asked":    {"--yes", "", exit.OK, 1},
		"only shown":   {"--dry-run", "", exit.OK, 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c := openConsole(t, 100, nil, append([]string{"approve", "tool", "--skills", skills}, strings.Fields(tt.args)...)...)
			if tt.answer != "" {
				c.await(t, "Approve this skill? [y/N] ")
				c.types(t, tt.answer)
			}
			c.end(t, tt.code)
			files, err := filepath.Glob(filepath.Join(c.Dir, ".local", "state", "loadout", "grants", "*.json"))
			if err != nil {
				t.Fatal(err)
			}
			if len(files) != tt.grants {
				t.Errorf("%d grants were recorded, want %d: %q\n%s", len(files), tt.grants, files, c.output())
			}
			if asked := strings.Contains(c.output(), "[y/N]"); asked != (tt.answer != "") {
				t.Errorf("asked: %v\n%s", asked, c.output())
			}
		})
	}
}

// A module is compiled once, in a separate sandbox.
func TestRunWebAssembly(t *testing.T) {
	exe := needsSandbox(t)
	// memory of one page, and a _start that returns
	const module = "\x00asm\x01\x00\x00\x00\x01\x04\x01\x60\x00\x00\x03\x02\x01\x00\x05\x03\x01\x00\x01\x07\x13\x02\x06memory\x02\x00\x06_start\x00\x00\x0a\x04\x01\x02\x00\x0b"
	skills, cache := scriptSkill(t, "", "run.wasm", module), t.TempDir()
	var made []os.FileInfo
	for range 2 {
		if res := ran(t, exe, []string{"LOADOUT_CACHE=" + cache}, "tool", "run.wasm", "--skills", skills); res.Reason != "ok" || res.Backend != "native" {
			t.Fatalf("%+v", res)
		}
		dirs, err := filepath.Glob(filepath.Join(cache, "wasm", "*"))
		if err != nil || len(dirs) != 1 {
			t.Fatalf("compiled code: %q, %v", dirs, err)
		}
		fi, err := os.Stat(dirs[0])
		if err != nil {
			t.Fatal(err)
		}
		made = append(made, fi)
	}
	if !os.SameFile(made[0], made[1]) {
		t.Error("it was compiled again")
	}
	broken := scriptSkill(t, "", "run.wasm", "\x00asm and no more")
	if res := ran(t, exe, []string{"LOADOUT_CACHE=" + cache}, "tool", "run.wasm", "--skills", broken); res.ExitCode != 126 {
		t.Errorf("a file that is not a module: %+v", res)
	}
}
