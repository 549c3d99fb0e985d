// Package servers_test runs Loadout in front of third-party MCP servers in
// LOADOUT_TEST_SERVERS, a directory in which npm installed them, as ./test/run does.
package servers_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout/internal/testprogram"
)

var names = []string{"everything", "filesystem", "memory"}

// loadout starts the command with the servers, and a skill that names them.
func loadout(t *testing.T, args ...string) (*mcp.ClientSession, string) {
	t.Helper()
	dir := os.Getenv("LOADOUT_TEST_SERVERS")
	if dir == "" {
		t.Skip("LOADOUT_TEST_SERVERS names no directory with servers: ./test/run installs them")
	}
	work := t.TempDir()
	exe, err := testprogram.Loadout.Build()
	if err != nil {
		t.Fatal(err)
	}
	servers := map[string]any{}
	for _, n := range names {
		args := []string{filepath.Join(dir, "node_modules/@modelcontextprotocol/server-"+n+"/dist/index.js")}
		if n == "filesystem" {
			args = append(args, work)
		}
		servers[n] = map[string]any{"command": "node", "args": args, "env": map[string]string{"MEMORY_FILE_PATH": filepath.Join(work, "memory.json")}}
	}
	servers["gone"] = map[string]any{"command": "there-is-no-such-server"}
	write(t, filepath.Join(work, "servers.json"), map[string]any{"mcpServers": servers})
	if err := os.MkdirAll(filepath.Join(work, "skills/all"), 0o755); err != nil {
		t.Fatal(err)
	}
	text := "---\nname: all\ndescription: Everything there is. Use in tests.\nmcpServers: [everything, filesystem, memory, gone]\n---\nUse them.\n"
	if err := os.WriteFile(filepath.Join(work, "skills/all/SKILL.md"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe, append([]string{"mcp", "--quiet", "--skills", filepath.Join(work, "skills"), "--mcp-config", filepath.Join(work, "servers.json")}, args...)...)
	cmd.Env = append(os.Environ(), "HOME="+work, "XDG_CONFIG_HOME="+work, "LOADOUT_STATE="+work+"/state", "LOADOUT_CACHE="+work+"/cache")
	cmd.Stderr = os.Stderr
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute) // a bound, not meant to be reached
	t.Cleanup(cancel)
	s, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(ctx, &mcp.CommandTransport{Command: cmd}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s, work
}

func write(t *testing.T, file string, v any) {
	t.Helper()
	b, err := json.Marshal(v)
	if err == nil {
		err = os.WriteFile(file, b, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func call(t *testing.T, s *mcp.ClientSession, tool string, args any) (string, *mcp.CallToolResult) {
	t.Helper()
	res, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: args})
	if err != nil {
		t.Fatalf("%s %v: %v", tool, args, err)
	}
	var b strings.Builder
	for _, c := range res.Content {
		if text, ok := c.(*mcp.TextContent); ok {
			b.WriteString(text.Text)
		}
	}
	return b.String(), res
}

// use calls a tool through call_tool.
func use(t *testing.T, s *mcp.ClientSession, tool string, args map[string]any) string {
	t.Helper()
	text, res := call(t, s, "call_tool", map[string]any{"name": tool, "arguments": args})
	if res.IsError {
		t.Errorf("%s: %s", tool, text)
	}
	return text
}

type loaded struct {
	State    string
	Problems []string
	Tools    []struct{ Name, Server string }
}

func TestSkillProvidesRealServers(t *testing.T) {
	s, work := loadout(t)
	_, res := call(t, s, "load_skill", map[string]any{"name": "all"})
	var l loaded
	b, _ := json.Marshal(res.StructuredContent)
	if err := json.Unmarshal(b, &l); err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	for _, tool := range l.Tools {
		count[tool.Server]++
	}
	for _, n := range names {
		if count[n] == 0 {
			t.Errorf("no tools of %s: %s", n, l.Problems)
		}
	}
	if l.State != "degraded" || len(l.Problems) != 1 || !strings.Contains(l.Problems[0], "there-is-no-such-server") {
		t.Errorf("state %s, problems %q", l.State, l.Problems)
	}
	if got := use(t, s, "everything__echo", map[string]any{"message": "hello"}); got != "Echo: hello" {
		t.Errorf("echo: %q", got)
	}
	file := filepath.Join(work, "note.txt")
	use(t, s, "filesystem__write_file", map[string]any{"path": file, "content": "kept"})
	if got, err := os.ReadFile(file); err != nil || string(got) != "kept" {
		t.Errorf("the file is %q, %v", got, err)
	}
	use(t, s, "memory__create_entities", map[string]any{"entities": []any{map[string]any{"name": "moon", "entityType": "body", "observations": []string{"round"}}}})
	if got := use(t, s, "memory__search_nodes", map[string]any{"query": "moon"}); !strings.Contains(got, "round") {
		t.Errorf("memory: %s", got)
	}
}

// A server that is killed in the middle of a call fails that call; the others,
// and the next call of it, work.
func TestServerDiesDuringCall(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("finds the process in /proc")
	}
	s, _ := loadout(t)
	use(t, s, "everything__echo", map[string]any{"message": "up"})
	pid := server(t, "server-everything")
	type answer struct {
		text string
		err  bool
	}
	done := make(chan answer, 1)
	params := &mcp.CallToolParams{Name: "call_tool", Arguments: map[string]any{"name": "everything__trigger-long-running-operation", "arguments": map[string]any{"duration": 60, "steps": 600}}}
	params.SetProgressToken("p1")
	go func() {
		res, err := s.CallTool(t.Context(), params)
		if err != nil {
			done <- answer{err.Error(), true}
			return
		}
		text, _ := json.Marshal(res.Content)
		done <- answer{string(text), res.IsError}
	}()
	use(t, s, "everything__echo", map[string]any{"message": "on its way"}) // behind the call, in order
	if err := pid.Kill(); err != nil {
		t.Fatal(err)
	}
	if a := <-done; !a.err {
		t.Errorf("a call of a killed server: %s", a.text)
	}
	use(t, s, "memory__read_graph", map[string]any{})
	if got := use(t, s, "everything__echo", map[string]any{"message": "again"}); got != "Echo: again" {
		t.Errorf("after it was killed: %q", got)
	}
}

// server is the process of a server that our command started.
func server(t *testing.T, name string) *os.Process {
	t.Helper()
	dirs, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, f := range dirs {
		b, _ := os.ReadFile(f)
		if !strings.Contains(string(b), filepath.Join(os.Getenv("LOADOUT_TEST_SERVERS"), "node_modules")) || !strings.Contains(string(b), name) {
			continue
		}
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(f)))
		p, err := os.FindProcess(pid)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	t.Fatalf("no process of %s", name)
	return nil
}

func TestDirectExposureOfRealServers(t *testing.T) {
	s, _ := loadout(t, "--expose", "direct")
	list, err := s.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	have := map[string]bool{}
	for _, tool := range list.Tools {
		server, _, _ := strings.Cut(tool.Name, "__")
		have[server] = true
	}
	for _, n := range append(names, "load_skill", "find_tools") {
		if !have[n] {
			t.Errorf("nothing of %s is listed", n)
		}
	}
	if text, _ := call(t, s, "everything__echo", map[string]any{"message": "direct"}); text != "Echo: direct" {
		t.Errorf("echo: %q", text)
	}
	if res, err := s.ListResources(t.Context(), nil); err != nil || len(res.Resources) < 2 {
		t.Errorf("resources: %v, %v", res, err)
	}
	if res, err := s.ListPrompts(t.Context(), nil); err != nil || len(res.Prompts) < 2 {
		t.Errorf("prompts: %v, %v", res, err)
	}
}
