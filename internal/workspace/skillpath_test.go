package workspace_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/workspace"
	"github.com/loadout-dev/loadout/session"
	"github.com/loadout-dev/loadout/skill"
)

func TestSkillPathHint(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "tides")
	id := session.ID{Name: "tides", Origin: "mine", Dir: "tides"}
	active := []session.ActiveSkill{{SkillLoad: session.SkillLoad{Skill: id, Files: []skill.File{{Path: "scripts/run.py", Script: true}, {Path: "table.csv"}}}}}
	location := func(session.ID) string { return dir }
	for text, want := range map[string]string{
		"scripts/run.py": "run it with run_skill_script", "python3 ./scripts/run.py --all": "run it with run_skill_script",
		filepath.Join(dir, "table.csv"): "read it with read_skill_file", "cat 'table.csv'; ls": "read it with read_skill_file",
		"other.csv": "", "": "",
	} {
		got := workspace.SkillPathHint(text, active, location)
		if (want == "") != (got == "") || !strings.Contains(got, want) {
			t.Errorf("%q: %q", text, got)
		}
	}
}
