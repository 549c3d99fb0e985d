package oauth

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"golang.org/x/oauth2"
)

// DefaultWait is how long a person has to sign in.
const DefaultWait = 5 * time.Minute

// ErrLate says that nobody signed in within the time there is.
var ErrLate = errors.New("nobody signed in")

// A Login is one sign-in, by a person who is there.
type Login struct {
	Server  string            // URL of the server
	Headers map[string]string // that its configuration sends

	// ID and Secret are of a client that was registered by hand; without an ID we
	// register ourselves.
	ID, Secret string
	Scopes     []string // in place of those that the server names
	Redirect   string   // where the browser comes back to; "" is a free port
	// Issuer is the one authorization server to sign in at; "" is any that the
	// server names at the first sign-in, and that one later.
	Issuer string

	// Show is called once with the page that the person has to open.
	Show func(page string)
	// Paste, where set, gives lines that the person may type: the address that
	// their browser ended at.
	Paste io.Reader
	// Say tells the person what is wrong with such a line.
	Say  func(string)
	Wait time.Duration // 0 is [DefaultWait]
}

// Granted is what can be shown of a sign-in.
type Granted struct {
	Issuer  string
	Scopes  []string
	Expiry  time.Time // of the token; zero where that was not said
	Renewed bool      // whether it is renewed without the person
}

// Login lets a person sign in to a server, and keeps what comes of it in place of
// an earlier sign-in. The error is a [*DeniedError] where they were refused, an
// [*IssuerError] where the server names another authorization server than before
// or than it may, and [ErrLate] where nobody came back in time.
func (s *Store) Login(ctx context.Context, l *Login) (*Granted, error) {
	wait := l.Wait
	if wait == 0 {
		wait = DefaultWait
	}
	ctx, cancel := context.WithTimeoutCause(ctx, wait, fmt.Errorf("%w within %v", ErrLate, wait))
	defer cancel()
	client, guard, err := newClient(l.Server)
	if err != nil {
		return nil, err
	}
	back, err := listen(l.Redirect)
	if err != nil {
		return nil, err
	}
	defer back.Close()
	old, err := s.read(l.Server)
	if err != nil || old == nil {
		old = &grant{}
	}
	req, res, err := l.ask(ctx, client)
	if err != nil {
		return nil, fmt.Errorf("ask the server how to sign in: %w", ended(ctx, err))
	}
	asked := res.StatusCode
	g, err := l.authorize(ctx, client, guard, back, old, req, res)
	if other, ok := errors.AsType[*IssuerError](err); ok {
		return nil, other
	}
	if err != nil {
		if asked != http.StatusUnauthorized && asked != http.StatusForbidden {
			return nil, fmt.Errorf("it does not ask for a sign-in (it answers %d %s), and none could be found: %w", asked, http.StatusText(asked), ended(ctx, err))
		}
		return nil, ended(ctx, err)
	}
	if err := s.write(ctx, l.Server, g); err != nil {
		return nil, fmt.Errorf("keep what you signed in with: %w", err)
	}
	return &Granted{g.Issuer, g.Scopes, g.Expiry, g.Refresh != ""}, nil
}

// authorize finds the authorization server, and has the person sign in there.
func (l *Login) authorize(ctx context.Context, client *http.Client, guard *transport, back *callback, old *grant, req *http.Request, res *http.Response) (*grant, error) {
	w, err := discover(ctx, client, req, res, func(issuer string) error { return l.accept(issuer, old) })
	if err != nil {
		return nil, err
	}
	guard.bind(w)
	g := &grant{Private: guard.isPrivate()}
	h, err := auth.NewAuthorizationCodeHandler(l.flow(g, w, client, guard, back, old.Wanted))
	if err != nil {
		return nil, err
	}
	res.StatusCode = http.StatusUnauthorized // it may want a sign-in for some of what it does only
	return g, h.Authorize(ctx, req, res)
}

// accept refuses an issuer that is neither the configured one nor, where there was
// a sign-in before, that of it.
func (l *Login) accept(issuer string, old *grant) error {
	if l.Issuer != "" && !sameIssuer(issuer, l.Issuer) {
		return &IssuerError{Issuer: issuer, Want: l.Issuer, Configured: true}
	}
	if old.Issuer != "" && !sameIssuer(issuer, old.Issuer) {
		return &IssuerError{Issuer: issuer, Want: old.Issuer}
	}
	return nil
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

// flow is how the SDK signs in: it finds the authorization server, which has to be
// w, registers us there, and exchanges the code. What it gets goes into g; more are
// scopes to ask for besides. There is no document about us on the web that a server could read
// instead of a registration.
func (l *Login) flow(g *grant, w *whereabouts, client *http.Client, guard *transport, back *callback, more []string) *auth.AuthorizationCodeHandlerConfig {
	c := &auth.AuthorizationCodeHandlerConfig{
		RedirectURL: back.url, RequestRefreshToken: true, AcceptUnadvertisedIss: true, Client: client,
		AuthorizationCodeFetcher: func(ctx context.Context, args *auth.AuthorizationArgs) (*auth.AuthorizationResult, error) {
			page, err := url.Parse(args.URL)
			if err != nil || !w.page(args.URL) {
				return nil, errors.New("the page to sign in at is not that of the authorization server, or cannot be read")
			}
			if err := guard.check(ctx, page); err != nil {
				return nil, err
			}
			g.Resource = page.Query().Get("resource")
			l.Show(args.URL)
			return back.wait(ctx, page.Query().Get("state"), l.Paste, l.Say)
		},
		NewTokenSource: func(_ context.Context, c *oauth2.Config, t *oauth2.Token) (oauth2.TokenSource, error) {
			return oauth2.StaticTokenSource(t), g.fill(w, c, t)
		},
	}
	c.ScopeFilter = func(found []string) []string {
		if len(l.Scopes) > 0 {
			found = l.Scopes
		}
		all := slices.Clone(found)
		for _, s := range more {
			if !slices.Contains(all, s) {
				all = append(all, s)
			}
		}
		return all
	}
	if l.ID != "" {
		c.PreregisteredClient = &oauthex.ClientCredentials{ClientID: l.ID, Issuer: w.Issuer}
		if l.Secret != "" {
			c.PreregisteredClient.ClientSecretAuth = &oauthex.ClientSecretAuth{ClientSecret: l.Secret}
		}
		return c
	}
	// Each sign-in registers anew: many servers compare the address that the
	// browser comes back to with its port, which is another one each time.
	c.DynamicClientRegistrationConfig = &auth.DynamicClientRegistrationConfig{Metadata: &oauthex.ClientRegistrationMetadata{
		ClientName: "Loadout", SoftwareID: "loadout", RedirectURIs: []string{back.url}, TokenEndpointAuthMethod: "none",
		GrantTypes: []string{"authorization_code", "refresh_token"}, ResponseTypes: []string{"code"},
	}}
	return c
}

// fill takes what the SDK was given.
func (g *grant) fill(w *whereabouts, c *oauth2.Config, t *oauth2.Token) error {
	if err := checkToken(t); err != nil {
		return err
	}
	g.Issuer, g.TokenURL, g.RevocationURL = w.Issuer, w.TokenURL, w.RevocationURL
	g.ClientID, g.ClientSecret, g.AuthStyle = c.ClientID, c.ClientSecret, c.Endpoint.AuthStyle
	g.Access, g.Refresh, g.Expiry, g.Scopes = t.AccessToken, t.RefreshToken, t.Expiry, c.Scopes
	if s, _ := t.Extra("scope").(string); s != "" {
		g.Scopes = strings.Fields(s)
	}
	return nil
}

// ask sends the server a message without a token, for what it says to that.
func (l *Login) ask(ctx context.Context, client *http.Client) (*http.Request, *http.Response, error) {
	const hello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"loadout","version":"1"}}}`
	u, err := url.Parse(l.Server)
	if err != nil {
		return nil, nil, errors.New("its url cannot be read; correct it")
	}
	u.User, u.Fragment = nil, ""
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, u.String(), strings.NewReader(hello))
	if err != nil {
		return nil, nil, errors.New("its url cannot be read; correct it")
	}
	for k, v := range l.Headers {
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
