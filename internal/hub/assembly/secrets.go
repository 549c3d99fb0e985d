package assembly

import (
	"context"

	"github.com/loadout-dev/loadout/internal/hub/agents"
	"github.com/loadout-dev/loadout/internal/hub/library"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/policy"
)

// grantedValues returns the secrets granted to the skill version with the given
// digest. The ID of a bundled skill, which owns no secrets, may be "".
func (b *base) grantedValues(ctx context.Context, id string, d policy.Digest) (*agents.SecretValues, error) {
	var in store.Namespace
	var thing agents.Owner
	if id != "" {
		s, err := b.assembler.o.DB.Skills.Get(ctx, id)
		if err != nil {
			return nil, err
		}
		if s.Namespace != store.Bundled {
			in, thing = s.Namespace, agents.SkillOwner(id)
		}
	}
	return b.assembler.o.Agents.Secrets().GrantedValues(ctx, b.principal, d, thing, in)
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
		granted, err := b.grantedValues(ctx, id, d)
		if err != nil {
			return "", err
		}
		if value, ok := granted.Secret(name); ok {
			return value, nil
		}
	}
	return "", nil
}
