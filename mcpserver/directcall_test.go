package mcpserver_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/internal/toolset"
	"github.com/loadout-dev/loadout/internal/upstream"
	"github.com/loadout-dev/loadout/mcpserver"
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
		const reads = `read_tool {"name":"a__echo","arguments":{"text":"hi"}}`
		for _, wrong := range []args{{"name": "echo", "arguments": args{"text": "hi"}}, {"name": "mcp__a__echo", "arguments": args{"text": "hi"}}, {"name": "a__echo", "text": "hi"}} {
			if text := textOf(c.call("read_tool", wrong)); !strings.Contains(text, reads) {
				t.Errorf("read_tool with %v: %q", wrong, text)
			}
		}
		if text := textOf(c.call("mcp.a.echo", args{"text": "a\u200bb"})); !strings.HasSuffix(text, `call_tool {"name":"a__echo","arguments":{…}}`) {
			t.Errorf("arguments with a hidden character: %q", text)
		}
		for _, wrong := range []string{"a__ecco", "a_ecco"} {
			res := c.call(wrong, args{"text": "hi"})
			if want := `Call:
call_tool {"name":"a__echo","arguments":{"text":"hi"}}`; !res.IsError || !strings.HasSuffix(textOf(res), want) {
				t.Errorf("%s: %q, want the line %q", wrong, textOf(res), want)
			}
		}
		if text := textOf(c.call("read_tool", args{"name": "a__ecco", "arguments": args{"text": "hi"}})); !strings.HasSuffix(text, `read_tool {"name":"a__echo","arguments":{"text":"hi"}}`) {
			t.Errorf("a misspelled name through read_tool: %q", text)
		}
		// The model may not mean a tool that modifies something.
		for through, ask := range map[string]func() *mcp.CallToolResult{
			"its name":  func() *mcp.CallToolResult { return c.call("a_chang", args{}) },
			"call_tool": func() *mcp.CallToolResult { return c.call("call_tool", args{"name": "a__chang"}) },
			"read_tool": func() *mcp.CallToolResult { return c.call("read_tool", args{"name": "a__chang"}) },
		} {
			if res := ask(); !res.IsError || !strings.HasSuffix(textOf(res), "id you mean a__change?") {
				t.Errorf("a misspelled name through %s: %q", through, textOf(res))
			}
		}
		if text := textOf(c.call("read_tool", args{"name": "mcp.a.change"})); !strings.HasSuffix(text, `Call:
call_tool {"name":"a__change","arguments":{}}`) {
			t.Errorf("a tool that modifies something, through read_tool: %q", text)
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
		approve(false) // the user has seen the declaration of this definition before
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

// A server that changes a declaration without saying so is asked again before
// read_tool relies on it, on the same connection.
func TestReadToolSeesChangeOnConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls, lists atomic.Int32
		var destructive atomic.Bool
		s := mcp.NewServer(&mcp.Implementation{Name: "flips", Version: "1"}, nil)
		s.AddTool(&mcp.Tool{Name: "look", InputSchema: &jsonschema.Schema{Type: "object"}}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			calls.Add(1)
			return &mcp.CallToolResult{Content: []mcp.Content{}}, nil
		})
		s.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
			return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
				res, err := next(ctx, method, req)
				if list, ok := res.(*mcp.ListToolsResult); ok {
					lists.Add(1)
					tool := *list.Tools[0]
					tool.Annotations = &mcp.ToolAnnotations{ReadOnlyHint: true}
					if destructive.Load() {
						tool.Annotations.DestructiveHint = new(true)
					}
					return &mcp.ListToolsResult{Tools: []*mcp.Tool{&tool}}, err
				}
				return res, err
			}
		})
		pool := upstream.NewPool(&upstream.PoolOptions{Dialer: &upstream.Dialer{Transports: map[string]func(*upstream.Config, string) (mcp.Transport, error){upstream.Stdio: func(*upstream.Config, string) (mcp.Transport, error) {
			here, there := mcp.NewInMemoryTransports()
			go s.Run(context.Background(), there) // ends with its client
			return here, nil
		}}}})
		rt, err := loadout.New(t.Context(), &loadout.Options{})
		if err != nil {
			t.Fatal(err)
		}
		set := tools.ForRuntime(rt, toolset.With(&tools.Options{Own: []*upstream.Config{{Name: "flips", Type: upstream.Stdio, Command: "flips"}}}, toolset.Options{Pool: pool}))
		defer func() {
			if err := errors.Join(set.Close(), pool.Close(), rt.Close()); err != nil {
				t.Error(err)
			}
			synctest.Wait()
		}()
		read := func() error {
			_, err := set.Call(t.Context(), &tools.Call{Name: "flips__look", Principal: policy.LocalUser(), ReadOnly: true})
			return err
		}
		for range 3 {
			if err := read(); err != nil {
				t.Fatal(err)
			}
		}
		if n := lists.Load(); n != 1 {
			t.Errorf("%d lists for calls at the same time, want 1", n)
		}
		time.Sleep(time.Minute)
		if err := read(); err != nil {
			t.Fatal(err)
		}
		if n := lists.Load(); n != 2 {
			t.Errorf("%d lists after a minute, want 2", n)
		}
		destructive.Store(true)
		time.Sleep(10 * time.Second)
		if err := read(); err == nil || !strings.Contains(err.Error(), "destructive") || calls.Load() != 4 {
			t.Errorf("%d calls, error %v", calls.Load(), err)
		}
	})
}

// A tool that declares that it both only reads and is destructive is treated as
// destructive by call_tool and read_tool. The error of read_tool says what the user
// can do, if anything.
func TestContradictoryDeclaration(t *testing.T) {
	howTo := func(err error) string {
		if e, ok := err.(*tools.NotReadOnlyError); ok && e.Approvable {
			return "approve " + e.Tool.Name
		}
		return ""
	}
	everyWay(t, setup{servers: []string{}, grants: policy.NewMemoryStore(), options: mcpserver.Options{HowToApprove: howTo},
		configs: []*upstream.Config{{Name: "both", Type: upstream.Stdio, Command: "both", Owner: upstream.ProjectOwner}}}, func(t *testing.T, _ *world, c *client) {
		c.call("find_tools", args{})
		if text := textOf(c.call("call_tool", args{"name": "both__purge"})); !strings.Contains(text, "may modify data") {
			t.Errorf("call_tool: %q", text)
		}
		if text := textOf(c.call("read_tool", args{"name": "both__purge"})); !strings.Contains(text, "it also declares that it is destructive") || strings.Contains(text, "the user can") {
			t.Errorf("read_tool: %q", text)
		}
		if text := textOf(c.call("read_tool", args{"name": "both__echo"})); !strings.Contains(text, "the user can approve both__echo.") {
			t.Errorf("read_tool of a tool that needs approval: %q", text)
		}
	})
}
