//lint:file-ignore SA1019 what is deprecated still passes between old peers

package mcpproxy

import (
	"context"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout/internal/upstream"
)

// line is a connection to an upstream server. What the server sends belongs to
// one of its calls, or to the client that the connection was opened for.
type line struct {
	up     *up
	conn   *Conn
	owner  *client // whose it is; nil for one of several clients
	shared bool    // its notices are for all clients of the newer era
	send   mcp.MethodHandler
	gone   chan struct{} // closed when the connection has ended
	once   sync.Once

	active  atomic.Int32 // messages of the server that are being handled
	heard   atomic.Int64 // notices of the server that have been handled
	lost    atomic.Int64 // notices that were read and never handled: what the SDK does not know
	numbers atomic.Int64 // of progress tokens

	mu    sync.Mutex
	calls []*call // in order of their start
}

// call is a request of a client on its way to a server.
type call struct {
	token string // ours, by which the server tells of progress

	mu       sync.Mutex
	ctx      context.Context // of the client's request
	ss       *mcp.ServerSession
	progress any                                                                        // the client's token; nil for none
	ask      func(ctx context.Context, method string, p mcp.Params) (mcp.Result, error) // for what the server wants to know
	modern   bool
}

func (c *call) where() (context.Context, *mcp.ServerSession, any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ctx, c.ss, c.progress
}

// open connects, in the name of a client with these capabilities.
func (u *up) open(ctx context.Context, caps *mcp.ClientCapabilities, owner *client, shared bool) (*line, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, u.s.opts.ConnectTimeout, fmt.Errorf("no connection within %v", u.s.opts.ConnectTimeout))
	defer cancel()
	l := &line{up: u, owner: owner, shared: shared, gone: make(chan struct{})}
	if caps == nil {
		caps = &mcp.ClientCapabilities{}
	}
	conn, err := u.Opener.Open(ctx, &OpenOptions{
		Client: &mcp.ClientOptions{
			Capabilities:   caps,
			MultiRoundTrip: &mcp.MultiRoundTripOptions{Disabled: true},
			Logger:         u.s.opts.Logger,
		},
		Prepare: func(c *mcp.Client) {
			c.AddReceivingMiddleware(l.receive)
			c.AddSendingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
				l.send = next
				return next
			})
		},
		Changed: l.changed,
	})
	if err != nil {
		if cause := context.Cause(ctx); cause != nil && ctx.Err() != nil {
			err = cause
		}
		u.reached(false)
		return nil, fmt.Errorf("connect to %s: %w", u.Name, err)
	}
	u.reached(true)
	l.mu.Lock()
	l.conn = conn
	l.mu.Unlock()
	if !u.s.start(func() {
		_ = conn.Session.Wait()
		l.end()
		if shared {
			u.back()
		}
	}) {
		l.end()
		return nil, context.Canceled
	}
	u.connected(l)
	if l.modern() {
		// The SDK puts arguments into headers for tools that it has seen.
		if _, err := l.tools(ctx, nil); err != nil {
			u.s.report(u, err)
		}
	}
	return l, nil
}

func (l *line) modern() bool { return l.conn.Era == upstream.Modern }

func (l *line) dead() bool {
	select {
	case <-l.gone:
		return true
	default:
		return false
	}
}

// end ends the connection and waits. It is safe to call often.
func (l *line) end() {
	l.once.Do(func() {
		close(l.gone)
		_ = l.conn.Close() // what it has to say is of no use to anybody
	})
}

func (l *line) capabilities() *mcp.ServerCapabilities {
	if r := l.conn.Session.InitializeResult(); r != nil && r.Capabilities != nil {
		return r.Capabilities
	}
	return &mcp.ServerCapabilities{}
}

// begin notes that a call is under way.
func (l *line) begin(c *call) {
	c.token = "d" + strconv.FormatInt(l.numbers.Add(1), 10)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls = append(l.calls, c)
}

// finish waits until what the server sent before its answer has been passed on,
// and forgets the call.
func (l *line) finish(c *call) {
	l.settle()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls = slices.DeleteFunc(l.calls, func(x *call) bool { return x == c })
}

// settle waits for the notices that were read before an answer: the SDK hands
// them to a goroutine of their own, and the answer to the caller, in no order. A
// transport that does not count them gives that goroutine its turn.
func (l *line) settle() {
	if l.conn.NotificationCount == nil {
		for quiet := 0; quiet < 30; quiet++ {
			if l.active.Load() > 0 {
				quiet = 0
			}
			runtime.Gosched()
		}
		return
	}
	read := l.conn.NotificationCount()
	missing := func() int64 { return read - l.lost.Load() - l.heard.Load() }
	deadline := time.Now().Add(settleTimeout)
	for missing() > 0 {
		if time.Now().After(deadline) || l.dead() {
			l.lost.Add(max(0, missing()))
			return
		}
		runtime.Gosched()
	}
}

// settleTimeout bounds how long an answer waits for the notices before it.
const settleTimeout = time.Second

// current is the call that something without a token belongs to: the youngest.
func (l *line) current() *call {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.calls) == 0 {
		return nil
	}
	return l.calls[len(l.calls)-1]
}

func (l *line) byToken(token any) *call {
	t, _ := token.(string)
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.calls {
		if c.token == t && t != "" {
			return c
		}
	}
	return nil
}

// receive takes what the server sends.
func (l *line) receive(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		if strings.HasPrefix(method, "notifications/") && method != "notifications/cancelled" {
			defer l.heard.Add(1)
		}
		switch p := req.GetParams().(type) {
		case *mcp.ProgressNotificationParams:
			if p != nil {
				l.active.Add(1)
				defer l.active.Add(-1)
				l.progress(p)
			}
			return nil, nil
		case *mcp.LoggingMessageParams:
			if p != nil {
				l.active.Add(1)
				defer l.active.Add(-1)
				l.logged(p)
			}
			return nil, nil
		case *mcp.ResourceUpdatedNotificationParams:
			if p != nil {
				l.active.Add(1)
				defer l.active.Add(-1)
				defer l.updated(p)
			}
		case *mcp.ElicitationCompleteParams:
			if p != nil {
				l.notice(method, p)
			}
			return nil, nil
		case *mcp.ElicitParams:
			return l.ask(ctx, method, p)
		case *mcp.CreateMessageWithToolsParams:
			return l.ask(ctx, method, p)
		case *mcp.ListRootsParams:
			if p == nil {
				p = &mcp.ListRootsParams{}
			}
			return l.ask(ctx, method, p)
		}
		if method == "roots/list" { // without params
			return l.ask(ctx, method, &mcp.ListRootsParams{})
		}
		return next(ctx, method, req)
	}
}

// ask puts a question of the server to the client that it is meant for.
func (l *line) ask(ctx context.Context, method string, p mcp.Params) (mcp.Result, error) {
	if c := l.current(); c != nil && c.ask != nil {
		return c.ask(ctx, method, p)
	}
	if l.owner != nil {
		return l.up.s.askClient(ctx, context.Background(), l.owner.ss, method, p)
	}
	return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: fmt.Sprintf("%s: there is nobody to ask", method)}
}

func (l *line) progress(p *mcp.ProgressNotificationParams) {
	c := l.byToken(p.ProgressToken)
	if c == nil {
		return
	}
	ctx, ss, token := c.where()
	if token == nil || ctx.Err() != nil {
		return
	}
	q := *p
	q.ProgressToken = token
	l.told(l.up.s.notify(ctx, ss, "notifications/progress", &q))
}

func (l *line) logged(p *mcp.LoggingMessageParams) {
	c := l.current()
	switch {
	case c != nil && !c.modern:
		ctx, ss, _ := c.where()
		l.told(l.up.s.notify(ctx, ss, "notifications/message", p))
	case c != nil && l.exclusive(c):
		ctx, ss, _ := c.where()
		l.told(ss.Log(ctx, p))
	case l.owner != nil:
		l.told(l.up.s.notify(context.Background(), l.owner.ss, "notifications/message", p))
	}
}

// exclusive reports whether a call is the only one, so that a message without
// any mark must belong to it.
func (l *line) exclusive(c *call) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.calls) == 1 && l.calls[0] == c
}

// notice passes a notification on.
func (l *line) notice(method string, p mcp.Params) {
	if l.owner != nil {
		l.told(l.up.s.notify(context.Background(), l.owner.ss, method, p))
	} else if c := l.current(); c != nil {
		ctx, ss, _ := c.where()
		l.told(l.up.s.notify(ctx, ss, method, p))
	}
}

func (l *line) told(err error) {
	if err != nil {
		l.up.s.log.Debug("a notice did not reach its client", "server", l.up.Name, "error", err)
	}
}

// changed passes on that a list is another one now.
func (l *line) changed(what string) {
	u := l.up
	u.s.start(func() {
		if l.owner != nil {
			u.s.tellChanged(l.owner.ss, what, nil)
		} else if l.shared {
			u.s.tellListeners(what)
		}
	})
}

func (l *line) updated(p *mcp.ResourceUpdatedNotificationParams) {
	q := *p
	q.URI = l.up.s.routes.exposedURI(l.up, p.URI)
	if l.owner != nil {
		l.told(l.up.s.notify(context.Background(), l.owner.ss, "notifications/resources/updated", &q))
		return
	}
	if l.shared {
		l.up.s.tellUpdated(&q)
	}
}

// slot is the place of one line, opened by the first who needs it.
type slot struct {
	open func(context.Context) (*line, error)
	s    *Server

	mu     sync.Mutex
	line   *line
	wait   chan struct{} // closed when the attempt under way has ended; nil for none
	err    error         // of the last attempt
	failed time.Time
	ended  bool
}

// again is how long a failed attempt is remembered.
const again = time.Second

// get returns the line, and opens it where it is not there. The attempt goes on
// when ctx ends, for the next who asks.
func (sl *slot) get(ctx context.Context) (*line, error) {
	for {
		sl.mu.Lock()
		if sl.line != nil && !sl.line.dead() {
			defer sl.mu.Unlock()
			return sl.line, nil
		}
		if sl.ended {
			sl.mu.Unlock()
			return nil, context.Canceled
		}
		if sl.wait == nil && sl.err != nil && time.Since(sl.failed) < again {
			defer sl.mu.Unlock()
			return nil, sl.err
		}
		if sl.wait == nil {
			wait := make(chan struct{})
			sl.wait, sl.line, sl.err = wait, nil, nil
			if !sl.s.start(func() { sl.attempt(wait) }) {
				sl.wait = nil
				sl.mu.Unlock()
				return nil, context.Canceled
			}
		}
		wait := sl.wait
		sl.mu.Unlock()
		select {
		case <-wait:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		sl.mu.Lock()
		l, err := sl.line, sl.err
		sl.mu.Unlock()
		if l != nil || err != nil {
			return l, err
		}
	}
}

func (sl *slot) attempt(wait chan struct{}) {
	l, err := sl.open(sl.s.ctx)
	sl.mu.Lock()
	sl.wait, sl.line, sl.err, sl.failed = nil, l, err, time.Now()
	ended := sl.ended
	sl.mu.Unlock()
	close(wait)
	if ended && l != nil {
		l.end()
	}
}

// peek is the line where there is one.
func (sl *slot) peek() *line {
	sl.mu.Lock()
	defer sl.mu.Unlock()
	if sl.line == nil || sl.line.dead() {
		return nil
	}
	return sl.line
}

func (sl *slot) close() {
	sl.mu.Lock()
	sl.ended = true
	l := sl.line
	sl.mu.Unlock()
	if l != nil {
		l.end()
	}
}

// forServer is the _meta of a client's request as the server gets it.
func forServer(meta map[string]any, l *line, c *call) mcp.Meta {
	m := mcp.Meta(maps.Clone(meta))
	for _, k := range []string{mcp.MetaKeyProtocolVersion, mcp.MetaKeySubscriptionID, "progressToken"} {
		delete(m, k)
	}
	if !l.modern() {
		for _, k := range []string{mcp.MetaKeyClientInfo, mcp.MetaKeyClientCapabilities, mcp.MetaKeyLogLevel} {
			delete(m, k)
		}
	}
	if c != nil && c.progress != nil {
		if m == nil {
			m = mcp.Meta{}
		}
		m["progressToken"] = c.token
	}
	if len(m) == 0 {
		return nil
	}
	return m
}
