package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/atomicfile"
	"github.com/loadout-dev/loadout/internal/console"
	"github.com/loadout-dev/loadout/internal/evalfile"
	"github.com/loadout-dev/loadout/internal/evaluation"
	"github.com/loadout-dev/loadout/internal/exit"
	"github.com/loadout-dev/loadout/internal/fileerror"
	"github.com/loadout-dev/loadout/internal/scan"
	"github.com/loadout-dev/loadout/internal/sources"
)

// testFlags holds the flags of the test command.
type testFlags struct {
	init  bool
	evals string
	junit string
}

// testOutput is the JSON output of the test command.
type testOutput struct {
	Results []*evaluation.Result `json:"results"`
	Passed  bool                 `json:"passed"`
}

func (a *app) testCommand() *cobra.Command {
	var o testFlags
	cmd := &cobra.Command{
		Use:   "test DIR...",
		Short: "Test whether skills are found for the right prompts",
		Long: `Test the skills in each DIR, without a model: a skill must be valid and have no dangerous content,
and a search among all your skills must find it for the prompts of its evaluation files
and not for others. The output names the skill that is found instead.

The files are evals/test.yaml, and those of other tools: evals.json, eval_queries.json,
eval.yaml, *.eval.yaml, trigger_tests.yaml and queries.yaml. Graders and other parts that
need a model are listed as not measured. --init writes a first evals/test.yaml.

Exits with status 1 if a test fails, and 6 if a skill has no cases.`,
		Example: `  loadout test skills/release-notes --init
  loadout test skills/release-notes
  loadout test skills --junit report.xml
  loadout test skills/pdf --json | jq '.results[].routing.cases[] | select(.passed | not)'`,
		Args: argCount(1, -1, "the DIR of a skill, or of a directory with skills"),
		RunE: func(cmd *cobra.Command, args []string) error { return a.testSkills(cmd.Context(), args, o) },
	}
	cmd.Flags().BoolVar(&o.init, "init", false, "write a first evals/test.yaml from the description")
	cmd.Flags().StringVar(&o.evals, "evals", "", "read the evaluation files in `DIR` instead of those in the skill")
	cmd.Flags().StringVar(&o.junit, "junit", "", "also write a JUnit report to `FILE`")
	return cmd
}

func (a *app) testSkills(ctx context.Context, dirs []string, o testFlags) error {
	rt, err := a.openTested(ctx, dirs)
	if err != nil {
		return err
	}
	defer rt.Close()
	var tested []*catalog.Entry
	for _, dir := range dirs {
		found, err := findTested(rt.Catalog(), dir)
		if err != nil {
			return err
		}
		tested = append(tested, found...)
	}
	if o.evals != "" && len(tested) > 1 {
		return exit.Errorf(exit.Usage, "test one skill at a time", "--evals is for a single skill")
	}
	if o.init {
		for _, e := range tested {
			if err := a.initTest(ctx, rt.Catalog(), e); err != nil {
				return err
			}
		}
		return nil
	}
	out := testOutput{Results: []*evaluation.Result{}, Passed: true}
	var without []string // cases
	done := a.ShowProgress("testing skills")
	for _, e := range tested {
		r, err := testSkill(ctx, rt.Catalog(), e, o.evals)
		if err != nil {
			done()
			return err
		}
		out.Results = append(out.Results, r)
		out.Passed = out.Passed && r.Passed
		if r.Routing == nil {
			without = append(without, r.Path)
		}
	}
	done()
	if o.junit != "" {
		var b bytes.Buffer
		if err := errors.Join(evaluation.WriteJUnit(&b, out.Results), atomicfile.Write(o.junit, b.Bytes(), 0o644)); err != nil {
			return exit.Errorf(exit.Failure, "check the path given with --junit", "write %s: %w", o.junit, fileerror.Cause(err))
		}
	}
	if a.JSON {
		err = a.PrintJSON(out)
	} else {
		a.printTested(out.Results)
	}
	switch {
	case err != nil:
		return err
	case !out.Passed:
		return exit.Reported
	case len(without) > 0:
		return exit.Errorf(exit.NotMeasurable, "write them: loadout test --init "+console.ShellQuote(without[0]), "no cases: %s", strings.Join(without, ", "))
	}
	return nil
}

// openTested opens the user's skills and those in dirs, which take precedence.
func (a *app) openTested(ctx context.Context, dirs []string) (*loadout.Runtime, error) {
	var more []sources.Location
	for _, dir := range dirs {
		info, err := os.Stat(dir)
		if err == nil && !info.IsDir() {
			return nil, exit.Errorf(exit.Usage, "give the directory of a skill", "%s is not a directory", dir)
		}
		var path string
		if err == nil {
			path, err = filepath.Abs(dir)
		}
		if err != nil {
			code, hint := exit.FileHint(err, "the path")
			return nil, exit.Errorf(code, hint, "%s: %w", dir, fileerror.Cause(err))
		}
		more = append(more, sources.Location{Path: path, Scope: catalog.Project})
	}
	c, err := a.LoadConfig(nil)
	if err != nil {
		return nil, err
	}
	a.ShowPending = true // a search shows nothing to an agent
	return a.NewRuntimeWith(ctx, c, false, nil, more...)
}

// findTested returns the skill in a directory, or all skills below it, sorted by path.
func findTested(c *catalog.Catalog, dir string) ([]*catalog.Entry, error) {
	root, err := filepath.Abs(dir)
	if err == nil {
		root, err = filepath.EvalSymlinks(root)
	}
	var found []*catalog.Entry
	for e := range c.Snapshot().All() {
		real, linkErr := filepath.EvalSymlinks(e.Path)
		if rel, relErr := filepath.Rel(root, real); err == nil && linkErr == nil && relErr == nil && filepath.IsLocal(rel) {
			found = append(found, e)
		}
	}
	if len(found) == 0 {
		return nil, exit.Errorf(exit.Failure, "see what is wrong: loadout validate "+console.ShellQuote(dir), "no skill in %s loads", dir)
	}
	slices.SortFunc(found, func(a, b *catalog.Entry) int { return strings.Compare(a.Path, b.Path) })
	return found, nil
}

func testSkill(ctx context.Context, c *catalog.Catalog, e *catalog.Entry, evals string) (*evaluation.Result, error) {
	if evals == "" {
		evals = e.Path
	} else if info, err := os.Stat(evals); err != nil || !info.IsDir() {
		return nil, exit.Errorf(exit.NotFound, "give a directory with evaluation files", "--evals %s is not a directory", evals)
	}
	return evaluation.Evaluate(ctx, c, e, shortPath(e.Path), evalfile.Read(os.DirFS(evals), e.Name))
}

// shortPath returns a path relative to the working directory, if it is below it.
func shortPath(path string) string {
	if dir, err := os.Getwd(); err == nil {
		if rel, err := filepath.Rel(dir, path); err == nil && filepath.IsLocal(rel) {
			return rel
		}
	}
	return path
}

// initTest writes the first evaluation file of a skill.
func (a *app) initTest(ctx context.Context, c *catalog.Catalog, e *catalog.Entry) error {
	text, err := evaluation.Propose(ctx, c, e)
	if err != nil {
		return err
	}
	dir := shortPath(e.Path)
	file := filepath.Join(dir, filepath.FromSlash(evalfile.OwnFile))
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return exit.Errorf(exit.Failure, "check the permissions of the directory", "create %s: %w", filepath.Dir(file), fileerror.Cause(err))
	}
	f, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return exit.Errorf(exit.Usage, "edit it, or delete it first", "%s exists", file)
	}
	if err == nil {
		_, err = f.WriteString(text)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		return exit.Errorf(exit.Failure, "check the permissions of the directory", "write %s: %w", file, fileerror.Cause(err))
	}
	fmt.Fprintf(a.Stdout, "Created %s\nReplace its prompts, then run: loadout test %s\n", plain(file), console.ShellQuote(dir))
	return nil
}

func (a *app) printTested(results []*evaluation.Result) {
	var b strings.Builder
	for _, r := range results {
		verdict := a.Green("passed")
		switch {
		case !r.Passed:
			verdict = a.Red("failed")
		case r.Routing == nil:
			verdict = "no cases"
		}
		fmt.Fprintf(&b, "%s: %s\n", a.Bold(plain(r.Path)), verdict)
		a.writeStatic(&b, r)
		if r.Routing != nil {
			a.writeRouting(&b, r.Routing)
		}
		if not := r.ListNotMeasured(); len(not) > 0 {
			a.WriteWrapped(&b, "  ", "not measured without a model: "+strings.Join(not, ", "), a.Faint)
		}
	}
	fmt.Fprint(a.Stdout, b.String())
}

func (a *app) writeStatic(b *strings.Builder, r *evaluation.Result) {
	if !r.Static.Valid {
		a.WriteWrapped(b, "  ", "not valid; see: loadout validate "+console.ShellQuote(r.Path), a.Red)
	}
	for _, f := range r.Static.Findings {
		a.printScanFinding(b, f, scan.High)
	}
	for _, p := range r.Problems {
		at := p.File
		if p.Line > 0 {
			at = fmt.Sprintf("%s:%d", p.File, p.Line)
		}
		a.WriteWrapped(b, "  ", at+": "+p.Message, a.Red)
	}
}

func (a *app) writeRouting(b *strings.Builder, r *evaluation.Routing) {
	passed := 0
	for _, c := range r.Cases {
		if c.Passed {
			passed++
			continue
		}
		a.WriteWrapped(b, "  ", fmt.Sprintf("%s:%d: “%s”", c.File, c.Line, c.Prompt), console.NoStyle)
		a.WriteWrapped(b, "      ", c.Failure(), a.Red)
	}
	fmt.Fprintf(b, "  found for the right prompts: %d of %s (%.0f %%, 95 %% interval %.0f–%.0f %%), among %s\n", passed, console.Pluralize(len(r.Cases), "case"), 100*r.Rate, 100*r.Low, 100*r.High,
		console.Pluralize(r.Skills, "skill"))
	if r.Underpowered {
		a.WriteWrapped(b, "  ", "fewer than five cases say little about the skill", a.Faint)
	}
	for _, s := range r.Similar {
		a.WriteWrapped(b, "  ", fmt.Sprintf("similar skill: %s (%.0f %% of the score for the same description)", s.Name, 100*s.Score), a.Faint)
	}
}
