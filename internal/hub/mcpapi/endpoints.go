package mcpapi

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/api"
	"github.com/loadout-dev/loadout/internal/hub/assembly"
	"github.com/loadout-dev/loadout/internal/store"
)

const (
	maxEndpoints = 256              // maximum number of cached endpoints per node
	endpointIdle = 10 * time.Minute // time after which an unused endpoint is closed
)

// agentRef identifies the agent of an endpoint. Without a kind, it stands for
// everything that the user can access. With the kind MCPServer, it stands for the
// skills of the MCP server whose label is the name.
type agentRef struct{ kind, namespace, name string }

func (at agentRef) String() string {
	if at.kind == "" {
		return "mcp"
	}
	return strings.Join([]string{at.kind, at.namespace, at.name}, "/")
}

// endpoint serves one user and agent until the state it was built from changes.
type endpoint struct {
	user    account.UserID
	scopes  account.Scopes
	at      agentRef
	setup   *assembly.Setup
	server  io.Closer
	handler http.Handler
	gone    chan struct{} // closed when the endpoint is removed

	// The following fields are guarded by endpoints.mu.
	current state // state at creation, with the revision of secrets that was compared last
	users   int   // number of running requests
	kept    bool
	idle    *time.Timer
	entry   *list.Element
}

// slotKey identifies a cached endpoint by user, scopes and agent.
type slotKey struct {
	user   account.UserID
	scopes account.Scopes
	at     agentRef
}

// endpoints caches recently used endpoints. It is safe for concurrent use.
type endpoints struct {
	h *Handlers

	mu      sync.Mutex // guards the fields below and the users of each endpoint
	kept    map[slotKey]*endpoint
	recent  *list.List // elements of kept, most recently used first
	opening map[slotKey]*opening
	closed  bool
	running sync.WaitGroup // requests, and endpoints being opened or closed

	cut  context.Context // cancelled by stop; ends running calls
	stop func()
}

// opening is an endpoint that is being opened while requests wait for it.
type opening struct {
	made state
	done chan struct{}
	err  error
}

func newEndpoints(h *Handlers) *endpoints {
	s := &endpoints{h: h, kept: map[slotKey]*endpoint{}, recent: list.New(), opening: map[slotKey]*opening{}}
	s.cut, s.stop = context.WithCancel(context.Background())
	return s
}

// state holds everything that an endpoint depends on: rights, resources,
// settings, secrets and sign-ins. Skill changes are sent to connected clients
// and do not require a new endpoint.
type state struct {
	principal        string
	kinds, settings  int64  // revisions
	platform         int64  // revision of platform values; 0 without an agent
	secrets, signIns string // fingerprints
	secretsRevision  int64  // revision of secrets, read before the fingerprints were computed
}

// equal reports whether endpoints made from the two states would be the same.
func (m state) equal(other state) bool {
	m.secretsRevision = other.secretsRevision
	return m == other
}

// readState returns the current state for a principal and an agent. known is an
// earlier state, or the zero value.
func (s *endpoints) readState(ctx context.Context, p account.Principal, at agentRef, known state) (state, error) {
	revisions, err := s.h.DB.Revisions(ctx)
	if err != nil {
		return state{}, err
	}
	out := state{principal: describePrincipal(p), kinds: revisions[store.KindsRevision], settings: revisions[store.SettingsRevision], secretsRevision: revisions[store.SecretsRevision]}
	if at.kind != "" { // the fingerprint of secrets does not cover the values of agents
		out.platform = revisions[store.PlatformRevision]
	}
	if out.principal == known.principal && out.secretsRevision == known.secretsRevision {
		out.secrets, out.signIns = known.secrets, known.signIns
		return out, nil
	}
	if out.secrets, err = s.h.Agents.Secrets().Fingerprint(ctx, p); err != nil {
		return state{}, err
	}
	out.signIns, err = s.h.SignIns.Fingerprint(ctx, p.User)
	return out, err
}

// describePrincipal returns a string that identifies the rights of a user.
func describePrincipal(p account.Principal) string {
	out := fmt.Appendf(nil, "%q %t", p.Name, p.Admin)
	for _, g := range slices.Sorted(maps.Keys(p.Groups)) {
		out = fmt.Appendf(out, " %s:%d", g, p.Groups[g])
	}
	return string(out)
}

// known returns the state of the cached endpoint, or the zero value.
func (s *endpoints) known(key slotKey) state {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.kept[key]; e != nil {
		return e.current
	}
	return state{}
}

// acquire returns an endpoint for the principal. The caller must call release
// after the request.
func (s *endpoints) acquire(ctx context.Context, p account.Principal, at agentRef) (*endpoint, error) {
	key := slotKey{p.User, p.Scopes, at}
	made, err := s.readState(ctx, p, at, s.known(key))
	if err != nil {
		return nil, err
	}
	for {
		e, wait, err := s.find(ctx, p, key, made)
		if e != nil || err != nil {
			return e, err
		}
		select {
		case <-wait.done:
			if wait.err != nil && wait.made.equal(made) {
				return nil, wait.err
			}
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

var errClosing = &api.Problem{Status: 503, Code: "closing", Detail: "this node is shutting down", Next: "try again",
	Header: http.Header{"Retry-After": {"1"}}}

// find returns a cached endpoint, or one that is being opened.
func (s *endpoints) find(ctx context.Context, p account.Principal, key slotKey, made state) (*endpoint, *opening, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.kept[key]
	switch {
	case s.closed:
		return nil, nil, errClosing
	case e != nil && e.current.equal(made):
		if made.secretsRevision > e.current.secretsRevision {
			e.current = made
		}
		s.markUsed(e)
		return e, nil, nil
	case e != nil:
		s.remove(e)
	}
	if o := s.opening[key]; o != nil {
		return nil, o, nil
	}
	o := &opening{made: made, done: make(chan struct{})}
	s.opening[key] = o
	// Other requests also wait for it, so it must outlive this request.
	ctx, stop := context.WithTimeoutCause(context.WithoutCancel(ctx), api.OperationTimeout, api.ErrTimeout)
	s.running.Go(func() {
		defer stop()
		s.open(ctx, p, key, o)
	})
	return nil, o, nil
}

func (s *endpoints) open(ctx context.Context, p account.Principal, key slotKey, o *opening) {
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
	e.idle = time.AfterFunc(endpointIdle, func() { s.closeIdle(e) })
	if s.closed {
		s.remove(e)
		return
	}
	for old := s.recent.Back(); s.recent.Len() > maxEndpoints && old != nil; old = s.recent.Back() {
		s.remove(old.Value.(*endpoint))
	}
}

// markUsed records the start of a request. The caller must hold mu.
func (s *endpoints) markUsed(e *endpoint) {
	s.running.Add(1)
	e.users++
	e.idle.Stop()
	s.recent.MoveToFront(e.entry)
}

// release records the end of a request.
func (s *endpoints) release(e *endpoint) {
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

// closeIdle removes an endpoint after endpointIdle unless it is in use again.
func (s *endpoints) closeIdle(e *endpoint) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e.users == 0 && e.kept {
		s.remove(e)
	}
}

// remove removes an endpoint from the cache. Running requests may finish, but
// subscriptions are closed. The caller must hold mu.
func (s *endpoints) remove(e *endpoint) {
	delete(s.kept, slotKey{e.user, e.scopes, e.at})
	s.recent.Remove(e.entry)
	e.idle.Stop()
	e.kept = false
	close(e.gone)
	if e.users == 0 {
		s.running.Go(func() { s.end(e) })
	}
}

// end closes an endpoint that has no running requests.
func (s *endpoints) end(e *endpoint) {
	if err := errors.Join(e.server.Close(), e.setup.Close()); err != nil {
		s.h.Log.Warn("couldn't close an MCP endpoint", "at", e.at.String(), "error", err)
	}
}

// close cancels running calls, removes all endpoints and waits for them to close.
func (s *endpoints) close() {
	s.stop()
	s.mu.Lock()
	s.closed = true
	for _, e := range s.kept {
		s.remove(e)
	}
	s.mu.Unlock()
	s.running.Wait()
}
