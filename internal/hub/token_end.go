package hub

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/loadout-dev/loadout/internal/account"
	"github.com/loadout-dev/loadout/internal/store"
)

// tokenBeat is how often the tokens of what goes on are looked at.
const tokenBeat = time.Second

// errTokenEnded is why what goes on ends whose token is good no longer.
var errTokenEnded = &Problem{Status: 401, Code: "bad_token", Detail: "the token by which it began was withdrawn, has expired, or may do less than before", Next: "make another: POST " + base + "/tokens"}

// heldTokens are those of requests that go on: streams, sockets, and calls over MCP. One
// question for all of them says which are good no longer.
type heldTokens struct {
	good func(ctx context.Context, ids ...string) (map[string]account.Scopes, error)

	mu   sync.Mutex // guards what follows
	held map[string]map[*heldToken]bool
}

// heldToken is that of one request.
type heldToken struct {
	scopes account.Scopes
	ended  chan struct{}
}

// hold looks at the token of a principal until stop is called. ended is closed when it is
// good no longer, or may do less; who came without one is not looked at.
func (t *heldTokens) hold(p account.Principal) (ended <-chan struct{}, stop func()) {
	if p.Token == "" {
		return nil, func() {}
	}
	one := &heldToken{p.Scopes, make(chan struct{})}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.held[p.Token] == nil {
		t.held[p.Token] = map[*heldToken]bool{}
	}
	t.held[p.Token][one] = true
	return one.ended, func() { t.forget(p.Token, one) }
}

func (t *heldTokens) forget(id string, one *heldToken) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.held[id], one)
	if len(t.held[id]) == 0 {
		delete(t.held, id)
	}
}

// while is a context that ends with [errTokenEnded] as the token of a principal does.
func (t *heldTokens) while(ctx context.Context, p account.Principal) (context.Context, func()) {
	if p.Token == "" {
		return ctx, func() {}
	}
	ended, forget := t.hold(p)
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

// look ends what goes on by tokens that are good no longer. Where that cannot be known it
// goes on.
func (t *heldTokens) look(ctx context.Context) error {
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

// end ends what went on by a token that may do more than it may now.
func (t *heldTokens) end(id string, now account.Scopes) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for one := range t.held[id] {
		if !one.scopes.Within(now) {
			close(one.ended)
			delete(t.held[id], one)
		}
	}
}

// lookAtTokens looks again and again, until ctx ends.
func (h *Hub) lookAtTokens(ctx context.Context) {
	tick := time.NewTicker(tokenBeat)
	defer tick.Stop()
	failing := false
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		err := h.inUse.look(ctx)
		if err != nil && !failing && ctx.Err() == nil {
			h.log.Warn("whether tokens are still good is not known", "error", err)
		}
		failing = err != nil
	}
}

// tokenNow is what a token lets its user do now.
func (h *Hub) tokenNow(ctx context.Context, id string) (account.Scopes, error) {
	good, err := h.people.Tokens.Good(ctx, id)
	if err != nil {
		return 0, err
	}
	scopes, ok := good[id]
	if !ok {
		return 0, account.ErrRefused
	}
	return scopes, nil
}
