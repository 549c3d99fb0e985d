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

	"github.com/loadout-dev/loadout/internal/scan"
	"github.com/loadout-dev/loadout/skill"
)

// scanTimeout bounds the scan of one skill.
const scanTimeout = time.Minute

// scanFlags are the flags of loadout scan.
type scanFlags struct {
	severity string
	sarif    bool
}

// scannedSkill is a skill in the output of scan --json.
type scannedSkill struct {
	Path string `json:"path"`
	*scan.Report
}

// scanOutput is the output of scan --json.
type scanOutput struct {
	Results []scannedSkill `json:"results"`
	Counts  map[string]int `json:"counts"` // findings by severity
	Level   scan.Severity  `json:"level"`  // lowest severity that makes the exit code 1
	Clean   bool           `json:"clean"`  // no finding at or above the level
	Notice  string         `json:"notice"`
}

const scanNotice = "A scan is not a guarantee: a skill without findings can be harmful, and a finding can be harmless."

func (a *app) scanCommand() *cobra.Command {
	var o scanFlags
	cmd := &cobra.Command{
		Use:   "scan PATH|NAME...",
		Short: "Scan skills for dangerous or hidden content",
		Long: `Scan the files of skills for hidden characters, instructions that turn an agent against
its user, commands that download and run code, encoded programs, secrets, and content
that the frontmatter does not declare. Name a skill by its directory, SKILL.md, archive
or NAME, or name a directory with skills below it.

A scan is not a guarantee: a skill without findings can be harmful, and a finding can
be harmless. The sandbox contains what runs. Exits with 1 if a finding has at least
the given severity.`,
		Example: `  loadout scan skills
  loadout scan pdf --severity medium
  loadout scan skills --sarif > scan.sarif
  loadout scan skills --json | jq '.results[].findings[] | select(.severity == "high")'`,
		Args:              argCount(1, -1, "the PATH or NAME of a skill"),
		ValidArgsFunction: a.completeSkill,
		RunE:              func(cmd *cobra.Command, args []string) error { return a.scanSkills(cmd.Context(), args, o) },
	}
	cmd.Flags().StringVar(&o.severity, "severity", "high", "exit with 1 from this `LEVEL` on: info, low, medium or high")
	cmd.Flags().BoolVar(&o.sarif, "sarif", false, "print a SARIF 2.1.0 log for code hosts and editors")
	return cmd
}

func (a *app) scanSkills(ctx context.Context, args []string, o scanFlags) error {
	level, err := scan.ParseSeverity(o.severity)
	switch {
	case err != nil:
		return fail(exitUsage, "use one of: info, low, medium, high", "--severity: %w", err)
	case o.sarif && a.json:
		return fail(exitUsage, "omit one of them", "--sarif and --json cannot be used together")
	}
	out := scanOutput{Results: []scannedSkill{}, Level: level, Clean: true, Notice: scanNotice}
	done := a.showProgress("scanning skills")
	for _, arg := range args {
		if err = a.scanArgument(ctx, arg, &out); err != nil {
			break
		}
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
	out.Counts = countFindings(reports...)
	switch {
	case a.json:
		err = a.printJSON(out)
	case o.sarif:
		var all []scan.PathReport
		for _, r := range out.Results {
			all = append(all, scan.PathReport{Path: filepath.ToSlash(r.Path), Report: r.Report})
		}
		err = scan.WriteSARIF(a.stdout, buildVersion().Version, scan.Info, all)
	default:
		a.printScanResults(out)
	}
	if err == nil && !out.Clean {
		return errReported
	}
	return err
}

// scanArgument scans what is at a path, or the skill with a name.
func (a *app) scanArgument(ctx context.Context, arg string, out *scanOutput) error {
	fi, err := os.Stat(arg)
	switch {
	case errors.Is(err, fs.ErrNotExist) && !strings.ContainsAny(arg, `/\`) && !isArchive(arg):
		return a.scanNamed(ctx, arg, out)
	case errors.Is(err, fs.ErrNotExist) && !strings.HasPrefix(arg, ".") && !filepath.IsAbs(arg) && strings.Count(arg, "/") == 1:
		return a.scanNamed(ctx, arg, out) // ORIGIN/NAME
	case err != nil:
		code, hint := fileErrorHint(err, "the path")
		return fail(code, hint, "%s: %w", arg, fileCause(err))
	case fi.IsDir():
		return scanBelow(ctx, arg, out)
	case skill.IsFileName(filepath.Base(arg)) && fi.Mode().IsRegular():
		return scanDir(ctx, filepath.Dir(arg), filepath.Dir(arg), out)
	case isArchive(arg) && fi.Mode().IsRegular():
		return scanArchive(ctx, arg, fi.Size(), out)
	}
	return fail(exitUsage, "give a skill's directory, its SKILL.md, a .zip or .skill archive, or a NAME", "not a skill: %s", arg)
}

func (a *app) scanNamed(ctx context.Context, ref string, out *scanOutput) error {
	rt, err := a.openRuntime(ctx)
	if err != nil {
		return err
	}
	defer rt.Close()
	e, err := a.resolveSkill(ctx, rt, ref)
	if err != nil {
		return err
	}
	b, err := rt.Catalog().Open(ctx, e)
	if err != nil {
		return err
	}
	defer b.Close()
	return scanBundle(ctx, b, e.Path, out)
}

// scanBelow scans a skill, or all skills below a directory. A directory without
// skills is scanned as a skill.
func scanBelow(ctx context.Context, dir string, out *scanOutput) error {
	if containsSkill(dir) {
		return scanDir(ctx, dir, dir, out)
	}
	root, before := dir, len(out.Results)
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		root = real // WalkDir does not follow symlinks, not even for the root
	}
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		shown := filepath.Join(dir, strings.TrimPrefix(p, root))
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			return fail(exitFailure, "check that you can read it", "%s: %w", shown, fileCause(err))
		case d.IsDir() && p != root && (skill.IsIgnored(d.Name()) || d.Name() == "node_modules"):
			return fs.SkipDir
		case d.IsDir() && p != root && containsSkill(p):
			if err := scanDir(ctx, p, shown, out); err != nil {
				return err
			}
			return fs.SkipDir // files below belong to the skill
		case d.Type()&fs.ModeSymlink != 0 && containsSkill(p):
			return scanDir(ctx, p, shown, out)
		case d.Type().IsRegular() && strings.EqualFold(filepath.Ext(p), ".skill"):
			info, err := d.Info()
			if err != nil {
				return nil // deleted in the meantime
			}
			return scanArchive(ctx, p, info.Size(), out)
		}
		return nil
	})
	if err == nil && len(out.Results) == before {
		return scanDir(ctx, dir, dir, out)
	}
	return err
}

func scanDir(ctx context.Context, dir, shown string, out *scanOutput) error {
	abs, err := filepath.Abs(dir)
	if err != nil {
		abs = dir
	}
	b, err := skill.OpenDir(abs)
	if err != nil {
		code, hint := fileErrorHint(err, "the path")
		return fail(code, hint, "%s: %w", shown, fileCause(err))
	}
	defer b.Close()
	return scanBundle(ctx, b, shown, out)
}

func scanArchive(ctx context.Context, p string, size int64, out *scanOutput) error {
	f, err := os.Open(p)
	if err != nil {
		code, hint := fileErrorHint(err, "the path")
		return fail(code, hint, "%s: %w", p, fileCause(err))
	}
	defer f.Close()
	b, err := skill.OpenZIP(f, size, p, skill.Limits{AllowFolderMismatch: true})
	if _, refused := skill.Refusals(err); refused {
		return fail(exitFailure, "list the reasons: loadout inspect "+shellQuote(p), "archive %s is refused and was not scanned", p)
	}
	if err != nil {
		return err
	}
	defer b.Close()
	return scanBundle(ctx, b, p, out)
}

func scanBundle(ctx context.Context, b *skill.Bundle, shown string, out *scanOutput) error {
	limited, cancel := context.WithTimeout(ctx, scanTimeout)
	defer cancel()
	r, err := scan.Skill(limited, b.FS, b.Folder)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, context.DeadlineExceeded):
		return fail(exitFailure, "review it yourself; scanning a normal skill does not take that long", "%s: scan took longer than %v", shown, scanTimeout)
	case errors.Is(err, skill.ErrTooLarge):
		return fail(exitFailure, "review it yourself", "%s: %w", shown, err)
	case err != nil:
		return fail(exitFailure, "check that you can read it", "%s: %w", shown, err)
	}
	out.Results = append(out.Results, scannedSkill{shown, r})
	return nil
}

// printScanResults prints findings by skill. Informational findings are only
// counted, unless the level includes them. With --quiet only findings at the
// level are printed.
func (a *app) printScanResults(out scanOutput) {
	from := min(out.Level, scan.Low)
	if a.quiet {
		from = out.Level
	}
	var b strings.Builder
	for _, r := range out.Results {
		verdict := a.green("no findings")
		if worst, any := r.Worst(); any && worst >= out.Level {
			verdict = a.red(pluralize(len(r.Findings), "finding"))
		} else if any {
			verdict = pluralize(len(r.Findings), "finding") + " below " + out.Level.String()
		}
		if worst, any := r.Worst(); a.quiet && (!any || worst < from) {
			continue
		}
		fmt.Fprintf(&b, "%s: %s\n", a.bold(plain(r.Path)), verdict)
		for _, f := range r.Findings {
			if f.Severity >= from {
				a.printScanFinding(&b, f, out.Level)
			}
		}
		if r.Truncated {
			a.writeWrapped(&b, "  ", "incomplete: too much content to scan or list", a.red)
		}
	}
	c := out.Counts
	fmt.Fprintf(&b, "%s: %d high, %d medium, %d low, %d informational\n", pluralize(len(out.Results), "skill"), c["high"], c["medium"], c["low"], c["info"])
	if !a.quiet {
		a.writeWrapped(&b, "", out.Notice, a.faint)
	}
	fmt.Fprint(a.stdout, b.String())
}

func (a *app) printScanFinding(b *strings.Builder, f scan.Finding, level scan.Severity) {
	style := noStyle
	if f.Severity >= level {
		style = a.red
	}
	a.writeWrapped(b, "  ", fmt.Sprintf("%s: %s: %s [%s]", formatLocation(f), f.Severity, f.Message, f.Rule), style)
	if f.Excerpt != "" {
		a.writeWrapped(b, "      ", "“"+f.Excerpt+"”", noStyle)
	}
	a.writeWrapped(b, "      ", f.Advice, a.faint)
}
