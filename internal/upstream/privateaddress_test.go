package upstream_test

import (
	"errors"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/upstream"
)

var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}

func TestUntrustedServersReachPublicAddressesOnly(t *testing.T) {
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:1") // of no use to them
	for _, kind := range []string{"modern", "legacy", "sse", "websocket"} {
		t.Run(kind, func(t *testing.T) {
			reached := make(chan struct{}, 100)
			u := serveHTTP(t, kind, func(*http.Request) {
				select {
				case reached <- struct{}{}:
				default:
				}
			})
			cfg := &upstream.Config{Name: "theirs", URLs: []string{strings.Replace(u, "127.0.0.1", "localhost", 1)}, Owner: "skill x"}
			switch kind {
			case "sse":
				cfg.Type = upstream.SSE
			case "websocket":
				cfg.URLs[0] = "ws" + strings.TrimPrefix(cfg.URLs[0], "http")
			}
			d := newDialer()
			d.HTTP = &http.Client{Transport: http.DefaultTransport}
			c, err := d.Dial(t.Context(), cfg, nil)
			if err == nil {
				c.Close()
				t.Fatal("connected")
			}
			if len(reached) > 0 {
				t.Error("the server was reached")
			}
			var private *upstream.PrivateAddressError
			if !errors.As(err, &private) {
				t.Fatalf("error = %v (%T)", err, err)
			}
			if private.Host != "localhost" || private.Owner != "skill x" || !private.Addr.IsLoopback() {
				t.Errorf("error = %+v", private)
			}
			contains(t, "error", err.Error(), `"localhost"`, "loopback", "sandbox.private", "skill x")

			d = newDialer()
			d.Private = loopback
			c, err = d.Dial(t.Context(), cfg, nil)
			if err != nil {
				t.Fatal(err)
			}
			echo(t, c.ClientSession, "hello")
			c.Close()

			cfg.Owner = ""
			c, err = newDialer().Dial(t.Context(), cfg, nil)
			if err != nil {
				t.Fatal(err)
			}
			c.Close()
		})
	}
}

func TestUntrustedServerRedirects(t *testing.T) {
	d := newDialer()
	d.Private = loopback
	other := serveHTTP(t, "modern", nil)
	away := serveHandler(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other, http.StatusTemporaryRedirect)
	}))
	c, err := d.Dial(t.Context(), &upstream.Config{Name: "moved", URLs: []string{away}, Owner: "skill x"}, nil)
	if err == nil {
		c.Close()
		t.Fatal("a redirect to another origin was followed")
	}
	contains(t, "error", err.Error(), "redirect to "+other, "skill x")

	to := serveHTTP(t, "modern", nil)
	near := serveHandler(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/mcp/" {
			http.Redirect(w, r, "/mcp/", http.StatusTemporaryRedirect)
			return
		}
		http.Redirect(w, r, to, http.StatusTemporaryRedirect)
	}))
	_, err = d.Dial(t.Context(), &upstream.Config{Name: "near", URLs: []string{near + "/mcp"}, Owner: "skill x"}, nil)
	if err == nil {
		t.Fatal("connected")
	}
	contains(t, "error after one redirect of its own", err.Error(), "redirect to "+to)
}
