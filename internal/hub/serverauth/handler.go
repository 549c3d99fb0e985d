package serverauth

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/oauth"
	"github.com/loadout-dev/loadout/internal/upstream"
)

var _ upstream.LocalError = (*oauth.StorageError)(nil)

// handler is an OAuth handler that also records which servers require a sign-in.
type handler struct {
	*oauth.Handler
	onRequired func(context.Context)
}

// Authorize implements [auth.OAuthHandler].
func (h *handler) Authorize(ctx context.Context, req *http.Request, res *http.Response) error {
	status := res.StatusCode
	err := h.Handler.Authorize(ctx, req, res)
	if err != nil && status == http.StatusUnauthorized {
		h.onRequired(ctx)
	}
	return err
}

// Handler returns the OAuth handler for a user's connections to one of a server's
// addresses, for [upstream.Dialer.OAuth]. If the user is not signed in, requests
// fail with an error that names the sign-in page. Pass "" as user for shared
// connections, which use no tokens. Handler returns nil if the configuration
// contains credentials.
func (s *Servers) Handler(user account.UserID, c *upstream.Config, at string) auth.OAuthHandler {
	if needsNoSignIn(c) {
		return nil
	}
	next := fmt.Sprintf("sign in to %s at %s/servers?q=%s, then try again", c.Name, s.o.Page, url.QueryEscape(c.Name))
	if s.o.Page == "" {
		next = fmt.Sprintf("sign in to %s on the page of the hub, at /servers?q=%s, then try again", c.Name, url.QueryEscape(c.Name))
	}
	h := oauth.NewRefusingHandler(next)
	if user != "" {
		h = s.store(user, c).Handler(at, next)
	}
	return &handler{h, func(ctx context.Context) {
		if err := s.o.DB.SignIns.MarkRequired(context.WithoutCancel(ctx), rowKey(c.Digest(), oauth.CanonicalURL(at))); err != nil {
			s.o.Logger.Warn("couldn't record that a server requires a sign-in", "error", err)
		}
	}}
}

// store returns a user's OAuth token store for a server definition. For servers
// that the operator has not configured, it connects only to public addresses.
func (s *Servers) store(user account.UserID, c *upstream.Config) *oauth.Store {
	st := oauth.NewStore(s.newTokenStore(c.Digest()), string(user))
	if c.Owner != "" {
		st = st.PublicOnly(s.o.Private)
	}
	return st
}

// needsNoSignIn reports whether a server needs no sign-in, because it does not
// use HTTP or has credentials in its configuration.
func needsNoSignIn(c *upstream.Config) bool {
	if len(c.URLs) == 0 || c.Type != "" && c.Type != upstream.HTTP {
		return true
	}
	for k := range c.Headers {
		if strings.EqualFold(k, "Authorization") {
			return true
		}
	}
	return slices.ContainsFunc(c.URLs, func(raw string) bool {
		u, err := url.Parse(raw)
		return err != nil || u.User != nil || u.Scheme != "http" && u.Scheme != "https"
	})
}

// State is the state of a user's sign-in to a server.
type State string

// States of a sign-in. The empty state means that the server is not known to
// require a sign-in.
const (
	Needed   State = "needed"
	SignedIn State = "signed_in"
	Ended    State = "ended" // expired, or rejected by the server
)

// Status describes a user's sign-in to a server.
type Status struct {
	State State
	Since time.Time // time of the sign-in
	*oauth.Info
}

// States returns the status of a user's sign-ins to servers, by server digest. If a
// server has several addresses, States returns the worst of their states. States
// omits servers that need no sign-in and servers whose addresses contain variables.
func (s *Servers) States(ctx context.Context, user account.UserID, servers []*upstream.Config) (map[string]Status, error) {
	seen, err := s.readServerData(ctx, user, servers)
	if err != nil {
		return nil, err
	}
	out := map[string]Status{}
	for _, c := range servers {
		if st, err := s.state(ctx, user, c, seen); err != nil {
			return nil, err
		} else if st.State != "" {
			out[c.Digest()] = st
		}
	}
	return out, nil
}

func (s *Servers) state(ctx context.Context, user account.UserID, c *upstream.Config, seen *knownServers) (out Status, err error) {
	rank := []State{"", SignedIn, Ended, Needed}
	for _, at := range addresses(c) {
		now := Status{}
		key := rowKey(c.Digest(), oauth.CanonicalURL(at))
		if mine, ok := seen.started[string(key)]; ok {
			standing, granted, err := s.store(user, c).Status(ctx, at)
			if err != nil {
				return out, err
			}
			now = Status{map[oauth.Status]State{oauth.SignedIn: SignedIn, oauth.Ended: Ended, oauth.None: Ended}[standing], mine, granted}
		} else if seen.required[string(key)] {
			now.State = Needed
		}
		if slices.Index(rank, now.State) > slices.Index(rank, out.State) {
			out = now
		}
	}
	return out, nil
}

// addresses returns the server addresses at which users can sign in.
func addresses(c *upstream.Config) []string {
	if needsNoSignIn(c) || slices.ContainsFunc(c.URLs, func(at string) bool { return strings.Contains(at, "${") }) {
		return nil
	}
	return c.URLs
}

// knownServers holds stored data about servers, by row key.
type knownServers struct {
	started  map[string]time.Time // time of the user's sign-in
	required map[string]bool
}

func (s *Servers) readServerData(ctx context.Context, user account.UserID, servers []*upstream.Config) (*knownServers, error) {
	mine, err := s.o.DB.SignIns.StartTimes(ctx, string(user))
	if err != nil {
		return nil, err
	}
	out := &knownServers{started: mine}
	var rows [][]byte
	for _, c := range servers {
		for _, at := range addresses(c) {
			rows = append(rows, rowKey(c.Digest(), oauth.CanonicalURL(at)))
		}
	}
	out.required, err = s.o.DB.SignIns.FilterRequired(ctx, rows)
	return out, err
}

// Fingerprints returns one string for each server; the string changes when the user
// signs in or out. It is "" if the server is not known to require a sign-in. If it
// is not "", users must not share connections to the server. The servers' variables
// must be resolved.
func (s *Servers) Fingerprints(ctx context.Context, user account.UserID, servers []*upstream.Config) ([]string, error) {
	known, err := s.readServerData(ctx, user, servers)
	if err != nil {
		return nil, err
	}
	out := make([]string, len(servers))
	for i, c := range servers {
		for _, at := range addresses(c) {
			key := rowKey(c.Digest(), oauth.CanonicalURL(at))
			if one, ok := known.started[string(key)]; ok {
				out[i] += fmt.Sprintf("signed in %d;", one.UnixMilli())
			} else if known.required[string(key)] {
				out[i] += "wanted;"
			}
		}
	}
	return out, nil
}

// Fingerprint returns a string that changes when the user signs in to or out of any
// server.
func (s *Servers) Fingerprint(ctx context.Context, user account.UserID) (string, error) {
	all, err := s.o.DB.SignIns.StartTimes(ctx, string(user))
	if err != nil {
		return "", err
	}
	h := sha256.New()
	for _, server := range slices.Sorted(maps.Keys(all)) {
		fmt.Fprintf(h, "%x %d\n", server, all[server].UnixMilli())
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
