package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/installed"
	"github.com/loadout-dev/loadout/remote"
	"github.com/loadout-dev/loadout/skill"
)

// plan is what is going to be installed, read and looked at before anything is moved.
// It is used by one goroutine.
type plan struct {
	*app
	to    place
	from  fetcher
	force bool
	texts bool // show all lines that differ

	lock      *installed.Lock
	edits     map[string][]installed.Difference // of the skills that were verified
	offers    []*remote.Offer
	steps     []*step
	byName    map[string]*step
	failed    []error           // why skills could not be had
	problems  []catalog.Problem // the same, for people and programs
	keptKeys  map[string]string // by place; read when one is needed
	firstKeys map[string]string // by place, that are new with this plan
}

// newPlan reads the lock of a directory. Close the plan.
func newPlan(a *app, to place, from fetcher, force bool) (*plan, error) {
	lock, err := to.Lock()
	if err != nil {
		return nil, err
	}
	return &plan{app: a, to: to, from: from, force: force, lock: lock, edits: map[string][]installed.Difference{}, byName: map[string]*step{}, firstKeys: map[string]string{}}, nil
}

// close removes what was downloaded.
func (p *plan) close() {
	for _, st := range p.steps {
		st.close()
	}
	for _, o := range p.offers {
		_ = o.Close()
	}
}

func (p *plan) look(ctx context.Context, at remote.Location) (*remote.Offer, error) {
	offer, err := p.from.look(ctx, at)
	if err == nil {
		p.offers = append(p.offers, offer)
	}
	return offer, err
}

// add reads the chosen skills of an offer. One that cannot be had is a problem, and the
// others go on; the error is that of ctx.
func (p *plan) add(ctx context.Context, offer *remote.Offer, chosen []remote.Skill) error {
	defer p.from.meter.begin("reading skills")()
	names := make([]string, 0, len(chosen))
	for _, s := range chosen {
		names = append(names, dirName(offer.Location, s))
	}
	if err := p.verify(ctx, names); err != nil {
		return err
	}
	for _, s := range chosen {
		err := p.read(ctx, offer, s)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			p.fail(s, err)
		}
	}
	return nil
}

// fail notes why a skill cannot be had.
func (p *plan) fail(s remote.Skill, err error) {
	code := "not-added"
	if isType[*skill.RefusedError](err) {
		code = "refused"
	}
	_, fix := p.advice(err)
	p.failed = append(p.failed, err)
	p.problems = append(p.problems, catalog.Problem{Path: s.Dir, Diagnostic: skill.Diagnostic{Severity: skill.Error, Code: code, Message: err.Error(), Fix: fix}})
}

// missing notes the skills of an offer that cannot be had where all are wanted.
func (p *plan) missing(offer *remote.Offer) {
	for _, wrong := range offer.Problems {
		if wrong.Severity == skill.Error {
			p.failed = append(p.failed, fail(exitFound, wrong.Fix, "%s: %s", wrong.Path, wrong.Message))
		}
	}
}

// advice is the exit code and the next step for what keeps one skill from being had.
func (a *app) advice(err error) (code int, fix string) {
	if e, ok := errors.AsType[*exitError](err); ok {
		return e.code, e.hint
	}
	if isType[*skill.RefusedError](err) {
		return exitFound, "it has to be mended where it comes from"
	}
	return a.classify(err)
}

// read makes a step of a skill: its files are opened, hashed, parsed, compared with what
// is there, and scanned.
func (p *plan) read(ctx context.Context, offer *remote.Offer, s remote.Skill) error {
	st, err := newStep(ctx, offer, s)
	if err != nil {
		return err
	}
	if other := p.byName[st.Name]; other != nil {
		st.close()
		if other.Digest == st.Digest {
			return nil
		}
		return fail(exitUsage, "get one of them, by its directory: --skill "+quoted(s.Dir), "it is named %s, as the one in %s is", st.Name, cmp.Or(other.From.Dir, "another place"))
	}
	if err := p.judge(ctx, st); err != nil {
		st.close()
		return err
	}
	p.steps, p.byName[st.Name] = append(p.steps, st), st
	return nil
}

// judge says what a step does, who signed it, and what a scan finds in it.
func (p *plan) judge(ctx context.Context, st *step) (err error) {
	if err := p.against(ctx, st); err != nil {
		return err
	}
	if st.signed, err = p.publisher(st); err != nil {
		return err
	}
	if st.signed != nil {
		st.entry.Key, st.Signer = st.signed.key, st.signed.fingerprint
		if st.signed.first {
			p.firstKeys[st.From.Place()] = st.signed.key
		}
	}
	if st.State != "unchanged" {
		p.scan(ctx, st)
	}
	return nil
}

// install moves everything into place, or nothing.
func (p *plan) install(ctx context.Context) error {
	defer p.from.meter.begin("installing")()
	change, err := p.to.Begin(ctx)
	if err != nil {
		return err
	}
	defer change.Close()
	now := change.Lock()
	for _, st := range p.changes() {
		if was, is := p.lock.Skills[st.Name], now.Skills[st.Name]; is.Digest != was.Digest || is.From != was.From || is.Key != was.Key {
			return fail(exitFound, "look at it again: loadout list; then try again", "%s was changed by another loadout meanwhile", st.Name)
		}
		put := change.Put
		if p.force {
			put = change.Replace
		}
		if _, err := put(ctx, st.Name, st.entry, st.files); err != nil {
			return fmt.Errorf("install %s: %w", st.Name, err)
		}
	}
	if err := p.pin(ctx); err != nil { // nothing is installed whose key could not be kept
		return err
	}
	return change.Commit(ctx)
}

// changes are the steps that do something.
func (p *plan) changes() []*step {
	var out []*step
	for _, st := range p.steps {
		if st.State != "unchanged" {
			out = append(out, st)
		}
	}
	return out
}
