package setup

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/internal/config"
	"github.com/loadout-dev/loadout/internal/decision"
	"github.com/loadout-dev/loadout/internal/execution"
	"github.com/loadout-dev/loadout/policy"
)

// currentGrants forwards each call to the grant store that is currently in
// effect, because the administrator can make a machine managed while servers
// run.
type currentGrants struct{ setup *Setup }

var _ policy.Store = currentGrants{}

func (g currentGrants) Find(ctx context.Context, p policy.Principal, subject policy.Digest, session string) (*policy.Grant, error) {
	return g.setup.GrantStore().Find(ctx, p, subject, session)
}

func (g currentGrants) List(ctx context.Context) ([]policy.Grant, []policy.Problem, error) {
	return g.setup.GrantStore().List(ctx)
}

func (g currentGrants) Put(ctx context.Context, grant policy.Grant) (policy.Grant, error) {
	return g.setup.GrantStore().Put(ctx, grant)
}

func (g currentGrants) Revoke(ctx context.Context, what string) ([]policy.Grant, error) {
	return g.setup.GrantStore().Revoke(ctx, what)
}

// configuredGrants is a grant store that also finds the approvals in the
// configuration. They cannot be revoked, but only removed from the
// configuration.
type configuredGrants struct {
	currentGrants

	mu       sync.Mutex
	rt       *loadout.Runtime // nil while it opens
	stamps   map[string]fileState
	approved policy.Store // approvals in the configuration files with these stamps
}

// Find implements [policy.Store]. A stored grant takes precedence.
func (g *configuredGrants) Find(ctx context.Context, p policy.Principal, subject policy.Digest, session string) (*policy.Grant, error) {
	found, err := g.currentGrants.Find(ctx, p, subject, session)
	if !errors.Is(err, policy.ErrNotGranted) {
		return found, err
	}
	if stated, e := g.current(ctx).Find(ctx, p, subject, session); e == nil {
		return stated, nil
	}
	return found, err
}

// open reads the approvals in c, the configuration with which rt was opened. It must
// be called before [configuredGrants.current].
func (g *configuredGrants) open(ctx context.Context, rt *loadout.Runtime, c *config.Config) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.rt, g.approved = rt, g.setup.readApproved(ctx, c, rt)
}

// current returns the approvals in the configuration. It reads the
// configuration again if a file has changed, so that removing an approval stops
// the code that it permits.
func (g *configuredGrants) current(ctx context.Context) policy.Store {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.setup.statConfigFiles()
	if g.rt == nil || maps.Equal(now, g.stamps) {
		return g.approved
	}
	g.stamps, g.approved = now, policy.NewMemoryStore()
	quiet := *g.setup
	quiet.Quiet = true
	if c, err := quiet.LoadConfig(nil); err == nil { // otherwise nothing is approved
		g.approved = quiet.readApproved(ctx, c, g.rt)
	}
	return g.approved
}

// readApproved returns the approvals in policy.approved. It prints a note about
// each skill that has a different digest, or that needs a skill, a package or a
// platform value not listed in policy.approved.
func (s *Setup) readApproved(ctx context.Context, c *config.Config, rt *loadout.Runtime) policy.Store {
	stated := policy.NewMemoryStore()
	var digests []string
	for _, entry := range c.Policy.Approved {
		_, digest, _ := strings.Cut(entry, "=")
		digests = append(digests, digest)
	}
	presence := "stated in policy.approved"
	if c.Managed() {
		presence = "stated by the administrator"
	}
	for i, entry := range c.Policy.Approved {
		name, _, _ := strings.Cut(entry, "=")
		if n := (policy.Need{Name: name}); decision.IsForPlatformValue(n) || execution.IsPackage(n) {
			continue // an approved skill needs it
		}
		r, err := rt.ReadApprovalRequest(ctx, name)
		if err != nil {
			s.Note("policy.approved: %s is not approved: %v", name, err)
			continue
		}
		if now := r.Manifest.Digest(); now != digests[i] {
			s.Note("policy.approved: %s is not approved: digest mismatch: configured %s, current %s", name, digests[i], now)
			continue
		}
		if n := slices.IndexFunc(r.Needs, func(n policy.Need) bool { return !slices.Contains(digests, string(n.Digest)) }); n >= 0 {
			s.Note("policy.approved: %s is not approved: missing entry for %s (%s), which it needs", name, r.Needs[n].Name, r.Needs[n].Digest)
			continue
		}
		_, err = stated.Put(ctx, policy.Grant{Principal: policy.LocalUser(), By: policy.LocalUser(), Subject: r.Digest, Needs: r.Needs, Name: r.Entry.Name,
			Origin: r.Entry.Origin, Permissions: r.Permissions(), Scope: policy.Always, Presence: presence})
		if err != nil {
			s.Note("policy.approved: %s is not approved: %v", name, err)
		}
	}
	return stated
}

// ConfiguredApprovals returns the approvals in the configuration that apply to
// the current versions of the skills.
func (s *Setup) ConfiguredApprovals(ctx context.Context) ([]policy.Grant, error) {
	c, err := s.LoadConfig(nil)
	if err != nil || len(c.Policy.Approved) == 0 {
		return nil, err
	}
	rt, err := s.NewRuntime(ctx, c, false)
	if err != nil {
		return nil, err
	}
	defer rt.Close()
	grants, _, err := s.readApproved(ctx, c, rt).List(ctx)
	return grants, err
}
