package session

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/loadout-dev/loadout/skill"
)

// maxListed bounds the files that a rendered load names.
const maxListed = 20

// Render is a load as the result of a tool: the instructions as they are,
// without line numbers and not inside JSON, with one line before them that
// says what they are and lines after them that say which files there are, and
// what does not work.
func Render(m *Material) string {
	var b strings.Builder
	body := Body(m)
	if body == "" {
		fmt.Fprintf(&b, "Skill %s (from %s) is loaded, but it has no instructions.\n", m.ID.Name, m.ID.Origin)
	} else {
		fmt.Fprintf(&b, "Skill %s (from %s) is loaded. Follow its instructions where they apply.\n\n%s\n", m.ID.Name, m.ID.Origin, body)
	}
	if rest := Appendix(m); rest != "" {
		b.WriteString("\n" + rest)
	}
	return b.String()
}

// Appendix is what is said after the instructions: which files there are, and
// what does not work.
func Appendix(m *Material) string {
	var parts []string
	if lines := fileLines(m); lines != "" {
		parts = append(parts, lines)
	}
	for _, p := range m.Problems {
		parts = append(parts, "Note: "+p+"\n")
	}
	return strings.Join(parts, "\n")
}

// Body is the instructions as they are delivered: as written, without the
// empty lines around them, and with places filled in.
func Body(m *Material) string {
	if strings.TrimSpace(m.Instructions) == "" {
		return ""
	}
	return FillPlaces(strings.Trim(m.Instructions, "\r\n"), m.Location)
}

// RenderAlready is the answer to a load of what the conversation holds.
func RenderAlready(m *Material) string {
	return fmt.Sprintf("Skill %s is already loaded and unchanged; its instructions are further up in this conversation.", m.ID.Name)
}

// RenderAgain is a load of what went out of force, and whose instructions the
// conversation still holds.
func RenderAgain(m *Material) string {
	return fmt.Sprintf("Skill %s is loaded again and unchanged; follow its instructions, which are further up in this conversation.\n", m.ID.Name)
}

// fileLines names the files beside SKILL.md, and the scripts among them.
func fileLines(m *Material) string {
	var files, scripts []string
	rest := 0
	for _, f := range m.Files {
		switch {
		case skill.IsFileName(f.Path):
		case len(files)+len(scripts) == maxListed:
			rest++
		case f.Script:
			scripts = append(scripts, plain(f.Path))
		default:
			files = append(files, plain(f.Path))
		}
	}
	where := ""
	if m.Location != "" {
		where = " (in " + m.Location + ")"
	}
	var b strings.Builder
	if len(files) > 0 {
		b.WriteString("Files of this skill" + where + ": " + strings.Join(files, ", ") + "\n")
		where = ""
	}
	if len(scripts) > 0 {
		b.WriteString("Scripts of this skill" + where + ": " + strings.Join(scripts, ", ") + "\n")
	}
	if rest > 0 {
		fmt.Fprintf(&b, "It has %d more files.\n", rest)
	}
	return b.String()
}

// plain is a path as part of a line, whatever is in it.
func plain(path string) string {
	if strings.ContainsFunc(path, func(r rune) bool { return !strconv.IsPrint(r) }) {
		return strconv.Quote(path)
	}
	return path
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
	var pairs []string
	for _, p := range places {
		pairs = append(pairs, p, location)
	}
	return strings.NewReplacer(pairs...).Replace(text)
}
