package mcpproxy

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/yosida95/uritemplate/v3"

	"github.com/loadout-dev/loadout/internal/rpcmessage"
	"github.com/loadout-dev/loadout/internal/upstream"
)

// target identifies an item by its server and the server's own name or URI for
// it.
type target struct {
	up   *upstreamServer
	name string
}

// routes maps exposed names to targets. Listing items updates it.
type routes struct {
	mu        sync.Mutex
	tools     map[string]target
	defs      map[target]*mcp.Tool // tool definitions as the servers sent them
	prompts   map[string]target
	resources map[string]target
	exposed   map[target]string // URIs that differ from the server's own
	templates []template
}

type template struct {
	target
	pattern *uritemplate.Template
	listed  string
}

// assignNames assigns unique names to the items of all servers. If a name is
// already in use, assignNames prefixes it with the server's name. Of duplicates
// within a server, it keeps the first. Names with a server's prefix are
// reserved for that server.
func assignNames[T any](ups []*upstreamServer, items func(*upstreamServer) []T, name func(T) string, rename func(T, string) T) ([]T, map[string]target) {
	out, to := []T{}, map[string]target{}
	prefixed := map[string]bool{}
	for _, u := range ups {
		if u.Prefix != "" {
			for _, item := range items(u) {
				prefixed[upstream.ToolName(u.Prefix, name(item))] = true
			}
		}
	}
	for _, u := range ups {
		own := map[string]bool{}
		for _, item := range items(u) {
			n := name(item)
			if own[n] {
				continue
			}
			own[n] = true
			as := n
			if u.Prefix != "" {
				as = upstream.ToolName(u.Prefix, n)
			}
			free := func() bool {
				_, taken := to[as]
				return !taken && (u.Prefix != "" || !prefixed[as])
			}
			if !free() {
				as = upstream.ToolName(u.Name, n)
			}
			if !free() {
				continue
			}
			to[as] = target{u, n}
			if as != n {
				item = rename(item, as)
			}
			out = append(out, item)
		}
	}
	return out, to
}

func (u *upstreamServer) lastLists() lists {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.lists
}

func (r *routes) setTools(ups []*upstreamServer) []*mcp.Tool {
	all := map[*upstreamServer][]*mcp.Tool{}
	defs := map[target]*mcp.Tool{}
	for _, u := range ups {
		for _, t := range u.lastLists().tools {
			if u.Allow == nil || u.Allow(t) {
				all[u] = append(all[u], t)
				if to := (target{u, t.Name}); defs[to] == nil {
					defs[to] = t
				}
			}
		}
	}
	out, to := assignNames(ups, func(u *upstreamServer) []*mcp.Tool { return all[u] },
		func(t *mcp.Tool) string { return t.Name },
		func(t *mcp.Tool, as string) *mcp.Tool { c := *t; c.Name = as; return &c })
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tools, r.defs = to, defs
	return out
}

func (r *routes) setPrompts(ups []*upstreamServer, refused func(target) bool) []*mcp.Prompt {
	out, to := assignNames(ups, func(u *upstreamServer) []*mcp.Prompt { return u.lastLists().prompts },
		func(p *mcp.Prompt) string { return p.Name },
		func(p *mcp.Prompt, as string) *mcp.Prompt { c := *p; c.Name = as; return &c })
	out = slices.DeleteFunc(out, func(p *mcp.Prompt) bool { return refused(to[p.Name]) })
	r.mu.Lock()
	defer r.mu.Unlock()
	r.prompts = to
	return out
}

// prefixedURI returns the exposed URI for a URI that an earlier server also
// uses.
func prefixedURI(u *upstreamServer, uri string) string {
	return "mcp+" + upstream.ToolName(u.Name, "resource") + ":" + uri
}

func (r *routes) setResources(ups []*upstreamServer, refused func(target) bool) []*mcp.Resource {
	out, to, exposed := []*mcp.Resource{}, map[string]target{}, map[target]string{}
	for _, u := range ups {
		own := map[string]bool{}
		for _, res := range u.lastLists().resources {
			if own[res.URI] {
				continue
			}
			own[res.URI] = true
			t := target{u, res.URI}
			if _, taken := to[res.URI]; taken {
				c := *res
				c.URI = prefixedURI(u, res.URI)
				res, exposed[t] = &c, c.URI
			}
			to[res.URI] = t
			if !refused(t) {
				out = append(out, res)
			}
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.resources, r.exposed = to, exposed
	return out
}

func (r *routes) setTemplates(ups []*upstreamServer, refused func(target) bool) []*mcp.ResourceTemplate {
	out, ts, taken := []*mcp.ResourceTemplate{}, []template{}, map[string]bool{}
	for _, u := range ups {
		for _, t := range u.lastLists().templates {
			listed := t.URITemplate
			if taken[listed] {
				c := *t
				c.URITemplate = prefixedURI(u, listed)
				t = &c
			}
			if taken[t.URITemplate] {
				continue
			}
			taken[t.URITemplate] = true
			if !refused(target{u, listed}) {
				out = append(out, t)
			}
			p, err := uritemplate.New(listed)
			if err != nil {
				p = nil // the template is listed and completed, but matches no URI
			}
			ts = append(ts, template{target{u, listed}, p, t.URITemplate})
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.templates = ts
	return out
}

// exposedURI returns the URI by which clients refer to a server's resource.
func (r *routes) exposedURI(u *upstreamServer, uri string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e, ok := r.exposed[target{u, uri}]; ok {
		return e
	}
	return uri
}

// singleUpstream returns the server if there is only one and it has no prefix or
// filter, so that names need no routing. Otherwise, it returns nil.
func (s *Server) singleUpstream() *upstreamServer {
	if len(s.upstreams) == 1 && s.upstreams[0].Prefix == "" && s.upstreams[0].Allow == nil {
		return s.upstreams[0]
	}
	return nil
}

// routeTool finds a tool by its exposed name. If the name is unknown, it lists
// the tools again. It returns an error if the tool is no longer allowed.
func (s *Server) routeTool(ctx context.Context, in *inboundRequest, name string) (target, error) {
	t, err := s.route(name, "tool", func() map[string]target { return s.routes.tools }, func() error {
		_, err := s.listTools(ctx, in, nil)
		return err
	})
	if err != nil || t.up.Allow == nil {
		return t, err
	}
	s.routes.mu.Lock()
	def := s.routes.defs[t]
	s.routes.mu.Unlock()
	if def == nil || !t.up.Allow(def) {
		return target{}, unknownError("tool", name)
	}
	return t, nil
}

func unknownError(kind, name string) error {
	return rpcmessage.InvalidParams("unknown %s %q", kind, name)
}

func (s *Server) routePrompt(ctx context.Context, in *inboundRequest, name string) (target, error) {
	return s.route(name, "prompt", func() map[string]target { return s.routes.prompts }, func() error {
		_, err := s.listPrompts(ctx, in, nil)
		return err
	})
}

func (s *Server) route(name, kind string, in func() map[string]target, list func() error) (target, error) {
	if u := s.singleUpstream(); u != nil {
		return target{u, name}, nil
	}
	find := func() (target, bool) {
		s.routes.mu.Lock()
		defer s.routes.mu.Unlock()
		t, ok := in()[name]
		return t, ok
	}
	if t, ok := find(); ok {
		return t, nil
	}
	if err := list(); err != nil {
		return target{}, err
	}
	if t, ok := find(); ok {
		return t, nil
	}
	return target{}, unknownError(kind, name)
}

// routeURI finds the server of a resource: the server that lists the resource,
// or the first server with a matching template. If there is none, it lists the
// resources and templates again.
func (s *Server) routeURI(ctx context.Context, in *inboundRequest, uri string) (target, error) {
	if u := s.singleUpstream(); u != nil {
		return target{u, uri}, nil
	}
	if t, ok := s.routes.findURI(uri); ok {
		return t, nil
	}
	if _, err := s.listResources(ctx, in, nil); err != nil {
		return target{}, err
	}
	if _, err := s.listTemplates(ctx, in, nil); err != nil {
		return target{}, err
	}
	if t, ok := s.routes.findURI(uri); ok {
		return t, nil
	}
	return target{}, mcp.ResourceNotFoundError(uri)
}

func (r *routes) findURI(uri string) (target, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if t, ok := r.resources[uri]; ok {
		return t, true
	}
	for _, t := range r.templates {
		switch {
		case t.listed == uri: // completion requests contain the template itself
			return t.target, true
		case t.listed != t.name:
			if rest, ok := strings.CutPrefix(uri, strings.TrimSuffix(t.listed, t.name)); ok && t.matches(rest) {
				return target{t.up, rest}, true
			}
		case t.matches(uri):
			return target{t.up, uri}, true
		}
	}
	return target{}, false
}

func (t template) matches(uri string) bool {
	return t.pattern != nil && len(uri) < 8<<10 && t.pattern.Regexp().MatchString(uri)
}

// syncHeaders registers with the SDK the tools that take arguments from HTTP
// headers, because the SDK checks such headers before our handlers run. The
// SDK's own tool list is never served.
func (s *Server) syncHeaders(tools []*mcp.Tool) {
	now := map[string]string{}
	with := map[string]*mcp.Tool{}
	for _, t := range tools {
		js, err := json.Marshal(t.InputSchema)
		var object struct{ Type string }
		if err != nil || !bytes.Contains(js, []byte(`"x-mcp-header"`)) || json.Unmarshal(js, &object) != nil || object.Type != "object" {
			continue
		}
		now[t.Name] = string(js)
		with[t.Name] = &mcp.Tool{Name: t.Name, InputSchema: json.RawMessage(js)}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for name := range s.headers {
		if now[name] == "" {
			s.sdk.RemoveTools(name)
		}
	}
	for name, js := range now {
		if s.headers[name] != js {
			s.sdk.AddTool(with[name], func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "not reached"}
			})
		}
	}
	s.headers = now
}
