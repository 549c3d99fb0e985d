package mcpapi_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout/internal/hub"
	"github.com/loadout-dev/loadout/internal/hub/hubtest"
	"github.com/loadout-dev/loadout/internal/store/storetest"
)

func TestMain(m *testing.M) { os.Exit(storetest.Main(m)) }

var request = hubtest.NewRequest

const initialize = `{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18", "clientInfo": {"name": "reader", "version": "7"}, "capabilities": {}}}`

// call returns a request that calls a tool.
func call(tool, arguments string) string {
	return fmt.Sprintf(`{"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": %q, "arguments": %s}}`, tool, arguments)
}

// newHub opens a hub with a user and an MCP server of the user, whose tools look, which
// reads, and pay. The clients are a browser and a client of MCP.
func newHub(t *testing.T) (h *hubtest.Hub, root, user, client *hubtest.Client) {
	t.Helper()
	server := mcp.NewServer(&mcp.Implementation{Name: "till", Version: "1"}, nil)
	for name, a := range map[string]*mcp.ToolAnnotations{"look": {ReadOnlyHint: true}, "pay": {}} {
		mcp.AddTool(server, &mcp.Tool{Name: name, Description: "To " + name + ".", Annotations: a}, func(context.Context, *mcp.CallToolRequest, struct{ Amount int }) (*mcp.CallToolResult, any, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "done: " + name}}}, nil, nil
		})
	}
	web := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{Stateless: true}))
	t.Cleanup(web.Close)
	t.Cleanup(web.CloseClientConnections)
	h = hubtest.Open(t, hub.Options{Accounts: true, Private: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	root = h.SignIn("root")
	_, user = root.NewUser("ada")
	user.With("Content-Type", "application/yaml").Must("POST", "/apply", []byte("kind: MCPServer\nmetadata: {name: till}\nspec: {type: streamable-http, url: '"+web.URL+"', policy: [\"ask mcp.till.pay\"]}\n---\n"+
		"kind: Skill\nmetadata: {name: prose}\nspec: {description: Writes., prompt: \"Write.\\n\"}\n---\n"+
		"kind: Ghost\nmetadata: {name: writer}\nspec: {systemPrompt: Write., skills: [prose]}\n"))
	token := user.Must("POST", "/tokens", `{"name": "mcp", "scopes": ["mcp", "run"]}`).Text("token")
	client = h.Client().With("Authorization", "Bearer "+token).With("Accept", "application/json, text/event-stream")
	return h, root, user, client
}

func TestEndpoints(t *testing.T) {
	h, root, user, client := newHub(t)
	client.Check(
		request("POST", "//mcp", initialize, 200, `"serverInfo" & "version":"test"`),
		request("POST", "//mcp/p/writer", initialize, 200, `"serverInfo"`),
		request("POST", "//mcp/p/default/writer", initialize, 200, `"serverInfo"`),
		request("POST", "//mcp/p/none", initialize, 404, ""),
		request("POST", "//mcp", call("load_skill", `{"name": "prose"}`), 200, "Write."),
		request("POST", "//mcp", call("call_tool", `{"name": "till__look", "arguments": {"Amount": 1}}`), 200, "done: look"),
		request("POST", "//mcp", call("read_tool", `{"name": "till__look", "arguments": {"Amount": 1}}`), 200, `"isError":true & POST /api/v1/grants with & \"read_only\":true`),
	)
	h.Client().Check(request("POST", "//mcp", initialize, 401, ""))
	user.Check(request("POST", "//mcp", initialize, 401, "")) // a cookie is no token
	client.With("Origin", "https://evil.example").Check(request("POST", "//mcp", initialize, 403, ""))
	root.Check(request("GET", "/audit?action=mcp.connect", nil, 200, `"subject":"mcp" & "subject":"Ghost//writer" & "subject":"Ghost/default/writer" & "protocol":"2025-06-18" & "client":"reader 7"`))

	// The kill switch applies to calls on open endpoints, and only until it is off.
	root.Must("PUT", "/settings/skills", `{"enabled": false, "allow": [], "generation": 0}`)
	client.Check(request("POST", "//mcp", call("load_skill", `{"name": "prose"}`), 200, `"isError":true & Not done: & Ask an administrator.`))
	root.Must("PUT", "/settings/skills", `{"enabled": true, "allow": [], "generation": 1}`)
	client.Check(request("POST", "//mcp", call("load_skill", `{"name": "prose"}`), 200, `!"isError":true & Write.`))
}

func TestMetadata(t *testing.T) {
	h := hubtest.Open(t, hub.Options{Accounts: true, Public: "https://hub.example"})
	for path, resource := range map[string]string{"": "/mcp", "/mcp": "/mcp", "/mcp/p/a": "/mcp/p/a", "/mcp/p/a/b": "/mcp/p/a/b"} {
		r := h.Client().Must("GET", "//.well-known/oauth-protected-resource"+path, nil)
		if r.Text("resource") != "https://hub.example"+resource || r.Header.Get("Access-Control-Allow-Origin") != "*" || r.Header.Get("Content-Type") != "application/json" || r.Text("resource_documentation") != "https://hub.example/openapi.json" {
			t.Errorf("%s: %s %v", path, r.Body, r.Header)
		}
	}
}

func TestCapabilities(t *testing.T) {
	_, _, user, _ := newHub(t)
	user.Check(
		request("GET", "/capabilities?connect=true", nil, 200, `"prose" & "csv-analysis" & "till__look" & "till__pay" & "id":"mcp.till.pay" & "id":"skill.prose" & "kind":"mcp" & "kind":"skill" & "problems":[]`),
		request("GET", "/capabilities?kind=Ghost&name=writer", nil, 200, `"available_skills":["prose"] & !till__pay`),
		request("GET", "/capabilities?kind=Ghost&name=none", nil, 404, ""),
		request("GET", "/capabilities?kind=Ghost", nil, 422, "kind and name must be given together"),
		request("GET", "/capabilities?name=writer", nil, 422, ""),
		request("GET", "/capabilities?namespace=default", nil, 422, ""),
	)
}

func TestGrants(t *testing.T) {
	_, root, user, client := newHub(t)
	pay := call("call_tool", `{"name": "till__pay", "arguments": {"Amount": 5}}`)
	client.Check(request("POST", "//mcp", pay, 200, `"isError":true & !done: pay`))
	expires := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	first := user.Must("POST", "/grants", `{"tool": "till__pay", "scope": "always", "arguments": {"Amount": 5}, "expires": "`+expires+`"}`)
	if first.Status != 201 || first.Text("expires") != expires || first.Text("scope") != "always" || first.Text("name") != "till__pay" || first.Text("subject") == "" {
		t.Errorf("the grant is %d %s", first.Status, first.Body)
	}
	client.Check(request("POST", "//mcp", pay, 200, `done: pay`),
		request("POST", "//mcp", call("call_tool", `{"name": "till__pay", "arguments": {"Amount": 6}}`), 200, `!done: pay`))
	user.Check(
		request("POST", "/grants", `{"tool": "till__pay", "scope": "always"}`, 201, `!"expires"`),
		request("POST", "/grants", `{"tool": "till__steal", "scope": "always"}`, 404, "/capabilities?connect=true"),
		request("POST", "/grants", `{"tool": "till__pay", "scope": "always", "subject": "sha256:`+strings.Repeat("0", 64)+`"}`, 409, "inspect the tool again"),
		request("POST", "/grants", `{"tool": "till__pay", "scope": "session"}`, 422, "body.session"),
		request("POST", "/grants", `{"tool": "till__pay", "scope": "always", "kind": "Ghost"}`, 422, ""),
		request("POST", "/grants", `{"tool": "till__pay", "scope": "always", "kind": "Ghost", "name": "none"}`, 404, ""),
		request("GET", "/grants?limit=2", nil, 200, `!"next"`),
		request("GET", "/grants?limit=1", nil, 200, first.Text("id")+` & "next":`),
		request("GET", "/grants?after=x", nil, 422, ""),
		request("DELETE", "/grants/none", nil, 404, ""),
	)
	next := user.Must("GET", "/grants?limit=1", nil).Text("next")
	user.Check(request("GET", "/grants?after="+next, nil, 200, "!"+first.Text("id")+` & "scope":"always" & !"next"`))
	root.Check(request("DELETE", "/grants/"+first.Text("id"), nil, 404, ""))
	user.CheckFailures("/grants")
	user.Check(request("DELETE", "/grants/"+first.Text("id"), nil, 204, ""), request("DELETE", "/grants/"+first.Text("id"), nil, 404, ""),
		request("GET", "/grants", nil, 200, "!"+first.Text("id")))
	root.Check(request("GET", "/audit?action=grant.write", nil, 200, `"withdrawn":"till__pay" & "decision":"allowed"`))
}

// What was used is counted for the skill and for the agent.
func TestUsesAreCounted(t *testing.T) {
	_, _, user, client := newHub(t)
	load := call("load_skill", `{"name": "prose"}`)
	client.Check(request("POST", "//mcp", load, 200, "Write."), request("POST", "//mcp", load, 200, "Write."), request("POST", "//mcp/p/writer", load, 200, "Write."))
	for {
		r := user.Must("GET", "/usage/totals?by=agent", nil)
		if strings.Contains(r.Body, `"loads":3`) {
			if !strings.Contains(r.Body, `"agent":"Ghost/default/writer"`) || !strings.Contains(r.Body, `"loads":2`) || !strings.Contains(r.Body, `"loads":1`) || !strings.Contains(r.Body, `"errors":0`) {
				t.Error(r.Body)
			}
			return
		}
		select {
		case <-t.Context().Done():
			t.Fatal(r.Body)
		case <-time.After(10 * time.Millisecond):
		}
	}
}
