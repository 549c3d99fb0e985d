//lint:file-ignore SA1019 what is deprecated still passes between old peers

package mcpproxy

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// up is an upstream server with the connections to it that belong to no session
// of a client.
type up struct {
	Upstream
	s      *Server
	shared *slot // for lists, notices, and calls that need nothing of the client

	mu     sync.Mutex // guards what follows
	idle   map[string][]*resting
	lines  int // for clients of the newer era to a server of the older, resting or not
	known  known
	closed bool
	watch  map[string]int  // resources that clients of the newer era listen for
	said   map[string]bool // what was reported
	away   bool            // the last attempt to connect failed
}

// resting is a line that waits for its next use.
type resting struct {
	line  *line
	timer *time.Timer
}

// known is what a server said last.
type known struct {
	tools     []*mcp.Tool
	prompts   []*mcp.Prompt
	resources []*mcp.Resource
	templates []*mcp.ResourceTemplate
}

func newUp(s *Server, u Upstream) *up {
	up := &up{Upstream: u, s: s, idle: map[string][]*resting{}, watch: map[string]int{}}
	up.shared = &slot{s: s, open: func(ctx context.Context) (*line, error) { return up.open(ctx, nil, nil, true) }}
	return up
}

// maxSaid bounds how many reports are known again.
const maxSaid = 32

// news reports whether something was not said yet, and is now.
func (u *up) news(text string) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.said[text] {
		return false
	}
	if u.said == nil || len(u.said) >= maxSaid {
		u.said = map[string]bool{}
	}
	u.said[text] = true
	return true
}

// reached notes whether the last attempt to connect succeeded. What was reported
// is news again when a server is back.
func (u *up) reached(ok bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if ok && u.away {
		u.said = nil
	}
	u.away = !ok
}

// connected resubscribes on a new shared line.
func (u *up) connected(l *line) {
	if !l.shared {
		return
	}
	u.mu.Lock()
	uris := make([]string, 0, len(u.watch))
	for uri := range u.watch {
		uris = append(uris, uri)
	}
	u.mu.Unlock()
	for _, uri := range uris {
		u.s.start(func() {
			if err := l.conn.Session.Subscribe(u.s.ctx, &mcp.SubscribeParams{URI: uri}); err != nil {
				u.s.report(u, fmt.Errorf("subscribe to %s again: %w", uri, err))
			}
		})
	}
}

// back connects the shared line again for as long as somebody listens, and tells
// that all may have changed.
func (u *up) back() {
	for wait := again; len(u.s.listeners()) > 0; wait = min(2*wait, time.Minute) {
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-u.s.ctx.Done():
			timer.Stop()
			return
		}
		if _, err := u.shared.get(u.s.ctx); err == nil {
			for _, what := range []string{"tools", "prompts", "resources"} {
				u.s.tellListeners(what)
			}
			return
		}
	}
}

// lease gives a line of the older era for one call of a client with these
// capabilities, which are part of the greeting of such servers.
func (u *up) lease(ctx context.Context, caps *mcp.ClientCapabilities) (*line, error) {
	key := capsKey(caps)
	var spare *line
	u.mu.Lock()
	for n := len(u.idle[key]); n > 0; n = len(u.idle[key]) {
		r := u.idle[key][n-1]
		u.idle[key] = u.idle[key][:n-1]
		r.timer.Stop()
		if !r.line.dead() {
			u.mu.Unlock()
			return r.line, nil
		}
		u.lines--
	}
	if u.lines >= u.s.opts.MaxLegacyConns {
		for k, rs := range u.idle {
			if len(rs) > 0 {
				rs[0].timer.Stop()
				spare, u.idle[k] = rs[0].line, rs[1:]
				u.lines--
				break
			}
		}
	}
	if u.lines >= u.s.opts.MaxLegacyConns || u.closed {
		u.mu.Unlock()
		return nil, fmt.Errorf("%s is busy with %d calls; try again later", u.Name, u.s.opts.MaxLegacyConns)
	}
	u.lines++
	u.mu.Unlock()
	if spare != nil {
		spare.end()
	}
	l, err := u.open(ctx, caps, nil, false)
	if err != nil {
		u.mu.Lock()
		u.lines--
		u.mu.Unlock()
	}
	return l, err
}

// release takes a leased line back; one that is not clean is ended.
func (u *up) release(l *line, caps *mcp.ClientCapabilities, clean bool) {
	key := capsKey(caps)
	u.mu.Lock()
	if u.closed || !clean || l.dead() {
		u.lines--
		u.mu.Unlock()
		l.end()
		return
	}
	r := &resting{line: l}
	r.timer = time.AfterFunc(u.s.opts.IdleTimeout, func() { u.expire(key, r) })
	u.idle[key] = append(u.idle[key], r)
	u.mu.Unlock()
}

func (u *up) expire(key string, r *resting) {
	u.mu.Lock()
	for i, x := range u.idle[key] {
		if x == r {
			u.idle[key] = append(u.idle[key][:i:i], u.idle[key][i+1:]...)
			u.lines--
			u.mu.Unlock()
			u.s.start(r.line.end)
			return
		}
	}
	u.mu.Unlock()
}

func (u *up) close() {
	u.shared.close()
	u.mu.Lock()
	u.closed = true
	var lines []*line
	for k, rs := range u.idle {
		for _, r := range rs {
			r.timer.Stop()
			lines = append(lines, r.line)
			u.lines--
		}
		delete(u.idle, k)
	}
	u.mu.Unlock()
	for _, l := range lines {
		l.end()
	}
}

// capsKey tells capabilities apart.
func capsKey(caps *mcp.ClientCapabilities) string {
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

// asks reports whether a client can be asked for anything.
func asks(caps *mcp.ClientCapabilities) bool {
	return caps != nil && (caps.Elicitation != nil || caps.Sampling != nil || caps.RootsV2 != nil)
}
