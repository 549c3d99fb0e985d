package main

import (
	"context"

	"github.com/loadout-dev/loadout/internal/exit"
	"github.com/loadout-dev/loadout/internal/install"
	"github.com/loadout-dev/loadout/internal/setup"
)

// addFrozen installs the skills in loadout.lock with exactly the recorded
// content.
func (a *app) addFrozen(ctx context.Context, o *addFlags) error {
	c, err := a.LoadConfig(nil)
	if err != nil {
		return err
	}
	to, err := a.frozenTarget(o.InstallFlags)
	if err != nil {
		return err
	}
	if err := to.Recover(ctx); err != nil {
		return err
	}
	show := planOptions{force: o.force, downgrade: o.downgrade, yes: true, verb: "add"}
	p, err := a.newPlan(to, a.NewLockFetcher(c, to, o.trust), show)
	if err != nil {
		return err
	}
	defer p.Close()
	err = p.AddLocked(ctx)
	if isType[*install.SkillError](err) {
		return a.planError(err, to)
	}
	if err != nil {
		return err
	}
	return a.executePlan(ctx, p, newAddOutput(to), show)
}

// frozenTarget returns the directory with the lockfile to install from: the
// project's, if it has one.
func (a *app) frozenTarget(o setup.InstallFlags) (setup.SkillsDir, error) {
	all, err := a.InstallDirs(o)
	if err != nil {
		return setup.SkillsDir{}, err
	}
	if o.Scope == "" && all[0].Scope == "project" && a.InRepository() {
		all = all[:1] // otherwise a missing lockfile would go unnoticed
	}
	for _, p := range all {
		lock, err := p.Lockfile()
		if err != nil {
			return setup.SkillsDir{}, err
		}
		if len(lock.Skills) > 0 {
			return p, nil
		}
	}
	return setup.SkillsDir{}, exit.Errorf(exit.NotFound, "add skills first: loadout add SOURCE"+all[0].Flag()+"; commit the file to version control", "no loadout.lock with skills in %s", all[0].Path())
}
