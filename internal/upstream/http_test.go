package upstream_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/oauth2"

	"github.com/loadout-dev/loadout/internal/upstream"
)

func TestHeadersAreSentToTheirHostOnly(t *testing.T) {
	const secret = "Bearer s3cret-token"
	var mu sync.Mutex
	var leaked, reached []string
	note := func(r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		reached = append(reached, r.Method)
		for k, v := range r.Header {
			if strings.Contains(strings.Join(v, ""), "s3cret") || k == "Mcp-Session-Id" {
				leaked = append(leaked, k)
			}
		}
	}
	other := serveHTTP(t, "modern", note)
	u := serveHandler(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != secret || r.Header.Get("X-Key") != "s3cret-key" {
			t.Errorf("the headers did not reach their host")
		}
		http.Redirect(w, r, other, http.StatusTemporaryRedirect)
	}))
	s := newPool(t, nil).Server(&upstream.Config{Name: "moved", URLs: []string{u}, Headers: map[string]string{"Authorization": secret, "x-key": "s3cret-key"}}, "")
	works(t, s)
	mu.Lock()
	defer mu.Unlock()
	if len(leaked) > 0 || len(reached) == 0 {
		t.Errorf("%v reached the other host in %d requests", leaked, len(reached))
	}
}

func TestMessagesAreSentToTheirHostOnly(t *testing.T) {
	reached := false
	other := serveHandler(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached = true }))
	u := serveHandler(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "event: endpoint\ndata: %s/steal\n\n", other)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}))
	_, err := newDialer().Dial(t.Context(), &upstream.Config{Name: "thief", Type: upstream.SSE, URLs: []string{u}}, nil)
	if err == nil || reached {
		t.Fatalf("err = %v, the other host was reached: %v", err, reached)
	}
	contains(t, "error", err.Error(), "messages to another host")
}

func TestErrorsHideSecrets(t *testing.T) {
	u := serveHandler(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if name, pass, _ := r.BasicAuth(); name != "me" || pass != "s3cret-pass" {
			t.Errorf("basic auth = %q", base64.StdEncoding.EncodeToString([]byte(r.Header.Get("Authorization"))))
		}
		w.Header().Set("WWW-Authenticate", "Bearer s3cret-head")
		if r.URL.Path == "/s3cret-path" {
			http.Error(w, "no", http.StatusTeapot)
			return
		}
		http.Error(w, "no", http.StatusUnauthorized)
	}))
	with := strings.Replace(u, "http://", "http://me:s3cret-pass@", 1)
	for _, cfg := range []*upstream.Config{
		{URLs: []string{with + "/mcp?key=s3cret-query"}},
		{URLs: []string{with + "/s3cret-path?key=s3cret-query"}},
		{URLs: []string{with + "/mcp"}, Type: upstream.WebSocket},
		{URLs: []string{with + "/mcp?key=s3cret-query"}, Type: upstream.SSE},
		{URLs: []string{"http://me:s3cret-pass@127.0.0.1:1/s3cret-path"}},
		{URLs: []string{"http://me:s3cret-pass@ 127.0.0.1:1/s3cret-path"}},
		{Command: "sh", Args: []string{"-c", `echo "key is $API_KEY" >&2; exit 1`}, Env: map[string]string{"API_KEY": "s3cret-env"}},
	} {
		cfg.Name = "secretive"
		cfg.Headers = map[string]string{"X-Head": "s3cret-head"}
		c, err := newDialer().Dial(t.Context(), cfg, nil)
		if err == nil {
			c.Close()
			t.Fatal("connected")
		}
		text := err.Error()
		if a, ok := err.(*upstream.AuthError); ok {
			text += a.Challenge
		}
		if strings.Contains(text, "s3cret") {
			t.Errorf("a secret is in %q", text)
		}
	}
}

// breakable serves a handler whose connections can be cut.
func breakable(t *testing.T, h http.Handler) *httptest.Server {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(func() {
		srv.CloseClientConnections()
		srv.Close()
		http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	})
	return srv
}

// The SDK opens its stream of notifications once; ours comes back.
func TestListenStreamReconnects(t *testing.T) {
	for _, kind := range []string{"modern", "legacy"} {
		t.Run(kind, func(t *testing.T) {
			one := newServer(kind)
			streams := make(chan struct{}, 100)
			h := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return one }, &mcp.StreamableHTTPOptions{Stateless: kind == "modern"})
			srv := breakable(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodGet || r.Header.Get("Mcp-Method") == "subscriptions/listen" {
					w = &flushed{w, streams}
				}
				h.ServeHTTP(w, r)
			}))
			p := newPool(t, nil)
			s := p.Server(&upstream.Config{Name: kind, URLs: []string{srv.URL}}, "")
			works(t, s)
			<-streams
			srv.CloseClientConnections()
			<-streams
			grown := make(chan struct{}, 100)
			defer p.Subscribe(func(s *upstream.Server) {
				if slices.ContainsFunc(s.LastListing().Tools, func(t *mcp.Tool) bool { return t.Name == "late" }) {
					grown <- struct{}{}
				}
			})()
			mcp.AddTool(one, &mcp.Tool{Name: "late"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
				return &mcp.CallToolResult{}, nil, nil
			})
			select {
			case <-grown:
			case <-time.After(20 * time.Second):
				t.Fatal("the change was not noticed")
			}
		})
	}
}

// flushed tells of the first flush: the stream is open.
type flushed struct {
	http.ResponseWriter
	open chan struct{}
}

func (f *flushed) Flush() {
	f.ResponseWriter.(http.Flusher).Flush()
	select {
	case f.open <- struct{}{}:
	default:
	}
}

func TestAnotherURL(t *testing.T) {
	h := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return newServer("two") }, &mcp.StreamableHTTPOptions{Stateless: true})
	a, b := breakable(t, h), breakable(t, h)
	s := newPool(t, nil).Server(&upstream.Config{Name: "two", Type: upstream.HTTP, URLs: []string{a.URL, b.URL}}, "")
	works(t, s)
	a.CloseClientConnections()
	a.Close()
	for { // a call that was on the lost connection may have been made; it is not repeated
		_, err := s.Call(t.Context(), &mcp.CallToolParams{Name: "echo", Arguments: map[string]any{"text": "x"}}, nil)
		if _, unknown := errors.AsType[*upstream.OutcomeUnknownError](err); !unknown {
			break
		}
	}
	works(t, s)
}

// signing is an OAuth handler whose user signs in on request.
type signing struct{ asked atomic.Int32 }

func (s *signing) TokenSource(context.Context) (oauth2.TokenSource, error) {
	if s.asked.Load() == 0 {
		return nil, nil
	}
	return oauth2.StaticTokenSource(&oauth2.Token{AccessToken: "granted"}), nil
}

func (s *signing) Authorize(_ context.Context, _ *http.Request, res *http.Response) error {
	res.Body.Close()
	s.asked.Add(1)
	return nil
}

func TestOAuth(t *testing.T) {
	for _, stateless := range []bool{true, false} {
		h := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return newServer("guarded") }, &mcp.StreamableHTTPOptions{Stateless: stateless})
		u := serveHandler(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") != "Bearer granted" {
				http.Error(w, "no", http.StatusUnauthorized)
				return
			}
			h.ServeHTTP(w, r)
		}))
		who := &signing{}
		d := newDialer()
		d.OAuth = func(*upstream.Config, string) auth.OAuthHandler { return who }
		works(t, newPool(t, &upstream.PoolOptions{Dialer: d}).Server(&upstream.Config{Name: "guarded", URLs: []string{u}}, ""))
		if n := who.asked.Load(); n != 1 {
			t.Errorf("the user was asked %d times", n)
		}
	}
}

// A request of a legacy server during a call goes to the caller.
func TestLegacyServerRequests(t *testing.T) {
	s := newServer("legacy")
	mcp.AddTool(s, &mcp.Tool{Name: "asks"}, func(ctx context.Context, req *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
		r, err := req.Session.Elicit(ctx, &mcp.ElicitParams{Message: "name?"})
		if err != nil {
			return nil, nil, err
		}
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: r.Action}}}, nil, nil
	})
	u := serveHTTPOf(t, "legacy", s, nil)
	srv := newPool(t, nil).Server(&upstream.Config{Name: "legacy", URLs: []string{u}}, "")
	for want, o := range map[string]*upstream.CallOptions{
		"cancel": nil,
		"decline": {Elicit: func(context.Context, *mcp.ElicitParams) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: "decline"}, nil
		}},
	} {
		if got, err := call(t, srv, "asks", nil, o); err != nil || got != want {
			t.Errorf("answered %q, %v; want %q", got, err, want)
		}
	}
}

// A call that ends here ends at the server too: by a notification of the older era,
// and with its request in the newer.
func TestTimedOutCallIsCancelledOnServer(t *testing.T) {
	for _, era := range []string{upstream.Legacy, upstream.Modern} {
		t.Run(era, func(t *testing.T) {
			began, ended := make(chan struct{}, 16), make(chan struct{}, 16)
			srv := newServer("waits")
			mcp.AddTool(srv, &mcp.Tool{Name: "wait"}, func(ctx context.Context, _ *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
				began <- struct{}{}
				<-ctx.Done()
				ended <- struct{}{}
				return nil, nil, ctx.Err()
			})
			mcp.AddTool(srv, &mcp.Tool{Name: "return"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
				return &mcp.CallToolResult{}, nil, nil
			})
			modern := era == upstream.Modern
			u := serveHandler(t, mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return srv }, &mcp.StreamableHTTPOptions{Stateless: modern, PropagateRequestCancellation: modern}))
			s := newPool(t, nil).Server(&upstream.Config{Name: "waits", Type: upstream.HTTP, URLs: []string{u}}, "")
			if _, err := s.Call(t.Context(), &mcp.CallToolParams{Name: "return"}, nil); err != nil { // connects, so that the time below is that of the call
				t.Fatal(err)
			}
			timeout := time.Second
			for arrived := false; !arrived; timeout *= 2 { // on a slow machine, a call may end before it arrives
				_, err := s.Call(t.Context(), &mcp.CallToolParams{Name: "wait"}, &upstream.CallOptions{Timeout: timeout})
				if unknown, ok := errors.AsType[*upstream.OutcomeUnknownError](err); !ok {
					t.Fatalf("%v, %v", unknown, err)
				}
				select {
				case <-began:
					arrived = true
				default:
				}
			}
			if got := s.Status().Era; got != era {
				t.Fatalf("the era is %s", got)
			}
			<-ended
		})
	}
}
