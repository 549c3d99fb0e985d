package oauth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"golang.org/x/oauth2"
)

// A Handler provides the access token for connections to a server and refreshes
// it. It never prompts the user: if there is no valid token, its error says how
// to sign in. It is safe for concurrent use. Processes that share a [Storage]
// refresh each token only once.
type Handler struct {
	store  *Store
	server string
	next   string

	turn           chan struct{} // semaphore held while refreshing
	refreshedToken string        // result of the last refresh of a rejected token; guarded by turn
}

var _ auth.OAuthHandler = (*Handler)(nil)

// Handler returns a handler for a server. next says what the user can do if
// there is no valid token.
func (s *Store) Handler(server, next string) *Handler {
	return &Handler{store: s, server: server, next: next, turn: make(chan struct{}, 1)}
}

// NewRefusingHandler returns a handler that never has a token, for servers to
// which the user cannot sign in. next says why.
func NewRefusingHandler(next string) *Handler { return &Handler{next: next} }

// Next returns what the user can do if the server rejects the token.
func (h *Handler) Next() string { return h.next }

// TokenSource implements [auth.OAuthHandler]. It returns nil if there is no
// token, a [*StorageError] if the storage cannot be used, and another error if
// the token cannot be refreshed now.
func (h *Handler) TokenSource(ctx context.Context) (oauth2.TokenSource, error) {
	g, err := h.usableGrant(ctx, "")
	if err != nil || g == nil {
		return nil, err
	}
	return oauth2.StaticTokenSource(&oauth2.Token{AccessToken: g.Access, TokenType: "Bearer", Expiry: g.Expiry}), nil
}

// Authorize implements [auth.OAuthHandler]. It refreshes a rejected token once,
// unless another process has already refreshed it. It records scopes that the
// token lacked, to request them at the next sign-in.
func (h *Handler) Authorize(ctx context.Context, req *http.Request, res *http.Response) error {
	defer res.Body.Close()
	_, sent, _ := strings.Cut(req.Header.Get("Authorization"), " ")
	if res.StatusCode == http.StatusUnauthorized && sent != "" {
		g, err := h.usableGrant(ctx, sent)
		if err != nil {
			return err
		}
		if g != nil {
			return nil
		}
	}
	if res.StatusCode == http.StatusForbidden && h.store != nil {
		if err := h.store.addWanted(ctx, h.server, missingScopes(res.Header)); err != nil {
			return h.addNextStep("record required scopes", err)
		}
	}
	return errors.New(h.next)
}

// addNextStep adds the failed operation and the user's next step to err.
func (h *Handler) addNextStep(operation string, err error) error {
	if broken, ok := errors.AsType[*StorageError](err); ok { // signing in does not help
		return &StorageError{fmt.Errorf("%s: %w; try again in a moment", operation, broken.Err)}
	}
	return fmt.Errorf("%s: %w; %s", operation, err, h.next)
}

// addWanted records scopes that a token lacked, so that the next sign-in
// requests them.
func (s *Store) addWanted(ctx context.Context, server string, scopes []string) error {
	if g, err := s.read(ctx, server); err != nil || g == nil || len(scopes) == 0 {
		return err
	}
	return s.change(ctx, server, func(g *grant) (*grant, error) {
		if g == nil {
			return nil, nil
		}
		next := *g
		next.Wanted = scopes
		return &next, nil
	})
}

// missingScopes returns the scopes in an insufficient_scope challenge.
func missingScopes(h http.Header) []string {
	const most, longest = 100, 200
	all, err := oauthex.ParseWWWAuthenticate(h.Values("WWW-Authenticate"))
	if err != nil {
		return nil
	}
	for _, c := range all {
		if c.Scheme == "bearer" && c.Params["error"] == "insufficient_scope" {
			scopes := strings.Fields(c.Params["scope"])
			scopes = slices.DeleteFunc(scopes, func(s string) bool { return len(s) > longest })
			return scopes[:min(len(scopes), most)]
		}
	}
	return nil
}

// usableGrant returns a grant with a valid token other than rejected, a token
// that the server no longer accepts. It refreshes the token if necessary, and
// returns nil if there is no usable grant.
func (h *Handler) usableGrant(ctx context.Context, rejected string) (*grant, error) {
	if h.store == nil {
		return nil, nil
	}
	g, err := h.store.read(ctx, h.server) // not cached, so that signing out takes effect immediately
	if err == nil && g != nil && !g.isFresh(rejected) {
		g, err = h.refresh(ctx, rejected)
	}
	if err != nil {
		return nil, h.addNextStep("use stored sign-in", err)
	}
	return g, nil
}

// refresh refreshes the token, one caller at a time. If ctx is done, the
// refresh continues in the background, because a refresh token may work only
// once.
func (h *Handler) refresh(ctx context.Context, rejected string) (*grant, error) {
	select {
	case h.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	var (
		g    *grant
		err  error
		done = make(chan struct{})
	)
	go func() {
		defer close(done)
		defer func() { <-h.turn }()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), requestTimeout)
		defer cancel()
		g, err = h.refreshLocked(ctx, rejected)
	}()
	select {
	case <-done:
		return g, err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (h *Handler) refreshLocked(ctx context.Context, rejected string) (*grant, error) {
	if rejected != "" && rejected == h.refreshedToken {
		return nil, nil // the refreshed token was rejected too
	}
	g, err := h.store.refreshGrant(ctx, h.server, rejected)
	if err == nil && g != nil && rejected != "" {
		h.refreshedToken = g.Access
	}
	return g, err
}

// refreshGrant refreshes the stored grant, unless another process has already
// refreshed it. If the authorization server rejects the refresh token,
// refreshGrant deletes the tokens. It returns nil if there is no usable grant.
func (s *Store) refreshGrant(ctx context.Context, server, rejected string) (*grant, error) {
	client, guard, err := newClient(server, s.bounds)
	if err != nil {
		return nil, err
	}
	var out *grant
	err = s.change(ctx, server, func(g *grant) (*grant, error) {
		switch {
		case g.isFresh(rejected):
			out = g
			return g, nil
		case g == nil:
			return nil, nil
		case g.Refresh == "" && rejected != "" && g.Access == rejected:
			return g.withoutTokens(), nil
		case g.Refresh == "":
			return g, nil
		}
		next, err := g.refresh(ctx, client, guard)
		if isRefusal(err) {
			return g.withoutTokens(), nil
		}
		out = next
		return next, err
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// refresh requests a new token with the refresh token, and returns a copy of g
// with the new token.
func (g *grant) refresh(ctx context.Context, client *http.Client, guard *transport) (*grant, error) {
	guard.restore(g.Private)
	own := *client
	own.Transport = &resourceTransport{guard, g.Resource}
	c := &oauth2.Config{ClientID: g.ClientID, ClientSecret: g.ClientSecret, Endpoint: oauth2.Endpoint{TokenURL: g.TokenURL, AuthStyle: g.AuthStyle}}
	t, err := c.TokenSource(context.WithValue(ctx, oauth2.HTTPClient, &own), &oauth2.Token{RefreshToken: g.Refresh}).Token()
	if err != nil {
		return nil, safeError{err}
	}
	if err := checkToken(t); err != nil {
		return nil, err
	}
	next := *g
	next.Access, next.Refresh, next.Expiry = t.AccessToken, t.RefreshToken, t.Expiry
	if s, _ := t.Extra("scope").(string); s != "" {
		next.Scopes = strings.Fields(s)
	}
	return &next, nil
}

// isRefusal reports whether the authorization server has permanently rejected
// the refresh token.
func isRefusal(err error) bool {
	e, ok := errors.AsType[*oauth2.RetrieveError](err)
	if !ok {
		return false
	}
	switch e.ErrorCode {
	case "invalid_grant", "invalid_client", "unauthorized_client", "unsupported_grant_type":
		return true
	}
	return false
}

// checkToken returns an error if a token cannot be sent as a bearer token.
func checkToken(t *oauth2.Token) error {
	const most = 64 << 10
	switch {
	case !strings.EqualFold(t.Type(), "Bearer"):
		return errors.New("authorization server returned an unsupported token type: want Bearer")
	case len(t.AccessToken) > most || len(t.RefreshToken) > most:
		return errors.New("authorization server returned a token that is too long")
	case strings.ContainsFunc(t.AccessToken, func(r rune) bool { return r <= ' ' || r > '~' }):
		return errors.New("authorization server returned a token with invalid characters")
	}
	return nil
}
