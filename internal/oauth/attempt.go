package oauth

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"golang.org/x/oauth2"
)

// A Target describes a server to sign in to.
type Target struct {
	Server  string            // URL of the server
	Headers map[string]string // headers configured for the server

	// ID and Secret identify a client that the user has registered. If ID is
	// "", Begin registers a client.
	ID, Secret string
	Scopes     []string // scopes to request instead of those that the server requires
	Redirect   string   // callback URL for the browser
	// Issuer is the only acceptable authorization server. If Issuer is "", the
	// first sign-in accepts the authorization server that the server names, and
	// later sign-ins accept only the same authorization server.
	Issuer string
}

// Info describes a sign-in. It contains no secrets.
type Info struct {
	Issuer  string
	Scopes  []string
	Expiry  time.Time // expiry of the token; zero if unknown
	Renewed bool      // the token can be refreshed without the user
}

// An Attempt is a sign-in in progress. Together with the browser's response, it
// is all that [Store.Finish] needs, even in another process. All fields except
// Page are secret.
type Attempt struct {
	Page  string `json:"-"`     // URL for the user's browser
	State string `json:"state"` // returned by the browser

	Server        string           `json:"server"`
	Issuer        string           `json:"issuer"`
	ReportsIssuer bool             `json:"says_issuer,omitempty"`
	Resource      string           `json:"resource"`
	TokenURL      string           `json:"token_endpoint"`
	RevocationURL string           `json:"revocation_endpoint,omitempty"`
	ClientID      string           `json:"client_id"`
	ClientSecret  string           `json:"client_secret,omitempty"`
	AuthStyle     oauth2.AuthStyle `json:"auth_style,omitempty"`
	Redirect      string           `json:"redirect"`
	Verifier      string           `json:"verifier"`
	Scopes        []string         `json:"scopes,omitempty"`
	Private       bool             `json:"private,omitempty"`
}

// Begin discovers the authorization server of the target and, if necessary,
// registers a client there. The error is an [*IssuerError] if the target names
// an unacceptable authorization server, or a [*NotRequiredError] if the target
// requires no sign-in.
func (s *Store) Begin(ctx context.Context, t *Target) (*Attempt, error) {
	client, guard, err := newClient(t.Server, s.bounds)
	if err != nil {
		return nil, err
	}
	old, err := s.read(ctx, t.Server)
	if err != nil || old == nil {
		old = &grant{}
	}
	req, res, err := t.probe(ctx, client)
	if err != nil {
		return nil, fmt.Errorf("find authorization server: %w", flowError(ctx, err))
	}
	a, err := t.begin(ctx, client, guard, old, req, res)
	if other, ok := errors.AsType[*IssuerError](err); ok {
		return nil, other
	}
	if err == nil {
		return a, nil
	}
	if asked := res.StatusCode; asked != http.StatusUnauthorized && asked != http.StatusForbidden {
		return nil, &NotRequiredError{asked, flowError(ctx, err)}
	}
	return nil, flowError(ctx, err)
}

// begin prepares an attempt. res is the server's response to req, which had no
// token.
func (t *Target) begin(ctx context.Context, client *http.Client, guard *transport, old *grant, req *http.Request, res *http.Response) (*Attempt, error) {
	w, err := discover(ctx, client, guard, req, res, func(issuer string) error { return t.checkIssuer(issuer, old) })
	if err != nil {
		return nil, err
	}
	a := &Attempt{State: rand.Text(), Server: t.Server, Issuer: w.Issuer, ReportsIssuer: w.ReportsIssuer, Resource: w.Resource, TokenURL: w.TokenURL, RevocationURL: w.RevocationURL,
		Redirect: t.Redirect, Verifier: oauth2.GenerateVerifier(), Scopes: t.scopes(w, old.Wanted), Private: guard.isPrivate()}
	if err := t.setClient(ctx, client, w, a); err != nil {
		return nil, err
	}
	c := a.config()
	c.Endpoint.AuthURL = w.AuthURL
	a.Page = c.AuthCodeURL(a.State, oauth2.S256ChallengeOption(a.Verifier), oauth2.SetAuthURLParam("resource", a.Resource))
	page, err := url.Parse(a.Page)
	if err != nil || w.AuthURL == "" || page.Host == "" {
		return nil, errors.New("invalid sign-in page URL")
	}
	return a, guard.check(ctx, page)
}

func (a *Attempt) config() *oauth2.Config {
	return &oauth2.Config{ClientID: a.ClientID, ClientSecret: a.ClientSecret, RedirectURL: a.Redirect, Scopes: a.Scopes,
		Endpoint: oauth2.Endpoint{TokenURL: a.TokenURL, AuthStyle: a.AuthStyle}}
}

// checkIssuer returns an [*IssuerError] if the issuer differs from the
// configured issuer or from the issuer of an earlier sign-in.
func (t *Target) checkIssuer(issuer string, old *grant) error {
	if t.Issuer != "" && !sameIssuer(issuer, t.Issuer) {
		return &IssuerError{Issuer: issuer, Want: t.Issuer, Configured: true}
	}
	if old.Issuer != "" && !sameIssuer(issuer, old.Issuer) {
		return &IssuerError{Issuer: issuer, Want: old.Issuer}
	}
	return nil
}

// scopes returns the scopes to request: the configured scopes or, if there are
// none, those that the server requires, and the scopes that an earlier token
// lacked. It adds offline_access, if supported, to get a refresh token.
func (t *Target) scopes(w *metadata, missed []string) []string {
	const offline = "offline_access"
	all := slices.Clone(w.Scopes)
	if len(t.Scopes) > 0 {
		all = slices.Clone(t.Scopes)
	}
	if slices.Contains(w.AllScopes, offline) {
		missed = append(slices.Clone(missed), offline)
	}
	for _, s := range missed {
		if !slices.Contains(all, s) {
			all = append(all, s)
		}
	}
	return all
}

// setClient sets the client ID and secret of an attempt. Unless the user has
// registered a client, it registers a new client for each sign-in, because many
// servers compare the whole callback URL, and its port may differ each time. It
// does not use a client ID metadata document.
func (t *Target) setClient(ctx context.Context, client *http.Client, w *metadata, a *Attempt) error {
	if t.ID != "" {
		a.ClientID, a.ClientSecret, a.AuthStyle = t.ID, t.Secret, authStyle(w.AuthMethods)
		return nil
	}
	if w.RegistrationURL == "" {
		return errors.New("authorization server does not support dynamic client registration; register a client manually")
	}
	kind := "web"
	if u, err := url.Parse(t.Redirect); err == nil && isLoopback(u.Hostname()) {
		kind = "native"
	}
	got, err := oauthex.RegisterClient(ctx, w.RegistrationURL, &oauthex.ClientRegistrationMetadata{
		ClientName: "Loadout", SoftwareID: "loadout", ApplicationType: kind, RedirectURIs: []string{t.Redirect}, TokenEndpointAuthMethod: "none",
		GrantTypes: []string{"authorization_code", "refresh_token"}, ResponseTypes: []string{"code"},
	}, client)
	if err != nil {
		return fmt.Errorf("register client with authorization server: %w", err)
	}
	a.ClientID, a.ClientSecret = got.ClientID, got.ClientSecret
	switch got.TokenEndpointAuthMethod {
	case "client_secret_post", "none":
		a.AuthStyle = oauth2.AuthStyleInParams
	default: // the default in RFC 7591, section 2
		a.AuthStyle = oauth2.AuthStyleInHeader
	}
	return nil
}

// authStyle returns the way in which a client that the user has registered
// sends its secret.
func authStyle(methods []string) oauth2.AuthStyle {
	switch {
	case slices.Contains(methods, "client_secret_post"):
		return oauth2.AuthStyleInParams
	case slices.Contains(methods, "client_secret_basic"):
		return oauth2.AuthStyleInHeader
	}
	return oauth2.AuthStyleAutoDetect
}

// Finish exchanges the browser's response for a token and stores the token,
// replacing an earlier one. The caller must call it only once per attempt. The
// error is a [*DeniedError] if the sign-in was denied, or an [*IssuerError] if
// the response came from another authorization server.
func (s *Store) Finish(ctx context.Context, a *Attempt, answer url.Values) (*Info, error) {
	if answer.Get("state") != a.State {
		return nil, errors.New("state mismatch: the response belongs to another sign-in")
	}
	if from := answer.Get("iss"); from != a.Issuer && (from != "" || a.ReportsIssuer) {
		return nil, &IssuerError{Issuer: cmp.Or(from, "nobody"), Want: a.Issuer, FromCallback: true}
	}
	if code := answer.Get("error"); code != "" {
		return nil, &DeniedError{sanitizeText(code), sanitizeText(answer.Get("error_description"))}
	}
	client, guard, err := newClient(a.Server, s.bounds)
	if err != nil {
		return nil, err
	}
	guard.restore(a.Private)
	t, err := a.config().Exchange(context.WithValue(ctx, oauth2.HTTPClient, client), answer.Get("code"),
		oauth2.VerifierOption(a.Verifier), oauth2.SetAuthURLParam("resource", a.Resource))
	if err == nil {
		err = checkToken(t)
	}
	if err != nil {
		return nil, flowError(ctx, err)
	}
	g := a.newGrant(t)
	if err := s.write(ctx, a.Server, g); err != nil {
		return nil, fmt.Errorf("store sign-in: %w", err)
	}
	return g.info(), nil
}

// newGrant returns the grant to store for a token that the attempt obtained.
func (a *Attempt) newGrant(t *oauth2.Token) *grant {
	g := &grant{Issuer: a.Issuer, Resource: a.Resource, TokenURL: a.TokenURL, RevocationURL: a.RevocationURL, ClientID: a.ClientID, ClientSecret: a.ClientSecret,
		AuthStyle: a.AuthStyle, Private: a.Private, Access: t.AccessToken, Refresh: t.RefreshToken, Expiry: t.Expiry, Scopes: a.Scopes}
	if s, _ := t.Extra("scope").(string); s != "" {
		g.Scopes = strings.Fields(s)
	}
	return g
}

// flowError returns err with secrets hidden, or the cause of ctx if ctx is
// done.
func flowError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if denied, ok := errors.AsType[*DeniedError](err); ok {
		return denied
	}
	return safeError{err}
}

// probe sends the server a request without a token to get the challenge in its
// response. The response has no body.
func (t *Target) probe(ctx context.Context, client *http.Client) (*http.Request, *http.Response, error) {
	const hello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"loadout","version":"1"}}}`
	u, err := url.Parse(t.Server)
	if err != nil {
		return nil, nil, errors.New("invalid server URL")
	}
	u.User, u.Fragment = nil, ""
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, u.String(), strings.NewReader(hello))
	if err != nil {
		return nil, nil, errors.New("invalid server URL")
	}
	for k, v := range t.Headers {
		req.Header.Set(k, v)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	res, err := client.Do(req)
	if err != nil {
		return nil, nil, err
	}
	res.Body.Close() // without reading it, because it may be an endless stream
	res.Body = http.NoBody
	return req, res, nil
}
