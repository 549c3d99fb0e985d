package auth

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/api"
	"github.com/loadout-dev/loadout/internal/hub/users"
	"github.com/loadout-dev/loadout/internal/store"
)

// credentialCheckInterval is how often the credentials of long-running requests are
// checked.
const credentialCheckInterval = time.Second

// Cancellation causes of a long-running request whose credential is no longer valid.
var (
	ErrTokenEnded = &api.Problem{Status: 401, Code: "bad_token", Detail: "the token was revoked, has expired, or has fewer scopes now", Next: "create a new one: POST " + api.Prefix + "/tokens"}
	errLoginEnded = &api.Problem{Status: 401, Code: "sign_in", Detail: "the sign-in has ended or its cookie was replaced", Next: "reconnect, and sign in if that fails: POST " + api.Prefix + "/login"}
)

// EndedError returns the error for a request whose credential is no longer valid.
func EndedError(v *api.Request) error {
	if v.Principal.Token != "" {
		return ErrTokenEnded
	}
	return errLoginEnded
}

// CredentialWatch ends long-running requests, such as streams, sockets and MCP calls,
// when their tokens are revoked or expire, or their browsers' sign-ins end. It checks
// all tokens with a single query, and all sign-ins with another one.
type CredentialWatch struct {
	tokens users.Tokens
	logins users.SignIns

	mu   sync.Mutex                                 // guards held
	held map[credential]map[*watchedCredential]bool // requests by credential
}

// credential identifies a token or a browser's sign-in.
type credential struct{ token, login string }

// NewCredentialWatch returns a CredentialWatch.
func NewCredentialWatch(d *users.Directory) *CredentialWatch {
	return &CredentialWatch{tokens: d.Tokens, logins: d.SignIns, held: map[credential]map[*watchedCredential]bool{}}
}

// watchedCredential is the credential of a long-running request.
type watchedCredential struct {
	scopes account.Scopes
	ended  chan struct{}
}

// Watch watches the token or sign-in of a request until stop is called. The channel
// ended is closed when the token or sign-in is no longer valid, or the token loses
// scopes. For a request with neither, ended is nil.
func (t *CredentialWatch) Watch(v *api.Request) (ended <-chan struct{}, stop func()) {
	switch {
	case v.Principal.Token != "":
		return t.watch(credential{token: v.Principal.Token}, v.Principal.Scopes)
	case len(v.Login) > 0:
		return t.watch(credential{login: string(v.Login)}, account.AllScopes)
	}
	return nil, func() {}
}

func (t *CredentialWatch) watch(c credential, scopes account.Scopes) (ended <-chan struct{}, stop func()) {
	one := &watchedCredential{scopes, make(chan struct{})}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.held[c] == nil {
		t.held[c] = map[*watchedCredential]bool{}
	}
	t.held[c][one] = true
	return one.ended, func() { t.forget(c, one) }
}

func (t *CredentialWatch) forget(c credential, one *watchedCredential) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.held[c], one)
	if len(t.held[c]) == 0 {
		delete(t.held, c)
	}
}

// EndWith returns a context that is cancelled with [ErrTokenEnded] when the
// principal's token is no longer valid or loses scopes.
func (t *CredentialWatch) EndWith(ctx context.Context, p account.Principal) (context.Context, func()) {
	if p.Token == "" {
		return ctx, func() {}
	}
	ended, forget := t.watch(credential{token: p.Token}, p.Scopes)
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		select {
		case <-ended:
			cancel(ErrTokenEnded)
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		forget()
		cancel(nil)
	}
}

// check ends the requests whose credentials are no longer valid. If the credentials
// cannot be read, all requests continue.
func (t *CredentialWatch) check(ctx context.Context) error {
	t.mu.Lock()
	held := slices.Collect(maps.Keys(t.held))
	t.mu.Unlock()
	var tokens, logins []string
	for _, c := range held {
		if c.token != "" {
			tokens = append(tokens, c.token)
		} else {
			logins = append(logins, c.login)
		}
	}
	for some := range slices.Chunk(tokens, store.MaxPage) {
		good, err := t.tokens.ValidScopes(ctx, some...)
		if err != nil {
			return err
		}
		for _, id := range some {
			t.end(credential{token: id}, good[id])
		}
	}
	for some := range slices.Chunk(logins, store.MaxPage) {
		good, err := t.logins.Valid(ctx, some...)
		if err != nil {
			return err
		}
		for _, hash := range some {
			if !good[hash] {
				t.end(credential{login: hash}, 0)
			}
		}
	}
	return nil
}

// end ends the requests that were admitted with scopes that their credential has
// since lost.
func (t *CredentialWatch) end(c credential, now account.Scopes) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for one := range t.held[c] {
		if !one.scopes.IsSubsetOf(now) {
			close(one.ended)
			delete(t.held[c], one)
		}
	}
}

// Run checks the credentials periodically until ctx is done.
func (t *CredentialWatch) Run(ctx context.Context, log *slog.Logger) {
	tick := time.NewTicker(credentialCheckInterval)
	defer tick.Stop()
	failing := false
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		err := t.check(ctx)
		if err != nil && !failing && ctx.Err() == nil {
			log.Warn("couldn't check tokens and sign-ins", "error", err)
		}
		failing = err != nil
	}
}

// CurrentScopes returns a token's current scopes.
func (t *CredentialWatch) CurrentScopes(ctx context.Context, id string) (account.Scopes, error) {
	good, err := t.tokens.ValidScopes(ctx, id)
	if err != nil {
		return 0, err
	}
	scopes, ok := good[id]
	if !ok {
		return 0, account.ErrInvalidCredentials
	}
	return scopes, nil
}
