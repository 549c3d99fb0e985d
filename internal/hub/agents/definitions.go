package agents

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/upstream"
)

// What the audit log calls what is done with servers, besides what is decided about.
const (
	toolsAccepted account.Action = "server.accept_tools"
	serverRestart account.Action = "server.restart"
)

// ListPendingTools returns the tools of servers that changed and wait to be accepted, by the digests
// of the servers. Who asks was given the servers, and so may know it.
func (r *Registry) ListPendingTools(ctx context.Context, servers []string) (map[string][]store.ToolDefinition, error) {
	out := map[string][]store.ToolDefinition{}
	for some := range slices.Chunk(servers, store.MaxPage) {
		found, err := r.db.ToolDefinitions.ListPending(ctx, some)
		if err != nil {
			return nil, err
		}
		for _, d := range found {
			out[d.Server] = append(out[d.Server], d)
		}
	}
	return out, nil
}

// ListToolChanges returns how tools of a server are defined now that wait to be accepted, and how
// they were when they were accepted for the last time: see [store.Definitions.ListChanges].
func (r *Registry) ListToolChanges(ctx context.Context, server string) ([]store.ToolDefinition, error) {
	return r.db.ToolDefinitions.ListChanges(ctx, server)
}

// AcceptTools accepts definitions of tools of a server, by their digests, for all who have
// the server, and returns the names of the tools. Who may is who may review the server;
// of one that nobody reviews, as it is reached by a URL, and that is somebody's own, also
// that one. Without a kind it is one of the operator. Where a definition is another one by
// now nothing is accepted, and the error is a [store.ErrConflict].
func (r *Registry) AcceptTools(ctx context.Context, p account.Principal, of Subject, digests []string) (tools []string, err error) {
	err = r.db.Tx(ctx, func(tx *store.Tx) error {
		a := actor{tx.Tables, p}
		s, err := r.serverToAccept(ctx, a, of)
		if err != nil {
			return err
		}
		if tools, err = a.ToolDefinitions.Accept(ctx, s.Digest(), digests, string(p.User)); errors.Is(err, store.ErrNotFound) {
			return fmt.Errorf("tools of %s: %w: these definitions are not there any more, or accepted", of, store.ErrConflict)
		}
		if err != nil {
			return err
		}
		return a.recordAllowed(ctx, toolsAccepted, s.In, of.String(), map[string]any{"digest": s.Digest(), "tools": tools, "definitions": digests})
	})
	return tools, r.recordDenied(ctx, p, toolsAccepted, of.String(), err)
}

// serverToAccept is a server of which somebody may accept tools.
func (r *Registry) serverToAccept(ctx context.Context, a actor, of Subject) (Server, error) {
	if of.Kind == "" {
		return r.operatorServer(a, of.Server)
	}
	s, err := a.withReadScope().getServer(ctx, of)
	if err != nil {
		return Server{}, err
	}
	action, on := account.SkillReview, resourceOf(s.In, s.By)
	if s.Review == "" && s.In == store.UserNamespace(string(a.p.User)) {
		action, on = applyAction(of.Kind), resourceOf(s.In, "")
	}
	return s, a.checkAccess(action, on, of.Kind, of.Name)
}

// operatorServer is a server of the operator, for who may do all with it.
func (r *Registry) operatorServer(a actor, name string) (Server, error) {
	if err := a.checkAccess(account.ServerApply, account.Resource{}, ServerKind, name); err != nil {
		return Server{}, err
	}
	i := slices.IndexFunc(r.opts.Servers, func(c *upstream.Config) bool { return c.Name == name })
	if i < 0 {
		return Server{}, fmt.Errorf("MCP server %q: %w", shorten(name), store.ErrNotFound)
	}
	return Server{Config: r.opts.Servers[i]}, nil
}

// AuthorizeRestart returns the digest of a server of which somebody may end the connections, and
// records that he does. Who may is who may change what defines it; without a kind it is one
// of the operator.
func (r *Registry) AuthorizeRestart(ctx context.Context, p account.Principal, of Subject) (digest string, err error) {
	err = r.db.Tx(ctx, func(tx *store.Tx) error {
		a := actor{tx.Tables, p}
		s, err := r.serverToTest(ctx, a, of)
		if err != nil {
			return err
		}
		digest = s.Digest()
		return a.recordAllowed(ctx, serverRestart, s.In, of.String(), map[string]any{"digest": digest})
	})
	return digest, r.recordDenied(ctx, p, serverRestart, of.String(), err)
}
