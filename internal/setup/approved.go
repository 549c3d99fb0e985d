package setup

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/internal/config"
	"github.com/loadout-dev/loadout/policy"
)

// configuredGrants is a grant store that also finds the approvals stated in the
// configuration. They end with the process, and cannot be listed or revoked:
// whoever writes the configuration removes them there.
type configuredGrants struct {
	policy.Store
	stated policy.Store // in memory
}

// Find implements [policy.Store]. A stored grant has precedence.
func (g *configuredGrants) Find(ctx context.Context, p policy.Principal, subject policy.Digest, session string) (*policy.Grant, error) {
	found, err := g.Store.Find(ctx, p, subject, session)
	if !errors.Is(err, policy.ErrNotGranted) {
		return found, err
	}
	if stated, e := g.stated.Find(ctx, p, subject, session); e == nil {
		return stated, nil
	}
	return found, err
}

// addConfigured adds the approvals stated with policy.approved. It prints a note
// about each skill that has another digest, or a dependency that is not stated.
func (s *Setup) addConfigured(ctx context.Context, c *config.Config, rt *loadout.Runtime, grants *configuredGrants) {
	var digests []string
	for _, entry := range c.Policy.Approved {
		_, digest, _ := strings.Cut(entry, "=")
		digests = append(digests, digest)
	}
	for i, entry := range c.Policy.Approved {
		name, _, _ := strings.Cut(entry, "=")
		r, err := rt.ReadApprovalRequest(ctx, name)
		if err != nil {
			s.Note("policy.approved: %s is not approved: %v", name, err)
			continue
		}
		if string(r.Digest) != digests[i] {
			s.Note("policy.approved: %s is not approved: stated %s, current %s", name, digests[i], r.Digest)
			continue
		}
		if n := slices.IndexFunc(r.Needs, func(n policy.Need) bool { return !slices.Contains(digests, string(n.Digest)) }); n >= 0 {
			s.Note("policy.approved: %s is not approved: needed %s (%s) is not stated", name, r.Needs[n].Name, r.Needs[n].Digest)
			continue
		}
		_, err = grants.stated.Put(ctx, policy.Grant{Principal: policy.LocalUser(), By: policy.LocalUser(), Subject: r.Digest, Needs: r.Needs, Name: r.Entry.Name,
			Origin: r.Entry.Origin, Permissions: r.Permissions(), Scope: policy.Always, Presence: "stated in policy.approved"})
		if err != nil {
			s.Note("policy.approved: %s is not approved: %v", name, err)
		}
	}
}
