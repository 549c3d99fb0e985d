package setup

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/internal/audit"
	"github.com/loadout-dev/loadout/internal/install"
	"github.com/loadout-dev/loadout/internal/superseded"
	"github.com/loadout-dev/loadout/policy"
)

// GrantStore returns the store of the user's grants. The approval of a version of
// a skill supersedes those of older versions. Without a state directory, grants
// are kept only in memory.
func (s *Setup) GrantStore() policy.Store {
	if store := s.supersedingStore(); store != nil {
		return store
	}
	return policy.NewMemoryStore()
}

// SupersededApprovals returns the approvals that those of newer versions
// superseded.
func (s *Setup) SupersededApprovals() ([]superseded.Approval, error) {
	if store := s.supersedingStore(); store != nil {
		return store.Superseded()
	}
	return nil, nil
}

// supersedingStore returns the user's grants, or nil without a state directory.
func (s *Setup) supersedingStore() *superseded.Store {
	d := s.StateDir()
	if d == "" {
		return nil
	}
	project := "project " + s.projectRoot()
	scope := func(origin string) string {
		if len(s.Skills) > 0 || strings.HasPrefix(origin, "project.") {
			return project
		}
		return userScope
	}
	return superseded.New(policy.NewFileStore(filepath.Join(d, "grants")), superseded.Options{
		Path: filepath.Join(d, "superseded.json"), Scope: scope, Active: []string{userScope, project},
		Named: func(version policy.Digest, moved func(string) bool) bool {
			dirs, err := s.InstallDirs(InstallFlags{})
			if err != nil {
				return false
			}
			for _, dir := range dirs {
				in := project
				if dir.Scope == userScope {
					in = userScope
				}
				if install.NamesVersion(dir.Dir, string(version), moved(in), s.SeenVersions()) {
					return true
				}
			}
			return false
		},
	})
}

// userScope is the scope of skills in the user's directories.
const userScope = "user"

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
		Details: map[string]string{"grant": g.ID, "presence": g.Presence, "network": strings.Join(g.Permissions.Network, " "), "secrets": strings.Join(g.Permissions.Secrets, " ")}})
}
