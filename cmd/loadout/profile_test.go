package main

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// weibo is an MCP server that wants a token, and counts who came without.
func weibo(t *testing.T) *httptest.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "weibo", Version: "1"}, nil)
	for _, name := range []string{"getUserInfo", "getUserTimeline"} {
		mcp.AddTool(s, &mcp.Tool{Name: name, Description: "Of a user.", Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}},
			func(_ context.Context, req *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
				return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: name + " for " + req.Extra.Header.Get("Authorization")}}}, nil, nil
			})
	}
	h := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, nil)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer t0ken" {
			t.Errorf("%s %s comes with %q", r.Method, r.URL.Path, r.Header.Get("Authorization"))
		}
		h.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		srv.CloseClientConnections()
		srv.Close()
	})
	return srv
}

// ghost writes the example of a Ghost into a home directory, with its skill.
func ghost(t *testing.T, url, config string) string {
	t.Helper()
	home := t.TempDir()
	for path, text := range map[string]string{
		".config/loadout/loadout.yaml": config,
		".config/loadout/ghosts/weibo.yaml": `apiVersion: agent.wecode.io/v1
kind: Ghost
metadata:
  name: weibo-test
spec:
  systemPrompt: "You are a Weibo analyst"
  skills:
    - weibo
  mcpServers:
    weiboServer:
      type: streamable-http
      url: ` + url + `
      headers:
        Authorization: Bearer ${{user.weibo_token}}
    unused:
      command: there-is-no-such-command
`,
		".claude/skills/weibo/SKILL.md": "---\nname: weibo\ndescription: Look at posts of a user.\nmcpServers: [weiboServer]\n---\nCall getUserInfo.\n",
	} {
		p := filepath.Join(home, filepath.FromSlash(path))
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return home
}

func connectTo(t *testing.T, url string) *mcp.ClientSession {
	t.Helper()
	s, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: url, MaxRetries: -1}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func loadWeibo(t *testing.T, s *mcp.ClientSession) (state string, tools, problems []string) {
	t.Helper()
	res, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: "load_skill", Arguments: map[string]any{"name": "weibo"}})
	if err != nil {
		t.Fatal(err)
	}
	var l struct {
		State    string
		Tools    []struct{ Name string }
		Problems []string
	}
	b, _ := json.Marshal(res.StructuredContent)
	if err := json.Unmarshal(b, &l); err != nil {
		t.Fatal(err)
	}
	for _, tool := range l.Tools {
		tools = append(tools, tool.Name)
	}
	return l.State, tools, l.Problems
}

// The example Ghost works unchanged without a hub: only the server that the skill names
// is connected, with the user's token.
func TestGhostExample(t *testing.T) {
	home := ghost(t, weibo(t).URL, "user:\n  weibo_token: t0ken\n")
	_, url := serveIn(t, home, "--profile", "weibo-test")
	s := connectTo(t, url)
	state, tools, problems := loadWeibo(t, s)
	if want := []string{"weiboServer__getUserInfo", "weiboServer__getUserTimeline"}; state != "loaded" || !slices.Equal(tools, want) {
		t.Errorf("%s with %q, %q", state, tools, problems)
	}
	res, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: "call_tool", Arguments: map[string]any{"name": "weiboServer__getUserInfo"}})
	if err != nil || res.IsError || res.Content[0].(*mcp.TextContent).Text != "getUserInfo for Bearer t0ken" {
		t.Errorf("%+v, %v", res, err)
	}
	list, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: "search_skills", Arguments: map[string]any{}})
	if text := list.Content[0].(*mcp.TextContent).Text; err != nil || strings.Contains(text, "csv-analysis") || !strings.Contains(text, "weibo") {
		t.Errorf("the skills of the profile are %s, %v", text, err)
	}
}

func TestGhostWithoutTheToken(t *testing.T) {
	home := ghost(t, weibo(t).URL, "")
	_, url := serveIn(t, home, "--profile", "weibo-test")
	state, tools, problems := loadWeibo(t, connectTo(t, url))
	if state != "degraded" || len(tools) > 0 || len(problems) != 1 || !strings.Contains(problems[0], "under user: as weibo_token") {
		t.Errorf("%s with %q, %q", state, tools, problems)
	}
}

func TestProfileAtItsURL(t *testing.T) {
	home := ghost(t, weibo(t).URL, "user:\n  weibo_token: t0ken\n")
	_, url := serveIn(t, home)
	s := connectTo(t, url+"/p/weibo-test")
	list, err := s.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, tool := range list.Tools {
		names = append(names, tool.Name)
	}
	if !slices.Contains(names, "weiboServer__getUserInfo") || !slices.Contains(names, "load_skill") {
		t.Errorf("tools %q", names)
	}
	res, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: "weiboServer__getUserInfo"})
	if err != nil || res.IsError || res.Content[0].(*mcp.TextContent).Text != "getUserInfo for Bearer t0ken" {
		t.Errorf("%+v, %v", res, err)
	}
	if res := post(t, url+"/p/nope", "", initialize); res.StatusCode != http.StatusNotFound {
		t.Errorf("an unknown profile: %s", res.Status)
	}
}
