//lint:file-ignore SA1019 legacy clients and servers still use deprecated features

package mcpproxy

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// upstreamServer manages the lists last received from an upstream server, and
// the connections to it that are not tied to a client session.
type upstreamServer struct {
	Upstream
	s      *Server
	shared *connSlot // connection for lists, notifications, and calls that need no connection of their own

	mu          sync.Mutex // guards the fields below
	idle        map[string][]*idleConn
	legacyConns int // number of connections opened by acquireConn, including idle connections
	lists       lists
	closed      bool
	subscribed  map[string]int // number of subscriptions by modern clients, by URI
	refused     map[string]refusal
	reported    map[string]bool // errors that have already been reported
	away        bool            // the last connection attempt failed
}

// idleConn is an unused connection that is closed when its timer expires.
type idleConn struct {
	line  *upstreamConn
	timer *time.Timer
}

// lists holds the lists last received from a server.
type lists struct {
	tools     []*mcp.Tool
	prompts   []*mcp.Prompt
	resources []*mcp.Resource
	templates []*mcp.ResourceTemplate
}

func newUpstreamServer(s *Server, u Upstream) *upstreamServer {
	up := &upstreamServer{Upstream: u, s: s, idle: map[string][]*idleConn{}, subscribed: map[string]int{}}
	up.shared = &connSlot{s: s, open: func(ctx context.Context) (*upstreamConn, error) { return up.openConn(ctx, nil, nil, true) }}
	return up
}

// maxReported is the maximum number of remembered errors.
const maxReported = 32

// isNewReport reports whether an error has not been reported before, and
// records it as reported.
func (u *upstreamServer) isNewReport(text string) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.reported[text] {
		return false
	}
	if u.reported == nil || len(u.reported) >= maxReported {
		u.reported = map[string]bool{}
	}
	u.reported[text] = true
	return true
}

// setReachable records whether the last connection attempt succeeded. A success
// after a failure clears the reported errors.
func (u *upstreamServer) setReachable(ok bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if ok && u.away {
		u.reported = nil
	}
	u.away = !ok
}

// resubscribe renews the subscriptions of modern clients if the connection l is
// a new shared one.
func (u *upstreamServer) resubscribe(l *upstreamConn) {
	if !l.shared {
		return
	}
	u.mu.Lock()
	uris := make([]string, 0, len(u.subscribed))
	for uri := range u.subscribed {
		uris = append(uris, uri)
	}
	u.mu.Unlock()
	for _, uri := range uris {
		u.s.startGoroutine(func() {
			if err := l.conn.Session.Subscribe(u.s.ctx, &mcp.SubscribeParams{URI: uri}); err != nil {
				u.s.reportError(u, fmt.Errorf("resubscribe to %s: %w", uri, err))
			}
		})
	}
}

// reconnect reopens the shared connection while there are subscribers, and
// notifies them that any list may have changed.
func (u *upstreamServer) reconnect() {
	for wait := retryDelay; len(u.s.listSubscriptions()) > 0; wait = min(2*wait, time.Minute) {
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-u.s.ctx.Done():
			timer.Stop()
			return
		}
		if _, err := u.shared.get(u.s.ctx); err == nil {
			for _, what := range []string{"tools", "prompts", "resources"} {
				u.s.notifySubscribers(what)
			}
			return
		}
	}
}

// acquireConn returns a connection for a single call. A connection is
// initialized with the capabilities of its client, so it is reused only for
// clients with the same capabilities. The caller must call releaseConn.
func (u *upstreamServer) acquireConn(ctx context.Context, caps *mcp.ClientCapabilities) (*upstreamConn, error) {
	key := capabilitiesKey(caps)
	var spare *upstreamConn
	u.mu.Lock()
	for n := len(u.idle[key]); n > 0; n = len(u.idle[key]) {
		r := u.idle[key][n-1]
		u.idle[key] = u.idle[key][:n-1]
		r.timer.Stop()
		if !r.line.isClosed() {
			u.mu.Unlock()
			return r.line, nil
		}
		u.legacyConns--
	}
	if u.legacyConns >= u.s.opts.MaxLegacyConns {
		for k, rs := range u.idle {
			if len(rs) > 0 {
				rs[0].timer.Stop()
				spare, u.idle[k] = rs[0].line, rs[1:]
				u.legacyConns--
				break
			}
		}
	}
	if u.legacyConns >= u.s.opts.MaxLegacyConns || u.closed {
		u.mu.Unlock()
		return nil, fmt.Errorf("server %s is busy (%d calls); try again later", u.Name, u.s.opts.MaxLegacyConns)
	}
	u.legacyConns++
	u.mu.Unlock()
	if spare != nil {
		spare.close()
	}
	l, err := u.openConn(ctx, caps, nil, false)
	if err != nil {
		u.mu.Lock()
		u.legacyConns--
		u.mu.Unlock()
	}
	return l, err
}

// releaseConn makes a connection available for reuse or, if clean is false,
// closes the connection.
func (u *upstreamServer) releaseConn(l *upstreamConn, caps *mcp.ClientCapabilities, clean bool) {
	key := capabilitiesKey(caps)
	u.mu.Lock()
	if u.closed || !clean || l.isClosed() {
		u.legacyConns--
		u.mu.Unlock()
		l.close()
		return
	}
	r := &idleConn{line: l}
	r.timer = time.AfterFunc(u.s.opts.IdleTimeout, func() { u.expireIdle(key, r) })
	u.idle[key] = append(u.idle[key], r)
	u.mu.Unlock()
}

func (u *upstreamServer) expireIdle(key string, r *idleConn) {
	u.mu.Lock()
	for i, x := range u.idle[key] {
		if x == r {
			u.idle[key] = append(u.idle[key][:i:i], u.idle[key][i+1:]...)
			u.legacyConns--
			u.mu.Unlock()
			u.s.startGoroutine(r.line.close)
			return
		}
	}
	u.mu.Unlock()
}

func (u *upstreamServer) close() {
	u.shared.close()
	u.mu.Lock()
	u.closed = true
	var lines []*upstreamConn
	for k, rs := range u.idle {
		for _, r := range rs {
			r.timer.Stop()
			lines = append(lines, r.line)
			u.legacyConns--
		}
		delete(u.idle, k)
	}
	u.mu.Unlock()
	for _, l := range lines {
		l.close()
	}
}

// capabilitiesKey returns the key in u.idle for a client's capabilities.
func capabilitiesKey(caps *mcp.ClientCapabilities) string {
	if caps == nil {
		return ""
	}
	js, err := json.Marshal(struct {
		*mcp.ClientCapabilities
		Roots *mcp.RootCapabilities `json:"roots,omitempty"`
	}{caps, caps.RootsV2})
	if err != nil {
		return err.Error()
	}
	return string(js)
}

// canAnswer reports whether a client supports any kind of input request.
func canAnswer(caps *mcp.ClientCapabilities) bool {
	return caps != nil && (caps.Elicitation != nil || caps.Sampling != nil || caps.RootsV2 != nil)
}
