package mcpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/agents"
	"github.com/loadout-dev/loadout/internal/hub/assembly"
	"github.com/loadout-dev/loadout/internal/rpcmessage"
	"github.com/loadout-dev/loadout/internal/serverskill"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/untrusted"
	"github.com/loadout-dev/loadout/internal/upstream"
	"github.com/loadout-dev/loadout/mcpserver"
)

// Limits on what a server's skills endpoint passes on, and names in its results.
const (
	maxPassedBytes   = 32 << 20 // of a page of skills/list
	maxPassedSkills  = 10_000   // in a page
	maxKnownMemory   = 8 << 20  // bytes of the entries that an endpoint remembers
	maxPassedCursor  = 16 << 10
	maxPassedURI     = 8 << 10
	maxParentSkills  = 8 // directories in which the skill of a file is searched for
	metaPrefix       = "dev.loadout/"
	metaServer       = metaPrefix + "server"   // label of the server, as the hub assigned it
	metaApproval     = metaPrefix + "approval" // state, and since when
	metaWarning      = metaPrefix + "warning"  // hidden characters in a file
	privateCacheOnly = "private"
)

// passthrough serves the skills of one MCP server to one user. Entries and files are
// those of the server, except for members of _meta whose names begin with
// metaPrefix. It serves no other resources of the server, and no tools.
type passthrough struct {
	h         *Handlers
	e         *endpoint
	publisher *assembly.Publisher
	sdk       *mcp.Server // nil if the skills are republished
	// prefix precedes the paths of skills in URIs, such as skill://LABEL/. If it is
	// "", the URIs are those of the server.
	prefix string

	mu     sync.Mutex                    // guards the fields below
	known  map[string]*serverskill.Entry // by URI of SKILL.md
	memory int                           // of the entries in known, in bytes
}

// newPassthrough opens the endpoint for the skills of the server with the label
// key.at.name. It returns [store.ErrNotFound] if the principal may not use the server.
func (h *Handlers) newPassthrough(ctx context.Context, p account.Principal, key slotKey, made state) (*endpoint, error) {
	k, err := h.Assemblies.Open(ctx, assembly.Request{Principal: p})
	if err != nil {
		return nil, err
	}
	publisher := k.Publisher(key.at.name)
	if publisher == nil {
		return nil, errors.Join(fmt.Errorf("MCP server with skills and the label %.80q: %w", key.at.name, store.ErrNotFound), k.Close())
	}
	e := &endpoint{user: key.user, scopes: key.scopes, at: key.at, current: made, setup: k, gone: make(chan struct{})}
	t := &passthrough{h: h, e: e, publisher: publisher, known: map[string]*serverskill.Entry{}}
	caps := &mcp.ServerCapabilities{Resources: &mcp.ResourceCapabilities{}}
	caps.AddExtension(upstream.SkillsExtension, map[string]any{})
	t.sdk = mcp.NewServer(&mcp.Implementation{Name: "loadout", Title: "Loadout", Version: h.Version}, &mcp.ServerOptions{Capabilities: caps, Logger: h.Log,
		SetCacheable: func(_ context.Context, _ mcp.Request, c *mcp.Cacheable) { c.CacheScope = privateCacheOnly }})
	err = errors.Join(mcp.AddReceivingCustomMethod(t.sdk, "skills/list", t.listSkills), mcp.AddReceivingCustomMethod(t.sdk, "skills/get", t.getSkill))
	if err != nil {
		panic(err) // the SDK reserves the method
	}
	t.sdk.AddReceivingMiddleware(t.serve, h.watchTools(e))
	e.server, e.handler = t, (&mcpserver.HTTPOptions{Stateless: true}).Endpoint(t.sdk, h.Log)
	return e, nil
}

// Close closes the connections of clients. Requests of the modern protocol have
// none.
func (t *passthrough) Close() error {
	var errs []error
	for s := range t.sdk.Sessions() {
		errs = append(errs, s.Close())
	}
	return errors.Join(errs...)
}

// serve is middleware that applies the kill switch, ends requests whose credential
// was revoked, and reads resources.
func (t *passthrough) serve(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		if !slices.Contains([]string{"skills/list", "skills/get", "resources/read"}, method) {
			return next(ctx, method, req)
		}
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(t.h.endpoints.cut, cancel)()
		ctx, forget := t.h.Credentials.EndWith(ctx, account.FromContext(ctx))
		defer forget()
		ctx, stop, err := t.h.Agents.WithKillSwitch(ctx, t.e.settingNamespaces()...)
		if off, isOff := errors.AsType[*agents.DisabledError](err); isOff {
			return nil, rpcmessage.InvalidParams("%v; ask an administrator", off)
		}
		if err != nil {
			return nil, err
		}
		defer stop()
		if read, ok := req.(*mcp.ReadResourceRequest); ok {
			return t.readResource(ctx, read)
		}
		return next(ctx, method, req)
	}
}

// skillParams are the parameters of skills/list and skills/get.
type skillParams struct {
	mcp.ParamsBase
	Cursor string `json:"cursor,omitempty"`
	URI    string `json:"uri,omitempty"`
}

// passedResult is a result with the fields of another server.
type passedResult struct {
	mcp.ResultBase
	fields map[string]json.RawMessage
}

// MarshalJSON implements [json.Marshaler].
func (r *passedResult) MarshalJSON() ([]byte, error) {
	if len(r.Meta) == 0 {
		return json.Marshal(r.fields)
	}
	fields := maps.Clone(r.fields)
	meta, err := json.Marshal(r.Meta)
	if err != nil {
		return nil, err
	}
	fields["_meta"] = meta
	return json.Marshal(fields)
}

// newResult returns a result with one field. In the modern protocol, it may be cached
// only for this user, because the hub decides who may use the server.
func newResult(ss *mcp.ServerSession, meta map[string]any, ttl json.RawMessage) *passedResult {
	r := &passedResult{fields: map[string]json.RawMessage{"resultType": json.RawMessage(`"complete"`)}}
	version, _ := meta[mcp.MetaKeyProtocolVersion].(string)
	if version == "" && ss != nil && ss.InitializeParams() != nil {
		version = ss.InitializeParams().ProtocolVersion
	}
	if version < rpcmessage.ModernVersion {
		return r
	}
	r.fields["cacheScope"], r.fields["ttlMs"] = json.RawMessage(`"`+privateCacheOnly+`"`), json.RawMessage("0")
	var millis float64
	if json.Unmarshal(ttl, &millis) == nil && millis > 0 {
		r.fields["ttlMs"] = ttl
	}
	return r
}

func (t *passthrough) listSkills(ctx context.Context, ss *mcp.ServerSession, p *skillParams) (*passedResult, error) {
	if p == nil {
		p = &skillParams{}
	}
	if len(p.Cursor) > maxPassedCursor {
		return nil, rpcmessage.InvalidParams("cursor too long (%d bytes, limit %d)", len(p.Cursor), maxPassedCursor)
	}
	var raw json.RawMessage
	err := t.publisher.Do(ctx, "list skills", func(ctx context.Context, c *upstream.Conn) (err error) {
		raw, err = c.ListSkills(ctx, p.Cursor)
		return err
	})
	if err != nil {
		return nil, passedError(err)
	}
	if len(raw) > maxPassedBytes {
		return nil, fmt.Errorf("list skills of %s: page too large (%d bytes, limit %d)", t.publisher.Label, len(raw), maxPassedBytes)
	}
	var page map[string]json.RawMessage
	var entries []json.RawMessage
	err = json.Unmarshal(raw, &page)
	if err == nil {
		err = json.Unmarshal(page["skills"], &entries)
	}
	if err != nil {
		return nil, fmt.Errorf("list skills of %s: invalid result of the server", t.publisher.Label)
	}
	if len(entries) > maxPassedSkills {
		return nil, fmt.Errorf("list skills of %s: too many skills in a page (%d, limit %d)", t.publisher.Label, len(entries), maxPassedSkills)
	}
	approvals, err := t.publisher.ReadApprovals(ctx)
	if err != nil {
		return nil, err
	}
	passed := make([]json.RawMessage, 0, len(entries))
	for _, raw := range entries {
		out, _, err := t.pass(raw, approvals)
		if err != nil { // other skills are not affected
			t.h.Log.Debug("a skill of a server is not passed on", "server", t.publisher.Label, "reason", err)
			continue
		}
		passed = append(passed, out)
	}
	res := newResult(ss, p.GetMeta(), page["ttlMs"])
	if res.fields["skills"], err = json.Marshal(passed); err != nil {
		return nil, err
	}
	if next := page["nextCursor"]; len(next) > 0 && string(next) != `""` && string(next) != "null" {
		res.fields["nextCursor"] = next
	}
	return res, nil
}

// pass returns an entry with the hub's members of _meta. It returns an error if the
// entry is invalid or the settings hide the skill.
func (t *passthrough) pass(raw json.RawMessage, approvals *assembly.SkillApprovals) (json.RawMessage, *serverskill.Entry, error) {
	e, err := serverskill.ParseEntry(raw)
	if err != nil {
		return nil, nil, err
	}
	if why := t.publisher.HiddenReason(e); why != "" {
		return nil, nil, errors.New(why)
	}
	var fields, meta map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil {
		return nil, nil, err
	}
	if given := fields["_meta"]; len(given) > 0 && json.Unmarshal(given, &meta) != nil {
		return nil, nil, errors.New("its _meta is not an object")
	}
	meta = withoutOurs(meta)
	state, from := approvals.State(e)
	about := map[string]any{"state": state}
	if from != nil {
		about["at"] = from.Created
	}
	if meta[metaApproval], err = json.Marshal(about); err != nil {
		return nil, nil, err
	}
	if meta[metaServer], err = json.Marshal(t.publisher.Label); err != nil {
		return nil, nil, err
	}
	if fields["_meta"], err = json.Marshal(meta); err != nil {
		return nil, nil, err
	}
	if err := t.mapURIs(fields); err != nil {
		return nil, nil, err
	}
	t.remember(e)
	out, err := json.Marshal(fields)
	return out, e, err
}

// withoutOurs returns the members of a _meta without those that only a hub sets. A
// server could otherwise claim that its skill was approved.
func withoutOurs[V any](meta map[string]V) map[string]V {
	out := map[string]V{}
	for name, v := range meta {
		if !strings.HasPrefix(strings.ToLower(name), metaPrefix) {
			out[name] = v
		}
	}
	return out
}

func (t *passthrough) remember(e *serverskill.Entry) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.forgetURI(e.URI)
	size := e.Memory()
	if t.memory+size > maxKnownMemory {
		clear(t.known) // entries are requested again when their files are read
		t.memory = 0
	}
	t.known[e.URI] = e
	t.memory += size
}

func (t *passthrough) forget(e *serverskill.Entry) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.forgetURI(e.URI)
}

// forgetURI forgets the entry with the given URI, if it is known. t.mu must be held.
func (t *passthrough) forgetURI(uri string) {
	if e := t.known[uri]; e != nil {
		delete(t.known, uri)
		t.memory -= e.Memory()
	}
}

func (t *passthrough) getSkill(ctx context.Context, ss *mcp.ServerSession, p *skillParams) (*passedResult, error) {
	if p == nil || p.URI == "" {
		return nil, rpcmessage.InvalidParams("skills/get needs the uri of a skill's SKILL.md")
	}
	uri, ok := t.serverURI(p.URI)
	if !ok {
		return nil, rpcmessage.InvalidParams("no skill is served at %s", shorten(p.URI))
	}
	raw, ttl, err := t.fetchEntry(ctx, uri)
	if err != nil {
		return nil, err
	}
	approvals, err := t.publisher.ReadApprovals(ctx)
	if err != nil {
		return nil, err
	}
	out, e, err := t.pass(raw, approvals)
	if err != nil || e.URI != uri {
		return nil, rpcmessage.InvalidParams("no skill is served at %s", shorten(p.URI))
	}
	res := newResult(ss, p.GetMeta(), ttl)
	res.fields["skill"] = out
	return res, nil
}

// fetchEntry returns the entry of the skill with the given URI, and its time to
// live.
func (t *passthrough) fetchEntry(ctx context.Context, uri string) (entry, ttl json.RawMessage, err error) {
	if _, err := serverskill.ParseURI(uri); err != nil {
		return nil, nil, rpcmessage.InvalidParams("no skill is served at %s", shorten(uri))
	}
	var raw json.RawMessage
	err = t.publisher.Do(ctx, "get skill", func(ctx context.Context, c *upstream.Conn) (err error) {
		raw, err = c.GetSkill(ctx, uri)
		return err
	})
	if err != nil {
		return nil, nil, passedError(err)
	}
	var res map[string]json.RawMessage
	if json.Unmarshal(raw, &res) != nil || len(res["skill"]) == 0 {
		return nil, nil, fmt.Errorf("get skill of %s: invalid result of the server", t.publisher.Label)
	}
	return res["skill"], res["ttlMs"], nil
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

// passedError converts an error of the server for a client. Its text has no secrets.
func passedError(err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return rpcmessage.InvalidParams("%v", err)
	case errors.Is(err, serverskill.ErrNotServed):
		return &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: err.Error()}
	}
	return &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: err.Error()}
}

// shorten shortens a URI of a client for an error, and makes it visible.
func shorten(uri string) string { return truncate(untrusted.New(uri).Visible()) }
