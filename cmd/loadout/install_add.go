package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/console"
	"github.com/loadout-dev/loadout/internal/exit"
	"github.com/loadout-dev/loadout/internal/install"
	"github.com/loadout-dev/loadout/internal/remote"
	"github.com/loadout-dev/loadout/internal/setup"
	"github.com/loadout-dev/loadout/skill"
)

// addFlags holds the flags of the add command.
type addFlags struct {
	setup.InstallFlags
	skills                                            []string
	all, downgrade, dryRun, force, frozen, trust, yes bool
}

// addOutput is the JSON output of the add and update commands.
type addOutput struct {
	Directory string            `json:"directory"`
	Skills    []install.Skill   `json:"skills"`
	Available []remote.Skill    `json:"available"` // set if a source has several skills and none was chosen
	Problems  []catalog.Problem `json:"problems"`
	DryRun    bool              `json:"dry_run,omitempty"`
}

func newAddOutput(to setup.SkillsDir) addOutput {
	return addOutput{Directory: to.Path(), Skills: []install.Skill{}, Available: []remote.Skill{}, Problems: []catalog.Problem{}}
}

func (a *app) addCommand() *cobra.Command {
	var o addFlags
	cmd := &cobra.Command{
		Use:     "add SOURCE...",
		Aliases: []string{"install"},
		Short:   "Install skills and record their checksums in loadout.lock",
		Long: `Install skills from a repository, a URL, an index or a directory, and record their
checksums in loadout.lock.

SOURCE is one of:
  owner/repo[/dir][@ref]   a repository on GitHub; ref is a branch, tag or commit
  a Git URL                https, ssh or file
  a URL                    of an archive, or of a SKILL.md
  https://example.com      a site that publishes a skill index
  ./dir                    a local directory or archive

Use --skill or --all to choose among several skills; without them, the command
asks on a terminal. Every file is checked, scanned and shown before it is installed. No
script runs until you approve it with loadout approve. Skills are installed for you in
~/.loadout/skills, or for the project in .loadout/skills with --scope project.`,
		Example: `  loadout add anthropics/skills                  choose from the list
  loadout add anthropics/skills --skill pdf --skill docx
  loadout add anthropics/skills/skills/pdf@main --scope project
  loadout add https://git.example.com/team/skills.git --all
  loadout add https://example.com                install from a skill index
  loadout add ./my-skills --dry-run
  loadout add --frozen                           install from loadout.lock, for CI`,
		Args: func(cmd *cobra.Command, args []string) error {
			if o.frozen {
				return argCount(0, 0, "")(cmd, args)
			}
			return argCount(1, -1, "a SOURCE")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, other := range []string{"all", "skill", "dry-run"} {
				if err := checkExclusive(cmd, "frozen", other); err != nil {
					return err
				}
			}
			if err := checkExclusive(cmd, "all", "skill"); err != nil {
				return err
			}
			if o.frozen {
				return a.addFrozen(cmd.Context(), &o)
			}
			return a.add(cmd.Context(), args, &o)
		},
	}
	f := cmd.Flags()
	f.StringArrayVar(&o.skills, "skill", nil, "install only the skill `NAME` (repeatable)")
	f.BoolVar(&o.all, "all", false, "install all skills of the source")
	registerInstallFlags(&o.InstallFlags, f, false)
	f.BoolVar(&o.downgrade, "downgrade", false, "also install signed versions older than those seen before")
	f.BoolVar(&o.dryRun, "dry-run", false, "show the plan without changing anything")
	f.BoolVar(&o.force, "force", false, "replace skills of the same name, even if you edited them")
	f.BoolVar(&o.frozen, "frozen", false, "install exactly the versions in loadout.lock, or fail")
	f.BoolVar(&o.trust, "trust", false, "with --frozen, also allow local directories, ssh and private hosts")
	f.BoolVarP(&o.yes, "yes", "y", false, "do not ask for confirmation")
	return cmd
}

func (a *app) add(ctx context.Context, sources []string, o *addFlags) error {
	to, err := a.InstallTarget(o.InstallFlags)
	if err != nil {
		return err
	}
	c, err := a.LoadConfig(nil)
	if err != nil {
		return err
	}
	if !o.dryRun {
		if err := to.Recover(ctx); err != nil {
			return err
		}
	}
	show := planOptions{force: o.force, downgrade: o.downgrade, yes: o.yes, dryRun: o.dryRun, verb: "add"}
	plan, err := a.newPlan(to, a.NewFetcher(c), show)
	if err != nil {
		return err
	}
	defer plan.Close()
	out := newAddOutput(to)
	out.DryRun = o.dryRun
	for _, source := range sources {
		at, err := setup.ParseLocation(source)
		if err != nil {
			return err
		}
		offer, err := plan.Open(ctx, at)
		if err != nil {
			return a.suggestLocalFolder("loadout add", source, at, to, err)
		}
		chosen, err := a.chooseSkills(ctx, source, offer, o)
		if errors.Is(err, errChoiceNeeded) {
			return a.listChoices(source, offer, out)
		}
		if err != nil {
			return err
		}
		if len(o.skills) == 0 { // ignore problems of skills that were not requested
			out.Problems = append(out.Problems, offer.Problems...)
		}
		if o.all {
			plan.AddUnusable(offer)
		}
		if err := plan.Add(ctx, offer, chosen); err != nil {
			return err
		}
	}
	return a.executePlan(ctx, plan, out, show)
}

// suggestLocalFolder adds a hint to err if source, an argument of command, is
// also the name of a local directory.
func (a *app) suggestLocalFolder(command, source string, at remote.Location, to setup.SkillsDir, err error) error {
	if _, none := os.Stat(source); none != nil || at.Kind == remote.Local {
		return err
	}
	code, _ := a.planErrorHint(err, to)
	return exit.Errorf(code, "to use the local directory: "+command+" "+console.ShellQuote("./"+filepath.ToSlash(filepath.Clean(source))), "%w", err)
}

// errChoiceNeeded is returned if a source has several skills and the user
// cannot be prompted to choose.
var errChoiceNeeded = errors.New("no skill selected")

// chooseSkills returns the skills of offer that the flags or the user select.
func (a *app) chooseSkills(ctx context.Context, source string, offer *remote.Collection, o *addFlags) ([]remote.Skill, error) {
	all := offer.Skills
	switch {
	case len(all) == 0 && len(offer.Problems) > 0:
		p := offer.Problems[0]
		return nil, exit.Errorf(exit.NotFound, "fix the skill, or install it from another source", "no usable skill at %s: %s: %s", source, p.Path, p.Message)
	case len(all) == 0:
		return nil, exit.Errorf(exit.NotFound, "name a directory that contains a SKILL.md, directly or below it", "no skill found at %s", source)
	case len(o.skills) > 0:
		return selectSkills(source, offer, o.skills)
	case o.all || len(all) == 1:
		return all, nil
	case a.JSON || o.yes || o.dryRun || !console.IsTerminal(a.Stdin) || !console.IsTerminal(a.Stderr):
		return nil, errChoiceNeeded
	}
	return a.promptChoice(ctx, source, offer)
}

// selectSkills returns the skills with the given names. If several skills share
// a name, each must be identified by its directory.
func selectSkills(source string, offer *remote.Collection, names []string) ([]remote.Skill, error) {
	var chosen []remote.Skill
	for _, name := range names {
		found := install.Match(offer, name)
		switch len(found) {
		case 0:
			return nil, skillNotFoundError(source, offer, name)
		case 1:
			if !slices.Contains(chosen, found[0]) {
				chosen = append(chosen, found[0])
			}
		default:
			dirs := make([]string, 0, len(found))
			for _, s := range found {
				dirs = append(dirs, "--skill "+console.ShellQuote(s.Dir))
			}
			return nil, exit.Errorf(exit.Usage, "choose one by its directory: "+strings.Join(dirs, ", or "), "%d skills at %s have the name %q", len(found), source, name)
		}
	}
	return chosen, nil
}

// skillNotFoundError returns an error that suggests a similar name, or says why
// the named skill is unusable.
func skillNotFoundError(source string, offer *remote.Collection, name string) error {
	if dir, message, ok := install.FindProblem(offer, name); ok {
		return exit.Errorf(exit.Failure, "the author of the skill has to fix it", "skill %s at %s is not usable: %s", dir, source, message)
	}
	hint := "list the available skills: loadout add " + console.ShellQuote(source) + " --dry-run"
	if near := install.NearestName(name, offer.Skills); near != "" {
		hint = "did you mean " + near + "? " + hint
	}
	return exit.Errorf(exit.NotFound, hint, "skill %q not found at %s", name, source)
}

// listChoices prints the available skills and returns an error whose hint is to
// choose among them.
func (a *app) listChoices(source string, offer *remote.Collection, out addOutput) error {
	hint := "choose with --skill NAME (repeatable), or install all with --all"
	err := exit.Errorf(exit.Usage, hint, "%s has %d skills", source, len(offer.Skills))
	if out.DryRun {
		err = nil
	}
	if a.JSON {
		out.Available, out.Problems = offer.Skills, append(out.Problems, offer.Problems...)
		if printed := a.PrintJSON(out); printed != nil {
			return printed
		}
		return err
	}
	a.PrintTable("", offerRows(offer.Skills))
	a.printUnavailable(offer.Problems)
	if err == nil {
		fmt.Fprintf(a.Stderr, "%s; %s\n", console.Pluralize(len(offer.Skills), "skill"), hint)
	}
	return err
}

// printUnavailable prints why some skills in a source cannot be installed.
func (a *app) printUnavailable(ps []catalog.Problem) {
	if a.Quiet {
		return
	}
	bad := slices.DeleteFunc(slices.Clone(ps), func(p catalog.Problem) bool { return p.Severity != skill.Error })
	if rest := len(bad) - a.printErrors(bad); rest > 0 {
		fmt.Fprintf(a.Stderr, "%d more cannot be installed; list them with --json\n", rest)
	}
}

// offerRows returns a table row for each skill: the name to type and the
// description.
func offerRows(all []remote.Skill) [][]string {
	seen := map[string]int{}
	for _, s := range all {
		seen[s.Name]++
	}
	var rows [][]string
	for _, s := range all {
		name := s.Name
		if seen[name] > 1 {
			name = s.Dir
		}
		rows = append(rows, []string{name, plain(s.Description)})
	}
	return rows
}

// promptChoice asks the user at the terminal which skills to install.
func (a *app) promptChoice(ctx context.Context, source string, offer *remote.Collection) ([]remote.Skill, error) {
	rows := offerRows(offer.Skills)
	for i := range rows {
		rows[i] = append([]string{fmt.Sprint(i + 1)}, rows[i]...)
	}
	a.PrintTable("", rows)
	for {
		line, err := a.PromptLine(ctx, "\nWhich skills? Numbers, ranges or names (1 3-5 pdf), all, or none: ")
		if err != nil {
			return nil, err
		}
		chosen, wrong := install.ParseChoice(line, offer)
		switch {
		case wrong == "" && len(chosen) == 0:
			return nil, exit.Errorf(exit.Refused, "to choose without a prompt: loadout add "+console.ShellQuote(source)+" --skill NAME", "no skill selected")
		case wrong == "":
			return chosen, nil
		}
		fmt.Fprintf(a.Stderr, "%s is not in the list.\n", plain(wrong))
	}
}
