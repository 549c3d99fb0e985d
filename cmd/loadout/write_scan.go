package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/loadout-dev/loadout/internal/console"
	"github.com/loadout-dev/loadout/internal/detonation"
	"github.com/loadout-dev/loadout/internal/exit"
	"github.com/loadout-dev/loadout/internal/scan"
	"github.com/loadout-dev/loadout/internal/setup"
	"github.com/loadout-dev/loadout/internal/skillcheck"
	"github.com/loadout-dev/loadout/skill"
)

// scanFlags holds the flags of the scan command.
type scanFlags struct {
	severity string
	sarif    bool
	run      bool
	timeout  time.Duration
}

// scanOutput is the JSON output of the scan command.
type scanOutput struct {
	Results []scanResult   `json:"results"`
	Counts  map[string]int `json:"counts"` // findings by severity
	Level   scan.Severity  `json:"level"`  // lowest severity that sets the exit code to 1
	Clean   bool           `json:"clean"`  // whether there are no findings at or above the level
	Notice  string         `json:"notice"`
}

// scanResult is the result for one skill. Run is set if its scripts were run.
type scanResult struct {
	skillcheck.Scanned
	Run *detonation.Report `json:"run,omitempty"`
}

const scanNotice = "A scan is not a guarantee: a skill without findings can be harmful, and a finding can be harmless."

func (a *app) scanCommand() *cobra.Command {
	var o scanFlags
	cmd := &cobra.Command{
		Use:   "scan PATH|NAME...",
		Short: "Scan skills for dangerous or hidden content",
		Long: `Scan the files of skills for hidden characters, instructions that turn an agent against
its user, commands that download and run code, encoded programs, secrets, and behavior
that the frontmatter does not declare. PATH is the directory, SKILL.md or archive of a
skill, or a directory with skills below it. NAME is the name of an available skill.

--run also runs the scripts of one skill in the sandbox, without arguments, with --help
and with an input file, and reports what they do. They see none of your files, secrets
and hosts: their home directory and environment contain decoys, and each request is
answered inside the sandbox. Only you can use --run, not an agent.

A scan is not a guarantee: a skill without findings can be harmful, and a finding can
be harmless. The sandbox limits what scripts can do. Exits with status 1 if a finding
has at least the given severity.`,
		Example: `  loadout scan skills
  loadout scan pdf --severity medium
  loadout scan pdf --run
  loadout scan skills --sarif > scan.sarif
  loadout scan skills --json | jq '.results[].findings[] | select(.severity == "high")'`,
		Args:              argCount(1, -1, "the PATH or NAME of a skill"),
		ValidArgsFunction: a.completeSkill,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkDuration(cmd, "timeout", o.timeout); err != nil {
				return err
			}
			return a.scanSkills(cmd.Context(), args, o)
		},
	}
	cmd.Flags().StringVar(&o.severity, "severity", "high", "minimum `LEVEL` for exit code 1: info, low, medium or high")
	cmd.Flags().BoolVar(&o.sarif, "sarif", false, "print a SARIF 2.1.0 log for code hosts and editors")
	cmd.Flags().BoolVar(&o.run, "run", false, "also run the skill's scripts in the sandbox with decoy secrets")
	cmd.Flags().DurationVar(&o.timeout, "timeout", detonation.DefaultTimeout, "with --run, stop each script after `TIME`")
	return cmd
}

func (a *app) scanSkills(ctx context.Context, args []string, o scanFlags) error {
	level, err := scan.ParseSeverity(o.severity)
	switch {
	case err != nil:
		return exit.Errorf(exit.Usage, "use one of: info, low, medium, high", "--severity: %w", err)
	case o.sarif && a.JSON:
		return exit.Errorf(exit.Usage, "omit one of them", "--sarif and --json cannot be used together")
	}
	if o.run {
		if err := a.requireScanRun(ctx, args); err != nil {
			return err
		}
	}
	out := scanOutput{Results: []scanResult{}, Level: level, Clean: true, Notice: scanNotice}
	done := a.ShowProgress("scanning skills")
	for _, arg := range args {
		found, failed := a.scanArgument(ctx, arg, o)
		if err = failed; err != nil {
			break
		}
		out.Results = append(out.Results, found...)
	}
	done()
	if err != nil {
		return err
	}
	reports := make([]*scan.Report, len(out.Results))
	for i, r := range out.Results {
		worst, any := r.Worst()
		out.Clean = out.Clean && (!any || worst < level)
		reports[i] = r.Report
	}
	out.Counts = skillcheck.CountFindings(reports...)
	switch {
	case a.JSON:
		err = a.PrintJSON(out)
	case o.sarif:
		var all []scan.PathReport
		for _, r := range out.Results {
			all = append(all, scan.PathReport{Path: filepath.ToSlash(r.Path), Report: r.Report})
		}
		err = scan.WriteSARIF(a.Stdout, setup.ReadVersion().Version, scan.Info, all)
	default:
		a.printScanResults(out)
	}
	if err == nil && !out.Clean {
		return exit.Reported
	}
	return err
}

// scanArgument scans the skills at a path, or the skill with the given name.
func (a *app) scanArgument(ctx context.Context, arg string, o scanFlags) ([]scanResult, error) {
	if _, err := os.Stat(arg); errors.Is(err, fs.ErrNotExist) && isSkillRef(arg) {
		s, err := a.scanNamed(ctx, arg, o)
		return []scanResult{s}, err
	}
	if o.run {
		s, err := a.scanRunPath(ctx, arg, o)
		return []scanResult{s}, err
	}
	all, err := skillcheck.ScanPath(ctx, arg)
	if errors.Is(err, skillcheck.ErrNotSkill) {
		return nil, exit.Errorf(exit.Usage, "give a skill's directory, its SKILL.md, a .zip or .skill archive, or a NAME", "not a skill: %s", arg)
	}
	var out []scanResult
	for _, s := range all {
		out = append(out, scanResult{Scanned: s})
	}
	return out, classifyScanError(err)
}

// isSkillRef reports whether an argument that is not a path has the form NAME
// or ORIGIN/NAME of a skill.
func isSkillRef(arg string) bool {
	if !strings.ContainsAny(arg, `/\`) {
		return !skillcheck.IsArchive(arg)
	}
	return !strings.HasPrefix(arg, ".") && !filepath.IsAbs(arg) && strings.Count(arg, "/") == 1
}

func (a *app) scanNamed(ctx context.Context, ref string, o scanFlags) (scanResult, error) {
	rt, err := a.OpenRuntime(ctx)
	if err != nil {
		return scanResult{}, err
	}
	defer rt.Close()
	e, err := a.resolveSkill(ctx, rt, ref)
	if err != nil {
		return scanResult{}, err
	}
	b, err := rt.Catalog().Open(ctx, e)
	if err != nil {
		return scanResult{}, err
	}
	defer b.Close()
	return a.scanOpened(ctx, b, e.Path, o)
}

// scanOpened scans an open skill, and runs its scripts if o says so.
func (a *app) scanOpened(ctx context.Context, b *skill.Bundle, shown string, o scanFlags) (scanResult, error) {
	s, err := skillcheck.ScanBundle(ctx, b, shown)
	out := scanResult{Scanned: s}
	if err == nil && o.run {
		out.Run, err = a.runForScan(ctx, b, o)
		if err == nil {
			out.Add(out.Run.Findings...)
		}
	}
	return out, classifyScanError(err)
}

// classifyScanError adds the exit code and the hint to a scan error.
func classifyScanError(err error) error {
	e, ok := errors.AsType[*skillcheck.ScanError](err)
	if !ok {
		return err
	}
	if _, refused := errors.AsType[*skill.RefusedError](e.Err); refused {
		return exit.Errorf(exit.Failure, "list the reasons: loadout inspect "+console.ShellQuote(e.Path), "archive %s is refused and was not scanned", e.Path)
	}
	code, hint := exit.FileHint(e.Err, "the path")
	switch {
	case isType[*skillcheck.TimeoutError](err):
		code, hint = exit.Failure, "review it yourself; scanning a normal skill does not take that long"
	case errors.Is(err, skill.ErrTooLarge):
		code, hint = exit.Failure, "review it yourself"
	case e.Opened:
		code, hint = exit.Failure, "check that you can read it"
	}
	return exit.Errorf(code, hint, "%w", err)
}

// printScanResults prints findings by skill. Informational findings are only
// counted, unless the level includes them. With --quiet, only findings at or
// above the level are printed.
func (a *app) printScanResults(out scanOutput) {
	from := min(out.Level, scan.Low)
	if a.Quiet {
		from = out.Level
	}
	var b strings.Builder
	for _, r := range out.Results {
		verdict := a.Green("no findings")
		if worst, any := r.Worst(); any && worst >= out.Level {
			verdict = a.Red(console.Pluralize(len(r.Findings), "finding"))
		} else if any {
			verdict = console.Pluralize(len(r.Findings), "finding") + " below " + out.Level.String()
		}
		if worst, any := r.Worst(); a.Quiet && (!any || worst < from) {
			continue
		}
		fmt.Fprintf(&b, "%s: %s\n", a.Bold(plain(r.Path)), verdict)
		a.printScanRuns(&b, r.Run)
		for _, f := range r.Findings {
			if f.Severity >= from {
				a.printScanFinding(&b, f, out.Level)
			}
		}
		if r.Truncated {
			a.WriteWrapped(&b, "  ", "incomplete: too much content to scan or list", a.Red)
		}
	}
	c := out.Counts
	fmt.Fprintf(&b, "%s: %d high, %d medium, %d low, %d informational\n", console.Pluralize(len(out.Results), "skill"), c["high"], c["medium"], c["low"], c["info"])
	if !a.Quiet {
		a.WriteWrapped(&b, "", out.Notice, a.Faint)
	}
	fmt.Fprint(a.Stdout, b.String())
}

func (a *app) printScanFinding(b *strings.Builder, f scan.Finding, level scan.Severity) {
	style := console.NoStyle
	if f.Severity >= level {
		style = a.Red
	}
	a.WriteWrapped(b, "  ", fmt.Sprintf("%s: %s: %s [%s]", formatLocation(f), f.Severity, f.Message, f.Rule), style)
	if f.Excerpt != "" {
		a.WriteWrapped(b, "      ", "“"+f.Excerpt+"”", console.NoStyle)
	}
	a.WriteWrapped(b, "      ", f.Advice, a.Faint)
}
