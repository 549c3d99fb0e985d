package main

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/console"
	"github.com/loadout-dev/loadout/internal/install"
	"github.com/loadout-dev/loadout/internal/remote"
	"github.com/loadout-dev/loadout/internal/scan"
	"github.com/loadout-dev/loadout/internal/skilldiff"
	"github.com/loadout-dev/loadout/internal/skillpath"
	"github.com/loadout-dev/loadout/internal/terminal"
)

// tableThreshold is the minimum number of skills for which a plan is printed as
// a table. With --dry-run, which lists what a source offers, two are enough.
const tableThreshold = 6

// printPlan prints a plan's changes and the scan findings.
func (a *app) printPlan(p *plan, problems []catalog.Problem, o planOptions) {
	changes := p.Changes()
	if !o.fullDiff && (len(changes) >= tableThreshold || o.dryRun && o.verb == "add" && len(changes) > 1) {
		a.printPlanTable(changes)
	} else {
		var b strings.Builder
		for _, st := range changes {
			a.formatStep(&b, st, o.fullDiff)
		}
		fmt.Fprint(a.Stdout, b.String())
	}
	if len(changes) > 0 && !slices.ContainsFunc(changes, hasScanResult) {
		fmt.Fprintln(a.Stdout, "Scan: no findings (not a guarantee).")
	}
	a.printUnavailable(problems)
}

// hasScanResult reports whether a skill's scan has findings or problems.
func hasScanResult(st *install.Step) bool {
	return st.ScanErr != nil || st.Report.Truncated || formatSeverities(st.Report) != ""
}

// printPlanTable prints one line per skill, followed by its worst findings.
func (a *app) printPlanTable(changes []*install.Step) {
	var rows [][]string
	var b strings.Builder
	for _, st := range changes {
		what, about := console.Pluralize(st.Files, "file"), plain(st.Description)
		if n := len(st.Scripts); n > 0 {
			what += ", " + console.Pluralize(n, "script")
		}
		if st.Diff != nil {
			what, about = console.Pluralize(len(st.Diff.Files), "changed file"), formatOrigin(st)
			a.formatPermissionChanges(&b, plain(st.Name)+" ", st.Diff)
		}
		rows = append(rows, []string{st.Name, what, about})
		if st.Publisher != nil && st.Publisher.First {
			fmt.Fprintf(&b, "%s: %s\n", plain(st.Name), plain(formatPublisher(st.Publisher)))
		}
		if text := a.formatWorstFinding(st); text != "" {
			fmt.Fprintf(&b, "%s: %s\n", plain(st.Name), text)
		}
	}
	a.PrintTable("", rows)
	fmt.Fprint(a.Stdout, b.String())
}

// formatStep writes a skill's origin, publisher, changes and findings.
func (a *app) formatStep(b *strings.Builder, st *install.Step, full bool) {
	what := ""
	if st.State == "replaced" {
		what = a.Faint(" replaces the installed version")
	}
	fmt.Fprintf(b, "%s %s%s\n", a.Bold(plain(st.Name)), a.Faint(plain(formatOrigin(st))), what)
	if st.Diff == nil {
		a.WriteWrapped(b, "  ", terminal.Clip(plain(st.Description), 240), console.NoStyle)
	}
	a.WriteWrapped(b, "  ", fmt.Sprintf("%s, %s%s", console.Pluralize(st.Files, "file"), console.FormatSize(st.Bytes), formatScripts(st.Scripts)), console.NoStyle)
	if st.Publisher != nil {
		a.WriteWrapped(b, "  ", formatPublisher(st.Publisher), console.NoStyle)
	}
	if st.From.Kind == remote.Git && st.Entry.Ref == "" {
		a.WriteWrapped(b, "  ", "installed by commit, which may not be on a branch: Git hosts also serve commits of forks", console.NoStyle)
	}
	if st.Diff != nil {
		a.formatDiff(b, st.Diff, full)
	}
	switch {
	case st.ScanErr != nil:
		a.WriteWrapped(b, "  ", "scan failed: "+st.ScanErr.Error(), console.NoStyle)
	case hasScanResult(st):
		b.WriteString(indentLines(a.formatFindings(st.Report, "the same with --dry-run --json")))
	}
}

// formatOrigin returns a skill's location and abbreviated commit.
func formatOrigin(st *install.Step) string {
	text := st.From.String()
	if len(st.Commit) >= 12 {
		text += " (" + st.Commit[:12] + ")"
	}
	return text
}

// formatPublisher describes who signed a skill.
func formatPublisher(p *install.Publisher) string {
	text := fmt.Sprintf("signed by %s, key %s", p.Name, p.Fingerprint)
	switch {
	case p.Counter > 0:
		text += fmt.Sprintf(", version %d of %s", p.Counter, p.Time.Format(time.DateOnly))
	default:
		text += ", no history: an older version would not be detected"
	}
	if !p.Expires.IsZero() {
		text += ", key expires on " + p.Expires.Format(time.DateOnly)
	}
	if p.Replaces != "" {
		text += "; the owner of the remembered key " + p.Replaces + " replaced it with this one"
	}
	if p.First {
		text += "; first key of this source, now remembered"
	}
	return text
}

func formatScripts(scripts []string) string {
	const most = 3
	switch n := len(scripts); {
	case n == 0:
		return ", no scripts"
	case n <= most:
		return ", scripts: " + plain(strings.Join(scripts, ", "))
	default:
		return fmt.Sprintf(", scripts: %s and %d more", plain(strings.Join(scripts[:most], ", ")), n-most)
	}
}

// formatWorstFinding summarizes a skill's scan in one line, for long plans.
func (a *app) formatWorstFinding(st *install.Step) string {
	switch {
	case st.ScanErr != nil:
		return "scan failed: " + plain(st.ScanErr.Error())
	case formatSeverities(st.Report) == "":
		return ""
	}
	text := "scan found " + formatSeverities(st.Report)
	if f := st.Report.Findings[0]; f.Severity == scan.High {
		text = a.Red(text) + ", such as " + plain(formatLocation(f)+": "+f.Message)
	}
	return text
}

func indentLines(text string) string {
	return "  " + strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n  ") + "\n"
}

// formatDiff writes the changes of an update: files, requested permissions and
// instructions.
func (a *app) formatDiff(b *strings.Builder, d *skilldiff.Diff, full bool) {
	const most = 12
	if len(d.Files) == 0 {
		fmt.Fprintln(b, "  no files changed")
	}
	for i, f := range d.Files {
		if i == most && !full {
			fmt.Fprintf(b, "  and %s more\n", console.Pluralize(len(d.Files)-most, "file"))
			break
		}
		script := ""
		if f.Script {
			script = a.Red(" script")
		}
		fmt.Fprintf(b, "  %-7s %s%s %s\n", f.Change, formatPath(f), script, a.Faint(formatLineCounts(f)))
		if full && f.Diff != "" && !skillpath.IsSkillFile(f.Path) {
			b.WriteString(indentLines(indentLines(a.colorDiff(f.Diff))))
		}
	}
	a.formatPermissionChanges(b, "  ", d)
	for _, p := range d.Problems {
		fmt.Fprintf(b, "  %s\n", plain(p))
	}
	text := d.Instructions
	if !full {
		text = truncateLines(text, 40, "  … show everything: loadout update --dry-run --diff")
	}
	if text != "" {
		b.WriteString(indentLines(a.colorDiff(text)))
	}
}

// formatPermissionChanges writes the requested permissions that the new version
// adds or drops.
func (a *app) formatPermissionChanges(b *strings.Builder, before string, d *skilldiff.Diff) {
	for _, ask := range d.Permissions.More {
		fmt.Fprintf(b, "%s%s %s\n", before, a.Red("new permission:"), formatPermission(ask))
	}
	for _, ask := range d.Permissions.Less {
		fmt.Fprintf(b, "%sno longer requested: %s\n", before, formatPermission(ask))
	}
}

// formatPath returns a file's path, and its old path if it was renamed.
func formatPath(f skilldiff.File) string {
	if f.From != "" {
		return plain(f.From) + " → " + plain(f.Path)
	}
	return plain(f.Path)
}

// formatLineCounts formats the number of added and removed lines, or the reason
// why the numbers are unknown.
func formatLineCounts(f skilldiff.File) string {
	switch {
	case f.Omitted != "":
		return plain(f.Omitted)
	case f.Text:
		return fmt.Sprintf("+%d -%d", f.Added, f.Removed)
	}
	return ""
}

// formatPermission describes a change to one requested permission.
func formatPermission(ask skilldiff.PermissionChange) string {
	text := plain(ask.Kind + " " + ask.Name)
	switch {
	case ask.Old != "" && ask.New != "":
		text += ": " + plain(ask.Old) + " → " + plain(ask.New)
	case ask.Old != "" || ask.New != "":
		text += ": " + plain(ask.Old+ask.New)
	}
	return text
}

// truncateLines truncates text to the given number of lines. If it removes
// lines, it appends suffix as the last line.
func truncateLines(text string, limit int, suffix string) string {
	lines := strings.SplitAfter(text, "\n")
	if len(lines) <= limit {
		return text
	}
	return strings.Join(lines[:limit], "") + suffix + "\n"
}

// colorDiff colors the lines of a unified diff.
func (a *app) colorDiff(text string) string {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	for i, l := range lines {
		switch {
		case strings.HasPrefix(l, "+"):
			lines[i] = a.Green(l)
		case strings.HasPrefix(l, "-"):
			lines[i] = a.Red(l)
		case strings.HasPrefix(l, "@@"):
			lines[i] = a.Faint(l)
		}
	}
	return strings.Join(lines, "\n")
}

// printPlanResult prints the installed skills and the next steps.
func (a *app) printPlanResult(ctx context.Context, p *plan, o planOptions) {
	changes := p.Changes()
	switch same := len(p.Steps) - len(changes); {
	case a.Quiet || same == 0:
	case same == 1:
		fmt.Fprintln(a.Stderr, "1 skill is already up to date.")
	default:
		fmt.Fprintf(a.Stderr, "%d skills are already up to date.\n", same)
	}
	if len(changes) == 0 {
		return
	}
	if o.dryRun {
		fmt.Fprintf(a.Stderr, "Dry run: nothing was changed. Target directory: %s\n", p.to.Path())
		return
	}
	done := map[string]string{"add": "Added", "update": "Updated"}[o.verb]
	fmt.Fprintf(a.Stdout, "\n%s %s in %s\n", a.Green(done), console.Pluralize(len(changes), "skill"), p.to.Path())
	var scripted []string
	for _, st := range changes {
		if len(st.Scripts) > 0 {
			scripted = append(scripted, st.Name)
		}
	}
	hidden := a.findHidden(ctx, p, changes)
	switch n := len(scripted); {
	case len(hidden) > 0 || a.Quiet && p.to.Scope == "":
		// their names resolve to other skills, so approving by name is not
		// enough
	case n == 1:
		fmt.Fprintf(a.Stdout, "To let agents run the scripts of %s: loadout approve %s\n", plain(scripted[0]), console.ShellQuote(scripted[0]))
	case n > 1:
		fmt.Fprintf(a.Stdout, "%d of them have scripts. To let agents run them: loadout approve NAME\n", n)
	}
	for _, h := range hidden {
		fmt.Fprintf(a.Stderr, "%s resolves to another skill here: %s takes precedence. See: loadout explain %s\n", plain(h.name), plain(h.by), console.ShellQuote(h.name))
	}
	if p.to.Scope == "" && o.verb == "add" && !a.Quiet {
		fmt.Fprintf(a.Stderr, "To update or verify these skills, add%s\n", p.to.Flag())
	}
	if local := p.to.Scope == "project" && slices.ContainsFunc(changes, func(st *install.Step) bool { return st.From.Kind == remote.Local }); local {
		a.Note("loadout.lock refers to a directory of this machine, which other users of the project do not have")
	}
}

// hiddenSkill is an installed skill shadowed by another skill of the same name.
type hiddenSkill struct{ name, by string }

// findHidden returns the installed skills whose names resolve to other skills.
// It returns nil if that cannot be determined.
func (a *app) findHidden(ctx context.Context, p *plan, changes []*install.Step) []hiddenSkill {
	if p.to.Scope == "" {
		return nil
	}
	rt, err := a.OpenRuntime(ctx)
	if err != nil {
		return nil // other commands report this error
	}
	defer rt.Close()
	var out []hiddenSkill
	for _, st := range changes {
		e, err := rt.Catalog().Resolve(ctx, st.SkillName)
		if err == nil && filepath.Clean(e.Path) != filepath.Join(p.to.Path(), st.Name) {
			out = append(out, hiddenSkill{st.SkillName, e.Path})
		}
	}
	return out
}
