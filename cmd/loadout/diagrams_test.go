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
	"github.com/loadout-dev/loadout/policy"
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

// A client that can ask shows the same question as the chat when the skill is
// loaded. Its answer covers the scripts, the servers and the tools.
func TestSkillIsApprovedOverMCP(t *testing.T) {
	for _, decision := range []string{"session", "no", ""} { // "" gives no answer
		t.Run(decision, func(t *testing.T) {
			p := newDiagrams(t)
			p.write("skills/mermaid/list.py", "print('two kinds')\n")
			var prompts []string
			o := &mcp.ClientOptions{ElicitationHandler: func(_ context.Context, req *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
				prompts = append(prompts, req.Params.Message)
				if decision == "" {
					return &mcp.ElicitResult{Action: "cancel"}, nil
				}
				return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"decision": decision}}, nil
			}}
			s, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, o).Connect(t.Context(), &mcp.CommandTransport{Command: p.command("mcp", "--skills", "skills")}, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			call := func(tool string, args map[string]any) string {
				t.Helper()
				res, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: args})
				if err != nil {
					t.Fatal(err)
				}
				return res.Content[0].(*mcp.TextContent).Text
			}
			if got := call("load_skill", map[string]any{"name": "mermaid"}); !strings.Contains(got, "Draw with the diagram tool.") || strings.Contains(got, "mermaid_render__diagram") != (decision == "session") {
				t.Errorf("loaded %s", got)
			}
			if decision != "" {
				ran := call("run_skill_script", map[string]any{"skill": "mermaid", "script": "list.py"})
				if got := strings.Contains(ran, "two kinds"); got != (decision == "session") {
					t.Errorf("ran %v: %s", got, ran)
				}
			}
			for i := range 20 {
				got := call("call_tool", map[string]any{"name": "mermaid_render__diagram", "arguments": map[string]any{"code": fmt.Sprint(i)}})
				if want := "diagram of " + fmt.Sprint(i); (got == want) != (decision == "session") {
					t.Fatalf("diagram %d: %s", i, got)
				}
				if at := strings.Index(got, "`loadout approve mermaid"); decision != "session" && (at < 0 || at >= 60) {
					t.Errorf("the refusal names its command at %d: %s", at, got)
				}
			}
			if len(prompts) != 1 {
				t.Fatalf("%d prompts: %q", len(prompts), prompts)
			}
			grants, _, err := policy.NewFileStore(p.path(".local/state/loadout/grants")).List(t.Context())
			if err != nil || (len(grants) == 1) != (decision == "session") {
				t.Fatalf("grants %+v, %v", grants, err)
			}
			for _, g := range grants {
				if g.Presence != "answered in an MCP client: test 1" || g.Expires.IsZero() {
					t.Errorf("stored %+v", g)
				}
			}
			inChat := p.says("Draw.", "no\n", speak("", calling("load", "load_skill", "name", "mermaid")), speak("Drawn."))
			for line := range strings.Lines(prompts[0]) {
				if decision != "session" && !strings.Contains(inChat.stderr, strings.TrimSpace(line)) {
					t.Errorf("the chat does not ask with %q:\n%s", line, inChat.stderr)
				}
			}
		})
	}
}

// An agent that runs the chat is not asked, so it cannot approve the skill.
func TestAgentIsNotAskedInChat(t *testing.T) {
	p := newDiagrams(t)
	exe, err := exec.LookPath("loadout-detecting")
	if err != nil {
		t.Fatal(err)
	}
	p.exe = exe
	cmd := p.turn("Draw.", speak("", calling("load", "load_skill", "name", "mermaid")), speak("", through("d", "mermaid_render__diagram", "code", "graph")), speak("Not drawn."))
	cmd.Env = append(cmd.Env, "CLAUDECODE=1")
	cmd.Stdin = strings.NewReader("always\nalways\n")
	out, err := cmd.CombinedOutput()
	if strings.Contains(string(out), "diagram of graph") || !strings.Contains(string(out), "calls that need approval are denied: Claude Code runs this command (environment variable CLAUDECODE)") {
		t.Errorf("%v\n%s", err, out)
	}
	if grants, _, err := policy.NewFileStore(p.path(".local/state/loadout/grants")).List(t.Context()); err != nil || len(grants) > 0 {
		t.Errorf("stored %+v, %v", grants, err)
	}
}
