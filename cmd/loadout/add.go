package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/near"
	"github.com/loadout-dev/loadout/remote"
	"github.com/loadout-dev/loadout/skill"
)

// addFlags are the flags of loadout add.
type addFlags struct {
	installFlags
	skills                                 []string
	all, dryRun, force, frozen, trust, yes bool
}

// addOutput is add --json and update --json.
type addOutput struct {
	Directory string            `json:"directory"`
	Skills    []addedSkill      `json:"skills"`
	Available []remote.Skill    `json:"available"` // where none was chosen of several
	Problems  []catalog.Problem `json:"problems"`
	DryRun    bool              `json:"dry_run,omitempty"`
}

func newAddOutput(to place) addOutput {
	return addOutput{Directory: to.Path(), Skills: []addedSkill{}, Available: []remote.Skill{}, Problems: []catalog.Problem{}}
}

func (a *app) addCommand() *cobra.Command {
	var o addFlags
	cmd := &cobra.Command{
		Use:   "add SOURCE...",
		Short: "Get skills from a repository, a URL, an index or a folder",
		Long: `Get skills, and keep what was got known byte by byte in loadout.lock beside them.
A SOURCE is owner/repo on GitHub, with /dir and @ref (a branch, tag or commit) where
you like; any Git URL (https, ssh, file); the URL of an archive or a SKILL.md; a site
that publishes skills, as https://example.com; or a folder or archive here, as ./dir.
Of several skills --skill or --all chooses; on a terminal you are asked. Files are
checked, scanned and shown before anything is moved into place, and nothing of them
runs: scripts need loadout approve. What was added is for you, in ~/.loadout/skills,
or with --scope project for the project, in .loadout/skills.`,
		Example: `  loadout add anthropics/skills                  choose of what is there
  loadout add anthropics/skills --skill pdf --skill docx
  loadout add anthropics/skills/skills/pdf@main --scope project
  loadout add https://git.example.com/team/skills.git --all
  loadout add https://example.com                what a site publishes
  loadout add ./my-skills --dry-run
  loadout add --frozen                           exactly what loadout.lock says, for CI`,
		Args: func(cmd *cobra.Command, args []string) error {
			if o.frozen {
				return want(0, 0, "")(cmd, args)
			}
			return want(1, -1, "a SOURCE")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, other := range []string{"all", "skill", "dry-run"} {
				if err := exclusive(cmd, "frozen", other); err != nil {
					return err
				}
			}
			if err := exclusive(cmd, "all", "skill"); err != nil {
				return err
			}
			if o.frozen {
				return a.addFrozen(cmd.Context(), &o)
			}
			return a.add(cmd.Context(), args, &o)
		},
	}
	f := cmd.Flags()
	f.StringArrayVar(&o.skills, "skill", nil, "get the skill `NAME` of those that are there (repeatable)")
	f.BoolVar(&o.all, "all", false, "get all that are there")
	o.flags(f, false)
	f.BoolVar(&o.dryRun, "dry-run", false, "show what would be done, and change nothing")
	f.BoolVar(&o.force, "force", false, "replace what is there by the same name, also what you edited")
	f.BoolVar(&o.frozen, "frozen", false, "install what loadout.lock says, and fail where the bytes are others")
	f.BoolVar(&o.trust, "trust", false, "with --frozen, go also to folders here, by ssh, and to private hosts")
	f.BoolVarP(&o.yes, "yes", "y", false, "do not ask on a terminal")
	return cmd
}

func (a *app) add(ctx context.Context, sources []string, o *addFlags) error {
	to, err := a.place(o.installFlags)
	if err != nil {
		return err
	}
	c, err := a.settings(nil)
	if err != nil {
		return err
	}
	if !o.dryRun {
		if err := to.Recover(ctx); err != nil {
			return err
		}
	}
	plan, err := newPlan(a, to, a.fetcher(c), o.force)
	if err != nil {
		return err
	}
	defer plan.close()
	out := newAddOutput(to)
	out.DryRun = o.dryRun
	for _, source := range sources {
		at, err := locate(source)
		if err != nil {
			return err
		}
		offer, err := plan.look(ctx, at)
		if err != nil {
			return a.orHere(source, at, err)
		}
		chosen, err := a.choose(ctx, source, offer, o)
		if errors.Is(err, errUnchosen) {
			return a.unchosen(source, offer, out)
		}
		if err != nil {
			return err
		}
		if len(o.skills) == 0 { // or what is wrong with others does not matter
			out.Problems = append(out.Problems, offer.Problems...)
		}
		if o.all {
			plan.missing(offer)
		}
		if err := plan.add(ctx, offer, chosen); err != nil {
			return err
		}
	}
	return a.carryOut(ctx, plan, out, carryFlags{yes: o.yes, dryRun: o.dryRun, verb: "add"})
}

// orHere adds to an error of a repository what else its name may mean: a folder.
func (a *app) orHere(source string, at remote.Location, err error) error {
	if _, none := os.Stat(source); none != nil || at.Kind == remote.Local {
		return err
	}
	code, _ := a.advice(err)
	return fail(code, "if you mean the folder that is here: loadout add "+quoted("./"+filepath.ToSlash(filepath.Clean(source))), "%w", err)
}

// errUnchosen says that there are several skills, and nobody to ask which.
var errUnchosen = errors.New("no skill was chosen")

// choose says which skills of an offer are meant.
func (a *app) choose(ctx context.Context, source string, offer *remote.Offer, o *addFlags) ([]remote.Skill, error) {
	all := offer.Skills
	switch {
	case len(all) == 0 && len(offer.Problems) > 0:
		p := offer.Problems[0]
		return nil, fail(exitNotFound, "mend it, or look for another place of it", "there is no skill at %s that can be had: %s: %s", source, p.Path, p.Message)
	case len(all) == 0:
		return nil, fail(exitNotFound, "name the directory that has a SKILL.md in or below it", "there is no skill at %s", source)
	case len(o.skills) > 0:
		return skillsNamed(source, offer, o.skills)
	case o.all || len(all) == 1:
		return all, nil
	case a.json || o.yes || o.dryRun || !isTerminal(a.stdin) || !isTerminal(a.stderr):
		return nil, errUnchosen
	}
	return a.askWhich(ctx, source, offer)
}

// skillsNamed are the skills of some names, each by its directory where two have it.
func skillsNamed(source string, offer *remote.Offer, names []string) ([]remote.Skill, error) {
	var chosen []remote.Skill
	for _, name := range names {
		found := meant(offer, name)
		switch len(found) {
		case 0:
			return nil, noSkillNamed(source, offer, name)
		case 1:
			if !slices.Contains(chosen, found[0]) {
				chosen = append(chosen, found[0])
			}
		default:
			dirs := make([]string, 0, len(found))
			for _, s := range found {
				dirs = append(dirs, "--skill "+quoted(s.Dir))
			}
			return nil, fail(exitUsage, "name one by its directory: "+strings.Join(dirs, ", or "), "%d skills at %s have the name %q", len(found), source, name)
		}
	}
	return chosen, nil
}

// noSkillNamed says what may have been meant, or why it cannot be had.
func noSkillNamed(source string, offer *remote.Offer, name string) error {
	for _, p := range offer.Problems {
		if p.Severity == skill.Error && (p.Path == name || path.Base(p.Path) == name || path.Base(path.Dir(p.Path)) == name) {
			return fail(exitFound, "it has to be mended where it comes from", "the skill %s at %s cannot be had: %s", p.Path, source, p.Message)
		}
	}
	hint := "see what there is: loadout add " + quoted(source) + " --dry-run"
	if near := nearest(name, offer.Skills); near != "" {
		hint = "did you mean " + near + "? " + hint
	}
	return fail(exitNotFound, hint, "there is no skill %q at %s", name, source)
}

// meant are the skills that a person means by a name: that with just this directory at its
// place, else those with this name or that are installed into a directory so named.
func meant(offer *remote.Offer, name string) []remote.Skill {
	var found []remote.Skill
	for _, s := range offer.Skills {
		switch {
		case s.Dir == name:
			return []remote.Skill{s}
		case s.Name == name || dirName(offer.Location, s) == name:
			found = append(found, s)
		}
	}
	return found
}

// unchosen lists what there is to choose from.
func (a *app) unchosen(source string, offer *remote.Offer, out addOutput) error {
	hint := "choose with --skill NAME (repeatable), or take --all"
	err := fail(exitUsage, hint, "there are %d skills at %s", len(offer.Skills), source)
	if out.DryRun {
		err = nil
	}
	if a.json {
		out.Available, out.Problems = offer.Skills, append(out.Problems, offer.Problems...)
		if printed := a.printJSON(out); printed != nil {
			return printed
		}
		return err
	}
	a.table("", offered(offer.Skills))
	a.notHad(offer.Problems)
	if err == nil {
		fmt.Fprintf(a.stderr, "%s; %s\n", counted(len(offer.Skills), "skill"), hint)
	}
	return err
}

// notHad prints why skills of another place cannot be had.
func (a *app) notHad(ps []catalog.Problem) {
	if a.quiet {
		return
	}
	bad := slices.DeleteFunc(slices.Clone(ps), func(p catalog.Problem) bool { return p.Severity != skill.Error })
	if rest := len(bad) - a.errors(bad); rest > 0 {
		fmt.Fprintf(a.stderr, "and %d more that cannot be had; all of them: --json\n", rest)
	}
}

// offered are the rows of a table of skills: what to call each, and what it is for.
func offered(all []remote.Skill) [][]string {
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
		rows = append(rows, []string{name, skill.OneLine(s.Description)})
	}
	return rows
}

// askWhich puts the choice to the person at the terminal.
func (a *app) askWhich(ctx context.Context, source string, offer *remote.Offer) ([]remote.Skill, error) {
	rows := offered(offer.Skills)
	for i := range rows {
		rows[i] = append([]string{fmt.Sprint(i + 1)}, rows[i]...)
	}
	a.table("", rows)
	for {
		line, err := a.askLine(ctx, "\nWhich? Numbers or names, as 1 3-5 pdf; all; or none: ")
		if err != nil {
			return nil, err
		}
		chosen, wrong := readChoice(line, offer)
		switch {
		case wrong == "" && len(chosen) == 0:
			return nil, fail(exitRefused, "to choose without being asked: loadout add "+quoted(source)+" --skill NAME", "nothing was chosen")
		case wrong == "":
			return chosen, nil
		}
		fmt.Fprintf(a.stderr, "%s is none of them.\n", plain(wrong))
	}
}

// readChoice reads numbers, ranges of them, and names. wrong is the first that is none.
func readChoice(line string, offer *remote.Offer) (chosen []remote.Skill, wrong string) {
	all, taken := offer.Skills, map[remote.Skill]bool{}
	for _, word := range strings.FieldsFunc(line, func(r rune) bool { return r == ',' || unicode.IsSpace(r) }) {
		switch strings.ToLower(word) {
		case "all", "*":
			return all, ""
		case "none", "q":
			return nil, ""
		}
		found := meant(offer, word)
		if first, last, ok := numbers(word); ok && len(found) == 0 && first >= 1 && first <= last && last <= len(all) {
			found = all[first-1 : last]
		}
		if len(found) == 0 {
			return nil, word
		}
		for _, s := range found {
			if !taken[s] {
				taken[s], chosen = true, append(chosen, s)
			}
		}
	}
	return chosen, ""
}

// numbers reads 3 or 3-5.
func numbers(word string) (first, last int, ok bool) {
	from, to, isRange := strings.Cut(word, "-")
	if !isRange {
		to = from
	}
	first, err := strconv.Atoi(from)
	last, also := strconv.Atoi(to)
	return first, last, err == nil && also == nil
}

// nearest is the name of a skill that could have been meant, else "".
func nearest(name string, all []remote.Skill) string {
	best, most := "", 3
	for _, s := range all {
		if d := near.Distance(near.Letters(name), near.Letters(s.Name), most); d < most {
			best, most = s.Name, d
		}
	}
	return best
}
