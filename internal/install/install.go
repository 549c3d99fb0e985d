// Package install plans and applies the installation of skills into a
// directory. A [Plan] reads skills from their sources, compares them with the
// installed ones, checks their publishers and scans them. [Plan.Apply] then
// installs all of them or none. The package prints nothing, shows no prompts
// and does not run skill code. The caller shows the plan and decides. Start
// reading at [New].
package install

import (
	"context"
	"fmt"

	"github.com/loadout-dev/loadout/internal/installed"
	"github.com/loadout-dev/loadout/internal/remote"
	"github.com/loadout-dev/loadout/internal/signature"
	"github.com/loadout-dev/loadout/skill"
)

// Source reads skills from their locations.
type Source interface {
	// Open returns the skills at a location.
	Open(ctx context.Context, l remote.Location) (*remote.Collection, error)
	// Latest returns the current revision of a location.
	Latest(ctx context.Context, l remote.Location) (*remote.Revision, error)
}

// Options configures a [Plan]. Source is required.
type Options struct {
	Source Source
	// Pins stores the keys of known publishers. If nil, skills with a new key
	// cannot be installed.
	Pins *signature.Pins
	// History stores the highest counters of signed skills. If nil, only the
	// lockfile does.
	History *signature.History
	// Downgrade permits versions that are older than the highest one seen.
	Downgrade bool
	// Force replaces skills that were edited, come from another source, are
	// pinned, or were not installed by this program.
	Force bool
	// FullDiff includes the changed lines of all files in the comparison with
	// the installed version.
	FullDiff bool
	// Progress is called at the start of a slow operation. It returns a
	// function that is called at the end. It may be nil.
	Progress func(operation string) (done func())
}

// Plan is a set of skills to install into one directory. The caller must close
// it. It is not safe for concurrent use.
type Plan struct {
	// Steps contains the skills of the plan, including unchanged ones.
	Steps []*Step
	// Failures contains the requested skills that cannot be installed.
	Failures []Failure

	dir         *installed.Dir
	options     Options
	lock        *installed.Lockfile
	editsByName map[string][]installed.Difference // edits of the verified skills, by name
	collections []*remote.Collection
	byName      map[string]*Step
	pins        map[string]pin    // pins by source; loaded on demand
	newKeys     map[string]string // keys that this plan introduces, by source
	known       []knownSkill      // for comparisons; nil until it is read
}

// Failure describes a requested skill that cannot be installed.
type Failure struct {
	Dir string // the skill's directory in its source
	Err error
	// Listed is set if the source itself already reports the problem.
	Listed bool
}

// New reads the lockfile of a directory and returns an empty plan. The caller
// must close the plan.
func New(dir *installed.Dir, o Options) (*Plan, error) {
	lock, err := dir.Lockfile()
	if err != nil {
		return nil, err
	}
	return &Plan{dir: dir, options: o, lock: lock, editsByName: map[string][]installed.Difference{}, byName: map[string]*Step{}, pins: map[string]pin{}, newKeys: map[string]string{}}, nil
}

// Close removes the downloaded files.
func (p *Plan) Close() {
	for _, st := range p.Steps {
		st.close()
	}
	for _, c := range p.collections {
		_ = c.Close()
	}
}

// Open reads the skills at a location. They remain readable until the plan is
// closed.
func (p *Plan) Open(ctx context.Context, at remote.Location) (*remote.Collection, error) {
	c, err := p.options.Source.Open(ctx, at)
	if err == nil {
		p.collections = append(p.collections, c)
	}
	return c, err
}

// Add adds the skills that the user chose from a collection. A skill that
// cannot be installed is added to Failures. Add returns an error only if ctx is
// done or the directory cannot be read.
func (p *Plan) Add(ctx context.Context, c *remote.Collection, chosen []remote.Skill) error {
	defer p.progress("reading skills")()
	names := make([]string, 0, len(chosen))
	for _, s := range chosen {
		names = append(names, Name(c.Location, s))
	}
	if err := p.verifyInstalled(ctx, names); err != nil {
		return err
	}
	for _, s := range chosen {
		err := p.addStep(ctx, c, s)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			p.Failures = append(p.Failures, Failure{Dir: s.Dir, Err: err})
			continue
		}
		p.byName[Name(c.Location, s)].named = true
	}
	return nil
}

// AddUnusable adds the unusable skills of a collection to Failures. Call it if
// all skills are requested.
func (p *Plan) AddUnusable(c *remote.Collection) {
	for _, wrong := range c.Problems {
		if wrong.Severity == skill.Error {
			p.Failures = append(p.Failures, Failure{Dir: wrong.Path, Err: &SkillError{Reason: Invalid, Message: wrong.Path + ": " + wrong.Message, Fix: wrong.Fix}, Listed: true})
		}
	}
}

// addStep opens, hashes and parses a skill's files, compares them with the
// installed version, and scans them. Then it adds a step to the plan.
func (p *Plan) addStep(ctx context.Context, c *remote.Collection, s remote.Skill) error {
	st, err := newStep(ctx, c, s)
	if err != nil {
		return err
	}
	if other := p.byName[st.Name]; other != nil {
		st.close()
		if other.Digest == st.Digest {
			return nil
		}
		return nameTakenError(st.Name, s.Dir, other.From.Dir)
	}
	if err := p.evaluate(ctx, st); err != nil {
		st.close()
		return err
	}
	p.Steps, p.byName[st.Name] = append(p.Steps, st), st
	return nil
}

// evaluate determines the state, the publisher and the findings of a step.
func (p *Plan) evaluate(ctx context.Context, st *Step) (err error) {
	if err := p.compareInstalled(ctx, st); err != nil {
		return err
	}
	if st.Publisher, err = p.checkPublisher(st); err != nil {
		return err
	}
	if err := p.checkRelease(st); err != nil {
		return err
	}
	if st.Publisher != nil {
		st.Entry.Key, st.Signer = st.Publisher.Key, st.Publisher.Fingerprint
		if st.Publisher.First {
			p.newKeys[st.From.CanonicalURL()] = st.Publisher.Key
		}
	}
	if st.State != StateUnchanged {
		p.scan(ctx, st)
	}
	return nil
}

// Changes returns the steps that install or replace a skill.
func (p *Plan) Changes() []*Step {
	var out []*Step
	for _, st := range p.Steps {
		if st.State != StateUnchanged {
			out = append(out, st)
		}
	}
	return out
}

// Apply installs all changed skills, or none of them.
func (p *Plan) Apply(ctx context.Context) error {
	defer p.progress("installing")()
	change, err := p.dir.Begin(ctx)
	if err != nil {
		return err
	}
	defer change.Close()
	now := change.Lockfile()
	for _, st := range p.Changes() {
		if was, is := p.lock.Skills[st.Name], now.Skills[st.Name]; is.Digest != was.Digest || is.From != was.From || is.Key != was.Key {
			return &SkillError{Reason: Busy, Name: st.Name, Message: fmt.Sprintf("skill %s was changed by another process", st.Name)}
		}
		put := change.Put
		if p.options.Force {
			put = change.Replace
		}
		if _, err := put(ctx, st.Name, st.Entry, st.files); err != nil {
			return fmt.Errorf("install %s: %w", st.Name, err)
		}
	}
	if err := p.pinKeys(ctx); err != nil { // a skill must not be installed if its key cannot be saved
		return err
	}
	if err := change.Commit(ctx); err != nil {
		return err
	}
	return p.recordReleases(ctx)
}

func (p *Plan) progress(operation string) (done func()) {
	if p.options.Progress == nil {
		return func() {}
	}
	return p.options.Progress(operation)
}
