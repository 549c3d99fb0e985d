package install

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/loadout-dev/loadout/internal/installed"
	"github.com/loadout-dev/loadout/internal/remote"
	"github.com/loadout-dev/loadout/internal/scan"
	"github.com/loadout-dev/loadout/internal/signature"
	"github.com/loadout-dev/loadout/skill"
)

// AddLocked adds all skills in the lockfile with exactly the recorded bytes.
// Unlike [Plan.Add], it returns an error if a skill cannot be installed.
func (p *Plan) AddLocked(ctx context.Context) error {
	if err := p.verifyInstalled(ctx, p.lock.Names()); err != nil {
		return err
	}
	opened := map[remote.Location]*remote.Collection{} // several skills may share a source
	for _, name := range p.lock.Names() {
		if err := p.addLockedStep(ctx, name, opened); err != nil {
			return err
		}
	}
	return nil
}

func (p *Plan) addLockedStep(ctx context.Context, name string, opened map[remote.Location]*remote.Collection) error {
	e := p.lock.Skills[name]
	edits, err := p.localEdits(ctx, name)
	switch {
	case err != nil:
		return err
	case len(edits) == 0:
		if err := p.checkInstalledRelease(name, e); err != nil {
			return err
		}
		p.Steps = append(p.Steps, &Step{Skill: Skill{Name: name, Version: e.Version, State: StateUnchanged, From: e.From, Commit: e.Commit,
			Digest: e.Digest, Files: len(e.Files), Scripts: []string{}, Counter: e.Counter, Findings: []scan.Finding{}}, Entry: e})
		return nil
	case hasEdits(edits) && !p.options.Force:
		return &SkillError{Reason: LockMismatch, Name: name, Message: fmt.Sprintf("%s was edited and differs from loadout.lock (%s)", name, formatEdits(edits))}
	}
	at := e.From
	at.Dir = ""
	if at.Kind == remote.Git {
		at.Ref = e.Commit
	}
	if opened[at] == nil {
		if opened[at], err = p.Open(ctx, at); err != nil {
			return err
		}
	}
	i := slices.IndexFunc(opened[at].Skills, func(s remote.Skill) bool { return s.Dir == cmp.Or(e.From.Dir, ".") })
	if i < 0 {
		return &SkillError{Reason: Missing, Name: name, Message: fmt.Sprintf("skill %s not found at %s", name, e.From)}
	}
	return p.newLockedStep(ctx, name, opened[at], opened[at].Skills[i])
}

// newLockedStep adds a step for a skill, which must match the lockfile.
func (p *Plan) newLockedStep(ctx context.Context, name string, c *remote.Collection, s remote.Skill) error {
	defer p.progress("reading " + name)()
	st, err := newStep(ctx, c, s)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	p.Steps = append(p.Steps, st)
	e := p.lock.Skills[name]
	if st.Digest != e.Digest {
		return &SkillError{Reason: DigestMismatch, Name: name, Message: fmt.Sprintf("digest mismatch of %s: want %s, got %s from %s", name, e.Digest, st.Digest, e.From)}
	}
	st.Name, st.From, st.Entry = name, e.From, e
	if st.Publisher, err = p.checkPublisher(st); err != nil {
		return err
	}
	if st.Publisher != nil {
		st.Publisher.First = false // a lockfile must not introduce a publisher
	}
	if err := p.checkLockedRelease(name, e, releaseOf(st.Publisher)); err != nil {
		return err
	}
	st.Counter = e.Counter
	p.scan(ctx, st)
	return nil
}

// checkInstalledRelease checks the counter of an installed skill whose files
// match the lockfile. A match is not enough, because someone may have changed
// both the files and the lockfile.
func (p *Plan) checkInstalledRelease(name string, e installed.Entry) error {
	if e.Key == "" {
		return nil
	}
	b, err := skill.OpenDir(filepath.Join(p.dir.Path(), name))
	if err != nil {
		return err
	}
	defer b.Close()
	_, s, err := signature.VerifyBundle(b, e.Key)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return p.checkLockedRelease(name, e, s.Release)
}
