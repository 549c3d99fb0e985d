package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func TestRevocationStopsAgentRuns(t *testing.T) {
	exe := needsSandbox(t)
	for _, tt := range []struct {
		what     string
		withdraw func(t *testing.T, s *waiting)
		then     string // message to the next run
	}{
		{"approval", func(t *testing.T, s *waiting) { s.loadout(t, "approve", "--revoke", "tool") }, "not approved"},
		{"kill switch", func(t *testing.T, s *waiting) { s.configure(t, "skills: {enabled: false}\n") }, "switched off"},
		{"allowlist", func(t *testing.T, s *waiting) { s.configure(t, "skills: {allow: [other]}\n") }, "tool"},
		{"configuration that cannot be read", func(t *testing.T, s *waiting) { s.configure(t, "skills: {enabled: perhaps}\n") }, "configuration"},
	} {
		t.Run(strings.ReplaceAll(tt.what, " ", "_"), func(t *testing.T) {
			s := serveWaiting(t, exe)
			type outcome struct {
				res *mcp.CallToolResult
				err error
			}
			ended := make(chan outcome, 1)
			go func() {
				res, err := s.call()
				ended <- outcome{res, err}
			}()
			s.awaitScript(t)
			tt.withdraw(t, s)
			select {
			case o := <-ended:
				if o.err != nil {
					t.Fatal(o.err)
				}
				if got, _ := o.res.StructuredContent.(map[string]any); got["reason"] != "disabled" {
					t.Errorf("it ended with %v: %v", got["reason"], o.res.Content[0].(*mcp.TextContent).Text)
				}
			case <-time.After(20 * time.Second):
				t.Fatal("it goes on")
			}
			res, err := s.call()
			if err != nil {
				t.Fatal(err)
			}
			if text := res.Content[0].(*mcp.TextContent).Text; !res.IsError || !strings.Contains(text, tt.then) {
				t.Errorf("the next one: %s", text)
			}
		})
	}
}

// waiting is loadout mcp with a skill whose script runs until it is stopped.
type waiting struct {
	exe, dir, work string
	env            []string
	seconds        string // for which the script sleeps; no other process does
	session        *mcp.ClientSession
}

func serveWaiting(t *testing.T, exe string) *waiting {
	t.Helper()
	s := &waiting{exe: exe, dir: t.TempDir(), work: t.TempDir(), seconds: "60." + strconv.Itoa(os.Getpid())}
	for d := s.work; d != os.TempDir() && d != "/"; d = filepath.Dir(d) {
		if err := os.Chmod(d, 0o777); err != nil { // for root the script is another user
			t.Fatal(err)
		}
	}
	skills := scriptSkill(t, "", "wait.sh", "sleep "+s.seconds+"\n")
	s.env = append(os.Environ(), "HOME="+s.dir, "XDG_CONFIG_HOME=", "XDG_CACHE_HOME=", "XDG_STATE_HOME=", "LOADOUT_STATE=", "LOADOUT_CACHE=",
		"LOADOUT_CONFIG="+filepath.Join(s.dir, "loadout.yaml"), "LOADOUT_SKILLS_DIRS="+skills)
	s.configure(t, "skills: {enabled: true}\n")
	s.loadout(t, "approve", "tool", "--write-workspace")
	cmd := exec.Command(exe, "mcp", "--workspace", s.work)
	cmd.Env, cmd.Dir = s.env, s.dir
	session, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), &mcp.CommandTransport{Command: cmd}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { session.Close() })
	s.session = session
	return s
}

func (s *waiting) call() (*mcp.CallToolResult, error) {
	return s.session.CallTool(context.Background(), &mcp.CallToolParams{Name: "run_skill_script", Arguments: map[string]any{"skill": "tool", "script": "wait.sh"}})
}

func (s *waiting) loadout(t *testing.T, args ...string) {
	t.Helper()
	cmd := exec.Command(s.exe, args...)
	cmd.Env, cmd.Dir = s.env, s.dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("loadout %v: %v\n%s", args, err, out)
	}
}

// configure puts a configuration in place as editors do: whole or not at all.
func (s *waiting) configure(t *testing.T, text string) {
	t.Helper()
	file := filepath.Join(s.dir, "loadout.yaml")
	if err := os.WriteFile(file+".new", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(file+".new", file); err != nil {
		t.Fatal(err)
	}
}

// awaitScript waits until the script runs. What it writes to the workspace is
// there only when it has ended.
func (s *waiting) awaitScript(t *testing.T) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		running, _ := filepath.Glob("/proc/[0-9]*/cmdline")
		for _, name := range running {
			if line, err := os.ReadFile(name); err == nil && string(line) == "sleep\x00"+s.seconds+"\x00" {
				return
			}
		}
		if time.Now().After(deadline) {
			t.Fatal("the script does not run")
		}
	}
}
