package main

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout/internal/llm/llmtest"
	"github.com/loadout-dev/loadout/llm"
)

// diagramsServer has a tool without annotations, and one that declares itself
// destructive.
const diagramsServer = `import json, sys

for line in sys.stdin:
    m = json.loads(line)
    if "id" not in m:
        continue
    result = {
        "initialize": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "render", "version": "1"}},
        "ping": {},
        "tools/list": {"tools": [
            {"name": "diagram", "description": "Draw a diagram.", "inputSchema": {"type": "object"}},
            {"name": "wipe", "description": "Delete diagrams.", "inputSchema": {"type": "object"}, "annotations": {"destructiveHint": True}},
        ]},
    }.get(m["method"])
    if m["method"] == "tools/call":
        result = {"content": [{"type": "text", "text": "%s of %s" % (m["params"]["name"], m["params"]["arguments"]["code"])}]}
    print(json.dumps({"jsonrpc": "2.0", "id": m["id"], "result": result}), flush=True)
`

// newDiagrams returns a user with a skill that draws diagrams, like those of
// other systems.
func newDiagrams(t *testing.T) *someone {
	exe := needsSandbox(t)
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip(err)
	}
	return newSomeone(t, exe, "openai", map[string]string{
		".config/loadout/loadout.yaml": "skills: {bundled: false}\n",
		"skills/mermaid/SKILL.md":      skillText("mermaid", "Draws diagrams.", "mcpServers: {render: {command: python3, args: [server.py]}}\n", "Draw with the diagram tool."),
		"skills/mermaid/server.py":     diagramsServer,
	}, "--skills", "skills", "--approve", "ask")
}

// Twenty different diagrams need one decision: the approval of the skill. A tool
// that declares itself destructive still needs one for other arguments.
func TestTwentyDiagramsOverMCP(t *testing.T) {
	p := newDiagrams(t)
	var prompts atomic.Int32
	o := &mcp.ClientOptions{ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		prompts.Add(1)
		return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"decision": "always"}}, nil
	}}
	approve := exec.Command("loadout", "approve", "mermaid", "--skills", "skills") // the test's command has a terminal
	approve.Dir, approve.Env = p.home, p.command().Env
	if out, err := approve.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	s, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, o).Connect(t.Context(), &mcp.CommandTransport{Command: p.command("mcp", "--skills", "skills")}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	call := func(tool, code string) {
		t.Helper()
		res, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: "call_tool", Arguments: map[string]any{"name": "mermaid_render__" + tool, "arguments": map[string]any{"code": code}}})
		if err != nil {
			t.Fatal(err)
		}
		if got := res.Content[0].(*mcp.TextContent).Text; got != tool+" of "+code {
			t.Fatalf("%s: %s", tool, got)
		}
	}
	for i := range 20 {
		call("diagram", fmt.Sprintf("graph %d", i))
	}
	if n := prompts.Load(); n != 0 {
		t.Errorf("%d prompts for twenty diagrams of an approved skill", n)
	}
	for i, want := range []int32{1, 1, 2} { // prompts so far
		call("wipe", []string{"one", "one", "another"}[i])
		if n := prompts.Load(); n != want {
			t.Errorf("wipe %d: %d prompts, want %d", i, n, want)
		}
	}
}

func TestTwentyDiagramsInChat(t *testing.T) {
	p := newDiagrams(t)
	turns := []llmtest.Turn{speak("", calling("load", "load_skill", "name", "mermaid"))}
	for i := range 4 {
		var calls []llm.Call
		for j := range 5 {
			id := fmt.Sprintf("d%d", 5*i+j)
			calls = append(calls, through(id, "mermaid_render__diagram", "code", "graph "+id))
		}
		turns = append(turns, speak("", calls...))
	}
	s := p.says("Draw.", "yes\nno\n", append(turns, speak("Drawn."))...)
	if n := strings.Count(s.order(), " ask"); n != 1 || s.code != 0 {
		t.Errorf("exit code %d, %d prompts, want 1: %s\n%s", s.code, n, s.order(), s.stderr)
	}
	p.tells("d19", "diagram of graph d19")
	s = p.says("Wipe.", "no\n", speak("", through("w", "mermaid_render__wipe", "code", "all")), speak("Not wiped."))
	if !strings.Contains(s.order(), " ask") {
		t.Errorf("the destructive tool is called without a prompt: %s", s.order())
	}
}
