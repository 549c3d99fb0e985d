package review

import (
	"context"
	"time"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/scan"
	"github.com/loadout-dev/loadout/internal/skillcheck"
)

// Findings holds the result of scanning a reviewed skill.
type Findings struct {
	Counts    map[string]int `json:"counts"` // by severity
	List      []scan.Finding `json:"list"`
	Truncated bool           `json:"truncated"`         // the scan or the list is incomplete
	Problem   string         `json:"problem,omitempty"` // why the scan failed

	Report *scan.Report `json:"-"` // nil if the scan failed
}

// ScanEntry scans a skill for up to limit. If the scan fails, the result
// contains the reason, because the user can decide without the findings.
func ScanEntry(ctx context.Context, rt *loadout.Runtime, e *catalog.Entry, limit time.Duration) *Findings {
	report, err := scanEntry(ctx, rt, e, limit)
	if err != nil {
		return &Findings{Counts: skillcheck.CountFindings(), List: []scan.Finding{}, Problem: err.Error()}
	}
	return &Findings{Counts: skillcheck.CountFindings(report), List: report.Findings, Truncated: report.Truncated, Report: report}
}

func scanEntry(ctx context.Context, rt *loadout.Runtime, e *catalog.Entry, limit time.Duration) (*scan.Report, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, &skillcheck.TimeoutError{Limit: limit})
	defer cancel()
	b, err := rt.Catalog().Open(ctx, e)
	if err != nil && ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err != nil {
		return nil, err
	}
	defer b.Close()
	return skillcheck.Scan(ctx, b.FS, b.Folder, limit)
}
