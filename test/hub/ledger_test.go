//go:build unix

package hub_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// ledger is an MCP server outside of all nodes. It records the calls of its tools, to
// detect repeated ones.
type ledger struct {
	*httptest.Server
	begun  chan string // started by a hold
	ending chan struct{}

	mu      sync.Mutex // guards what follows
	written map[string]int
	release chan struct{} // closed when holds are to come back
}

// entry is the argument of a call.
type entry struct {
	What string `json:"what"`
}

// newLedger returns a server with the tools write, which writes something down, burn,
// which does so too, and hold, which does so and then waits.
func newLedger(t testing.TB) *ledger {
	l := &ledger{begun: make(chan string, 1000), ending: make(chan struct{}), written: map[string]int{}, release: make(chan struct{})}
	s := mcp.NewServer(&mcp.Implementation{Name: "ledger", Version: "1"}, nil)
	for _, name := range []string{"write", "burn", "hold"} {
		mcp.AddTool(s, &mcp.Tool{Name: name, Description: "Does " + name + "."}, func(ctx context.Context, _ *mcp.CallToolRequest, e entry) (*mcp.CallToolResult, any, error) {
			l.write(e.What)
			if name == "hold" {
				l.hold(ctx, e.What)
			}
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "kept " + e.What}}}, nil, nil
		})
	}
	l.Server = httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, &mcp.StreamableHTTPOptions{Stateless: true}))
	t.Cleanup(func() {
		close(l.ending)
		l.CloseClientConnections() // nodes reconnect
		l.Close()
	})
	return l
}

func (l *ledger) write(what string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.written[what]++
}

// hold waits until it is released or its caller is gone.
func (l *ledger) hold(ctx context.Context, what string) {
	l.mu.Lock()
	release := l.release
	l.mu.Unlock()
	l.begun <- what
	select {
	case <-release:
	case <-ctx.Done():
	case <-l.ending:
	}
}

// letGo releases all current and later holds.
func (l *ledger) letGo() {
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.release)
}

// all is how often each thing was written down.
func (l *ledger) all() map[string]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.written)
}

// keeper is the agent of conversations here. It may write and hold without being asked.
const keeper = `
apiVersion: loadout/v1
kind: Model
metadata: {name: slow}
spec: {vendor: openai, model: slow, baseUrl: %q}
---
apiVersion: loadout/v1
kind: Ghost
metadata: {name: keeper}
spec:
  systemPrompt: You keep a ledger.
  policy: {rules: [allow mcp.ledger.write, allow mcp.ledger.hold]}
  mcpServers: {ledger: {type: streamable-http, url: %q}}
---
apiVersion: loadout/v1
kind: Bot
metadata: {name: keeper}
spec: {ghostRef: {name: keeper}, modelRef: {name: slow}}
`

// hire creates the agent on a hub.
func (n *node) hire(m *model, l *ledger) {
	n.t.Helper()
	text := fmt.Sprintf(keeper, m.URL+"/v1", l.URL)
	n.send("POST", "/api/v1/apply", typed{"application/yaml", []byte(text)}).want(n.t, 200)
}

// begin begins a conversation with the agent, and returns its path.
func (n *node) begin() string {
	n.t.Helper()
	return "/api/v1/sessions/" + n.send("POST", "/api/v1/sessions", map[string]string{"agent": "Bot/default/keeper"}).want(n.t, 201).text(n.t, "id")
}

// say has the agent of a conversation do something, as calls of tools, and returns the
// number of that.
func (n *node) say(session string, calls ...string) int64 {
	n.t.Helper()
	var out struct{ Input int64 }
	n.send("POST", session+"/messages", map[string]string{"text": "do: " + strings.Join(calls, "\n")}).want(n.t, 202).into(n.t, &out)
	return out.Input
}

// calls returns a line that makes the model call a tool of the ledger.
func calls(tool, what string) string {
	args, _ := json.Marshal(map[string]any{"name": "ledger__" + tool, "arguments": entry{what}})
	return "call call_tool " + string(args)
}
