package mcpapi

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout/internal/hub/api"
	"github.com/loadout-dev/loadout/internal/hub/assembly"
	"github.com/loadout-dev/loadout/internal/rpcmessage"
	"github.com/loadout-dev/loadout/internal/serverskill"
	"github.com/loadout-dev/loadout/internal/skillfile"
	"github.com/loadout-dev/loadout/internal/skilltext"
	"github.com/loadout-dev/loadout/internal/untrusted"
	"github.com/loadout-dev/loadout/internal/upstream"
	"github.com/loadout-dev/loadout/skill"
)

// readResource passes on a file of a skill. Other resources of the server are not
// served: what a user may read there is a decision about tools.
func (t *passthrough) readResource(ctx context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
	uri, ok := t.serverURI(req.Params.URI)
	if !ok {
		return nil, rpcmessage.InvalidParams("%s is not a file of a skill of this server", shorten(req.Params.URI))
	}
	e, err := t.findFile(ctx, uri)
	if err != nil {
		return nil, err
	}
	if err := t.checkApproval(ctx, e); err != nil { // the remembered entry may be old
		t.forget(e)
		if e, err = t.findFile(ctx, uri); err == nil {
			err = t.checkApproval(ctx, e)
		}
		if err != nil {
			return nil, err
		}
	}
	var c *mcp.ResourceContents
	err = t.publisher.Do(ctx, "read a file of a skill", func(ctx context.Context, conn *upstream.Conn) (err error) {
		c, err = conn.ReadSkillResource(ctx, uri)
		return err
	})
	switch {
	case err != nil:
		return nil, passedError(err)
	case c.URI != uri:
		return nil, fmt.Errorf("read %s: the server answered with another resource", shorten(uri))
	case len(c.Text) > skillfile.PortableBytes || len(c.Blob) > skillfile.PortableBytes:
		return nil, fmt.Errorf("read %s: file too large (limit %d bytes)", shorten(uri), skillfile.PortableBytes)
	case c.Text == "" && c.Blob == nil:
		c.Blob = []byte{} // the SDK would omit an empty text
	}
	if err := t.verify(e, uri, c); err != nil {
		return nil, err
	}
	out := *c
	out.URI = req.Params.URI
	out.Meta = withoutOurs(c.Meta)
	out.Meta[metaServer] = t.publisher.Label
	if warning := skilltext.HiddenWarning("the file", untrusted.Inspect(c.Text)); warning != "" {
		out.Meta[metaWarning] = warning
	}
	return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{&out}, Cacheable: mcp.Cacheable{CacheScope: privateCacheOnly}}, nil
}

// findFile returns the entry of the server that lists a file. Another node may have
// passed on the entry, so unknown entries are requested, from the directory of the
// file upwards.
func (t *passthrough) findFile(ctx context.Context, uri string) (*serverskill.Entry, error) {
	refused := rpcmessage.InvalidParams("%s is not a file of a skill of this server", shorten(uri))
	if len(uri) > maxPassedURI {
		return nil, refused
	}
	roots := parentURIs(uri)
	if e := t.findKnown(roots, uri); e != nil {
		return e, nil
	}
	for _, root := range roots {
		raw, _, err := t.fetchEntry(ctx, root+"/"+skill.FileName)
		if wire, ok := errors.AsType[*jsonrpc.Error](err); ok && wire.Code == jsonrpc.CodeInvalidParams {
			continue
		}
		if err != nil {
			return nil, err
		}
		e, err := serverskill.ParseEntry(raw)
		if err != nil || e.URI != root+"/"+skill.FileName || t.publisher.HiddenReason(e) != "" {
			continue
		}
		t.remember(e)
		if listsFile(e, uri) {
			return e, nil
		}
	}
	return nil, refused
}

func (t *passthrough) findKnown(roots []string, uri string) *serverskill.Entry {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, root := range roots {
		if e := t.known[root+"/"+skill.FileName]; listsFile(e, uri) && t.publisher.HiddenReason(e) == "" {
			return e
		}
	}
	return nil
}

// parentURIs returns the directories of a file that may be the root of its skill,
// nearest first.
func parentURIs(uri string) []string {
	var out []string
	scheme, rest, ok := strings.Cut(uri, "://")
	if _, err := url.PathUnescape(rest); !ok || err != nil || strings.ContainsAny(rest, "?#") {
		return nil
	}
	for len(out) < maxParentSkills {
		i := strings.LastIndexByte(rest, '/')
		if i <= 0 {
			break
		}
		rest = rest[:i]
		out = append(out, scheme+"://"+rest)
	}
	return out
}

// listsFile reports whether a file belongs to an entry, which may be nil. The files of
// a dynamic entry are those below its root.
func listsFile(e *serverskill.Entry, uri string) bool {
	switch {
	case e == nil:
		return false
	case e.Dynamic:
		rest, below := strings.CutPrefix(uri, strings.TrimSuffix(e.URI, skill.FileName))
		unescaped, err := url.PathUnescape(rest)
		return below && err == nil && fs.ValidPath(unescaped)
	}
	return slices.ContainsFunc(e.Resources, func(r serverskill.Resource) bool { return r.URI == uri })
}

// checkApproval returns an error if the skills are republished and the user must approve
// this one first. Clients of this endpoint may let models read resources. Those of the
// server's own endpoint ask their users themselves, as the extension requires.
func (t *passthrough) checkApproval(ctx context.Context, e *serverskill.Entry) error {
	if t.prefix == "" || t.publisher.IsApproved(ctx, e) {
		return nil
	}
	approvals, err := t.publisher.ReadApprovals(ctx)
	if err != nil {
		return err
	}
	switch state, _ := approvals.State(e); state {
	case assembly.NotApproved:
		return rpcmessage.InvalidParams("the skill is not approved. The user can review it on the page of the MCP server in the hub, and approve it there, or with POST %s/published-skills/%s/approve", api.Prefix, t.publisher.Label)
	case assembly.Changed:
		return rpcmessage.InvalidParams("the skill has changed since it was approved. The user can review it on the page of the MCP server in the hub, and approve it there, or with POST %s/published-skills/%s/approve", api.Prefix, t.publisher.Label)
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
			return rpcmessage.InvalidParams("the skill has changed on its server: %v; list it again", err)
		}
		return nil
	}
	return rpcmessage.InvalidParams("%s is not a file of the skill", shorten(uri))
}
