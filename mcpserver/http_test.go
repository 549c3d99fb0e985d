package mcpserver_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout/mcpserver"
)

const initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}`

const modernMeta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"test","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}`

const discover = `{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{` + modernMeta + `}}`

// request is a request as a client of the older era makes it.
func request(t testing.TB, method, url, body string, header ...string) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(limited(t), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	for i := 0; i < len(header); i += 2 {
		switch header[i] {
		case "Host":
			req.Host = header[i+1]
		default:
			req.Header.Set(header[i], header[i+1])
		}
	}
	return req
}

func modernHeader(method string, more ...string) []string {
	return append([]string{"MCP-Protocol-Version", modern, "Mcp-Method", method}, more...)
}

// The protection against DNS rebinding holds on every path and for every
// method, whether or not anything is there.
func TestForeignHostsAndOriginsAreRefusedEverywhere(t *testing.T) {
	w := newWorld(t, setup{tree: basic()})
	srv := w.serve(t, nil)
	host := strings.TrimPrefix(srv.URL, "http://")
	_, port, _ := strings.Cut(host, ":")
	for _, tt := range []struct {
		name         string
		host, origin string
		ok           bool
	}{
		{"its own address", host, "", true},
		{"localhost", "localhost:" + port, "", true},
		{"LOCALHOST", "LocalHost:" + port, "", true},
		{"the loopback address of IPv6", "[::1]:" + port, "", true},
		{"another loopback address", "127.9.9.9:" + port, "", true},
		{"a page of its own", host, "http://" + host, true},
		{"a page of its own by another name", host, "http://localhost:" + port, true},
		{"a page of another server on this machine", host, "http://localhost:3000", false},
		{"a page of another server at the same address", host, "http://127.0.0.1", false},
		{"a page of another server over https", host, "https://localhost", false},
		{"a page with another scheme", host, "ftp://" + host, false},
		{"another port of this machine", "localhost:3000", "", false},
		{"this machine without a port", "localhost", "", false},
		{"another server on this machine in both", "localhost:3000", "http://localhost:3000", false},
		{"a foreign host", "evil.example", "", false},
		{"a foreign host with the right port", "evil.example:" + port, "", false},
		{"a host that begins like ours", "localhost.evil.example", "", false},
		{"a host that ends like ours", "evil-localhost", "", false},
		{"an address that is not loopback", "192.168.0.1:" + port, "", false},
		{"the address of every interface", "0.0.0.0:" + port, "", false},
		{"a loopback address written otherwise", "0x7f.0.0.1", "", false},
		{"a foreign page", host, "http://evil.example", false},
		{"a foreign page with the right port", host, "https://evil.example:" + port, false},
		{"a page that begins like ours", host, "http://localhost.evil.example", false},
		{"a page without an address", host, "null", false},
		{"a page of its own over https", host, "https://" + host, false},
		{"a page at another loopback address", host, "http://127.0.0.2:" + port, false},
		{"a page with a user", host, "http://user@" + host, false},
		{"a page with a path", host, "http://" + host + "/x", false},
		{"rubbish for a page", host, "::::", false},
		{"a file", host, "file://", false},
		{"foreign both, alike", "evil.example", "http://evil.example", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, path := range []string{"/", "/mcp", "/healthz", "/nothing", "/mcp/p/x", "//mcp"} {
				for _, method := range []string{"GET", "POST", "DELETE", "OPTIONS", "PUT"} {
					header := []string{"Host", tt.host}
					if tt.origin != "" {
						header = append(header, "Origin", tt.origin)
					}
					status, body, _ := post(t, request(t, method, srv.URL+path, initialize, header...))
					if refused := status == http.StatusForbidden; refused == tt.ok {
						t.Errorf("%s %s: %d %s", method, path, status, body)
					}
				}
			}
			if !tt.ok {
				header := append(modernHeader("server/discover"), "Host", tt.host)
				if tt.origin != "" {
					header = append(header, "Origin", tt.origin)
				}
				if status, body, _ := post(t, request(t, "POST", srv.URL+"/mcp", discover, header...)); status != http.StatusForbidden {
					t.Errorf("of the newer era: %d %s", status, body)
				}
			}
		})
	}
	if n := w.server.Connections(); n == 0 {
		t.Error("no connection was begun by those that were let in")
	}
}

func TestNoCrossOriginAccessIsGranted(t *testing.T) {
	w := newWorld(t, setup{tree: basic()})
	srv := w.serve(t, nil)
	_, _, header := post(t, request(t, "OPTIONS", srv.URL+"/mcp", "", "Origin", "http://localhost:3000", "Access-Control-Request-Method", "POST"))
	if got := header.Get("Access-Control-Allow-Origin"); got != "" {
		t.Errorf("pages of %s are let in", got)
	}
}

func TestTokenIsRequired(t *testing.T) {
	const token = "correct-horse-battery-staple"
	w := newWorld(t, setup{tree: basic()})
	srv := w.serve(t, &mcpserver.HTTPOptions{Token: token})
	for _, tt := range []struct {
		authorization string
		ok            bool
	}{
		{"", false}, {"Bearer", false}, {"Bearer ", false}, {token, false}, {"Basic " + token, false},
		{"Bearer " + token + "x", false}, {"Bearer " + token[1:], false}, {"Bearer " + strings.ToUpper(token), false}, {"Bearer  " + token, false},
		{"Bearer " + token, true}, {"bearer " + token, true},
	} {
		for _, path := range []string{"/", "/mcp", "/nothing", "/healthz"} {
			status, body, header := post(t, request(t, "POST", srv.URL+path, initialize, "Authorization", tt.authorization))
			if refused := status == http.StatusUnauthorized; refused == (tt.ok || path == "/healthz") {
				t.Errorf("%q at %s: %d %s", tt.authorization, path, status, body)
			} else if refused && !strings.HasPrefix(header.Get("WWW-Authenticate"), "Bearer") {
				t.Errorf("%q at %s: the answer does not say what is demanded: %v", tt.authorization, path, header)
			} else if refused && strings.Contains(body, token) {
				t.Error("the answer gives the token away")
			}
		}
	}
	// With a token any name leads here, as a proxy may have one; without it the
	// page that makes it so cannot do anything.
	if status, _, _ := post(t, request(t, "POST", srv.URL+"/mcp", initialize, "Host", "skills.example", "Authorization", "Bearer "+token)); status != http.StatusOK {
		t.Errorf("by another name: %d", status)
	}
	if status, _, _ := post(t, request(t, "POST", srv.URL+"/mcp", initialize, "Host", "localhost:3000", "Origin", "http://localhost:3000", "Authorization", "Bearer "+token)); status != http.StatusOK {
		t.Errorf("from a page of another server on this machine: %d", status)
	}
	if status, _, _ := post(t, request(t, "POST", srv.URL+"/mcp", initialize, "Host", "skills.example", "Origin", "https://evil.example", "Authorization", "Bearer "+token)); status != http.StatusForbidden {
		t.Errorf("from a foreign page: %d", status)
	}
}

// Pages of other sites send requests of some types without asking the server first.
func TestRequestsOfOtherSitesAreRefused(t *testing.T) {
	w := newWorld(t, setup{tree: basic()})
	open, guarded := w.serve(t, nil), w.serve(t, &mcpserver.HTTPOptions{Token: "correct-horse-battery-staple"})
	for _, tt := range []struct {
		name, value string
		want        int // without a token
	}{
		{"Content-Type", "text/plain", 415},
		{"Content-Type", "application/x-www-form-urlencoded", 415},
		{"Content-Type", "application/json; charset=utf-8", 200},
		{"Sec-Fetch-Site", "cross-site", 403},
		{"Sec-Fetch-Site", "same-origin", 200},
	} {
		if status, body, _ := post(t, request(t, "POST", open.URL+"/mcp", initialize, tt.name, tt.value)); status != tt.want {
			t.Errorf("%s %s: %d %s, want %d", tt.name, tt.value, status, body, tt.want)
		}
	}
	if status, body, _ := post(t, request(t, "POST", guarded.URL+"/mcp", initialize, "Sec-Fetch-Site", "cross-site", "Authorization", "Bearer correct-horse-battery-staple")); status != 200 {
		t.Errorf("with the token: %d %s", status, body)
	}
}

func TestHostHeaderMustNameServer(t *testing.T) {
	w := newWorld(t, setup{tree: basic()})
	srv := w.serve(t, &mcpserver.HTTPOptions{Hosts: []string{"skills.example"}})
	for _, tt := range []struct {
		host, origin string
		want         int
	}{
		{"skills.example", "", 200}, {"Skills.Example:8485", "", 200}, {"skills.example", "https://skills.example", 200},
		{strings.TrimPrefix(srv.URL, "http://"), "", 200}, {"localhost", "", 403},
		{"other.example", "", 403}, {"skills.example", "https://other.example", 403}, {"sub.skills.example", "", 403},
	} {
		header := []string{"Host", tt.host}
		if tt.origin != "" {
			header = append(header, "Origin", tt.origin)
		}
		if status, body, _ := post(t, request(t, "POST", srv.URL+"/mcp", initialize, header...)); status != tt.want {
			t.Errorf("%s from %q: %d %s, want %d", tt.host, tt.origin, status, body, tt.want)
		}
	}
	withToken := w.serve(t, &mcpserver.HTTPOptions{Hosts: []string{"skills.example"}, Token: "correct-horse-battery-staple"})
	if status, _, _ := post(t, request(t, "POST", withToken.URL+"/mcp", initialize, "Host", "other.example", "Authorization", "Bearer correct-horse-battery-staple")); status != 403 {
		t.Errorf("a name that is not listed, with the token: %d", status)
	}
}

func TestOtherPaths(t *testing.T) {
	srv := newWorld(t, setup{}).serve(t, nil)
	for _, tt := range []struct {
		method, path string
		status       int
		body         string
	}{
		{"GET", "/healthz", 200, "ok\n"},
		{"HEAD", "/healthz", 200, ""},
		{"POST", "/healthz", 405, "Method Not Allowed\n"},
		{"GET", "/", 200, "Point an MCP client at " + srv.URL + "/mcp\n"},
		{"GET", "/nothing", 404, "404 page not found\n"},
		{"POST", "/mcp/", 404, "404 page not found\n"},
	} {
		status, body, _ := post(t, request(t, tt.method, srv.URL+tt.path, ""))
		if status != tt.status || !strings.HasSuffix(body, tt.body) {
			t.Errorf("%s %s: %d %q, want %d %q", tt.method, tt.path, status, body, tt.status, tt.body)
		}
	}
}

func TestInvalidMessagesOverHTTP(t *testing.T) {
	w := newWorld(t, setup{tree: basic()})
	srv := w.serve(t, nil)
	big := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"x":"` + strings.Repeat("x", 5<<20) + `"}}`
	for _, tt := range []struct {
		name   string
		method string
		body   string
		header []string
		status int
	}{
		{"an empty body", "POST", "", nil, 400},
		{"no JSON", "POST", "hello", nil, 400},
		{"JSON of another kind", "POST", `"hello"`, nil, 400},
		{"a list of nothing", "POST", `[]`, nil, 400},
		{"cut off", "POST", initialize[:40], nil, 400},
		{"NUL", "POST", "\x00\x00", nil, 400},
		{"deep", "POST", strings.Repeat("[", 100_000), nil, 400},
		{"too large", "POST", big, nil, 413},
		{"of another type", "POST", initialize, []string{"Content-Type", "text/plain"}, 415},
		{"as a form of a page sends it", "POST", initialize, []string{"Content-Type", "application/x-www-form-urlencoded"}, 415},
		{"that accepts nothing", "POST", initialize, []string{"Accept", "text/html"}, 400},
		{"an unknown version", "POST", initialize, []string{"MCP-Protocol-Version", "1999-01-01"}, 400},
		{"an unknown session", "POST", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, []string{"Mcp-Session-Id", "made-up"}, 404},
		{"a call before the handshake", "POST", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, nil, 200},
		{"GET without a session", "GET", "", nil, 400},
		{"GET of an unknown session", "GET", "", []string{"Mcp-Session-Id", "made-up"}, 404},
		{"DELETE without a session", "DELETE", "", nil, 400},
		{"DELETE of an unknown session", "DELETE", "", []string{"Mcp-Session-Id", "made-up"}, 404},
		{"another method", "PUT", initialize, nil, 405},
		{"newer era: an empty body", "POST", "", modernHeader("tools/list"), 400},
		{"newer era: no JSON", "POST", "hello", modernHeader("tools/list"), 400},
		{"newer era: too large", "POST", big, modernHeader("tools/list"), 413},
		{"newer era: GET", "GET", "", modernHeader(""), 405},
		{"newer era: DELETE", "DELETE", "", modernHeader(""), 405},
		{"newer era: a list", "POST", "[" + discover + "]", modernHeader("server/discover"), 400},
		{"newer era: an unknown method", "POST", strings.Replace(discover, "server/discover", "server/format", 1), modernHeader("server/format"), 404},
		{"newer era: a header that says otherwise", "POST", discover, modernHeader("tools/list"), 400},
		{"newer era: without what it demands", "POST", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, modernHeader("tools/list"), 400},
		{"newer era: in the body only", "POST", discover, nil, 400},
		{"a version of the future", "POST", strings.Replace(discover, modern, "2199-01-01", 1), []string{"MCP-Protocol-Version", "2199-01-01", "Mcp-Method", "server/discover"}, 400},
	} {
		t.Run(tt.name, func(t *testing.T) {
			status, body, _ := post(t, request(t, tt.method, srv.URL+"/mcp", tt.body, tt.header...))
			if status != tt.status {
				t.Errorf("%d %s, want %d", status, body, tt.status)
			}
			if status == 200 && !strings.Contains(body, `"error"`) {
				t.Errorf("it succeeds: %s", body)
			}
		})
	}
	c := w.connect(t, way{"http", modern}, nil)
	if res := c.call("load_skill", args{"name": "csv"}); res.IsError {
		t.Errorf("after all that the server answers %q", textOf(res))
	}
}

func TestInvalidMessagesOverStdio(t *testing.T) {
	for _, version := range []string{legacy, modern} {
		t.Run(version, func(t *testing.T) {
			w := newWorld(t, setup{tree: basic()})
			c := w.begin(t, way{"stdio", version})
			for _, tt := range []struct {
				method string
				params args
				code   int
			}{
				{"no/such/method", nil, -32601},
				{"tools/call", args{"name": "nothing"}, -32602},
				{"tools/call", args{"name": 7}, -32602},
				{"resources/read", args{"uri": 7}, -32602},
				{"resources/read", args{}, -32602},
				{"skills/list", args{"cursor": 7}, -32602},
				{"skills/get", nil, -32602},
				{"skills/get", args{"uri": []string{}}, -32602},
				{"resources/directory/read", nil, -32602},
				{"prompts/get", args{"name": "nothing"}, -32602},
			} {
				m := c.request(tt.method, tt.params)
				if m.Error == nil || m.Error.Code != tt.code && (tt.code != -32602 || m.Error.Code != -32600) {
					t.Errorf("%s %v: %s, want the error %d", tt.method, tt.params, m.raw, tt.code)
				}
			}
			c.raw(`{"jsonrpc":"2.0","method":"notifications/made-up"}`)
			c.raw(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"none"}}`)
			if text, _ := c.tool("load_skill", args{"name": "csv"}); !strings.Contains(text, "# CSV") {
				t.Errorf("after all that the server answers %q", text)
			}
		})
	}
}

func TestInvalidJSONLineEndsItsConnectionOnly(t *testing.T) {
	w := newWorld(t, setup{tree: basic()})
	c := w.begin(t, way{"stdio", legacy})
	c.raw("this is no JSON")
	for range c.in { // until it ends
	}
	again := w.begin(t, way{"stdio", legacy})
	if text, _ := again.tool("load_skill", args{"name": "csv"}); !strings.Contains(text, "# CSV") {
		t.Errorf("another connection is answered %q", text)
	}
}

// An idle session of the legacy era expires, with its stream and state.
func TestIdleSessionExpires(t *testing.T) {
	w := newWorld(t, setup{tree: basic()})
	srv := w.serve(t, &mcpserver.HTTPOptions{SessionTimeout: 20 * time.Millisecond})
	status, _, header := post(t, request(t, "POST", srv.URL+"/mcp", initialize))
	session := header.Get("Mcp-Session-Id")
	if status != 200 || session == "" {
		t.Fatalf("%d, session %q", status, session)
	}
	// The stream of the session lasts as long as the session; 404 says that it
	// has ended already.
	res, err := http.DefaultTransport.RoundTrip(request(t, "GET", srv.URL+"/mcp", "", "Mcp-Session-Id", session))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		t.Errorf("the stream of the session ends with %v", err)
	}
	res.Body.Close()
	// Its stream ends first; soon the session is unknown.
	for status := 0; status != http.StatusNotFound; {
		status, _, _ = post(t, request(t, "DELETE", srv.URL+"/mcp", "", "Mcp-Session-Id", session))
	}
	if status, body, _ := post(t, request(t, "POST", srv.URL+"/mcp", `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`, "Mcp-Session-Id", session)); status != 404 {
		t.Errorf("the ended session answers %d %s, want 404", status, body)
	}
	if n := w.server.Connections(); n != 0 {
		t.Errorf("%d connections are left", n)
	}
}

func TestDeleteEndsSession(t *testing.T) {
	w := newWorld(t, setup{tree: basic()})
	srv := w.serve(t, nil)
	_, _, header := post(t, request(t, "POST", srv.URL+"/mcp", initialize))
	session := header.Get("Mcp-Session-Id")
	if status, _, _ := post(t, request(t, "DELETE", srv.URL+"/mcp", "", "Mcp-Session-Id", session)); status/100 != 2 {
		t.Errorf("DELETE gives %d", status)
	}
	if status, _, _ := post(t, request(t, "POST", srv.URL+"/mcp", `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`, "Mcp-Session-Id", session)); status != 404 {
		t.Errorf("then a call gives %d, want 404", status)
	}
	if n := w.server.Connections(); n != 0 {
		t.Errorf("%d connections are left", n)
	}
}

// Closing the server ends streams that clients hold open.
func TestCloseEndsStreams(t *testing.T) {
	w := newWorld(t, setup{tree: basic()})
	var clients []*wire
	for _, how := range ways {
		c := w.begin(t, how)
		if how.version >= modern {
			c.start("subscriptions/listen", args{"notifications": args{"toolsListChanged": true}})
			c.wait("notifications/subscriptions/acknowledged")
		}
		clients = append(clients, c)
	}
	for range 2 {
		if err := w.server.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}
	if n := w.server.Connections(); n != 0 {
		t.Errorf("%d connections are left", n)
	}
	for _, c := range clients {
		if h, ok := c.carrier.(*httpCarrier); ok {
			h.running.Wait() // its streams have ended
		} else {
			for range c.in {
			}
		}
	}
}

// Clients of both eras are answered on one endpoint, at once.
func TestBothErasOnOneEndpoint(t *testing.T) {
	w := newWorld(t, setup{tree: basic()})
	endpoint := w.serve(t, nil).URL + "/mcp"
	ctx := limited(t)
	var clients []*mcp.ClientSession
	for i := range 6 {
		version := []string{legacy, modern, "2025-03-26"}[i%3]
		cs, err := mcp.NewClient(&mcp.Implementation{Name: fmt.Sprint("c", i), Version: "1"}, nil).
			Connect(ctx, &mcp.StreamableClientTransport{Endpoint: endpoint, MaxRetries: -1}, &mcp.ClientSessionOptions{ProtocolVersion: version})
		if err != nil {
			t.Fatal(err)
		}
		defer cs.Close()
		if got := cs.InitializeResult().ProtocolVersion; got != version {
			t.Errorf("the protocol is %s, want %s", got, version)
		}
		clients = append(clients, cs)
	}
	for _, cs := range clients {
		res, err := cs.CallTool(ctx, &mcp.CallToolParams{Name: "load_skill", Arguments: args{"name": "csv"}})
		if err != nil || !strings.Contains(textOf(res), "# CSV") {
			t.Errorf("got %v, %v", res, err)
		}
	}
}

// A request that its client gave up leaves nothing behind.
func TestCancelledRequestEnds(t *testing.T) {
	started := make(chan struct{})
	ended := make(chan error, 1)
	w := newWorld(t, setup{options: mcpserver.Options{Extend: func(s *mcp.Server) {
		s.AddTool(&mcp.Tool{Name: "wait", InputSchema: json.RawMessage(`{"type":"object"}`)}, func(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			close(started)
			<-ctx.Done()
			ended <- ctx.Err()
			return nil, ctx.Err()
		})
	}}})
	srv := w.serve(t, nil)
	ctx, cancel := context.WithCancel(limited(t))
	req := request(t, "POST", srv.URL+"/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"wait",`+modernMeta+`}}`, modernHeader("tools/call", "Mcp-Name", "wait")...)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if res, err := http.DefaultTransport.RoundTrip(req.WithContext(ctx)); err == nil {
			io.Copy(io.Discard, bufio.NewReader(res.Body))
			res.Body.Close()
		}
	}()
	<-started
	cancel()
	select {
	case <-ended:
	case <-limited(t).Done():
		t.Error("the request goes on")
	}
	<-done
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
}
