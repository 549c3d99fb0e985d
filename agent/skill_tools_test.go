package agent_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/agent"
	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/toolname"
	"github.com/loadout-dev/loadout/mcpserver"
	"github.com/loadout-dev/loadout/session"
	"github.com/loadout-dev/loadout/tools"
)

// A second load names the tools of a skill that the user approved in between,
// and they can be called.
func TestSkillToolsNameApprovedTools(t *testing.T) {
	water := mcp.NewServer(&mcp.Implementation{Name: "water", Version: "1"}, nil)
	mcp.AddTool(water, &mcp.Tool{Name: "high", Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}},
		func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "12:10"}}}, nil, nil
		})
	server := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return water }, &mcp.StreamableHTTPOptions{Stateless: true}))
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	approve := false
	rt, err := loadout.New(t.Context(), &loadout.Options{
		Sources: []catalog.Source{catalog.NewFS("mine", catalog.User, fstest.MapFS{"tides/SKILL.md": {Data: []byte(
			"---\nname: tides\ndescription: Reads tide tables.\nmcpServers: {water: {url: " + server.URL + "}}\n---\nAsk for high water.\n")}})},
		Scripts: &loadout.Scripts{ReadServers: tools.ReadServers},
		Approve: func(context.Context, *loadout.ApprovalRequest) (loadout.Approval, error) {
			return loadout.Approval{Approved: approve}, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	set := tools.ForRuntime(rt, &tools.Options{PrivateNetworks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	s, err := rt.NewSession(t.Context(), &session.Options{Tools: set.ForSession()})
	if err != nil {
		t.Fatal(err)
	}
	all, end, err := agent.SkillTools(t.Context(), rt, s, &agent.SkillToolOptions{Tools: set})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { end(); s.Close(); set.Close(); rt.Close() })
	if all, err := agent.ServerTools(t.Context(), rt, s, "fire", &agent.SkillToolOptions{Tools: set}); err == nil || !strings.Contains(err.Error(), `no server "fire"`) {
		t.Errorf("the tools of an unknown server: %v, %v", all, err)
	}
	call := func(name, args string) string {
		i := slices.IndexFunc(all, func(t agent.Tool) bool { return t.Name == name })
		if i < 0 {
			t.Fatalf("no tool %s", name)
		}
		out, err := all[i].Call(t.Context(), json.RawMessage(args))
		if err != nil {
			t.Fatal(err)
		}
		return out.Text
	}
	load := func() string { return call(toolname.LoadSkill, `{"name":"tides"}`) }
	if text := load(); !strings.Contains(text, "declined by the user") || strings.Contains(text, "tides_water__high") {
		t.Errorf("the first load: %s", text)
	}
	approve = true
	if text := load(); !strings.Contains(text, "already loaded") || !strings.Contains(text, "tides_water__high") {
		t.Errorf("the load after the approval: %s", text)
	}
	if text := load(); strings.Contains(text, "tides_water__high") {
		t.Errorf("the third load names the tools again: %s", text)
	}
	if text := call(toolname.CallTool, `{"name":"tides_water__high"}`); text != "12:10" {
		t.Errorf("the tool: %s", text)
	}
}

// Options that change the tools of a server apply whatever servers were listed
// before, and not to others.
func TestSkillToolsOfChangedServers(t *testing.T) {
	rt, err := loadout.New(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	s, err := rt.NewSession(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close(); rt.Close() })
	offers := func(tool string, o *mcpserver.Options) bool {
		all, end, err := agent.SkillTools(t.Context(), rt, s, &agent.SkillToolOptions{Server: o})
		if err != nil {
			t.Fatal(err)
		}
		defer end()
		return slices.ContainsFunc(all, func(t agent.Tool) bool { return t.Name == tool })
	}
	withoutSearch := &mcpserver.Options{Middleware: func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			res, err := next(ctx, method, req)
			if list, ok := res.(*mcp.ListToolsResult); ok {
				list.Tools = slices.DeleteFunc(list.Tools, func(t *mcp.Tool) bool { return t.Name == toolname.SearchSkills })
			}
			return res, err
		}
	}}
	withHello := &mcpserver.Options{Extend: func(s *mcp.Server) {
		s.AddTool(&mcp.Tool{Name: "hello", InputSchema: &jsonschema.Schema{Type: "object"}}, nil)
	}}
	for range 2 {
		if offers(toolname.SearchSkills, withoutSearch) {
			t.Error("a tool that the middleware removes is offered")
		}
		if !offers("hello", withHello) || offers("hello", nil) {
			t.Error("an additional tool is offered by another server, or not by its own")
		}
		if !offers(toolname.SearchSkills, nil) {
			t.Error("search_skills is not offered by a server without middleware")
		}
	}
}
