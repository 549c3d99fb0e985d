package mcpserver

import (
	"context"
	"encoding/json"
	"slices"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout/tools"
)

// Limits of the tools that are listed for one connection. What is beyond them is
// called with call_tool, as all of them may be.
const (
	maxGrown      = 256
	maxGrownBytes = 1 << 20
)

// growth lists the tools that loads bring to connections of the older era, each
// its own: the SDK's server has one list for all. A connection of the modern era
// sees none of it, as its list may not depend on what was called before.
type growth struct {
	sdk  *mcp.Server
	send mcp.MethodHandler // to one connection

	mu    sync.Mutex
	conns map[*mcp.ServerSession]*grown
}

// grown is what was listed for one connection. It is only added to: a tool that
// is gone stays, and a call of it says what is wrong.
type grown struct {
	mu    sync.Mutex
	tools []*mcp.Tool // by our names, in the order of loading
	bytes int
}

// newGrowth lets the lists of tools grow. It comes before the middleware that
// tells of the catalog, which is then around it.
func (s *Server) newGrowth() *growth {
	g := &growth{sdk: s.sdk, conns: map[*mcp.ServerSession]*grown{}}
	// The SDK announces a list to all connections or to none; what sends its
	// notifications sends ours to one.
	s.sdk.AddSendingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler { g.send = next; return next })
	s.sdk.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			if method == "initialize" {
				g.forget()
			}
			if !growing(req) {
				return next(ctx, method, req)
			}
			if call, ok := req.(*mcp.CallToolRequest); ok {
				return s.growCall(ctx, next, call)
			}
			res, err := next(ctx, method, req)
			if list, ok := res.(*mcp.ListToolsResult); ok && err == nil && list.NextCursor == "" {
				list.Tools = append(list.Tools, g.of(lasting(req)).listed()...)
			}
			return res, err
		}
	})
	return g
}

// growing reports whether a request is of a connection whose list may grow.
func growing(req mcp.Request) bool {
	ss := lasting(req)
	versioned, ok := req.(interface{ ProtocolVersion() string })
	return ok && ss != nil && ss.InitializeParams() != nil && versioned.ProtocolVersion() < modernVersion
}

// growCall turns the call of a tool that was listed into one of call_tool, and
// lists what a load brings.
func (s *Server) growCall(ctx context.Context, next mcp.MethodHandler, req *mcp.CallToolRequest) (mcp.Result, error) {
	const method = "tools/call"
	if s.growth.of(req.Session).has(req.Params.Name) {
		routed, err := throughCallTool(req)
		if err != nil {
			return nil, err
		}
		return next(ctx, method, routed)
	}
	if req.Params.Name != s.loadTool {
		return next(ctx, method, req)
	}
	var brought broughtTools
	res, err := next(context.WithValue(ctx, broughtKey{}, &brought), method, req)
	if err == nil && s.growth.add(req.Session, brought.tools) {
		if err := s.growth.announce(ctx, req.Session); err != nil {
			s.log.Warn("tools are listed and the client was not told", "error", err)
		}
	}
	return res, err
}

// announce tells a connection that its list has grown, where the answer to the
// request of ctx goes and before it: not all clients of HTTP listen elsewhere.
func (g *growth) announce(ctx context.Context, ss *mcp.ServerSession) error {
	note := &mcp.ServerRequest[*mcp.ToolListChangedParams]{Session: ss, Params: &mcp.ToolListChangedParams{}}
	_, err := g.send(ctx, "notifications/tools/list_changed", note)
	return err
}

// throughCallTool is a request for call_tool that means the same.
func throughCallTool(req *mcp.CallToolRequest) (*mcp.CallToolRequest, error) {
	args, err := json.Marshal(struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments,omitempty"`
	}{req.Params.Name, req.Params.Arguments})
	if err != nil {
		return nil, err
	}
	routed, params := *req, *req.Params
	params.Name, params.Arguments = "call_tool", args
	routed.Params = &params
	return &routed, nil
}

type broughtKey struct{}

// broughtTools are those that the load of a request brought.
type broughtTools struct{ tools []tools.Tool }

// noteBrought remembers them where the list of the connection may grow.
func noteBrought(ctx context.Context, brought []tools.Tool) {
	if b, ok := ctx.Value(broughtKey{}).(*broughtTools); ok {
		b.tools = append(b.tools, brought...)
	}
}

// of returns what was listed for a connection, an empty one for nothing.
func (g *growth) of(ss *mcp.ServerSession) *grown {
	g.mu.Lock()
	defer g.mu.Unlock()
	if have := g.conns[ss]; have != nil {
		return have
	}
	return &grown{}
}

// add lists tools for a connection, and reports whether one of them is new.
func (g *growth) add(ss *mcp.ServerSession, all []tools.Tool) bool {
	if len(all) == 0 {
		return false
	}
	g.mu.Lock()
	have := g.conns[ss]
	if have == nil {
		have = &grown{}
		g.conns[ss] = have
	}
	g.mu.Unlock()
	g.forget() // it too, if it has ended meanwhile
	return have.add(all)
}

// forget drops connections that have ended, as others begin or have tools to list:
// until then what was listed for one is kept.
func (g *growth) forget() {
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

func (c *grown) listed() []*mcp.Tool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.tools)
}

func (c *grown) has(name string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.find(name)
}

// find is has with c.mu held.
func (c *grown) find(name string) bool {
	return slices.ContainsFunc(c.tools, func(t *mcp.Tool) bool { return t.Name == name })
}

func (c *grown) add(all []tools.Tool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := len(c.tools)
	for _, t := range all {
		if c.find(t.Name) || len(c.tools) == maxGrown {
			continue
		}
		own := *t.Definition // as its server defines it, but for the name
		own.Name, own.Description = t.Name, shortened(own.Description, maxToolText)
		b, err := json.Marshal(&own)
		if err != nil || len(b) > pageBytes || c.bytes+len(b) > maxGrownBytes {
			continue
		}
		c.bytes += len(b)
		c.tools = append(c.tools, &own)
	}
	return len(c.tools) > before
}
