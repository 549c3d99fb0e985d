// Package oauthtest provides a test authorization server and test MCP servers
// that require its tokens. Clients register dynamically. Codes are bound to a
// PKCE challenge and a redirect URI, refresh tokens work only once, and each
// token is valid for a single resource.
package oauthtest

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// An Issuer is an authorization server. Its methods are safe for concurrent use.
type Issuer struct {
	*httptest.Server

	mu       sync.Mutex
	clients  map[string][]string // redirect URIs by client ID
	codes    map[string]*code
	access   map[string]*token
	refresh  map[string]*token
	life     time.Duration
	deny     string
	refuses  bool
	renewals int
	form     url.Values
}

type code struct{ client, redirect, challenge, resource string }

type token struct {
	client, resource string
	end              time.Time
}

// New starts an authorization server that runs until the test ends. By default,
// its tokens are reported to be valid for an hour.
func New(t testing.TB) *Issuer {
	i := &Issuer{clients: map[string][]string{}, codes: map[string]*code{}, access: map[string]*token{}, refresh: map[string]*token{}, life: time.Hour}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/oauth-authorization-server", i.metadata)
	mux.HandleFunc("POST /register", i.register)
	mux.HandleFunc("GET /authorize", i.authorize)
	mux.HandleFunc("POST /token", i.token)
	mux.HandleFunc("POST /revoke", i.revoke)
	i.Server = httptest.NewServer(mux)
	t.Cleanup(i.Close)
	return i
}

func (i *Issuer) change(f func()) {
	i.mu.Lock()
	defer i.mu.Unlock()
	f()
}

// SetLifetime sets the reported lifetime of tokens issued after the call.
func (i *Issuer) SetLifetime(d time.Duration) { i.change(func() { i.life = d }) }

// Deny makes the issuer deny sign-ins with an error code, such as
// access_denied. If code is "", sign-ins succeed again.
func (i *Issuer) Deny(code string) { i.change(func() { i.deny = code }) }

// RejectRefresh makes the issuer reject refresh tokens.
func (i *Issuer) RejectRefresh() { i.change(func() { i.refuses = true }) }

// RevokeAccess invalidates all access tokens.
func (i *Issuer) RevokeAccess() { i.change(func() { clear(i.access) }) }

// RefreshCount returns the number of refresh requests.
func (i *Issuer) RefreshCount() (n int) { i.change(func() { n = i.renewals }); return n }

// LastRefresh returns the form of the last refresh request.
func (i *Issuer) LastRefresh() (f url.Values) { i.change(func() { f = i.form }); return f }

// ValidTokens returns the total number of access and refresh tokens that are
// neither used up nor revoked.
func (i *Issuer) ValidTokens() (n int) {
	i.change(func() { n = len(i.access) + len(i.refresh) })
	return n
}

// Serve starts an MCP server that accepts tokens issued for its URL, and
// returns the URL. The server runs until the test ends. Its tool greet returns
// the token's client ID.
func (i *Issuer) Serve(t testing.TB) string {
	s := mcp.NewServer(&mcp.Implementation{Name: "guarded", Version: "1"}, nil)
	mcp.AddTool(s, &mcp.Tool{Name: "greet", Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}}, func(_ context.Context, r *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "hello " + r.Extra.TokenInfo.UserID}}}, nil, nil
	})
	mux := http.NewServeMux()
	server := httptest.NewServer(mux)
	t.Cleanup(func() {
		server.CloseClientConnections() // clients may still have open streams
		server.Close()
	})
	resource, about := server.URL+"/mcp", server.URL+"/.well-known/oauth-protected-resource/mcp"
	mux.HandleFunc("GET /.well-known/oauth-protected-resource/mcp", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, map[string]any{"resource": resource, "authorization_servers": []string{i.URL}, "scopes_supported": []string{"tools"}})
	})
	guard := auth.RequireBearerToken(func(_ context.Context, text string, _ *http.Request) (*auth.TokenInfo, error) {
		i.mu.Lock()
		defer i.mu.Unlock()
		if k := i.access[text]; k != nil && k.resource == resource {
			return &auth.TokenInfo{Expiration: k.end, UserID: k.client}, nil
		}
		return nil, auth.ErrInvalidToken
	}, &auth.RequireBearerTokenOptions{ResourceMetadataURL: about})
	mux.Handle("/mcp", guard(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, &mcp.StreamableHTTPOptions{Stateless: true})))
	return resource
}

func answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

func refuse(w http.ResponseWriter, code, why string) {
	answer(w, http.StatusBadRequest, map[string]any{"error": code, "error_description": why})
}

func (i *Issuer) metadata(w http.ResponseWriter, _ *http.Request) {
	answer(w, http.StatusOK, map[string]any{
		"issuer": i.URL, "authorization_endpoint": i.URL + "/authorize", "token_endpoint": i.URL + "/token",
		"registration_endpoint": i.URL + "/register", "revocation_endpoint": i.URL + "/revoke",
		"response_types_supported": []string{"code"}, "code_challenge_methods_supported": []string{"S256"},
		"token_endpoint_auth_methods_supported": []string{"none"}, "authorization_response_iss_parameter_supported": true,
	})
}

func (i *Issuer) register(w http.ResponseWriter, r *http.Request) {
	var in struct {
		RedirectURIs []string `json:"redirect_uris"`
	}
	if json.NewDecoder(r.Body).Decode(&in) != nil || len(in.RedirectURIs) == 0 {
		refuse(w, "invalid_client_metadata", "redirect URI missing")
		return
	}
	id := rand.Text()
	i.change(func() { i.clients[id] = in.RedirectURIs })
	answer(w, http.StatusCreated, map[string]any{"client_id": id, "redirect_uris": in.RedirectURIs, "token_endpoint_auth_method": "none"})
}

// authorize handles a sign-in without a user: it grants or denies the sign-in
// and redirects the browser.
func (i *Issuer) authorize(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	defer i.mu.Unlock()
	q := r.URL.Query()
	back, err := url.Parse(q.Get("redirect_uri"))
	if err != nil || !slices.Contains(i.clients[q.Get("client_id")], q.Get("redirect_uri")) || q.Get("code_challenge_method") != "S256" || q.Get("resource") == "" {
		http.Error(w, "client unknown, or PKCE or resource missing", http.StatusBadRequest)
		return
	}
	out := url.Values{"state": {q.Get("state")}, "iss": {i.URL}}
	if i.deny != "" {
		out.Set("error", i.deny)
	} else {
		id := rand.Text()
		i.codes[id] = &code{q.Get("client_id"), q.Get("redirect_uri"), q.Get("code_challenge"), q.Get("resource")}
		out.Set("code", id)
	}
	back.RawQuery = out.Encode()
	http.Redirect(w, r, back.String(), http.StatusFound)
}

func (i *Issuer) token(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if r.ParseForm() != nil {
		refuse(w, "invalid_request", "invalid form")
		return
	}
	f := r.PostForm
	switch f.Get("grant_type") {
	case "authorization_code":
		c := i.codes[f.Get("code")]
		delete(i.codes, f.Get("code"))
		sum := sha256.Sum256([]byte(f.Get("code_verifier")))
		if c == nil || c.client != f.Get("client_id") || c.redirect != f.Get("redirect_uri") || c.resource != f.Get("resource") || c.challenge != base64.RawURLEncoding.EncodeToString(sum[:]) {
			refuse(w, "invalid_grant", "code does not match the request")
			return
		}
		i.issueTokens(w, c.client, c.resource)
	case "refresh_token":
		k := i.refresh[f.Get("refresh_token")]
		delete(i.refresh, f.Get("refresh_token"))
		i.renewals++
		i.form = f
		if i.refuses || k == nil || k.client != f.Get("client_id") || k.resource != f.Get("resource") {
			refuse(w, "invalid_grant", "refresh token was used before or does not match the request")
			return
		}
		i.issueTokens(w, k.client, k.resource)
	default:
		refuse(w, "unsupported_grant_type", f.Get("grant_type"))
	}
}

// issueTokens issues an access token and a refresh token. The caller must hold
// mu.
func (i *Issuer) issueTokens(w http.ResponseWriter, client, resource string) {
	k := &token{client, resource, time.Now().Add(time.Hour)} // longer than the reported lifetime
	access, refresh := "access-"+rand.Text(), "refresh-"+rand.Text()
	i.access[access], i.refresh[refresh] = k, k
	answer(w, http.StatusOK, map[string]any{"access_token": access, "token_type": "Bearer", "expires_in": int(i.life.Seconds()), "refresh_token": refresh, "scope": "tools"})
}

func (i *Issuer) revoke(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	defer i.mu.Unlock()
	delete(i.access, r.FormValue("token"))
	delete(i.refresh, r.FormValue("token"))
	w.WriteHeader(http.StatusOK)
}

// Browse requests a page, follows redirects like a browser, and returns the
// final HTTP status.
func Browse(page string) (status int, err error) {
	res, err := http.Get(page)
	if err != nil {
		return 0, fmt.Errorf("open page: %w", err)
	}
	return res.StatusCode, res.Body.Close()
}
