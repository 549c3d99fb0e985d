package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// probeServer is an MCP server whose one tool reports what it can access.
const probeServer = `import json, os, socket, sys

def tries(what):
    try:
        return str(what())
    except OSError as e:
        return "no"

def probe(home):
    return {
        "cwd": os.getcwd(), "args": " ".join(sys.argv[1:]), "own": os.environ.get("OWN", ""), "token": os.environ.get("TEST_TOKEN", ""),
        "home": tries(lambda: open(home).read()), "note": tries(lambda: open("note.txt").read()),
        "write": tries(lambda: open("new.txt", "w")), "network": tries(lambda: socket.create_connection(("127.0.0.1", 1), 1)),
    }

for line in sys.stdin:
    m = json.loads(line)
    if "id" not in m:
        continue
    result = {"initialize": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "probe", "version": "1"}},
        "ping": {}, "tools/list": {"tools": [{"name": "probe", "annotations": {"readOnlyHint": True}, "inputSchema": {"type": "object"}}]}}.get(m["method"])
    if m["method"] == "tools/call":
        result = {"content": [{"type": "text", "text": json.dumps(probe(m["params"]["arguments"]["home"]))}]}
    out = {"jsonrpc": "2.0", "id": m["id"], "result": result}
    if result is None:
        del out["result"]
        out["error"] = {"code": -32601, "message": "unknown"}
    print(json.dumps(out), flush=True)
`

// checkout is a cloned repository, and the home of who cloned it.
type checkout struct{ repo, home string }

func newCheckout(t *testing.T) *checkout {
	t.Helper()
	if err := hasSandbox(); err != nil {
		t.Skipf("no sandbox here: %v", err)
	}
	c := &checkout{repo: t.TempDir(), home: t.TempDir()}
	server := `{command: python3, args: ["${workspaceFolder}/server.py", "--in=${workspaceFolder}"], env: {OWN: "${workspaceFolder}/x"}}`
	for name, text := range map[string]string{
		".git/HEAD":              "",
		"loadout.yaml":           "servers:\n  files: [.loadout/servers.yaml]\n",
		".loadout/servers.yaml":  "mcpServers:\n  own: " + server + "\n",
		".loadout/ghosts/g.yaml": "apiVersion: loadout/v1\nkind: Ghost\nmetadata: {name: g}\nspec:\n  mcpServers:\n    ghost: " + server + "\n",
		"server.py":              probeServer,
		"note.txt":               "a note",
	} {
		c.write(t, name, text)
	}
	for _, dir := range []string{c.repo, c.home} { // as the user of a sandbox of root reads them
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(c.home, "private"), []byte("private"), 0o644); err != nil {
		t.Fatal(err)
	}
	return c
}

func (c *checkout) write(t *testing.T, name, text string) {
	t.Helper()
	p := filepath.Join(c.repo, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func (c *checkout) command(args ...string) *exec.Cmd {
	cmd := exec.Command("loadout", args...)
	cmd.Dir = c.repo
	cmd.Env = append(os.Environ(), "TEST_TOKEN=s3cret", "HOME="+c.home, "XDG_CONFIG_HOME=", "XDG_CACHE_HOME=", "XDG_STATE_HOME=", "LOADOUT_CACHE=", "LOADOUT_STATE=", "LOADOUT_CONFIG=")
	return cmd
}

func (c *checkout) run(t *testing.T, args ...string) string {
	t.Helper()
	out, err := c.command(args...).CombinedOutput()
	if err != nil {
		t.Fatalf("loadout %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// connect starts loadout mcp in the repository, as a client does.
func (c *checkout) connect(t *testing.T, args ...string) *mcp.ClientSession {
	t.Helper()
	s, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), &mcp.CommandTransport{Command: c.command(append([]string{"mcp"}, args...)...)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// probe calls the tool of a server, and returns its text.
func (c *checkout) probe(t *testing.T, s *mcp.ClientSession, server string) (string, bool) {
	t.Helper()
	res, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: "call_tool", Arguments: map[string]any{
		"name": server + "__probe", "arguments": map[string]any{"home": filepath.Join(c.home, "private")}}})
	if err != nil {
		t.Fatal(err)
	}
	return res.Content[0].(*mcp.TextContent).Text, !res.IsError
}

// The server of a cloned repository starts once the user trusts its configuration, in
// the sandbox, and runs while the configuration is unchanged.
func TestProjectServer(t *testing.T) {
	for server, args := range map[string][]string{"own": nil, "ghost": {"--profile", "g"}} {
		t.Run(server, func(t *testing.T) {
			c := newCheckout(t)
			if args == nil {
				if text, ok := c.probe(t, c.connect(t), server); ok || !strings.Contains(text, "not found") {
					t.Errorf("before it is trusted: %s", text)
				}
			}
			if out := c.run(t, "trust", ".", "--yes"); !strings.Contains(out, "server "+server+": started in the sandbox with read access to the project and no network: python3 ") {
				t.Errorf("trusted is:\n%s", out)
			}
			s := c.connect(t, args...)
			text, ok := c.probe(t, s, server)
			var got map[string]string
			if err := json.Unmarshal([]byte(text), &got); err != nil || !ok {
				t.Fatalf("called: %s", text)
			}
			want := map[string]string{"cwd": "/workspace", "args": "--in=/workspace", "own": "/workspace/x", "token": "", "home": "no", "note": "a note", "write": "no", "network": "no"}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("where it runs (-want +got):\n%s", diff)
			}

			c.run(t, "trust", "--remove", ".")
			for range 4 {
				if text, ok := c.probe(t, s, server); ok || !strings.Contains(text, "is no longer trusted") {
					t.Errorf("without trust: %s", text)
				}
			}
			c.run(t, "trust", ".", "--yes")
			if text, ok := c.probe(t, s, server); !ok {
				t.Errorf("trusted again as it was read: %s", text)
			}

			c.write(t, ".loadout/more.yaml", "mcpServers: {}\n")
			for range 2 { // a running server gets no calls, and a stopped one is not restarted
				if text, ok := c.probe(t, s, server); ok || !strings.Contains(text, "loadout trust "+c.repo) {
					t.Errorf("after a change: %s", text)
				}
			}
			c.run(t, "trust", ".", "--yes")
			if text, ok := c.probe(t, s, server); ok || !strings.Contains(text, "restart Loadout") {
				t.Errorf("trusted again: %s", text)
			}
			if text, ok := c.probe(t, c.connect(t, args...), server); !ok {
				t.Errorf("started again: %s", text)
			}
		})
	}
}
