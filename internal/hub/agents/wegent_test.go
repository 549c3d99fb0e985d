package agents_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout/internal/hub/agents"
	"github.com/loadout-dev/loadout/internal/upstream"
)

// Wegent's example with a real server: the granted value arrives there, and the result
// of its tool comes back.
func TestWegentExampleConnects(t *testing.T) {
	ctx := t.Context()
	server := mcp.NewServer(&mcp.Implementation{Name: "weibo", Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "getUserInfo"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "3 posts"}}}, nil, nil
	})
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{Stateless: true})
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer t0ken-of-ada" {
			http.Error(w, "who are you?", http.StatusForbidden)
			return
		}
		handler.ServeHTTP(w, r)
	}))
	defer web.Close()

	h := newHub(t, sqlite(t), nil)
	ada, own := h.people["reporter"], agents.NamespaceOwner(h.of("reporter"))
	h.apply("reporter", strings.Replace(weibo, "https://weibo-api.example.com", web.URL, 1))
	s := h.profile("reporter", agents.GhostKind, "", "weibo-test").Servers[0]
	must(t, h.Secrets().Set(ctx, ada, own, "weibo_token", "t0ken-of-ada"))
	must(t, h.Secrets().Grant(ctx, ada, own, "weibo_token", agents.Subject{Kind: agents.GhostKind, Name: "weibo-test", Server: "weiboServer"}, s.PolicyDigest(), ""))
	v, err := h.Secrets().ServerVariables(ctx, ada, s, "")
	must(t, err)
	c, unset := s.Resolve(v)
	if len(unset) > 0 {
		t.Fatal(unset)
	}
	pool := upstream.NewPool(&upstream.PoolOptions{Dialer: &upstream.Dialer{Private: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}})
	defer pool.Close()
	conn := pool.Server(c, string(ada.User))
	defer conn.Release()
	result, err := conn.Call(ctx, &mcp.CallToolParams{Name: "getUserInfo"}, nil)
	must(t, err)
	if text, ok := result.Content[0].(*mcp.TextContent); !ok || text.Text != "3 posts" {
		t.Errorf("%+v", result)
	}
}
