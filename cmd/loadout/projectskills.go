package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/config"
	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/skill"
)

// workspaceLabel is the origin of the skills in the folder that a chat works on.
const workspaceLabel = "workspace"

// projectSkills asks the person, once for each project, whether its skills may tell the
// agent what to do: whoever opens a folder need not have written what is in it. Those
// of a project that they do not want are left out of everything. Nobody is asked about
// a project that is trusted, or where no person is there: then the skills are offered,
// and what an agent may do is what rules allow.
func (a *app) projectSkills(ctx context.Context, c *config.Config, o *chatFlags) error {
	if o.confirm == nil || len(a.skills) > 0 {
		return nil // nobody is there, or the person named the skills
	}
	rt, err := a.chatRuntime(ctx, c, o, nil)
	if err != nil {
		return err
	}
	defer rt.Close()
	found := map[string][]string{} // names, by project
	for e := range rt.Catalog().Snapshot().All() {
		if e.Scope == catalog.Project {
			dir := a.projectOf(e, o)
			found[dir] = append(found[dir], plain(e.Name))
		}
	}
	for _, dir := range slices.Sorted(maps.Keys(found)) {
		wanted, err := a.wanted(ctx, dir)
		if err != nil {
			return err
		}
		if wanted {
			continue
		}
		names := slices.Compact(slices.Sorted(slices.Values(found[dir])))
		fmt.Fprintf(o.confirmTo, "The project %s has skills, which tell an agent what to do:\n  %s\n", plain(dir), clip(strings.Join(names, ", "), 300))
		yes, err := o.confirm(ctx, "Use them?")
		switch {
		case err != nil:
			return err
		case !yes:
			o.unwanted = append(o.unwanted, dir)
			fmt.Fprintln(o.confirmTo, "They are left out.")
		default:
			if err := a.want(ctx, dir); err != nil {
				return err
			}
		}
	}
	return nil
}

// projectOf is the project that a skill is of.
func (a *app) projectOf(e *catalog.Entry, o *chatFlags) string {
	dir := ""
	if e.Origin == workspaceLabel {
		dir = a.projectDir(o.workspace)
	} else if _, dir = config.ProjectFile(a.configInput().WorkDir); dir == "" {
		dir = a.projectDir("")
	}
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	return dir
}

// wanted reports whether the skills of a project may be used: the person said so, or
// trusts it. What cannot be read is an error, and not wanted.
func (a *app) wanted(ctx context.Context, dir string) (bool, error) {
	_, err := a.grants().Find(ctx, policy.Local(), skillsOf(dir), "")
	if err == nil {
		return true, nil
	}
	if !errors.Is(err, policy.ErrNotGranted) {
		return false, fmt.Errorf("whether the skills of %s may be used: %w", dir, err)
	}
	p, err := a.readProject(dir)
	return err == nil && p.trusted, nil
}

// want keeps that the skills of a project may be used.
func (a *app) want(ctx context.Context, dir string) error {
	kept, err := a.grants().Put(ctx, policy.Grant{Principal: policy.Local(), By: policy.Local(), Subject: skillsOf(dir), Name: dir, Origin: "skills of a project", Scope: policy.Always})
	if err != nil {
		return fmt.Errorf("keep that the skills of %s may be used: %w", dir, err)
	}
	return a.record(ctx, "approve", kept)
}

// skillsOf stands for the skills of a project, whatever they are.
func skillsOf(dir string) policy.Digest {
	return policy.Digest("sha256:" + skill.Hash([]byte("skills of the project "+dir)))
}

// chatRuntime knows the skills of the folder that the person named, too, and none of
// projects whose skills they do not want.
func (a *app) chatRuntime(ctx context.Context, c *config.Config, o *chatFlags, chosen []string) (*loadout.Runtime, error) {
	own := *c
	var more []loadout.Place
	for _, dir := range o.unwanted {
		if dir == a.projectOf(&catalog.Entry{}, o) {
			own.Skills.Project = false
		}
	}
	if o.workspace != "" && !slices.Contains(o.unwanted, a.projectOf(&catalog.Entry{Origin: workspaceLabel}, o)) {
		more = append(more, loadout.Place{Path: filepath.Join(a.projectDir(o.workspace), ".loadout", "skills"), Scope: catalog.Project, Label: workspaceLabel, Optional: true})
	}
	return a.runtimeOf(ctx, &own, true, chosen, more...)
}
