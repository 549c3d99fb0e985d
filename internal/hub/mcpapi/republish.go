package mcpapi

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout/internal/hub/api"
	"github.com/loadout-dev/loadout/internal/hub/assembly"
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
	slices.SortFunc(r.all, func(a, b *passthrough) int { return strings.Compare(a.publisher.Label, b.publisher.Label) })
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

// usable returns the servers whose skills are republished. It omits a server whose label
// is the first segment of the URI of another skill. Such a server has only its own
// endpoint.
func (r *republisher) usable() []*passthrough {
	c := r.e.setup.Runtime.Catalog()
	return slices.DeleteFunc(slices.Clone(r.all), func(t *passthrough) bool {
		label := t.publisher.Label
		if c.Snapshot().ByName(label) != nil {
			return true
		}
		for _, s := range c.Sources() {
			if s.Origin() == label {
				return true
			}
		}
		return false
	})
}

// find returns the server to which a URI belongs, or nil.
func (r *republisher) find(uri string) *passthrough {
	for _, t := range r.usable() {
		if strings.HasPrefix(uri, t.prefix) {
			return t
		}
	}
	return nil
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
	usable := r.usable()
	at := slices.IndexFunc(usable, func(t *passthrough) bool { return t.publisher.Label == label })
	if at < 0 {
		return nil, invalidParams("unknown cursor")
	}
	t := usable[at]
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
	for _, t := range r.usable() {
		if t.publisher.Label > after {
			out.fields["nextCursor"], err = json.Marshal(publishedCursor + t.publisher.Label + ":")
			break
		}
	}
	return out, err
}

// serverURI returns the URI at the server of a URI of the endpoint. ok is false if there
// is none.
func (t *passthrough) serverURI(uri string) (at string, ok bool) {
	if t.prefix == "" {
		return uri, true
	}
	path, ok := strings.CutPrefix(uri, t.prefix)
	at = serverskill.URIOf(path)
	return at, ok && path != "" && serverskill.PathOf(at) == path
}

// mapURIs replaces the URIs of an entry by those of the endpoint.
func (t *passthrough) mapURIs(entry map[string]json.RawMessage) error {
	if t.prefix == "" {
		return nil
	}
	if err := t.mapURI(entry); err != nil {
		return err
	}
	var resources []map[string]json.RawMessage
	if json.Unmarshal(entry["resources"], &resources) != nil {
		return nil // dynamic
	}
	for _, r := range resources {
		if err := t.mapURI(r); err != nil {
			return err
		}
	}
	var err error
	entry["resources"], err = json.Marshal(resources)
	return err
}

func (t *passthrough) mapURI(fields map[string]json.RawMessage) error {
	var uri string
	err := json.Unmarshal(fields["uri"], &uri)
	if err == nil {
		fields["uri"], err = json.Marshal(t.prefix + serverskill.PathOf(uri))
	}
	return err
}

// checkApproval returns an error if the skills are republished and the user must approve
// this one first. Clients of this endpoint may let models read resources. Those of the
// server's own endpoint ask their users themselves, as the extension requires.
func (t *passthrough) checkApproval(ctx context.Context, e *serverskill.Entry) error {
	if t.prefix == "" {
		return nil
	}
	approvals, err := t.publisher.ReadApprovals(ctx)
	if err != nil {
		return err
	}
	switch state, _ := approvals.State(e); state {
	case assembly.NotApproved:
		return invalidParams("the skill is not approved. The user can review it on the page of the MCP server in the hub, and approve it there, or with POST %s/published-skills/%s/approve", api.Prefix, t.publisher.Label)
	case assembly.Changed:
		return invalidParams("the skill has changed since it was approved. The user can review it on the page of the MCP server in the hub, and approve it there, or with POST %s/published-skills/%s/approve", api.Prefix, t.publisher.Label)
	}
	return nil
}

// verify returns an error if a file of a republished skill is not that of the entry, so
// that only what the user approved is read. Clients of the server's own endpoint verify
// files themselves.
func (t *passthrough) verify(e *serverskill.Entry, uri string, c *mcp.ResourceContents) error {
	if t.prefix == "" || e.Dynamic {
		return nil
	}
	data := c.Blob
	if data == nil {
		data = []byte(c.Text)
	}
	for _, r := range e.Resources {
		if r.URI != uri {
			continue
		}
		if err := r.Verify(data); err != nil {
			t.forget(e) // the next read requests the current entry
			return invalidParams("the skill has changed on its server: %v; list it again", err)
		}
		return nil
	}
	return invalidParams("%s is not a file of the skill", shorten(uri))
}
