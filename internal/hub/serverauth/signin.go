// Package serverauth signs hub users in to MCP servers that require it. One request
// starts a sign-in and another one, on any node, finishes it. The user's calls to
// that server then carry the user's own token; see [Servers.Handler].
//
// A sign-in is bound to a server definition, like a secret granted to the server.
// If the definition changes, users must sign in again. Tokens are encrypted in the
// database and never appear in errors, logs or responses. Each method takes the
// acting principal, checks access to the server, and writes to the audit log.
package serverauth

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

	"github.com/loadout-dev/loadout/internal/encryption"
	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/agents"
	"github.com/loadout-dev/loadout/internal/oauth"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/upstream"
)

const (
	// Timeout is the maximum time a user may spend on the sign-in page.
	Timeout = 10 * time.Minute
	// MaxPending is the maximum number of unfinished sign-ins per user.
	MaxPending = 20
	// MaxServers is the maximum number of servers a user can be signed in to.
	MaxServers = 200

	finishTime = 30 * time.Second
)

// Actions recorded in the audit log.
const (
	signIn  account.Action = "server.sign_in"
	signOut account.Action = "server.sign_out"
)

var (
	// ErrNotNeeded is returned if users cannot sign in to a server.
	ErrNotNeeded = errors.New("no sign-in needed: the server does not use HTTP, or its configuration provides credentials")
	// ErrNoAttempt is returned if a user returns from the sign-in page without a
	// pending sign-in.
	ErrNoAttempt = errors.New("no pending sign-in in this browser: the sign-in expired, was already used, or was started elsewhere")
	// ErrNotConfigured is returned if values for the server's variables are
	// missing.
	ErrNotConfigured = errors.New("server not configured")
)

// FailedError reports that the server or its authorization server did not complete
// a sign-in.
type FailedError struct{ Err error }

func (e *FailedError) Error() string {
	if name, ok := errors.AsType[*net.DNSError](e.Err); ok { // its text contains the address of the DNS server
		return fmt.Sprintf("host %q not found", name.Name)
	}
	return e.Err.Error()
}

// Unwrap returns the underlying error.
func (e *FailedError) Unwrap() error { return e.Err }

// Options configures [New]. All fields except Private, Page and Logger are
// required.
type Options struct {
	DB      *store.DB
	Kinds   *agents.Registry
	Cipher  *encryption.Cipher
	Private []netip.Prefix // non-public addresses that servers may have
	Node    string         // unique among all processes
	Page    string         // public URL of the hub; "" if unknown
	Logger  *slog.Logger   // nil discards
}

// Servers manages sign-ins to MCP servers. It is safe for concurrent use.
type Servers struct{ o Options }

// New returns a manager for sign-ins to MCP servers.
func New(o Options) *Servers {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return &Servers{o}
}

// Redirection describes how a user's browser returns from a sign-in page.
type Redirection struct {
	URL        string // address on this hub to which the authorization server redirects
	Browser    string // secret that identifies the browser
	ReturnPath string // path on this hub to which the user returns
}

// attempt is the stored state of a pending sign-in.
type attempt struct {
	Attempt *oauth.Attempt `json:"attempt"`
	Of      agents.Subject `json:"of"`
	Digest  string         `json:"digest"`
	Back    string         `json:"back"`
}

// authorize returns an error if a principal may not sign in to and out of
// servers. Signing in requires the same permission as storing one's own secret.
func authorize(p account.Principal) error {
	return account.Check(p, account.SecretWrite, account.OwnedBy(p.User))
}

// resolveServer returns the server that a subject names, with resolved variables.
// It returns an error if the principal may not sign in to the server.
func (s *Servers) resolveServer(ctx context.Context, p account.Principal, subject agents.Subject) (*upstream.Config, error) {
	if err := authorize(p); err != nil {
		return nil, err
	}
	server, v, err := s.o.Kinds.ServerForUse(ctx, p, subject)
	if err != nil {
		return nil, err
	}
	c, unset := server.Resolve(v)
	switch {
	case len(unset) > 0:
		return nil, fmt.Errorf("%w: %s", ErrNotConfigured, unset[0])
	case needsNoSignIn(c):
		return nil, ErrNotNeeded
	}
	return c, nil
}

// resolveAddresses returns the server that a subject names, with only its addresses
// resolved. Signing out needs no other values.
func (s *Servers) resolveAddresses(ctx context.Context, p account.Principal, subject agents.Subject) (*upstream.Config, error) {
	if err := authorize(p); err != nil {
		return nil, err
	}
	server, v, err := s.o.Kinds.ServerForUse(ctx, p, subject)
	if err != nil {
		return nil, err
	}
	bare := &upstream.Config{Name: server.Name, Type: server.Type, URLs: server.URLs, Owner: server.Owner}
	c, unset := bare.Resolve(v)
	switch {
	case len(unset) > 0:
		return nil, fmt.Errorf("%w: %s", ErrNotConfigured, unset[0])
	case needsNoSignIn(c):
		return nil, ErrNotNeeded
	}
	c.Source = server.Digest()
	return c, nil
}

// Begin starts a sign-in to a server. It returns the URL of the page on which the
// user must sign in within [Timeout]. It fails with [ErrNotNeeded],
// [ErrNotConfigured], a [*FailedError], or errors from packages agents, store and
// account.
func (s *Servers) Begin(ctx context.Context, p account.Principal, subject agents.Subject, from Redirection) (page string, err error) {
	c, err := s.resolveServer(ctx, p, subject)
	if err != nil {
		return "", err
	}
	at, err := s.nextAddress(ctx, p.User, c)
	if err != nil {
		return "", err
	}
	a, err := s.store(p.User, c).Begin(ctx, newTarget(c, at, from.URL))
	if err != nil {
		return "", &FailedError{err}
	}
	data, err := json.Marshal(attempt{a, subject, c.Digest(), account.LocalPath(from.ReturnPath)})
	if err != nil {
		return "", err
	}
	state := hashText(a.State)
	sealed, err := s.encrypt(data, attemptLabel(p.User, state))
	if err != nil {
		return "", &FailedError{err}
	}
	return a.Page, s.o.DB.SignIns.AddAttempt(ctx, store.SignInAttempt{State: state, UserID: string(p.User), Browser: hashText(from.Browser), Encrypted: []byte(sealed)}, Timeout, MaxPending)
}

// nextAddress returns the first of the server's addresses at which the user is not
// signed in. Each address counts towards [MaxServers].
func (s *Servers) nextAddress(ctx context.Context, user account.UserID, c *upstream.Config) (string, error) {
	all, err := s.o.DB.SignIns.StartTimes(ctx, string(user))
	if err != nil {
		return "", err
	}
	for _, at := range c.URLs {
		if now, _, err := s.store(user, c).Status(ctx, at); err != nil || now != oauth.SignedIn {
			if len(all) >= MaxServers && now == oauth.None {
				err = fmt.Errorf("sign in: %w: limit %d servers", store.ErrTooMany, MaxServers)
			}
			return at, err
		}
	}
	return c.URLs[0], nil
}

func newTarget(c *upstream.Config, at, redirect string) *oauth.Target {
	t := &oauth.Target{Server: at, Headers: c.Headers, Redirect: redirect}
	if o := c.OAuth; o != nil {
		t.ID, t.Secret, t.Scopes, t.Issuer = o.ID, o.Secret, o.Scopes, o.Issuer
	}
	return t
}

func hashText(text string) []byte {
	sum := sha256.Sum256([]byte(text))
	return sum[:]
}

func attemptLabel(user account.UserID, state []byte) encryption.Label {
	return encryption.Label{Owner: "sign-in-attempt/" + string(user), Name: fmt.Sprintf("%x", state)}
}

// Finish completes a sign-in with the query parameters of the redirect. It returns
// the path to which the user returns, even with some errors. It fails with
// [ErrNoAttempt] or with the errors of [Servers.Begin].
func (s *Servers) Finish(ctx context.Context, p account.Principal, browser string, answer url.Values) (back string, err error) {
	b, err := s.useAttempt(ctx, p, browser, answer.Get("state"))
	if err != nil {
		return "", err
	}
	issuer, err := s.exchangeCode(ctx, p, b, answer)
	if err != nil {
		return b.Back, errors.Join(err, s.record(ctx, p, signIn, b.Of, "denied", map[string]any{"digest": b.Digest, "issuer": b.Attempt.Issuer}))
	}
	return b.Back, s.record(ctx, p, signIn, b.Of, "allowed", map[string]any{"digest": b.Digest, "issuer": issuer})
}

func (s *Servers) useAttempt(ctx context.Context, p account.Principal, browser, state string) (*attempt, error) {
	if err := authorize(p); err != nil {
		return nil, err
	}
	digest := hashText(state)
	kept, err := s.o.DB.SignIns.UseAttempt(ctx, digest, string(p.User), hashText(browser))
	if errors.Is(err, store.ErrNotFound) || state == "" || browser == "" {
		return nil, ErrNoAttempt
	}
	if err != nil {
		return nil, err
	}
	data, err := s.o.Cipher.Decrypt(string(kept.Encrypted), attemptLabel(p.User, digest))
	if err != nil {
		return nil, fmt.Errorf("read pending sign-in: %w", err)
	}
	b := &attempt{}
	if err := json.Unmarshal(data, b); err != nil || b.Attempt == nil {
		return nil, fmt.Errorf("read pending sign-in: %w", store.ErrCorrupt)
	}
	return b, nil
}

// exchangeCode exchanges the authorization code for tokens. It returns an error if
// the server definition has changed since the sign-in started.
func (s *Servers) exchangeCode(ctx context.Context, p account.Principal, b *attempt, answer url.Values) (issuer string, err error) {
	c, err := s.resolveServer(ctx, p, b.Of)
	if err != nil {
		return "", err
	}
	if c.Digest() != b.Digest {
		return "", fmt.Errorf("check server definition: %w", store.ErrConflict)
	}
	// Do not stop if the client disconnects, because a code can be used only once.
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), finishTime)
	defer stop()
	got, err := s.store(p.User, c).Finish(ctx, b.Attempt, answer)
	if err != nil {
		return "", &FailedError{err}
	}
	return got.Issuer, s.o.DB.SignIns.MarkStarted(ctx, string(p.User), rowKey(c.Digest(), oauth.CanonicalURL(b.Attempt.Server)))
}

// SignOut deletes a user's sign-in to a server, and revokes its tokens if the
// issuer supports that. It returns the server's digest, whether there was a sign-in
// and whether its tokens were revoked.
func (s *Servers) SignOut(ctx context.Context, p account.Principal, subject agents.Subject) (digest string, found, revoked bool, err error) {
	c, err := s.resolveAddresses(ctx, p, subject)
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
	return c.Digest(), true, revoked, s.record(ctx, p, signOut, subject, "allowed", map[string]any{"digest": c.Digest(), "revoked": revoked})
}

func (s *Servers) record(ctx context.Context, p account.Principal, action account.Action, of agents.Subject, decision string, details map[string]any) error {
	subject := of.String()
	if of.Kind == "" {
		subject = "operator/" + of.Server
	}
	return s.appendAudit(ctx, p, action, subject, decision, details)
}

// appendAudit records an action in the audit log.
func (s *Servers) appendAudit(ctx context.Context, p account.Principal, action account.Action, subject, decision string, details map[string]any) error {
	data, err := json.Marshal(details)
	if err != nil {
		return err
	}
	return s.o.DB.Audit.Append(context.WithoutCancel(ctx), store.AuditRecord{Actor: string(p.User), Action: string(action), Namespace: store.UserNamespace(string(p.User)),
		Subject: subject, Decision: decision, Details: data})
}

// Prune deletes expired attempts and old records of servers that require a sign-in.
// It checks no permissions, because the hub itself calls it.
func (s *Servers) Prune(ctx context.Context) error {
	return s.o.DB.SignIns.Prune(ctx, time.Now().AddDate(0, -1, 0))
}
