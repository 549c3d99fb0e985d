package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/loadout-dev/loadout/internal/console"
	"github.com/loadout-dev/loadout/internal/detonation"
	"github.com/loadout-dev/loadout/internal/exit"
	"github.com/loadout-dev/loadout/internal/lease"
	"github.com/loadout-dev/loadout/internal/skillcheck"
	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/skill"
)

// requireScanRun returns an error unless scan --run was called by the user and for one
// skill. In managed mode, runForScan checks that the skill is approved.
func (a *app) requireScanRun(ctx context.Context, args []string) error {
	if len(args) != 1 {
		return exit.Errorf(exit.Usage, "run the command for each skill", "--run accepts one skill, not %d", len(args))
	}
	if a.IsManaged() {
		return nil
	}
	_, err := a.RequireUser(ctx, "", append([]string{"scan", args[0], "--run"}, a.SkillArgs()...)...)
	return err
}

// scanRunPath scans the skill at a path and runs its scripts.
func (a *app) scanRunPath(ctx context.Context, p string, o scanFlags) (scanResult, error) {
	b, err := skillcheck.Open(p)
	if errors.Is(err, skillcheck.ErrNotSkill) {
		return scanResult{}, exit.Errorf(exit.Usage, "give the directory of one skill, its SKILL.md, a .zip or .skill archive, or a NAME", "not a skill: %s", p)
	}
	if err != nil {
		return scanResult{}, classifyScanError(err)
	}
	defer b.Close()
	return a.scanOpened(ctx, b, p, o)
}

// runForScan runs the scripts of an open skill with decoy secrets.
func (a *app) runForScan(ctx context.Context, b *skill.Bundle, o scanFlags) (*detonation.Report, error) {
	c, err := a.LoadConfig(nil)
	if err != nil {
		return nil, err
	}
	if !c.Sandbox.Enabled {
		return nil, exit.Errorf(exit.Refused, "see where it is set: loadout config show", "scripts are disabled (sandbox.enabled)")
	}
	m, _, err := skill.ReadManifest(b.FS)
	if err != nil {
		return nil, err
	}
	s, ds, err := skill.Parse(b.FS, b.Folder)
	if err != nil {
		return nil, err
	}
	if s == nil || !ds.Loads() {
		return nil, exit.Errorf(exit.Failure, "list the problems: loadout validate PATH", "cannot run the scripts of an invalid skill")
	}
	if c.Managed() {
		if err := a.requireApproved(ctx, s.Name, m); err != nil {
			return nil, err
		}
	}
	source, err := readSkillFile(b.FS, m)
	if err != nil {
		return nil, err
	}
	if log := a.AuditLog(); log != nil {
		r := policy.Record{Principal: policy.LocalUser(), Action: "scan", Subject: policy.Digest(m.Digest()), Name: s.Name, Decision: policy.Allow, Reason: "run with decoy secrets"}
		if err := log(ctx, r); err != nil {
			return nil, fmt.Errorf("record the run of %s: %w", s.Name, err)
		}
	}
	a.RemoveAnswered(ctx)
	return detonation.Run(ctx, b.FS, m, s, source, &detonation.Options{Backend: a.NewBackend(c), Host: a.ScriptHost(c.Managed()), Timeout: o.timeout})
}

// requireApproved returns an error unless the administrator of a managed
// machine approved the skill.
func (a *app) requireApproved(ctx context.Context, name string, m skill.Manifest) error {
	_, err := lease.Find(ctx, a.GrantStore(), policy.LocalUser(), policy.Digest(m.Digest()), "", nil)
	if errors.Is(err, policy.ErrNotGranted) {
		return exit.Errorf(exit.Refused, "ask an administrator of the machine to approve it", "skill %s may not run: policy.presence is managed, and the skill is not approved", name)
	}
	return err
}

// readSkillFile returns the text of SKILL.md.
func readSkillFile(fsys fs.FS, m skill.Manifest) ([]byte, error) {
	for _, f := range m {
		if strings.EqualFold(f.Path, skill.FileName) {
			return fs.ReadFile(fsys, f.Path)
		}
	}
	return nil, fmt.Errorf("read %s: %w", skill.FileName, fs.ErrNotExist)
}

// printScanRuns prints which scripts were run, and which were not.
func (a *app) printScanRuns(b *strings.Builder, r *detonation.Report) {
	if r == nil {
		return
	}
	if len(r.Runs) > 0 {
		a.WriteWrapped(b, "  ", fmt.Sprintf("%s in the sandbox %s, with decoy secrets and without network access", console.Pluralize(len(r.Runs), "run"), r.Backend), a.Faint)
	} else {
		a.WriteWrapped(b, "  ", "no script was run", a.Faint)
	}
	for _, at := range r.Runs {
		if at.Incomplete != "" {
			a.WriteWrapped(b, "  ", fmt.Sprintf("incomplete: %s: %s", strings.TrimSpace(at.Script+" "+strings.Join(at.Args, " ")), at.Incomplete), a.Faint)
		}
	}
	for _, s := range r.Skipped {
		a.WriteWrapped(b, "  ", fmt.Sprintf("not run: %s: %s", s.Script, s.Reason), a.Faint)
	}
}
