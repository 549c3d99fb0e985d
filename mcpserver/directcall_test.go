package mcpserver_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout/internal/upstream"
	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/tools"
)

// A tool that find_tools lists can be called by its name. For other spellings, the
// error has the call that works.
func TestToolIsCalledByItsName(t *testing.T) {
	everyWay(t, setup{servers: []string{"a", "b"}}, func(t *testing.T, _ *world, c *client) {
		c.call("find_tools", args{})
		if text := textOf(c.call("a__echo", args{"text": "hi"})); text != "a: hi" {
			t.Errorf("by its name: %q", text)
		}
		const call = `call_tool {"name":"a__echo","arguments":{"text":"hi \"you\""}}`
		for name, want := range map[string][]string{
			"echo":                  {call, strings.Replace(call, "a__", "b__", 1)},
			"mcp__loadout__a__echo": {call},
			"mcp.a.echo":            {call},
		} {
			res := c.call(name, args{"text": `hi "you"`})
			lines := strings.Split(textOf(res), "\n")[1:]
			if !res.IsError || !slices.Equal(lines, want) {
				t.Errorf("%s: %q, want the lines %q", name, textOf(res), want)
			}
		}
		if text := textOf(c.call("call_tool", args{"name": "mcp.a.echo", "arguments": args{"text": `hi "you"`}})); !strings.HasSuffix(text, call) {
			t.Errorf("through call_tool: %q", text)
		}
		if text := textOf(c.call("call_tool", args{"name": "a__echo", "text": `hi "you"`})); !strings.HasSuffix(text, call) {
			t.Errorf("arguments in the wrong place: %q", text)
		}
		if res := c.call("a__ecco", args{}); !res.IsError || !strings.Contains(textOf(res), "did you mean a__echo") {
			t.Errorf("a wrong name: %q", textOf(res))
		}
		if _, err := c.CallTool(c.ctx, &mcp.CallToolParams{Name: "nothing"}); code(err) != jsonrpc.CodeInvalidParams {
			t.Errorf("an unknown tool: %v", err)
		}
	})
}

// A call by name is subject to the same rules and questions as call_tool.
func TestCallByNameFollowsRules(t *testing.T) {
	asked := 0
	w := newWorld(t, setup{servers: []string{"a"}, rules: []string{"deny a__fail", "ask a__change"}, grants: policy.NewMemoryStore()})
	c := w.connect(t, ways[0], &mcp.ClientOptions{ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		asked++
		return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"decision": "no"}}, nil
	}})
	c.call("find_tools", args{})
	if text := textOf(c.call("a__change", args{})); asked != 1 || !strings.Contains(text, "declined") {
		t.Errorf("asked %d times: %q", asked, text)
	}
	if text := textOf(c.call("a__fail", args{})); !strings.Contains(text, "not allowed") {
		t.Errorf("denied by a rule: %q", text)
	}
}

// read_tool calls what the user's own servers declare to read. The declaration of
// any other server counts only after the user has seen and approved it.
func TestReadTool(t *testing.T) {
	const line = `call_tool {"name":"%","arguments":{"text":"hi"}}`
	grants := policy.NewMemoryStore()
	everyWay(t, setup{servers: []string{"a"}, grants: grants, tree: files{"x/SKILL.md": front("x", "mcpServers: {liar: {command: liar}}")},
		configs: []*upstream.Config{{Name: "theirs", Type: upstream.Stdio, Command: "theirs", Owner: upstream.ProjectOwner}}}, func(t *testing.T, w *world, c *client) {
		c.call("load_skill", args{"name": "x"})
		c.call("find_tools", args{})
		read := func(tool string) string {
			return textOf(c.call("read_tool", args{"name": tool, "arguments": args{"text": "hi"}}))
		}
		if text := read("a__echo"); text != "a: hi" {
			t.Errorf("a reading tool: %q", text)
		}
		for tool, why := range map[string]string{"a__change": "does not declare", "x_liar__echo": "the skill x", "theirs__echo": "this project"} {
			if text := read(tool); !strings.HasSuffix(text, strings.Replace(line, "%", tool, 1)) || !strings.Contains(text, why) {
				t.Errorf("%s: %q", tool, text)
			}
		}
		marked := func() (out []string) {
			for _, l := range strings.Split(textOf(c.call("find_tools", args{"query": "say again", "schemas": false})), "\n") {
				if name, ok := strings.CutSuffix(l, ": Say it again. [read_tool]"); ok {
					out = append(out, strings.TrimPrefix(name, "- "))
				}
			}
			slices.Sort(out)
			return out
		}
		if got := marked(); !slices.Equal(got, []string{"a__echo"}) {
			t.Errorf("find_tools marks %q", got)
		}
		approve := func(shown bool) {
			t.Helper()
			call := &tools.Call{Name: "x_liar__echo", Principal: policy.LocalUser(), Presence: "test", ReadOnlyShown: shown}
			if err := w.set.Grant(t.Context(), call, policy.Always, false, policy.LocalUser()); err != nil {
				t.Fatal(err)
			}
		}
		approve(false)
		if text := read("x_liar__echo"); !strings.Contains(text, "did not approve") {
			t.Errorf("approved without the declaration: %q", text)
		}
		approve(true)
		if text := read("x_liar__echo"); text != "liar: hi" {
			t.Errorf("approved with it: %q", text)
		}
		if got := marked(); !slices.Equal(got, []string{"a__echo", "x_liar__echo"}) {
			t.Errorf("then find_tools marks %q", got)
		}
		all, _, err := grants.List(t.Context())
		if err != nil || len(all) != 1 {
			t.Fatalf("%d grants: %v", len(all), err)
		}
		if _, err := grants.Revoke(t.Context(), all[0].ID); err != nil {
			t.Fatal(err)
		}
		if text := read("x_liar__echo"); !strings.Contains(text, "did not approve") {
			t.Errorf("after the approval was revoked: %q", text)
		}
	})
}

// oldListing is a cache with the same list of tools for each server.
type oldListing struct{ *upstream.Listing }

func (c oldListing) Load(string) (*upstream.Listing, error) { return c.Listing, nil }
func (c oldListing) Store(string, *upstream.Listing) error  { return nil }

// What an earlier process listed does not make a tool read-only: the server is
// asked for its current definition.
func TestReadToolUsesCurrentDefinition(t *testing.T) {
	old := &upstream.Listing{At: time.Now(), Tools: []*mcp.Tool{{Name: "change", InputSchema: &jsonschema.Schema{Type: "object"}, Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}}}}
	everyWay(t, setup{servers: []string{"a"}, cache: oldListing{old}}, func(t *testing.T, _ *world, c *client) {
		if text := textOf(c.call("read_tool", args{"name": "a__change"})); !strings.HasSuffix(text, `call_tool {"name":"a__change","arguments":{}}`) {
			t.Errorf("got %q", text)
		}
	})
}
