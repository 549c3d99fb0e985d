package upstream_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout/internal/upstream"
)

func newPool(t *testing.T, o *upstream.PoolOptions) *upstream.Pool {
	t.Helper()
	if o == nil {
		o = &upstream.PoolOptions{}
	}
	if o.Dialer == nil {
		o.Dialer = newDialer()
	}
	p := upstream.NewPool(o)
	t.Cleanup(func() { p.Close() })
	return p
}

func call(t *testing.T, s *upstream.Server, tool string, args map[string]any, o *upstream.CallOptions) (string, error) {
	t.Helper()
	res, err := s.Call(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: args}, o)
	if err != nil {
		return "", err
	}
	if len(res.Content) == 0 {
		return "", nil
	}
	return res.Content[0].(*mcp.TextContent).Text, nil
}

// works says that a server can be called.
func works(t *testing.T, s *upstream.Server) {
	t.Helper()
	got, err := call(t, s, "echo", map[string]any{"text": "hello"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got != "hello" {
		t.Errorf("echo = %q, want hello", got)
	}
	if st := s.Status(); st.State != upstream.Ready {
		t.Errorf("state = %s (%s), want READY", st.State, st.Error)
	}
}

func contains(t *testing.T, what, got string, want ...string) {
	t.Helper()
	for _, w := range want {
		if !strings.Contains(got, w) {
			t.Errorf("%s = %q, want %q in it", what, got, w)
		}
	}
}

// unconnectable returns the configuration of a server that fails in a mode. It has a
// short timeout if the server does not answer.
func unconnectable(t *testing.T, mode string) *upstream.Config {
	t.Helper()
	cfg := childConfig(t, mode)
	switch mode {
	case "mute", "deaf":
		cfg.ConnectTimeout = time.Second
	case "garbage":
		cfg.ConnectTimeout = 5 * time.Second // the first line must arrive
	}
	return cfg
}

func TestFaultMissingCommandIsNamedOnce(t *testing.T) {
	s := newPool(t, nil).Server(&upstream.Config{Name: "gone", Type: upstream.Stdio, Command: "/no/such/command"}, "")
	_, err := s.Tools(t.Context())
	if err == nil || !strings.HasPrefix(err.Error(), `connect to server "gone": command "/no/such/command" not found: `) || strings.Count(err.Error(), "/no/such/command") != 1 {
		t.Errorf("error = %v", err)
	}
}

func TestFaultNotConnected(t *testing.T) {
	for _, tt := range []struct {
		mode string
		want []string
	}{
		{"exits", []string{`connect to server "exits" with the command`, "the command ended: exit status 7", "stderr: config.json: no such file"}},
		{"mute", []string{`connect to server "mute"`, "no connection within 1s"}},
		{"deaf", []string{`connect to server "deaf"`, "no connection within 1s"}},
		{"garbage", []string{`connect to server "garbage"`, "not a message: !! garbage 0"}},
	} {
		t.Run(tt.mode, func(t *testing.T) {
			t.Parallel()
			s := newPool(t, nil).Server(unconnectable(t, tt.mode), "")
			_, err := s.Tools(t.Context())
			if err == nil {
				t.Fatal("connected")
			}
			contains(t, "error", err.Error(), tt.want...)
			st := s.Status()
			if st.State != upstream.Dead || st.Tools != 0 {
				t.Errorf("state = %s with %d tools, want DEAD with none", st.State, st.Tools)
			}
			contains(t, "status", st.Error, tt.want...)
			// Circuit breaker: after the third failure, callers no longer wait.
			for range 5 {
				if err := s.Connect(t.Context()); err == nil {
					t.Fatal("connected")
				}
			}
		})
	}
}

func TestFaultMissingCommand(t *testing.T) {
	s := newPool(t, nil).Server(&upstream.Config{Name: "gone", Command: "no-such-command-of-ours"}, "")
	err := s.Connect(t.Context())
	if err == nil {
		t.Fatal("connected")
	}
	contains(t, "error", err.Error(), `server "gone"`, "no-such-command-of-ours", "install it")
	if st := s.Status(); st.State != upstream.Dead {
		t.Errorf("state = %s, want DEAD", st.State)
	}
}

func TestFaultConnected(t *testing.T) {
	for _, tt := range []struct{ mode, era string }{
		{"modern", upstream.Modern},
		{"legacy", upstream.Legacy},
		{"ignores", upstream.Legacy},
		{"exits-on-probe", upstream.Legacy},
		{"noisy", upstream.Modern},
		{"stderr", upstream.Modern},
	} {
		t.Run(tt.mode, func(t *testing.T) {
			d := newDialer()
			d.Probe = 300 * time.Millisecond
			if tt.mode != "ignores" {
				d.Probe = 0
			}
			s := newPool(t, &upstream.PoolOptions{Dialer: d}).Server(childConfig(t, tt.mode), "")
			works(t, s)
			if got, err := call(t, s, "noise", nil, nil); err != nil || got != "done" {
				t.Errorf("with noise in the middle of a call: %q, %v", got, err)
			}
			st := s.Status()
			if st.Era != tt.era || st.Transport != upstream.Stdio || st.Tools == 0 {
				t.Errorf("status = %+v, want era %s, stdio, tools", st, tt.era)
			}
			contains(t, "warnings", strings.Join(st.Warnings, "\n"), `"level":"info"`)
			if tt.mode == "stderr" {
				if len(st.Stderr) > 64<<10 || len(st.Stderr) < 60<<10 {
					t.Errorf("%d bytes of stderr, want about 64 KiB", len(st.Stderr))
				}
			}
		})
	}
}

func TestFaultCrashDuringCall(t *testing.T) {
	for _, mode := range []string{"modern", "legacy"} {
		t.Run(mode, func(t *testing.T) {
			s := newPool(t, nil).Server(childConfig(t, mode), "")
			before, err := call(t, s, "pid", nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			_, err = call(t, s, "crash", nil, nil)
			var unknown *upstream.OutcomeUnknownError
			if !errors.As(err, &unknown) {
				t.Fatalf("error = %v, want an unknown outcome", err)
			}
			contains(t, "error", err.Error(), `tool "crash" of server "`+mode, "exit status 3", "stderr: out of cheese", "not called again")
			after, err := call(t, s, "pid", nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			if before == after {
				t.Error("the same process after the crash")
			}
			works(t, s)
		})
	}
}

func TestFaultHugeResult(t *testing.T) {
	d := newDialer()
	d.MaxMessage = 1 << 20
	// Of the older era: the tool writes past the SDK, which in the newer may
	// acknowledge a subscription meanwhile.
	s := newPool(t, &upstream.PoolOptions{Dialer: d}).Server(childConfig(t, "legacy"), "")
	_, err := call(t, s, "huge", nil, nil)
	if err == nil {
		t.Fatal("100 MB came through")
	}
	contains(t, "error", err.Error(), `tool "huge" of server "legacy"`, "message too large")
	works(t, s)
}

func TestFaultHugeResultOverHTTP(t *testing.T) {
	for _, kind := range []string{"modern", "modern-json", "legacy", "websocket", "sse"} {
		t.Run(kind, func(t *testing.T) {
			one := newServer(kind)
			mcp.AddTool(one, &mcp.Tool{Name: "large"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
				return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: strings.Repeat("x", 1<<20)}}}, nil, nil
			})
			u := serveHTTPOf(t, kind, one, nil)
			d := newDialer()
			d.MaxMessage = 1 << 18
			cfg := &upstream.Config{Name: kind, URLs: []string{u}}
			if kind == "websocket" {
				cfg.Type = kind
			}
			s := newPool(t, &upstream.PoolOptions{Dialer: d}).Server(cfg, "")
			_, err := call(t, s, "large", nil, nil)
			if err == nil {
				t.Fatal("a message over the limit came through")
			}
			contains(t, "error", err.Error(), `tool "large" of server "`+kind, "not called again")
			works(t, s)
		})
	}
}

func TestFaultManyTools(t *testing.T) {
	cfg := childConfig(t, "many")
	cfg.Exclude = []string{"tool_1*"}
	s := newPool(t, nil).Server(cfg, "")
	l, err := s.Tools(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(l.Tools) != 1000 {
		t.Errorf("%d tools, want 1000 of 2000", len(l.Tools))
	}
}

func TestFaultUnansweredCall(t *testing.T) {
	for _, mode := range []string{"modern", "legacy"} {
		t.Run(mode, func(t *testing.T) {
			s := newPool(t, nil).Server(childConfig(t, mode), "")
			works(t, s)
			_, err := call(t, s, "hang", nil, &upstream.CallOptions{Timeout: 200 * time.Millisecond})
			var unknown *upstream.OutcomeUnknownError
			if !errors.As(err, &unknown) || !errors.Is(err, context.DeadlineExceeded) {
				t.Fatalf("error = %v, want an unknown outcome", err)
			}
			contains(t, "error", err.Error(), "no answer within 200ms")
			works(t, s)

			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(50*time.Millisecond, cancel)
			if _, err := s.Call(ctx, &mcp.CallToolParams{Name: "hang"}, nil); !errors.Is(err, context.Canceled) {
				t.Errorf("cancelled: %v", err)
			}
			works(t, s)
		})
	}
}

// A server that never answers keeps no other from being ready.
func TestW24OneServerFailing(t *testing.T) {
	p := newPool(t, nil)
	cfg := childConfig(t, "mute")
	slow := p.Server(cfg, "")
	waiting := make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { waiting <- slow.Connect(ctx) }()
	works(t, p.Server(childConfig(t, "modern"), ""))
	if st := slow.Status(); st.State != upstream.Init {
		t.Errorf("state of the slow one = %s, want INIT", st.State)
	}
	cancel()
	if err := <-waiting; !errors.Is(err, context.Canceled) {
		t.Errorf("waiting ended with %v", err)
	}
}

func TestFaultToolsChange(t *testing.T) {
	for _, kind := range []string{"stdio-modern", "stdio-legacy", "modern", "legacy", "sse", "websocket"} {
		t.Run(kind, func(t *testing.T) {
			var cfg *upstream.Config
			if mode, ok := strings.CutPrefix(kind, "stdio-"); ok {
				cfg = childConfig(t, mode)
			} else {
				one := newServer(kind)
				cfg = &upstream.Config{Name: kind, URLs: []string{serveHTTPOf(t, kind, one, nil)}}
				if kind == "websocket" {
					cfg.Type = kind
				}
			}
			p := newPool(t, nil)
			s := p.Server(cfg, "")
			works(t, s)
			grown := make(chan struct{}, 1)
			defer p.Subscribe(func(s *upstream.Server) {
				if slices.ContainsFunc(s.LastListing().Tools, func(t *mcp.Tool) bool { return t.Name == "grown" }) {
					select {
					case grown <- struct{}{}:
					default:
					}
				}
			})()
			if _, err := call(t, s, "grow", nil, nil); err != nil {
				t.Fatal(err)
			}
			select {
			case <-grown:
			case <-time.After(20 * time.Second):
				t.Fatal("the change was not noticed")
			}
		})
	}
}

func TestProgress(t *testing.T) {
	s := newPool(t, nil).Server(childConfig(t, "legacy"), "")
	got := make(chan float64, 10)
	p := &mcp.CallToolParams{Name: "slow", Meta: mcp.Meta{"progressToken": "mine"}}
	_, err := s.Call(t.Context(), p, &upstream.CallOptions{Progress: func(n *mcp.ProgressNotificationParams) {
		if n.ProgressToken != "mine" {
			t.Errorf("token = %v, want mine", n.ProgressToken)
		}
		got <- n.Progress
	}})
	if err != nil {
		t.Fatal(err)
	}
	if first := <-got; first != 1 {
		t.Errorf("first progress = %v, want 1", first)
	}
	if p.Meta["progressToken"] != "mine" {
		t.Error("the params of the caller were changed")
	}
}

func TestFaultRefused(t *testing.T) {
	var open atomic.Bool
	h := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return newServer("guarded") }, &mcp.StreamableHTTPOptions{Stateless: true})
	u := serveHandler(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !open.Load() {
			w.Header().Set("WWW-Authenticate", `Bearer error="invalid_token"`)
			http.Error(w, "no", http.StatusUnauthorized)
			return
		}
		h.ServeHTTP(w, r)
	}))
	s := newPool(t, nil).Server(&upstream.Config{Name: "guarded", URLs: []string{u}}, "")
	err := s.Connect(t.Context())
	var auth *upstream.AuthError
	if !errors.As(err, &auth) || auth.Status != 401 || !strings.Contains(auth.Challenge, "invalid_token") {
		t.Fatalf("error = %#v, want an AuthError", err)
	}
	contains(t, "error", err.Error(), `server "guarded" refused access`, "sign in")
	if st := s.Status(); st.State != upstream.Dead {
		t.Errorf("state = %s, want DEAD", st.State)
	}
	open.Store(true)
	s.Retry()
	works(t, s)
}

func TestFaultSessionExpired(t *testing.T) {
	for _, tt := range []struct {
		name   string
		answer func(http.ResponseWriter)
	}{
		{"404", func(w http.ResponseWriter) { http.Error(w, "session not found", http.StatusNotFound) }},
		{"404 with an error", func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusNotFound)
			w.Write([]byte(`{"jsonrpc":"2.0","id":2,"error":{"code":-32001,"message":"Session not found"}}`))
		}},
		{"400", func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusBadRequest)
			w.Write([]byte(`{"jsonrpc":"2.0","id":2,"error":{"code":-32000,"message":"Bad Request: No valid session ID provided"}}`))
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var expired atomic.Value
			expired.Store("")
			var last atomic.Value
			var refused atomic.Int32
			h := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return newServer("legacy") }, nil)
			u := serveHandler(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				id := r.Header.Get("Mcp-Session-Id")
				if id != "" && id == expired.Load() {
					if refused.Add(1) == 1 { // the server has no such session either
						gone := httptest.NewRequest(http.MethodDelete, "/", nil)
						gone.Header.Set("Mcp-Session-Id", id)
						h.ServeHTTP(httptest.NewRecorder(), gone)
					}
					tt.answer(w)
					return
				}
				if id != "" {
					last.Store(id)
				}
				h.ServeHTTP(w, r)
			}))
			s := newPool(t, nil).Server(&upstream.Config{Name: "legacy", URLs: []string{u}}, "")
			works(t, s)
			expired.Store(last.Load())
			works(t, s)
			if refused.Load() == 0 {
				t.Error("the session did not expire")
			}
		})
	}
}

func TestCallError(t *testing.T) {
	for _, kind := range []string{"stdio", "modern", "legacy", "sse", "websocket"} {
		t.Run(kind, func(t *testing.T) {
			cfg := childConfig(t, "modern")
			if kind != "stdio" {
				cfg = &upstream.Config{Name: kind, URLs: []string{serveHTTP(t, kind, nil)}}
				if kind == "websocket" {
					cfg.Type = kind
				}
			}
			s := newPool(t, nil).Server(cfg, "")
			_, err := call(t, s, "absent", nil, nil)
			var wire *jsonrpc.Error
			if !errors.As(err, &wire) || wire.Code != jsonrpc.CodeInvalidParams {
				t.Fatalf("error = %v, want that of the server", err)
			}
			contains(t, "error", err.Error(), `tool "absent" of server "`+cfg.Name)
			works(t, s)
		})
	}
}

// Answers may come before the write of their request has returned.
func TestManyCallsOnOneConnection(t *testing.T) {
	for _, kind := range []string{"stdio", "modern", "legacy", "websocket"} {
		t.Run(kind, func(t *testing.T) {
			cfg := childConfig(t, "modern")
			if kind != "stdio" {
				cfg = &upstream.Config{Name: kind, URLs: []string{serveHTTP(t, kind, nil)}}
				if kind == "websocket" {
					cfg.Type = kind
				}
			}
			s := newPool(t, nil).Server(cfg, "")
			works(t, s)
			since := s.Status().Since
			var group sync.WaitGroup
			for range 8 {
				group.Go(func() {
					for range 25 {
						if _, err := call(t, s, "echo", map[string]any{"text": "x"}, nil); err != nil {
							t.Error(err)
							return
						}
					}
				})
			}
			group.Wait()
			if st := s.Status(); !st.Since.Equal(since) {
				t.Error("the connection was lost meanwhile")
			}
		})
	}
}
