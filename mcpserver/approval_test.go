package mcpserver_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout/mcpserver"
	"github.com/loadout-dev/loadout/policy"
)

// person answers prompts and records them.
type person struct {
	mu       sync.Mutex
	decision string
	asked    int
	choices  []any
	says     string // about the choices
}

func (p *person) options(t *testing.T) *mcp.ClientOptions {
	return &mcp.ClientOptions{ElicitationHandler: func(_ context.Context, req *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.asked++
		var schema struct {
			Properties struct {
				Decision struct {
					Enum        []any
					Description string
				}
			}
		}
		js, err := json.Marshal(req.Params.RequestedSchema)
		if err == nil {
			err = json.Unmarshal(js, &schema)
		}
		if err != nil {
			t.Errorf("asked with the schema %s: %v", js, err)
		}
		p.choices, p.says = schema.Properties.Decision.Enum, schema.Properties.Decision.Description
		return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"decision": p.decision}}, nil
	}}
}

// times runs a call and returns the number of prompts.
func (p *person) times(t *testing.T, c *client, decision, want string) int {
	t.Helper()
	p.mu.Lock()
	p.decision, p.asked = decision, 0
	p.mu.Unlock()
	if got := textOf(c.call("call_tool", args{"name": "a__change"})); !strings.Contains(got, want) {
		t.Errorf("answered %s: %q", decision, got)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.asked
}

// A permanent approval applies to servers that start later, for the unchanged tool,
// until the user revokes it.
func TestL13AlwaysSurvivesServer(t *testing.T) {
	for _, how := range ways {
		t.Run(how.String(), func(t *testing.T) {
			store, p := policy.NewMemoryStore(), &person{}
			s := setup{servers: []string{"a"}, rules: []string{"ask a__change"}, grants: store,
				options: mcpserver.Options{HowToRevoke: func(tool string) string { return "you forget " + tool }}}
			c := newWorld(t, s).connect(t, how, p.options(t))
			if n := p.times(t, c, "always", "changed"); n != 1 {
				t.Errorf("asked %d times", n)
			}
			if !slices.Contains(p.choices, any("always")) || !strings.Contains(p.says, "also after a restart, until you forget a__change") {
				t.Errorf("asked with %v: %s", p.choices, p.says)
			}
			later := newWorld(t, s).connect(t, how, p.options(t))
			if n := p.times(t, later, "no", "changed"); n != 0 {
				t.Errorf("asked %d times after always", n)
			}
			if _, err := store.Revoke(t.Context(), "a__change"); err != nil {
				t.Fatal(err)
			}
			if n := p.times(t, later, "no", "declined"); n != 1 {
				t.Errorf("asked %d times after it was withdrawn", n)
			}
		})
	}
}

func TestL13SessionGrantEndsWithConnection(t *testing.T) {
	for _, how := range ways {
		t.Run(how.String(), func(t *testing.T) {
			p := &person{}
			s := setup{servers: []string{"a"}, rules: []string{"ask a__change"}, grants: policy.NewMemoryStore()}
			w := newWorld(t, s)
			c := w.connect(t, how, p.options(t))
			answer, lasts := "session", how != way{"http", modern}
			if !lasts {
				answer = "once"
			}
			if n := p.times(t, c, answer, "changed"); n != 1 {
				t.Errorf("asked %d times", n)
			}
			if slices.Contains(p.choices, any("session")) != lasts {
				t.Errorf("asked with %v", p.choices)
			}
			if n := p.times(t, c, "once", "changed"); (n == 0) != lasts {
				t.Errorf("asked %d times in the session", n)
			}
			if n := p.times(t, w.connect(t, how, p.options(t)), "no", "declined"); n != 1 {
				t.Errorf("asked %d times in another session", n)
			}
		})
	}
}

// A server that is for one conversation has its session, whatever the connection.
func TestHostSession(t *testing.T) {
	p := &person{}
	s := setup{servers: []string{"a"}, rules: []string{"ask a__change"}, grants: policy.NewMemoryStore()}
	s.options.Session = "talk"
	p.times(t, newWorld(t, s).connect(t, ways[0], p.options(t)), "session", "changed")
	if n := p.times(t, newWorld(t, s).connect(t, ways[0], p.options(t)), "no", "changed"); n != 0 {
		t.Errorf("asked %d times when the conversation goes on", n)
	}
	s.options.Session = "another"
	if n := p.times(t, newWorld(t, s).connect(t, ways[0], p.options(t)), "no", "declined"); n != 1 {
		t.Errorf("asked %d times in another", n)
	}
}

// Where nothing is kept, nothing but this call is offered.
func TestOnlyStorableScopesAreOffered(t *testing.T) {
	p := &person{}
	c := newWorld(t, setup{servers: []string{"a"}, rules: []string{"ask a__change"}}).connect(t, ways[0], p.options(t))
	for range 2 {
		if n := p.times(t, c, "once", "changed"); n != 1 || !slices.Equal(p.choices, []any{"once", "no"}) {
			t.Errorf("asked %d times with %v", n, p.choices)
		}
	}
}

// The hint that a model plans by is of the decision that a call meets.
func TestL12HintsReachThePlanner(t *testing.T) {
	p := &person{}
	c := newWorld(t, setup{servers: []string{"a"}, rules: []string{"ask a__change"}, grants: policy.NewMemoryStore(), tree: files{"x/SKILL.md": front("x", "mcpServers: [a]")}}).connect(t, ways[0], p.options(t))
	hinted := func(want bool) {
		t.Helper()
		for _, res := range []*mcp.CallToolResult{c.call("find_tools", args{}), c.call("load_skill", args{"name": "x"})} {
			var got struct {
				Tools []struct {
					Name             string
					RequiresApproval bool `json:"requires_approval"`
				}
			}
			js, err := json.Marshal(res.StructuredContent)
			if err == nil {
				err = json.Unmarshal(js, &got)
			}
			if err != nil || len(got.Tools) != 3 {
				t.Fatalf("%s: %v", js, err)
			}
			for _, tool := range got.Tools {
				if tool.RequiresApproval != (want && tool.Name == "a__change") {
					t.Errorf("%s: requires_approval is %t", tool.Name, tool.RequiresApproval)
				}
			}
		}
	}
	hinted(true)
	p.times(t, c, "always", "changed")
	hinted(false)
}

// Every decision is recorded with the user's answer, including those about unknown
// tools.
func TestL13DecisionsAreRecorded(t *testing.T) {
	for _, how := range ways {
		t.Run(how.String(), func(t *testing.T) {
			var mu sync.Mutex
			var got []string
			p := &person{}
			w := newWorld(t, setup{servers: []string{"a"}, rules: []string{"ask a__change", "deny a__fail"}, grants: policy.NewMemoryStore(), audit: func(_ context.Context, r policy.Record) error {
				mu.Lock()
				defer mu.Unlock()
				got = append(got, strings.Join([]string{r.Action, r.Name, r.Decision, r.Details["code"]}, " "))
				if r.Principal != policy.LocalUser() {
					t.Errorf("by %s", r.Principal)
				}
				return nil
			}})
			c := w.connect(t, how, p.options(t))
			c.call("call_tool", args{"name": "a__none"})
			c.call("call_tool", args{"name": "a__fail"})
			p.times(t, c, "no", "declined")
			p.times(t, c, "once", "changed")
			p.times(t, c, "always", "changed")
			p.times(t, c, "no", "changed")
			want := []string{
				"call a__none deny unknown-tool",
				"call mcp.a.fail deny rule",
				"call mcp.a.change ask rule", "call mcp.a.change deny declined",
				"call mcp.a.change ask rule", "call mcp.a.change allow rule",
				"call mcp.a.change ask rule", "approve mcp.a.change allow ", "call mcp.a.change allow rule",
				"call mcp.a.change allow granted",
			}
			mu.Lock()
			defer mu.Unlock()
			if !slices.Equal(got, want) {
				t.Errorf("recorded\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		})
	}
}

// A form without a valid decision is no answer, and not an error of the call. Forms
// of other servers are not changed.
func TestFormWithoutDecisionIsNoAnswer(t *testing.T) {
	ours, theirs := mcpserver.DecisionSchema("", "once"), map[string]any{"type": "object"}
	for name, tt := range map[string]struct {
		schema  any
		action  string
		content map[string]any
		want    string
	}{
		"empty":          {ours, "accept", map[string]any{}, "cancel"},
		"another value":  {ours, "accept", map[string]any{"decision": "yes"}, "cancel"},
		"another type":   {ours, "accept", map[string]any{"decision": true}, "cancel"},
		"a decision":     {ours, "accept", map[string]any{"decision": "once"}, "accept"},
		"a refusal":      {ours, "accept", map[string]any{"decision": "no"}, "accept"},
		"declined":       {ours, "decline", nil, "decline"},
		"another server": {theirs, "accept", map[string]any{}, "accept"},
	} {
		next := func(context.Context, string, mcp.Request) (mcp.Result, error) {
			return &mcp.ElicitResult{Action: tt.action, Content: tt.content}, nil
		}
		req := &mcp.ServerRequest[*mcp.ElicitParams]{Params: &mcp.ElicitParams{RequestedSchema: tt.schema}}
		res, err := mcpserver.CancelUndecided(next)(t.Context(), "elicitation/create", req)
		if err != nil || res.(*mcp.ElicitResult).Action != tt.want {
			t.Errorf("%s: %+v, %v, want %s", name, res, err, tt.want)
		}
	}
}
