package assembly

import (
	"context"
	"errors"

	"github.com/loadout-dev/loadout/internal/hub/agents"
	"github.com/loadout-dev/loadout/internal/hub/library"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/policy"
)

// granted are the values that a skill may have, as it is; id is "" for one that is not
// of the library.
func (b *base) granted(ctx context.Context, id string, d policy.Digest) (*agents.SecretValues, error) {
	var in store.Namespace
	var thing agents.Owner
	if id != "" {
		s, err := b.kits.o.DB.Skills.Get(ctx, id)
		if err != nil {
			return nil, err
		}
		in, thing = s.Namespace, agents.SkillOwner(id)
	}
	return b.kits.o.Agents.Secrets().GrantedValues(ctx, b.principal, d, thing, in)
}

// secret is the value of a secret that was granted to a skill with these bytes that the
// person reaches, "" for none.
func (b *base) secret(ctx context.Context, d policy.Digest, name string) (string, error) {
	versions, err := b.kits.o.DB.Versions.ListByDigest(ctx, string(d))
	if err != nil {
		return "", err
	}
	ids := []string{}
	for _, v := range versions {
		_, err := b.kits.o.Library.Resolve(ctx, b.principal, library.Ref{ID: v.SkillID})
		switch {
		case err == nil:
			ids = append(ids, v.SkillID)
		case !errors.Is(err, library.ErrNotFound) && !isDenied(err):
			return "", err
		}
	}
	if len(versions) == 0 {
		ids = []string{""} // it came with the program
	}
	for _, id := range ids {
		granted, err := b.granted(ctx, id, d)
		if err != nil {
			return "", err
		}
		if value, ok := granted.Secret(name); ok {
			return value, nil
		}
	}
	return "", nil
}
