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

// A Target is what a person signs in to.
type Target struct {
	Server  string            // URL of the server
	Headers map[string]string // that its configuration sends

	// ID and Secret are of a client that was registered by hand; without an ID we
	// register ourselves.
	ID, Secret string
	Scopes     []string // in place of those that the server names
	Redirect   string   // where the browser comes back to
	// Issuer is the one authorization server to sign in at; "" is any that the
	// server names at the first sign-in, and that one later.
	Issuer string
}

// Granted is what can be shown of a sign-in.
type Granted struct {
	Issuer  string
	Scopes  []string
	Expiry  time.Time // of the token; zero where that was not said
	Renewed bool      // whether it is renewed without the person
}

// An Attempt is a sign-in that was begun, all that finishing it takes: whoever has it
// and the answer of the browser can do so, in another process too. It is secret, but for
// the page.
type Attempt struct {
	Page  string `json:"-"`     // that the person has to open
	State string `json:"state"` // that the browser comes back with

	Server        string           `json:"server"`
	Issuer        string           `json:"issuer"`
	SaysIssuer    bool             `json:"says_issuer,omitempty"`
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

// Begin finds out where a person signs in to a server, and registers us there where
// that is needed. The error is an [*IssuerError] where the server names another
// authorization server than before or than it may.
func (s *Store) Begin(ctx context.Context, t *Target) (*Attempt, error) {
	client, guard, err := newClient(t.Server, s.bounds)
	if err != nil {
		return nil, err
	}
	old, err := s.read(ctx, t.Server)
	if err != nil || old == nil {
		old = &grant{}
	}
	req, res, err := t.ask(ctx, client)
	if err != nil {
		return nil, fmt.Errorf("ask the server how to sign in: %w", ended(ctx, err))
	}
	a, err := t.begin(ctx, client, guard, old, req, res)
	if other, ok := errors.AsType[*IssuerError](err); ok {
		return nil, other
	}
	if err == nil {
		return a, nil
	}
	if asked := res.StatusCode; asked != http.StatusUnauthorized && asked != http.StatusForbidden {
		return nil, &UnwantedError{asked, ended(ctx, err)}
	}
	return nil, ended(ctx, err)
}

// begin is what follows from the answer of a server that was asked without a token.
func (t *Target) begin(ctx context.Context, client *http.Client, guard *transport, old *grant, req *http.Request, res *http.Response) (*Attempt, error) {
	w, err := discover(ctx, client, guard, req, res, func(issuer string) error { return t.accept(issuer, old) })
	if err != nil {
		return nil, err
	}
	a := &Attempt{State: rand.Text(), Server: t.Server, Issuer: w.Issuer, SaysIssuer: w.SaysIssuer, Resource: w.Resource, TokenURL: w.TokenURL, RevocationURL: w.RevocationURL,
		Redirect: t.Redirect, Verifier: oauth2.GenerateVerifier(), Scopes: t.scopes(w, old.Wanted), Private: guard.isPrivate()}
	if err := t.client(ctx, client, w, a); err != nil {
		return nil, err
	}
	c := a.config()
	c.Endpoint.AuthURL = w.AuthURL
	a.Page = c.AuthCodeURL(a.State, oauth2.S256ChallengeOption(a.Verifier), oauth2.SetAuthURLParam("resource", a.Resource))
	page, err := url.Parse(a.Page)
	if err != nil || w.AuthURL == "" || page.Host == "" {
		return nil, errors.New("the page to sign in at cannot be read")
	}
	return a, guard.check(ctx, page)
}

func (a *Attempt) config() *oauth2.Config {
	return &oauth2.Config{ClientID: a.ClientID, ClientSecret: a.ClientSecret, RedirectURL: a.Redirect, Scopes: a.Scopes,
		Endpoint: oauth2.Endpoint{TokenURL: a.TokenURL, AuthStyle: a.AuthStyle}}
}

// accept refuses an issuer that is neither the configured one nor, where there was
// a sign-in before, that of it.
func (t *Target) accept(issuer string, old *grant) error {
	if t.Issuer != "" && !sameIssuer(issuer, t.Issuer) {
		return &IssuerError{Issuer: issuer, Want: t.Issuer, Configured: true}
	}
	if old.Issuer != "" && !sameIssuer(issuer, old.Issuer) {
		return &IssuerError{Issuer: issuer, Want: old.Issuer}
	}
	return nil
}

// scopes are those to ask for: what is written down or what the server wants, what it
// missed before, and what a refresh token takes where that has a name.
func (t *Target) scopes(w *whereabouts, missed []string) []string {
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

// client is who we are at the authorization server. Each sign-in registers anew where
// nobody did so by hand: many servers compare the address that the browser comes back to
// with its port, which may be another one each time. There is no document about us on
// the web that a server could read instead.
func (t *Target) client(ctx context.Context, client *http.Client, w *whereabouts, a *Attempt) error {
	if t.ID != "" {
		a.ClientID, a.ClientSecret, a.AuthStyle = t.ID, t.Secret, styleOf(w.AuthMethods)
		return nil
	}
	if w.RegistrationURL == "" {
		return errors.New("it lets no program register itself: register one there by hand")
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
		return fmt.Errorf("register at the authorization server: %w", err)
	}
	a.ClientID, a.ClientSecret = got.ClientID, got.ClientSecret
	switch got.TokenEndpointAuthMethod {
	case "client_secret_post", "none":
		a.AuthStyle = oauth2.AuthStyleInParams
	default: // of RFC 7591, section 2
		a.AuthStyle = oauth2.AuthStyleInHeader
	}
	return nil
}

// styleOf is how a client that was registered by hand shows its secret.
func styleOf(methods []string) oauth2.AuthStyle {
	switch {
	case slices.Contains(methods, "client_secret_post"):
		return oauth2.AuthStyleInParams
	case slices.Contains(methods, "client_secret_basic"):
		return oauth2.AuthStyleInHeader
	}
	return oauth2.AuthStyleAutoDetect
}

// Finish gets the token for what the browser came back with, and keeps it in place of an
// earlier one. An attempt is good for one Finish: who keeps attempts sees to that. The
// error is a [*DeniedError] where the person was refused, and an [*IssuerError] where the
// answer is of another authorization server.
func (s *Store) Finish(ctx context.Context, a *Attempt, answer url.Values) (*Granted, error) {
	if answer.Get("state") != a.State {
		return nil, errors.New("the answer is of another sign-in")
	}
	if from := answer.Get("iss"); from != a.Issuer && (from != "" || a.SaysIssuer) {
		return nil, &IssuerError{Issuer: cmp.Or(from, "nobody"), Want: a.Issuer, Answered: true}
	}
	if code := answer.Get("error"); code != "" {
		return nil, &DeniedError{shown(code), shown(answer.Get("error_description"))}
	}
	client, guard, err := newClient(a.Server, s.bounds)
	if err != nil {
		return nil, err
	}
	guard.recall(a.Private)
	t, err := a.config().Exchange(context.WithValue(ctx, oauth2.HTTPClient, client), answer.Get("code"),
		oauth2.VerifierOption(a.Verifier), oauth2.SetAuthURLParam("resource", a.Resource))
	if err == nil {
		err = checkToken(t)
	}
	if err != nil {
		return nil, ended(ctx, err)
	}
	g := a.granted(t)
	if err := s.write(ctx, a.Server, g); err != nil {
		return nil, fmt.Errorf("keep what you signed in with: %w", err)
	}
	return g.shown(), nil
}

// granted is what the authorization server gave.
func (a *Attempt) granted(t *oauth2.Token) *grant {
	g := &grant{Issuer: a.Issuer, Resource: a.Resource, TokenURL: a.TokenURL, RevocationURL: a.RevocationURL, ClientID: a.ClientID, ClientSecret: a.ClientSecret,
		AuthStyle: a.AuthStyle, Private: a.Private, Access: t.AccessToken, Refresh: t.RefreshToken, Expiry: t.Expiry, Scopes: a.Scopes}
	if s, _ := t.Extra("scope").(string); s != "" {
		g.Scopes = strings.Fields(s)
	}
	return g
}

// ended is why the flow failed: that time is up, or what was said.
func ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if denied, ok := errors.AsType[*DeniedError](err); ok {
		return denied
	}
	return cleaned{err}
}

// ask sends the server a message without a token, for what it says to that.
func (t *Target) ask(ctx context.Context, client *http.Client) (*http.Request, *http.Response, error) {
	const hello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"loadout","version":"1"}}}`
	u, err := url.Parse(t.Server)
	if err != nil {
		return nil, nil, errors.New("its url cannot be read; correct it")
	}
	u.User, u.Fragment = nil, ""
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, u.String(), strings.NewReader(hello))
	if err != nil {
		return nil, nil, errors.New("its url cannot be read; correct it")
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
	res.Body.Close() // it may be a stream that goes on
	res.Body = http.NoBody
	return req, res, nil
}
