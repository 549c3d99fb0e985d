//lint:file-ignore SA1019 legacy clients and servers still use deprecated features

package mcpproxy

import (
	"context"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout/internal/upstream"
)

// legacyClient holds the session of a legacy client and its own connection to
// each upstream server.
type legacyClient struct {
	ss    *mcp.ServerSession
	caps  *mcp.ClientCapabilities
	slots map[*upstreamServer]*connSlot

	mu    sync.Mutex
	level mcp.LoggingLevel
}

// inboundRequest is a request received from a client.
type inboundRequest struct {
	ctx    context.Context // context of the request, with the values that the SDK adds
	ss     *mcp.ServerSession
	meta   map[string]any
	modern bool
	caps   *mcp.ClientCapabilities
	client *legacyClient // nil for a modern client
}

// clientFor returns the legacy client for a session. It creates the client if
// necessary, and removes it when the session ends.
func (s *Server) clientFor(ss *mcp.ServerSession) *legacyClient {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.clients[ss]; c != nil {
		return c
	}
	c := &legacyClient{ss: ss, slots: map[*upstreamServer]*connSlot{}}
	if p := ss.InitializeParams(); p != nil {
		c.caps = forwardedCapabilities(p.Capabilities)
	}
	for _, u := range s.upstreams {
		c.slots[u] = &connSlot{s: s, open: func(ctx context.Context) (*upstreamConn, error) {
			l, err := u.openConn(ctx, c.caps, c, false)
			if err == nil {
				c.setServerLogLevel(ctx, l)
			}
			return l, err
		}}
	}
	if s.closed {
		for _, sl := range c.slots {
			sl.ended = true
		}
		return c
	}
	s.clients[ss] = c
	s.group.Go(func() {
		_ = ss.Wait()
		s.mu.Lock()
		delete(s.clients, ss)
		s.mu.Unlock()
		for _, sl := range c.slots {
			sl.close()
		}
	})
	return c
}

// setServerLogLevel forwards the client's log level to a server.
func (c *legacyClient) setServerLogLevel(ctx context.Context, l *upstreamConn) {
	c.mu.Lock()
	level := c.level
	c.mu.Unlock()
	if level == "" || l.isModern() || l.capabilities().Logging == nil {
		return
	}
	if err := l.conn.Session.SetLoggingLevel(ctx, &mcp.SetLoggingLevelParams{Level: level}); err != nil {
		l.up.s.reportError(l.up, unwrapError(err))
	}
}

func (c *legacyClient) logLevel() mcp.LoggingLevel {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.level
}

// setLogLevel stores a client's log level and forwards it to the connected
// servers.
func (s *Server) setLogLevel(ctx context.Context, ss *mcp.ServerSession, level mcp.LoggingLevel) {
	c := s.clientFor(ss)
	c.mu.Lock()
	c.level = level
	c.mu.Unlock()
	for _, u := range s.upstreams {
		if l := c.slots[u].current(); l != nil {
			c.setServerLogLevel(ctx, l)
		}
	}
}

// conn returns a connection for requests that never need input from the client,
// such as list requests.
func (in *inboundRequest) conn(ctx context.Context, u *upstreamServer) (*upstreamConn, error) {
	if in.client != nil {
		return in.client.slots[u].get(ctx)
	}
	return u.shared.get(ctx)
}

// forwardRootsChange notifies the servers connected for a legacy client that
// the client's roots have changed.
func (s *Server) forwardRootsChange(ss *mcp.ServerSession) {
	c := s.clientFor(ss)
	for _, sl := range c.slots {
		if l := sl.current(); l != nil && !l.isModern() {
			_, err := l.send(s.ctx, "notifications/roots/list_changed", &mcp.ClientRequest[*mcp.RootsListChangedParams]{Session: l.conn.Session, Params: &mcp.RootsListChangedParams{}})
			l.logFailure(err)
		}
	}
}

// forwardClientProgress forwards a progress notification from a client to the
// server whose request it concerns. With several servers, it drops the
// notification, because each server chooses its own tokens and the target is
// unknown.
func (s *Server) forwardClientProgress(ss *mcp.ServerSession, p *mcp.ProgressNotificationParams) {
	if len(s.upstreams) != 1 || p == nil {
		return
	}
	if l := s.clientFor(ss).slots[s.upstreams[0]].current(); l != nil && !l.isModern() {
		forwarded := *p
		forwarded.Meta = nil
		l.logFailure(l.conn.Session.NotifyProgress(s.ctx, &forwarded))
	}
}

// askClient sends an input request to a legacy client and waits for the
// response until ctx is done. It sends the request on the stream of the client
// request to which requestCtx belongs.
func (s *Server) askClient(ctx, requestCtx context.Context, ss *mcp.ServerSession, method string, p mcp.Params) (mcp.Result, error) {
	requestCtx, cancel := context.WithCancel(requestCtx)
	defer cancel()
	stop := context.AfterFunc(ctx, cancel)
	defer stop()
	var req mcp.Request
	switch p := p.(type) {
	case *mcp.ElicitParams:
		req = &mcp.ServerRequest[*mcp.ElicitParams]{Session: ss, Params: p}
	case *mcp.CreateMessageWithToolsParams:
		req = &mcp.ServerRequest[*mcp.CreateMessageWithToolsParams]{Session: ss, Params: p}
	case *mcp.ListRootsParams:
		req = &mcp.ServerRequest[*mcp.ListRootsParams]{Session: ss, Params: p}
	}
	res, err := s.send(requestCtx, method, req)
	if response, ok := res.(mcp.InputResponse); ok {
		res, _ = upstream.ForwardedResponse(response).(mcp.Result)
	}
	return res, unwrapError(err)
}
