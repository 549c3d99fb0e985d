package main

import (
	"fmt"
	"path"
	"path/filepath"
	"strings"
	"unicode"

	"github.com/loadout-dev/loadout/session"
)

// elsewhere says of a path, or of a command in which there is one, that it is of a skill
// that is loaded: skills tell agents to read and run their files as if these were in the
// working folder. It is "" where it is not.
func (t *conversation) elsewhere(text string) string {
	words := strings.FieldsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune("\"'`();&|<>", r) })
	for _, a := range t.session.Active() {
		place := t.placeOf(a.Skill)
		for _, f := range a.Files {
			for _, word := range words {
				if path.Clean(word) != f.Path && (place == "" || filepath.Clean(word) != filepath.Join(place, filepath.FromSlash(f.Path))) {
					continue
				}
				if f.Script {
					return fmt.Sprintf("%s is a script of the skill %s, whose files are not in the working folder: run it with run_skill_script", f.Path, a.Skill.Name)
				}
				return fmt.Sprintf("%s is a file of the skill %s, whose files are not in the working folder: read it with read_skill_file", f.Path, a.Skill.Name)
			}
		}
	}
	return ""
}

// placeOf is where the files of a skill are on this machine, as its instructions say it.
func (t *conversation) placeOf(id session.ID) string {
	for e := range t.runtime.Catalog().Snapshot().All() {
		if e.Key() == id.Key() {
			return e.Location()
		}
	}
	return ""
}
