// Package oidctest has a provider of OpenID Connect for tests. It works: codes are
// good for one use, and bound to a client, a redirect address and PKCE; ID tokens are
// signed with a key that it publishes. It asks nobody for a password: whoever comes is
// the person of [Provider.Be]. It can be made to lie.
package oidctest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/coreos/go-oidc/v3/oidc/oidctest"
)

// A Provider is an OpenID provider with one client. Its methods are safe for
// concurrent use.
type Provider struct {
	*httptest.Server
	ClientID, ClientSecret string

	mu        sync.Mutex // guards what follows
	key       *ecdsa.PrivateKey
	keyID     string
	claims    map[string]any // of the person who comes next
	forged    map[string]any // in place of what an ID token should have; nil values are left out
	metadata  map[string]any // the same for the discovery document
	deny      string
	down      bool
	withholds bool
	codes     map[string]code
	asked     map[string]int // requests by path
}

type code struct {
	redirect, challenge, nonce string
	claims                     map[string]any
}

// New starts a provider, until the test ends.
func New(t testing.TB) *Provider {
	p := &Provider{ClientID: "hub", ClientSecret: rand.Text(), codes: map[string]code{}, asked: map[string]int{}}
	p.Rotate(t)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", p.discovery)
	mux.HandleFunc("GET /keys", p.keys)
	mux.HandleFunc("GET /authorize", p.authorize)
	mux.HandleFunc("POST /token", p.token)
	p.Server = httptest.NewServer(p.counted(mux))
	t.Cleanup(p.Close)
	p.Be("subject-1", nil)
	return p
}

// Be has everybody who comes be this person, with further claims, as groups.
func (p *Provider) Be(subject string, claims map[string]any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.claims = maps.Clone(claims)
	if p.claims == nil {
		p.claims = map[string]any{}
	}
	p.claims["sub"] = subject
}

// Forge has ID tokens have these claims whatever would be right; nil takes one out.
func (p *Provider) Forge(claims map[string]any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.forged = claims
}

// Withhold has no ID token given.
func (p *Provider) Withhold() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.withholds = true
}

// Describe has the discovery document have these values whatever would be right.
func (p *Provider) Describe(values map[string]any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.metadata = values
}

// Deny has the person say no, as with access_denied; "" is yes.
func (p *Provider) Deny(why string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.deny = why
}

// Down has every request answered with 503, or served again.
func (p *Provider) Down(down bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.down = down
}

// Rotate has ID tokens signed with a new key, which alone is published.
func (p *Provider) Rotate(t testing.TB) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.key, p.keyID = key, rand.Text()
}

// Impersonate has ID tokens signed with a key that is not published, under the name
// of the one that is.
func (p *Provider) Impersonate(t testing.TB) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.metadata = map[string]any{"jwks_uri": p.frozenKeys(t)}
	p.key = key
}

// frozenKeys serves the keys of now. mu is held.
func (p *Provider) frozenKeys(t testing.TB) string {
	keys := p.keySet()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, keys) }))
	t.Cleanup(s.Close)
	return s.URL
}

// Asked is how many requests came for a path.
func (p *Provider) Asked(path string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.asked[path]
}

func (p *Provider) counted(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		p.asked[r.URL.Path]++
		down := p.down
		p.mu.Unlock()
		if down {
			http.Error(w, "down", http.StatusServiceUnavailable)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

func refuse(w http.ResponseWriter, code string) {
	answer(w, http.StatusBadRequest, map[string]any{"error": code})
}

func (p *Provider) discovery(w http.ResponseWriter, _ *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	m := map[string]any{
		"issuer": p.URL, "authorization_endpoint": p.URL + "/authorize", "token_endpoint": p.URL + "/token", "jwks_uri": p.URL + "/keys",
		"response_types_supported": []string{"code"}, "subject_types_supported": []string{"public"},
		"id_token_signing_alg_values_supported": []string{oidc.ES256}, "code_challenge_methods_supported": []string{"S256"},
	}
	maps.Copy(m, p.metadata)
	answer(w, http.StatusOK, m)
}

// keySet is what keys says. mu is held.
func (p *Provider) keySet() map[string]any {
	b, err := p.key.PublicKey.Bytes() // 4, x, y
	if err != nil {
		panic(err)
	}
	enc := base64.RawURLEncoding.EncodeToString
	return map[string]any{"keys": []any{map[string]any{"kty": "EC", "crv": "P-256", "alg": oidc.ES256, "use": "sig", "kid": p.keyID, "x": enc(b[1:33]), "y": enc(b[33:])}}}
}

func (p *Provider) keys(w http.ResponseWriter, _ *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	answer(w, http.StatusOK, p.keySet())
}

// authorize asks nobody, and sends the browser back at once.
func (p *Provider) authorize(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	q := r.URL.Query()
	back, err := url.Parse(q.Get("redirect_uri"))
	if err != nil || back.Host == "" || q.Get("client_id") != p.ClientID || q.Get("response_type") != "code" || q.Get("code_challenge_method") != "S256" {
		http.Error(w, "no such client, no redirect address, or no PKCE", http.StatusBadRequest)
		return
	}
	out := url.Values{"state": {q.Get("state")}, "iss": {p.URL}}
	if p.deny != "" {
		out.Set("error", p.deny)
	} else {
		id := rand.Text()
		p.codes[id] = code{q.Get("redirect_uri"), q.Get("code_challenge"), q.Get("nonce"), p.claims}
		out.Set("code", id)
	}
	back.RawQuery = out.Encode()
	http.Redirect(w, r, back.String(), http.StatusFound)
}

func (p *Provider) token(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	id, secret, ok := r.BasicAuth()
	if !ok {
		id, secret = r.FormValue("client_id"), r.FormValue("client_secret")
	}
	if id != p.ClientID || secret != p.ClientSecret {
		answer(w, http.StatusUnauthorized, map[string]any{"error": "invalid_client"})
		return
	}
	c, ok := p.codes[r.FormValue("code")]
	delete(p.codes, r.FormValue("code"))
	sum := sha256.Sum256([]byte(r.FormValue("code_verifier")))
	if !ok || r.FormValue("grant_type") != "authorization_code" || c.redirect != r.FormValue("redirect_uri") || c.challenge != base64.RawURLEncoding.EncodeToString(sum[:]) {
		refuse(w, "invalid_grant")
		return
	}
	access := rand.Text()
	hash := sha256.Sum256([]byte(access))
	claims := map[string]any{
		"iss": p.URL, "aud": p.ClientID, "exp": time.Now().Add(time.Hour).Unix(), "iat": time.Now().Unix(),
		"nonce": c.nonce, "at_hash": base64.RawURLEncoding.EncodeToString(hash[:16]),
	}
	maps.Copy(claims, c.claims)
	maps.Copy(claims, p.forged)
	maps.DeleteFunc(claims, func(_ string, v any) bool { return v == nil })
	body, err := json.Marshal(claims)
	if err != nil {
		refuse(w, "server_error")
		return
	}
	out := map[string]any{"access_token": access, "token_type": "Bearer", "expires_in": 3600}
	if !p.withholds {
		out["id_token"] = oidctest.SignIDToken(p.key, p.keyID, oidc.ES256, string(body))
	}
	answer(w, http.StatusOK, out)
}

// Browser is a client that keeps cookies, and follows the provider back to where it
// came from.
func Browser() (*http.Client, error) {
	jar, err := cookiejar.New(nil)
	if err != nil {
		return nil, fmt.Errorf("a browser: %w", err)
	}
	return &http.Client{Jar: jar, Timeout: 30 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}, nil
}
