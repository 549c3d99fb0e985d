//lint:file-ignore SA1019 legacy clients and servers still use deprecated features

package mcpproxy

import (
	"context"
	"fmt"
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

// upstreamConn is a connection to an upstream server. It forwards each message
// from the server to the client of a running call, to the owner of the
// connection, or to subscribers.
type upstreamConn struct {
	up     *upstreamServer
	conn   *Conn
	owner  *legacyClient // only client of the connection; nil if it is not tied to a client
	shared bool          // notifications go to all subscribed modern clients
	send   mcp.MethodHandler
	done   chan struct{} // closed when the connection has ended
	once   sync.Once

	active    atomic.Int32 // number of server messages being handled
	handled   atomic.Int64 // number of handled notifications
	unhandled atomic.Int64 // number of notifications that the SDK dropped
	lastToken atomic.Int64 // last assigned progress token

	mu    sync.Mutex
	calls []*call // running calls, oldest first

	subscribed map[string]int // subscriptions of owner, by URI; guarded by up.mu
}

// call is a client's request that is running on a server.
type call struct {
	token string // progress token sent to the server

	mu       sync.Mutex
	ctx      context.Context // context of the client's request
	ss       *mcp.ServerSession
	progress any                                                                        // the client's token; may be nil
	ask      func(ctx context.Context, method string, p mcp.Params) (mcp.Result, error) // handles input requests from the server
	modern   bool
}

func (c *call) route() (context.Context, *mcp.ServerSession, any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ctx, c.ss, c.progress
}

// openConn opens a connection that declares the given client capabilities.
func (u *upstreamServer) openConn(ctx context.Context, caps *mcp.ClientCapabilities, owner *legacyClient, shared bool) (*upstreamConn, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, u.s.opts.ConnectTimeout, fmt.Errorf("no connection within %v", u.s.opts.ConnectTimeout))
	defer cancel()
	l := &upstreamConn{up: u, owner: owner, shared: shared, done: make(chan struct{}), subscribed: map[string]int{}}
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
			c.AddReceivingMiddleware(l.handleServerMessage)
			c.AddSendingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
				l.send = next
				return next
			})
		},
		Changed: l.forwardListChange,
	})
	if err != nil {
		if cause := context.Cause(ctx); cause != nil && ctx.Err() != nil {
			err = cause
		}
		u.setReachable(false)
		return nil, fmt.Errorf("connect to %s: %w", u.Name, err)
	}
	u.setReachable(true)
	l.mu.Lock()
	l.conn = conn
	l.mu.Unlock()
	if !u.s.startGoroutine(func() {
		_ = conn.Session.Wait()
		l.close()
		if shared {
			u.reconnect()
		}
	}) {
		l.close()
		return nil, context.Canceled
	}
	u.resubscribe(l)
	if l.isModern() {
		// The SDK must know the tools, so that it can send arguments in
		// headers.
		if _, err := l.listTools(ctx, nil); err != nil {
			u.s.reportError(u, err)
		}
	}
	return l, nil
}

func (l *upstreamConn) isModern() bool { return l.conn.Era == upstream.Modern }

func (l *upstreamConn) isClosed() bool {
	select {
	case <-l.done:
		return true
	default:
		return false
	}
}

// close closes the connection and waits until it is closed. It may be called
// more than once.
func (l *upstreamConn) close() {
	l.once.Do(func() {
		close(l.done)
		_ = l.conn.Close() // nothing can be done about an error
	})
}

func (l *upstreamConn) capabilities() *mcp.ServerCapabilities {
	if r := l.conn.Session.InitializeResult(); r != nil && r.Capabilities != nil {
		return r.Capabilities
	}
	return &mcp.ServerCapabilities{}
}

// addCall registers a running call.
func (l *upstreamConn) addCall(c *call) {
	c.token = "d" + strconv.FormatInt(l.lastToken.Add(1), 10)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls = append(l.calls, c)
}

// removeCall unregisters a call after the notifications that preceded its
// response have been forwarded.
func (l *upstreamConn) removeCall(c *call) {
	l.waitForNotifications()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls = slices.DeleteFunc(l.calls, func(x *call) bool { return x == c })
}

// waitForNotifications waits for up to notificationTimeout until the
// notifications that preceded a response have been handled. The SDK handles
// them in other goroutines, in no particular order. If the transport does not
// count notifications, waitForNotifications only yields to those goroutines.
func (l *upstreamConn) waitForNotifications() {
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
	missing := func() int64 { return read - l.unhandled.Load() - l.handled.Load() }
	deadline := time.Now().Add(notificationTimeout)
	for missing() > 0 {
		if time.Now().After(deadline) || l.isClosed() {
			l.unhandled.Add(max(0, missing()))
			return
		}
		runtime.Gosched()
	}
}

// notificationTimeout is the maximum time that a response waits for the
// notifications that preceded it.
const notificationTimeout = time.Second

// lastCall returns the call that started most recently, or nil if none is
// running. Messages without a progress token are attributed to this call.
func (l *upstreamConn) lastCall() *call {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.calls) == 0 {
		return nil
	}
	return l.calls[len(l.calls)-1]
}

func (l *upstreamConn) findCall(token any) *call {
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

// handleServerMessage is receiving middleware that forwards requests and
// notifications from the server to clients.
func (l *upstreamConn) handleServerMessage(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		if strings.HasPrefix(method, "notifications/") && method != "notifications/cancelled" {
			defer l.handled.Add(1)
		}
		switch p := req.GetParams().(type) {
		case *mcp.ProgressNotificationParams:
			if p != nil {
				l.active.Add(1)
				defer l.active.Add(-1)
				l.forwardProgress(p)
			}
			return nil, nil
		case *mcp.LoggingMessageParams:
			if p != nil {
				l.active.Add(1)
				defer l.active.Add(-1)
				l.forwardLog(p)
			}
			return nil, nil
		case *mcp.ResourceUpdatedNotificationParams:
			if p != nil {
				l.active.Add(1)
				defer l.active.Add(-1)
				defer l.forwardUpdate(p)
			}
		case *mcp.ElicitationCompleteParams:
			if p != nil {
				l.forwardNotification(method, p)
			}
			return nil, nil
		case *mcp.ElicitParams:
			return l.forwardQuestion(ctx, method, p)
		case *mcp.CreateMessageWithToolsParams:
			return l.forwardQuestion(ctx, method, p)
		case *mcp.ListRootsParams:
			if p == nil {
				p = &mcp.ListRootsParams{}
			}
			return l.forwardQuestion(ctx, method, p)
		}
		if method == "roots/list" { // without params
			return l.forwardQuestion(ctx, method, &mcp.ListRootsParams{})
		}
		return next(ctx, method, req)
	}
}

// forwardQuestion sends a server's input request to the client of the last call
// or, if there is none, to the client that owns the connection.
func (l *upstreamConn) forwardQuestion(ctx context.Context, method string, p mcp.Params) (mcp.Result, error) {
	if c := l.lastCall(); c != nil && c.ask != nil {
		return c.ask(ctx, method, p)
	}
	if l.owner != nil {
		return l.up.s.askClient(ctx, context.Background(), l.owner.ss, method, p)
	}
	return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: fmt.Sprintf("no client can answer %s", method)}
}

func (l *upstreamConn) forwardProgress(p *mcp.ProgressNotificationParams) {
	c := l.findCall(p.ProgressToken)
	if c == nil {
		return
	}
	ctx, ss, token := c.route()
	if token == nil || ctx.Err() != nil {
		return
	}
	q := *p
	q.ProgressToken = token
	l.logFailure(l.up.s.notify(ctx, ss, "notifications/progress", &q))
}

func (l *upstreamConn) forwardLog(p *mcp.LoggingMessageParams) {
	c := l.lastCall()
	switch {
	case c != nil && !c.modern:
		ctx, ss, _ := c.route()
		l.logFailure(l.up.s.notify(ctx, ss, "notifications/message", p))
	case c != nil && l.isOnlyCall(c):
		ctx, ss, _ := c.route()
		l.logFailure(ss.Log(ctx, p))
	case l.owner != nil:
		l.logFailure(l.up.s.notify(context.Background(), l.owner.ss, "notifications/message", p))
	}
}

// isOnlyCall reports whether c is the only running call, so that messages
// without a progress token must belong to it.
func (l *upstreamConn) isOnlyCall(c *call) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.calls) == 1 && l.calls[0] == c
}

// forwardNotification forwards a notification to the owner of the connection
// or, without an owner, to the client of the last call.
func (l *upstreamConn) forwardNotification(method string, p mcp.Params) {
	if l.owner != nil {
		l.logFailure(l.up.s.notify(context.Background(), l.owner.ss, method, p))
	} else if c := l.lastCall(); c != nil {
		ctx, ss, _ := c.route()
		l.logFailure(l.up.s.notify(ctx, ss, method, p))
	}
}

func (l *upstreamConn) logFailure(err error) {
	if err != nil {
		l.up.s.log.Debug("could not forward notification to client", "server", l.up.Name, "error", err)
	}
}

// forwardListChange notifies clients in the background that a list has changed.
func (l *upstreamConn) forwardListChange(what string) {
	u := l.up
	u.s.startGoroutine(func() {
		if l.owner != nil {
			u.s.notifyListChanged(l.owner.ss, what, nil)
		} else if l.shared {
			u.s.notifySubscribers(what)
		}
	})
}

func (l *upstreamConn) forwardUpdate(p *mcp.ResourceUpdatedNotificationParams) {
	q := *p
	q.URI = l.up.s.routes.exposedURI(l.up, p.URI)
	if l.owner != nil {
		l.logFailure(l.up.s.notify(context.Background(), l.owner.ss, "notifications/resources/updated", &q))
		return
	}
	if l.shared {
		l.up.s.notifyUpdated(&q)
	}
}

// connSlot holds a connection that is opened on first use and reopened after it
// has ended.
type connSlot struct {
	open func(context.Context) (*upstreamConn, error)
	s    *Server

	mu         sync.Mutex
	line       *upstreamConn
	connecting chan struct{} // closed when the current attempt ends; nil if there is none
	err        error         // error of the last attempt
	failed     time.Time
	ended      bool
}

// retryDelay is the minimum time between a failed attempt to connect and the
// next attempt.
const retryDelay = time.Second

// get returns the connection, opening it if necessary. If ctx is done, the
// attempt continues for later callers.
func (sl *connSlot) get(ctx context.Context) (*upstreamConn, error) {
	for {
		sl.mu.Lock()
		if sl.line != nil && !sl.line.isClosed() {
			defer sl.mu.Unlock()
			return sl.line, nil
		}
		if sl.ended {
			sl.mu.Unlock()
			return nil, context.Canceled
		}
		if sl.connecting == nil && sl.err != nil && time.Since(sl.failed) < retryDelay {
			defer sl.mu.Unlock()
			return nil, sl.err
		}
		if sl.connecting == nil {
			wait := make(chan struct{})
			sl.connecting, sl.line, sl.err = wait, nil, nil
			if !sl.s.startGoroutine(func() { sl.connect(wait) }) {
				sl.connecting = nil
				sl.mu.Unlock()
				return nil, context.Canceled
			}
		}
		wait := sl.connecting
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

func (sl *connSlot) connect(wait chan struct{}) {
	l, err := sl.open(sl.s.ctx)
	sl.mu.Lock()
	sl.connecting, sl.line, sl.err, sl.failed = nil, l, err, time.Now()
	ended := sl.ended
	sl.mu.Unlock()
	close(wait)
	if ended && l != nil {
		l.close()
	}
}

// current returns the connection, or nil if it is not open.
func (sl *connSlot) current() *upstreamConn {
	sl.mu.Lock()
	defer sl.mu.Unlock()
	if sl.line == nil || sl.line.isClosed() {
		return nil
	}
	return sl.line
}

func (sl *connSlot) close() {
	sl.mu.Lock()
	sl.ended = true
	l := sl.line
	sl.mu.Unlock()
	if l != nil {
		l.close()
	}
}

// serverMeta returns the _meta to send to the server with a client's request;
// see [upstream.ForwardedMeta]. The SDK adds the protocol version, Loadout's
// client info, and for modern servers the capabilities, if they are missing.
func serverMeta(meta map[string]any, l *upstreamConn, c *call) mcp.Meta {
	m := upstream.ForwardedMeta(meta, "elicitation", "sampling", "roots")
	delete(m, "progressToken")
	if !l.isModern() {
		delete(m, mcp.MetaKeyClientCapabilities)
	} else if level, _ := meta[mcp.MetaKeyLogLevel].(string); slices.Contains(logLevels, level) {
		m[mcp.MetaKeyLogLevel] = level
	}
	if c != nil && c.progress != nil {
		m["progressToken"] = c.token
	}
	if len(m) == 0 {
		return nil
	}
	return m
}

// logLevels lists the log levels that a client can request.
var logLevels = []string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}

// forwardedCapabilities returns those of the client's capabilities that the
// proxy supports, which are the ones for input requests. It omits extensions and
// experimental capabilities.
func forwardedCapabilities(caps *mcp.ClientCapabilities) *mcp.ClientCapabilities {
	if caps == nil {
		return nil
	}
	return &mcp.ClientCapabilities{Roots: caps.Roots, RootsV2: caps.RootsV2, Sampling: caps.Sampling, Elicitation: caps.Elicitation}
}
