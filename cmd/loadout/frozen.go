package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/loadout-dev/loadout/installed"
	"github.com/loadout-dev/loadout/remote"
	"github.com/loadout-dev/loadout/scan"
)

// addFrozen makes the skills of loadout.lock be there with just the bytes it says.
func (a *app) addFrozen(ctx context.Context, o *addFlags) error {
	c, err := a.settings(nil)
	if err != nil {
		return err
	}
	to, err := a.frozenPlace(o.installFlags)
	if err != nil {
		return err
	}
	if err := to.Recover(ctx); err != nil {
		return err
	}
	p, err := newPlan(a, to, a.fetcherFor(c, to, o.trust), o.force)
	if err != nil {
		return err
	}
	defer p.close()
	offers := map[remote.Location]*remote.Offer{}
	if err := p.verify(ctx, locked(p.lock)); err != nil {
		return err
	}
	for _, name := range locked(p.lock) {
		if err := p.frozen(ctx, name, offers); err != nil {
			return err
		}
	}
	return a.carryOut(ctx, p, newAddOutput(to), carryFlags{yes: true, verb: "add"})
}

// frozenPlace is the directory whose lock is meant: the project's, where it has one.
func (a *app) frozenPlace(o installFlags) (place, error) {
	all, err := a.places(o)
	if err != nil {
		return place{}, err
	}
	if o.scope == "" && all[0].scope == "project" && a.inRepository() {
		all = all[:1] // or a lock that somebody forgot would look like one
	}
	for _, p := range all {
		lock, err := p.Lock()
		if err != nil {
			return place{}, err
		}
		if len(lock.Skills) > 0 {
			return p, nil
		}
	}
	return place{}, fail(exitNotFound, "add skills first: loadout add SOURCE"+all[0].flag()+"; the file belongs into version control", "there is no loadout.lock with skills in %s", all[0].Path())
}

// frozen adds the step for one entry of the lock. A place is looked at once, however many
// skills are from it.
func (p *plan) frozen(ctx context.Context, name string, offers map[remote.Location]*remote.Offer) error {
	e := p.lock.Skills[name]
	edits, err := p.editsOf(ctx, name)
	switch {
	case err != nil:
		return err
	case len(edits) == 0:
		p.steps = append(p.steps, &step{addedSkill: addedSkill{Name: name, Version: e.Version, State: "unchanged", From: e.From, Commit: e.Commit,
			Digest: e.Digest, Files: len(e.Files), Scripts: []string{}, Findings: []scan.Finding{}}})
		return nil
	case edited(edits) && !p.force:
		return fail(exitFound, "see what: loadout verify"+p.to.flag()+"; to lose those changes: --force", "%s was edited here, and differs from loadout.lock (%s)", name, editsText(edits))
	}
	at := e.From
	at.Dir = ""
	if at.Kind == remote.Git {
		at.Ref = e.Commit
	}
	if offers[at] == nil {
		if offers[at], err = p.look(ctx, at); err != nil {
			return err
		}
	}
	i := slices.IndexFunc(offers[at].Skills, func(s remote.Skill) bool { return s.Dir == cmp.Or(e.From.Dir, ".") })
	if i < 0 {
		return fail(exitFound, "tell whoever keeps that place, or add the skill anew from another", "%s is no longer at %s", name, e.From)
	}
	return p.freeze(ctx, name, offers[at], offers[at].Skills[i])
}

// freeze makes the step of a skill that has to be as the lock says.
func (p *plan) freeze(ctx context.Context, name string, offer *remote.Offer, s remote.Skill) error {
	defer p.from.meter.begin("reading " + plain(name))()
	st, err := newStep(ctx, offer, s)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	p.steps = append(p.steps, st)
	e := p.lock.Skills[name]
	if st.Digest != e.Digest {
		return fail(exitRefused, "what is there now is not what was added: find out why, then: loadout update "+quoted(name), "%s is %s at %s, and loadout.lock says %s", name, st.Digest, e.From, e.Digest)
	}
	st.Name, st.From, st.entry = name, e.From, e
	if st.signed, err = p.publisher(st); err != nil {
		return err
	}
	if st.signed != nil {
		st.signed.first = false // a lock is no place to meet a publisher
	}
	p.scan(ctx, st)
	return nil
}

// locked are the skills of a lock in the order of their names.
func locked(l *installed.Lock) []string { return slices.Sorted(maps.Keys(l.Skills)) }
