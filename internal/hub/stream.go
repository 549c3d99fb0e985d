package hub

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"sync"
	"time"

	"github.com/loadout-dev/loadout/internal/account"
	"github.com/loadout-dev/loadout/internal/hub/chat"
	"github.com/loadout-dev/loadout/internal/store"
)

// slowTime is how long one event or message may take to be sent.
const slowTime = 30 * time.Second

// crowd are connections that stay open, of one sort. It bounds how many there are.
type crowd struct {
	what string        // they are
	each int           // of one user
	all  int           // of the node
	beat time.Duration // how often each gives a sign of life
	slow time.Duration // how long one message may take to be sent

	open sync.WaitGroup

	mu     sync.Mutex // guards what follows
	closed bool
	n      int
	by     map[account.UserID]int
}

func newCrowd(what string, each, all int, beat, slow time.Duration) *crowd {
	return &crowd{what: what, each: each, all: all, beat: beat, slow: slow, by: map[account.UserID]int{}}
}

// enter counts one more. leave has to be called once.
func (c *crowd) enter(u account.UserID) (leave func(), err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.closed:
		return nil, chat.ErrClosed
	case c.by[u] >= c.each:
		return nil, &Problem{Status: 429, Code: "too_many_open", Detail: "you have as many " + c.what + " open as you may", Next: "close some that are not needed",
			header: http.Header{"Retry-After": {"5"}}}
	case c.n >= c.all:
		return nil, &Problem{Status: 503, Code: "too_many_open", Detail: "the node has as many " + c.what + " open as it may", Next: "try again in a few seconds",
			header: http.Header{"Retry-After": {"5"}}}
	}
	c.n++
	c.by[u]++
	c.open.Add(1)
	return func() { c.leave(u) }, nil
}

func (c *crowd) leave(u account.UserID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n--
	if c.by[u]--; c.by[u] == 0 {
		delete(c.by, u)
	}
	c.open.Done()
}

// count is how many there are.
func (c *crowd) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n
}

// close lets none in any more, and waits for those that are there.
func (c *crowd) close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.open.Wait()
}

// endStreams has what stays open say good-bye, and waits for that. Each bounds by itself
// how long it takes.
func (h *Hub) endStreams() {
	h.drain.Do(func() { close(h.draining) })
	for _, c := range []*crowd{h.streams, h.sockets} {
		if c != nil {
			c.close()
		}
	}
}

// still says why a visit that goes on is to end: the sign-in or the token by which it began
// is good no longer, or who came by it may something else. Where that cannot be known it
// goes on.
func (h *Hub) still(ctx context.Context, v *visit) error {
	now, err := h.now(ctx, v)
	if err == nil && (now.Admin != v.by.Admin || !maps.Equal(now.Groups, v.by.Groups)) {
		return &Problem{Status: 403, Code: "rights", Detail: "what you may do is no longer what it was", Next: "open it again"}
	}
	return err
}

// now is the principal that a visit which goes on would have if it began now. It fails as
// [Hub.still], but for groups and administrators, and where it cannot be known it is who
// came.
func (h *Hub) now(ctx context.Context, v *visit) (account.Principal, error) {
	ctx, stop := context.WithTimeout(ctx, operationTime)
	defer stop()
	r := v.request.Clone(ctx)
	r.Header.Del("Sec-Fetch-Mode") // nobody would get the next cookie
	now := &visit{client: v.client}
	_, err := h.door.identify(r, now)
	switch {
	case ctx.Err() != nil, errors.Is(err, store.ErrUnavailable), errors.Is(err, store.ErrBusy):
		return v.by, nil
	case err != nil:
		return v.by, err
	case now.by.User != v.by.User || now.by.Scopes != v.by.Scopes:
		return v.by, &account.DeniedError{Action: account.SessionRead, SignIn: true}
	}
	return now.by, nil
}
