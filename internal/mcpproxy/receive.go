//lint:file-ignore SA1019 legacy clients and servers still use deprecated features

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

	"github.com/loadout-dev/loadout/internal/rpcmessage"
	"github.com/loadout-dev/loadout/internal/toolresult"
)

// receive is receiving middleware that handles requests from clients.
func (s *Server) receive(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		ss, ok := req.GetSession().(*mcp.ServerSession)
		if !ok {
			return next(ctx, method, req)
		}
		out := upstreamContext{ctx}
		switch r := req.(type) {
		case *mcp.ListToolsRequest:
			return asResult(s.listTools(out, s.newInbound(ctx, ss, r), r.Params))
		case *mcp.ListPromptsRequest:
			return asResult(s.listPrompts(out, s.newInbound(ctx, ss, r), r.Params))
		case *mcp.ListResourcesRequest:
			return asResult(s.listResources(out, s.newInbound(ctx, ss, r), r.Params))
		case *mcp.ListResourceTemplatesRequest:
			return asResult(s.listTemplates(out, s.newInbound(ctx, ss, r), r.Params))
		case *mcp.CallToolRequest:
			res, err := s.callTool(out, s.newInbound(ctx, ss, r), r)
			if r := toolresult.Of(res); err == nil && r != nil && !r.NeedsInput() {
				return toolresult.New(r), nil
			}
			return res, err
		case *mcp.GetPromptRequest:
			return s.getPrompt(out, s.newInbound(ctx, ss, r), r)
		case *mcp.ReadResourceRequest:
			return s.readResource(out, s.newInbound(ctx, ss, r), r)
		case *mcp.CompleteRequest:
			return s.completeArgument(out, s.newInbound(ctx, ss, r), r, func() (mcp.Result, error) { return next(ctx, method, req) })
		case *mcp.SubscriptionsListenRequest:
			return s.serveSubscription(ctx, ss, func(ctx context.Context) (mcp.Result, error) { return next(ctx, method, req) })
		}
		if p, ok := req.GetParams().(*mcp.SetLoggingLevelParams); ok {
			s.setLogLevel(out, ss, p.Level)
		}
		res, err := next(ctx, method, req)
		switch r := res.(type) {
		case *mcp.InitializeResult:
			in := &inboundRequest{ctx: ctx, ss: ss, client: s.clientFor(ss)}
			r.Capabilities, r.Instructions = s.mergeServers(out, in)
		case *mcp.DiscoverResult:
			r.Capabilities, r.Instructions = s.mergeServers(out, &inboundRequest{ctx: ctx, ss: ss, modern: true})
		}
		return res, err
	}
}

// upstreamContext is the context of a client's request without its values. The
// SDK stores the protocol version and the request ID in these values, and would
// send them to the upstream server.
type upstreamContext struct{ context.Context }

func (upstreamContext) Value(any) any { return nil }

// asResult converts a typed result to [mcp.Result]. If err is not nil, it
// returns a nil interface.
func asResult[R mcp.Result](r R, err error) (mcp.Result, error) {
	if err != nil {
		return nil, err
	}
	return r, nil
}

// clientInfo is implemented by all requests from clients.
type clientInfo interface {
	ProtocolVersion() string
	ClientCapabilities() *mcp.ClientCapabilities
}

func (s *Server) newInbound(ctx context.Context, ss *mcp.ServerSession, req clientInfo) *inboundRequest {
	in := &inboundRequest{ctx: ctx, ss: ss, meta: requestMeta(req)}
	// Requests of both eras may arrive on the same connection.
	if v, _ := in.meta[mcp.MetaKeyProtocolVersion].(string); v >= rpcmessage.ModernVersion {
		in.modern = true
		in.caps = forwardedCapabilities(req.ClientCapabilities())
		return in
	}
	in.client = s.clientFor(ss)
	in.caps = in.client.caps
	return in
}

func requestMeta(req any) map[string]any {
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

// mergeServers returns the combined capabilities and instructions of the
// servers. A server that does not connect in time is assumed to have tools,
// prompts and resources; its lists are empty until it connects.
func (s *Server) mergeServers(ctx context.Context, in *inboundRequest) (*mcp.ServerCapabilities, string) {
	ctx, cancel := context.WithTimeoutCause(ctx, s.opts.ListTimeout, fmt.Errorf("no connection within %v", s.opts.ListTimeout))
	defer cancel()
	lines := make([]*upstreamConn, len(s.upstreams))
	var wg sync.WaitGroup
	for i, u := range s.upstreams {
		wg.Go(func() {
			l, err := in.conn(ctx, u)
			if err != nil {
				s.reportError(u, err)
			}
			lines[i] = l
		})
	}
	wg.Wait()
	caps := &mcp.ServerCapabilities{}
	var texts []string
	for i, l := range lines {
		if l == nil {
			addCapabilities(caps, &mcp.ServerCapabilities{
				Tools:     &mcp.ToolCapabilities{ListChanged: true},
				Prompts:   &mcp.PromptCapabilities{ListChanged: true},
				Resources: &mcp.ResourceCapabilities{ListChanged: true, Subscribe: true},
			})
			s.notifyWhenConnected(in, s.upstreams[i])
			continue
		}
		addCapabilities(caps, l.capabilities())
		if r := l.conn.Session.InitializeResult(); r != nil && r.Instructions != "" {
			texts = append(texts, r.Instructions)
		}
	}
	if s.opts.Instructions != "" {
		return caps, s.opts.Instructions
	}
	return caps, strings.Join(texts, "\n\n")
}

// notifyWhenConnected waits in the background for a slow server to connect, and
// then notifies a legacy client that the lists have changed.
func (s *Server) notifyWhenConnected(in *inboundRequest, u *upstreamServer) {
	if in.client == nil {
		return // the shared connection notifies subscribers
	}
	sl := in.client.slots[u]
	s.startGoroutine(func() {
		if l, err := sl.get(s.ctx); err == nil {
			caps := l.capabilities()
			for what, has := range map[string]bool{"tools": caps.Tools != nil, "prompts": caps.Prompts != nil, "resources": caps.Resources != nil} {
				if has {
					s.notifyListChanged(in.ss, what, nil)
				}
			}
		}
	})
}

// forwardedExtensions contains the extensions to advertise to clients. They
// define no methods, so they need no support in the proxy.
var forwardedExtensions = map[string]bool{"io.modelcontextprotocol/ui": true}

func addCapabilities(merged, c *mcp.ServerCapabilities) {
	if c.Tools != nil {
		if merged.Tools == nil {
			merged.Tools = &mcp.ToolCapabilities{}
		}
		merged.Tools.ListChanged = merged.Tools.ListChanged || c.Tools.ListChanged
	}
	if c.Prompts != nil {
		if merged.Prompts == nil {
			merged.Prompts = &mcp.PromptCapabilities{}
		}
		merged.Prompts.ListChanged = merged.Prompts.ListChanged || c.Prompts.ListChanged
	}
	if c.Resources != nil {
		if merged.Resources == nil {
			merged.Resources = &mcp.ResourceCapabilities{}
		}
		merged.Resources.ListChanged = merged.Resources.ListChanged || c.Resources.ListChanged
		merged.Resources.Subscribe = merged.Resources.Subscribe || c.Resources.Subscribe
	}
	merged.Completions = cmp.Or(merged.Completions, c.Completions)
	merged.Logging = cmp.Or(merged.Logging, c.Logging)
	for id, settings := range c.Extensions {
		if forwardedExtensions[id] && merged.Extensions[id] == nil {
			merged.Extensions = maps.Clone(merged.Extensions)
			if merged.Extensions == nil {
				merged.Extensions = map[string]any{}
			}
			merged.Extensions[id] = settings
		}
	}
}

// unwrapError returns a server's error without the text that the SDK added. It
// returns other errors unchanged.
func unwrapError(err error) error {
	var e *jsonrpc.Error
	if errors.As(err, &e) && !isSDKCode(e.Code) {
		return &jsonrpc.Error{Code: e.Code, Message: e.Message, Data: e.Data}
	}
	return err
}

// isSDKCode reports whether code is an error code that the SDK uses for
// connection errors.
func isSDKCode(code int64) bool { return code == -32003 || code == -32004 || code == -32005 }

// requestError converts the error of a failed request to a protocol error for
// the client.
func (u *upstreamServer) requestError(method string, err error) error {
	var e *jsonrpc.Error
	if errors.As(err, &e) && !isSDKCode(e.Code) {
		return unwrapError(err)
	}
	return &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: fmt.Sprintf("%s on server %s: %v", method, u.Name, err)}
}
