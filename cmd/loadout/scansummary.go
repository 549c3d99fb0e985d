package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/scan"
)

const (
	// summaryTimeout bounds the scan of a skill that the user is asked about.
	summaryTimeout = 10 * time.Second
	// maxShownFindings is the number of findings shown in a prompt.
	maxShownFindings = 3
	// maxExcerptWidth is the number of columns of an excerpt shown in a prompt.
	maxExcerptWidth = 60
)

// scanSummary is the result of a scan shown with a prompt, in JSON.
type scanSummary struct {
	Counts    map[string]int `json:"counts"`
	List      []scan.Finding `json:"list"`
	Truncated bool           `json:"truncated"`         // the scan or the list is incomplete
	Problem   string         `json:"problem,omitempty"` // why the scan failed

	report *scan.Report
}

// summarizeScan scans a skill for a prompt. It never fails: problems are part
// of the summary, and the user decides.
func (a *app) summarizeScan(ctx context.Context, rt *loadout.Runtime, e *catalog.Entry) *scanSummary {
	r, err := scanEntry(ctx, rt, e)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return &scanSummary{Counts: countFindings(), List: []scan.Finding{}, Problem: fmt.Sprintf("scan took longer than %v", summaryTimeout)}
	case err != nil:
		return &scanSummary{Counts: countFindings(), List: []scan.Finding{}, Problem: err.Error()}
	}
	return &scanSummary{Counts: countFindings(r), List: r.Findings, Truncated: r.Truncated, report: r}
}

func scanEntry(ctx context.Context, rt *loadout.Runtime, e *catalog.Entry) (*scan.Report, error) {
	ctx, cancel := context.WithTimeout(ctx, summaryTimeout)
	defer cancel()
	b, err := rt.Catalog().Open(ctx, e)
	if err != nil {
		return nil, err
	}
	defer b.Close()
	return scan.Skill(ctx, b.FS, b.Folder)
}

// countFindings counts findings by severity. Each severity has an entry.
func countFindings(reports ...*scan.Report) map[string]int {
	out := map[string]int{}
	for s := scan.Info; s <= scan.High; s++ {
		out[s.String()] = 0
	}
	for _, r := range reports {
		for s, n := range r.Counts() {
			out[s.String()] += n
		}
	}
	return out
}

// formatScanSummary returns the findings as text, or why the scan failed.
func (a *app) formatScanSummary(v *scanSummary) string {
	if v.report == nil {
		return fmt.Sprintf("Not scanned: %s.\n", plain(v.Problem))
	}
	name := "PATH"
	if v.report.Name != "" {
		name = shellQuote(v.report.Name)
	}
	return a.formatFindings(v.report, "loadout scan "+name+a.skillFlags())
}

// formatFindings returns the findings for a prompt in at most eight lines:
// counts by severity, the worst findings, and the command that shows all.
func (a *app) formatFindings(r *scan.Report, all string) string {
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
		style := noStyle
		if f.Severity == scan.High {
			style = a.red
		}
		text := fmt.Sprintf("%s: %s: %s", formatLocation(f), f.Severity, f.Message)
		if f.Excerpt != "" {
			text += ": “" + clip(plain(f.Excerpt), maxExcerptWidth) + "”"
		}
		fmt.Fprintf(&b, "  %s\n      %s\n", style(plain(text)), a.faint(f.Advice))
	}
	fmt.Fprintf(&b, "  Show all: %s\n", all)
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

// formatLocation returns the position of a finding in the form that editors and
// terminals understand.
func formatLocation(f scan.Finding) string {
	if f.Line == 0 {
		return f.File
	}
	return fmt.Sprintf("%s:%d:%d", f.File, f.Line, max(f.Column, 1))
}
