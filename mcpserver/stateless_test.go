package mcpserver_test

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout/mcpserver"
)

// statelessCall calls a tool in one request of an older protocol version.
func statelessCall(t testing.TB, h http.Handler, params string) string {
	t.Helper()
	req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":`+params+`}`))
	req.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}, "Mcp-Protocol-Version": {legacy}}
	res := httptest.NewRecorder()
	h.ServeHTTP(res, req)
	return res.Body.String()
}

// Names of members count as they are written, as in the SDK: otherwise, a gateway
// that inspects a message would see another tool than the one that is called.
func TestStatelessCallsDistinguishTheCaseOfNames(t *testing.T) {
	h := newWorld(t, setup{tree: basic()}).server.Endpoint(&mcpserver.HTTPOptions{Stateless: true})
	for params, loads := range map[string]bool{
		`{"name":"load_skill","arguments":{"name":"pdf"}}`:                            true,
		`{"name":"load_skill","arguments":{"name":"pdf"},"extra":[]}`:                 true,
		`{"Name":"load_skill","arguments":{"name":"pdf"}}`:                            false,
		`{"name":"search_skills","NAME":"load_skill","arguments":{"name":"pdf"}}`:     false,
		`{"name":"load_skill","arguments":{"name":"csv"},"Arguments":{"name":"pdf"}}`: false,
	} {
		if body := statelessCall(t, h, params); strings.Contains(body, "Skill pdf (from local) is loaded") != loads {
			t.Errorf("%s: loaded %v, want %v: %s", params, !loads, loads, body)
		}
	}
}

// Close waits for stateless calls, as for those of connections.
func TestCloseWaitsForStatelessCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		blocked := make(chan struct{})
		w := newWorld(t, setup{tree: basic(), options: mcpserver.Options{OnUse: func(mcpserver.Use) { <-blocked }}})
		h := w.server.Endpoint(&mcpserver.HTTPOptions{Stateless: true})
		called, closed := make(chan string, 1), make(chan error, 1)
		go func() { called <- statelessCall(t, h, `{"name":"load_skill","arguments":{"name":"pdf"}}`) }()
		synctest.Wait()
		go func() { closed <- w.server.Close() }()
		synctest.Wait()
		if len(closed) > 0 {
			t.Error("Close returned while a call runs")
		}
		close(blocked)
		if body := <-called; !strings.Contains(body, "is loaded") {
			t.Errorf("the call got %s", body)
		}
		if err := <-closed; err != nil {
			t.Error(err)
		}
	})
}

// Servers for stateless requests share their tools, and each answers for its own
// runtime and principal. They need no server of the SDK.
func TestServersShareDefinitions(t *testing.T) {
	logger := slog.New(slog.DiscardHandler) // so that no other test has the same features
	var uses [2][]string
	var worlds []*world
	for i, name := range []string{"pdf", "csv"} {
		worlds = append(worlds, newWorld(t, setup{tree: files{name + "/SKILL.md": skillText(name, "Read it.")},
			options: mcpserver.Options{Logger: logger, OnUse: func(u mcpserver.Use) { uses[i] = append(uses[i], u.Skill) }}}))
	}
	for i, name := range []string{"pdf", "csv"} {
		h := worlds[i].server.Endpoint(&mcpserver.HTTPOptions{Stateless: true})
		for _, other := range []string{"pdf", "csv"} {
			if body := statelessCall(t, h, `{"name":"load_skill","arguments":{"name":"`+other+`"}}`); strings.Contains(body, "is loaded") != (other == name) {
				t.Errorf("server of %s, skill %s: %s", name, other, body)
			}
		}
		if !slices.Contains(uses[i], name) || slices.Contains(uses[1-i], name) {
			t.Errorf("uses are %q", uses)
		}
	}
	if a, b := worlds[0].server.Shared(), worlds[1].server.Shared(); a == nil || a != b {
		t.Error("the definitions are not shared")
	}
	for _, w := range worlds {
		if w.server.HasSDK() {
			t.Error("a stateless call made a server of the SDK")
		}
	}
	body := func() string {
		return statelessCall(t, worlds[1].server.Endpoint(&mcpserver.HTTPOptions{Stateless: true}), `{"name":"load_skill","arguments":{"name":"csv"}}`)
	}
	if err := worlds[0].server.Close(); err != nil || !strings.Contains(body(), "is loaded") {
		t.Errorf("after the other server was closed: %v, %s", err, body())
	}
}

// A middleware may have state, so there is one of it for all requests.
func TestMiddlewareIsCalledOnce(t *testing.T) {
	made, calls := 0, 0
	w := newWorld(t, setup{tree: basic(), options: mcpserver.Options{Middleware: func(next mcp.MethodHandler) mcp.MethodHandler {
		made++
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			if method == "tools/call" {
				calls++
			}
			return next(ctx, method, req)
		}
	}}})
	h := w.server.Endpoint(&mcpserver.HTTPOptions{Stateless: true})
	for range 2 {
		statelessCall(t, h, `{"name":"load_skill","arguments":{"name":"pdf"}}`)
	}
	w.connect(t, ways[0], nil).call("load_skill", map[string]any{"name": "pdf"})
	if made != 1 || calls != 3 {
		t.Errorf("called %d times, for %d calls, want 1 and 3", made, calls)
	}
}
