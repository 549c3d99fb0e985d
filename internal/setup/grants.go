package setup

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/audit"
	"github.com/loadout-dev/loadout/internal/execution"
	"github.com/loadout-dev/loadout/internal/skillstate"
	"github.com/loadout-dev/loadout/internal/superseded"
	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/skill"
)

// GrantStore returns the store of the user's grants that are in effect. In
// managed mode, the store has no grants.
func (s *Setup) GrantStore() policy.Store {
	if s.IsManaged() {
		return closedGrants{s.operatorFile()}
	}
	return s.UserGrants()
}

// UserGrants returns the store of the user's grants, even if managed mode makes
// them ineffective. The approval of a version of a skill supersedes those of
// older versions. If there is no state directory, grants are kept only in
// memory.
func (s *Setup) UserGrants() policy.Store {
	if store := s.supersedingStore(); store != nil {
		return store
	}
	return policy.NewMemoryStore()
}

// SupersededApprovals returns the approvals that were superseded by approvals
// of newer versions.
func (s *Setup) SupersededApprovals() ([]superseded.Approval, error) {
	if store := s.supersedingStore(); store != nil {
		return store.Superseded()
	}
	return nil, nil
}

// supersedingStore returns the store of the user's grants, or nil if there is
// no state directory.
func (s *Setup) supersedingStore() *superseded.Store {
	d := s.StateDir()
	if d == "" {
		return nil
	}
	given := s.givenScope()
	project := s.projectScope()
	scope := func(origin string) string {
		switch {
		case given != "":
			return given
		case strings.HasPrefix(origin, "project."):
			return project
		}
		return userScope
	}
	active := []string{userScope, project}
	if given != "" {
		active = append(active, given)
	}
	return superseded.New(policy.NewFileStore(filepath.Join(d, "grants")), superseded.Options{
		Path: filepath.Join(d, "superseded.json"), Scope: scope, Active: active})
}

// projectScope returns the scope of the project's skills.
func (s *Setup) projectScope() string { return "project " + s.projectRoot() }

// givenScope returns the scope of the skills in the directories given with
// --skills, or "" without that flag. The scope does not depend on the working
// directory.
func (s *Setup) givenScope() string {
	if len(s.Skills) == 0 {
		return ""
	}
	var dirs []string
	for _, dir := range s.Skills {
		if abs, err := filepath.Abs(dir); err == nil {
			dir = abs
		}
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			dir = real
		}
		dirs = append(dirs, dir)
	}
	slices.Sort(dirs)
	return "skills " + strings.Join(dirs, "\n")
}

// ReinstateApprovals reinstates the superseded approvals of versions that the
// user chose in a directory. It returns the versions whose approvals were
// reinstated. It does nothing if an agent runs the command, or for a directory
// given with --dir.
func (s *Setup) ReinstateApprovals(ctx context.Context, in SkillsDir, versions []string) ([]string, error) {
	store := s.supersedingStore()
	if store == nil || len(versions) == 0 || in.Scope == "" || !s.Caller().IsUser() {
		return nil, nil
	}
	scope := userScope
	if in.Scope != userScope {
		scope = s.projectScope()
	}
	var out []string
	for _, version := range versions {
		again, err := store.Reinstate(ctx, policy.Digest(version), scope)
		if err != nil {
			return out, err
		}
		if again {
			out = append(out, version)
		}
	}
	return out, nil
}

// SkillState returns the state of a skill's version on this machine. The state
// does not depend on whether a sandbox is available.
func (s *Setup) SkillState(ctx context.Context, rt *loadout.Runtime, e *catalog.Entry, files skill.Manifest) (skillstate.State, error) {
	current := int64(1)
	v := skillstate.Version{Number: current, HasCode: e.ProvidesTools || slices.ContainsFunc(files, func(f skill.File) bool { return f.Script })}
	switch {
	case !v.HasCode:
	case rt.Runner().CanAcquireLease(ctx, e.Key(), execution.Caller{}):
		v.Decision = skillstate.Approved
	case !s.IsManaged():
		older, err := s.SupersededApprovals()
		if err != nil {
			return "", err
		}
		if slices.ContainsFunc(older, func(a superseded.Approval) bool { return a.Grant.Subject == policy.Digest(files.Digest()) }) {
			v.Decision, current = skillstate.Approved, v.Number+1
		}
	}
	return v.State(current), nil
}

// userScope is the scope of skills in the user's directories.
const userScope = "user"

// AuditLog returns a function that appends to the audit log, or nil if there is
// no state directory.
func (s *Setup) AuditLog() func(context.Context, policy.Record) error {
	if d := s.StateDir(); d != "" {
		return audit.New(filepath.Join(d, "audit.jsonl")).Append
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
	if err := log(ctx, r); err != nil {
		return fmt.Errorf("write audit log: %w", err)
	}
	return nil
}

// RecordGrant writes an action on a grant to the audit log.
func (s *Setup) RecordGrant(ctx context.Context, action string, g policy.Grant) error {
	return s.Record(ctx, policy.Record{Action: action, Subject: g.Subject, Name: g.Name,
		Details: map[string]string{"grant": g.ID, "presence": g.Presence, "network": strings.Join(g.Permissions.Network, " "), "secrets": strings.Join(g.Permissions.Secrets, " ")}})
}
