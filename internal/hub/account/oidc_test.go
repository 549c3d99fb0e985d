package account_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/loadout-dev/loadout/internal/encryption"
	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/account/oidctest"
)

// hub is a hub as small as can be: a page to sign in, and one to come back to.
type hub struct {
	*httptest.Server
	oidc *account.OIDC

	mu   sync.Mutex
	got  *account.Identity
	err  error
	last *url.URL // of the last return
}

func newHub(t *testing.T, p *oidctest.Provider, adjust func(*account.OIDCOptions)) *hub {
	t.Helper()
	h := &hub{}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /login", h.begin)
	mux.HandleFunc("GET /login/callback", h.finish)
	h.Server = httptest.NewServer(mux)
	t.Cleanup(h.Close)
	s, err := encryption.New(encryption.NewKey())
	if err != nil {
		t.Fatal(err)
	}
	o := account.OIDCOptions{Issuer: p.URL, ClientID: p.ClientID, ClientSecret: p.ClientSecret, Redirect: h.URL + "/login/callback", Cipher: s}
	if adjust != nil {
		adjust(&o)
	}
	if h.oidc, err = account.NewOIDC(o); err != nil {
		t.Fatal(err)
	}
	return h
}

func (h *hub) begin(w http.ResponseWriter, r *http.Request) {
	page, c, err := h.oidc.Start(r.Context(), r.FormValue("back"))
	if err != nil {
		h.note(nil, err, r.URL)
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	http.SetCookie(w, c)
	http.Redirect(w, r, page, http.StatusFound)
}

func (h *hub) finish(w http.ResponseWriter, r *http.Request) {
	id, err := h.oidc.Finish(r.Context(), r)
	http.SetCookie(w, h.oidc.ExpiredCookie())
	h.note(id, err, r.URL)
}

func (h *hub) note(id *account.Identity, err error, at *url.URL) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.got, h.err, h.last = id, err, at
}

func browser(t *testing.T) *http.Client {
	t.Helper()
	b, err := oidctest.Browser()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// visit opens a page and returns the result of the hub.
func (h *hub) visit(t *testing.T, b *http.Client, page string) (*account.Identity, error) {
	t.Helper()
	res, err := b.Get(page)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, res.Body)
	res.Body.Close()
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.got, h.err
}

func TestSignInWithProvider(t *testing.T) {
	p := oidctest.New(t)
	h := newHub(t, p, nil)
	if p.Requests("/.well-known/openid-configuration") != 0 {
		t.Error("the provider was asked before anybody signed in")
	}
	p.SetUser("ann-1", map[string]any{"preferred_username": "ann", "email": "ann@example.com", "email_verified": true, "groups": []string{"eng", "docs"}})
	want := &account.Identity{Issuer: p.URL, Subject: "ann-1", Name: "ann", Email: "ann@example.com", Groups: []string{"eng", "docs"}, ReturnTo: "/skills?page=2"}
	b := browser(t)
	for range 2 { // also with the keys of before
		got, err := h.visit(t, b, h.URL+"/login?back="+url.QueryEscape("/skills?page=2"))
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%v (-want +got)\n%s", err, diff)
		}
	}
	if n := p.Requests("/.well-known/openid-configuration"); n != 1 {
		t.Errorf("the provider was looked for %d times", n)
	}
	at, err := url.Parse(h.URL)
	if err != nil {
		t.Fatal(err)
	}
	if left := b.Jar.Cookies(at); len(left) > 0 {
		t.Errorf("the browser keeps %v", left)
	}
	p.Rotate(t)
	if _, err := h.visit(t, b, h.URL+"/login"); err != nil {
		t.Errorf("with a new key of the provider: %v", err)
	}
}

func TestClaims(t *testing.T) {
	p := oidctest.New(t)
	h := newHub(t, p, func(o *account.OIDCOptions) {
		o.GroupsClaim, o.NameClaim = "realm_access.roles", "https://example.com/name"
	})
	many := make([]string, 1001)
	tests := []struct {
		name   string
		claims map[string]any
		want   *account.Identity // nil is an error
	}{
		{"nothing", nil, &account.Identity{Groups: []string{}}},
		{"inside of others", map[string]any{"realm_access": map[string]any{"roles": []string{"a"}}, "https://example.com/name": "ann"}, &account.Identity{Name: "ann", Groups: []string{"a"}}},
		{"with a dot", map[string]any{"realm_access.roles": "a"}, &account.Identity{Groups: []string{"a"}}},
		{"an address that is not theirs", map[string]any{"email": "x@example.com"}, &account.Identity{Groups: []string{}}},
		{"an address that may be theirs", map[string]any{"email": "x@example.com", "email_verified": "yes"}, &account.Identity{Groups: []string{}}},
		{"a name that is none", map[string]any{"https://example.com/name": "a\x1b[31m\nb"}, &account.Identity{Groups: []string{}}},
		{"a name of another kind", map[string]any{"https://example.com/name": 7}, &account.Identity{Groups: []string{}}},
		{"a long name", map[string]any{"https://example.com/name": strings.Repeat("x", 256)}, &account.Identity{Groups: []string{}}},
		{"groups of another kind", map[string]any{"realm_access.roles": 7}, nil},
		{"a group of another kind", map[string]any{"realm_access.roles": []any{"a", 7}}, nil},
		{"too many groups", map[string]any{"realm_access.roles": many}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p.SetUser("x", tt.claims)
			got, err := h.visit(t, browser(t), h.URL+"/login")
			if tt.want == nil {
				if _, ok := errors.AsType[*account.ProviderError](err); !ok || got != nil {
					t.Errorf("%+v, %v", got, err)
				}
				return
			}
			tt.want.Issuer, tt.want.Subject, tt.want.ReturnTo = p.URL, "x", "/"
			if diff := cmp.Diff(tt.want, got); diff != "" || err != nil {
				t.Errorf("%v (-want +got)\n%s", err, diff)
			}
		})
	}
}

func TestForgedTokensAreRefused(t *testing.T) {
	hour := time.Now().Add(-time.Hour).Unix()
	for name, forge := range map[string]func(t *testing.T, p *oidctest.Provider){
		"another client":  func(_ *testing.T, p *oidctest.Provider) { p.Forge(map[string]any{"aud": "other"}) },
		"several clients": func(_ *testing.T, p *oidctest.Provider) { p.Forge(map[string]any{"aud": []string{"hub", "other"}}) },
		"made for another": func(_ *testing.T, p *oidctest.Provider) {
			p.Forge(map[string]any{"aud": []string{"hub", "other"}, "azp": "other"})
		},
		"another issuer":        func(_ *testing.T, p *oidctest.Provider) { p.Forge(map[string]any{"iss": "https://id.example.com"}) },
		"another sign-in":       func(_ *testing.T, p *oidctest.Provider) { p.Forge(map[string]any{"nonce": "other"}) },
		"no sign-in":            func(_ *testing.T, p *oidctest.Provider) { p.Forge(map[string]any{"nonce": nil}) },
		"expired":               func(_ *testing.T, p *oidctest.Provider) { p.Forge(map[string]any{"exp": hour}) },
		"no end":                func(_ *testing.T, p *oidctest.Provider) { p.Forge(map[string]any{"exp": nil}) },
		"another access token":  func(_ *testing.T, p *oidctest.Provider) { p.Forge(map[string]any{"at_hash": "AAAAAAAAAAAAAAAAAAAAAA"}) },
		"nobody":                func(_ *testing.T, p *oidctest.Provider) { p.Forge(map[string]any{"sub": ""}) },
		"a subject without end": func(_ *testing.T, p *oidctest.Provider) { p.Forge(map[string]any{"sub": strings.Repeat("x", 256)}) },
		"no ID token":           func(_ *testing.T, p *oidctest.Provider) { p.Withhold() },
		"another key":           func(t *testing.T, p *oidctest.Provider) { p.Impersonate(t) },
		"an algorithm of no use": func(_ *testing.T, p *oidctest.Provider) {
			p.Describe(map[string]any{"id_token_signing_alg_values_supported": []string{"none", "RS256"}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := oidctest.New(t)
			forge(t, p)
			h := newHub(t, p, nil)
			got, err := h.visit(t, browser(t), h.URL+"/login")
			if e, ok := errors.AsType[*account.ProviderError](err); !ok || got != nil || e.Denied || e.Step != "check the ID token" {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
	p := oidctest.New(t)
	p.Forge(map[string]any{"aud": []string{"hub", "other"}, "azp": "hub"})
	h := newHub(t, p, nil)
	if got, err := h.visit(t, browser(t), h.URL+"/login"); err != nil || got == nil {
		t.Errorf("made for us among others: %v", err)
	}
}

func TestUnknownReturnsAreRefused(t *testing.T) {
	p := oidctest.New(t)
	h := newHub(t, p, nil)
	b := browser(t)
	if _, err := h.visit(t, b, h.URL+"/login"); err != nil {
		t.Fatal(err)
	}
	used := h.URL + h.last.String()
	begun := func(b *http.Client) string { // a started sign-in and its redirect
		b.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
		defer func() { b.CheckRedirect = nil }()
		res, err := b.Get(h.URL + "/login")
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		back, err := b.Get(res.Header.Get("Location"))
		if err != nil {
			t.Fatal(err)
		}
		back.Body.Close()
		return back.Header.Get("Location")
	}
	change := func(at, name, value string) string {
		u, err := url.Parse(at)
		if err != nil {
			t.Fatal(err)
		}
		q := u.Query()
		q.Set(name, value)
		if value == "" {
			q.Del(name)
		}
		u.RawQuery = q.Encode()
		return u.String()
	}
	tests := map[string]func() (*http.Client, string){
		"once more":          func() (*http.Client, string) { return b, used },
		"in another browser": func() (*http.Client, string) { return browser(t), begun(browser(t)) },
		"in another browser that began, too": func() (*http.Client, string) {
			other := browser(t)
			begun(other)
			return other, begun(browser(t))
		},
		"another state": func() (*http.Client, string) { b := browser(t); return b, change(begun(b), "state", "other") },
		"no state":      func() (*http.Client, string) { b := browser(t); return b, change(begun(b), "state", "") },
		"another code":  func() (*http.Client, string) { b := browser(t); return b, change(begun(b), "code", "other") },
		"no code":       func() (*http.Client, string) { b := browser(t); return b, change(begun(b), "code", "") },
		"another provider": func() (*http.Client, string) {
			b := browser(t)
			return b, change(begun(b), "iss", "https://evil.example.com")
		},
		"a code for another begin": func() (*http.Client, string) { // PKCE binds a code to its own
			other := browser(t)
			u, err := url.Parse(begun(other))
			if err != nil {
				t.Fatal(err)
			}
			b := browser(t)
			return b, change(begun(b), "code", u.Query().Get("code"))
		},
	}
	for name, f := range tests {
		t.Run(name, func(t *testing.T) {
			b, at := f()
			got, err := h.visit(t, b, at)
			if _, ok := errors.AsType[*account.ProviderError](err); !ok || got != nil {
				t.Errorf("%+v, %v", got, err)
			} else if code := h.last.Query().Get("code"); code != "" && strings.Contains(err.Error(), code) {
				t.Errorf("the code is in %v", err)
			}
		})
	}
}

func TestExpiredSignIn(t *testing.T) {
	p := oidctest.New(t)
	var s *encryption.Cipher
	h := newHub(t, p, func(o *account.OIDCOptions) { s = o.Cipher })
	_, c, err := h.oidc.Start(t.Context(), "/")
	if err != nil {
		t.Fatal(err)
	}
	late, err := account.Aged(s, c.Value, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	for value, want := range map[string]string{c.Value: "no code", late: "ten minutes", "hunter22": "ten minutes"} {
		state, _ := account.StateOf(s, c.Value)
		r := httptest.NewRequest(http.MethodGet, "/login/callback?state="+state, nil)
		r.AddCookie(&http.Cookie{Name: c.Name, Value: value})
		if _, err := h.oidc.Finish(t.Context(), r); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

func TestUserDeclines(t *testing.T) {
	p := oidctest.New(t)
	h := newHub(t, p, nil)
	for code, denied := range map[string]bool{"access_denied": true, "server_error": false, "\x1b[31m": false} {
		p.Deny(code)
		_, err := h.visit(t, browser(t), h.URL+"/login")
		if e, ok := errors.AsType[*account.ProviderError](err); !ok || e.Denied != denied || strings.Contains(e.Error(), "\x1b") {
			t.Errorf("%q: %v", code, err)
		}
	}
}

// A provider that is away is not asked again for a moment; then all is as if it had
// never been.
func TestUnreachableProvider(t *testing.T) {
	p := oidctest.New(t)
	h := newHub(t, p, nil)
	p.SetDown(true)
	for range 5 {
		_, err := h.visit(t, browser(t), h.URL+"/login")
		if e, ok := errors.AsType[*account.ProviderError](err); !ok || e.Step != "find the provider" || !strings.Contains(e.Error(), "503") {
			t.Errorf("%v", err)
		}
	}
	if n := p.Requests("/.well-known/openid-configuration"); n != 1 {
		t.Errorf("it was asked %d times", n)
	}
	p.SetDown(false)
	account.Forget(h.oidc)
	if _, err := h.visit(t, browser(t), h.URL+"/login"); err != nil {
		t.Errorf("it is back: %v", err)
	}
}

func TestForgedProviders(t *testing.T) {
	for name, values := range map[string]map[string]any{
		"another issuer":            {"issuer": "https://id.example.com"},
		"codes that others read":    {"token_endpoint": "http://id.example.com/token"},
		"people that others see":    {"authorization_endpoint": "http://id.example.com/authorize?x=y"},
		"no page":                   {"authorization_endpoint": nil},
		"a page that is no address": {"authorization_endpoint": "javascript:alert(1)"},
		"an endless document":       {"more": strings.Repeat("x", 2<<20)},
	} {
		t.Run(name, func(t *testing.T) {
			p := oidctest.New(t)
			p.Describe(values)
			h := newHub(t, p, nil)
			got, err := h.visit(t, browser(t), h.URL+"/login")
			if e, ok := errors.AsType[*account.ProviderError](err); !ok || got != nil || e.Step != "find the provider" || len(e.Error()) > 400 || strings.Contains(e.Error(), "?") {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
}

// Who waits for a provider that does not answer leaves when his request ends, and the
// next one asks it again.
func TestSilentProvider(t *testing.T) {
	p := oidctest.New(t)
	answer := make(chan struct{})
	asked := make(chan struct{}, 10)
	slow := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		asked <- struct{}{}
		select {
		case <-answer:
		case <-r.Context().Done():
		}
	}))
	defer slow.Close()
	defer close(answer)
	h := newHub(t, p, func(o *account.OIDCOptions) { o.Issuer = slow.URL })
	for range 2 {
		ctx, leave := context.WithCancel(t.Context())
		end := make(chan error, 2)
		for range 2 { // one waits for the other
			go func() {
				_, _, err := h.oidc.Start(ctx, "/")
				end <- err
			}()
		}
		<-asked
		leave()
		for range 2 {
			if err := <-end; err == nil {
				t.Error("it answered")
			}
		}
	}
}

func TestInvalidOptions(t *testing.T) {
	s, err := encryption.New(encryption.NewKey())
	if err != nil {
		t.Fatal(err)
	}
	good := account.OIDCOptions{Issuer: "https://id.example.com", ClientID: "hub", Redirect: "https://hub.example.com/login/callback", Cipher: s}
	if _, err := account.NewOIDC(good); err != nil {
		t.Error(err)
	}
	for name, spoil := range map[string]func(*account.OIDCOptions){
		"no issuer":        func(o *account.OIDCOptions) { o.Issuer = "" },
		"plain issuer":     func(o *account.OIDCOptions) { o.Issuer = "http://id.example.com" },
		"plain redirect":   func(o *account.OIDCOptions) { o.Redirect = "http://hub.example.com/login" },
		"a password in it": func(o *account.OIDCOptions) { o.Issuer = "https://user:hunter22@id.example.com" },
		"a query":          func(o *account.OIDCOptions) { o.Issuer = "https://id.example.com?key=hunter22" },
		"no client":        func(o *account.OIDCOptions) { o.ClientID = "" },
		"no key":           func(o *account.OIDCOptions) { o.Cipher = nil },
	} {
		o := good
		spoil(&o)
		if _, err := account.NewOIDC(o); err == nil || strings.Contains(err.Error(), "hunter22") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestLocalPath(t *testing.T) {
	for path, want := range map[string]string{
		"/": "/", "/skills?x=y#z": "/skills?x=y#z", "": "/", "skills": "/", "//evil.example.com": "/", "/\\evil.example.com": "/", "\\\\evil.example.com": "/",
		"https://evil.example.com": "/", "javascript:alert(1)": "/", "/\t/evil.example.com": "/", "/\n": "/", "///evil.example.com": "/", "/x\\y": "/", "/" + strings.Repeat("x", 2000): "/",
	} {
		if got := account.LocalPath(path); got != want {
			t.Errorf("%.40q: %q, want %q", path, got, want)
		}
	}
}

// FuzzLocalPath: whatever is asked for stays on this host.
func FuzzLocalPath(f *testing.F) {
	for _, s := range []string{"/a?b#c", "//x", "/\\x", "/%2f%2fx", "/.//x"} {
		f.Add(s)
	}
	base, err := url.Parse("https://hub.example.com/login")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, path string) {
		got := account.LocalPath(path)
		u, err := base.Parse(strings.ReplaceAll(got, "\\", "/")) // as browsers do
		if err != nil || u.Host != base.Host || u.Scheme != base.Scheme {
			t.Errorf("%q leads to %q: %v, %v", path, got, u, err)
		}
	})
}

func ExampleMatchGroupRules() {
	rules := []account.GroupRule{
		{Claimed: "everybody", Group: "docs", Role: account.Reporter},
		{Claimed: "writers", Group: "docs", Role: account.Maintainer},
		{Claimed: "operators", Admin: true},
	}
	groups, admin := account.MatchGroupRules(rules, []string{"everybody", "writers", "others"})
	for _, g := range slices.Sorted(maps.Keys(groups)) {
		fmt.Println(g, groups[g], admin)
	}
	// Output: docs maintainer false
}
