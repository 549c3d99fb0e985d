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

// Audited actions on servers, in addition to those of package account.
const (
	toolsAccepted account.Action = "server.accept_tools"
	serverRestart account.Action = "server.restart"
)

// ListPendingTools returns the changed tool definitions that are not accepted yet,
// keyed by server digest. It checks no permissions: callers know only the digests
// of servers that they are allowed to see.
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

// ListToolChanges returns a server's changed tool definitions that are not
// accepted yet, with the previous definitions. See
// [store.ToolDefinitions.ListChanges].
func (r *Registry) ListToolChanges(ctx context.Context, server string) ([]store.ToolDefinition, error) {
	return r.db.ToolDefinitions.ListChanges(ctx, server)
}

// AcceptTools accepts the tool definitions with the given digests for all users of
// a server, and returns the names of the tools. The principal must be allowed to
// review the server. For a server with a URL, which needs no review, the principal
// may instead be its owner. If the subject has no kind, it names an operator
// server. If any of the definitions has changed or is already accepted,
// AcceptTools accepts none and returns [store.ErrConflict].
func (r *Registry) AcceptTools(ctx context.Context, p account.Principal, subject Subject, digests []string) (tools []string, err error) {
	err = r.db.Tx(ctx, func(tx *store.Tx) error {
		a := actor{Tables: tx.Tables, p: p}
		s, err := r.serverToAccept(ctx, a, subject)
		if err != nil {
			return err
		}
		if tools, err = a.ToolDefinitions.Accept(ctx, s.Digest(), digests, string(p.User)); errors.Is(err, store.ErrNotFound) {
			return fmt.Errorf("accept tools of %s: %w: definitions changed or already accepted", subject, store.ErrConflict)
		}
		if err != nil {
			return err
		}
		return a.recordAllowed(ctx, toolsAccepted, s.In, subject.String(), map[string]any{"digest": s.Digest(), "tools": tools, "definitions": digests})
	})
	return tools, r.recordDenied(ctx, p, toolsAccepted, subject.String(), err)
}

// serverToAccept returns a server if the actor may accept its tools.
func (r *Registry) serverToAccept(ctx context.Context, a actor, subject Subject) (Server, error) {
	if subject.Kind == "" {
		return r.operatorServer(a, subject.Server)
	}
	s, err := a.withReadScope().getServer(ctx, subject)
	if err != nil {
		return Server{}, err
	}
	action, on := account.SkillReview, accountResource(s.In, s.By)
	if s.Review == "" && s.In == store.UserNamespace(string(a.p.User)) {
		action, on = applyAction(subject.Kind), accountResource(s.In, "")
	}
	return s, a.checkAccess(action, on, subject.Kind, subject.Name)
}

// operatorServer returns a server from the operator's configuration. The actor
// must be an administrator.
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

// AuthorizeRestart checks that the principal may restart a server, records the
// restart in the audit log and returns the server's digest. The principal must be
// allowed to change the server's definition. If the subject has no kind, it names
// an operator server.
func (r *Registry) AuthorizeRestart(ctx context.Context, p account.Principal, subject Subject) (digest string, err error) {
	err = r.db.Tx(ctx, func(tx *store.Tx) error {
		a := actor{Tables: tx.Tables, p: p}
		s, err := r.serverToTest(ctx, a, subject)
		if err != nil {
			return err
		}
		digest = s.Digest()
		return a.recordAllowed(ctx, serverRestart, s.In, subject.String(), map[string]any{"digest": digest})
	})
	return digest, r.recordDenied(ctx, p, serverRestart, subject.String(), err)
}
