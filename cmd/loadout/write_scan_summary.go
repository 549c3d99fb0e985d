package main

import (
	"fmt"
	"strings"

	"github.com/loadout-dev/loadout/internal/console"
	"github.com/loadout-dev/loadout/internal/review"
	"github.com/loadout-dev/loadout/internal/scan"
	"github.com/loadout-dev/loadout/internal/terminal"
)

const (
	// maxShownFindings is the maximum number of findings shown in a prompt.
	maxShownFindings = 3
	// maxExcerptWidth is the maximum width of an excerpt in a prompt, in
	// columns.
	maxExcerptWidth = 60
)

// formatScanSummary formats a scan's findings, or the reason why the scan
// failed.
func (a *app) formatScanSummary(v *review.Findings) string {
	if v.Report == nil {
		return fmt.Sprintf("Not scanned: %s.\n", plain(v.Problem))
	}
	name := "PATH"
	if v.Report.Name != "" {
		name = console.ShellQuote(v.Report.Name)
	}
	return a.formatFindings(v.Report, "loadout scan "+name+a.SkillFlags())
}

// formatFindings returns the findings for a prompt in up to eight lines: counts
// by severity, the worst findings, and showAll, the command that
// shows all findings.
func (a *app) formatFindings(r *scan.Report, showAll string) string {
	counts := formatSeverities(r)
	if counts == "" {
		if r.Truncated {
			return "Scan: no findings, but the scan is incomplete.\n"
		}
		return "Scan: no findings (not a guarantee).\n"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Scan: %s. Not a guarantee: findings can be harmless, and harmful content can go unnoticed.\n", counts)
	for _, f := range r.Findings[:min(len(r.Findings), maxShownFindings)] {
		if f.Severity < scan.Medium {
			break
		}
		style := console.NoStyle
		if f.Severity == scan.High {
			style = a.Red
		}
		text := fmt.Sprintf("%s: %s: %s", formatLocation(f), f.Severity, f.Message)
		if f.Excerpt != "" {
			text += ": “" + terminal.Clip(plain(f.Excerpt), maxExcerptWidth) + "”"
		}
		fmt.Fprintf(&b, "  %s\n      %s\n", style(plain(text)), a.Faint(f.Advice))
	}
	fmt.Fprintf(&b, "  Show all: %s\n", showAll)
	return b.String()
}

// formatSeverities returns counts such as "2 high, 1 low". It omits zeros and
// informational findings.
func formatSeverities(r *scan.Report) string {
	counts := r.Counts()
	var out []string
	for s := scan.High; s > scan.Info; s-- {
		if n := counts[s]; n > 0 {
			out = append(out, fmt.Sprintf("%d %s", n, s))
		}
	}
	return strings.Join(out, ", ")
}

// formatLocation returns the position of a finding in the form
// FILE:LINE:COLUMN, which editors and terminals recognize.
func formatLocation(f scan.Finding) string {
	if f.Line == 0 {
		return f.File
	}
	return fmt.Sprintf("%s:%d:%d", f.File, f.Line, max(f.Column, 1))
}
