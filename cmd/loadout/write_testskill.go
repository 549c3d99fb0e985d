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
	"github.com/loadout-dev/loadout/internal/llm/replay"
	"github.com/loadout-dev/loadout/internal/scan"
	"github.com/loadout-dev/loadout/internal/setup"
	"github.com/loadout-dev/loadout/internal/sources"
	"github.com/loadout-dev/loadout/llm"
)

// testFlags holds the flags of the test command.
type testFlags struct {
	init   bool
	evals  string
	junit  string
	model  setup.ModelFlags
	record string
	replay string
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
		Long: `Test the skills in each DIR: a skill must be valid and have no dangerous content, and a
search among all your skills must find it for the prompts of its evaluation files, and not
for others. The output names the skill that is found instead. With --model, a model must
load the skill for these prompts; each is a conversation that ends when a skill is loaded.

The files are evals/test.yaml, and those of other tools: evals.json, eval_queries.json,
eval.yaml, *.eval.yaml, trigger_tests.yaml and queries.yaml. Graders and other parts that
are not supported are listed as not measured. --init writes a first evals/test.yaml.

Exits with status 1 if a test fails, and 6 if a skill has no cases or a model does not
answer.`,
		Example: `  loadout test skills/release-notes --init
  loadout test skills/release-notes
  loadout test skills --junit report.xml
  loadout test skills/pdf --model anthropic:NAME --record recordings
  loadout test skills/pdf --replay recordings
  loadout test skills/pdf --json | jq '.results[].routing.cases[] | select(.passed | not)'`,
		Args: argCount(1, -1, "the DIR of a skill, or of a directory with skills"),
		RunE: func(cmd *cobra.Command, args []string) error { return a.testSkills(cmd.Context(), args, o) },
	}
	cmd.Flags().BoolVar(&o.init, "init", false, "write a first evals/test.yaml from the description")
	cmd.Flags().StringVar(&o.evals, "evals", "", "read the evaluation files in `DIR` instead of those in the skill")
	cmd.Flags().StringVar(&o.junit, "junit", "", "also write a JUnit report to `FILE`")
	addModelFlags(cmd.Flags(), &o.model)
	cmd.Flags().StringVar(&o.record, "record", "", "with --model: record the requests and responses in `DIR`")
	cmd.Flags().StringVar(&o.replay, "replay", "", "use the model recorded in `DIR`, without a key")
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
	m, err := a.openTestModel(ctx, &o)
	if err != nil {
		return err
	}
	out := testOutput{Results: []*evaluation.Result{}, Passed: true}
	var without []string // cases
	invalid := 0
	done := a.ShowProgress("testing skills")
	for _, e := range tested {
		r, err := testSkill(ctx, rt, e, o.evals, m)
		if err != nil {
			done()
			return err
		}
		out.Results = append(out.Results, r)
		out.Passed = out.Passed && r.Passed
		if r.Routing == nil {
			without = append(without, r.Path)
		}
		if r.Model != nil {
			invalid += r.Model.Invalid
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
	case invalid > 0:
		return exit.Errorf(exit.NotMeasurable, "check the model, or record the prompts again: --model MODEL --record DIR", "%s could not be measured", console.Pluralize(invalid, "case"))
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
		if !filepath.IsAbs(e.Path) { // bundled
			continue
		}
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

// openTestModel returns the model that the flags select, or nil if there is none.
func (a *app) openTestModel(ctx context.Context, o *testFlags) (llm.Model, error) {
	switch {
	case o.replay != "" && (o.model != setup.ModelFlags{} || o.record != ""):
		return nil, exit.Errorf(exit.Usage, "omit the others", "--replay cannot be used with --model or --record")
	case o.replay != "":
		m, err := replay.Open(o.replay)
		if err != nil {
			return nil, exit.Errorf(exit.NotFound, "record first: loadout test DIR --model MODEL --record "+console.ShellQuote(o.replay), "%w", err)
		}
		return m, nil
	case o.model.Model == "" && (o.model != setup.ModelFlags{} || o.record != ""):
		return nil, exit.Errorf(exit.Usage, "add --model MODEL", "--record, --base-url and --key are for a model")
	case o.model.Model == "":
		return nil, nil
	}
	c, err := a.LoadConfig(nil)
	if err != nil {
		return nil, err
	}
	m, err := a.NewModel(ctx, c, setup.ChooseModel(c, o.model))
	if err != nil || o.record == "" {
		return m, err
	}
	r, err := replay.Record(m, o.record, nil)
	if err != nil {
		return nil, exit.Errorf(exit.Failure, "check the path given with --record", "%w", err)
	}
	return r, nil
}

func testSkill(ctx context.Context, rt *loadout.Runtime, e *catalog.Entry, evals string, m llm.Model) (*evaluation.Result, error) {
	if evals == "" {
		evals = e.Path
	} else if info, err := os.Stat(evals); err != nil || !info.IsDir() {
		return nil, exit.Errorf(exit.NotFound, "give a directory with evaluation files", "--evals %s is not a directory", evals)
	}
	root, err := os.OpenRoot(evals) // symlinks must not lead out of it
	if err != nil {
		code, hint := exit.FileHint(err, "the path")
		return nil, exit.Errorf(code, hint, "%s: %w", shortPath(evals), fileerror.Cause(err))
	}
	defer root.Close()
	return evaluation.Evaluate(ctx, rt, e, shortPath(e.Path), evalfile.Read(root.FS(), e.Name), m)
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
		if r.Model != nil {
			a.writeModel(&b, r.Model)
		}
		if not := r.ListNotMeasured(); len(not) > 0 {
			a.WriteWrapped(&b, "  ", "not measured: "+strings.Join(not, ", "), a.Faint)
		}
	}
	fmt.Fprint(a.Stdout, b.String())
}

func (a *app) writeModel(b *strings.Builder, m *evaluation.Model) {
	for _, c := range m.Cases {
		a.writeFailure(b, &c.Case, c.Failure())
	}
	a.writeShare(b, "loaded for the right prompts by "+plain(m.Name), m.Share, len(m.Cases)-m.Invalid)
	a.WriteWrapped(b, "  ", fmt.Sprintf("%s, %s, %d of them cached", console.Pluralize(m.Steps, "response"), console.Pluralize(int(m.Tokens), "token"), m.Cached), a.Faint)
}

func (a *app) writeFailure(b *strings.Builder, c *evalfile.Case, failure string) {
	if failure != "" {
		a.WriteWrapped(b, "  ", fmt.Sprintf("%s:%d: “%s”", c.File, c.Line, c.Prompt), console.NoStyle)
		a.WriteWrapped(b, "      ", failure, a.Red)
	}
}

func (a *app) writeShare(b *strings.Builder, what string, s evaluation.Share, cases int) {
	fmt.Fprintf(b, "  %s: %.0f of %s (%.0f %%, 95 %% interval %.0f–%.0f %%)\n", what, s.Rate*float64(cases), console.Pluralize(cases, "case"), 100*s.Rate, 100*s.Low, 100*s.High)
	if s.Underpowered {
		a.WriteWrapped(b, "  ", "fewer than five cases say little about the skill", a.Faint)
	}
}

func (a *app) writeStatic(b *strings.Builder, r *evaluation.Result) {
	if !r.Static.Valid {
		a.WriteWrapped(b, "  ", "not valid; see: loadout validate "+console.ShellQuote(r.Path), a.Red)
	}
	if !r.Static.Complete {
		a.WriteWrapped(b, "  ", "refers to missing files; see: loadout validate "+console.ShellQuote(r.Path), a.Red)
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
	for _, c := range r.Cases {
		a.writeFailure(b, &c.Case, c.Failure())
	}
	a.writeShare(b, "found for the right prompts, among "+console.Pluralize(r.Skills, "skill"), r.Share, len(r.Cases))
	for _, s := range r.Similar {
		a.WriteWrapped(b, "  ", fmt.Sprintf("similar skill: %s (%.0f %% of the score for the same description)", s.Name, 100*s.Score), a.Faint)
	}
}
