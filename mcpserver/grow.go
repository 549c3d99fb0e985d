package mcpserver

import (
	"context"
	"encoding/json"
	"slices"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout/internal/rpcmessage"
	"github.com/loadout-dev/loadout/internal/toolname"
	"github.com/loadout-dev/loadout/tools"
)

// Limits on the tools listed for a connection. Tools beyond the limits can
// still be called through call_tool.
const (
	maxGrown      = 256
	maxGrownBytes = 1 << 20
)

// toolGrowth lists the tools that loaded skills provide, for each connection
// with a protocol version before 2026-07-28. The SDK's server has a single list
// for all connections. In later versions, a tool list must not depend on
// earlier calls.
type toolGrowth struct {
	sdk  *mcp.Server
	send mcp.MethodHandler // sends to a single connection

	mu    sync.Mutex
	conns map[*mcp.ServerSession]*grownTools
}

// grownTools holds the additional tools listed for a connection. Tools are
// never removed from the list. A call to a tool that no longer exists returns
// an error with the reason.
type grownTools struct {
	mu    sync.Mutex
	tools []*mcp.Tool // tools under the names listed by this server, in load order
	bytes int
}

// newGrowth installs the middleware that extends tool lists. It must be called
// before the catalog text middleware is added, which then wraps it.
func (s *Server) newGrowth(sdk *mcp.Server) *toolGrowth {
	g := &toolGrowth{sdk: sdk, conns: map[*mcp.ServerSession]*grownTools{}}
	// The SDK notifies all connections of a changed list. Its sending handler
	// lets us notify a single connection.
	sdk.AddSendingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler { g.send = next; return next })
	sdk.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			if method == "initialize" {
				g.forget()
			}
			if !canGrow(req) {
				return next(ctx, method, req)
			}
			if call, ok := req.(*mcp.CallToolRequest); ok {
				return s.callWithGrowth(ctx, next, call)
			}
			res, err := next(ctx, method, req)
			if list, ok := res.(*mcp.ListToolsResult); ok && err == nil && list.NextCursor == "" {
				list.Tools = append(list.Tools, g.toolsOf(longLivedSession(req)).listed()...)
			}
			return res, err
		}
	})
	return g
}

// canGrow reports whether the tool list of the request's connection may grow.
func canGrow(req mcp.Request) bool {
	ss := longLivedSession(req)
	versioned, ok := req.(interface{ ProtocolVersion() string })
	return ok && ss != nil && ss.InitializeParams() != nil && versioned.ProtocolVersion() < rpcmessage.ModernVersion
}

// callWithGrowth routes calls to additional tools through call_tool. After a
// call that loads skills, it lists the tools that the skills provide.
func (s *Server) callWithGrowth(ctx context.Context, next mcp.MethodHandler, req *mcp.CallToolRequest) (mcp.Result, error) {
	const method = "tools/call"
	if s.growth.toolsOf(req.Session).contains(req.Params.Name) {
		routed, err := asCallTool(req)
		if err != nil {
			return nil, err
		}
		return next(ctx, method, routed)
	}
	if req.Params.Name != s.loadTool {
		return next(ctx, method, req)
	}
	var loaded loadedTools
	res, err := next(context.WithValue(ctx, loadedKey{}, &loaded), method, req)
	if err == nil && s.growth.add(req.Session, loaded.tools) {
		if err := s.growth.announce(ctx, req.Session); err != nil {
			s.log.Warn("a client was not notified of new tools", "error", err)
		}
	}
	return res, err
}

// announce notifies a connection that its tool list changed. It uses the stream
// of ctx's request, before the response is sent, because some HTTP clients
// listen to no other stream.
func (g *toolGrowth) announce(ctx context.Context, ss *mcp.ServerSession) error {
	note := &mcp.ServerRequest[*mcp.ToolListChangedParams]{Session: ss, Params: &mcp.ToolListChangedParams{}}
	_, err := g.send(ctx, "notifications/tools/list_changed", note)
	return err
}

// asCallTool returns a request that makes the same call through call_tool.
func asCallTool(req *mcp.CallToolRequest) (*mcp.CallToolRequest, error) {
	args, err := json.Marshal(struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments,omitempty"`
	}{req.Params.Name, req.Params.Arguments})
	if err != nil {
		return nil, err
	}
	routed, params := *req, *req.Params
	params.Name, params.Arguments = toolname.CallTool, args
	routed.Params = &params
	return &routed, nil
}

type loadedKey struct{}

// loadedTools collects the tools of the skills loaded during a request.
type loadedTools struct{ tools []tools.Tool }

// recordLoaded records the tools of loaded skills, if ctx belongs to a
// connection whose tool list may grow.
func recordLoaded(ctx context.Context, loaded []tools.Tool) {
	if b, ok := ctx.Value(loadedKey{}).(*loadedTools); ok {
		b.tools = append(b.tools, loaded...)
	}
}

// toolsOf returns the additional tools of a connection. There may be none.
func (g *toolGrowth) toolsOf(ss *mcp.ServerSession) *grownTools {
	g.mu.Lock()
	defer g.mu.Unlock()
	if have := g.conns[ss]; have != nil {
		return have
	}
	return &grownTools{}
}

// add lists tools for a connection and reports whether any of them is new.
func (g *toolGrowth) add(ss *mcp.ServerSession, all []tools.Tool) bool {
	if len(all) == 0 {
		return false
	}
	g.mu.Lock()
	have := g.conns[ss]
	if have == nil {
		have = &grownTools{}
		g.conns[ss] = have
	}
	g.mu.Unlock()
	g.forget() // also drops this connection if it was closed
	return have.add(all)
}

// forget removes the records of closed connections. It is called when another
// connection starts or lists tools.
func (g *toolGrowth) forget() {
	alive := map[*mcp.ServerSession]bool{}
	g.mu.Lock()
	defer g.mu.Unlock()
	for ss := range g.sdk.Sessions() {
		alive[ss] = true
	}
	for ss := range g.conns {
		if !alive[ss] {
			delete(g.conns, ss)
		}
	}
}

func (c *grownTools) listed() []*mcp.Tool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.tools)
}

func (c *grownTools) contains(name string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.find(name)
}

// find is like contains, but requires c.mu to be held.
func (c *grownTools) find(name string) bool {
	return slices.ContainsFunc(c.tools, func(t *mcp.Tool) bool { return t.Name == name })
}

func (c *grownTools) add(all []tools.Tool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := len(c.tools)
	for _, t := range all {
		if c.find(t.Name) || len(c.tools) == maxGrown {
			continue
		}
		own := *t.Definition // copy with the name listed by this server
		own.Name, own.Description = t.Name, truncate(own.Description, maxToolText)
		b, err := json.Marshal(&own)
		if err != nil || len(b) > pageBytes || c.bytes+len(b) > maxGrownBytes {
			continue
		}
		c.bytes += len(b)
		c.tools = append(c.tools, &own)
	}
	return len(c.tools) > before
}
