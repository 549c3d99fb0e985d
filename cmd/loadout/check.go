package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/loadout-dev/loadout/internal/installed"
	"github.com/loadout-dev/loadout/internal/remote"
	"github.com/loadout-dev/loadout/skill"
)

// checkUpdates compares installed skills with their sources, source by source,
// and adds steps for newer versions.
func (p *plan) checkUpdates(ctx context.Context, names []string) ([]checkedSkill, error) {
	bySource := map[remote.Location][]string{}
	var order []remote.Location
	for _, name := range names {
		at := p.lock.Skills[name].From
		at.Dir = ""
		if bySource[at] == nil {
			order = append(order, at)
		}
		bySource[at] = append(bySource[at], name)
	}
	var out []checkedSkill
	for _, at := range order {
		checks, err := p.checkSource(ctx, at, bySource[at])
		if err != nil {
			return nil, err
		}
		out = append(out, checks...)
	}
	slices.SortFunc(out, func(x, y checkedSkill) int { return cmp.Compare(x.Name, y.Name) })
	return out, nil
}

// checkSource checks the skills of one source. It returns an error only if ctx
// ends; problems of the source are reported with each skill.
func (p *plan) checkSource(ctx context.Context, at remote.Location, names []string) ([]checkedSkill, error) {
	checks := make([]checkedSkill, len(names))
	for i, name := range names {
		checks[i] = checkedSkill{Name: name, Directory: p.to.Path(), Commit: p.lock.Skills[name].Commit}
	}
	rev, err := p.fetcher.latestRevision(ctx, at)
	if err != nil {
		return p.markUnchecked(ctx, checks, err)
	}
	behind := false
	for i := range checks {
		c := &checks[i]
		c.compareRevision(p.lock.Skills[c.Name], rev, p.to.flag())
		behind = behind || c.State == "newer"
	}
	if !behind {
		return checks, nil
	}
	offer, err := p.fetchOffer(ctx, at)
	if err != nil {
		return p.markUnchecked(ctx, checks, err)
	}
	defer p.fetcher.meter.begin("reading skills")()
	if err := p.verifyInstalled(ctx, names); err != nil {
		return p.markUnchecked(ctx, checks, err)
	}
	steps := len(p.steps)
	for i := range checks {
		if checks[i].State != "newer" {
			continue
		}
		p.checkSkill(ctx, offer, &checks[i])
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
	}
	if len(p.steps) == steps { // nothing to install from this offer
		p.offers = p.offers[:len(p.offers)-1]
		return checks, offer.Close()
	}
	return checks, nil
}

// markUnchecked sets the state of skills whose source could not be read.
func (p *plan) markUnchecked(ctx context.Context, checks []checkedSkill, err error) ([]checkedSkill, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	state := "unknown"
	// Git hosts answer "not found" for private repositories too.
	if e, none := errors.AsType[*remote.NotFoundError](err); none && !strings.HasPrefix(e.What, "repository") {
		state = "gone"
	}
	_, fix := p.skillErrorHint(err)
	for i := range checks {
		checks[i].State, checks[i].Reason, checks[i].Fix = state, err.Error(), fix
	}
	return checks, nil
}

// compareRevision sets the state for a revision of the source: current, newer
// (its files have to be compared), pinned or moved.
func (c *checkedSkill) compareRevision(e installed.Entry, rev *remote.Revision, flag string) {
	c.State, c.Latest = "newer", rev.Commit
	again := func(ref string) string {
		to := e.From
		to.Ref = ref
		return "loadout add " + shellQuote(to.String()) + flag
	}
	tag := strings.HasPrefix(e.Ref, "refs/tags/")
	switch {
	case e.From.Kind != remote.Git:
	case tag && rev.Commit != e.Commit:
		c.State, c.Fix = "moved", "find out why; to install it anyway: "+again(e.From.Ref)+" --force"
		c.Reason = fmt.Sprintf("the tag %s moved to another commit (%s → %s)", e.From.Ref, shortCommit(e.Commit), shortCommit(rev.Commit))
	case tag:
		c.State, c.Reason = "pinned", "to "+e.From.Ref
		if newest := findNewerTag(e.From.Ref, rev.Tags); newest != "" {
			c.Reason, c.Fix = "to "+e.From.Ref+"; available: "+newest, "to install it: "+again(newest)
		}
	case e.Ref == "" && e.From.Ref != "": // a ref that is neither branch nor tag is a commit
		c.State, c.Reason = "pinned", "to a commit"
	case rev.Commit == e.Commit:
		c.State = "current"
	}
}

// checkSkill finds a skill in an offer and adds a step if its files changed.
func (p *plan) checkSkill(ctx context.Context, offer *remote.Collection, c *checkedSkill) {
	e := p.lock.Skills[c.Name]
	s, ok := c.findSkill(offer.Skills, e, p.to)
	if !ok {
		return
	}
	err := p.addStep(ctx, offer, s)
	st := p.byName[c.Name]
	mine, isEdited := errors.AsType[*editedError](err)
	switch {
	case isEdited && mine.same:
		c.State = "current"
	case isEdited:
		c.State, c.Reason = "edited", "your edits to "+formatEdits(mine.edits)+" are kept"
		c.Fix = "see the differences: loadout verify " + shellQuote(c.Name) + p.to.flag() + "; to discard your edits: loadout update " + shellQuote(c.Name) + p.to.flag() + " --force"
	case err != nil:
		code, fix := p.skillErrorHint(err)
		c.State, c.Reason, c.Fix = "unknown", err.Error(), fix
		if code == exitRefused || isType[*skill.RefusedError](err) {
			c.State = "refused"
		}
	case st.Digest != e.Digest:
		c.Reason = formatUpdate(e, st)
	default: // only other files of the repository changed
		c.State = "current"
		p.dropStep(st)
	}
}

// dropStep removes the step that was added last.
func (p *plan) dropStep(st *step) {
	st.close()
	delete(p.byName, st.Name)
	p.steps = p.steps[:len(p.steps)-1]
}

func formatUpdate(e installed.Entry, st *step) string {
	switch {
	case e.Version != "" && st.Version != "" && e.Version != st.Version:
		return "version " + e.Version + " → " + st.Version
	case st.Commit != "":
		return shortCommit(e.Commit) + " → " + shortCommit(st.Commit)
	}
	return "changed files"
}

func shortCommit(c string) string { return c[:min(12, len(c))] }

// findSkill finds an installed skill in its source by its directory. A skill of
// the same name elsewhere is only reported, because it may be another skill.
func (c *checkedSkill) findSkill(all []remote.Skill, e installed.Entry, to skillsDir) (remote.Skill, bool) {
	var named []remote.Skill
	at := func(s remote.Skill) string { // the location of s, as the user types it
		l := e.From
		l.Dir = s.Dir
		return shellQuote(l.String())
	}
	for _, s := range all {
		switch name := installName(e.From, s); {
		case s.Dir == cmp.Or(e.From.Dir, ".") && name == c.Name:
			return s, true
		case s.Dir == cmp.Or(e.From.Dir, "."):
			c.State, c.Reason = "renamed", fmt.Sprintf("its name there is now %s", skill.OneLine(s.Name))
			c.Fix = fmt.Sprintf("to follow it: loadout add %s%s; then: loadout remove %s%s", at(s), to.flag(), shellQuote(c.Name), to.flag())
			return s, false
		case name == c.Name:
			named = append(named, s)
		}
	}
	if len(named) == 0 {
		c.State, c.Reason = "gone", "no longer at its source; your copy stays"
		c.Fix = "if you do not need it: loadout remove " + shellQuote(c.Name) + to.flag()
		return remote.Skill{}, false
	}
	dirs := make([]string, 0, len(named))
	for _, s := range named {
		dirs = append(dirs, skill.OneLine(s.Dir))
	}
	c.State, c.Reason = "renamed", "its directory is gone; its name is now used by "+strings.Join(dirs, " and ")
	c.Fix = "if it is the same skill: loadout add " + at(named[0]) + to.flag() + " --force"
	return remote.Skill{}, false
}
