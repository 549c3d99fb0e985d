package hub

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/loadout-dev/loadout/internal/account"
	"github.com/loadout-dev/loadout/internal/hub/kit"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/mcpserver"
)

const (
	maxEndpoints = 256              // kept on a node, besides those that are in use
	endpointIdle = 10 * time.Minute // for which one is kept that nobody asks
)

// place is what an endpoint serves: a Ghost, or without a kind all that somebody reaches.
type place struct{ kind, namespace, name string }

func (at place) String() string {
	if at.kind == "" {
		return "mcp"
	}
	return strings.Join([]string{at.kind, at.namespace, at.name}, "/")
}

// endpoint is what one user has at one place, as long as it would be made the same.
type endpoint struct {
	user    account.UserID
	scopes  account.Scopes
	at      place
	made    string // from what: see endpoints.made
	kit     *kit.Kit
	uses    *tally
	server  *mcpserver.Server
	handler http.Handler
	gone    chan struct{} // closed when it is kept no longer

	// Guarded by endpoints.
	users int // requests under way
	kept  bool
	idle  *time.Timer
	entry *list.Element
}

// slot is where an endpoint is kept: there is one for a user, with what his tokens may do,
// and a place.
type slot struct {
	user   account.UserID
	scopes account.Scopes
	at     place
}

// endpoints keeps those that were asked lately. It is safe for concurrent use.
type endpoints struct {
	h                *Hub
	calls, listeners *crowd

	mu      sync.Mutex // guards what follows, and the users of each
	kept    map[slot]*endpoint
	recent  *list.List // of kept, the last asked first
	opening map[slot]*opening
	closed  bool
	running sync.WaitGroup // requests, and what is being opened or closed

	cut  context.Context // of what is under way; ended by stop
	stop func()
}

// opening is an endpoint that is being put together for all who wait for it.
type opening struct {
	made string
	done chan struct{}
	err  error
}

func newEndpoints(h *Hub) *endpoints {
	s := &endpoints{h: h, kept: map[slot]*endpoint{}, recent: list.New(), opening: map[slot]*opening{}}
	s.calls = &crowd{what: "MCP requests", each: maxCalls, all: maxAllCalls, by: map[account.UserID]int{}}
	s.listeners = &crowd{what: "MCP streams", each: maxListeners, all: maxAllListeners, beat: admittedEvery, by: map[account.UserID]int{}}
	s.cut, s.stop = context.WithCancel(context.Background())
	return s
}

// made is a text that is another one once a principal would get another endpoint: his
// rights, the kinds, the settings, his secrets or what he is signed in to changed. What
// changes of the skills is told to who is connected, and makes none anew.
func (s *endpoints) made(ctx context.Context, p account.Principal) (string, error) {
	revisions, err := s.h.db.Revisions(ctx)
	if err != nil {
		return "", err
	}
	secrets, err := s.h.kinds.Secrets().Stamp(ctx, p)
	if err != nil {
		return "", err
	}
	signIns, err := s.h.signIns.Stamp(ctx, p.User)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%q %t %d %d %s %s", p.Name, p.Admin, revisions[store.KindsRevision], revisions[store.SettingsRevision], secrets, signIns)
	for _, g := range slices.Sorted(maps.Keys(p.Groups)) {
		fmt.Fprintf(&b, " %s:%d", g, p.Groups[g])
	}
	return b.String(), nil
}

// enter returns the endpoint of a principal, for a request that ends with leave.
func (s *endpoints) enter(ctx context.Context, p account.Principal, at place) (*endpoint, error) {
	made, err := s.made(ctx, p)
	if err != nil {
		return nil, err
	}
	key := slot{p.User, p.Scopes, at}
	for {
		e, wait, err := s.find(ctx, p, key, made)
		if e != nil || err != nil {
			return e, err
		}
		select {
		case <-wait.done:
			if wait.err != nil && wait.made == made {
				return nil, wait.err
			}
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

var errClosing = &Problem{Status: 503, Code: "closing", Detail: "this node of the hub is about to end", Next: "try again",
	header: http.Header{"Retry-After": {"1"}}}

// find returns an endpoint that is kept, or what to wait for.
func (s *endpoints) find(ctx context.Context, p account.Principal, key slot, made string) (*endpoint, *opening, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.kept[key]
	switch {
	case s.closed:
		return nil, nil, errClosing
	case e != nil && e.made == made:
		s.use(e)
		return e, nil, nil
	case e != nil:
		s.drop(e)
	}
	if o := s.opening[key]; o != nil {
		return nil, o, nil
	}
	o := &opening{made: made, done: make(chan struct{})}
	s.opening[key] = o
	// Others wait for it too, and so it goes on where who asked first has gone.
	ctx, stop := context.WithTimeoutCause(context.WithoutCancel(ctx), operationTime, errSlow)
	s.running.Go(func() {
		defer stop()
		s.open(ctx, p, key, o)
	})
	return nil, o, nil
}

func (s *endpoints) open(ctx context.Context, p account.Principal, key slot, o *opening) {
	e, err := s.h.newEndpoint(ctx, p, key, o.made)
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.opening, key)
	o.err = err
	close(o.done)
	if err != nil {
		return
	}
	s.kept[key], e.kept, e.entry = e, true, s.recent.PushFront(e)
	e.idle = time.AfterFunc(endpointIdle, func() { s.tire(e) })
	if s.closed {
		s.drop(e)
		return
	}
	for old := s.recent.Back(); s.recent.Len() > maxEndpoints && old != nil; old = s.recent.Back() {
		s.drop(old.Value.(*endpoint))
	}
}

// use notes that a request begins. mu is held.
func (s *endpoints) use(e *endpoint) {
	s.running.Add(1)
	e.users++
	e.idle.Stop()
	s.recent.MoveToFront(e.entry)
}

// leave notes that a request has ended.
func (s *endpoints) leave(e *endpoint) {
	defer s.running.Done()
	s.mu.Lock()
	defer s.mu.Unlock()
	e.users--
	switch {
	case e.users > 0:
	case e.kept:
		e.idle.Reset(endpointIdle)
	default:
		s.running.Go(func() { s.end(e) })
	}
}

// tire drops an endpoint that nobody asked for long.
func (s *endpoints) tire(e *endpoint) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e.users == 0 && e.kept {
		s.drop(e)
	}
}

// drop keeps an endpoint no longer. Requests that are under way end first, and who listens
// is sent away. mu is held.
func (s *endpoints) drop(e *endpoint) {
	delete(s.kept, slot{e.user, e.scopes, e.at})
	s.recent.Remove(e.entry)
	e.idle.Stop()
	e.kept = false
	close(e.gone)
	if e.users == 0 {
		s.running.Go(func() { s.end(e) })
	}
}

// end closes an endpoint that no request uses.
func (s *endpoints) end(e *endpoint) {
	if err := errors.Join(e.server.Close(), e.kit.Close()); err != nil {
		s.h.log.Warn("an MCP endpoint was not closed well", "at", e.at.String(), "error", err)
	}
}

// close drops all, and returns when they have ended. Requests under way fail.
func (s *endpoints) close() {
	s.stop()
	s.mu.Lock()
	s.closed = true
	for _, e := range s.kept {
		s.drop(e)
	}
	s.mu.Unlock()
	s.running.Wait()
}
