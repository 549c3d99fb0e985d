// Package oauth signs a person in to MCP servers that want it, and keeps what
// came of it: a token for each person and server, where a [Keep] has it.
//
// A sign-in is begun, which gives a page to open in a browser, and finished with what
// the browser comes back with: by one process that waits, or by two that share what is
// between, see [Attempt]. What is kept is renewed and withdrawn here.
//
// A token goes to the server that it was given for and to no other, and back to
// the authorization server that gave it. It is in no error and no log.
package oauth

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"golang.org/x/oauth2"
)

const (
	version = 1
	// leeway is how long before its end a token is not sent any more: it has to
	// last until the request is there.
	leeway = 10 * time.Second
)

// A Store has the sign-ins of one person. Nothing is kept open. It is safe for
// concurrent use, by any number of processes.
type Store struct {
	keep      Keep
	principal string
	bounds    *bounds
}

// NewStore returns the sign-ins of a person in a keep.
func NewStore(keep Keep, principal string) *Store { return &Store{keep: keep, principal: principal} }

// bounds are where requests may go: to public addresses, and to some others.
type bounds struct{ private []netip.Prefix }

// Bounded is a store that reaches public addresses only, and those that are given: for
// servers of which others say where they are.
func (s *Store) Bounded(private []netip.Prefix) *Store {
	out := *s
	out.bounds = &bounds{private}
	return &out
}

// grant is what a person was given: a token, and all that renewing and revoking
// it takes. The issuer is not known before a server was asked, so that it is
// found by person and server; the endpoints in it are those of its issuer alone,
// and a sign-in at another issuer does not take its place. One that could not be
// renewed any more has no token.
type grant struct {
	Version       int              `json:"version"`
	Principal     string           `json:"principal"`
	Server        string           `json:"server"`
	Issuer        string           `json:"issuer"`
	Resource      string           `json:"resource"`
	TokenURL      string           `json:"token_endpoint"`
	RevocationURL string           `json:"revocation_endpoint,omitempty"`
	ClientID      string           `json:"client_id"`
	ClientSecret  string           `json:"client_secret,omitempty"`
	AuthStyle     oauth2.AuthStyle `json:"auth_style,omitempty"`
	Scopes        []string         `json:"scopes,omitempty"`
	Private       bool             `json:"private,omitempty"` // whether the server was at an address that is not public
	Wanted        []string         `json:"wanted,omitempty"`  // scopes that the server missed
	Access        string           `json:"access_token"`
	Refresh       string           `json:"refresh_token,omitempty"`
	Expiry        time.Time        `json:"expiry,omitzero"`
}

// fresh says whether the token can be sent, and is not the one that was refused.
func (g *grant) fresh(refused string) bool {
	return g != nil && g.Access != "" && g.Access != refused && (g.Expiry.IsZero() || time.Until(g.Expiry) > leeway)
}

// ended is what stays of a grant of which the tokens are good for nothing: who gave them.
func (g *grant) ended() *grant {
	return &grant{Version: g.Version, Principal: g.Principal, Server: g.Server, Issuer: g.Issuer, Wanted: g.Wanted}
}

// Canonical is a server's URL as sign-ins are found by it.
func Canonical(server string) string {
	u, err := url.Parse(server)
	if err != nil {
		return server
	}
	switch u.Scheme = strings.ToLower(u.Scheme); u.Scheme {
	case "ws", "wss":
		u.Scheme = "http" + strings.TrimPrefix(u.Scheme, "ws")
	}
	u.Host = strings.ToLower(u.Host)
	if u.Port() == defaultPort(u) {
		u.Host = strings.TrimSuffix(u.Host, ":"+u.Port())
	}
	if u.Path == "/" {
		u.Path = ""
	}
	u.User, u.Fragment = nil, ""
	return u.String()
}

func defaultPort(u *url.URL) string {
	return map[string]string{"http": "80", "https": "443"}[u.Scheme]
}

// hostPort is where a URL is connected to.
func hostPort(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = defaultPort(u)
	}
	return net.JoinHostPort(strings.ToLower(u.Hostname()), port)
}

func (s *Store) key(server string) Key { return Key{s.principal, Canonical(server)} }

// Standing is how it is with a sign-in.
type Standing string

// The standings: nobody signed in, or somebody did, or his sign-in has ended: it was
// refused, or is over and is not renewed.
const (
	None     Standing = "none"
	SignedIn Standing = "signed_in"
	Ended    Standing = "ended"
)

// Look says how it is with the sign-in to a server, and what can be shown of it. It asks
// nobody: what was refused meanwhile is known when it is used.
func (s *Store) Look(ctx context.Context, server string) (Standing, *Granted, error) {
	g, err := s.read(ctx, server)
	if err != nil || g == nil {
		return None, nil, err
	}
	return g.standing(), g.shown(), nil
}

// Of says of what a keep has of the person to which server it is, and the same of it as
// Look. What cannot be read is to none.
func (s *Store) Of(data []byte) (server string, now Standing, shown *Granted) {
	var named struct{ Server string }
	if json.Unmarshal(data, &named) != nil {
		return "", None, nil
	}
	g, err := s.decode(named.Server, data)
	if err != nil || g == nil {
		return "", None, nil
	}
	return g.Server, g.standing(), g.shown()
}

func (g *grant) standing() Standing {
	if g.fresh("") || g.Refresh != "" {
		return SignedIn
	}
	return Ended
}

func (g *grant) shown() *Granted { return &Granted{g.Issuer, g.Scopes, g.Expiry, g.Refresh != ""} }

// read returns the grant for a server, nil where there is none.
func (s *Store) read(ctx context.Context, server string) (*grant, error) {
	data, err := s.keep.Read(ctx, s.key(server))
	if err != nil {
		return nil, err
	}
	return s.decode(server, data)
}

// decode reads a grant, which has to be for this person and server.
func (s *Store) decode(server string, data []byte) (*grant, error) {
	if data == nil {
		return nil, nil
	}
	var g grant
	if json.Unmarshal(data, &g) != nil || g.Version != version || g.Principal != s.principal || g.Server != Canonical(server) {
		return nil, errors.New("what is kept is damaged or not for this server") // more could be a part of a token
	}
	return &g, nil
}

// write puts a grant in place of any there is, readable or not.
func (s *Store) write(ctx context.Context, server string, g *grant) error {
	g.Version, g.Principal, g.Server = version, s.principal, Canonical(server)
	return s.keep.Change(ctx, s.key(server), func([]byte) ([]byte, error) { return json.Marshal(g) })
}

// change replaces a grant by what edit makes of it, nil for none, while no other
// process does. An error of edit, or the same grant, changes nothing.
func (s *Store) change(ctx context.Context, server string, edit func(*grant) (*grant, error)) error {
	return s.keep.Change(ctx, s.key(server), func(old []byte) ([]byte, error) {
		g, err := s.decode(server, old)
		if err != nil {
			return nil, err
		}
		next, err := edit(g)
		switch {
		case err != nil:
			return nil, err
		case next == g:
			return old, nil
		case next == nil:
			return nil, nil
		}
		return json.Marshal(next)
	})
}

// take removes a grant and returns it, nil where there was none or it could not
// be read.
func (s *Store) take(ctx context.Context, server string) (g *grant, found bool, err error) {
	if data, err := s.keep.Read(ctx, s.key(server)); data == nil && err == nil {
		return nil, false, nil
	}
	err = s.keep.Change(ctx, s.key(server), func(old []byte) ([]byte, error) {
		found = old != nil
		g, _ = s.decode(server, old)
		return nil, nil
	})
	return g, found, err
}
