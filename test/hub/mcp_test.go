//go:build unix

package hub_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// balancer sends each request to another node, with a token.
type balancer struct {
	nodes []*node
	token string
	next  http.RoundTripper
	count atomic.Int64
}

func (b *balancer) RoundTrip(r *http.Request) (*http.Response, error) {
	n := b.nodes[int(b.count.Add(1))%len(b.nodes)]
	at, err := url.Parse(n.url)
	if err != nil {
		return nil, err
	}
	r = r.Clone(r.Context())
	r.URL.Host, r.Host = at.Host, at.Host
	r.Header.Set("Authorization", "Bearer "+b.token)
	return b.next.RoundTrip(r)
}

// A client of either era is served by whichever node its request comes to: all that it
// reaches, and a Ghost.
func TestMCPOnAnyNode(t *testing.T) {
	h, m, l := onPostgres(t), newModel(t, 0), newLedger(t)
	one, two := h.start(), h.start()
	one.hire(m, l)
	token := one.tokenOf("admin", secret, "mcp", "run")
	for _, era := range []string{"2025-11-25", "2026-07-28"} {
		t.Run(era, func(t *testing.T) {
			b := &balancer{nodes: []*node{one, two}, token: token, next: h.client.Transport}
			connect := func(path string) *mcp.ClientSession {
				c := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
				s := must(c.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: one.url + path, HTTPClient: &http.Client{Transport: b}, MaxRetries: -1},
					&mcp.ClientSessionOptions{ProtocolVersion: era}))(t)
				t.Cleanup(func() { s.Close() })
				return s
			}
			s := connect("/mcp")
			var first string
			for range 4 {
				tools, err := json.Marshal(must(s.ListTools(t.Context(), nil))(t).Tools)
				if err != nil || first != "" && string(tools) != first {
					t.Errorf("the tools are %s, and were %s: %v", tools, first, err)
				}
				first = string(tools)
				res := must(s.CallTool(t.Context(), &mcp.CallToolParams{Name: "load_skill", Arguments: map[string]any{"name": "csv-analysis"}}))(t)
				if text := textOf(res); res.IsError || !strings.Contains(text, "CSV") {
					t.Errorf("a load returned %q", text)
				}
			}
			s = connect("/mcp/p/keeper")
			for _, what := range []string{era + " one", era + " two", era + " three"} {
				res := must(s.CallTool(t.Context(), &mcp.CallToolParams{Name: "call_tool", Arguments: map[string]any{"name": "ledger__write", "arguments": entry{what}}}))(t)
				if text := textOf(res); res.IsError || !strings.Contains(text, "kept "+what) || l.all()[what] != 1 {
					t.Errorf("a call returned %q, and was made %d times", text, l.all()[what])
				}
			}
			if b.count.Load() < 10 {
				t.Errorf("%d requests were sent", b.count.Load())
			}
		})
	}
}

func textOf(res *mcp.CallToolResult) string {
	var b strings.Builder
	for _, c := range res.Content {
		if text, ok := c.(*mcp.TextContent); ok {
			b.WriteString(text.Text)
		}
	}
	return b.String()
}
