package setup

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/internal/audit"
	"github.com/loadout-dev/loadout/policy"
)

// GrantStore returns the store of the user's grants. Without a state directory,
// grants are kept only in memory.
func (s *Setup) GrantStore() policy.Store {
	if d := s.StateDir(); d != "" {
		return policy.NewFileStore(filepath.Join(d, "grants"))
	}
	return policy.NewMemoryStore()
}

// AuditLog returns the audit log, or nil if there is no state directory.
func (s *Setup) AuditLog() loadout.Auditor {
	if d := s.StateDir(); d != "" {
		return audit.New(filepath.Join(d, "audit.jsonl"))
	}
	return nil
}

// Record writes an action of the user to the audit log, if there is one. It
// sets the principal and the decision of r.
func (s *Setup) Record(ctx context.Context, r policy.Record) error {
	log := s.AuditLog()
	if log == nil {
		return nil
	}
	r.Principal, r.Decision = policy.LocalUser(), policy.Allow
	if err := log.Append(ctx, r); err != nil {
		return fmt.Errorf("write audit log: %w", err)
	}
	return nil
}

// RecordGrant writes an action on a grant to the audit log.
func (s *Setup) RecordGrant(ctx context.Context, action string, g policy.Grant) error {
	return s.Record(ctx, policy.Record{Action: action, Subject: g.Subject, Name: g.Name,
		Details: map[string]string{"grant": g.ID, "network": strings.Join(g.Permissions.Network, " "), "secrets": strings.Join(g.Permissions.Secrets, " ")}})
}
