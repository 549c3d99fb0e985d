package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/loadout-dev/loadout/internal/console"
	"github.com/loadout-dev/loadout/internal/exit"
	"github.com/loadout-dev/loadout/internal/install"
	"github.com/loadout-dev/loadout/internal/remote"
	"github.com/loadout-dev/loadout/internal/setup"
	"github.com/loadout-dev/loadout/skill"
)

// describeUpdates returns the results of an update check with the next steps.
func (a *app) describeUpdates(updates []install.Update, p *plan) []checkedSkill {
	out := make([]checkedSkill, 0, len(updates))
	for _, u := range updates {
		c := checkedSkill{Name: u.Name, Directory: p.to.Path(), State: string(u.State), Reason: u.Reason, Commit: u.Commit, Latest: u.Latest, update: u}
		switch u.State {
		case install.Relocated:
			c.State = "renamed"
		case install.Unreadable:
			c.State = "unknown"
		case install.Unusable:
			c.State = "unknown"
			if code, _ := a.planErrorHint(u.Err, p.to); code == exit.Refused || isType[*skill.RefusedError](u.Err) {
				c.State = "refused"
			}
		}
		c.Fix = a.updateHint(u, p.to)
		out = append(out, c)
	}
	return out
}

// updateHint returns the next step for an installed skill, or "" if there is
// none.
func (a *app) updateHint(u install.Update, to setup.SkillsDir) string {
	name := console.ShellQuote(u.Name)
	again := func(at *remote.Location) string { return "loadout add " + console.ShellQuote(at.String()) + to.Flag() }
	if u.Err != nil {
		_, fix := a.planErrorHint(u.Err, to)
		return fix
	}
	switch u.State {
	case install.Moved:
		return "find out why; to install it anyway: " + again(u.Location) + " --force"
	case install.PinnedTo:
		if u.Location != nil {
			return "to install it: " + again(u.Location)
		}
	case install.EditedHere:
		return "see the differences: loadout verify " + name + to.Flag() + "; to discard your edits: loadout update " + name + to.Flag() + " --force"
	case install.Renamed:
		return fmt.Sprintf("to follow it: %s; then: loadout remove %s%s", again(u.Location), name, to.Flag())
	case install.Relocated:
		return "if it is the same skill: " + again(u.Location) + " --force"
	case install.Gone:
		return "if you do not need it: loadout remove " + name + to.Flag()
	}
	return ""
}

type availableUpdate = install.AvailableUpdate

// saveUpdates replaces the saved updates for the skills that were checked in
// each directory.
func (a *app) saveUpdates(ctx context.Context, all []setup.SkillsDir, updates [][]install.Update) error {
	file := a.UpdatesFile()
	if file == nil {
		return nil
	}
	for i, p := range all {
		if err := file.Save(ctx, p.Dir, updates[i]); err != nil {
			return err
		}
	}
	return nil
}

// availableUpdates returns the saved updates of skills that have not changed
// since the check.
func (a *app) availableUpdates() []availableUpdate {
	file := a.UpdatesFile()
	if file == nil {
		return nil
	}
	return file.List()
}

// updateReasons maps the path of each installed skill that has an update to the
// reason for the update.
func updateReasons(all []availableUpdate) map[string]string {
	at := map[string]string{}
	for _, n := range all {
		at[filepath.Join(n.Directory, n.Name)] = n.Reason
	}
	return at
}

// formatUpdateCount returns the number of updates as text.
func formatUpdateCount(all []availableUpdate) string {
	if len(all) == 1 {
		return "1 update is available"
	}
	return fmt.Sprintf("%d updates are available", len(all))
}

func formatUpdateNames(all []availableUpdate) string {
	const most = 5
	var names []string
	for i, n := range all {
		if i == most {
			names = append(names, fmt.Sprintf("and %d more", len(all)-most))
			break
		}
		names = append(names, plain(n.Name))
	}
	return strings.Join(names, ", ")
}
