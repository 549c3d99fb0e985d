// Package signin signs the people of a hub in to MCP servers that want it. A sign-in is
// begun by one request and ended by another, on any node, and from then on the person's
// own token goes to that server when it is called for him: see [Servers.Handler].
//
// It is for a server as it is defined, like a secret that was granted to it: one that is
// defined differently is signed in to anew. What was given is sealed in the database, and
// is in no error, log or answer. Each method takes who acts and asks whether he may use
// the server; what he does is in the audit log.
package signin

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"time"

	"github.com/loadout-dev/loadout/internal/account"
	"github.com/loadout-dev/loadout/internal/hub/kinds"
	"github.com/loadout-dev/loadout/internal/oauth"
	"github.com/loadout-dev/loadout/internal/seal"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/upstream"
)

const (
	// Time is how long somebody has to come back with his browser.
	Time = 10 * time.Minute
	// MaxBegun bounds the sign-ins of one person that wait.
	MaxBegun = 20
	// MaxServers bounds the servers that one person is signed in to.
	MaxServers = 200

	finishTime = 30 * time.Second
)

// What the audit log calls what is done here.
const (
	signIn  account.Action = "server.sign_in"
	signOut account.Action = "server.sign_out"
)

var (
	// ErrNotNeeded says that nobody signs in to a server.
	ErrNotNeeded = errors.New("nobody signs in to it: it is not reached over HTTP, or its configuration brings credentials")
	// ErrUnknown says that no such sign-in waits for whoever came back.
	ErrUnknown = errors.New("no sign-in of yours waits for that in this browser: it is over, was used, or was begun elsewhere")
	// ErrUnset says that a server cannot be reached, as values are missing.
	ErrUnset = errors.New("it is not configured")
)

// FailedError says that a server, or its authorization server, did not let anybody sign in.
type FailedError struct{ Err error }

func (e *FailedError) Error() string {
	if name, ok := errors.AsType[*net.DNSError](e.Err); ok { // without whom the hub asked
		return fmt.Sprintf("its host %q is not found", name.Name)
	}
	return e.Err.Error()
}

// Unwrap gives why.
func (e *FailedError) Unwrap() error { return e.Err }

// Options are what sign-ins are made from. All but Private, Page and Logger have to be set.
type Options struct {
	DB      *store.DB
	Kinds   *kinds.Registry
	Sealer  *seal.Sealer
	Private []netip.Prefix // that servers may have though they are not public
	Node    string         // a name that no other process has
	Page    string         // the address of the hub, "" where it is not known
	Logger  *slog.Logger   // nil discards
}

// Servers are those that people sign in to. It is safe for concurrent use.
type Servers struct{ o Options }

// New returns the servers of a hub.
func New(o Options) *Servers {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return &Servers{o}
}

// Coming says from where somebody signs in, and to where he returns.
type Coming struct {
	Redirect string // of this hub, where the browser comes back with the answer
	Browser  string // a secret that the browser has, and will have then
	Back     string // a path of this hub
}

// begun is what is kept of a sign-in until the browser comes back.
type begun struct {
	Attempt *oauth.Attempt `json:"attempt"`
	Of      kinds.Subject  `json:"of"`
	Digest  string         `json:"digest"`
	Back    string         `json:"back"`
}

// may fails for who may not sign in and out with the way in that he has: it is as keeping
// a secret of one's own.
func may(p account.Principal) error {
	return account.Check(p, account.SecretWrite, account.Of(p.User))
}

// used is a server of a subject that somebody may sign in to, resolved.
func (s *Servers) used(ctx context.Context, p account.Principal, of kinds.Subject) (*upstream.Config, error) {
	if err := may(p); err != nil {
		return nil, err
	}
	server, v, err := s.o.Kinds.Used(ctx, p, of)
	if err != nil {
		return nil, err
	}
	c, unset := server.Resolve(v)
	switch {
	case len(unset) > 0:
		return nil, fmt.Errorf("%w: %s", ErrUnset, unset[0])
	case hasOwn(c):
		return nil, ErrNotNeeded
	}
	return c, nil
}

// addressed is a server of a subject of which the addresses are known, and nothing else:
// to sign out it takes no values.
func (s *Servers) addressed(ctx context.Context, p account.Principal, of kinds.Subject) (*upstream.Config, error) {
	if err := may(p); err != nil {
		return nil, err
	}
	server, v, err := s.o.Kinds.Used(ctx, p, of)
	if err != nil {
		return nil, err
	}
	bare := &upstream.Config{Name: server.Name, Type: server.Type, URLs: server.URLs, Owner: server.Owner}
	c, unset := bare.Resolve(v)
	switch {
	case len(unset) > 0:
		return nil, fmt.Errorf("%w: %s", ErrUnset, unset[0])
	case hasOwn(c):
		return nil, ErrNotNeeded
	}
	c.Source = server.Digest()
	return c, nil
}

// Begin returns the page that somebody has to open to sign in to a server, within [Time].
// The error is an [ErrNotNeeded], [ErrUnset], [*FailedError], or of packages kinds, store
// and account.
func (s *Servers) Begin(ctx context.Context, p account.Principal, of kinds.Subject, from Coming) (page string, err error) {
	c, err := s.used(ctx, p, of)
	if err != nil {
		return "", err
	}
	at, err := s.next(ctx, p.User, c)
	if err != nil {
		return "", err
	}
	a, err := s.store(p.User, c).Begin(ctx, target(c, at, from.Redirect))
	if err != nil {
		return "", &FailedError{err}
	}
	data, err := json.Marshal(begun{a, of, c.Digest(), account.LocalPath(from.Back)})
	if err != nil {
		return "", err
	}
	state := hash(a.State)
	sealed, err := s.seal(data, attemptLabel(p.User, state))
	if err != nil {
		return "", &FailedError{err}
	}
	return a.Page, s.o.DB.SignIns.Attempt(ctx, store.Attempt{State: state, UserID: string(p.User), Browser: hash(from.Browser), Sealed: []byte(sealed)}, Time, MaxBegun)
}

// next is the address of a server to sign in at: the first one where nobody is, each being
// a server of its own.
func (s *Servers) next(ctx context.Context, user account.UserID, c *upstream.Config) (string, error) {
	all, err := s.o.DB.SignIns.Began(ctx, string(user))
	if err != nil {
		return "", err
	}
	for _, at := range c.URLs {
		if now, _, err := s.store(user, c).Look(ctx, at); err != nil || now != oauth.SignedIn {
			if len(all) >= MaxServers && now == oauth.None {
				err = fmt.Errorf("sign in: %w: more than %d servers", store.ErrTooMany, MaxServers)
			}
			return at, err
		}
	}
	return c.URLs[0], nil
}

func target(c *upstream.Config, at, redirect string) *oauth.Target {
	t := &oauth.Target{Server: at, Headers: c.Headers, Redirect: redirect}
	if o := c.OAuth; o != nil {
		t.ID, t.Secret, t.Scopes, t.Issuer = o.ID, o.Secret, o.Scopes, o.Issuer
	}
	return t
}

func hash(text string) []byte {
	sum := sha256.Sum256([]byte(text))
	return sum[:]
}

func attemptLabel(user account.UserID, state []byte) seal.Label {
	return seal.Label{Owner: "sign-in-attempt/" + string(user), Name: fmt.Sprintf("%x", state)}
}

// Finish ends what somebody began, with the answer that his browser came back with, and
// returns the path that he came from; that is there for some errors too. They are those of
// Begin, and [ErrUnknown].
func (s *Servers) Finish(ctx context.Context, p account.Principal, browser string, answer url.Values) (back string, err error) {
	b, err := s.take(ctx, p, browser, answer.Get("state"))
	if err != nil {
		return "", err
	}
	issuer, err := s.finish(ctx, p, b, answer)
	if err != nil {
		return b.Back, errors.Join(err, s.record(ctx, p, signIn, b.Of, "denied", map[string]any{"digest": b.Digest, "issuer": b.Attempt.Issuer}))
	}
	return b.Back, s.record(ctx, p, signIn, b.Of, "allowed", map[string]any{"digest": b.Digest, "issuer": issuer})
}

func (s *Servers) take(ctx context.Context, p account.Principal, browser, state string) (*begun, error) {
	if err := may(p); err != nil {
		return nil, err
	}
	digest := hash(state)
	kept, err := s.o.DB.SignIns.Take(ctx, digest, string(p.User), hash(browser))
	if errors.Is(err, store.ErrNotFound) || state == "" || browser == "" {
		return nil, ErrUnknown
	}
	if err != nil {
		return nil, err
	}
	data, err := s.o.Sealer.Open(string(kept.Sealed), attemptLabel(p.User, digest))
	if err != nil {
		return nil, fmt.Errorf("a sign-in that was begun: %w", err)
	}
	b := &begun{}
	if err := json.Unmarshal(data, b); err != nil || b.Attempt == nil {
		return nil, fmt.Errorf("a sign-in that was begun: %w", store.ErrCorrupt)
	}
	return b, nil
}

// finish gets the token, for a server that is still as it was.
func (s *Servers) finish(ctx context.Context, p account.Principal, b *begun, answer url.Values) (issuer string, err error) {
	c, err := s.used(ctx, p, b.Of)
	if err != nil {
		return "", err
	}
	if c.Digest() != b.Digest {
		return "", fmt.Errorf("the server: %w", store.ErrConflict)
	}
	// A code is good once: who began to use it goes on.
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), finishTime)
	defer stop()
	got, err := s.store(p.User, c).Finish(ctx, b.Attempt, answer)
	if err != nil {
		return "", &FailedError{err}
	}
	return got.Issuer, s.o.DB.SignIns.Begun(ctx, string(p.User), row(c.Digest(), oauth.Canonical(b.Attempt.Server)))
}

// SignOut forgets the sign-in of somebody to a server, and has its issuer forget it too,
// where it can: found is whether there was one, revoked whether it did.
func (s *Servers) SignOut(ctx context.Context, p account.Principal, of kinds.Subject) (digest string, found, revoked bool, err error) {
	c, err := s.addressed(ctx, p, of)
	if err != nil {
		return "", false, false, err
	}
	revoked = true
	for _, at := range c.URLs {
		there, done, err := s.store(p.User, c).Logout(ctx, at)
		if err != nil {
			return "", found, false, err
		}
		found, revoked = found || there, revoked && (done || !there)
	}
	if !found {
		return c.Digest(), false, false, nil
	}
	return c.Digest(), true, revoked, s.record(ctx, p, signOut, of, "allowed", map[string]any{"digest": c.Digest(), "revoked": revoked})
}

func (s *Servers) record(ctx context.Context, p account.Principal, action account.Action, of kinds.Subject, decision string, details map[string]any) error {
	subject := of.String()
	if of.Kind == "" {
		subject = "operator/" + of.Server
	}
	return s.note(ctx, p, action, subject, decision, details)
}

// note puts what was done into the audit log.
func (s *Servers) note(ctx context.Context, p account.Principal, action account.Action, subject, decision string, details map[string]any) error {
	data, err := json.Marshal(details)
	if err != nil {
		return err
	}
	return s.o.DB.Audit.Append(context.WithoutCancel(ctx), store.Record{Actor: string(p.User), Action: string(action), Namespace: store.UserNamespace(string(p.User)),
		Subject: subject, Decision: decision, Details: data})
}

// Prune forgets what was begun and not finished, and which servers wanted a sign-in long ago.
func (s *Servers) Prune(ctx context.Context) error {
	return s.o.DB.SignIns.Prune(ctx, time.Now().AddDate(0, -1, 0))
}
