package main

import (
	"fmt"
	"path"
	"path/filepath"
	"strings"
	"unicode"

	"github.com/loadout-dev/loadout/session"
)

// explainSkillPath returns a hint if text is, or contains, the path of a file
// of a loaded skill, else "". Skills tell agents to read and run their files as
// if these were in the working directory.
func (t *conversation) explainSkillPath(text string) string {
	words := strings.FieldsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune("\"'`();&|<>", r) })
	for _, a := range t.session.Active() {
		place := t.skillLocation(a.Skill)
		for _, f := range a.Files {
			for _, word := range words {
				if path.Clean(word) != f.Path && (place == "" || filepath.Clean(word) != filepath.Join(place, filepath.FromSlash(f.Path))) {
					continue
				}
				if f.Script {
					return fmt.Sprintf("%s is a script of the skill %s, not a file in the working folder: run it with run_skill_script", f.Path, a.Skill.Name)
				}
				return fmt.Sprintf("%s is a file of the skill %s, not in the working folder: read it with read_skill_file", f.Path, a.Skill.Name)
			}
		}
	}
	return ""
}

// skillLocation returns the directory of a skill on this machine, as its
// instructions name it.
func (t *conversation) skillLocation(id session.ID) string {
	for e := range t.runtime.Catalog().Snapshot().All() {
		if e.Key() == id.Key() {
			return e.Location()
		}
	}
	return ""
}
