package skilltext_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/skilltext"
	"github.com/loadout-dev/loadout/skill"
)

func TestAppendix(t *testing.T) {
	files := []skill.File{{Path: "SKILL.md"}, {Path: "notes.md"}, {Path: "scripts/run.py", Script: true}}
	got := skilltext.Appendix(files, "/skills/x", []string{"it is old"})
	for _, want := range []string{"notes.md", "scripts/run.py", "/skills/x", "Note: it is old\n"} {
		if strings.Count(got, want) != 1 {
			t.Errorf("%q is not there once in %q", want, got)
		}
	}
	if strings.Contains(got, "SKILL.md") {
		t.Errorf("SKILL.md is in %q", got)
	}
	if got := skilltext.Appendix(files[:1], "/skills/x", nil); got != "" {
		t.Errorf("without files it is %q", got)
	}
	for i := range 30 {
		files = append(files, skill.File{Path: fmt.Sprintf("refs/f%02d.md", i)})
	}
	if got := skilltext.Appendix(files, "", nil); !strings.Contains(got, "refs/f17.md") || strings.Contains(got, "refs/f18.md") || !strings.Contains(got, "12") {
		t.Errorf("of 32 files, 20 are not listed and 12 counted: %q", got)
	}
}
