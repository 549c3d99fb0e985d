//go:build unix

package main

import (
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/internal/serverstate"
	"github.com/loadout-dev/loadout/internal/setup"
	"github.com/loadout-dev/loadout/tools"
)

// The publisher takes its first snapshot at once, while publishState still runs.
func TestPublishStateImmediately(t *testing.T) {
	dir := t.TempDir()
	a := newApp(environment{stderr: io.Discard, getenv: func(name string) string {
		if name == "LOADOUT_STATE" {
			return dir
		}
		return ""
	}})
	rt, err := loadout.New(t.Context(), &loadout.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer rt.Close()
	set := &setup.Toolset{Set: tools.ForRuntime(rt, &tools.Options{})}
	defer set.Close()
	for range 200 {
		a.publishState(set, []int{os.Getppid()}).close()
	}
}

// gated is a server that starts once the file gate exists, and writes its PID to the
// file pid. It belongs to another loadout mcp with its own state.
const gated = `{"mcpServers": {"notes": {"command": "sh", "args": ["-c", "test -e gate || { echo closed >&2; exit 7; }; echo $$ >pid; exec loadout mcp"],
  "env": {"LOADOUT_STATE": "DIR/state-of-notes", "NOTES_TOKEN": "s3cr3t-notes"}, "cwd": "DIR", "connect": "at-start"}}}`

// shownRunning returns what another process reports about running servers.
func shownRunning(t *testing.T, p *process, args ...string) (out serversOutput, text string) {
	t.Helper()
	c := exec.Command("loadout", args...)
	c.Dir, c.Env = p.home, p.Env
	b, err := c.Output()
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(b), "s3cr3t") || strings.Contains(string(b), "t0ken") {
		t.Fatalf("a token is shown:\n%s", b)
	}
	if args[len(args)-1] == "--json" {
		if err := json.Unmarshal(b, &out); err != nil {
			t.Fatal(err)
		}
	}
	return out, string(b)
}

// becomes waits until the one server of the process is in one of the states, as
// seen from outside.
func becomes(t *testing.T, p *process, states ...string) serversOutput {
	t.Helper()
	var last serversOutput
	for late := time.Now().Add(25 * time.Second); time.Now().Before(late); time.Sleep(50 * time.Millisecond) {
		last, _ = shownRunning(t, p, "servers", "--offline", "--json")
		for _, state := range states {
			if len(last.Running) == 1 && len(last.Running[0].Servers) == 1 && last.Running[0].Servers[0].State == state {
				return last
			}
		}
	}
	t.Fatalf("it does not become %v; last %+v; it says\n%s", states, last.Running, p.stderr.String())
	return last
}

func TestStatesReadByOtherProcess(t *testing.T) {
	home := t.TempDir()
	gate, pid := filepath.Join(home, "gate"), filepath.Join(home, "pid")
	if err := os.WriteFile(filepath.Join(home, "mcp.json"), []byte(strings.ReplaceAll(gated, "DIR", home)), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	p, in := startIn(t, home, "mcp", "--mcp-config", "mcp.json")
	if _, err := io.WriteString(in, initialize+"\n"); err != nil {
		t.Fatal(err)
	}
	first := becomes(t, p, "READY").Running[0]
	if s := first.Servers[0]; first.PID != p.Process.Pid || s.Name != "notes" || s.Transport != "stdio" || s.Tools == 0 || s.Era == "" || s.Since.IsZero() {
		t.Errorf("it is %+v", first)
	}
	eventually(t, "the name of its client is known", func() bool { // servers connect before it is
		out, _ := shownRunning(t, p, "servers", "--offline", "--json")
		return len(out.Running) == 1 && out.Running[0].Client == "t"
	})
	_, text := shownRunning(t, p, "servers", "--offline")
	if want := "Running: loadout mcp (pid " + strconv.Itoa(p.Process.Pid) + ", t)\n"; !strings.Contains(text, want) || !strings.Contains(text, "READY") {
		t.Errorf("the table is\n%s", text)
	}

	if err := os.Remove(gate); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(pid)
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(n, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if s := becomes(t, p, "DEGRADED", "DEAD").Running[0].Servers[0]; s.Error == "" {
		t.Errorf("it is without a reason: %+v", s)
	}

	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if again := becomes(t, p, "READY").Running[0]; again.PID != first.PID || !again.Servers[0].Since.After(first.Servers[0].Since) || again.Servers[0].Error != "" {
		t.Errorf("it came back as %+v", again)
	}

	in.Close()
	p.end(t)
	if out, _ := shownRunning(t, p, "servers", "--offline", "--json"); len(out.Running) != 0 {
		t.Errorf("after its end there is %+v", out.Running)
	}
}

// Servers of a profile at its own path are shown with its name, without their granted
// values.
func TestProfileStates(t *testing.T) {
	home := ghost(t, weibo(t).URL, "user:\n  weibo_token: t0ken\n")
	p, url := serveIn(t, home)
	connectTo(t, url+"/p/weibo-test")
	var last serversOutput
	for late := time.Now().Add(20 * time.Second); time.Now().Before(late); time.Sleep(50 * time.Millisecond) {
		last, _ = shownRunning(t, p, "servers", "--offline", "--json")
		if len(last.Running) == 1 && slices.ContainsFunc(last.Running[0].Servers, func(s serverstate.Server) bool {
			return s.Name == "weiboServer" && s.Profile == "weibo-test"
		}) {
			return
		}
	}
	t.Errorf("it is %+v", last.Running)
}
