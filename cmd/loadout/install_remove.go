package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/loadout-dev/loadout/internal/exit"
	"github.com/loadout-dev/loadout/internal/setup"
)

// removeFlags holds the flags of the remove command.
type removeFlags struct {
	setup.InstallFlags
	force bool
}

type removeOutput struct {
	Removed []removedSkill `json:"removed"`
}

type removedSkill struct {
	Name      string `json:"name"`
	Directory string `json:"directory"`
	Digest    string `json:"digest"`
}

func (a *app) removeCommand() *cobra.Command {
	var o removeFlags
	cmd := &cobra.Command{
		Use:     "remove NAME...",
		Aliases: []string{"rm", "uninstall"},
		Short:   "Remove installed skills",
		Long: `Remove skills installed by loadout add, and their entries in loadout.lock. Skills that
you wrote or copied yourself are never removed. Skills that you edited are removed only
with --force.`,
		Example: "  loadout remove pdf\n  loadout remove pdf docx --scope project",
		Args:    argCount(1, -1, "the NAME of a skill"),
		RunE:    func(cmd *cobra.Command, args []string) error { return a.removeSkills(cmd.Context(), args, &o) },
	}
	registerInstallFlags(&o.InstallFlags, cmd.Flags(), true)
	cmd.Flags().BoolVar(&o.force, "force", false, "remove skills even if you edited them")
	cmd.ValidArgsFunction = a.completeInstalled
	return cmd
}

func (a *app) removeSkills(ctx context.Context, names []string, o *removeFlags) error {
	all, err := a.InstallDirs(o.InstallFlags)
	if err != nil {
		return err
	}
	mine, err := setup.InstalledNames(all, names)
	if err != nil {
		return err
	}
	if err := checkUnambiguous(mine); err != nil {
		return err
	}
	out := removeOutput{Removed: []removedSkill{}}
	for i, p := range all {
		if len(mine[i]) == 0 {
			continue
		}
		removed, err := removeFrom(ctx, p, mine[i], o.force)
		if err != nil {
			return err
		}
		out.Removed = append(out.Removed, removed...)
	}
	if a.JSON {
		return a.PrintJSON(out)
	}
	for _, r := range out.Removed {
		fmt.Fprintf(a.Stdout, "Removed %s from %s\n", r.Name, r.Directory)
	}
	return nil
}

// checkUnambiguous returns an error if a skill with the given name is installed
// in several directories.
func checkUnambiguous(byDir [][]string) error {
	seen := map[string]bool{}
	for _, name := range slices.Concat(byDir...) {
		if seen[name] {
			return exit.Errorf(exit.Usage, "choose with --scope user or --scope project", "skill %s is installed both for you and for the project", name)
		}
		seen[name] = true
	}
	return nil
}

// removeFrom removes skills from one directory. It removes all of them or none.
func removeFrom(ctx context.Context, p setup.SkillsDir, names []string, force bool) ([]removedSkill, error) {
	change, err := p.Begin(ctx)
	if err != nil {
		return nil, err
	}
	defer change.Close()
	lock := change.Lockfile()
	remove := change.Remove
	if force {
		remove = change.ForceRemove
	}
	var removed []removedSkill
	for _, name := range names {
		if err := remove(ctx, name); err != nil {
			return nil, err
		}
		removed = append(removed, removedSkill{name, p.Path(), lock.Skills[name].Digest})
	}
	return removed, change.Commit(ctx)
}

// completeInstalled completes the names of installed skills.
func (a *app) completeInstalled(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	all, err := a.InstallDirs(setup.InstallFlags{})
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []string
	for _, p := range all {
		if lock, err := p.Lockfile(); err == nil {
			names = append(names, lock.Names()...)
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
