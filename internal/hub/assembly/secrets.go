package assembly

import (
	"context"
	"slices"

	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/hub/agents"
	"github.com/loadout-dev/loadout/internal/hub/library"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/upstream"
	"github.com/loadout-dev/loadout/policy"
)

// skillValues returns the user values, secrets and platform values granted to the
// skill version with the given digest. It records the owner of the platform values
// for secretValue.
func (b *base) skillValues(ctx context.Context, e *catalog.Entry, d policy.Digest) (upstream.Variables, error) {
	in, thing, err := b.secretOwners(ctx, b.skillID(e.Origin, e.Dir))
	if err != nil {
		return upstream.Variables{}, err
	}
	v, owner, err := b.assembler.o.Agents.Secrets().Variables(ctx, b.principal, d, thing, in, b.platformScope(in))
	if err == nil && owner != "" {
		b.platformMu.Lock()
		defer b.platformMu.Unlock()
		if !slices.Contains(b.platformOwners[d], owner) {
			b.platformOwners[d] = append(b.platformOwners[d], owner)
		}
	}
	return v, err
}

// platformScope returns the sources of platform values for a skill in a namespace.
func (b *base) platformScope(in store.Namespace) agents.PlatformScope {
	scope := b.plan.platform
	scope.Owners = append([]agents.Owner{agents.NamespaceOwner(in)}, scope.Owners...)
	return scope
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
// user can see, or "" if there is none. If platform values were given to a server
// of this version, it returns only secrets of their owner. The server may belong
// to another skill with the same files.
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
		granted, err := b.secretsFor(ctx, id, d)
		if err != nil {
			return "", err
		}
		if value, ok := granted.Secret(name); ok {
			return value, nil
		}
	}
	return "", nil
}

// secretsFor returns the secrets granted to a version of the skill with the given
// ID. They all have the owner of its platform values, if it has any.
func (b *base) secretsFor(ctx context.Context, id string, d policy.Digest) (*agents.SecretValues, error) {
	in, thing, err := b.secretOwners(ctx, id)
	if err != nil {
		return nil, err
	}
	secrets := b.assembler.o.Agents.Secrets()
	only, err := secrets.PlatformOwner(ctx, b.principal, d, b.platformScope(in))
	if err != nil {
		return nil, err
	}
	b.platformMu.Lock()
	used := slices.Clone(b.platformOwners[d])
	b.platformMu.Unlock()
	if only == "" && len(used) > 0 {
		only = used[0]
	}
	if slices.ContainsFunc(used, func(o agents.Owner) bool { return o != only }) {
		return &agents.SecretValues{}, nil // servers have the values of several owners
	}
	return secrets.GrantedValues(ctx, b.principal, d, thing, in, only)
}
