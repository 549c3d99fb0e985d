package hub

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

// tokenCheckInterval is the interval at which the tokens of long requests are
// checked.
const tokenCheckInterval = time.Second

// errTokenEnded ends a long request whose token is no longer valid.
var errTokenEnded = &api.Problem{Status: 401, Code: "bad_token", Detail: "the token was revoked, has expired, or has fewer scopes now", Next: "create another one: POST " + api.Prefix + "/tokens"}

// tokenWatch checks the tokens of long requests: streams, sockets and MCP
// calls. One query checks all of them.
type tokenWatch struct {
	good func(ctx context.Context, ids ...string) (map[string]account.Scopes, error)

	mu   sync.Mutex // guards the field below
	held map[string]map[*watchedToken]bool
}

func newTokenWatch(good func(ctx context.Context, ids ...string) (map[string]account.Scopes, error)) *tokenWatch {
	return &tokenWatch{good: good, held: map[string]map[*watchedToken]bool{}}
}

// watchedToken is the token of one request.
type watchedToken struct {
	scopes account.Scopes
	ended  chan struct{}
}

// watch checks the token of a principal until stop is called. The channel ended
// is closed when the token is no longer valid or loses scopes. A principal
// without a token is not checked.
func (t *tokenWatch) watch(p account.Principal) (ended <-chan struct{}, stop func()) {
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

func (t *tokenWatch) forget(id string, one *watchedToken) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.held[id], one)
	if len(t.held[id]) == 0 {
		delete(t.held, id)
	}
}

// endWith returns a context that is canceled with [errTokenEnded] when the
// token of a principal ends.
func (t *tokenWatch) endWith(ctx context.Context, p account.Principal) (context.Context, func()) {
	if p.Token == "" {
		return ctx, func() {}
	}
	ended, forget := t.watch(p)
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		select {
		case <-ended:
			cancel(errTokenEnded)
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		forget()
		cancel(nil)
	}
}

// check ends the requests whose tokens are no longer valid. If that is unknown,
// they continue.
func (t *tokenWatch) check(ctx context.Context) error {
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

// end ends the requests of a token that had more scopes than it has now.
func (t *tokenWatch) end(id string, now account.Scopes) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for one := range t.held[id] {
		if !one.scopes.Within(now) {
			close(one.ended)
			delete(t.held[id], one)
		}
	}
}

// run checks tokens periodically until ctx is done.
func (t *tokenWatch) run(ctx context.Context, log *slog.Logger) {
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

// currentScopes returns the current scopes of a token.
func (t *tokenWatch) currentScopes(ctx context.Context, id string) (account.Scopes, error) {
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
