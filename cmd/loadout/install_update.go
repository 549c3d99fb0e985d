package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/loadout-dev/loadout/internal/exit"
	"github.com/loadout-dev/loadout/internal/install"
	"github.com/loadout-dev/loadout/internal/setup"
)

// updateFlags holds the flags of the update command.
type updateFlags struct {
	setup.InstallFlags
	all, check, downgrade, dryRun, diff, force, trust, yes bool
}

// updateOutput is the JSON output of the update command.
type updateOutput struct {
	Skills []checkedSkill `json:"skills"`
}

// checkedSkill is the result of comparing an installed skill with its source.
type checkedSkill struct {
	Name      string `json:"name"`
	Directory string `json:"directory"`
	// State is current, newer (another version is available), edited (another
	// version is available, but local edits are kept), pinned (to a commit or
	// tag), moved (its tag now refers to another commit), refused (another
	// version is available, but must not be installed), gone (no longer in the
	// source), renamed, or unknown (the source cannot be checked).
	State   string         `json:"state"`
	Reason  string         `json:"reason,omitempty"`
	Fix     string         `json:"fix,omitempty"`    // next step
	Commit  string         `json:"commit,omitempty"` // installed commit
	Latest  string         `json:"latest,omitempty"` // latest commit of the source
	Updated *install.Skill `json:"updated,omitempty"`

	update install.Update
}

func (a *app) updateCommand() *cobra.Command {
	var o updateFlags
	cmd := &cobra.Command{
		Use:   "update [NAME...]",
		Short: "Update installed skills",
		Long: `Check the sources of installed skills for new versions, show the changes (files,
instructions, scripts, requested permissions), and install them. On a terminal, update
asks for confirmation. Without NAME it updates all skills.

Skills that you edited are reported but not changed. A skill pinned to a commit or tag
stays at that version; if the tag was moved, this is reported. A signed version that is
older than one seen before is refused. The code of a new version needs a new approval.
--check changes nothing, and exits with status 1 if there are updates.`,
		Example: `  loadout update --check
  loadout update
  loadout update pdf --diff
  loadout update --all --yes --json`,
		ValidArgsFunction: a.completeInstalled,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkExclusive(cmd, "check", "dry-run"); err != nil {
				return err
			}
			if o.all && len(args) > 0 {
				return exit.Errorf(exit.Usage, "omit one of them", "--all and names cannot be used together")
			}
			return a.updateSkills(cmd.Context(), args, &o)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&o.all, "all", false, "update all skills (default without a NAME)")
	f.BoolVar(&o.check, "check", false, "only check, and exit with status 1 if updates are available")
	registerInstallFlags(&o.InstallFlags, f, true)
	f.BoolVar(&o.downgrade, "downgrade", false, "also install signed versions older than those seen before")
	f.BoolVar(&o.dryRun, "dry-run", false, "show the changes without installing them")
	f.BoolVar(&o.diff, "diff", false, "show all changed lines of every text file")
	f.BoolVar(&o.force, "force", false, "replace skills even if you edited them")
	f.BoolVar(&o.trust, "trust", false, "for a project, also allow local directories, ssh and private hosts")
	f.BoolVarP(&o.yes, "yes", "y", false, "do not ask for confirmation")
	return cmd
}

func (a *app) updateSkills(ctx context.Context, names []string, o *updateFlags) error {
	all, err := a.InstallDirs(o.InstallFlags)
	if err != nil {
		return err
	}
	c, err := a.LoadConfig(nil)
	if err != nil {
		return err
	}
	if !o.check && !o.dryRun {
		for _, to := range all {
			if err := to.Recover(ctx); err != nil {
				return err
			}
		}
	}
	mine, err := setup.InstalledNames(all, names)
	if err != nil {
		return err
	}
	out := updateOutput{Skills: []checkedSkill{}}
	updates := make([][]install.Update, len(all))
	for i, to := range all {
		if len(mine[i]) == 0 {
			continue
		}
		checks, err := a.updateDir(ctx, to, a.NewLockFetcher(c, to, o.trust), mine[i], o)
		if err != nil {
			return err
		}
		for _, check := range checks {
			updates[i] = append(updates[i], check.update)
			out.Skills = append(out.Skills, check)
		}
	}
	if err := a.saveUpdates(ctx, all, updates); err != nil {
		a.Note("cannot save the available updates: %v", err)
	}
	return a.printUpdates(out, o)
}

// updateDir checks the skills in one directory and installs new versions.
func (a *app) updateDir(ctx context.Context, to setup.SkillsDir, from setup.Fetcher, names []string, o *updateFlags) ([]checkedSkill, error) {
	show := planOptions{force: o.force, downgrade: o.downgrade, yes: o.yes, dryRun: o.dryRun, fullDiff: o.diff, verb: "update"}
	p, err := a.newPlan(to, from, show)
	if err != nil {
		return nil, err
	}
	defer p.Close()
	updates, err := p.CheckUpdates(ctx, names)
	if err != nil {
		return nil, err
	}
	if o.check || len(p.Changes()) == 0 {
		return a.describeUpdates(updates, p), nil
	}
	if !a.JSON {
		a.printPlan(p, nil, show)
	}
	if err := a.applyPlan(ctx, p, show); err != nil {
		return nil, err
	}
	if !a.JSON {
		a.printPlanResult(ctx, p, show)
	}
	checks := a.describeUpdates(updates, p)
	for i := range checks {
		st := p.Step(checks[i].Name)
		if st == nil {
			continue
		}
		checks[i].Updated = &st.Skill
		if !o.dryRun {
			checks[i].State, checks[i].update.State = string(install.Current), install.Current
		}
	}
	return checks, nil
}

// printUpdates prints the result of the command. It returns an error if an update
// was refused or failed, or if o.check is set and there is an update.
func (a *app) printUpdates(out updateOutput, o *updateFlags) error {
	if !a.JSON {
		a.printChecks(out, o)
	} else if err := a.PrintJSON(out); err != nil {
		return err
	}
	code := exit.OK
	for _, s := range out.Skills {
		switch s.State {
		case "refused":
			return &exit.Error{Code: exit.Refused}
		case "moved", "gone", "renamed", "unknown", "edited":
			code = exit.Failure
		case "newer":
			if o.check {
				code = exit.Failure
			}
		}
	}
	if code == exit.Failure {
		return exit.Reported
	}
	return nil
}

func (a *app) printChecks(out updateOutput, o *updateFlags) {
	if len(out.Skills) == 0 {
		fmt.Fprintln(a.Stdout, "No skills installed with loadout add. See: loadout add --help")
		return
	}
	var rows [][]string
	newer, current := false, 0
	for _, s := range out.Skills {
		switch {
		case s.Updated != nil: // already shown
			continue
		case s.State == "current":
			current++
			continue
		}
		newer = newer || s.State == "newer"
		rows = append(rows, []string{s.Name, s.State, s.Reason})
	}
	a.PrintTable("", rows)
	switch {
	case current == len(out.Skills) && current == 1:
		fmt.Fprintln(a.Stdout, "1 skill is up to date.")
	case current == len(out.Skills):
		fmt.Fprintf(a.Stdout, "%d skills are up to date.\n", current)
	}
	if a.Quiet {
		return
	}
	for i, s := range out.Skills {
		if s.Fix != "" && (i == 0 || s.Fix != out.Skills[i-1].Fix) {
			fmt.Fprintf(a.Stderr, "%s: %s\n", plain(s.Name), plain(s.Fix))
		}
	}
	if newer {
		fmt.Fprintln(a.Stderr, "To see the changes and install them: loadout update")
	}
}
