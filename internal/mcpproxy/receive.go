//lint:file-ignore SA1019 what is deprecated still passes between old peers

package mcpproxy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// receive answers the requests of clients.
func (s *Server) receive(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		ss, ok := req.GetSession().(*mcp.ServerSession)
		if !ok {
			return next(ctx, method, req)
		}
		out := outward{ctx}
		switch r := req.(type) {
		case *mcp.ListToolsRequest:
			return result(s.listTools(out, s.inbound(ctx, ss, r), r.Params))
		case *mcp.ListPromptsRequest:
			return result(s.listPrompts(out, s.inbound(ctx, ss, r), r.Params))
		case *mcp.ListResourcesRequest:
			return result(s.listResources(out, s.inbound(ctx, ss, r), r.Params))
		case *mcp.ListResourceTemplatesRequest:
			return result(s.listTemplates(out, s.inbound(ctx, ss, r), r.Params))
		case *mcp.CallToolRequest:
			return s.callTool(out, s.inbound(ctx, ss, r), r)
		case *mcp.GetPromptRequest:
			return s.getPrompt(out, s.inbound(ctx, ss, r), r)
		case *mcp.ReadResourceRequest:
			return s.readResource(out, s.inbound(ctx, ss, r), r)
		case *mcp.CompleteRequest:
			return s.complete(out, s.inbound(ctx, ss, r), r, func() (mcp.Result, error) { return next(ctx, method, req) })
		case *mcp.SubscriptionsListenRequest:
			return s.listening(ctx, ss, func(ctx context.Context) (mcp.Result, error) { return next(ctx, method, req) })
		}
		if p, ok := req.GetParams().(*mcp.SetLoggingLevelParams); ok {
			s.setLevel(out, ss, p.Level)
		}
		res, err := next(ctx, method, req)
		switch r := res.(type) {
		case *mcp.InitializeResult:
			in := &inbound{ctx: ctx, ss: ss, client: s.session(ss)}
			r.Capabilities, r.Instructions = s.greeting(out, in)
		case *mcp.DiscoverResult:
			r.Capabilities, r.Instructions = s.greeting(out, &inbound{ctx: ctx, ss: ss, modern: true})
		}
		return res, err
	}
}

// outward is the context of a client's request for what is done at servers: it
// ends with it, and has none of its values. The SDK keeps the version of the
// protocol and the id of the request there, and would use them as the server's.
type outward struct{ context.Context }

func (outward) Value(any) any { return nil }

// result keeps a nil of a type from becoming a result.
func result[R mcp.Result](r R, err error) (mcp.Result, error) {
	if err != nil {
		return nil, err
	}
	return r, nil
}

// asker is what all requests tell of their client.
type asker interface {
	ProtocolVersion() string
	ClientCapabilities() *mcp.ClientCapabilities
}

func (s *Server) inbound(ctx context.Context, ss *mcp.ServerSession, req asker) *inbound {
	in := &inbound{ctx: ctx, ss: ss, meta: metaOf(req)}
	// The era is that of the request: a connection may carry both.
	if v, _ := in.meta[mcp.MetaKeyProtocolVersion].(string); v >= modernVersion {
		in.modern = true
		in.caps = req.ClientCapabilities()
		return in
	}
	in.client = s.session(ss)
	in.caps = in.client.caps
	return in
}

func metaOf(req any) map[string]any {
	switch r := req.(type) {
	case *mcp.ListToolsRequest:
		if r.Params != nil {
			return r.Params.Meta
		}
	case *mcp.ListPromptsRequest:
		if r.Params != nil {
			return r.Params.Meta
		}
	case *mcp.ListResourcesRequest:
		if r.Params != nil {
			return r.Params.Meta
		}
	case *mcp.ListResourceTemplatesRequest:
		if r.Params != nil {
			return r.Params.Meta
		}
	case *mcp.CallToolRequest:
		return r.Params.Meta
	case *mcp.GetPromptRequest:
		return r.Params.Meta
	case *mcp.ReadResourceRequest:
		return r.Params.Meta
	case *mcp.CompleteRequest:
		return r.Params.Meta
	}
	return nil
}

// greeting is what the servers can do together, and what they say of
// themselves. Who does not answer in time is taken to have everything: its lists
// are empty until it does.
func (s *Server) greeting(ctx context.Context, in *inbound) (*mcp.ServerCapabilities, string) {
	ctx, cancel := context.WithTimeoutCause(ctx, s.opts.ListTimeout, fmt.Errorf("no connection within %v", s.opts.ListTimeout))
	defer cancel()
	lines := make([]*line, len(s.ups))
	var wg sync.WaitGroup
	for i, u := range s.ups {
		wg.Go(func() {
			l, err := in.line(ctx, u)
			if err != nil {
				s.report(u, err)
			}
			lines[i] = l
		})
	}
	wg.Wait()
	caps := &mcp.ServerCapabilities{}
	var texts []string
	for i, l := range lines {
		if l == nil {
			union(caps, &mcp.ServerCapabilities{
				Tools:     &mcp.ToolCapabilities{ListChanged: true},
				Prompts:   &mcp.PromptCapabilities{ListChanged: true},
				Resources: &mcp.ResourceCapabilities{ListChanged: true, Subscribe: true},
			})
			s.late(in, s.ups[i])
			continue
		}
		union(caps, l.capabilities())
		if r := l.conn.Session.InitializeResult(); r != nil && r.Instructions != "" {
			texts = append(texts, r.Instructions)
		}
	}
	if s.opts.Instructions != "" {
		return caps, s.opts.Instructions
	}
	return caps, strings.Join(texts, "\n\n")
}

// late tells a client when a server has come that was not there when it asked.
func (s *Server) late(in *inbound, u *up) {
	if in.client == nil {
		return // who listens is told by the shared line
	}
	sl := in.client.slots[u]
	s.start(func() {
		if l, err := sl.get(s.ctx); err == nil {
			caps := l.capabilities()
			for what, has := range map[string]bool{"tools": caps.Tools != nil, "prompts": caps.Prompts != nil, "resources": caps.Resources != nil} {
				if has {
					s.tellChanged(in.ss, what, nil)
				}
			}
		}
	})
}

// passed are the extensions that need no methods of their own.
var passed = map[string]bool{"io.modelcontextprotocol/ui": true}

// union adds the capabilities of one server.
func union(all, c *mcp.ServerCapabilities) {
	if c.Tools != nil {
		if all.Tools == nil {
			all.Tools = &mcp.ToolCapabilities{}
		}
		all.Tools.ListChanged = all.Tools.ListChanged || c.Tools.ListChanged
	}
	if c.Prompts != nil {
		if all.Prompts == nil {
			all.Prompts = &mcp.PromptCapabilities{}
		}
		all.Prompts.ListChanged = all.Prompts.ListChanged || c.Prompts.ListChanged
	}
	if c.Resources != nil {
		if all.Resources == nil {
			all.Resources = &mcp.ResourceCapabilities{}
		}
		all.Resources.ListChanged = all.Resources.ListChanged || c.Resources.ListChanged
		all.Resources.Subscribe = all.Resources.Subscribe || c.Resources.Subscribe
	}
	all.Completions = cmp.Or(all.Completions, c.Completions)
	all.Logging = cmp.Or(all.Logging, c.Logging)
	for id, settings := range c.Extensions {
		if passed[id] && all.Extensions[id] == nil {
			all.Extensions = maps.Clone(all.Extensions)
			if all.Extensions == nil {
				all.Extensions = map[string]any{}
			}
			all.Extensions[id] = settings
		}
	}
}

// unwrapped is the error of a server as it sent it: the SDK puts what it was
// doing around it.
func unwrapped(err error) error {
	var e *jsonrpc.Error
	if errors.As(err, &e) && !ours(e.Code) {
		return &jsonrpc.Error{Code: e.Code, Message: e.Message, Data: e.Data}
	}
	return err
}

// ours reports whether a code is one that the SDK gives to troubles of the
// connection, and no server's.
func ours(code int64) bool { return code == -32003 || code == -32004 || code == -32005 }

// failed is what a client is told of a request that its server did not answer.
func (u *up) failed(method string, err error) error {
	var e *jsonrpc.Error
	if errors.As(err, &e) && !ours(e.Code) {
		return unwrapped(err)
	}
	return &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: fmt.Sprintf("%s by server %s: %v", method, u.Name, err)}
}
