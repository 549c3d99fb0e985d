package signin

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

	"github.com/loadout-dev/loadout/internal/account"
	"github.com/loadout-dev/loadout/internal/oauth"
	"github.com/loadout-dev/loadout/upstream"
)

// handler notes that a server wants a sign-in.
type handler struct {
	*oauth.Handler
	wanted func(context.Context)
}

// Authorize implements [auth.OAuthHandler].
func (h *handler) Authorize(ctx context.Context, req *http.Request, res *http.Response) error {
	status := res.StatusCode
	err := h.Handler.Authorize(ctx, req, res)
	if err != nil && status == http.StatusUnauthorized {
		h.wanted(ctx)
	}
	return err
}

// Handler gives connections to a server, at one of its addresses, the token of a person:
// for [upstream.Dialer.OAuth]. Nobody is asked there, and who has not signed in is told
// where that is done. Connections that people share are nobody's. What brings credentials
// in its configuration has none.
func (s *Servers) Handler(user account.UserID, c *upstream.Config, at string) auth.OAuthHandler {
	if hasOwn(c) {
		return nil
	}
	next := fmt.Sprintf("sign in to %s at %s/servers?q=%s, then try again", c.Name, s.o.Page, url.QueryEscape(c.Name))
	if s.o.Page == "" {
		next = fmt.Sprintf("sign in to %s on the page of the hub, at /servers?q=%s, then try again", c.Name, url.QueryEscape(c.Name))
	}
	h := oauth.Refuse(next)
	if user != "" {
		h = s.store(user, c).Handler(at, next)
	}
	return &handler{h, func(ctx context.Context) {
		if err := s.o.DB.SignIns.Wanted(context.WithoutCancel(ctx), row(c.Digest(), oauth.Canonical(at))); err != nil {
			s.o.Logger.Warn("that a server wants a sign-in could not be noted", "error", err)
		}
	}}
}

// store has the sign-ins of a person to a server as it is defined. Where it is not the
// operator's, public addresses are reached only.
func (s *Servers) store(user account.UserID, c *upstream.Config) *oauth.Store {
	st := oauth.NewStore(s.defined(c.Digest()), string(user))
	if c.Owner != "" {
		st = st.Bounded(s.o.Private)
	}
	return st
}

// hasOwn says whether nobody signs in to a server: it is not reached over HTTP, or brings
// credentials.
func hasOwn(c *upstream.Config) bool {
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

// State is how it is with a server for somebody.
type State string

// The states; "" is that no sign-in is needed, as far as is known.
const (
	Needed   State = "needed"
	SignedIn State = "signed_in"
	Ended    State = "ended" // it was refused, or is over
)

// Standing is a state, with what can be shown of it.
type Standing struct {
	State State
	Since time.Time // of the sign-in
	*oauth.Granted
}

// States returns how it is with servers for somebody, by their digests; those that need
// nothing are not among them. Of several addresses the worst counts. Variables in
// addresses are not resolved here, and of such servers nothing is said.
func (s *Servers) States(ctx context.Context, user account.UserID, servers []*upstream.Config) (map[string]Standing, error) {
	seen, err := s.seen(ctx, user, servers)
	if err != nil {
		return nil, err
	}
	out := map[string]Standing{}
	for _, c := range servers {
		if st, err := s.state(ctx, user, c, seen); err != nil {
			return nil, err
		} else if st.State != "" {
			out[c.Digest()] = st
		}
	}
	return out, nil
}

func (s *Servers) state(ctx context.Context, user account.UserID, c *upstream.Config, seen *seen) (out Standing, err error) {
	rank := []State{"", SignedIn, Ended, Needed}
	for _, at := range addresses(c) {
		now := Standing{}
		key := row(c.Digest(), oauth.Canonical(at))
		if mine, ok := seen.mine[string(key)]; ok {
			standing, granted, err := s.store(user, c).Look(ctx, at)
			if err != nil {
				return out, err
			}
			now = Standing{map[oauth.Standing]State{oauth.SignedIn: SignedIn, oauth.Ended: Ended, oauth.None: Ended}[standing], mine, granted}
		} else if seen.wanted[string(key)] {
			now.State = Needed
		}
		if slices.Index(rank, now.State) > slices.Index(rank, out.State) {
			out = now
		}
	}
	return out, nil
}

// addresses are those of a server that somebody may sign in to.
func addresses(c *upstream.Config) []string {
	if hasOwn(c) || slices.ContainsFunc(c.URLs, func(at string) bool { return strings.Contains(at, "${") }) {
		return nil
	}
	return c.URLs
}

// seen is what is known of servers by their rows.
type seen struct {
	mine   map[string]time.Time // since when
	wanted map[string]bool
}

func (s *Servers) seen(ctx context.Context, user account.UserID, servers []*upstream.Config) (*seen, error) {
	mine, err := s.o.DB.SignIns.Began(ctx, string(user))
	if err != nil {
		return nil, err
	}
	out := &seen{mine: mine}
	var rows [][]byte
	for _, c := range servers {
		for _, at := range addresses(c) {
			rows = append(rows, row(c.Digest(), oauth.Canonical(at)))
		}
	}
	out.wanted, err = s.o.DB.SignIns.Wants(ctx, rows)
	return out, err
}

// Stamps returns for each server, whose variables are resolved, a text that is another one
// once somebody signs in to it or out; "" where no sign-in is known to be needed. What is
// connected for one who has a stamp is of him alone.
func (s *Servers) Stamps(ctx context.Context, user account.UserID, servers []*upstream.Config) ([]string, error) {
	known, err := s.seen(ctx, user, servers)
	if err != nil {
		return nil, err
	}
	out := make([]string, len(servers))
	for i, c := range servers {
		for _, at := range addresses(c) {
			key := row(c.Digest(), oauth.Canonical(at))
			if one, ok := known.mine[string(key)]; ok {
				out[i] += fmt.Sprintf("signed in %d;", one.UnixMilli())
			} else if known.wanted[string(key)] {
				out[i] += "wanted;"
			}
		}
	}
	return out, nil
}

// Stamp is a text that is another one once somebody signs in to any server, or out.
func (s *Servers) Stamp(ctx context.Context, user account.UserID) (string, error) {
	all, err := s.o.DB.SignIns.Began(ctx, string(user))
	if err != nil {
		return "", err
	}
	h := sha256.New()
	for _, server := range slices.Sorted(maps.Keys(all)) {
		fmt.Fprintf(h, "%x %d\n", server, all[server].UnixMilli())
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
