package main

import (
	"os/exec"
	"path/filepath"
	"testing"
)

// The roff formatter has no warning about any page.
func TestManPagesHaveNoWarnings(t *testing.T) {
	groff, err := exec.LookPath("groff")
	if err != nil {
		t.Skip("groff is missing")
	}
	dir := t.TempDir()
	output(t, []string{"man", "--dir", dir})
	pages, err := filepath.Glob(filepath.Join(dir, "loadout*.1"))
	if err != nil || len(pages) < 50 {
		t.Fatalf("%d pages: %v", len(pages), err)
	}
	out, err := exec.Command(groff, append([]string{"-man", "-ww", "-z", "-Kutf8", "-Tutf8"}, pages...)...).CombinedOutput()
	if err != nil || len(out) > 0 {
		t.Errorf("%v: %s", err, out)
	}
}
