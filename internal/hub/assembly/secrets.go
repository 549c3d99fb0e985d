package assembly

import (
	"context"

	"github.com/loadout-dev/loadout/internal/hub/agents"
	"github.com/loadout-dev/loadout/internal/hub/library"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/upstream"
	"github.com/loadout-dev/loadout/policy"
)

// values returns the values granted to the skill version with the given digest.
// The ID of a bundled skill, which owns no secrets, may be "".
func (b *base) values(ctx context.Context, id string, d policy.Digest) (upstream.Variables, error) {
	in, thing, err := b.secretOwners(ctx, id)
	if err != nil {
		return upstream.Variables{}, err
	}
	scope := b.plan.platform
	scope.Owners = append([]agents.Owner{agents.NamespaceOwner(in)}, scope.Owners...)
	return b.assembler.o.Agents.Secrets().Variables(ctx, b.principal, d, thing, in, scope)
}

// secretOwners returns the namespace of a skill and the owner of the skill's own
// secrets. Both are "" for a bundled skill and for the ID "".
func (b *base) secretOwners(ctx context.Context, id string) (store.Namespace, agents.Owner, error) {
	if id == "" {
		return "", "", nil
	}
	s, err := b.assembler.o.DB.Skills.Get(ctx, id)
	if err != nil || s.Namespace == store.Bundled {
		return "", "", err
	}
	return s.Namespace, agents.SkillOwner(id), nil
}

// secretValue returns the value of a secret granted to a skill version that the
// user can see, or "" if there is none.
func (b *base) secretValue(ctx context.Context, d policy.Digest, name string) (string, error) {
	versions, err := b.assembler.o.DB.Versions.ListByDigest(ctx, string(d))
	if err != nil {
		return "", err
	}
	ids := []string{}
	for _, v := range versions {
		_, err := b.assembler.o.Library.Resolve(ctx, b.principal, library.Ref{ID: v.SkillID, Digest: string(d)})
		switch {
		case err == nil:
			ids = append(ids, v.SkillID)
		case !isVerdict(err):
			return "", err
		}
	}
	if len(versions) == 0 {
		ids = []string{""} // bundled
	}
	for _, id := range ids {
		granted, err := b.values(ctx, id, d)
		if err != nil {
			return "", err
		}
		if value, ok := granted.Secret(name); ok {
			return value, nil
		}
	}
	return "", nil
}
