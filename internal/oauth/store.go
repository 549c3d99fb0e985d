// Package oauth signs users in to MCP servers and stores their tokens in a
// [Storage].
//
// [Store.Begin] starts a sign-in and returns the page to open in a browser, and
// [Store.Finish] processes the browser's response. They may run in different
// processes; see [Attempt]. [Store.Login] does both. A [Handler] provides the
// token and refreshes it.
//
// A token is sent only to the server that it was issued for and to the
// authorization server that issued it. No error or log contains a token.
package oauth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"golang.org/x/oauth2"

	"github.com/loadout-dev/loadout/internal/privatefile"
)

const (
	version = 1
	// leeway is how long before its expiry a token is treated as expired, so
	// that it does not expire while a request is sent.
	leeway = 10 * time.Second
)

// A Store manages a principal's sign-ins. It does not need to be closed. It is
// safe for concurrent use, even by several processes.
type Store struct {
	storage   Storage
	principal string
	bounds    *bounds
}

// NewStore returns a store for a principal's sign-ins.
func NewStore(storage Storage, principal string) *Store {
	return &Store{storage: storage, principal: principal}
}

// bounds restricts requests to public addresses and the listed private
// addresses.
type bounds struct{ private []netip.Prefix }

// PublicOnly returns a store that connects only to public addresses and the
// given private addresses. Use it for servers whose URL is not trusted.
func (s *Store) PublicOnly(private []netip.Prefix) *Store {
	out := *s
	out.bounds = &bounds{private}
	return &out
}

// grant is a stored token with the data to refresh and revoke it. It is stored
// under the principal and the server, because the issuer is unknown until the
// server is contacted. The endpoints are those of the issuer. A permanently
// rejected token is removed from its grant.
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
	Private       bool             `json:"private,omitempty"` // the server had a non-public address
	Wanted        []string         `json:"wanted,omitempty"`  // scopes that the server required but the token lacked
	Access        string           `json:"access_token"`
	Refresh       string           `json:"refresh_token,omitempty"`
	Expiry        time.Time        `json:"expiry,omitzero"`
}

// isFresh reports whether the token is valid and differs from rejected, a token
// that the server no longer accepts. g may be nil.
func (g *grant) isFresh(rejected string) bool {
	return g != nil && g.Access != "" && g.Access != rejected && (g.Expiry.IsZero() || time.Until(g.Expiry) > leeway)
}

// withoutTokens returns a copy of g without tokens and without the data to
// refresh them.
func (g *grant) withoutTokens() *grant {
	return &grant{Version: g.Version, Principal: g.Principal, Server: g.Server, Issuer: g.Issuer, Wanted: g.Wanted}
}

// CanonicalURL returns the normalized form of a server's URL, which identifies
// sign-ins. It returns an invalid URL unchanged.
func CanonicalURL(server string) string {
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

// hostPort returns the host and port of u, adding the default port of its
// scheme if necessary.
func hostPort(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = defaultPort(u)
	}
	return net.JoinHostPort(strings.ToLower(u.Hostname()), port)
}

func (s *Store) key(server string) Key { return Key{s.principal, CanonicalURL(server)} }

// Status is the status of a sign-in.
type Status string

// Sign-in statuses. Ended means that the token was rejected, or has expired and
// cannot be refreshed.
const (
	None     Status = "none"
	SignedIn Status = "signed_in"
	Ended    Status = "ended"
)

// Status returns the status and a description of the sign-in to a server. It
// does not contact the server.
func (s *Store) Status(ctx context.Context, server string) (Status, *Info, error) {
	g, err := s.read(ctx, server)
	if err != nil || g == nil {
		return None, nil, err
	}
	return g.status(), g.info(), nil
}

// Inspect decodes data from a [Storage]. It returns the server and the same
// results as [Store.Status]. If the data cannot be decoded, server is "".
func (s *Store) Inspect(data []byte) (server string, now Status, shown *Info) {
	var named struct{ Server string }
	if json.Unmarshal(data, &named) != nil {
		return "", None, nil
	}
	g, err := s.decode(named.Server, data)
	if err != nil || g == nil {
		return "", None, nil
	}
	return g.Server, g.status(), g.info()
}

func (g *grant) status() Status {
	if g.isFresh("") || g.Refresh != "" {
		return SignedIn
	}
	return Ended
}

func (g *grant) info() *Info { return &Info{g.Issuer, g.Scopes, g.Expiry, g.Refresh != ""} }

// read returns the grant for a server, or nil if there is none. If the storage
// fails, the error is a [*StorageError].
func (s *Store) read(ctx context.Context, server string) (*grant, error) {
	data, err := s.storage.Read(ctx, s.key(server))
	if err != nil {
		return nil, storageError(ctx, err)
	}
	return s.decode(server, data)
}

// decode decodes a grant. If data is nil, it returns a nil grant and no error.
// If the grant does not belong to the principal and the server, it returns an
// error.
func (s *Store) decode(server string, data []byte) (*grant, error) {
	if data == nil {
		return nil, nil
	}
	var g grant
	if err := privatefile.CheckVersion(data, version); err != nil {
		return nil, fmt.Errorf("read stored sign-in: %w", err)
	}
	if json.Unmarshal(data, &g) != nil || g.Principal != s.principal || g.Server != CanonicalURL(server) {
		return nil, errors.New("stored sign-in is corrupt or belongs to another server") // the decoding error could contain parts of a token
	}
	return &g, nil
}

// write stores a grant, replacing a previous grant even if that is corrupt.
func (s *Store) write(ctx context.Context, server string, g *grant) error {
	g.Version, g.Principal, g.Server = version, s.principal, CanonicalURL(server)
	return s.storage.Change(ctx, s.key(server), func([]byte) ([]byte, error) { return json.Marshal(g) })
}

// change replaces a grant with the result of edit while holding a lock. A nil
// result deletes the grant. If edit returns the same grant or an error, the
// stored grant is unchanged. If the storage fails, the error is a
// [*StorageError].
func (s *Store) change(ctx context.Context, server string, edit func(*grant) (*grant, error)) error {
	var failed error // reason for not changing the grant
	err := s.storage.Change(ctx, s.key(server), func(old []byte) ([]byte, error) {
		var g, next *grant
		if g, failed = s.decode(server, old); failed != nil {
			return nil, failed
		}
		if next, failed = edit(g); failed != nil {
			return nil, failed
		}
		switch next {
		case g:
			return old, nil
		case nil:
			return nil, nil
		}
		return json.Marshal(next)
	})
	if failed != nil {
		return err
	}
	return storageError(ctx, err)
}

// remove deletes and returns a grant. g is nil if there was none or it could
// not be decoded.
func (s *Store) remove(ctx context.Context, server string) (g *grant, found bool, err error) {
	if data, err := s.storage.Read(ctx, s.key(server)); data == nil && err == nil {
		return nil, false, nil
	}
	err = s.storage.Change(ctx, s.key(server), func(old []byte) ([]byte, error) {
		found = old != nil
		g, _ = s.decode(server, old)
		return nil, nil
	})
	return g, found, err
}
