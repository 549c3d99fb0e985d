package upstream_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/coder/websocket"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout/internal/upstream"
)

func echo(t *testing.T, s *mcp.ClientSession, text string) {
	t.Helper()
	res, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: "echo", Arguments: map[string]any{"text": text}})
	if err != nil {
		t.Fatal(err)
	}
	if got := res.Content[0].(*mcp.TextContent).Text; got != text {
		t.Errorf("echo = %q, want %q", got, text)
	}
}

func TestDialStdio(t *testing.T) {
	for _, tt := range []struct{ mode, era, warning string }{
		{"modern", upstream.Modern, ""},
		{"legacy", upstream.Legacy, ""},
		{"ignores", upstream.Legacy, ""},
		{"exits-on-probe", upstream.Legacy, ""},
		{"noisy", upstream.Modern, "npm notice"},
		{"stderr", upstream.Modern, ""},
	} {
		t.Run(tt.mode, func(t *testing.T) {
			d := newDialer()
			if tt.mode == "ignores" {
				d.Probe = 200e6
			}
			c, err := d.Dial(t.Context(), childConfig(t, tt.mode), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if c.Era != tt.era {
				t.Errorf("era = %s, want %s", c.Era, tt.era)
			}
			echo(t, c.ClientSession, "hello")
			if err := c.Check(t.Context()); err != nil {
				t.Error(err)
			}
			if w := strings.Join(c.Warnings(), "\n"); tt.warning != "" && !strings.Contains(w, tt.warning) || tt.warning == "" && w != "" {
				t.Errorf("warnings = %q, want %q", w, tt.warning)
			}
		})
	}
}

// The requested handshake is used, even if the server last used another one.
func TestRequestedEraPrecedesTheKnownOne(t *testing.T) {
	d, c := newDialer(), childConfig(t, "modern")
	for _, tt := range []struct{ requested, want string }{{"", upstream.Modern}, {upstream.Legacy, upstream.Legacy}, {upstream.Modern, upstream.Modern}} {
		conn, err := d.Dial(t.Context(), c, &upstream.DialOptions{Era: tt.requested})
		if err != nil {
			t.Fatal(err)
		}
		if conn.Era != tt.want {
			t.Errorf("requested %q, got %q", tt.requested, conn.Era)
		}
		conn.Close()
	}
}

func TestDialStdioFails(t *testing.T) {
	for _, tt := range []struct{ mode, want string }{
		{"exits", "connect to server \"exits\" with the command"},
		{"exits", "the command ended: exit status 7\n  stderr: config.json: no such file"},
		{"mute", "no connection within 1s"},
		{"garbage", "line on its standard output is not a message: "},
	} {
		t.Run(tt.mode, func(t *testing.T) {
			c, err := newDialer().Dial(context.Background(), unconnectable(t, tt.mode), nil)
			if err == nil {
				c.Close()
				t.Fatal("connected")
			}
			if !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error = %q, want %q in it", err, tt.want)
			}
		})
	}
}

// serveHTTP serves over a transport of HTTP, a new server for each session; see
// is shown every request.
func serveHTTP(t *testing.T, kind string, see func(*http.Request)) string {
	t.Helper()
	return serveHTTPOf(t, kind, nil, see)
}

// serveHTTPOf serves one server to everybody.
func serveHTTPOf(t *testing.T, kind string, one *mcp.Server, see func(*http.Request)) string {
	t.Helper()
	get := func(*http.Request) *mcp.Server {
		if one != nil {
			return one
		}
		return newServer(kind)
	}
	var h http.Handler
	switch kind {
	case "modern":
		h = mcp.NewStreamableHTTPHandler(get, &mcp.StreamableHTTPOptions{Stateless: true})
	case "modern-json":
		h = mcp.NewStreamableHTTPHandler(get, &mcp.StreamableHTTPOptions{Stateless: true, JSONResponse: true})
	case "legacy":
		h = mcp.NewStreamableHTTPHandler(get, nil)
	case "sse":
		h = mcp.NewSSEHandler(get, nil)
	case "websocket":
		h = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			ws, err := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: []string{"mcp"}})
			if err != nil {
				return
			}
			get(r).Run(r.Context(), &framed{ws})
		})
	}
	return serveHandler(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if see != nil {
			see(r)
		}
		h.ServeHTTP(w, r)
	}))
}

func serveHandler(t *testing.T, h http.Handler) string {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(func() {
		srv.CloseClientConnections()
		srv.Close()
		http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	})
	return srv.URL
}

// framed is the server's end of a WebSocket.
type framed struct{ ws *websocket.Conn }

func (f *framed) Connect(context.Context) (mcp.Connection, error) { return f, nil }
func (f *framed) SessionID() string                               { return "" }
func (f *framed) Close() error                                    { return f.ws.CloseNow() }

func (f *framed) Read(ctx context.Context) (jsonrpc.Message, error) {
	_, data, err := f.ws.Read(ctx)
	if err != nil {
		return nil, err
	}
	return jsonrpc.DecodeMessage(data)
}

func (f *framed) Write(ctx context.Context, m jsonrpc.Message) error {
	data, err := jsonrpc.EncodeMessage(m)
	if err != nil {
		return err
	}
	return f.ws.Write(ctx, websocket.MessageText, data)
}

func TestDialHTTP(t *testing.T) {
	for _, tt := range []struct{ kind, typ, transport, era string }{
		{"modern", "", upstream.HTTP, upstream.Modern},
		{"modern-json", upstream.HTTP, upstream.HTTP, upstream.Modern},
		{"legacy", "", upstream.HTTP, upstream.Legacy},
		{"sse", "", upstream.SSE, ""},
		{"sse", upstream.SSE, upstream.SSE, ""},
		{"websocket", upstream.WebSocket, upstream.WebSocket, upstream.Modern},
	} {
		t.Run(tt.kind+"_"+tt.typ, func(t *testing.T) {
			var mu sync.Mutex
			bare := 0
			u := serveHTTP(t, tt.kind, func(r *http.Request) {
				mu.Lock()
				defer mu.Unlock()
				if r.Header.Get("X-Key") != "s3cret-key" {
					bare++
				}
			})
			cfg := &upstream.Config{Name: tt.kind, Type: tt.typ, URLs: []string{u}, Headers: map[string]string{"x-key": "s3cret-key"}}
			c, err := newDialer().Dial(t.Context(), cfg, nil)
			if err != nil {
				t.Fatal(err)
			}
			if c.Transport != tt.transport {
				t.Errorf("transport = %s, want %s", c.Transport, tt.transport)
			}
			if tt.era != "" && c.Era != tt.era { // the SDK's SSE server says now this, now that
				t.Errorf("era = %s, want %s", c.Era, tt.era)
			}
			echo(t, c.ClientSession, "hello")
			if err := c.Check(t.Context()); err != nil {
				t.Error(err)
			}
			c.Close()
			mu.Lock()
			defer mu.Unlock()
			if bare > 0 {
				t.Errorf("%d requests without the header", bare)
			}
		})
	}
}
