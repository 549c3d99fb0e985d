package upstream_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/oauth2"

	"github.com/loadout-dev/loadout/internal/upstream"
)

// guided has a token and cannot prompt.
type guided struct{ token string }

func (g guided) TokenSource(context.Context) (oauth2.TokenSource, error) {
	return oauth2.StaticTokenSource(&oauth2.Token{AccessToken: g.token}), nil
}

func (guided) Authorize(_ context.Context, _ *http.Request, res *http.Response) error {
	res.Body.Close()
	return errors.New("nobody is there")
}

func (guided) Next() string { return "sign in with: there" }

// Errors of connections and calls say what the user can do.
func TestGuide(t *testing.T) {
	var shut atomic.Bool
	h := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return newServer("guarded") }, &mcp.StreamableHTTPOptions{Stateless: true})
	u := serveHandler(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if shut.Load() || r.Header.Get("Authorization") != "Bearer t0ken-value" {
			http.Error(w, "no", http.StatusUnauthorized)
			return
		}
		h.ServeHTTP(w, r)
	}))
	d := newDialer()
	d.OAuth = func(*upstream.Config, string) auth.OAuthHandler { return guided{"t0ken-value"} }
	s := newPool(t, &upstream.PoolOptions{Dialer: d}).Server(&upstream.Config{Name: "guarded", URLs: []string{u}}, "")
	works(t, s)
	shut.Store(true)
	_, err := call(t, s, "echo", map[string]any{"text": "x"}, nil)
	if _, ok := errors.AsType[*upstream.AuthError](err); !ok {
		t.Fatalf("a call fails with %v, want an AuthError", err)
	}
	contains(t, "error of a call", err.Error(), `server "guarded" refused access (401 Unauthorized): sign in with: there`)
	s.Retry()
	err = s.Connect(t.Context())
	if err == nil {
		t.Fatal("it connects")
	}
	contains(t, "error", err.Error(), "sign in with: there")
	if st := s.Status(); st.State == upstream.Ready || strings.Contains(st.Error, "t0ken-value") {
		t.Errorf("state %s, %q", st.State, st.Error)
	}
}

// forgetful has the token that is stored, if the storage can be read.
type forgetful struct {
	guided
	broken *atomic.Bool
}

func (f forgetful) TokenSource(ctx context.Context) (oauth2.TokenSource, error) {
	if f.broken.Load() {
		return nil, unreadable{errors.New("database cannot be reached; try again")}
	}
	return f.guided.TokenSource(ctx)
}

func (f forgetful) Authorize(_ context.Context, _ *http.Request, res *http.Response) error {
	res.Body.Close()
	return unreadable{errors.New("database cannot be reached; try again")}
}

// When a sign-in cannot be read or refreshed, calls fail with that reason alone. The
// server counts as healthy: its connection stays open, and calls work again at once.
func TestUnreadableSignIn(t *testing.T) {
	for _, kind := range []string{"modern", "legacy"} {
		t.Run(kind, func(t *testing.T) {
			var broken, expired atomic.Bool
			h := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return newServer(kind) }, &mcp.StreamableHTTPOptions{Stateless: kind == "modern"})
			u := serveHandler(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if expired.Load() {
					http.Error(w, "no", http.StatusUnauthorized)
					return
				}
				h.ServeHTTP(w, r)
			}))
			d := newDialer()
			d.OAuth = func(*upstream.Config, string) auth.OAuthHandler { return forgetful{guided{"t0ken-value"}, &broken} }
			p := newPool(t, &upstream.PoolOptions{Dialer: d})
			s := p.Server(&upstream.Config{Name: "one", URLs: []string{u}}, "")
			fails := func(when string) {
				t.Helper()
				for range 6 {
					_, err := call(t, s, "echo", map[string]any{"text": "x"}, nil)
					if _, ok := errors.AsType[upstream.LocalError](err); !ok {
						t.Fatalf("%s: error %v, want a LocalError", when, err)
					}
					contains(t, when, err.Error(), `server "one"`, ": database cannot be reached; try again")
					if strings.Contains(err.Error(), "rejected") || strings.Contains(err.Error(), "Unauthorized") {
						t.Errorf("%s: the error %q blames the server", when, err)
					}
				}
			}
			broken.Store(true)
			fails("not connected")
			broken.Store(false)
			works(t, s)
			broken.Store(true)
			fails("connected")
			if st := s.Status(); st.State != upstream.Ready {
				t.Errorf("state = %s (%s), want READY", st.State, st.Error)
			}
			broken.Store(false)
			works(t, s)
			expired.Store(true)
			fails("token expired")
			expired.Store(false)
			works(t, s)
		})
	}
}

// A server that repeats the token does not have us show it.
func TestTokensAreRedacted(t *testing.T) {
	s := newServer("echoing")
	s.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			if method == "tools/call" {
				return nil, errors.New("bad token " + req.GetExtra().Header.Get("Authorization"))
			}
			return next(ctx, method, req)
		}
	})
	h := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, &mcp.StreamableHTTPOptions{Stateless: true})
	d := newDialer()
	d.OAuth = func(*upstream.Config, string) auth.OAuthHandler { return guided{"t0ken-value"} }
	c, unset := (&upstream.Config{Name: "echoing", URLs: []string{serveHandler(t, h)}}).Resolve(upstream.Variables{})
	if len(unset) > 0 {
		t.Fatal(unset)
	}
	_, err := call(t, newPool(t, &upstream.PoolOptions{Dialer: d}).Server(c, ""), "echo", map[string]any{"text": "x"}, nil)
	if err == nil || strings.Contains(err.Error(), "t0ken") || !strings.Contains(err.Error(), "bad token Bearer •••") {
		t.Errorf("error %v; want it without the token", err)
	}
}

func TestParseOAuth(t *testing.T) {
	for _, tt := range []struct {
		name, src string
		want      *upstream.OAuthClient
		found     string
	}{
		{"ours", `{"clientId": "a", "clientSecret": "${{secrets.S}}", "scopes": ["x", "y"], "redirectPort": 8123}`, &upstream.OAuthClient{ID: "a", Secret: "${{secrets.S}}", Scopes: []string{"x", "y"}, Redirect: "http://127.0.0.1:8123/callback"}, ""},
		{"Claude Code", `{"clientId": "a", "callbackPort": 8123}`, &upstream.OAuthClient{ID: "a", Redirect: "http://localhost:8123/callback"}, ""},
		{"Cursor", `{"CLIENT_ID": "a", "CLIENT_SECRET": "b", "scopes": ["x"]}`, &upstream.OAuthClient{ID: "a", Secret: "b", Scopes: []string{"x"}}, ""},
		{"Gemini", `{"enabled": true, "clientId": "a", "scopes": "x y", "redirectUri": "http://localhost:7777/back"}`, &upstream.OAuthClient{ID: "a", Scopes: []string{"x", "y"}, Redirect: "http://localhost:7777/back"}, "server-key"},
		{"an issuer", `{"issuer": "https://login.example.com/a"}`, &upstream.OAuthClient{Issuer: "https://login.example.com/a"}, ""},
		{"no issuer, which no server fits", `{"issuer": "login.example.com"}`, &upstream.OAuthClient{Issuer: "login.example.com"}, "server-oauth"},
		{"no port", `{"redirectPort": 70000}`, &upstream.OAuthClient{}, "server-oauth"},
		{"a secret alone", `{"clientSecret": "b"}`, &upstream.OAuthClient{Secret: "b"}, "server-oauth"},
		{"no client", `true`, nil, "server-oauth"},
	} {
		f, ds := upstream.Parse([]byte(`{"mcpServers": {"a": {"url": "https://example.com/mcp", "oauth": `+tt.src+`}}}`), upstream.ParseOptions{Name: "mcp.json"})
		if len(f.Servers) != 1 {
			t.Errorf("%s: %d servers", tt.name, len(f.Servers))
			continue
		}
		if diff := cmp.Diff(tt.want, f.Servers[0].OAuth); diff != "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
		code := ""
		for _, d := range ds {
			code = d.Code
		}
		if code != tt.found {
			t.Errorf("%s: found %q, want %q", tt.name, code, tt.found)
		}
	}
}

// A secret of a client is resolved, and in no digest.
func TestResolveOAuth(t *testing.T) {
	c := &upstream.Config{Name: "a", URLs: []string{"https://example.com/mcp"}, OAuth: &upstream.OAuthClient{ID: "me", Secret: "${{secrets.S}}"}}
	got, unset := c.Resolve(upstream.Variables{Secret: func(name string) (string, bool) { return "value-of-" + name, true }})
	if len(unset) > 0 || got.OAuth.Secret != "value-of-S" || c.OAuth.Secret != "${{secrets.S}}" {
		t.Fatalf("resolved to %+v, %v; from %+v", got, unset, c.OAuth)
	}
	if got.Digest() != c.Digest() {
		t.Error("the digest depends on a secret")
	}
	if _, unset := c.Resolve(upstream.Variables{Secret: func(string) (string, bool) { return "", false }}); len(unset) != 1 || unset[0].Name != "S" {
		t.Errorf("without the secret: %v", unset)
	}
	if js, err := json.Marshal(&upstream.Config{Name: "a"}); err != nil || strings.Contains(string(js), "oauth") {
		t.Errorf("a server without a client is %s, %v", js, err)
	}
}
