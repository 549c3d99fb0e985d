package chat

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/config"
	"github.com/loadout-dev/loadout/internal/skillfile"
	"github.com/loadout-dev/loadout/internal/sources"
	"github.com/loadout-dev/loadout/internal/terminal"
	"github.com/loadout-dev/loadout/policy"
)

// workspaceLabel is the origin of skills in the working directory of a chat.
const workspaceLabel = "workspace"

// confirmProjectSkills asks the user once per project whether its skills may
// instruct the agent, because someone else may have written them. It excludes
// the skills of declined projects. It does not ask about trusted projects. It
// asks nothing if the user selected the skills or if no user can answer; policy
// rules then decide what the agent may do.
func (h *Host) confirmProjectSkills(ctx context.Context, c *config.Config, o *Flags) error {
	if o.confirm == nil || len(h.Skills) > 0 {
		return nil // no user can answer, or the user selected the skills
	}
	rt, err := h.newChatRuntime(ctx, c, o, nil)
	if err != nil {
		return err
	}
	defer rt.Close()
	found := map[string][]string{} // skill names by project
	for e := range rt.Catalog().Snapshot().All() {
		if e.Scope == catalog.Project {
			dir := h.skillProject(e, o)
			found[dir] = append(found[dir], terminal.Plain(e.Name))
		}
	}
	for _, dir := range slices.Sorted(maps.Keys(found)) {
		wanted, err := h.projectAllowed(ctx, dir)
		if err != nil {
			return err
		}
		if wanted {
			continue
		}
		names := slices.Compact(slices.Sorted(slices.Values(found[dir])))
		fmt.Fprintf(o.confirmTo, "The project %s has skills. Skills instruct the agent:\n  %s\n", terminal.Plain(dir), terminal.Clip(strings.Join(names, ", "), 300))
		yes, err := o.confirm(ctx, "Use these skills?")
		switch {
		case err != nil:
			return err
		case !yes:
			o.excludedProjects = append(o.excludedProjects, dir)
			fmt.Fprintln(o.confirmTo, "Skipped.")
		default:
			if err := h.allowProject(ctx, dir); err != nil {
				return err
			}
		}
	}
	return nil
}

// skillProject returns the root directory of the project that contains a skill.
func (h *Host) skillProject(e *catalog.Entry, o *Flags) string {
	dir := ""
	if e.Origin == workspaceLabel {
		dir = h.skillProjectDir(o.Workspace)
	} else if _, dir = config.ProjectFile(h.ConfigInput().WorkDir); dir == "" {
		dir = h.skillProjectDir("")
	}
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	return dir
}

// projectAllowed reports whether the user allowed a project's skills or trusts
// the project.
func (h *Host) projectAllowed(ctx context.Context, dir string) (bool, error) {
	_, err := h.UserGrants().Find(ctx, policy.LocalUser(), projectSkillsDigest(dir), "")
	if err == nil {
		return true, nil
	}
	if !errors.Is(err, policy.ErrNotGranted) {
		return false, fmt.Errorf("check permission to use skills of %s: %w", dir, err)
	}
	p, err := h.ReadProject(dir)
	return err == nil && p.Trusted, nil
}

// allowProject records that the user allows a project's skills.
func (h *Host) allowProject(ctx context.Context, dir string) error {
	kept, err := h.UserGrants().Put(ctx, policy.Grant{Principal: policy.LocalUser(), By: policy.LocalUser(), Subject: projectSkillsDigest(dir), Name: dir, Origin: "skills of a project", Scope: policy.Always, Presence: answeredInChat})
	if err != nil {
		return fmt.Errorf("allow skills of %s: %w", dir, err)
	}
	return h.RecordGrant(ctx, "approve", kept)
}

// projectSkillsDigest returns the digest that identifies the permission for a
// project's skills. It depends only on the directory, not on the skills.
func projectSkillsDigest(dir string) policy.Digest {
	return policy.Digest("sha256:" + skillfile.Hash([]byte("skills of the project "+dir)))
}

// skillWait is the maximum time that a chat waits for slow skill directories.
// It is longer than the usual limit for searching a project, because the chat
// asks the user about all skills in the project.
const skillWait = 8 * time.Second

// newChatRuntime opens the skills for a chat. They include those in the working
// directory, but not those of excluded projects.
func (h *Host) newChatRuntime(ctx context.Context, c *config.Config, o *Flags, chosen []string) (*loadout.Runtime, error) {
	own := *c
	h.SkillWait, h.ServerFiles = skillWait, o.Files
	var more []sources.Location
	for _, dir := range o.excludedProjects {
		if dir == h.skillProject(&catalog.Entry{}, o) {
			own.Skills.Project = false
		}
	}
	if o.Workspace != "" && !slices.Contains(o.excludedProjects, h.skillProject(&catalog.Entry{Origin: workspaceLabel}, o)) {
		more = append(more, sources.Location{Path: filepath.Join(h.skillProjectDir(o.Workspace), ".loadout", "skills"), Scope: catalog.Project, Label: workspaceLabel, Optional: true, Within: h.skillProjectDir(o.Workspace)})
	}
	return h.NewRuntimeWith(ctx, &own, true, chosen, more...)
}
