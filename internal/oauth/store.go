// Package oauth signs a person in to MCP servers that want it, and keeps what
// came of it: a token for each person and server, in a file of the person's own.
// The flow is that of the SDK; what is kept, renewed and withdrawn is here.
//
// A token goes to the server that it was given for and to no other, and back to
// the authorization server that gave it. It is in no error and no log.
package oauth

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/oauth2"

	"github.com/loadout-dev/loadout/policy"
)

const (
	version = 1
	maxFile = 256 << 10
	// leeway is how long before its end a token is not sent any more: it has to
	// last until the request is there.
	leeway = 10 * time.Second
)

// A Store keeps the sign-ins of one person. Nothing is kept open. It is safe for
// concurrent use, by any number of processes.
type Store struct{ dir, principal string }

// NewStore returns the store in the directory dir, which is made when something
// is kept.
func NewStore(dir, principal string) *Store { return &Store{dir, principal} }

// grant is what a person was given: a token, and all that renewing and revoking
// it takes. The issuer is not known before a server was asked, so that a file is
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

// canonical is a server's URL as files are found by it.
func canonical(server string) string {
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

func (s *Store) path(server string) string {
	sum := sha256.Sum256([]byte(s.principal + "\x00" + canonical(server)))
	return filepath.Join(s.dir, hex.EncodeToString(sum[:16])+".json")
}

func (s *Store) file(server string) *policy.OwnFile {
	return policy.NewOwnFile(s.path(server), maxFile)
}

// read returns the grant for a server, nil where there is none.
func (s *Store) read(server string) (*grant, error) {
	data, err := s.file(server).Read()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
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
	if json.Unmarshal(data, &g) != nil || g.Version != version || g.Principal != s.principal || g.Server != canonical(server) {
		return nil, errors.New("the file is damaged or not for this server") // more could be a part of a token
	}
	return &g, nil
}

// write puts a grant in place of any there is, readable or not.
func (s *Store) write(ctx context.Context, server string, g *grant) error {
	g.Version, g.Principal, g.Server = version, s.principal, canonical(server)
	return s.file(server).Change(ctx, func([]byte) ([]byte, error) { return json.Marshal(g) })
}

// errKept and errGone end a change that is none.
var errKept, errGone = errors.New("kept"), errors.New("gone")

// change replaces a grant by what edit makes of it, nil for none, while no other
// process does. An error of edit, or the same grant, changes nothing.
func (s *Store) change(ctx context.Context, server string, edit func(*grant) (*grant, error)) error {
	err := s.file(server).Change(ctx, func(old []byte) ([]byte, error) {
		g, err := s.decode(server, old)
		if err != nil {
			return nil, err
		}
		next, err := edit(g)
		switch {
		case err != nil:
			return nil, err
		case next == g:
			return nil, errKept
		case next == nil:
			return nil, s.delete(server)
		}
		return json.Marshal(next)
	})
	if errors.Is(err, errKept) || errors.Is(err, errGone) {
		return nil
	}
	return err
}

// delete removes the file while its lock is held.
func (s *Store) delete(server string) error {
	if err := os.Remove(s.path(server)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("delete the sign-in: %w", err)
	}
	return errGone
}

// take removes a grant and returns it, nil where there was none or it could not
// be read.
func (s *Store) take(ctx context.Context, server string) (g *grant, found bool, err error) {
	if _, err := os.Lstat(s.path(server)); errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	err = s.file(server).Change(ctx, func(old []byte) ([]byte, error) {
		found = old != nil
		g, _ = s.decode(server, old)
		return nil, s.delete(server)
	})
	if errors.Is(err, errGone) {
		err = nil
	}
	return g, found, err
}
