package session

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/loadout-dev/loadout/internal/printable"
	"github.com/loadout-dev/loadout/internal/untrusted"
)

// Limits on a block.
const (
	maxBlockSkills = 200
	maxBlockRunes  = 1024 // maximum number of characters in a name or a description
)

// RenderBlock renders the available and the active skills as one message, in
// the given order. It is for programs that send the message with every model
// request, after the leading system messages, instead of returning tool
// results. Such a program renders the block for each request and does not add
// it to the history.
//
// For each available skill, RenderBlock renders the name and the description,
// both truncated to 1,024 characters. It lists the first 200 available skills
// and gives the number of the others. The text is between <skill> and </skill>.
// Instructions are not modified, except that end tags of the block or its parts
// are escaped. If both lists are empty, text is empty, and the program sends no
// message.
//
// role is "developer" if developer is set, for models that support this role.
// Otherwise it is "user", and the text is marked as not written by the user.
//
// The block changes with each load and unload. A vendor's prompt cache then
// cannot reuse anything after the block. In a long conversation, this makes the
// block the most expensive way to render skills. A tool result is sent once and
// then read from the cache.
func RenderBlock(available []Skill, active []ActiveSkill, developer bool) (role, text string) {
	block := renderSkills(available, active)
	if developer {
		return "developer", block
	}
	if block != "" {
		block = "<" + contextTag + ">\nThe application gives this context; the user did not write it.\n\n" +
			strings.TrimRight(block, "\n") + "\n</" + contextTag + ">\n"
	}
	return "user", block
}

// renderSkills returns the text between <skill> and </skill>, or "" if there
// are no skills.
func renderSkills(available []Skill, active []ActiveSkill) string {
	if len(available) == 0 && len(active) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("<skill>\n")
	if len(available) > 0 {
		writeAvailable(&b, available)
	}
	if len(active) > 0 {
		if len(available) > 0 {
			b.WriteByte('\n')
		}
		b.WriteString("## Loaded Skill Instructions\n")
		tags := tagNames(active)
		for i, a := range active {
			fmt.Fprintf(&b, "\n<%s>\n%s\n</%[1]s>\n", tags[i], escapeEndTags(strings.TrimRight(a.Text, "\n"), tags))
		}
	}
	b.WriteString("</skill>\n")
	return b.String()
}

func writeAvailable(b *strings.Builder, available []Skill) {
	b.WriteString("## Available Skills\n\nLoad a skill before a task that it fits; its instructions then follow below.\n\n")
	for _, l := range available[:min(len(available), maxBlockSkills)] {
		b.WriteString("- " + escapeLine(l.ID.Name))
		if d := escapeLine(l.Description); d != "" {
			b.WriteString(": " + d)
		}
		b.WriteByte('\n')
	}
	if rest := len(available) - maxBlockSkills; rest > 0 {
		fmt.Fprintf(b, "… and %d more\n", rest)
	}
}

// escapeLine returns text on one line, without tags and truncated to
// maxBlockRunes.
func escapeLine(text string) string {
	runes := []rune(printable.OneLine(text))
	if len(runes) > maxBlockRunes {
		runes = append(runes[:maxBlockRunes-1], '…')
	}
	escaped := strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(string(runes))
	return untrusted.New(escaped).ForModel()
}

// tagNames returns a unique tag for each skill. The tag is the skill's name
// with "_" for each character that is neither a letter nor a digit.
func tagNames(active []ActiveSkill) []string {
	tags := make([]string, 0, len(active))
	for _, a := range active {
		name := strings.Map(func(r rune) rune {
			if unicode.IsLetter(r) || unicode.IsDigit(r) {
				return r
			}
			return '_'
		}, a.Skill.Name)
		if first := []rune(name); len(first) == 0 || !unicode.IsLetter(first[0]) {
			name = "_" + name
		}
		tag := name
		for n := 2; slices.Contains(tags, tag) || tag == "skill"; n++ {
			tag = fmt.Sprintf("%s_%d", name, n)
		}
		tags = append(tags, tag)
	}
	return tags
}

// escapeEndTags replaces "<" with "&lt;" in the block's end tags in text.
func escapeEndTags(text string, tags []string) string {
	var b strings.Builder
	last := 0
	for i := range len(text) {
		if text[i] == '<' && endsBlock(text[i+1:], tags) {
			b.WriteString(text[last:i] + "&lt;")
			last = i + 1
		}
	}
	return b.String() + text[last:]
}

// endsBlock reports whether rest, the text after a "<", completes an end tag.
// End tags are those of the block, its parts and the enclosing context.
func endsBlock(rest string, tags []string) bool {
	const spaces = " \t\r\n"
	rest, ok := strings.CutPrefix(strings.TrimLeft(rest, spaces), "/")
	if !ok {
		return false
	}
	rest = strings.TrimLeft(rest, spaces)
	end := strings.IndexFunc(rest, func(r rune) bool { return r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	if end < 0 {
		end = len(rest)
	}
	is := func(tag string) bool { return strings.EqualFold(rest[:end], tag) }
	return is("skill") || is(contextTag) || slices.ContainsFunc(tags, is)
}

// contextTag encloses a block that a model might otherwise mistake for the
// user's text.
const contextTag = "application_skill_context"
