package mcpserver_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout/internal/toolset"
	"github.com/loadout-dev/loadout/internal/upstream"
	"github.com/loadout-dev/loadout/mcpserver"
	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/tools"
)

const listChanged = "notifications/tools/list_changed"

// older and newer are the ways of the two eras.
var older, newer = []way{ways[0], ways[2]}, []way{ways[1], ways[3]}

func mayGrow(s setup) setup {
	s.options.Grow = true
	return s
}

var bringing = setup{servers: []string{}, tree: files{"x/SKILL.md": front("x", "mcpServers: {own: {command: own}}")}}

var broughtByX = []string{"x_own__change", "x_own__echo", "x_own__fail"}

// listed returns the list of tools as sent on the wire.
func (c *wire) listed() (names []string, all []map[string]any) {
	c.t.Helper()
	var list struct{ Tools []map[string]any }
	if err := json.Unmarshal(c.ok("tools/list", map[string]any{}), &list); err != nil {
		c.t.Fatal(err)
	}
	for _, tool := range list.Tools {
		names = append(names, tool["name"].(string))
	}
	return names, list.Tools
}

// called is the text of the result of a tool.
func (c *wire) called(tool string, a args) string {
	c.t.Helper()
	var res mcp.CallToolResult
	if err := json.Unmarshal(c.ok("tools/call", args{"name": tool, "arguments": a}), &res); err != nil {
		c.t.Fatal(err)
	}
	return textOf(&res)
}

// announced returns how often the client was notified of a changed list.
func (c *wire) announced() int {
	n := 0
	for _, m := range c.notes {
		if m.Method == listChanged {
			n++
		}
	}
	return n
}

func TestGrowListsToolsOfLoadedSkills(t *testing.T) {
	for _, how := range older {
		t.Run(how.String(), func(t *testing.T) {
			s := mayGrow(bringing)
			s.rules = []string{"allow x_own__fail"} // this client cannot prompt
			w := newWorld(t, s)
			c, other := w.begin(t, how), w.begin(t, how)
			before, _ := c.listed()
			c.called("load_skill", args{"name": "x"})
			if n := c.announced(); n != 1 {
				t.Errorf("with the answer of the load the client got %d times of another list, want once", n)
			}
			after, all := c.listed()
			if diff := cmp.Diff(slices.Concat(before, broughtByX), after); diff != "" {
				t.Errorf("the list (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(definitions(t, "own"), all[len(before):]); diff != "" {
				t.Errorf("the definitions (-of the server +ours):\n%s", diff)
			}
			if got := c.called("x_own__echo", args{"text": "hello"}); got != "own: hello" {
				t.Errorf("called: %q", got)
			}
			if got := c.called("x_own__echo", args{"txt": 1}); !strings.Contains(got, "text is missing") {
				t.Errorf("called with wrong arguments: %q", got)
			}
			if e := c.request("tools/call", args{"name": "x_own__fail"}).Error; e == nil || e.Code != -32042 || !strings.Contains(string(e.Data), "7") {
				t.Errorf("an error of the protocol: %+v", e)
			}
			c.called("load_skill", args{"name": "x"})
			if again, _ := c.listed(); c.announced() != 1 || !slices.Equal(again, after) {
				t.Errorf("after a second load, notified %d times: %v", c.announced(), again)
			}

			if got, _ := other.listed(); other.announced() != 0 || !slices.Equal(got, before) {
				t.Errorf("another connection, notified %d times: %v", other.announced(), got)
			}
			if got := other.called("x_own__echo", args{"text": "x"}); got != "own: x" {
				t.Errorf("a call by name on another connection: %q", got)
			}
		})
	}
}

// definitions are the tools of a server as it lists them, by our names.
func definitions(t *testing.T, server string) []map[string]any {
	t.Helper()
	here, there := mcp.NewInMemoryTransports()
	go upstreamServer(server).Run(context.Background(), there) // ends with its client
	cs, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(limited(t), here, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer cs.Close()
	list, err := cs.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	js, err := json.Marshal(list.Tools)
	if err != nil {
		t.Fatal(err)
	}
	var out []map[string]any
	if err := json.Unmarshal(js, &out); err != nil {
		t.Fatal(err)
	}
	for _, tool := range out {
		tool["name"] = "x_own__" + tool["name"].(string)
	}
	return out
}

func TestListsThatDoNotGrow(t *testing.T) {
	for _, tt := range []struct {
		how  way
		grow bool
	}{{newer[0], true}, {newer[1], true}, {older[0], false}, {older[1], false}} {
		t.Run(fmt.Sprint(tt.how, " grow ", tt.grow), func(t *testing.T) {
			s := bringing
			s.options.Grow = tt.grow
			c := newWorld(t, s).begin(t, tt.how)
			before, _ := c.listed()
			c.called("load_skill", args{"name": "x"})
			if after, _ := c.listed(); c.announced() != 0 || !slices.Equal(after, before) {
				t.Errorf("got %d times: %v", c.announced(), after)
			}
			if got := c.called("x_own__echo", args{"text": "x"}); got != "own: x" {
				t.Errorf("a call by name: %q", got)
			}
		})
	}
}

func TestGrownToolsNeedApproval(t *testing.T) {
	for _, how := range older {
		t.Run(how.String(), func(t *testing.T) {
			s := mayGrow(bringing)
			s.rules, s.grants = []string{"ask x_own__change", "deny x_own__fail"}, policy.NewMemoryStore()
			answer, asked := "once", 0
			c := newWorld(t, s).connect(t, how, &mcp.ClientOptions{ElicitationHandler: func(_ context.Context, req *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
				if asked++; !strings.Contains(req.Params.Message, "Run x_own__change of the skill x?") {
					t.Errorf("asked %q", req.Params.Message)
				}
				return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"decision": answer}}, nil
			}})
			c.call("load_skill", args{"name": "x"})
			list, err := c.ListTools(c.ctx, nil)
			if err != nil {
				t.Fatal(err)
			}
			if slices.ContainsFunc(list.Tools, func(tool *mcp.Tool) bool { return tool.Name == "x_own__fail" }) {
				t.Error("a tool that a rule denies is listed")
			}
			for _, step := range []struct {
				answer, tool, want string
				asked              int
			}{
				{"once", "x_own__change", "changed", 1},
				{"no", "x_own__change", "declined", 2},
				{"always", "x_own__change", "changed", 3},
				{"no", "x_own__change", "changed", 3},
				{"no", "call_tool", "changed", 3},
			} {
				answer = step.answer
				in := args{}
				if step.tool == "call_tool" {
					in = args{"name": "x_own__change"}
				}
				if got := textOf(c.call(step.tool, in)); !strings.Contains(got, step.want) || asked != step.asked {
					t.Errorf("%s, answered %s: %q, asked %d times, want %d", step.tool, step.answer, got, asked, step.asked)
				}
			}
		})
	}
}

func TestGrownListOnlyGrows(t *testing.T) {
	w := newWorld(t, bringing)
	pool := upstream.NewPool(&upstream.PoolOptions{Dialer: &upstream.Dialer{Transports: map[string]func(*upstream.Config, string) (mcp.Transport, error){
		upstream.Stdio: func(c *upstream.Config, _ string) (mcp.Transport, error) {
			here, there := mcp.NewInMemoryTransports()
			go upstreamServer(c.Name).Run(context.Background(), there) // ends with its client
			return here, nil
		}}}})
	set := tools.ForRuntime(w.rt, toolset.With(&tools.Options{}, toolset.Options{Pool: pool}))
	grown := &world{dir: w.dir, rt: w.rt, server: mcpserver.New(w.rt, &mcpserver.Options{Grow: true, Tools: set})}
	t.Cleanup(func() {
		if err := errors.Join(grown.server.Close(), set.Close(), pool.Close()); err != nil {
			t.Error(err)
		}
	})
	c := grown.begin(t, older[0])
	before, _ := c.listed()
	c.called("load_skill", args{"name": "x"})
	grown.change(t, files{"x/SKILL.md": front("x", "mcpServers: {new: {command: new}}")})
	c.called("load_skill", args{"name": "x"})
	want := slices.Concat(before, broughtByX, []string{"x_new__change", "x_new__echo", "x_new__fail"})
	if got, _ := c.listed(); !slices.Equal(got, want) {
		t.Errorf("listed %v\nwant %v", got, want)
	}
	if got := c.called("x_new__echo", args{"text": "hi"}); got != "x_new: hi" {
		t.Errorf("the new tool: %q", got)
	}
	if got := c.called("x_own__echo", args{"text": "hi"}); !strings.Contains(got, `tool "x_own__echo" not found`) {
		t.Errorf("the tool that is gone: %q", got)
	}
}

func TestGrowthIsLimitedAndForgotten(t *testing.T) {
	s := mayGrow(bringing)
	s.tree = files{"x/SKILL.md": front("x", "mcpServers: {many: {command: many}}")}
	w := newWorld(t, s)
	c := w.begin(t, older[0])
	before, _ := c.listed()
	c.called("load_skill", args{"name": "x"})
	if got, _ := c.listed(); len(got) != len(before)+256 {
		t.Errorf("%d tools are listed beside the %d of ours, want 256", len(got)-len(before), len(before))
	}
	if got := c.called("call_tool", args{"name": "x_many__tool299", "arguments": args{"text": "x"}}); strings.Contains(got, "no tool") {
		t.Errorf("a tool that is not listed: %q", got)
	}
	first := w.begin(t, older[1])
	first.called("load_skill", args{"name": "x"})
	if n := w.server.Grown(); n != 2 {
		t.Fatalf("%d lists have grown, want 2", n)
	}
	for ss := range w.server.SDK().Sessions() {
		ss.Close()
	}
	w.begin(t, older[1])
	if n := w.server.Grown(); n != 0 {
		t.Errorf("%d lists of connections that have ended are stored", n)
	}
}
