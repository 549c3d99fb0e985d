package agents

import (
	"context"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/policy"
)

// GlobalServers returns the MCP servers that a principal can use without an agent:
// the operator's, and for each name the MCPServer in the namespace that takes
// precedence. problems describes damaged servers.
func (r *Registry) GlobalServers(ctx context.Context, p account.Principal) (servers []Server, problems []string, err error) {
	a := r.newActor(p)
	if err := a.requireSignIn(account.KindUse); err != nil {
		return nil, nil, err
	}
	global, problems, err := r.listGlobalServers(ctx, a, store.UserNamespace(string(p.User)))
	if err != nil {
		return nil, nil, err
	}
	servers, more := ResolveServers(ServerLayers{Global: global})
	return servers, append(problems, more...), nil
}

// ReviewState returns the review state of the server command with the given
// digest. Call it before each start, because approval can be revoked.
func (r *Registry) ReviewState(ctx context.Context, d policy.Digest) (store.Review, error) {
	said, err := r.newActor(account.Principal{}).getReview(ctx, d)
	return said.Decision, err
}
