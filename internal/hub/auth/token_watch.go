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
	"github.com/loadout-dev/loadout/internal/store"
)

// tokenCheckInterval is how often the tokens of long-running requests are checked.
const tokenCheckInterval = time.Second

// ErrTokenEnded is the cancellation cause of a long-running request whose token is
// no longer valid.
var ErrTokenEnded = &api.Problem{Status: 401, Code: "bad_token", Detail: "the token was revoked, has expired, or has fewer scopes now", Next: "create another one: POST " + api.Prefix + "/tokens"}

// TokenWatch ends long-running requests, such as streams, sockets and MCP calls,
// when their tokens are revoked or expire. It checks all tokens with a single
// query.
type TokenWatch struct {
	good func(ctx context.Context, ids ...string) (map[string]account.Scopes, error)

	mu   sync.Mutex                        // guards held
	held map[string]map[*watchedToken]bool // requests by token ID
}

// NewTokenWatch returns a TokenWatch. The function good returns the scopes of valid
// tokens by ID and omits invalid tokens.
func NewTokenWatch(good func(ctx context.Context, ids ...string) (map[string]account.Scopes, error)) *TokenWatch {
	return &TokenWatch{good: good, held: map[string]map[*watchedToken]bool{}}
}

// watchedToken is the token of a long-running request.
type watchedToken struct {
	scopes account.Scopes
	ended  chan struct{}
}

// Watch watches a principal's token until stop is called. The channel ended is
// closed when the token is no longer valid or loses scopes. If the principal has no
// token, ended is nil.
func (t *TokenWatch) Watch(p account.Principal) (ended <-chan struct{}, stop func()) {
	if p.Token == "" {
		return nil, func() {}
	}
	one := &watchedToken{p.Scopes, make(chan struct{})}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.held[p.Token] == nil {
		t.held[p.Token] = map[*watchedToken]bool{}
	}
	t.held[p.Token][one] = true
	return one.ended, func() { t.forget(p.Token, one) }
}

func (t *TokenWatch) forget(id string, one *watchedToken) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.held[id], one)
	if len(t.held[id]) == 0 {
		delete(t.held, id)
	}
}

// EndWith returns a context that is cancelled with [ErrTokenEnded] when the
// principal's token is no longer valid or loses scopes.
func (t *TokenWatch) EndWith(ctx context.Context, p account.Principal) (context.Context, func()) {
	if p.Token == "" {
		return ctx, func() {}
	}
	ended, forget := t.Watch(p)
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

// check ends the requests whose tokens are no longer valid. If the tokens cannot be
// read, all requests continue.
func (t *TokenWatch) check(ctx context.Context) error {
	t.mu.Lock()
	ids := slices.Collect(maps.Keys(t.held))
	t.mu.Unlock()
	for some := range slices.Chunk(ids, store.MaxPage) {
		good, err := t.good(ctx, some...)
		if err != nil {
			return err
		}
		for _, id := range some {
			t.end(id, good[id])
		}
	}
	return nil
}

// end ends the requests that started when a token had scopes that it has since
// lost.
func (t *TokenWatch) end(id string, now account.Scopes) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for one := range t.held[id] {
		if !one.scopes.IsSubsetOf(now) {
			close(one.ended)
			delete(t.held[id], one)
		}
	}
}

// Run checks the tokens periodically until ctx is done.
func (t *TokenWatch) Run(ctx context.Context, log *slog.Logger) {
	tick := time.NewTicker(tokenCheckInterval)
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
			log.Warn("couldn't check tokens", "error", err)
		}
		failing = err != nil
	}
}

// CurrentScopes returns a token's current scopes.
func (t *TokenWatch) CurrentScopes(ctx context.Context, id string) (account.Scopes, error) {
	good, err := t.good(ctx, id)
	if err != nil {
		return 0, err
	}
	scopes, ok := good[id]
	if !ok {
		return 0, account.ErrInvalidCredentials
	}
	return scopes, nil
}
