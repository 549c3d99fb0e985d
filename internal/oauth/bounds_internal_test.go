package oauth

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"golang.org/x/oauth2"
)

func TestCheckToken(t *testing.T) {
	const most = 64 << 10
	for name, tt := range map[string]struct {
		token oauth2.Token
		want  string
	}{
		"bearer":       {oauth2.Token{AccessToken: "abc~!"}, ""},
		"as written":   {oauth2.Token{AccessToken: "abc", TokenType: "BEARER"}, ""},
		"longest":      {oauth2.Token{AccessToken: strings.Repeat("a", most), RefreshToken: strings.Repeat("a", most)}, ""},
		"another type": {oauth2.Token{AccessToken: "abc", TokenType: "mac"}, "unsupported token type"},
		"too long":     {oauth2.Token{AccessToken: strings.Repeat("a", most+1)}, "too long"},
		"long refresh": {oauth2.Token{AccessToken: "abc", RefreshToken: strings.Repeat("a", most+1)}, "too long"},
		"a space":      {oauth2.Token{AccessToken: "a b"}, "invalid characters"},
		"a line":       {oauth2.Token{AccessToken: "a\nb"}, "invalid characters"},
		"not ASCII":    {oauth2.Token{AccessToken: "a\u007f"}, "invalid characters"},
	} {
		err := checkToken(&tt.token)
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
	}
}

// Only an answer that ends the sign-in for good counts as a refusal.
func TestIsRefusal(t *testing.T) {
	for code, want := range map[string]bool{"invalid_grant": true, "invalid_client": true, "unauthorized_client": true, "unsupported_grant_type": true, "invalid_request": false, "": false} {
		if got := isRefusal(&oauth2.RetrieveError{ErrorCode: code}); got != want {
			t.Errorf("%q is a refusal: %t", code, got)
		}
	}
	if isRefusal(errors.New("invalid_grant")) {
		t.Error("another error is a refusal")
	}
}

func TestCheckRedirect(t *testing.T) {
	request := func(method, at string) *http.Request {
		r, err := http.NewRequest(method, at, nil)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	via := func(n int, method, at string) (all []*http.Request) {
		for range n {
			all = append(all, request(method, at))
		}
		return all
	}
	for name, tt := range map[string]struct {
		to   string
		via  []*http.Request
		want string
	}{
		"GET":             {"https://b.example.com/", via(1, "GET", "https://a.example.com/"), ""},
		"POST":            {"https://b.example.com/", via(1, "POST", "https://a.example.com/"), http.ErrUseLastResponse.Error()},
		"to HTTP":         {"http://b.example.com/", via(1, "GET", "https://a.example.com/"), "from https to http"},
		"from HTTP":       {"http://b.example.com/", via(1, "GET", "http://a.example.com/"), ""},
		"the last of all": {"https://b.example.com/", via(maxRedirects, "GET", "https://a.example.com/"), ""},
		"one too many":    {"https://b.example.com/", via(maxRedirects+1, "GET", "https://a.example.com/"), "too many redirects"},
	} {
		err := checkRedirect(request("GET", tt.to), tt.via)
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
	}
}

func TestIsSecure(t *testing.T) {
	for at, want := range map[string]bool{
		"https://a.example.com": true, "http://a.example.com": false, "http://localhost:1": true, "http://127.0.0.2": true, "http://[::1]:1": true, "http://[::ffff:127.0.0.1]": true, "ftp://localhost": false, "http://192.0.2.1": false,
	} {
		u, err := url.Parse(at)
		if err != nil {
			t.Fatal(err)
		}
		if got := isSecure(u); got != want {
			t.Errorf("%s is secure: %t", at, got)
		}
	}
}

// A request that is not encrypted is never sent.
func TestPlainRequestsAreRefused(t *testing.T) {
	client, guard, err := newClient("https://mcp.example.com/mcp", nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := get(client, "http://192.0.2.1/x"); err == nil || !strings.Contains(err.Error(), "does not use https") {
		t.Errorf("sent: %v", err)
	}
	u, _ := url.Parse("http://192.0.2.1/authorize")
	if err := guard.check(t.Context(), u); err == nil || !strings.Contains(err.Error(), "does not use https") {
		t.Errorf("a page: %v", err)
	}
	for _, server := range []string{"", "/mcp", "https://", "https://a\x7f/"} {
		if _, _, err := newClient(server, nil); err == nil {
			t.Errorf("server %q is valid", server)
		}
	}
}

func TestCallbackListens(t *testing.T) {
	for redirect, want := range map[string]string{
		"": "http://127.0.0.1:", "http://localhost:0/back": "http://127.0.0.1:", "http://[::1]:0": "http://[::1]:",
		"https://127.0.0.1:0/": "invalid", "http://192.0.2.1:0/": "invalid", "http://127.0.0.1/": "invalid", "http://u@127.0.0.1:0/": "invalid", "http://127.0.0.1:0\x7f": "invalid",
	} {
		c, err := listen(redirect)
		if want == "invalid" {
			if err == nil || !strings.Contains(err.Error(), "invalid OAuth redirect URL") {
				t.Errorf("%q: %v", redirect, err)
			}
			continue
		}
		if err != nil {
			if strings.Contains(redirect, "::1") {
				continue // no IPv6
			}
			t.Fatal(err)
		}
		if !strings.HasPrefix(c.url, want) || strings.Contains(c.url, ":0") {
			t.Errorf("%q: listens at %s", redirect, c.url)
		}
		c.Close()
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if _, err := listen("http://" + l.Addr().String() + "/"); err == nil || !strings.Contains(err.Error(), "listen for OAuth callback") {
		t.Errorf("a port in use: %v", err)
	}
}

// The callback answers a browser with its page, and everything else with a status.
func TestCallbackAnswers(t *testing.T) {
	c := &callback{path: "/callback"}
	for name, tt := range map[string]struct {
		method, at string
		status     int
		text       string
		accepted   bool
	}{
		"done":          {"GET", "/callback?state=s&code=c", 200, "Sign-in complete", true},
		"denied":        {"GET", "/callback?state=s&error=access_denied", 200, "Sign-in denied", true},
		"another state": {"GET", "/callback?state=x&code=c", 400, "does not belong", false},
		"no code":       {"GET", "/callback?state=s", 400, "does not belong", false},
		"another path":  {"GET", "/?state=s&code=c", 404, "", false},
		"POST":          {"POST", "/callback?state=s&code=c", 405, "", false},
	} {
		f := &flow{state: "s", answer: make(chan url.Values, 1)}
		w := httptest.NewRecorder()
		c.handler(f).ServeHTTP(w, httptest.NewRequest(tt.method, tt.at, nil))
		if w.Code != tt.status || !strings.Contains(w.Body.String(), tt.text) || w.Header().Get("Cache-Control") != "no-store" || w.Header().Get("Referrer-Policy") != "no-referrer" || w.Header().Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %d %q %v", name, w.Code, w.Body, w.Header())
		}
		if got := len(f.answer) == 1; got != tt.accepted {
			t.Errorf("%s: accepted %t", name, got)
		}
	}
}

func TestSanitizeText(t *testing.T) {
	for text, want := range map[string]string{
		"see https://a.example.com/x?token=secret now": "see https://a.example.com/x now", "a\x1b[2Jb\n": "a [2Jb ", strings.Repeat("a", 300): strings.Repeat("a", 300),
		strings.Repeat("a", 301): strings.Repeat("a", 300) + "…", strings.Repeat("a", 299) + "é": strings.Repeat("a", 299) + "…",
	} {
		if got := sanitizeText(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// The issuer of a server is where its metadata says, else the server itself.
func TestFindIssuer(t *testing.T) {
	documents := map[string]string{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, ok := documents[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Write([]byte(text))
	}))
	defer s.Close()
	server, _ := url.Parse(s.URL + "/mcp")
	find := func(challenge string) (*metadata, error) {
		client, _, err := newClient(server.String(), nil)
		if err != nil {
			t.Fatal(err)
		}
		h := http.Header{}
		if challenge != "" {
			h.Set("WWW-Authenticate", challenge)
		}
		return findIssuer(t.Context(), client, server, h)
	}
	about := func(resource, issuers string) string {
		return `{"resource": "` + resource + `", "authorization_servers": [` + issuers + `], "scopes_supported": ["all"]}`
	}
	if m, err := find(`Bearer scope="a b"`); err != nil || m.Issuer != s.URL || m.Resource != server.String() || len(m.Scopes) != 2 {
		t.Errorf("without metadata: %+v, %v", m, err)
	}
	for challenge, want := range map[string]string{"": "", "Bearer": "", `DPoP scope="x"`: "", `Bearer realm="r", Bearer scope="b"`: "b", `DPoP scope="x", Bearer scope="b"`: "b"} {
		if m, err := find(challenge); err != nil || strings.Join(m.Scopes, " ") != want {
			t.Errorf("challenge %q: %+v, %v, want scopes %q", challenge, m, err, want)
		}
	}
	documents["/.well-known/oauth-protected-resource"] = about(s.URL, `"https://root.example.com"`)
	if m, err := find(""); err != nil || m.Issuer != "https://root.example.com" || len(m.Scopes) != 1 {
		t.Errorf("at the root: %+v, %v", m, err)
	}
	documents["/.well-known/oauth-protected-resource/mcp"] = about(server.String(), `"https://path.example.com", "https://other.example.com"`)
	if m, err := find(`Bearer scope="a b"`); err != nil || m.Issuer != "https://path.example.com" || len(m.Scopes) != 2 {
		t.Errorf("at the path: %+v, %v", m, err)
	}
	documents["/named"] = about(server.String(), `"https://named.example.com"`)
	if m, err := find(`Basic, Bearer resource_metadata="` + s.URL + `/named"`); err != nil || m.Issuer != "https://named.example.com" {
		t.Errorf("named: %+v, %v", m, err)
	}
	documents["/named"] = about(server.String(), "")
	if _, err := find(`Bearer resource_metadata="` + s.URL + `/named"`); err == nil || !strings.Contains(err.Error(), "no authorization server") {
		t.Errorf("none: %v", err)
	}
	if _, err := find(`Bearer "`); err == nil || !strings.Contains(err.Error(), "invalid WWW-Authenticate") {
		t.Errorf("damaged header: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	clear(documents)
	client, _, _ := newClient(server.String(), nil)
	if _, err := findIssuer(ctx, client, server, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// An issuer that cannot be one is never contacted.
func TestDiscoverChecksIssuer(t *testing.T) {
	for issuer, ok := range map[string]bool{
		"http://127.0.0.1:1": true, "https://": false, "https://u@a.example.com": false, "https://a.example.com?x": false, "https://a.example.com#x": false,
	} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.Write([]byte(`{"resource": "http://` + r.Host + `/mcp", "authorization_servers": ["` + issuer + `"]}`))
		}))
		client, guard, err := newClient(s.URL+"/mcp", nil)
		if err != nil {
			t.Fatal(err)
		}
		req, _ := http.NewRequestWithContext(t.Context(), "POST", s.URL+"/mcp", nil)
		accepted := false
		stop := errors.New("stop")
		_, err = discover(t.Context(), client, guard, req, &http.Response{}, func(got string) error {
			accepted = got == issuer
			return stop
		})
		if accepted != ok || errors.Is(err, stop) != ok || err == nil {
			t.Errorf("issuer %q: accepted %t, %v", issuer, accepted, err)
		}
		s.Close()
	}
}
