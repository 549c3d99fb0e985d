package docs_test

import (
	"testing"

	"github.com/loadout-dev/loadout/internal/scan"
)

// The table of docs/scan.md has every rule of a scan, with its severity, and no other.
func TestScanRulesTable(t *testing.T) {
	rows := readPage(t, "docs/scan.md").rows("rule", "severity", "looks at")
	for _, r := range scan.Rules() {
		row, ok := rows[r.ID]
		if !ok || row[1] != r.Severity.String() || row[2] != string(r.Target) {
			t.Errorf("docs/scan.md: the row of %s should be | %s | %s |, is %q", r.ID, r.Severity, r.Target, row)
		}
		delete(rows, r.ID)
	}
	for id := range rows {
		t.Errorf("docs/scan.md has a row for %s, which is not a rule", id)
	}
}
