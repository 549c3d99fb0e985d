package auth

import (
	"net/http"
	"sync"
	"time"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/api"
	"github.com/loadout-dev/loadout/internal/hub/chat"
)

// SlowClientTimeout is the timeout for sending an event or message to a client.
const SlowClientTimeout = 30 * time.Second

// Limiter limits the number of long-lived connections of one kind, for example
// event streams. It is safe for concurrent use.
type Limiter struct {
	what string        // name of the connections in errors
	Each int           // maximum number per user
	All  int           // maximum number on this node
	Beat time.Duration // interval between heartbeats
	Slow time.Duration // timeout for sending a message

	open sync.WaitGroup

	mu     sync.Mutex // guards the fields below
	closed bool
	n      int
	by     map[account.UserID]int
}

// NewLimiter returns a limiter. what describes the connections in error
// messages; the other arguments are the values of the exported fields.
func NewLimiter(what string, each, all int, beat, slow time.Duration) *Limiter {
	return &Limiter{what: what, Each: each, All: all, Beat: beat, Slow: slow, by: map[account.UserID]int{}}
}

// Enter counts a connection until release is called. It returns an error if a limit
// is reached. The caller must call release exactly once.
func (c *Limiter) Enter(u account.UserID) (release func(), err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.closed:
		return nil, chat.ErrClosed
	case c.by[u] >= c.Each:
		return nil, &api.Problem{Status: 429, Code: "too_many_open", Detail: "you have too many open " + c.what, Next: "close those that are not needed",
			Header: http.Header{"Retry-After": {"5"}}}
	case c.n >= c.All:
		return nil, &api.Problem{Status: 503, Code: "too_many_open", Detail: "this node has too many open " + c.what, Next: "try again in a few seconds",
			Header: http.Header{"Retry-After": {"5"}}}
	}
	c.n++
	c.by[u]++
	c.open.Add(1)
	return func() { c.release(u) }, nil
}

func (c *Limiter) release(u account.UserID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n--
	if c.by[u]--; c.by[u] == 0 {
		delete(c.by, u)
	}
	c.open.Done()
}

// Count returns the number of open connections.
func (c *Limiter) Count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n
}

// Close rejects new connections and waits for the open ones to be closed.
func (c *Limiter) Close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.open.Wait()
}
