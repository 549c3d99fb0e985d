package install

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/loadout-dev/loadout/internal/installed"
	"github.com/loadout-dev/loadout/internal/printable"
	"github.com/loadout-dev/loadout/internal/remote"
)

// UpdateState is the state of an installed skill compared with its source.
type UpdateState string

// States of an [Update].
const (
	Current    UpdateState = "current"    // up to date
	Newer      UpdateState = "newer"      // another version is available
	EditedHere UpdateState = "edited"     // another version is available, but the user edited the skill
	PinnedTo   UpdateState = "pinned"     // pinned to a commit or tag
	Moved      UpdateState = "moved"      // the tag now points to another commit
	Gone       UpdateState = "gone"       // no longer at the source
	Renamed    UpdateState = "renamed"    // the name changed at the source
	Relocated  UpdateState = "relocated"  // the skill's directory no longer exists, but other skills have its name
	Unusable   UpdateState = "unusable"   // another version is available, but cannot be installed
	Unreadable UpdateState = "unreadable" // the source cannot be read
)

// Update is the result of comparing an installed skill with its source.
type Update struct {
	Name   string
	State  UpdateState
	Reason string // explanation for the user
	Commit string // installed commit
	Latest string // latest commit of the source
	// Err is the error from the source or the new version, if any.
	Err error
	// Location is where another version can be installed from: the same tag if
	// it moved, a newer tag, or the skill's new directory or name.
	Location *remote.Location
}

// CheckUpdates compares installed skills with their sources and adds steps for
// newer versions. It reads each source only once.
func (p *Plan) CheckUpdates(ctx context.Context, names []string) ([]Update, error) {
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
	var out []Update
	for _, at := range order {
		updates, err := p.checkSource(ctx, at, bySource[at])
		if err != nil {
			return nil, err
		}
		out = append(out, updates...)
	}
	slices.SortFunc(out, func(x, y Update) int { return cmp.Compare(x.Name, y.Name) })
	return out, nil
}

// Step returns the step for an installed skill, or nil if nothing would change.
func (p *Plan) Step(name string) *Step {
	if st := p.byName[name]; st != nil && st.State != StateUnchanged {
		return st
	}
	return nil
}

// checkSource checks the skills installed from one source. It returns an error
// only if ctx is done. If the source has a problem, each update reports it.
func (p *Plan) checkSource(ctx context.Context, at remote.Location, names []string) ([]Update, error) {
	updates := make([]Update, len(names))
	for i, name := range names {
		updates[i] = Update{Name: name, Commit: p.lock.Skills[name].Commit}
	}
	rev, err := p.options.Source.Latest(ctx, at)
	if err != nil {
		return markUnreadable(ctx, updates, err)
	}
	behind := false
	for i := range updates {
		u := &updates[i]
		u.compareRevision(p.lock.Skills[u.Name], rev)
		behind = behind || u.State == Newer
	}
	if !behind {
		return updates, nil
	}
	c, err := p.Open(ctx, at)
	if err != nil {
		return markUnreadable(ctx, updates, err)
	}
	defer p.progress("reading skills")()
	if err := p.verifyInstalled(ctx, names); err != nil {
		return markUnreadable(ctx, updates, err)
	}
	steps := len(p.Steps)
	for i := range updates {
		if updates[i].State != Newer {
			continue
		}
		p.checkSkill(ctx, c, &updates[i])
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
	}
	if len(p.Steps) == steps { // nothing to install from this source
		p.collections = p.collections[:len(p.collections)-1]
		return updates, c.Close()
	}
	return updates, nil
}

// markUnreadable sets the state of skills whose source could not be read.
func markUnreadable(ctx context.Context, updates []Update, err error) ([]Update, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	state := Unreadable
	// Git hosts respond with "not found" for private repositories too.
	if e, none := errors.AsType[*remote.NotFoundError](err); none && !strings.HasPrefix(e.What, "repository") {
		state = Gone
	}
	for i := range updates {
		updates[i].State, updates[i].Reason, updates[i].Err = state, err.Error(), err
	}
	return updates, nil
}

// compareRevision derives the state from the source's revision: Current,
// PinnedTo or Moved. If the files must be compared as well, it sets Newer.
func (u *Update) compareRevision(e installed.Entry, rev *remote.Revision) {
	u.State, u.Latest = Newer, rev.Commit
	at := func(ref string) *remote.Location {
		l := e.From
		l.Ref = ref
		return &l
	}
	tag := strings.HasPrefix(e.Ref, "refs/tags/")
	switch {
	case e.From.Kind != remote.Git:
	case tag && rev.Commit != e.Commit:
		u.State, u.Location = Moved, at(e.From.Ref)
		u.Reason = fmt.Sprintf("the tag %s moved to another commit (%s → %s)", e.From.Ref, shortCommit(e.Commit), shortCommit(rev.Commit))
	case tag:
		u.State, u.Reason = PinnedTo, "to "+e.From.Ref
		if newest := findNewerTag(e.From.Ref, rev.Tags); newest != "" {
			u.Reason, u.Location = "to "+e.From.Ref+"; available: "+newest, at(newest)
		}
	case e.Ref == "" && e.From.Ref != "": // a ref that is neither branch nor tag is a commit
		u.State, u.Reason = PinnedTo, "to a commit"
	case rev.Commit == e.Commit:
		u.State = Current
	}
}

// checkSkill finds an installed skill in its source and adds a step if its
// files changed.
func (p *Plan) checkSkill(ctx context.Context, c *remote.Collection, u *Update) {
	e := p.lock.Skills[u.Name]
	s, ok := u.findSkill(c.Skills, e)
	if !ok {
		return
	}
	err := p.addStep(ctx, c, s)
	st := p.byName[u.Name]
	mine, _ := errors.AsType[*SkillError](err)
	switch {
	case mine != nil && mine.Reason == Edited && mine.SourceUnchanged:
		u.State = Current
	case mine != nil && mine.Reason == Edited:
		u.State, u.Reason = EditedHere, "your edits to "+formatEdits(mine.Edits)+" are kept"
	case err != nil:
		u.State, u.Reason, u.Err = Unusable, err.Error(), err
	case st.Digest != e.Digest:
		u.Reason = formatUpdate(e, st)
	default: // only other files in the repository changed
		u.State = Current
		p.dropStep(st)
	}
}

// dropStep removes the most recently added step.
func (p *Plan) dropStep(st *Step) {
	st.close()
	delete(p.byName, st.Name)
	p.Steps = p.Steps[:len(p.Steps)-1]
}

func formatUpdate(e installed.Entry, st *Step) string {
	switch {
	case e.Version != "" && st.Version != "" && e.Version != st.Version:
		return "version " + e.Version + " → " + st.Version
	case st.Commit != "":
		return shortCommit(e.Commit) + " → " + shortCommit(st.Commit)
	}
	return "changed files"
}

// findSkill finds an installed skill in its source by directory. If only
// another directory contains a skill with the same name, findSkill sets the
// state but does not return the skill, because it may be a different one.
func (u *Update) findSkill(all []remote.Skill, e installed.Entry) (remote.Skill, bool) {
	at := func(s remote.Skill) *remote.Location {
		l := e.From
		l.Dir = s.Dir
		return &l
	}
	var named []remote.Skill
	for _, s := range all {
		switch name := Name(e.From, s); {
		case s.Dir == cmp.Or(e.From.Dir, ".") && name == u.Name:
			return s, true
		case s.Dir == cmp.Or(e.From.Dir, "."):
			u.State, u.Reason, u.Location = Renamed, fmt.Sprintf("it was renamed to %s", printable.OneLine(s.Name)), at(s)
			return s, false
		case name == u.Name:
			named = append(named, s)
		}
	}
	if len(named) == 0 {
		u.State, u.Reason = Gone, "no longer at its source; your copy stays"
		if e.From.Kind == remote.Index {
			u.Reason = "no longer in the index of its source: it was deleted or withdrawn, or you may no longer use it; your copy stays"
		}
		return remote.Skill{}, false
	}
	dirs := make([]string, 0, len(named))
	for _, s := range named {
		dirs = append(dirs, printable.OneLine(s.Dir))
	}
	u.State, u.Reason, u.Location = Relocated, "its directory no longer exists; its name is now used by "+strings.Join(dirs, " and "), at(named[0])
	return remote.Skill{}, false
}
