package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
)

// updateFlags are the flags of loadout update.
type updateFlags struct {
	installFlags
	all, check, dryRun, diff, force, trust, yes bool
}

// updateOutput is update --json.
type updateOutput struct {
	Skills []checkedSkill `json:"skills"`
}

// checkedSkill is what is known of a skill and its source.
type checkedSkill struct {
	Name      string `json:"name"`
	Directory string `json:"directory"`
	// State is current, newer (there is another version), edited (and newer: kept),
	// pinned (to a commit, or a tag), moved (a tag that names another commit now),
	// refused (there is another version, which must not be installed), gone (no longer
	// there), renamed, or unknown (it could not be looked up).
	State   string      `json:"state"`
	Reason  string      `json:"reason,omitempty"`
	Fix     string      `json:"fix,omitempty"`    // what to do about it
	Commit  string      `json:"commit,omitempty"` // what is installed
	Latest  string      `json:"latest,omitempty"` // the commit that is there
	Updated *addedSkill `json:"updated,omitempty"`
}

func (a *app) updateCommand() *cobra.Command {
	var o updateFlags
	cmd := &cobra.Command{
		Use:   "update [NAME...]",
		Short: "Get newer versions of the skills that loadout add brought",
		Long: `Look for newer versions of skills where they were got from, show what is different
(files, instructions, scripts, what they ask for), and on a terminal ask before they
are replaced. All of them, or those of some NAMEs. What you have edited is kept and
told; what is pinned to a commit or a tag stays; a tag that names another commit than
it did is told and not followed. Code of a new version has to be approved again.
With --check nothing is changed, and the exit code is 1 if something newer is there.`,
		Example: `  loadout update --check
  loadout update
  loadout update pdf --diff
  loadout update --all --yes --json`,
		ValidArgsFunction: a.completeInstalled,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := exclusive(cmd, "check", "dry-run"); err != nil {
				return err
			}
			if o.all && len(args) > 0 {
				return fail(exitUsage, "leave one of them out", "--all and names cannot go together")
			}
			return a.update(cmd.Context(), args, &o)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&o.all, "all", false, "all of them, as without a NAME")
	f.BoolVar(&o.check, "check", false, "only look, and exit with 1 if something newer is there")
	o.flags(f, true)
	f.BoolVar(&o.dryRun, "dry-run", false, "show what would be done, and change nothing")
	f.BoolVar(&o.diff, "diff", false, "show all that is different, of every text file")
	f.BoolVar(&o.force, "force", false, "replace also what you have edited")
	f.BoolVar(&o.trust, "trust", false, "for a project, go also to folders here, by ssh, and to private hosts")
	f.BoolVarP(&o.yes, "yes", "y", false, "do not ask on a terminal")
	return cmd
}

func (a *app) update(ctx context.Context, names []string, o *updateFlags) error {
	all, err := a.places(o.installFlags)
	if err != nil {
		return err
	}
	c, err := a.settings(nil)
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
	mine, err := brought(all, names)
	if err != nil {
		return err
	}
	out := updateOutput{Skills: []checkedSkill{}}
	for i, to := range all {
		if len(mine[i]) == 0 {
			continue
		}
		checks, err := a.updatePlace(ctx, to, a.fetcherFor(c, to, o.trust), mine[i], o)
		if err != nil {
			return err
		}
		out.Skills = append(out.Skills, checks...)
	}
	if err := a.keepNewer(ctx, all, out.Skills); err != nil {
		a.note("what is newer could not be kept: %v", err)
	}
	return a.updated(out, o)
}

// updatePlace looks at skills of one place, and brings the newer ones.
func (a *app) updatePlace(ctx context.Context, to place, from fetcher, names []string, o *updateFlags) ([]checkedSkill, error) {
	p, err := newPlan(a, to, from, o.force)
	if err != nil {
		return nil, err
	}
	defer p.close()
	p.texts = o.diff
	checks, err := p.check(ctx, names)
	if err != nil || o.check || len(p.changes()) == 0 {
		return checks, err
	}
	for i := range checks {
		if st := p.byName[checks[i].Name]; st != nil && st.State != "unchanged" {
			checks[i].Updated = &st.addedSkill
		}
	}
	show := carryFlags{yes: o.yes, dryRun: o.dryRun, full: o.diff, verb: "update"}
	if !a.json {
		a.showPlan(p, nil, show)
	}
	if !o.dryRun {
		if err := a.agree(ctx, p, show); err != nil {
			return nil, err
		}
		if err := p.install(ctx); err != nil {
			return nil, err
		}
		for i := range checks {
			if checks[i].Updated != nil {
				checks[i].State = "current"
			}
		}
	}
	if !a.json {
		a.showDone(ctx, p, show)
	}
	return checks, nil
}

// updated prints what was found, and says by the exit code whether that is something.
func (a *app) updated(out updateOutput, o *updateFlags) error {
	if !a.json {
		a.printChecks(out, o)
	} else if err := a.printJSON(out); err != nil {
		return err
	}
	code := exitOK
	for _, s := range out.Skills {
		switch s.State {
		case "refused":
			return &exitError{code: exitRefused}
		case "moved", "gone", "renamed", "unknown", "edited":
			code = exitFound
		case "newer":
			if o.check {
				code = exitFound
			}
		}
	}
	if code == exitFound {
		return errFound
	}
	return nil
}

func (a *app) printChecks(out updateOutput, o *updateFlags) {
	if len(out.Skills) == 0 {
		fmt.Fprintln(a.stdout, "There is nothing to update: loadout add brought no skill. See: loadout add --help")
		return
	}
	var rows [][]string
	newer, current := false, 0
	for _, s := range out.Skills {
		switch {
		case s.Updated != nil: // it was shown
			continue
		case s.State == "current":
			current++
			continue
		}
		newer = newer || s.State == "newer"
		rows = append(rows, []string{s.Name, s.State, s.Reason})
	}
	a.table("", rows)
	switch {
	case current == len(out.Skills) && current == 1:
		fmt.Fprintln(a.stdout, "1 skill is up to date.")
	case current == len(out.Skills):
		fmt.Fprintf(a.stdout, "%d skills are up to date.\n", current)
	}
	if a.quiet {
		return
	}
	for i, s := range out.Skills {
		if s.Fix != "" && (i == 0 || s.Fix != out.Skills[i-1].Fix) {
			fmt.Fprintf(a.stderr, "%s: %s\n", plain(s.Name), plain(s.Fix))
		}
	}
	if newer {
		fmt.Fprintln(a.stderr, "To see what is different, and get it: loadout update")
	}
}
