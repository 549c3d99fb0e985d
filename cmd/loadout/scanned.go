package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/scan"
)

const (
	// adviceTime is how long a person waits for the scan of a skill that they are asked about.
	adviceTime = 10 * time.Second
	// worstShown is how many findings are shown beside a question.
	worstShown = 3
	// wordsShown is how many columns of what was found are shown there.
	wordsShown = 60
)

// advised is what a scan says of a skill that a person is asked about, in JSON.
type advised struct {
	Counts    map[string]int `json:"counts"`
	List      []scan.Finding `json:"list"`
	Truncated bool           `json:"truncated"`         // not everything was looked at or listed
	Problem   string         `json:"problem,omitempty"` // why there was no scan

	report *scan.Report
}

// advise scans a skill for a question. It never fails: what keeps it from being
// scanned is told, and the person decides all the same.
func (a *app) advise(ctx context.Context, rt *loadout.Runtime, e *catalog.Entry) *advised {
	r, err := scanEntry(ctx, rt, e)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return &advised{Counts: countsOf(), List: []scan.Finding{}, Problem: fmt.Sprintf("it took longer than %v", adviceTime)}
	case err != nil:
		return &advised{Counts: countsOf(), List: []scan.Finding{}, Problem: err.Error()}
	}
	return &advised{Counts: countsOf(r), List: r.Findings, Truncated: r.Truncated, report: r}
}

func scanEntry(ctx context.Context, rt *loadout.Runtime, e *catalog.Entry) (*scan.Report, error) {
	ctx, cancel := context.WithTimeout(ctx, adviceTime)
	defer cancel()
	b, err := rt.Catalog().Open(ctx, e)
	if err != nil {
		return nil, err
	}
	defer b.Close()
	return scan.Skill(ctx, b.FS, b.Folder)
}

// countsOf counts findings by the words of their severities, all of them.
func countsOf(reports ...*scan.Report) map[string]int {
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

// advisedText is findingsText, or why there was no scan.
func (a *app) advisedText(v *advised) string {
	if v.report == nil {
		return fmt.Sprintf("Not scanned: %s.\n", plain(v.Problem))
	}
	name := "PATH"
	if v.report.Name != "" {
		name = quoted(v.report.Name)
	}
	return a.findingsText(v.report, "loadout scan "+name+a.flags())
}

// findingsText is what a person reads of a scan beside a question, in at most
// eight lines that end with a line end: how many findings of each severity, the
// worst of them, and the command that shows all.
func (a *app) findingsText(r *scan.Report, all string) string {
	counts := severityCounts(r)
	if counts == "" {
		if r.Truncated {
			return "Scan: nothing found, but not everything was looked at.\n"
		}
		return "Scan: nothing found, which is no proof.\n"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Scan: %s. It advises only: a finding can be harmless, and what is harmful not found.\n", counts)
	for _, f := range r.Findings[:min(len(r.Findings), worstShown)] {
		if f.Severity < scan.Medium {
			break
		}
		style := same
		if f.Severity == scan.High {
			style = a.red
		}
		text := fmt.Sprintf("%s: %s: %s", placed(f), f.Severity, f.Message)
		if f.Excerpt != "" {
			text += ": “" + clip(plain(f.Excerpt), wordsShown) + "”"
		}
		fmt.Fprintf(&b, "  %s\n      %s\n", style(plain(text)), a.faint(f.Advice))
	}
	fmt.Fprintf(&b, "  To see all: %s\n", all)
	return b.String()
}

// severityCounts is "2 high, 1 low", without what there is none of, and without
// what is for information.
func severityCounts(r *scan.Report) string {
	counts := r.Counts()
	var out []string
	for s := scan.High; s > scan.Info; s-- {
		if n := counts[s]; n > 0 {
			out = append(out, fmt.Sprintf("%d %s", n, s))
		}
	}
	return strings.Join(out, ", ")
}

// placed is where a finding is, as editors and terminals understand it.
func placed(f scan.Finding) string {
	if f.Line == 0 {
		return f.File
	}
	return fmt.Sprintf("%s:%d:%d", f.File, f.Line, max(f.Column, 1))
}
