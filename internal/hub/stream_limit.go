package hub

import (
	"net/http"
	"sync"
	"time"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/api"
	"github.com/loadout-dev/loadout/internal/hub/chat"
)

// slowClientTimeout limits sending one event or message.
const slowClientTimeout = 30 * time.Second

// streamLimiter limits long connections of one sort.
type streamLimiter struct {
	what string        // for messages
	each int           // for one user
	all  int           // for the node
	beat time.Duration // interval of heartbeats
	slow time.Duration // limit for sending one message

	open sync.WaitGroup

	mu     sync.Mutex // guards the fields below
	closed bool
	n      int
	by     map[account.UserID]int
}

func newStreamLimiter(what string, each, all int, beat, slow time.Duration) *streamLimiter {
	return &streamLimiter{what: what, each: each, all: all, beat: beat, slow: slow, by: map[account.UserID]int{}}
}

// enter counts a connection. The caller calls leave once.
func (c *streamLimiter) enter(u account.UserID) (leave func(), err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.closed:
		return nil, chat.ErrClosed
	case c.by[u] >= c.each:
		return nil, &api.Problem{Status: 429, Code: "too_many_open", Detail: "you have too many open " + c.what, Next: "close some that are not needed",
			Header: http.Header{"Retry-After": {"5"}}}
	case c.n >= c.all:
		return nil, &api.Problem{Status: 503, Code: "too_many_open", Detail: "this node has too many open " + c.what, Next: "try again in a few seconds",
			Header: http.Header{"Retry-After": {"5"}}}
	}
	c.n++
	c.by[u]++
	c.open.Add(1)
	return func() { c.leave(u) }, nil
}

func (c *streamLimiter) leave(u account.UserID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n--
	if c.by[u]--; c.by[u] == 0 {
		delete(c.by, u)
	}
	c.open.Done()
}

// count returns the number of connections.
func (c *streamLimiter) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n
}

// close rejects new connections and waits for the others.
func (c *streamLimiter) close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.open.Wait()
}
