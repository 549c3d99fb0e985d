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

// InheritedServers returns the names of the servers that documents in a namespace can
// use and that another namespace or the operator defines. A new MCPServer with one of
// these names in the namespace would take precedence.
func (r *Registry) InheritedServers(ctx context.Context, p account.Principal, in store.Namespace) (map[string]bool, error) {
	a := r.newActor(p)
	near, err := a.nearestKinds(ctx, ServerKind, a.lookupNamespaces(in), MaxGlobal+1)
	if err != nil {
		return nil, err
	}
	out := map[string]bool{}
	for name, k := range near {
		if k.Namespace != in {
			out[name] = true
		}
	}
	for _, c := range r.opts.Servers {
		if _, taken := near[c.Name]; !taken {
			out[c.Name] = true
		}
	}
	return out, nil
}

// ReviewState returns the review state of the server command with the given
// digest. Call it before each start, because approval can be revoked.
func (r *Registry) ReviewState(ctx context.Context, d policy.Digest) (store.Review, error) {
	said, err := r.newActor(account.Principal{}).getReview(ctx, d)
	return said.Decision, err
}
