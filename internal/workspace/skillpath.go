package workspace

import (
	"fmt"
	"path"
	"path/filepath"
	"strings"
	"unicode"

	"github.com/loadout-dev/loadout/internal/toolname"
	"github.com/loadout-dev/loadout/session"
)

// SkillPathHint returns a hint if text contains a path that exists in an active
// skill, and "" otherwise. Skills tell agents to read and run their files as if
// these were in the working directory. location returns a skill's directory as
// written in the instructions, or "".
func SkillPathHint(text string, active []session.ActiveSkill, location func(session.ID) string) string {
	words := strings.FieldsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune("\"'`();&|<>", r) })
	for _, a := range active {
		dir := location(a.Skill)
		for _, f := range a.Files {
			for _, word := range words {
				if path.Clean(word) != f.Path && (dir == "" || filepath.Clean(word) != filepath.Join(dir, filepath.FromSlash(f.Path))) {
					continue
				}
				if f.Script {
					return fmt.Sprintf("%s is a script of the skill %s, not a file in the working folder: run it with %s", f.Path, a.Skill.Name, toolname.RunSkillScript)
				}
				return fmt.Sprintf("%s is a file of the skill %s, not in the working folder: read it with %s", f.Path, a.Skill.Name, toolname.ReadSkillFile)
			}
		}
	}
	return ""
}
