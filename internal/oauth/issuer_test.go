package oauth_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/loadout-dev/loadout/internal/oauth"
	"github.com/loadout-dev/loadout/internal/oauth/oauthtest"
)

const clientSecret = "CLIENTSECRET"

// A place is an authorization server that records requests. It gives everybody the same
// tokens without a prompt.
type place struct {
	URL string

	mu      sync.Mutex
	about   func() map[string]any // its metadata; nil has none
	refuses bool                  // renewals
	asked   int                   // requests of any kind
	forms   []string
}

func newPlace(t *testing.T) *place {
	p := &place{}
	s := httptest.NewServer(p)
	t.Cleanup(s.Close)
	p.URL = s.URL
	return p
}

// describes is the metadata of a place, with other values for some.
func (p *place) describes(other map[string]any) map[string]any {
	m := map[string]any{
		"issuer": p.URL, "authorization_endpoint": p.URL + "/authorize", "token_endpoint": p.URL + "/token",
		"registration_endpoint": p.URL + "/register", "revocation_endpoint": p.URL + "/revoke",
		"response_types_supported": []string{"code"}, "code_challenge_methods_supported": []string{"S256"},
	}
	for k, v := range other {
		m[k] = v
	}
	return m
}

func (p *place) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked++
	var form string
	if r.Method == http.MethodPost {
		b, _ := io.ReadAll(r.Body)
		form = string(b)
		p.forms = append(p.forms, r.Header.Get("Authorization")+" "+form)
	}
	w.Header().Set("Content-Type", "application/json")
	switch {
	case p.refuses && strings.Contains(form, "grant_type=refresh_token"):
		w.WriteHeader(http.StatusBadRequest)
		json.NewEncoder(w).Encode(map[string]any{"error": "invalid_grant"})
	case r.URL.Path == "/token":
		json.NewEncoder(w).Encode(map[string]any{"access_token": "access-0", "refresh_token": "refresh-0", "token_type": "Bearer", "expires_in": 3600})
	case r.URL.Path == "/register":
		w.WriteHeader(http.StatusCreated)
		json.NewEncoder(w).Encode(map[string]any{"client_id": "c", "redirect_uris": []string{"http://127.0.0.1"}})
	case r.URL.Path == "/.well-known/oauth-authorization-server" && p.about != nil:
		json.NewEncoder(w).Encode(p.about())
	case r.URL.Path != "/revoke":
		w.WriteHeader(http.StatusNotFound)
	}
}

// got returns the recorded requests.
func (p *place) got() (asked int, forms []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.asked, p.forms
}

// guardedBy is a server that wants a sign-in, and says so in a document that
// about makes of its URL.
func guardedBy(t *testing.T, about func(server string) map[string]any) string {
	var server string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			w.Header().Set("Content-Type", "application/json")
			json.NewEncoder(w).Encode(about(server))
			return
		}
		w.Header().Set("WWW-Authenticate", "Bearer")
		w.WriteHeader(http.StatusUnauthorized)
	}))
	t.Cleanup(s.Close)
	server = s.URL + "/mcp"
	return server
}

func naming(p *place) func(string) map[string]any {
	return func(server string) map[string]any {
		return map[string]any{"resource": server, "authorization_servers": []string{p.URL}}
	}
}

// comeBack is a user whose browser returns immediately, with a registered client.
func comeBack(t *testing.T, server string) *oauth.Login {
	return &oauth.Login{Target: oauth.Target{Server: server, ID: "client", Secret: clientSecret}, Print: func(string) {}, Show: func(page string) {
		u, err := url.Parse(page)
		if err != nil {
			t.Error(err)
			return
		}
		back := u.Query().Get("redirect_uri") + "?code=x&state=" + url.QueryEscape(u.Query().Get("state"))
		go func() {
			if _, err := oauthtest.Browse(back); err != nil {
				t.Error(err)
			}
		}()
	}}
}

func newStore(t *testing.T) *oauth.Store {
	return oauth.NewStore(oauth.FileStorage(filepath.Join(t.TempDir(), "oauth")), "me")
}

func TestServersCannotSpeakForTheirIssuer(t *testing.T) {
	for name, forged := range map[string]func(about map[string]any, good, evil string){
		"the revocation": func(about map[string]any, good, evil string) {
			about["issuer"], about["token_endpoint"], about["revocation_endpoint"] = good, good+"/token", evil+"/revoke"
		},
		"the issuer": func(about map[string]any, good, evil string) {
			about["issuer"], about["token_endpoint"] = "https://login.bank.example", good+"/token"
		},
	} {
		t.Run(name, func(t *testing.T) {
			good, evil := newPlace(t), newPlace(t)
			server := guardedBy(t, func(server string) map[string]any {
				about := naming(good)(server)
				forged(about, good.URL, evil.URL)
				return about
			})
			s := newStore(t)
			g, err := s.Login(t.Context(), comeBack(t, server))
			if err != nil {
				t.Fatal(err)
			}
			if g.Issuer != good.URL {
				t.Errorf("signed in at %s, want %s", g.Issuer, good.URL)
			}
			if found, revoked, err := s.Logout(t.Context(), server); !found || revoked || err != nil {
				t.Errorf("found %v, revoked %v, %v; nobody said where that is done", found, revoked, err)
			}
			if asked, forms := evil.got(); asked > 0 {
				t.Errorf("another user got %q", forms)
			}
		})
	}
}

func TestRevocationUsesTokenEndpointHost(t *testing.T) {
	for _, same := range []bool{true, false} {
		good, other := newPlace(t), newPlace(t)
		at := map[bool]string{true: good.URL, false: other.URL}[same]
		good.about = func() map[string]any { return good.describes(map[string]any{"revocation_endpoint": at + "/revoke"}) }
		dir, server := filepath.Join(t.TempDir(), "oauth"), guardedBy(t, naming(good))
		s := oauth.NewStore(oauth.FileStorage(dir), "me")
		if _, err := s.Login(t.Context(), comeBack(t, server)); err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(files(t, dir)[0])
		if err != nil || strings.Contains(string(b), at+"/revoke") != same {
			t.Errorf("at the same location: %v; it keeps %s, %v", same, b, err)
		}
		if !same { // not even if a file names it
			b = []byte(strings.Replace(string(b), `"client_id"`, `"revocation_endpoint":"`+at+`/revoke","client_id"`, 1))
			if err := os.WriteFile(files(t, dir)[0], b, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if found, revoked, err := s.Logout(t.Context(), server); !found || revoked != same || err != nil {
			t.Errorf("at the same location: %v; found %v, revoked %v, %v", same, found, revoked, err)
		}
		if asked, forms := other.got(); asked > 0 {
			t.Errorf("another user got %q", forms)
		}
	}
}

// Metadata that names another issuer than it was asked for is refused (RFC 8414,
// section 3.3).
func TestMetadataMustMatchIssuer(t *testing.T) {
	good, evil := newPlace(t), newPlace(t)
	evil.about = func() map[string]any { return evil.describes(map[string]any{"issuer": good.URL}) }
	_, err := newStore(t).Login(t.Context(), comeBack(t, guardedBy(t, naming(evil))))
	if err == nil || !strings.Contains(err.Error(), "does not match") {
		t.Errorf("error %v", err)
	}
	if _, forms := evil.got(); len(forms) > 0 {
		t.Errorf("it got %q", forms)
	}
}

// The issuer of the first sign-in stays the server's issuer until the user signs out.
// Another issuer receives no request.
func TestIssuerIsPinnedAtFirstSignIn(t *testing.T) {
	good, evil := newPlace(t), newPlace(t)
	good.about = func() map[string]any { return good.describes(nil) }
	named := good
	server := guardedBy(t, func(server string) map[string]any { return naming(named)(server) })
	s := newStore(t)
	if _, err := s.Login(t.Context(), comeBack(t, server)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Login(t.Context(), comeBack(t, server)); err != nil {
		t.Errorf("again at the same one: %v", err)
	}
	named = evil
	_, err := s.Login(t.Context(), comeBack(t, server))
	other, ok := errors.AsType[*oauth.IssuerError](err)
	if !ok || other.Issuer != evil.URL || other.Want != good.URL || other.Configured {
		t.Errorf("error %v; want one that names both", err)
	}
	if asked, forms := evil.got(); asked > 0 {
		t.Errorf("the other one was asked %d times, and got %q", asked, forms)
	}
	if got := token(t, s, server); got != "access-0" {
		t.Errorf("the token of before is %q", got)
	}
	if _, _, err := s.Logout(t.Context(), server); err != nil {
		t.Fatal(err)
	}
	if g, err := s.Login(t.Context(), comeBack(t, server)); err != nil || g.Issuer != evil.URL {
		t.Errorf("after signing out: %+v, %v", g, err)
	}
}

// A sign-in whose refresh failed keeps its issuer, but no tokens.
func TestIssuerPinSurvivesToken(t *testing.T) {
	good, evil := newPlace(t), newPlace(t)
	good.refuses = true
	named := good
	server := guardedBy(t, func(server string) map[string]any { return naming(named)(server) })
	dir := filepath.Join(t.TempDir(), "oauth")
	s := oauth.NewStore(oauth.FileStorage(dir), "me")
	if _, err := s.Login(t.Context(), comeBack(t, server)); err != nil {
		t.Fatal(err)
	}
	req := httptest.NewRequest(http.MethodPost, server, nil)
	req.Header.Set("Authorization", "Bearer "+token(t, s, server))
	if err := s.Handler(server, next).Authorize(t.Context(), req, &http.Response{StatusCode: http.StatusUnauthorized, Body: http.NoBody}); err == nil {
		t.Fatal("the renewal is not refused")
	}
	b, err := os.ReadFile(files(t, dir)[0])
	if got := token(t, s, server); err != nil || got != "" || strings.Contains(string(b), "access-0") || strings.Contains(string(b), "refresh-0") || strings.Contains(string(b), clientSecret) {
		t.Errorf("%q is left, in %s, %v", got, b, err)
	}
	named = evil
	_, err = s.Login(t.Context(), comeBack(t, server))
	if asked, forms := evil.got(); asked > 0 {
		t.Errorf("another one was asked %d times, and got %q", asked, forms)
	}
	if other, ok := errors.AsType[*oauth.IssuerError](err); !ok || other.Want != good.URL {
		t.Errorf("error %v; want one about the issuer", err)
	}
	if found, revoked, err := s.Logout(t.Context(), server); !found || !revoked || err != nil {
		t.Errorf("signing out: found %v, revoked %v, %v", found, revoked, err)
	}
	if _, err := s.Login(t.Context(), comeBack(t, server)); err != nil {
		t.Errorf("after signing out: %v", err)
	}
}

// Where the issuer is written down, the secret of a client goes to no other.
func TestConfiguredIssuerIsUsed(t *testing.T) {
	good, evil := newPlace(t), newPlace(t)
	good.about = func() map[string]any { return good.describes(nil) }
	evil.about = func() map[string]any { return evil.describes(nil) }
	l := comeBack(t, guardedBy(t, naming(evil)))
	l.Issuer = good.URL
	_, err := newStore(t).Login(t.Context(), l)
	if other, ok := errors.AsType[*oauth.IssuerError](err); !ok || other.Issuer != evil.URL || other.Want != good.URL || !other.Configured {
		t.Errorf("error %v; want one that names both", err)
	}
	if asked, forms := evil.got(); asked > 0 {
		t.Errorf("the other one was asked %d times, and got %q", asked, forms)
	}
	l = comeBack(t, guardedBy(t, naming(good)))
	l.Issuer = good.URL + "/" // a trailing slash makes no difference
	if _, err := newStore(t).Login(t.Context(), l); err != nil {
		t.Error(err)
	}
	if _, forms := good.got(); len(forms) == 0 || !strings.Contains(forms[len(forms)-1], clientSecret) && !strings.HasPrefix(forms[len(forms)-1], "Basic ") {
		t.Errorf("the one that was meant got %q", forms)
	}
}

// A server or authorization server that changes its metadata gains nothing: the first
// answer counts.
func TestChangingMetadata(t *testing.T) {
	const first = 1 // answers that are good
	for name, change := range map[string]func(good, evil *place) func(string) map[string]any{
		"another issuer": func(good, evil *place) func(string) map[string]any {
			good.about, evil.about = func() map[string]any { return good.describes(nil) }, func() map[string]any { return evil.describes(nil) }
			asked := 0
			return func(server string) map[string]any {
				if asked++; asked > first {
					return naming(evil)(server)
				}
				return naming(good)(server)
			}
		},
		"another token endpoint": func(good, evil *place) func(string) map[string]any {
			asked := 0
			good.about = func() map[string]any {
				if asked++; asked > first {
					return good.describes(map[string]any{"token_endpoint": evil.URL + "/token"})
				}
				return good.describes(nil)
			}
			return naming(good)
		},
		"another place to register": func(good, evil *place) func(string) map[string]any {
			asked := 0
			good.about = func() map[string]any {
				if asked++; asked > first {
					return good.describes(map[string]any{"registration_endpoint": evil.URL + "/register"})
				}
				return good.describes(nil)
			}
			return naming(good)
		},
		"another page": func(good, evil *place) func(string) map[string]any {
			asked := 0
			good.about = func() map[string]any {
				if asked++; asked > first {
					return good.describes(map[string]any{"authorization_endpoint": evil.URL + "/authorize"})
				}
				return good.describes(nil)
			}
			return naming(good)
		},
	} {
		t.Run(name, func(t *testing.T) {
			good, evil := newPlace(t), newPlace(t)
			l := comeBack(t, guardedBy(t, change(good, evil)))
			if name == "another place to register" {
				l.ID, l.Secret = "", ""
			}
			if g, err := newStore(t).Login(t.Context(), l); err != nil || g.Issuer != good.URL {
				t.Errorf("signed in at %+v, %v", g, err)
			}
			if _, forms := evil.got(); len(forms) > 0 {
				t.Errorf("another user got %q", forms)
			}
		})
	}
}
