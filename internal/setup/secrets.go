package setup

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/internal/exit"
	"github.com/loadout-dev/loadout/internal/secrets"
	"github.com/loadout-dev/loadout/policy"
)

// SecretSkill describes a skill's grant to use a secret.
type SecretSkill struct {
	Name   string        `json:"name"`
	Digest policy.Digest `json:"digest"`
}

// SecretStore returns the store of the user's secrets. It returns an error if
// there is no state directory.
func (s *Setup) SecretStore() (*secrets.Store, error) {
	d := s.StateDir()
	if d == "" {
		return nil, exit.Errorf(exit.Failure, "set LOADOUT_STATE to a directory of yours", "no directory to store secrets")
	}
	return secrets.New(filepath.Join(d, "secrets")), nil
}

// SecretValue returns the stored value of a secret or, failing that, the value
// of LOADOUT_SECRET_NAME. It returns "" if neither is set. The caller must
// check the permission.
func (s *Setup) SecretValue(_ context.Context, name string) (string, error) {
	if store, err := s.SecretStore(); err == nil {
		switch value, err := store.Get(name); {
		case err == nil:
			return value, nil
		case !errors.Is(err, secrets.ErrNotSet):
			return "", err
		}
	}
	return s.Getenv("LOADOUT_SECRET_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))), nil
}

// GrantedSecrets returns the secrets already granted for a digest. A new
// approval of the same files keeps them.
func (s *Setup) GrantedSecrets(ctx context.Context, digest policy.Digest, needs []policy.Need) []string {
	g, err := s.GrantStore().Find(ctx, policy.LocalUser(), digest, "")
	if err != nil || !g.NeedsExactly(needs) {
		return nil
	}
	return g.Permissions.Secrets
}

// SecretSkills returns the skills that may use each secret, keyed by secret
// name.
func (s *Setup) SecretSkills(ctx context.Context) (map[string][]SecretSkill, error) {
	grants, problems, err := s.GrantStore().List(ctx)
	if err != nil {
		return nil, err
	}
	for _, p := range problems {
		s.Note("approval ignored: %s", p)
	}
	out := map[string][]SecretSkill{}
	for _, g := range grants {
		k := SecretSkill{g.Name, g.Subject}
		for _, name := range g.Permissions.Secrets {
			if !g.Expired(time.Now()) && !slices.Contains(out[name], k) {
				out[name] = append(out[name], k)
			}
		}
	}
	return out, nil
}

// GrantSecret lets the skill version described by w use a secret. Its other
// permissions are unchanged, unless a skill that it depends on changed.
// presence is the Presence of the new grant.
func (s *Setup) GrantSecret(ctx context.Context, w *loadout.ApprovalRequest, name, presence string) (policy.Grant, error) {
	g := policy.Grant{Principal: policy.LocalUser(), By: policy.LocalUser(), Subject: w.Digest, Name: w.Entry.Name, Origin: w.Entry.Origin, Needs: w.Needs, Scope: policy.Always, Presence: presence}
	had, err := s.GrantStore().Find(ctx, policy.LocalUser(), w.Digest, "")
	switch {
	case errors.Is(err, policy.ErrNotGranted):
	case err != nil:
		return g, err
	case had.NeedsExactly(w.Needs): // do not revive an outdated grant
		g.Permissions, g.Expires, g.Scope = had.Permissions, had.Expires, had.Scope
	}
	if !slices.Contains(g.Permissions.Secrets, name) {
		g.Permissions.Secrets = append(g.Permissions.Secrets, name)
	}
	kept, err := s.GrantStore().Put(ctx, g)
	if err != nil {
		return g, fmt.Errorf("grant secret %s to %s: %w", name, w.Entry.Name, err)
	}
	return kept, s.RecordGrant(ctx, "approve", kept)
}

// RevokeSecret revokes access to a secret from all versions of a skill. Other
// permissions are unchanged. It reports whether there was such a grant.
func (s *Setup) RevokeSecret(ctx context.Context, skill, name string) (changed bool, err error) {
	grants, _, err := s.GrantStore().List(ctx)
	if err != nil {
		return false, err
	}
	older, err := s.SupersededApprovals()
	if err != nil {
		return false, err
	}
	for _, a := range older {
		if g := a.Grant; (g.Name == skill || g.Origin+"/"+g.Name == skill) && slices.Contains(g.Permissions.Secrets, name) {
			if _, err := s.GrantStore().Revoke(ctx, g.ID); err != nil && !errors.Is(err, policy.ErrNotGranted) {
				return changed, fmt.Errorf("revoke secret %s from %s: %w", name, skill, err)
			}
			changed = true
		}
	}
	for _, g := range grants {
		if g.Name != skill && g.Origin+"/"+g.Name != skill || !slices.Contains(g.Permissions.Secrets, name) {
			continue
		}
		g.Permissions.Secrets = slices.DeleteFunc(slices.Clone(g.Permissions.Secrets), func(s string) bool { return s == name })
		action := "approve"
		if g.Expired(time.Now()) || !g.Permissions.Run && len(g.Permissions.Secrets) == 0 {
			action = "revoke"
			_, err = s.GrantStore().Revoke(ctx, g.ID)
		} else {
			g, err = s.GrantStore().Put(ctx, g)
		}
		if err != nil {
			return changed, fmt.Errorf("revoke secret %s from %s: %w", name, skill, err)
		}
		if err := s.RecordGrant(ctx, action, g); err != nil {
			return changed, err
		}
		changed = true
	}
	return changed, nil
}
