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

	"github.com/loadout-dev/loadout/scan"
	"github.com/loadout-dev/loadout/skill"
)

// scanTime is how long the scan of one skill may take.
const scanTime = time.Minute

// scanFlags are the flags of loadout scan.
type scanFlags struct {
	severity string
	sarif    bool
}

// scannedSkill is a skill in scan --json.
type scannedSkill struct {
	Path string `json:"path"`
	*scan.Report
}

// scanOutput is scan --json.
type scanOutput struct {
	Results []scannedSkill `json:"results"`
	Counts  map[string]int `json:"counts"` // findings by severity
	Level   scan.Severity  `json:"level"`  // from which a finding makes the exit code 1
	Clean   bool           `json:"clean"`  // none at or above the level
	Notice  string         `json:"notice"`
}

const scanNotice = "A scan advises and does not decide: what is clean can still be harmful, and a finding harmless."

func (a *app) scanCommand() *cobra.Command {
	var o scanFlags
	cmd := &cobra.Command{
		Use:   "scan PATH|NAME...",
		Short: "Look for what is dangerous or hidden in skills",
		Long: `Look through the files of skills for hidden characters, instructions that turn an
agent against its person, commands that fetch and run, encoded programs, secrets, and
what the frontmatter does not say. A skill is named by its directory, SKILL.md or
archive, by a directory with skills below, or by NAME. It advises and does not decide:
what is clean can still be harmful, and a finding harmless; code is held back by the
sandbox. Exits with 1 if something of the severity, or above it, was found.`,
		Example: `  loadout scan skills
  loadout scan pdf --severity medium
  loadout scan skills --sarif > scan.sarif
  loadout scan skills --json | jq '.results[].findings[] | select(.severity == "high")'`,
		Args:              want(1, -1, "the PATH or NAME of a skill"),
		ValidArgsFunction: a.completeSkill,
		RunE:              func(cmd *cobra.Command, args []string) error { return a.scan(cmd.Context(), args, o) },
	}
	cmd.Flags().StringVar(&o.severity, "severity", "high", "exit with 1 from this `LEVEL` on: info, low, medium or high")
	cmd.Flags().BoolVar(&o.sarif, "sarif", false, "print a SARIF 2.1.0 log, for code hosts and editors")
	return cmd
}

func (a *app) scan(ctx context.Context, args []string, o scanFlags) error {
	level, err := scan.ParseSeverity(o.severity)
	switch {
	case err != nil:
		return fail(exitUsage, "give one of: info, low, medium, high", "--severity: %w", err)
	case o.sarif && a.json:
		return fail(exitUsage, "give one of them", "--sarif and --json are two forms")
	}
	out := scanOutput{Results: []scannedSkill{}, Level: level, Clean: true, Notice: scanNotice}
	done := a.progress("scanning skills")
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
	out.Counts = countsOf(reports...)
	switch {
	case a.json:
		err = a.printJSON(out)
	case o.sarif:
		var all []scan.Scanned
		for _, r := range out.Results {
			all = append(all, scan.Scanned{Path: filepath.ToSlash(r.Path), Report: r.Report})
		}
		err = scan.WriteSARIF(a.stdout, buildVersion().Version, scan.Info, all)
	default:
		a.printScanned(out)
	}
	if err == nil && !out.Clean {
		return errFound
	}
	return err
}

// scanArgument scans what is at a path, or the skill of a name.
func (a *app) scanArgument(ctx context.Context, arg string, out *scanOutput) error {
	fi, err := os.Stat(arg)
	switch {
	case errors.Is(err, fs.ErrNotExist) && !strings.ContainsAny(arg, `/\`) && !isArchive(arg):
		return a.scanNamed(ctx, arg, out)
	case errors.Is(err, fs.ErrNotExist) && !strings.HasPrefix(arg, ".") && !filepath.IsAbs(arg) && strings.Count(arg, "/") == 1:
		return a.scanNamed(ctx, arg, out) // ORIGIN/NAME
	case err != nil:
		code, hint := missing(err, "the path")
		return fail(code, hint, "%s: %w", arg, reason(err))
	case fi.IsDir():
		return scanBelow(ctx, arg, out)
	case skill.IsFileName(filepath.Base(arg)) && fi.Mode().IsRegular():
		return scanDir(ctx, filepath.Dir(arg), filepath.Dir(arg), out)
	case isArchive(arg) && fi.Mode().IsRegular():
		return scanArchive(ctx, arg, fi.Size(), out)
	}
	return fail(exitUsage, "give a skill's directory, its SKILL.md, a .zip or .skill archive, or a NAME", "%s is no skill", arg)
}

func (a *app) scanNamed(ctx context.Context, ref string, out *scanOutput) error {
	rt, err := a.open(ctx)
	if err != nil {
		return err
	}
	defer rt.Close()
	e, err := a.resolve(ctx, rt, ref)
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
// any is looked at as it is.
func scanBelow(ctx context.Context, dir string, out *scanOutput) error {
	if hasSkill(dir) {
		return scanDir(ctx, dir, dir, out)
	}
	root, before := dir, len(out.Results)
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		root = real // a walk does not follow a link, not even the first
	}
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		shown := filepath.Join(dir, strings.TrimPrefix(p, root))
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			return fail(exitFound, "check that you have the right to read it", "%s: %w", shown, reason(err))
		case d.IsDir() && p != root && (skill.Ignored(d.Name()) || d.Name() == "node_modules"):
			return fs.SkipDir
		case d.IsDir() && p != root && hasSkill(p):
			if err := scanDir(ctx, p, shown, out); err != nil {
				return err
			}
			return fs.SkipDir // what is below is part of the skill
		case d.Type()&fs.ModeSymlink != 0 && hasSkill(p):
			return scanDir(ctx, p, shown, out)
		case d.Type().IsRegular() && strings.EqualFold(filepath.Ext(p), ".skill"):
			info, err := d.Info()
			if err != nil {
				return nil // it is gone
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
		code, hint := missing(err, "the path")
		return fail(code, hint, "%s: %w", shown, reason(err))
	}
	defer b.Close()
	return scanBundle(ctx, b, shown, out)
}

func scanArchive(ctx context.Context, p string, size int64, out *scanOutput) error {
	f, err := os.Open(p)
	if err != nil {
		code, hint := missing(err, "the path")
		return fail(code, hint, "%s: %w", p, reason(err))
	}
	defer f.Close()
	b, err := skill.OpenZIP(f, size, p, skill.Limits{AnyFolder: true})
	if _, refused := skill.IsRefused(err); refused {
		return fail(exitFound, "see every reason: loadout inspect "+quoted(p), "%s is refused, and was not looked at", p)
	}
	if err != nil {
		return err
	}
	defer b.Close()
	return scanBundle(ctx, b, p, out)
}

func scanBundle(ctx context.Context, b *skill.Bundle, shown string, out *scanOutput) error {
	limited, cancel := context.WithTimeout(ctx, scanTime)
	defer cancel()
	r, err := scan.Skill(limited, b.FS, b.Folder)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, context.DeadlineExceeded):
		return fail(exitFound, "look through it yourself; no honest skill takes that long", "%s: the scan took longer than %v", shown, scanTime)
	case errors.Is(err, skill.ErrTooLarge):
		return fail(exitFound, "look through it yourself", "%s: %w", shown, err)
	case err != nil:
		return fail(exitFound, "check that you have the right to read it", "%s: %w", shown, err)
	}
	out.Results = append(out.Results, scannedSkill{shown, r})
	return nil
}

// printScanned prints findings by skill. Those that are for information are
// counted only, unless the level asks for them; with --quiet only those at the
// level are printed.
func (a *app) printScanned(out scanOutput) {
	from := min(out.Level, scan.Low)
	if a.quiet {
		from = out.Level
	}
	var b strings.Builder
	for _, r := range out.Results {
		verdict := a.green("nothing found")
		if worst, any := r.Worst(); any && worst >= out.Level {
			verdict = a.red(counted(len(r.Findings), "finding"))
		} else if any {
			verdict = counted(len(r.Findings), "finding") + " below " + out.Level.String()
		}
		if worst, any := r.Worst(); a.quiet && (!any || worst < from) {
			continue
		}
		fmt.Fprintf(&b, "%s: %s\n", a.bold(plain(r.Path)), verdict)
		for _, f := range r.Findings {
			if f.Severity >= from {
				a.scanFinding(&b, f, out.Level)
			}
		}
		if r.Truncated {
			a.wrap(&b, "  ", "not everything was looked at or listed: it is too much", a.red)
		}
	}
	c := out.Counts
	fmt.Fprintf(&b, "%s: %d high, %d medium, %d low, %d for information\n", counted(len(out.Results), "skill"), c["high"], c["medium"], c["low"], c["info"])
	if !a.quiet {
		a.wrap(&b, "", out.Notice, a.faint)
	}
	fmt.Fprint(a.stdout, b.String())
}

func (a *app) scanFinding(b *strings.Builder, f scan.Finding, level scan.Severity) {
	style := same
	if f.Severity >= level {
		style = a.red
	}
	a.wrap(b, "  ", fmt.Sprintf("%s: %s: %s [%s]", placed(f), f.Severity, f.Message, f.Rule), style)
	if f.Excerpt != "" {
		a.wrap(b, "      ", "“"+f.Excerpt+"”", same)
	}
	a.wrap(b, "      ", f.Advice, a.faint)
}
