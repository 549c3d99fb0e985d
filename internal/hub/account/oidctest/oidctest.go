// Package oidctest provides an OpenID Connect provider for tests. It works like a
// real one: a code can be used only once and is bound to a client, a redirect URL
// and PKCE, and ID tokens are signed with a published key. It asks for no password
// and always signs in the user set with [Provider.SetUser]. It can be made to
// misbehave.
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

// Provider is an OpenID Connect provider with a single client. Its methods are safe
// for concurrent use.
type Provider struct {
	*httptest.Server
	ClientID, ClientSecret string

	mu        sync.Mutex // guards the fields below
	key       *ecdsa.PrivateKey
	keyID     string
	claims    map[string]any // claims of the next user
	forged    map[string]any // override claims of ID tokens; nil values remove them
	metadata  map[string]any // override values of the discovery document
	deny      string
	down      bool
	withholds bool
	codes     map[string]code
	requests  map[string]int // number of requests by path
}

type code struct {
	redirect, challenge, nonce string
	claims                     map[string]any
}

// New starts a provider and stops it when the test ends.
func New(t testing.TB) *Provider {
	p := &Provider{ClientID: "hub", ClientSecret: rand.Text(), codes: map[string]code{}, requests: map[string]int{}}
	p.Rotate(t)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", p.discovery)
	mux.HandleFunc("GET /keys", p.keys)
	mux.HandleFunc("GET /authorize", p.authorize)
	mux.HandleFunc("POST /token", p.token)
	p.Server = httptest.NewServer(p.countRequests(mux))
	t.Cleanup(p.Close)
	p.SetUser("subject-1", nil)
	return p
}

// SetUser sets the user for all following sign-ins, with additional claims, for
// example groups.
func (p *Provider) SetUser(subject string, claims map[string]any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.claims = maps.Clone(claims)
	if p.claims == nil {
		p.claims = map[string]any{}
	}
	p.claims["sub"] = subject
}

// Forge overrides ID token claims; a nil value removes a claim.
func (p *Provider) Forge(claims map[string]any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.forged = claims
}

// Withhold makes the provider return no ID token.
func (p *Provider) Withhold() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.withholds = true
}

// Describe overrides values of the discovery document.
func (p *Provider) Describe(values map[string]any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.metadata = values
}

// Deny makes the user deny access with the given error code, such as
// access_denied. "" makes the user consent again.
func (p *Provider) Deny(code string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.deny = code
}

// SetDown sets whether all requests fail with status 503.
func (p *Provider) SetDown(down bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.down = down
}

// Rotate replaces the published signing key with a new one.
func (p *Provider) Rotate(t testing.TB) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.key, p.keyID = key, rand.Text()
}

// Impersonate makes the provider sign ID tokens with an unpublished key, under the
// ID of the published one.
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

// frozenKeys starts a server that keeps returning the keys that are current
// now, even after they are replaced. It returns the server's URL. The caller
// must hold mu.
func (p *Provider) frozenKeys(t testing.TB) string {
	keys := p.keySet()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, http.StatusOK, keys) }))
	t.Cleanup(s.Close)
	return s.URL
}

// Requests returns the number of requests to a path.
func (p *Provider) Requests(path string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.requests[path]
}

func (p *Provider) countRequests(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		p.requests[r.URL.Path]++
		down := p.down
		p.mu.Unlock()
		if down {
			http.Error(w, "down", http.StatusServiceUnavailable)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

func writeError(w http.ResponseWriter, code string) {
	writeJSON(w, http.StatusBadRequest, map[string]any{"error": code})
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
	writeJSON(w, http.StatusOK, m)
}

// keySet returns the JSON Web Key Set of the current keys. The caller must hold mu.
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
	writeJSON(w, http.StatusOK, p.keySet())
}

// authorize redirects the browser back to the client immediately, without
// asking the user.
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
		writeJSON(w, http.StatusUnauthorized, map[string]any{"error": "invalid_client"})
		return
	}
	c, ok := p.codes[r.FormValue("code")]
	delete(p.codes, r.FormValue("code"))
	sum := sha256.Sum256([]byte(r.FormValue("code_verifier")))
	if !ok || r.FormValue("grant_type") != "authorization_code" || c.redirect != r.FormValue("redirect_uri") || c.challenge != base64.RawURLEncoding.EncodeToString(sum[:]) {
		writeError(w, "invalid_grant")
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
		writeError(w, "server_error")
		return
	}
	out := map[string]any{"access_token": access, "token_type": "Bearer", "expires_in": 3600}
	if !p.withholds {
		out["id_token"] = oidctest.SignIDToken(p.key, p.keyID, oidc.ES256, string(body))
	}
	writeJSON(w, http.StatusOK, out)
}

// AccessToken returns an access token with the given claims, signed with the
// published key.
func (p *Provider) AccessToken(t testing.TB, claims map[string]any) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := map[string]any{"iss": p.URL, "exp": time.Now().Add(time.Hour).Unix(), "iat": time.Now().Unix()}
	maps.Copy(all, claims)
	body, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	return oidctest.SignIDToken(p.key, p.keyID, oidc.ES256, string(body))
}

// Browser returns a client that stores cookies and follows redirects.
func Browser() (*http.Client, error) {
	jar, err := cookiejar.New(nil)
	if err != nil {
		return nil, fmt.Errorf("create browser: %w", err)
	}
	return &http.Client{Jar: jar, Timeout: 30 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}, nil
}
