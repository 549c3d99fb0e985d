package privatefile_test

import (
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/privatefile"
)

// A newer version is told from a damaged file, whatever else the file contains, and
// errors contain nothing of the file.
func TestCheckVersion(t *testing.T) {
	for data, want := range map[string]string{
		`{"version": 1}`:                        "",
		`{"version": 2, "secrets": "s3cr3t"}`:   "",
		`{"version": 3, "secrets": ["s3cr3t"]}`: "unsupported version 3 (this program reads up to 2); update loadout",
		`{"version": 0}`:                        "unsupported version 0",
		`{"secrets": "s3cr3t"}`:                 "unsupported version 0",
		`{"version": -1}`:                       "unsupported version -1",
		`{"version": "s3cr3t"}`:                 "cannot decode JSON",
		`s3cr3t`:                                "cannot decode JSON",
		``:                                      "cannot decode JSON",
	} {
		got := ""
		if err := privatefile.CheckVersion([]byte(data), 2); err != nil {
			got = err.Error()
		}
		if got != want || strings.Contains(got, "s3cr3t") {
			t.Errorf("%s: %q, want %q", data, got, want)
		}
	}
}
