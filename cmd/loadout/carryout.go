package main

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/terminal"
	"github.com/loadout-dev/loadout/remote"
	"github.com/loadout-dev/loadout/scan"
	"github.com/loadout-dev/loadout/skill"
	"github.com/loadout-dev/loadout/skilldiff"
)

// carryFlags say how a plan is carried out.
type carryFlags struct {
	yes, dryRun, full bool
	verb              string // add or update
}

// carryOut shows a plan, asks on a terminal, and does it.
func (a *app) carryOut(ctx context.Context, p *plan, out addOutput, o carryFlags) error {
	out.Problems = append(out.Problems, p.problems...)
	for _, st := range p.steps {
		out.Skills = append(out.Skills, st.addedSkill)
	}
	if len(p.steps) == 0 && len(p.failed) == 1 && !a.json { // it was all that was wanted
		code, fix := a.advice(p.failed[0])
		return fail(code, fix, "%w", p.failed[0])
	}
	if !a.json {
		a.showPlan(p, out.Problems, o)
	}
	if len(p.changes()) > 0 && !o.dryRun {
		if err := a.agree(ctx, p, o); err != nil {
			return err
		}
		if err := p.install(ctx); err != nil {
			return err
		}
	}
	if !a.json {
		a.showDone(ctx, p, o)
	} else if err := a.printJSON(out); err != nil {
		return err
	}
	return a.notAdded(p)
}

// notAdded is the exit code where skills that were wanted could not be had: that of the
// first where there is nothing else to tell.
func (a *app) notAdded(p *plan) error {
	if len(p.failed) == 0 {
		return nil
	}
	if len(p.changes()) > 0 {
		return errFound
	}
	code, fix := a.advice(p.failed[0])
	if a.json {
		return &exitError{code: code}
	}
	return fail(code, fix, "%s could not be had", counted(len(p.failed), "skill"))
}

// agree asks a person at a terminal whether to go on. Elsewhere the command was the
// answer: nothing that is installed runs before it is approved.
func (a *app) agree(ctx context.Context, p *plan, o carryFlags) error {
	if o.yes || a.json || !isTerminal(a.stdin) || !isTerminal(a.stderr) {
		return nil
	}
	question := fmt.Sprintf("\nInstall into %s?", p.to.Path())
	if o.verb == "update" {
		question = "\nUpdate?"
	}
	yes, err := a.confirm(ctx, question)
	if err == nil && !yes {
		err = fail(exitRefused, "to see it again: the same with --dry-run", "nothing was changed")
	}
	return err
}

// manySteps is from how many skills on each is told in a line.
const manySteps = 6

// showPlan says what would be installed, and what there is to know of it.
func (a *app) showPlan(p *plan, problems []catalog.Problem, o carryFlags) {
	changes := p.changes()
	if len(changes) >= manySteps && !o.full {
		a.showMany(changes)
	} else {
		var b strings.Builder
		for _, st := range changes {
			a.stepText(&b, st, o.full)
		}
		fmt.Fprint(a.stdout, b.String())
	}
	if len(changes) > 0 && !slices.ContainsFunc(changes, tells) {
		fmt.Fprintln(a.stdout, "Scan: nothing found, which is no proof.")
	}
	a.notHad(problems)
}

// tells reports whether there is something to say of the scan of a skill.
func tells(st *step) bool {
	return st.scans != nil || st.report.Truncated || severityCounts(st.report) != ""
}

// showMany is a line for each skill, and what a person should not miss of it.
func (a *app) showMany(changes []*step) {
	var rows [][]string
	var b strings.Builder
	for _, st := range changes {
		what, about := counted(st.Files, "file"), skill.OneLine(st.Description)
		if n := len(st.Scripts); n > 0 {
			what += ", " + counted(n, "script")
		}
		if st.Diff != nil {
			what, about = counted(len(st.Diff.Files), "changed file"), st.origin()
			a.asksText(&b, plain(st.Name)+" ", st.Diff)
		}
		rows = append(rows, []string{st.Name, what, about})
		if st.signed != nil && st.signed.first {
			fmt.Fprintf(&b, "%s: %s\n", plain(st.Name), plain(st.signed.text()))
		}
		if text := a.worstText(st); text != "" {
			fmt.Fprintf(&b, "%s: %s\n", plain(st.Name), text)
		}
	}
	a.table("", rows)
	fmt.Fprint(a.stdout, b.String())
}

// stepText is what there is to know of one skill.
func (a *app) stepText(b *strings.Builder, st *step, full bool) {
	what := ""
	if st.State == "replaced" {
		what = a.faint(" replaces what is there")
	}
	fmt.Fprintf(b, "%s %s%s\n", a.bold(plain(st.Name)), a.faint(plain(st.origin())), what)
	if st.Diff == nil {
		a.wrap(b, "  ", terminal.Clip(plain(skill.OneLine(st.Description)), 240), same)
	}
	a.wrap(b, "  ", fmt.Sprintf("%s, %s%s", counted(st.Files, "file"), sized(st.Bytes), scriptsText(st.Scripts)), same)
	if st.signed != nil {
		a.wrap(b, "  ", st.signed.text(), same)
	}
	if st.From.Kind == remote.Git && st.entry.Ref == "" {
		a.wrap(b, "  ", "got by its commit, which need not be on a branch of that repository: hosts keep those of forks, too", same)
	}
	if st.Diff != nil {
		a.diffText(b, st.Diff, full)
	}
	switch {
	case st.scans != nil:
		a.wrap(b, "  ", "it could not be scanned: "+st.scans.Error(), same)
	case tells(st):
		b.WriteString(indented(a.findingsText(st.report, "the same with --dry-run --json")))
	}
}

// origin is where a skill is from, in a few words.
func (st *step) origin() string {
	text := st.From.String()
	if len(st.Commit) >= 12 {
		text += " (" + st.Commit[:12] + ")"
	}
	return text
}

func scriptsText(scripts []string) string {
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

// worstText is a line on what a person should not miss of a scan in a long list.
func (a *app) worstText(st *step) string {
	switch {
	case st.scans != nil:
		return "it could not be scanned: " + plain(st.scans.Error())
	case severityCounts(st.report) == "":
		return ""
	}
	text := "a scan found " + severityCounts(st.report)
	if f := st.report.Findings[0]; f.Severity == scan.High {
		text = a.red(text) + ", as in " + plain(placed(f)+": "+f.Message)
	}
	return text
}

func indented(text string) string {
	return "  " + strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n  ") + "\n"
}

// diffText says what an update changes: files, what it asks for, and the instructions.
func (a *app) diffText(b *strings.Builder, d *skilldiff.Diff, full bool) {
	const most = 12
	if len(d.Files) == 0 {
		fmt.Fprintln(b, "  its files are the same")
	}
	for i, f := range d.Files {
		if i == most && !full {
			fmt.Fprintf(b, "  and %s more\n", counted(len(d.Files)-most, "file"))
			break
		}
		script := ""
		if f.Script {
			script = a.red(" script")
		}
		fmt.Fprintf(b, "  %-7s %s%s %s\n", f.Change, pathText(f), script, a.faint(linesText(f)))
		if full && f.Diff != "" && !skill.IsFileName(f.Path) {
			b.WriteString(indented(indented(a.colouredDiff(f.Diff))))
		}
	}
	a.asksText(b, "  ", d)
	for _, p := range d.Problems {
		fmt.Fprintf(b, "  %s\n", plain(p))
	}
	text := d.Instructions
	if !full {
		text = firstLines(text, 40, "  … all of it: loadout update --dry-run --diff")
	}
	if text != "" {
		b.WriteString(indented(a.colouredDiff(text)))
	}
}

// asksText says what a version asks for that the one before did not, and the reverse.
func (a *app) asksText(b *strings.Builder, before string, d *skilldiff.Diff) {
	for _, ask := range d.Asks.More {
		fmt.Fprintf(b, "%s%s %s\n", before, a.red("asks for more:"), askText(ask))
	}
	for _, ask := range d.Asks.Less {
		fmt.Fprintf(b, "%sasks for less: %s\n", before, askText(ask))
	}
}

// pathText is where a file is, and where it was.
func pathText(f skilldiff.File) string {
	if f.From != "" {
		return plain(f.From) + " → " + plain(f.Path)
	}
	return plain(f.Path)
}

// linesText says how much of a file is another, or why that is not known.
func linesText(f skilldiff.File) string {
	switch {
	case f.Omitted != "":
		return plain(f.Omitted)
	case f.Text:
		return fmt.Sprintf("+%d -%d", f.Added, f.Removed)
	}
	return ""
}

// askText is one thing that a skill asks for.
func askText(ask skilldiff.Ask) string {
	text := plain(ask.Kind + " " + ask.Name)
	switch {
	case ask.Old != "" && ask.New != "":
		text += ": " + plain(ask.Old) + " → " + plain(ask.New)
	case ask.Old != "" || ask.New != "":
		text += ": " + plain(ask.Old+ask.New)
	}
	return text
}

// firstLines cuts a text that is too long to read by the way.
func firstLines(text string, most int, rest string) string {
	lines := strings.SplitAfter(text, "\n")
	if len(lines) <= most {
		return text
	}
	return strings.Join(lines[:most], "") + rest + "\n"
}

// colouredDiff paints the lines of a unified diff.
func (a *app) colouredDiff(text string) string {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	for i, l := range lines {
		switch {
		case strings.HasPrefix(l, "+"):
			lines[i] = a.green(l)
		case strings.HasPrefix(l, "-"):
			lines[i] = a.red(l)
		case strings.HasPrefix(l, "@@"):
			lines[i] = a.faint(l)
		}
	}
	return strings.Join(lines, "\n")
}

// showDone says what was done, and what a person can do next.
func (a *app) showDone(ctx context.Context, p *plan, o carryFlags) {
	changes := p.changes()
	switch same := len(p.steps) - len(changes); {
	case a.quiet || same == 0:
	case same == 1:
		fmt.Fprintln(a.stderr, "1 skill is there already, as it should be.")
	default:
		fmt.Fprintf(a.stderr, "%d skills are there already, as they should be.\n", same)
	}
	if len(changes) == 0 {
		return
	}
	if o.dryRun {
		fmt.Fprintf(a.stderr, "Nothing was changed: this was a dry run. It would go into %s\n", p.to.Path())
		return
	}
	done := map[string]string{"add": "Added", "update": "Updated"}[o.verb]
	fmt.Fprintf(a.stdout, "\n%s %s in %s\n", a.green(done), counted(len(changes), "skill"), p.to.Path())
	var scripted []string
	for _, st := range changes {
		if len(st.Scripts) > 0 {
			scripted = append(scripted, st.Name)
		}
	}
	hidden := a.hidden(ctx, p, changes)
	switch n := len(scripted); {
	case len(hidden) > 0 || a.quiet && p.to.scope == "":
		// Their names mean others, so that they are approved by more than that.
	case n == 1:
		fmt.Fprintf(a.stdout, "The scripts of %s run once you have approved them: loadout approve %s\n", plain(scripted[0]), quoted(scripted[0]))
	case n > 1:
		fmt.Fprintf(a.stdout, "%d of them have scripts, which run once you have approved them: loadout approve NAME\n", n)
	}
	for _, h := range hidden {
		fmt.Fprintf(a.stderr, "%s is not what its name means here: %s comes first. See: loadout explain %s\n", plain(h.name), plain(h.by), quoted(h.name))
	}
	if p.to.scope == "" && o.verb == "add" && !a.quiet {
		fmt.Fprintf(a.stderr, "loadout update and verify look there with%s\n", p.to.flag())
	}
	if local := p.to.scope == "project" && slices.ContainsFunc(changes, func(st *step) bool { return st.From.Kind == remote.Local }); local {
		a.note("loadout.lock names a folder of this machine, which others who work on the project do not have")
	}
}

// hiddenSkill is an installed skill that another of its name comes before.
type hiddenSkill struct{ name, by string }

// hidden are the skills of a plan that their names do not mean, as far as that can be
// told.
func (a *app) hidden(ctx context.Context, p *plan, changes []*step) []hiddenSkill {
	if p.to.scope == "" {
		return nil
	}
	rt, err := a.open(ctx)
	if err != nil {
		return nil // others say what is wrong
	}
	defer rt.Close()
	var out []hiddenSkill
	for _, st := range changes {
		e, err := rt.Catalog().Resolve(ctx, st.called)
		if err == nil && filepath.Clean(e.Path) != filepath.Join(p.to.Path(), st.Name) {
			out = append(out, hiddenSkill{st.called, e.Path})
		}
	}
	return out
}
