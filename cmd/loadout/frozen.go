package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/loadout-dev/loadout/internal/installed"
	"github.com/loadout-dev/loadout/internal/remote"
	"github.com/loadout-dev/loadout/internal/scan"
)

// addFrozen installs the skills of loadout.lock with exactly the recorded
// bytes.
func (a *app) addFrozen(ctx context.Context, o *addFlags) error {
	c, err := a.loadConfig(nil)
	if err != nil {
		return err
	}
	to, err := a.frozenTarget(o.installFlags)
	if err != nil {
		return err
	}
	if err := to.Recover(ctx); err != nil {
		return err
	}
	p, err := newPlan(a, to, a.newLockFetcher(c, to, o.trust), o.force)
	if err != nil {
		return err
	}
	defer p.close()
	offers := map[remote.Location]*remote.Collection{}
	if err := p.verifyInstalled(ctx, lockedNames(p.lock)); err != nil {
		return err
	}
	for _, name := range lockedNames(p.lock) {
		if err := p.addFrozenStep(ctx, name, offers); err != nil {
			return err
		}
	}
	return a.executePlan(ctx, p, newAddOutput(to), planOptions{yes: true, verb: "add"})
}

// frozenTarget returns the directory whose lockfile to install from: the
// project's, if it has one.
func (a *app) frozenTarget(o installFlags) (skillsDir, error) {
	all, err := a.installDirs(o)
	if err != nil {
		return skillsDir{}, err
	}
	if o.scope == "" && all[0].scope == "project" && a.inRepository() {
		all = all[:1] // otherwise a forgotten lockfile would go unnoticed
	}
	for _, p := range all {
		lock, err := p.Lockfile()
		if err != nil {
			return skillsDir{}, err
		}
		if len(lock.Skills) > 0 {
			return p, nil
		}
	}
	return skillsDir{}, fail(exitNotFound, "add skills first: loadout add SOURCE"+all[0].flag()+"; commit the file to version control", "no loadout.lock with skills in %s", all[0].Path())
}

// addFrozenStep adds the step for one entry of the lockfile. offers caches the
// source of several skills.
func (p *plan) addFrozenStep(ctx context.Context, name string, offers map[remote.Location]*remote.Collection) error {
	e := p.lock.Skills[name]
	edits, err := p.localEdits(ctx, name)
	switch {
	case err != nil:
		return err
	case len(edits) == 0:
		p.steps = append(p.steps, &step{addedSkill: addedSkill{Name: name, Version: e.Version, State: "unchanged", From: e.From, Commit: e.Commit,
			Digest: e.Digest, Files: len(e.Files), Scripts: []string{}, Findings: []scan.Finding{}}})
		return nil
	case hasEdits(edits) && !p.force:
		return fail(exitFailure, "see the differences: loadout verify"+p.to.flag()+"; to discard them: --force", "%s was edited and differs from loadout.lock (%s)", name, formatEdits(edits))
	}
	at := e.From
	at.Dir = ""
	if at.Kind == remote.Git {
		at.Ref = e.Commit
	}
	if offers[at] == nil {
		if offers[at], err = p.fetchOffer(ctx, at); err != nil {
			return err
		}
	}
	i := slices.IndexFunc(offers[at].Skills, func(s remote.Skill) bool { return s.Dir == cmp.Or(e.From.Dir, ".") })
	if i < 0 {
		return fail(exitFailure, "report it to the owner of the source, or add the skill from another source", "skill %s not found at %s", name, e.From)
	}
	return p.newFrozenStep(ctx, name, offers[at], offers[at].Skills[i])
}

// newFrozenStep adds the step of a skill that must match the lockfile.
func (p *plan) newFrozenStep(ctx context.Context, name string, offer *remote.Collection, s remote.Skill) error {
	defer p.fetcher.meter.begin("reading " + plain(name))()
	st, err := newStep(ctx, offer, s)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	p.steps = append(p.steps, st)
	e := p.lock.Skills[name]
	if st.Digest != e.Digest {
		return fail(exitRefused, "the source changed after the skill was added; find out why, then: loadout update "+shellQuote(name), "digest mismatch of %s: want %s, got %s from %s", name, e.Digest, st.Digest, e.From)
	}
	st.Name, st.From, st.entry = name, e.From, e
	if st.signer, err = p.checkPublisher(st); err != nil {
		return err
	}
	if st.signer != nil {
		st.signer.first = false // a lockfile must not introduce a publisher
	}
	p.scanStep(ctx, st)
	return nil
}

// lockedNames returns the names of the skills in a lockfile, sorted.
func lockedNames(l *installed.Lockfile) []string { return slices.Sorted(maps.Keys(l.Skills)) }
