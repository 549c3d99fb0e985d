package session

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/loadout-dev/loadout/internal/skillpath"
)

// maxListed is the maximum number of files listed in the text of a load.
const maxListed = 20

// Render returns the text of a load for a tool result: an introductory line,
// the instructions, the files and the problems. The instructions are not
// numbered or wrapped in JSON.
func Render(m *Skill) string {
	var b strings.Builder
	body := RenderBody(m)
	if body == "" {
		fmt.Fprintf(&b, "Skill %s (from %s) is loaded, but it has no instructions.\n", m.ID.Name, m.ID.Origin)
	} else {
		fmt.Fprintf(&b, "Skill %s (from %s) is loaded. Follow its instructions where they apply.\n\n%s\n", m.ID.Name, m.ID.Origin, body)
	}
	if rest := RenderAppendix(m); rest != "" {
		b.WriteString("\n" + rest)
	}
	return b.String()
}

// RenderAppendix returns the text that follows the instructions: the skill's
// files and problems.
func RenderAppendix(m *Skill) string {
	var parts []string
	if lines := fileLines(m); lines != "" {
		parts = append(parts, lines)
	}
	for _, p := range m.Problems {
		parts = append(parts, "Note: "+p+"\n")
	}
	return strings.Join(parts, "\n")
}

// RenderBody returns the instructions with placeholders filled in and without
// leading and trailing empty lines. It returns "" if there are no instructions.
func RenderBody(m *Skill) string {
	if strings.TrimSpace(m.Instructions) == "" {
		return ""
	}
	return fillPlaceholders(strings.Trim(m.Instructions, "\r\n"), m.Location)
}

// RenderAlreadyLoaded returns the text for loading a skill that the
// conversation already contains.
func RenderAlreadyLoaded(m *Skill) string {
	return fmt.Sprintf("Skill %s is already loaded and unchanged; its instructions are further up in this conversation.", m.ID.Name)
}

// renderReloaded returns the text for loading an inactive skill whose
// instructions are still in the conversation.
func renderReloaded(m *Skill) string {
	return fmt.Sprintf("Skill %s is loaded again and unchanged; follow its instructions, which are further up in this conversation.\n", m.ID.Name)
}

// fileLines lists the skill's files and scripts, except SKILL.md.
func fileLines(m *Skill) string {
	var files, scripts []string
	rest := 0
	for _, f := range m.Files {
		switch {
		case skillpath.IsSkillFile(f.Path):
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

// plain returns a path for use in text, quoted if it contains unprintable
// characters.
func plain(path string) string {
	if strings.ContainsFunc(path, func(r rune) bool { return !strconv.IsPrint(r) }) {
		return strconv.Quote(path)
	}
	return path
}

// placeholders are replaced with the skill's directory.
var placeholders = []string{"${CLAUDE_SKILL_DIR}", "${SKILL_DIR}", "{baseDir}"}

// fillPlaceholders replaces the placeholders in text with location, the
// directory in which the reader finds the skill's files. If location is empty,
// it returns text unchanged.
func fillPlaceholders(text, location string) string {
	if location == "" {
		return text
	}
	var pairs []string
	for _, p := range placeholders {
		pairs = append(pairs, p, location)
	}
	return strings.NewReplacer(pairs...).Replace(text)
}
