package upstream_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout/internal/upstream"
)

func TestModernClientCallsLegacyServer(t *testing.T) {
	var mu sync.Mutex
	var got []mcp.Meta
	back := newServer("legacy")
	back.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			if p, ok := req.GetParams().(*mcp.CallToolParamsRaw); ok {
				mu.Lock()
				got = append(got, p.Meta)
				mu.Unlock()
			}
			return next(ctx, method, req)
		}
	})
	u := serveHTTPOf(t, "legacy", back, nil)
	s := newPool(t, nil).Server(&upstream.Config{Name: "legacy", URLs: []string{u}}, "")
	front := mcp.NewServer(&mcp.Implementation{Name: "front", Version: "1"}, nil)
	mcp.AddTool(front, &mcp.Tool{Name: "echo"}, func(ctx context.Context, req *mcp.CallToolRequest, a echoArgs) (*mcp.CallToolResult, any, error) {
		//lint:ignore SA1019 clients of the older era may send it
		meta := mcp.Meta{"own": "kept", mcp.MetaKeyProtocolVersion: "2026-07-28", mcp.MetaKeySubscriptionID: "1", mcp.MetaKeyClientInfo: map[string]any{"name": "x"}, mcp.MetaKeyLogLevel: "debug"}
		for k, v := range req.Params.Meta {
			meta[k] = v
		}
		res, err := s.Call(ctx, &mcp.CallToolParams{Name: "echo", Arguments: a, Meta: meta}, nil)
		return res, nil, err
	})
	c, err := newDialer().Dial(t.Context(), &upstream.Config{Name: "front", URLs: []string{serveHTTPOf(t, "modern", front, nil)}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if c.Era != upstream.Modern {
		t.Fatalf("era = %s", c.Era)
	}
	echo(t, c.ClientSession, "hello")
	if st := s.Status(); st.Era != upstream.Legacy {
		t.Errorf("era of the server = %s", st.Era)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(got) != 1 || len(got[0]) != 1 || got[0]["own"] != "kept" {
		t.Errorf("_meta = %v, want own alone", got)
	}
}

func TestCallEndsWithCaller(t *testing.T) {
	why := errors.New("the caller is gone")
	ctx, cancel := context.WithCancelCause(t.Context())
	release := make(chan struct{}) // over HTTP the tool may not learn of the end
	one := newServer("modern")
	mcp.AddTool(one, &mcp.Tool{Name: "cancels"}, func(inner context.Context, _ *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
		cancel(why)
		select {
		case <-inner.Done():
		case <-release:
		}
		return &mcp.CallToolResult{}, nil, nil
	})
	u := serveHTTPOf(t, "modern", one, nil)
	s := newPool(t, nil).Server(&upstream.Config{Name: "modern", URLs: []string{u}}, "")
	for _, when := range []string{"meanwhile", "before"} {
		if _, err := s.Call(ctx, &mcp.CallToolParams{Name: "cancels"}, nil); !errors.Is(err, why) {
			t.Errorf("ended %s: %v, want %v", when, err, why)
		}
	}
	close(release)
	s = newPool(t, nil).Server(childConfig(t, "modern"), "")
	works(t, s)
	if _, err := s.Call(t.Context(), &mcp.CallToolParams{Name: "hang"}, &upstream.CallOptions{Timeout: 1e6}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("too late: %v, want a deadline", err)
	}
}

func TestServerIsNotifiedOfCancelledCall(t *testing.T) {
	for _, era := range []string{"modern", "legacy"} {
		t.Run(era, func(t *testing.T) {
			s := newPool(t, nil).Server(childConfig(t, era), "")
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error)
			go func() {
				_, err := s.Call(ctx, &mcp.CallToolParams{Name: "hang"}, nil)
				ended <- err
			}()
			calls(t, s, "wait_hanging")
			cancel()
			if err := <-ended; !errors.Is(err, context.Canceled) {
				t.Errorf("it ended with %v", err)
			}
			calls(t, s, "wait_over")
		})
	}
}

func calls(t *testing.T, s *upstream.Server, tool string) {
	t.Helper()
	if res, err := s.Call(t.Context(), &mcp.CallToolParams{Name: tool}, nil); err != nil || res.IsError {
		t.Fatalf("%s: %v, %v", tool, res, err)
	}
}

// What a server of standard input and output answers comes whole, whatever of a
// result it has.
func TestResultIsUnchanged(t *testing.T) {
	s := newPool(t, nil).Server(childConfig(t, "modern"), "")
	for _, text := range []string{"", "<b>&amp;</b>", "a\u2028b\nc\"d", strings.Repeat("é", 200_000)} {
		res, err := s.Call(t.Context(), &mcp.CallToolParams{Name: "echo", Arguments: echoArgs{Text: text}}, nil)
		if err != nil || len(res.Content) != 1 {
			t.Fatalf("%v, %v", res, err)
		}
		if got, ok := res.Content[0].(*mcp.TextContent); !ok || got.Text != text {
			t.Errorf("%.40q came back as %.40q", text, got.Text)
		}
	}
}
