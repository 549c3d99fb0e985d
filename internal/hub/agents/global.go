package agents

import (
	"context"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/policy"
)

// GlobalServers returns the MCP servers that a principal has without an agent: those of the
// operator, and the nearest MCPServers of each name. Problems are what is wrong with
// others.
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

// ReviewState is what was said of the command of a server, by its digest: who starts one
// asks again, as a review may have been taken back.
func (r *Registry) ReviewState(ctx context.Context, d policy.Digest) (store.Review, error) {
	said, err := r.newActor(account.Principal{}).getReview(ctx, d)
	return said.Decision, err
}
