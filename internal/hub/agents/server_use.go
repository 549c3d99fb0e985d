package agents

import (
	"context"
	"fmt"
	"slices"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/upstream"
)

// ServerForUse returns a server that the principal may use, and its variables. It
// ignores the scopes of the principal's token. If the subject has no kind, it names
// an operator server.
func (r *Registry) ServerForUse(ctx context.Context, p account.Principal, subject Subject) (Server, upstream.Variables, error) {
	p.Scopes = account.AllScopes
	a := r.newActor(p)
	if err := a.requireSignIn(account.KindUse); err != nil {
		return Server{}, upstream.Variables{}, err
	}
	if subject.Kind == "" {
		i := slices.IndexFunc(r.opts.Servers, func(c *upstream.Config) bool { return c.Name == subject.Server })
		if i < 0 {
			return Server{}, upstream.Variables{}, fmt.Errorf("MCP server %q: %w", shorten(subject.Server), store.ErrNotFound)
		}
		return Server{Config: r.opts.Servers[i]}, upstream.Variables{}, nil
	}
	s, err := a.getServer(ctx, subject)
	if err != nil {
		return Server{}, upstream.Variables{}, err
	}
	v, err := r.Secrets().ServerVariables(ctx, p, s, "")
	return s, v, err
}
