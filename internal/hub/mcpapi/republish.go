package mcpapi

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/rpcmessage"
	"github.com/loadout-dev/loadout/internal/serverskill"
)

// The endpoint of everything that a user can access republishes the skills of MCP
// servers under skill://LABEL/PATH. Only the URIs and the hub's members of _meta differ
// from what the server publishes. A copy of such a skill in the library is another
// skill, with a URI and an approval of its own.

// publishedCursor is the prefix of cursors for pages of skills of MCP servers. The label of
// the server follows, then a colon and the cursor of the server.
const publishedCursor = "published:"

// republisher adds the skills of MCP servers to those of an endpoint.
type republisher struct {
	h   *Handlers
	e   *endpoint
	all []*passthrough // sorted by label
}

// republish returns the middleware of a republisher.
func (h *Handlers) republish(e *endpoint) mcp.Middleware {
	r := &republisher{h: h, e: e}
	for _, p := range e.setup.Publishers() {
		r.all = append(r.all, &passthrough{h: h, e: e, publisher: p, prefix: "skill://" + p.Label + "/", known: map[string]*serverskill.Entry{}})
	}
	return func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			switch method {
			case "skills/list":
				return r.list(ctx, method, req, next)
			case "skills/get", "resources/read":
				if t := r.find(paramsOf(req).URI); t != nil {
					return t.serve(t.get)(ctx, method, req)
				}
			}
			return next(ctx, method, req)
		}
	}
}

// paramsOf returns the parameters of a request, whose type may belong to another package.
func paramsOf(req mcp.Request) *skillParams {
	if read, ok := req.GetParams().(*mcp.ReadResourceParams); ok {
		return &skillParams{URI: read.URI}
	}
	p := &skillParams{}
	if given := req.GetParams(); given != nil {
		if data, err := json.Marshal(given); err == nil {
			_ = json.Unmarshal(data, p) // other parameters have no such members
		}
	}
	return p
}

// get handles skills/get.
func (t *passthrough) get(ctx context.Context, _ string, req mcp.Request) (mcp.Result, error) {
	ss, _ := req.GetSession().(*mcp.ServerSession)
	return t.getSkill(ctx, ss, paramsOf(req))
}

// isUsable reports whether the skills of a server are republished. They are not if the
// label of the server is the first segment of the URI of another skill. Such a server has
// only its own endpoint.
func (r *republisher) isUsable(t *passthrough) bool {
	label, c := t.publisher.Label, r.e.setup.Runtime.Catalog()
	return c.Snapshot().ByName(label) == nil &&
		!slices.ContainsFunc(c.Sources(), func(s catalog.Source) bool { return s.Origin() == label })
}

// find returns the server to which a URI belongs, or nil.
func (r *republisher) find(uri string) *passthrough {
	i := slices.IndexFunc(r.all, func(t *passthrough) bool { return strings.HasPrefix(uri, t.prefix) })
	if i < 0 || !r.isUsable(r.all[i]) {
		return nil
	}
	return r.all[i]
}

// list returns a page of skills/list: the pages of the endpoint's own skills come first,
// then those of each server. A server that fails is omitted, because a list may be
// partial.
func (r *republisher) list(ctx context.Context, method string, req mcp.Request, next mcp.MethodHandler) (mcp.Result, error) {
	p := paramsOf(req)
	rest, ours := strings.CutPrefix(p.Cursor, publishedCursor)
	if !ours {
		res, err := next(ctx, method, req)
		if err != nil {
			return nil, err
		}
		return r.withNext(res, "")
	}
	label, cursor, _ := strings.Cut(rest, ":")
	at := slices.IndexFunc(r.all, func(t *passthrough) bool { return t.publisher.Label == label && r.isUsable(t) })
	if at < 0 {
		return nil, rpcmessage.InvalidParams("unknown cursor")
	}
	t := r.all[at]
	res, err := t.serve(func(ctx context.Context, _ string, req mcp.Request) (mcp.Result, error) {
		ss, _ := req.GetSession().(*mcp.ServerSession)
		return t.listSkills(ctx, ss, &skillParams{ParamsBase: p.ParamsBase, Cursor: cursor})
	})(ctx, method, req)
	if err != nil {
		if ctx.Err() != nil {
			return nil, err
		}
		r.h.Log.Warn("couldn't republish the skills of a server", "server", label, "error", err)
		ss, _ := req.GetSession().(*mcp.ServerSession)
		empty := newResult(ss, p.GetMeta(), nil)
		empty.fields["skills"] = json.RawMessage("[]")
		res = empty
	}
	if page, ok := res.(*passedResult); ok && len(page.fields["nextCursor"]) > 0 {
		var next string
		if json.Unmarshal(page.fields["nextCursor"], &next) == nil {
			page.fields["nextCursor"], err = json.Marshal(publishedCursor + label + ":" + next)
			return page, err
		}
	}
	return r.withNext(res, label)
}

// withNext adds a cursor to a last page. The cursor is that of the first page of the
// server whose label follows after.
func (r *republisher) withNext(res mcp.Result, after string) (mcp.Result, error) {
	data, err := json.Marshal(res)
	out := &passedResult{}
	if err == nil {
		err = json.Unmarshal(data, &out.fields)
	}
	if err != nil {
		return nil, err
	}
	if more := out.fields["nextCursor"]; len(more) > 0 && string(more) != `""` {
		return out, nil // of the endpoint's own skills
	}
	delete(out.fields, "nextCursor")
	for _, t := range r.all {
		if t.publisher.Label > after && r.isUsable(t) {
			out.fields["nextCursor"], err = json.Marshal(publishedCursor + t.publisher.Label + ":")
			break
		}
	}
	return out, err
}
