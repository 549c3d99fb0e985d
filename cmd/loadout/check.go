package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/loadout-dev/loadout/installed"
	"github.com/loadout-dev/loadout/remote"
	"github.com/loadout-dev/loadout/skill"
)

// check compares what is installed with what is there now, place by place, and makes
// steps of what is newer.
func (p *plan) check(ctx context.Context, names []string) ([]checkedSkill, error) {
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

// checkSource looks at the skills that are from one place. Its error is that of ctx: what
// is wrong with the place is said of each skill.
func (p *plan) checkSource(ctx context.Context, at remote.Location, names []string) ([]checkedSkill, error) {
	checks := make([]checkedSkill, len(names))
	for i, name := range names {
		checks[i] = checkedSkill{Name: name, Directory: p.to.Path(), Commit: p.lock.Skills[name].Commit}
	}
	rev, err := p.from.latest(ctx, at)
	if err != nil {
		return p.unseen(ctx, checks, err)
	}
	behind := false
	for i := range checks {
		c := &checks[i]
		c.refState(p.lock.Skills[c.Name], rev, p.to.flag())
		behind = behind || c.State == "newer"
	}
	if !behind {
		return checks, nil
	}
	offer, err := p.look(ctx, at)
	if err != nil {
		return p.unseen(ctx, checks, err)
	}
	defer p.from.meter.begin("reading skills")()
	if err := p.verify(ctx, names); err != nil {
		return p.unseen(ctx, checks, err)
	}
	steps := len(p.steps)
	for i := range checks {
		if checks[i].State != "newer" {
			continue
		}
		p.renew(ctx, offer, &checks[i])
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
	}
	if len(p.steps) == steps { // nothing is needed of it any more
		p.offers = p.offers[:len(p.offers)-1]
		return checks, offer.Close()
	}
	return checks, nil
}

// unseen says of skills why their place could not be looked at.
func (p *plan) unseen(ctx context.Context, checks []checkedSkill, err error) ([]checkedSkill, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	state := "unknown"
	// Hosts say of what is private that it is not there.
	if e, none := errors.AsType[*remote.NotFoundError](err); none && !strings.HasPrefix(e.What, "repository") {
		state = "gone"
	}
	_, fix := p.advice(err)
	for i := range checks {
		checks[i].State, checks[i].Reason, checks[i].Fix = state, err.Error(), fix
	}
	return checks, nil
}

// refState says what a revision means for a skill: current, newer (its files have to be
// looked at), pinned or moved.
func (c *checkedSkill) refState(e installed.Entry, rev *remote.Revision, flag string) {
	c.State, c.Latest = "newer", rev.Commit
	again := func(ref string) string {
		to := e.From
		to.Ref = ref
		return "loadout add " + quoted(to.String()) + flag
	}
	tag := strings.HasPrefix(e.Ref, "refs/tags/")
	switch {
	case e.From.Kind != remote.Git:
	case tag && rev.Commit != e.Commit:
		c.State, c.Fix = "moved", "find out why; to take it all the same: "+again(e.From.Ref)+" --force"
		c.Reason = fmt.Sprintf("the tag %s names another commit than it did (%s → %s)", e.From.Ref, shortCommit(e.Commit), shortCommit(rev.Commit))
	case tag:
		c.State, c.Reason = "pinned", "to "+e.From.Ref
		if newest := newestTag(e.From.Ref, rev.Tags); newest != "" {
			c.Reason, c.Fix = "to "+e.From.Ref+"; there is "+newest, "to have it: "+again(newest)
		}
	case e.Ref == "" && e.From.Ref != "": // what no branch or tag has followed is a commit
		c.State, c.Reason = "pinned", "to a commit"
	case rev.Commit == e.Commit:
		c.State = "current"
	}
}

// renew finds a skill in an offer, and makes a step of it if it is another there.
func (p *plan) renew(ctx context.Context, offer *remote.Offer, c *checkedSkill) {
	e := p.lock.Skills[c.Name]
	s, ok := c.find(offer.Skills, e, p.to)
	if !ok {
		return
	}
	err := p.read(ctx, offer, s)
	st := p.byName[c.Name]
	mine, isEdited := errors.AsType[*editedError](err)
	switch {
	case isEdited && mine.same:
		c.State = "current"
	case isEdited:
		c.State, c.Reason = "edited", "you have edited "+editsText(mine.edits)+", and it is kept"
		c.Fix = "see what differs: loadout verify " + quoted(c.Name) + p.to.flag() + "; to lose your changes: loadout update " + quoted(c.Name) + p.to.flag() + " --force"
	case err != nil:
		code, fix := p.advice(err)
		c.State, c.Reason, c.Fix = "unknown", err.Error(), fix
		if code == exitRefused || isType[*skill.RefusedError](err) {
			c.State = "refused"
		}
	case st.Digest != e.Digest:
		c.Reason = newerText(e, st)
	default: // other files of the repository changed
		c.State = "current"
		p.drop(st)
	}
}

// drop takes back the step that was made last.
func (p *plan) drop(st *step) {
	st.close()
	delete(p.byName, st.Name)
	p.steps = p.steps[:len(p.steps)-1]
}

func newerText(e installed.Entry, st *step) string {
	switch {
	case e.Version != "" && st.Version != "" && e.Version != st.Version:
		return "version " + e.Version + " → " + st.Version
	case st.Commit != "":
		return shortCommit(e.Commit) + " → " + shortCommit(st.Commit)
	}
	return "other files"
}

func shortCommit(c string) string { return c[:min(12, len(c))] }

// find looks for an installed skill in what is there now: in its directory, else by its
// name, which is only told, as it may be another skill.
func (c *checkedSkill) find(all []remote.Skill, e installed.Entry, to place) (remote.Skill, bool) {
	var named []remote.Skill
	at := func(s remote.Skill) string { // of s, as it is typed
		l := e.From
		l.Dir = s.Dir
		return quoted(l.String())
	}
	for _, s := range all {
		switch name := dirName(e.From, s); {
		case s.Dir == cmp.Or(e.From.Dir, ".") && name == c.Name:
			return s, true
		case s.Dir == cmp.Or(e.From.Dir, "."):
			c.State, c.Reason = "renamed", fmt.Sprintf("it is named %s there now", skill.OneLine(s.Name))
			c.Fix = fmt.Sprintf("to follow it: loadout add %s%s; then: loadout remove %s%s", at(s), to.flag(), quoted(c.Name), to.flag())
			return s, false
		case name == c.Name:
			named = append(named, s)
		}
	}
	if len(named) == 0 {
		c.State, c.Reason = "gone", "it is no longer there, and yours stays"
		c.Fix = "if you do not need it: loadout remove " + quoted(c.Name) + to.flag()
		return remote.Skill{}, false
	}
	dirs := make([]string, 0, len(named))
	for _, s := range named {
		dirs = append(dirs, skill.OneLine(s.Dir))
	}
	c.State, c.Reason = "renamed", "its directory is no longer there, and its name is that of "+strings.Join(dirs, " and of ")
	c.Fix = "if that is the same skill: loadout add " + at(named[0]) + to.flag() + " --force"
	return remote.Skill{}, false
}
