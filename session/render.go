package session

import (
	"fmt"
	"strings"

	"github.com/loadout-dev/loadout/skill"
)

// maxListed bounds the files that a rendered load names.
const maxListed = 40

// Render is a load as the result of a tool: the instructions as they are,
// without line numbers and not inside JSON, with one line before them that
// says what they are and one after them that says which files there are.
func Render(m *Material) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Skill %s (from %s) is loaded. Follow its instructions where they apply.\n\n", m.ID.Name, m.ID.Origin)
	b.WriteString(strings.Trim(FillPlaces(m.Instructions, m.Location), "\n"))
	b.WriteByte('\n')
	if line := fileLine(m); line != "" {
		b.WriteString("\n" + line + "\n")
	}
	for _, p := range m.Problems {
		b.WriteString("\nNote: " + p + "\n")
	}
	return b.String()
}

// RenderAlready is the answer to a load of what the conversation holds.
func RenderAlready(m *Material) string {
	return fmt.Sprintf("Skill %s is already loaded and unchanged; its instructions are further up in this conversation.", m.ID.Name)
}

// fileLine names the files beside SKILL.md.
func fileLine(m *Material) string {
	var names []string
	rest := 0
	for _, f := range m.Files {
		switch {
		case skill.IsFileName(f.Path):
		case len(names) == maxListed:
			rest++
		default:
			names = append(names, f.Path)
		}
	}
	if len(names) == 0 {
		return ""
	}
	line := "Files of this skill"
	if m.Location != "" {
		line += " (in " + m.Location + ")"
	}
	line += ": " + strings.Join(names, ", ")
	if rest > 0 {
		line += fmt.Sprintf(" and %d more", rest)
	}
	return line
}

// places are what authors write for the directory of their skill.
var places = []string{"${CLAUDE_SKILL_DIR}", "${SKILL_DIR}", "{baseDir}"}

// FillPlaces puts the place where the reader finds the skill's files where an
// author wrote {baseDir}, ${SKILL_DIR} or ${CLAUDE_SKILL_DIR}. Without a place
// the text stays as it is.
func FillPlaces(text, location string) string {
	if location == "" {
		return text
	}
	for _, p := range places {
		text = strings.ReplaceAll(text, p, location)
	}
	return text
}
