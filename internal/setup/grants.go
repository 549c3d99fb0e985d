package setup

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/internal/audit"
	"github.com/loadout-dev/loadout/internal/exit"
	"github.com/loadout-dev/loadout/internal/secrets"
	"github.com/loadout-dev/loadout/policy"
)

// GrantStore returns the store of the user's approvals.
func (s *Setup) GrantStore() policy.Store {
	if d := s.StateDir(); d != "" {
		return policy.NewFileStore(filepath.Join(d, "grants"))
	}
	return &policy.MemoryStore{}
}

// AuditLog returns the log of decisions, or nil if there is no state directory.
func (s *Setup) AuditLog() loadout.Auditor {
	if d := s.StateDir(); d != "" {
		return audit.New(filepath.Join(d, "audit.jsonl"))
	}
	return nil
}

// Record records an action of the user in the audit log, if there is one. It sets
// the principal and the decision of r.
func (s *Setup) Record(ctx context.Context, r policy.Record) error {
	log := s.AuditLog()
	if log == nil {
		return nil
	}
	r.Principal, r.Decision = policy.LocalUser(), policy.VerdictAllow
	if err := log.Append(ctx, r); err != nil {
		return fmt.Errorf("write audit log: %w", err)
	}
	return nil
}

// RecordGrant records an action on a grant in the audit log.
func (s *Setup) RecordGrant(ctx context.Context, action string, g policy.Grant) error {
	return s.Record(ctx, policy.Record{Action: action, Subject: g.Subject, Name: g.Name,
		Details: map[string]string{"grant": g.ID, "network": strings.Join(g.Permissions.Network, " "), "secrets": strings.Join(g.Permissions.Secrets, " ")}})
}

// SecretStore returns the store of the user's secrets.
func (s *Setup) SecretStore() (*secrets.Store, error) {
	d := s.StateDir()
	if d == "" {
		return nil, exit.Errorf(exit.Failure, "set LOADOUT_STATE to a directory of yours", "no directory to store secrets")
	}
	return secrets.New(filepath.Join(d, "secrets")), nil
}

// SecretValue returns the stored value of a secret, or LOADOUT_SECRET_NAME, or
// "". The caller checks the permission.
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

// GrantedSecrets returns the secrets already granted to a digest. A new
// approval of the same files keeps them.
func (s *Setup) GrantedSecrets(ctx context.Context, digest policy.Digest, needs []policy.Need) []string {
	g, err := s.GrantStore().Find(ctx, policy.LocalUser(), digest, "")
	if err != nil || !g.NeedsExactly(needs) {
		return nil
	}
	return g.Permissions.Secrets
}
