package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
)

// removeFlags are the flags of loadout remove.
type removeFlags struct {
	installFlags
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
		Short:   "Remove skills that loadout add brought",
		Long: `Remove skills that loadout add brought, and their entries in loadout.lock. What you
wrote or copied yourself is never removed, and what you have edited only with --force.`,
		Example: "  loadout remove pdf\n  loadout remove pdf docx --scope project",
		Args:    want(1, -1, "the NAME of a skill"),
		RunE:    func(cmd *cobra.Command, args []string) error { return a.remove(cmd.Context(), args, &o) },
	}
	o.flags(cmd.Flags(), true)
	cmd.Flags().BoolVar(&o.force, "force", false, "remove also what you have edited")
	cmd.ValidArgsFunction = a.completeInstalled
	return cmd
}

func (a *app) remove(ctx context.Context, names []string, o *removeFlags) error {
	all, err := a.places(o.installFlags)
	if err != nil {
		return err
	}
	mine, err := brought(all, names)
	if err != nil {
		return err
	}
	if err := inOnePlace(mine); err != nil {
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
	if a.json {
		return a.printJSON(out)
	}
	for _, r := range out.Removed {
		fmt.Fprintf(a.stdout, "Removed %s from %s\n", r.Name, r.Directory)
	}
	return nil
}

// inOnePlace refuses a name that several places have.
func inOnePlace(byPlace [][]string) error {
	seen := map[string]bool{}
	for _, name := range slices.Concat(byPlace...) {
		if seen[name] {
			return fail(exitUsage, "say which, with --scope user or --scope project", "there is a %s for you and one for the project", name)
		}
		seen[name] = true
	}
	return nil
}

// removeFrom removes skills of one place, all or none.
func removeFrom(ctx context.Context, p place, names []string, force bool) ([]removedSkill, error) {
	change, err := p.Begin(ctx)
	if err != nil {
		return nil, err
	}
	defer change.Close()
	lock := change.Lock()
	remove := change.Remove
	if force {
		remove = change.Discard
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

// completeInstalled offers the names of skills that loadout add brought.
func (a *app) completeInstalled(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	all, err := a.places(installFlags{})
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []string
	for _, p := range all {
		if lock, err := p.Lock(); err == nil {
			names = append(names, locked(lock)...)
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
