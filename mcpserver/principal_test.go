package mcpserver_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout/mcpserver"
	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/tools"
)

// byKey names the principal by the header X-API-Key.
func byKey(r *http.Request) (policy.Principal, error) {
	switch key := r.Header.Get("X-API-Key"); key {
	case "ann", "ben":
		return policy.Principal{Kind: policy.UserPrincipal, ID: key}, nil
	}
	return policy.Principal{}, errors.New("unknown key")
}

func TestEachPrincipalHasItsOwnTools(t *testing.T) {
	sets := map[string]*tools.Set{}
	w := newWorld(t, setup{options: mcpserver.Options{ToolsFor: func(p policy.Principal) *tools.Set { return sets[p.ID] }}})
	var mu sync.Mutex
	var callers []string
	audit := func(_ context.Context, r policy.Record) error {
		mu.Lock()
		defer mu.Unlock()
		callers = append(callers, r.Principal.ID+" "+r.Name)
		return nil
	}
	sets["ann"] = newTools(t, w.rt, &setup{servers: []string{"weather"}, rules: []string{"allow mcp.weather.*"}, audit: audit})
	srv := httptest.NewServer(w.server.Endpoint(&mcpserver.HTTPOptions{Authenticate: byKey}))
	defer srv.Close()
	for _, tt := range []struct{ key, want string }{{"ann", "weather__"}, {"ben", "no tools of other servers"}} {
		client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
		session, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: srv.URL, MaxRetries: -1, HTTPClient: &http.Client{Transport: apiKey(tt.key)}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "find_tools", Arguments: map[string]any{}})
		if err != nil || !strings.Contains(textOf(res), tt.want) {
			t.Errorf("%s finds %v, %v", tt.key, textOf(res), err)
		}
		_, err = session.CallTool(t.Context(), &mcp.CallToolParams{Name: "call_tool", Arguments: map[string]any{"name": "weather__echo", "arguments": map[string]any{"text": "hi"}}})
		if err != nil {
			t.Errorf("%s: %v", tt.key, err)
		}
		session.Close()
	}
	if got := strings.Join(callers, ", "); !strings.HasPrefix(got, "ann ") || strings.Contains(got, "ben") {
		t.Errorf("calls: %q", got)
	}
}

func TestSessionBelongsToItsPrincipal(t *testing.T) {
	w := newWorld(t, setup{})
	srv := httptest.NewServer(w.server.Endpoint(&mcpserver.HTTPOptions{Authenticate: byKey}))
	defer srv.Close()
	initialize := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`
	status, _, header := post(t, request(t, "POST", srv.URL, initialize, "X-API-Key", "ann"))
	id := header.Get("Mcp-Session-Id")
	if status != http.StatusOK || id == "" {
		t.Fatalf("status %d, session %q", status, id)
	}
	list := `{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{}}`
	for _, tt := range []struct {
		key  string
		want int
	}{{"ann", http.StatusOK}, {"ben", http.StatusForbidden}, {"eve", http.StatusUnauthorized}} {
		if status, body, _ := post(t, request(t, "POST", srv.URL, list, "X-API-Key", tt.key, "Mcp-Session-Id", id)); status != tt.want {
			t.Errorf("%s: %d %s, want %d", tt.key, status, body, tt.want)
		}
	}
}

func TestPageNamesEndpointBelowPrefix(t *testing.T) {
	w := newWorld(t, setup{})
	srv := httptest.NewServer(http.StripPrefix("/skills", w.server.Handler(nil)))
	defer srv.Close()
	if _, body, _ := post(t, request(t, "GET", srv.URL+"/skills/", "")); !strings.Contains(body, srv.URL+"/skills/mcp\n") {
		t.Errorf("got %q", body)
	}
}
