package oauth

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"golang.org/x/oauth2"
)

// Logout deletes the sign-in to a server and revokes its tokens if the
// authorization server supports revocation. found reports whether there was a
// sign-in, and revoked whether all of its tokens were revoked. The sign-in
// stays deleted even if revocation fails.
func (s *Store) Logout(ctx context.Context, server string) (found, revoked bool, err error) {
	g, found, err := s.remove(ctx, server)
	if err == nil && g != nil && g.Access == "" && g.Refresh == "" {
		return found, true, nil // no token is left to revoke
	}
	if err != nil || g == nil || !sameOrigin(g.RevocationURL, g.TokenURL) {
		return found, false, err
	}
	client, guard, err := newClient(server, s.bounds)
	if err != nil {
		return found, false, err
	}
	guard.restore(g.Private)
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	revoked = true
	for _, one := range []struct{ kind, token string }{{"refresh_token", g.Refresh}, {"access_token", g.Access}} {
		if one.token != "" && g.revoke(ctx, client, one.kind, one.token) != nil {
			revoked = false
		}
	}
	return found, revoked, nil
}

// revoke revokes a token as specified in RFC 7009.
func (g *grant) revoke(ctx context.Context, client *http.Client, kind, token string) error {
	form := url.Values{"token": {token}, "token_type_hint": {kind}}
	basic := g.ClientSecret != "" && g.AuthStyle != oauth2.AuthStyleInParams
	if !basic {
		form.Set("client_id", g.ClientID)
		if g.ClientSecret != "" {
			form.Set("client_secret", g.ClientSecret)
		}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, g.RevocationURL, strings.NewReader(form.Encode()))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if basic {
		req.SetBasicAuth(url.QueryEscape(g.ClientID), url.QueryEscape(g.ClientSecret))
	}
	res, err := client.Do(req)
	if err != nil {
		return err
	}
	res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return errors.New(res.Status)
	}
	return nil
}
