package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/installed"
	"github.com/loadout-dev/loadout/internal/remote"
	"github.com/loadout-dev/loadout/skill"
)

// plan is a set of skills to install. They are read and checked before anything
// is installed. A plan is not safe for concurrent use.
type plan struct {
	*app
	to      skillsDir
	fetcher fetcher
	force   bool
	texts   bool // show all changed lines

	lock       *installed.Lockfile
	edits      map[string][]installed.Difference // of the verified skills
	offers     []*remote.Collection
	steps      []*step
	byName     map[string]*step
	failed     []error           // why skills cannot be installed
	problems   []catalog.Problem // the same, for output
	pinnedKeys map[string]string // by source; loaded when needed
	newKeys    map[string]string // by source, introduced by this plan
}

// newPlan reads the lockfile of a directory. Close the plan after use.
func newPlan(a *app, to skillsDir, from fetcher, force bool) (*plan, error) {
	lock, err := to.Lockfile()
	if err != nil {
		return nil, err
	}
	return &plan{app: a, to: to, fetcher: from, force: force, lock: lock, edits: map[string][]installed.Difference{}, byName: map[string]*step{}, newKeys: map[string]string{}}, nil
}

// close removes downloaded files.
func (p *plan) close() {
	for _, st := range p.steps {
		st.close()
	}
	for _, o := range p.offers {
		_ = o.Close()
	}
}

func (p *plan) fetchOffer(ctx context.Context, at remote.Location) (*remote.Collection, error) {
	offer, err := p.fetcher.fetchOffer(ctx, at)
	if err == nil {
		p.offers = append(p.offers, offer)
	}
	return offer, err
}

// add adds the chosen skills of an offer. A skill that cannot be installed
// becomes a problem of the plan. The error is only that of ctx.
func (p *plan) add(ctx context.Context, offer *remote.Collection, chosen []remote.Skill) error {
	defer p.fetcher.meter.begin("reading skills")()
	names := make([]string, 0, len(chosen))
	for _, s := range chosen {
		names = append(names, installName(offer.Location, s))
	}
	if err := p.verifyInstalled(ctx, names); err != nil {
		return err
	}
	for _, s := range chosen {
		err := p.addStep(ctx, offer, s)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			p.addFailure(s, err)
		}
	}
	return nil
}

// addFailure records why a skill cannot be installed.
func (p *plan) addFailure(s remote.Skill, err error) {
	code := "not-added"
	if isType[*skill.RefusedError](err) {
		code = "refused"
	}
	_, fix := p.skillErrorHint(err)
	p.failed = append(p.failed, err)
	p.problems = append(p.problems, catalog.Problem{Path: s.Dir, Diagnostic: skill.Diagnostic{Severity: skill.Error, Code: code, Message: err.Error(), Fix: fix}})
}

// addUnavailable records the unusable skills of an offer as failures, if all
// skills are requested.
func (p *plan) addUnavailable(offer *remote.Collection) {
	for _, wrong := range offer.Problems {
		if wrong.Severity == skill.Error {
			p.failed = append(p.failed, fail(exitFailure, wrong.Fix, "%s: %s", wrong.Path, wrong.Message))
		}
	}
}

// skillErrorHint returns the exit code and hint for a skill that cannot be
// installed.
func (a *app) skillErrorHint(err error) (code int, fix string) {
	if e, ok := errors.AsType[*exitError](err); ok {
		return e.code, e.hint
	}
	if isType[*skill.RefusedError](err) {
		return exitFailure, "the author of the skill has to fix it"
	}
	return a.classifyError(err)
}

// addStep adds a step for a skill: it opens, hashes and parses the files,
// compares them with the installed version, and scans them.
func (p *plan) addStep(ctx context.Context, offer *remote.Collection, s remote.Skill) error {
	st, err := newStep(ctx, offer, s)
	if err != nil {
		return err
	}
	if other := p.byName[st.Name]; other != nil {
		st.close()
		if other.Digest == st.Digest {
			return nil
		}
		return fail(exitUsage, "choose one of them by its directory: --skill "+shellQuote(s.Dir), "name %s is also used by the skill in %s", st.Name, cmp.Or(other.From.Dir, "another source"))
	}
	if err := p.evaluateStep(ctx, st); err != nil {
		st.close()
		return err
	}
	p.steps, p.byName[st.Name] = append(p.steps, st), st
	return nil
}

// evaluateStep determines the state, the signer and the findings of a step.
func (p *plan) evaluateStep(ctx context.Context, st *step) (err error) {
	if err := p.compareInstalled(ctx, st); err != nil {
		return err
	}
	if st.signer, err = p.checkPublisher(st); err != nil {
		return err
	}
	if st.signer != nil {
		st.entry.Key, st.Signer = st.signer.key, st.signer.fingerprint
		if st.signer.first {
			p.newKeys[st.From.CanonicalURL()] = st.signer.key
		}
	}
	if st.State != "unchanged" {
		p.scanStep(ctx, st)
	}
	return nil
}

// install installs all changed skills, or none.
func (p *plan) install(ctx context.Context) error {
	defer p.fetcher.meter.begin("installing")()
	change, err := p.to.Begin(ctx)
	if err != nil {
		return err
	}
	defer change.Close()
	now := change.Lockfile()
	for _, st := range p.changedSteps() {
		if was, is := p.lock.Skills[st.Name], now.Skills[st.Name]; is.Digest != was.Digest || is.From != was.From || is.Key != was.Key {
			return fail(exitFailure, "check the installed skills: loadout list; then try again", "skill %s was changed by another process", st.Name)
		}
		put := change.Put
		if p.force {
			put = change.Replace
		}
		if _, err := put(ctx, st.Name, st.entry, st.files); err != nil {
			return fmt.Errorf("install %s: %w", st.Name, err)
		}
	}
	if err := p.pinKeys(ctx); err != nil { // a skill is not installed if its key cannot be saved
		return err
	}
	return change.Commit(ctx)
}

// changedSteps returns the steps that change something.
func (p *plan) changedSteps() []*step {
	var out []*step
	for _, st := range p.steps {
		if st.State != "unchanged" {
			out = append(out, st)
		}
	}
	return out
}
