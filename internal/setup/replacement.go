package setup

import (
	"context"
	"fmt"
	"slices"

	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/config"
	"github.com/loadout-dev/loadout/internal/console"
	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/skill"
)

// confirmReplacement returns a function for [catalog.Options.Confirm]. A skill of
// an untrusted project that would replace another is pending until the user
// approved its current version. Directories given with --skills are the user's
// choice, so none of their skills is pending.
func (s *Setup) confirmReplacement(c *config.Config) func(catalog.Replacement, func() (skill.Manifest, error)) string {
	if s.ShowPending || len(s.Skills) > 0 {
		return nil
	}
	return func(r catalog.Replacement, manifest func() (skill.Manifest, error)) string {
		if s.isProjectTrusted() || s.isVersionApproved(c, r.Entry.Name, manifest) {
			return ""
		}
		return fmt.Sprintf("pending: the project's skill would replace %s until you confirm it with `loadout approve %s`", r.Replaced.Key(), console.ShellQuote(r.Entry.Key()))
	}
}

// isProjectTrusted reports whether the user trusts the project around the working
// directory.
func (s *Setup) isProjectTrusted() bool {
	file, root := config.ProjectFile(s.ConfigInput().WorkDir)
	dirs := []string{root}
	if file != "" {
		dirs = append(dirs, config.ProjectDir(file))
	}
	return slices.ContainsFunc(dirs, func(dir string) bool {
		if dir == "" {
			return false
		}
		p, err := s.ReadProject(dir)
		return err == nil && p.Trusted
	})
}

// isVersionApproved reports whether the user or the configuration approved the
// version of a skill with these files. It reads the files only if a version of
// that name is approved.
func (s *Setup) isVersionApproved(c *config.Config, name string, manifest func() (skill.Manifest, error)) bool {
	ctx := context.Background()
	grants, _, err := s.GrantStore().List(ctx)
	known := err == nil && slices.ContainsFunc(grants, func(g policy.Grant) bool { return g.Name == name })
	stated := func(digest string) bool { return slices.Contains(c.Policy.Approved, name+"="+digest) }
	if !known && len(c.Policy.Approved) == 0 {
		return false
	}
	m, err := manifest()
	if err != nil {
		return false
	}
	if stated(m.Digest()) {
		return true
	}
	g, err := s.GrantStore().Find(ctx, policy.LocalUser(), policy.Digest(m.Digest()), "")
	return err == nil && g.Permissions.Run
}
