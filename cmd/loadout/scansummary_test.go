package main

import (
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/review"
	"github.com/loadout-dev/loadout/internal/scan"
)

func TestFindingsTextIsShort(t *testing.T) {
	a := newApp(environment{stdout: io.Discard})
	finding := scan.Finding{Rule: "r", Severity: scan.High, File: "a\x1b[2J.sh", Line: 3, Column: 1, Excerpt: strings.Repeat("long ", 50), Message: "it is bad", Advice: "leave it"}
	for _, tt := range []struct {
		name  string
		r     *scan.Report
		lines int
		want  string
	}{
		{"many", &scan.Report{Name: "x", Findings: []scan.Finding{finding, finding, finding, finding}}, 8, "Scan: 4 high. "},
		{"low", &scan.Report{Name: "x", Findings: []scan.Finding{{Severity: scan.Low}}}, 2, "loadout scan x\n"},
		{"no name", &scan.Report{Findings: []scan.Finding{{Severity: scan.Low}}}, 2, "loadout scan PATH\n"},
		{"information", &scan.Report{Findings: []scan.Finding{{Severity: scan.Info}}}, 1, "no findings (not a guarantee)"},
		{"none", &scan.Report{}, 1, "no findings (not a guarantee)"},
		{"cut", &scan.Report{Truncated: true}, 1, "the scan is incomplete"},
	} {
		got := a.formatScanSummary(&review.Findings{Report: tt.r})
		if n := strings.Count(got, "\n"); n != tt.lines || !strings.HasSuffix(got, "\n") || !strings.Contains(got, tt.want) || strings.Contains(got, "\x1b") {
			t.Errorf("%s: %d lines, want %d with %q: %q", tt.name, n, tt.lines, tt.want, got)
		}
	}
}

// A failed scan is reported and blocks no decision.
func TestReportFailedScan(t *testing.T) {
	rt, err := loadout.New(context.Background(), &loadout.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer rt.Close()
	a := newApp(environment{stdout: io.Discard})
	v := review.ScanEntry(context.Background(), rt, &catalog.Entry{Name: "gone", Origin: "nowhere", Path: "gone"}, time.Second)
	if got := a.formatScanSummary(v); v.Problem == "" || v.List == nil || !strings.HasPrefix(got, "Not scanned: ") || strings.Count(got, "\n") != 1 {
		t.Errorf("got %+v, %q", v, got)
	}
}
