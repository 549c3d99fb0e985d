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

// A Handler gives connections to one server the token that a person signed in
// for, renewed where it has to be. It asks nobody: without a token it says how to
// sign in. It is safe for concurrent use; processes that have the same store
// renew a token once.
type Handler struct {
	store  *Store
	server string
	next   string

	turn    chan struct{} // has who renews
	renewed string        // the token that came of a refusal; who has the turn looks
}

var _ auth.OAuthHandler = (*Handler)(nil)

// Handler returns the handler for the server at a URL. next is what a person is
// told to do where there is no token, or none that the server takes.
func (s *Store) Handler(server, next string) *Handler {
	return &Handler{store: s, server: server, next: next, turn: make(chan struct{}, 1)}
}

// Refuse returns a handler for a server that nobody is signed in to; next says why.
func Refuse(next string) *Handler { return &Handler{next: next} }

// Next says what a person can do where the server refuses us.
func (h *Handler) Next() string { return h.next }

// TokenSource implements [auth.OAuthHandler]. There is no source without a token.
// It fails where a token has to be renewed and that cannot be tried now.
func (h *Handler) TokenSource(ctx context.Context) (oauth2.TokenSource, error) {
	g, err := h.usable(ctx, "")
	if err != nil || g == nil {
		return nil, err
	}
	return oauth2.StaticTokenSource(&oauth2.Token{AccessToken: g.Access, TokenType: "Bearer", Expiry: g.Expiry}), nil
}

// Authorize implements [auth.OAuthHandler]: a token that the server no longer
// takes is renewed once, or replaced by one that another process has renewed. What
// a token may not do is asked for at the next sign-in.
func (h *Handler) Authorize(ctx context.Context, req *http.Request, res *http.Response) error {
	defer res.Body.Close()
	_, sent, _ := strings.Cut(req.Header.Get("Authorization"), " ")
	if res.StatusCode == http.StatusUnauthorized && sent != "" {
		g, err := h.usable(ctx, sent)
		if err != nil {
			return err
		}
		if g != nil {
			return nil
		}
	}
	if res.StatusCode == http.StatusForbidden && h.store != nil {
		if err := h.store.want(ctx, h.server, missed(res.Header)); err != nil {
			return fmt.Errorf("note what the server wants: %w; %s", err, h.next)
		}
	}
	return errors.New(h.next)
}

// want notes scopes that a server missed in a token, for the next sign-in.
func (s *Store) want(ctx context.Context, server string, scopes []string) error {
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

// missed are the scopes that an answer asks for.
func missed(h http.Header) []string {
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

// usable returns a grant with a token that can be sent and is not the refused
// one, nil where there is none.
func (h *Handler) usable(ctx context.Context, refused string) (*grant, error) {
	if h.store == nil {
		return nil, nil
	}
	g, err := h.store.read(ctx, h.server) // each time: whoever signs out is out at once
	if err == nil && g != nil && !g.fresh(refused) {
		g, err = h.renew(ctx, refused)
	}
	if err != nil {
		return nil, fmt.Errorf("use what you signed in with: %w; %s", err, h.next)
	}
	return g, nil
}

// renew renews what cannot be sent, for one caller after the other. Who waits may go: what
// was begun comes to its end, as a refresh token may be good for one use.
func (h *Handler) renew(ctx context.Context, refused string) (*grant, error) {
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
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
		defer cancel()
		g, err = h.renewInTurn(ctx, refused)
	}()
	select {
	case <-done:
		return g, err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (h *Handler) renewInTurn(ctx context.Context, refused string) (*grant, error) {
	if refused != "" && refused == h.renewed {
		return nil, nil // it was renewed for that already, and no other is taken
	}
	g, err := h.store.renew(ctx, h.server, refused)
	if err == nil && g != nil && refused != "" {
		h.renewed = g.Access
	}
	return g, err
}

// renew replaces a grant by what its refresh token gives, unless another has done
// so. Of one that is refused only the issuer stays, and nil is returned, as where
// there is none to renew.
func (s *Store) renew(ctx context.Context, server, refused string) (*grant, error) {
	client, guard, err := newClient(server, s.bounds)
	if err != nil {
		return nil, err
	}
	var out *grant
	err = s.change(ctx, server, func(g *grant) (*grant, error) {
		switch {
		case g.fresh(refused):
			out = g
			return g, nil
		case g == nil:
			return nil, nil
		case g.Refresh == "" && refused != "" && g.Access == refused:
			return g.ended(), nil
		case g.Refresh == "":
			return g, nil
		}
		next, err := g.refresh(ctx, client, guard)
		if refusal(err) {
			return g.ended(), nil
		}
		out = next
		return next, err
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// refresh spends the refresh token.
func (g *grant) refresh(ctx context.Context, client *http.Client, guard *transport) (*grant, error) {
	guard.recall(g.Private)
	own := *client
	own.Transport = &resourceful{guard, g.Resource}
	c := &oauth2.Config{ClientID: g.ClientID, ClientSecret: g.ClientSecret, Endpoint: oauth2.Endpoint{TokenURL: g.TokenURL, AuthStyle: g.AuthStyle}}
	t, err := c.TokenSource(context.WithValue(ctx, oauth2.HTTPClient, &own), &oauth2.Token{RefreshToken: g.Refresh}).Token()
	if err != nil {
		return nil, cleaned{err}
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

// refusal says whether the authorization server will never take a refresh token.
func refusal(err error) bool {
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

// checkToken refuses what cannot be sent as a bearer token.
func checkToken(t *oauth2.Token) error {
	const most = 64 << 10
	switch {
	case !strings.EqualFold(t.Type(), "Bearer"):
		return errors.New("the authorization server gave a token that is no bearer token")
	case len(t.AccessToken) > most || len(t.RefreshToken) > most:
		return errors.New("the authorization server gave a token that is too long")
	case strings.ContainsFunc(t.AccessToken, func(r rune) bool { return r <= ' ' || r > '~' }):
		return errors.New("the authorization server gave a token that cannot be sent")
	}
	return nil
}
