package oauth

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/oauth2"
)

const notThere = "public server refers to non-public address"

// private is a server of this machine, which counts who reaches it.
func private(t *testing.T) (string, *atomic.Int32) {
	reached := &atomic.Int32{}
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Add(1) }))
	t.Cleanup(s.Close)
	return s.URL, reached
}

func get(client *http.Client, at string) error {
	res, err := client.Get(at)
	if err != nil {
		return err
	}
	return res.Body.Close()
}

func TestPublicServersRedirectToPublicAddressesOnly(t *testing.T) {
	at, reached := private(t)
	client, guard, err := newClient("https://mcp.example.com/mcp", nil)
	if err != nil {
		t.Fatal(err)
	}
	page, err := url.Parse(at + "/authorize")
	if err != nil {
		t.Fatal(err)
	}
	public, local := netip.MustParseAddr("1.1.1.1"), netip.MustParseAddr("127.0.0.1")
	for _, tt := range []struct {
		name string
		meet func()
		ok   bool
	}{
		{"not met", func() {}, false},
		{"at an address that is not known", func() { guard.setAddress(netip.Addr{}) }, false},
		{"at first public, then not", func() { guard.restore(true); guard.setAddress(public); guard.setAddress(local) }, false},
		{"met when the person signed in, public", func() { guard.restore(false) }, false},
		{"met when the person signed in", func() { guard.restore(true) }, true},
		{"here", func() { guard.known = false; guard.setAddress(local) }, true},
	} {
		tt.meet()
		reached.Store(0)
		for what, err := range map[string]error{"a request": get(client, at+"/.well-known/oauth-authorization-server"), "a page": guard.check(t.Context(), page)} {
			if tt.ok && err != nil || !tt.ok && (err == nil || !strings.Contains(err.Error(), notThere)) {
				t.Errorf("%s: %s: %v", tt.name, what, err)
			}
		}
		if got := reached.Load() > 0; got != tt.ok {
			t.Errorf("%s: the private address was reached: %v", tt.name, got)
		}
	}
}

func TestNamesDoNotMakeAServerPrivate(t *testing.T) {
	at, reached := private(t)
	before, _, err := newClient("https://localhost:1/mcp", nil) // a name that leads to this machine
	if err != nil {
		t.Fatal(err)
	}
	if err := get(before, at); err == nil || !strings.Contains(err.Error(), notThere) || reached.Load() > 0 {
		t.Errorf("before it was connected to: %v, reached %d times", err, reached.Load())
	}
	own, _ := private(t)
	u, err := url.Parse(own)
	if err != nil {
		t.Fatal(err)
	}
	u.Host = net.JoinHostPort("localhost", u.Port())
	client, guard, err := newClient(u.String()+"/mcp", nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, to := range []string{u.String() + "/mcp", at} {
		if err := get(client, to); err != nil {
			t.Errorf("from a server that is connected to here: %v", err)
		}
	}
	// A public one whose name leads here from now on.
	guard.setAddress(netip.MustParseAddr("1.1.1.1"))
	if err := get(client, u.String()+"/mcp"); err == nil || !strings.Contains(err.Error(), notThere) {
		t.Errorf("a name that leads elsewhere by now: %v", err)
	}
}

func TestResponseLimits(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, strings.Repeat("a", maxBody+1))
	}))
	t.Cleanup(s.Close)
	client, _, err := newClient(s.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := client.Get(s.URL + "/.well-known/x")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if b, err := io.ReadAll(res.Body); err != nil || len(b) != maxBody {
		t.Errorf("%d bytes, %v; want %d", len(b), err, maxBody)
	}
}

func TestFormsAreNotRedirected(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the form was sent on") }))
	t.Cleanup(elsewhere.Close)
	s := httptest.NewServer(http.RedirectHandler(elsewhere.URL, http.StatusTemporaryRedirect))
	t.Cleanup(s.Close)
	client, _, err := newClient(s.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := client.PostForm(s.URL, url.Values{"code": {"x"}})
	if err != nil || res.StatusCode != http.StatusTemporaryRedirect {
		t.Fatalf("answered %v, %v", res, err)
	}
	res.Body.Close()
}

func TestCanonical(t *testing.T) {
	for in, want := range map[string]string{
		"https://MCP.example.com:443/mcp#x": "https://mcp.example.com/mcp",
		"https://me:pass@example.com/":      "https://example.com",
		"http://127.0.0.1:80/mcp":           "http://127.0.0.1/mcp",
		"https://example.com:8443/a/?b=c":   "https://example.com:8443/a/?b=c",
		"wss://example.com/mcp":             "https://example.com/mcp",
	} {
		if got := CanonicalURL(in); got != want {
			t.Errorf("Canonical(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestErrorsAreCleaned(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want string
	}{
		{&url.Error{Op: "Get", URL: "https://example.com/a?key=s3cret", Err: errors.New("refused")}, "example.com: refused"},
		{errors.New(`fetch "https://example.com/a?key=s3cret": bad`), `fetch "https://example.com/a": bad`},
		{&oauth2.RetrieveError{ErrorCode: "invalid_grant", ErrorDescription: "no\n\x1b[2J", Body: []byte("s3cret")}, "authorization server: invalid_grant: no  [2J"},
		{errors.New("failed: 500\nResponse: {\"access_token\": \"s3cret\"}"), "failed: 500"},
	} {
		if got := (safeError{tt.err}).Error(); got != tt.want {
			t.Errorf("got %q, want %q", got, tt.want)
		}
	}
}

func TestErrorsHideAuthorizationServerAddress(t *testing.T) {
	const inside = "http://127.0.0.2:1"
	for name, issuer := range map[string]func(own string) string{
		"named":      func(string) string { return inside },
		"redirected": func(own string) string { return own },
	} {
		mux := http.NewServeMux()
		server := httptest.NewServer(mux)
		t.Cleanup(server.Close)
		mux.HandleFunc("/mcp", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) })
		mux.HandleFunc("/.well-known/oauth-protected-resource/mcp", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"resource":%q,"authorization_servers":[%q]}`, server.URL+"/mcp", issuer(server.URL))
		})
		mux.Handle("/.well-known/oauth-authorization-server", http.RedirectHandler(inside+"/about", http.StatusFound))
		s := NewStore(FileStorage(t.TempDir()), "ada").PublicOnly([]netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")})
		_, err := s.Begin(t.Context(), &Target{Server: server.URL + "/mcp", Redirect: "http://127.0.0.1/callback"})
		if refused, ok := errors.AsType[*PrivateAddressError](err); !ok || refused.Host != "127.0.0.2:1" {
			t.Errorf("%s: the error is %v", name, err)
		}
	}
}
