package session

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/loadout-dev/loadout/skill"
)

// Listed is a skill as a block lists it.
type Listed struct {
	Name        string
	Description string // may be empty
}

// Bounds of a block.
const (
	maxBlockSkills = 200
	maxBlockRunes  = 1024 // of a name or a description
)

// RenderBlock is the skills that there are and those in force as one text between
// <skill> and </skill>, in the orders in which they are given, for a program that
// tells them with every request of a model, and not as results of tools: see
// [WithBlock]. It is empty where there is neither. The instructions are as they were
// delivered, but for end tags that would end the block or one of its parts.
//
// The block changes with each load and with each end of one, so that a request is no
// prefix of the next one, and a vendor's cache of prompts is of no use for what is
// behind the block. That makes it the dearest of the renderings as soon as a
// conversation is long: a result of a tool is told once, and read from the cache
// from then on.
func RenderBlock(available []Listed, active []Active) string {
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
		tags := tagsOf(active)
		for i, a := range active {
			fmt.Fprintf(&b, "\n<%s>\n%s\n</%[1]s>\n", tags[i], keepTags(strings.TrimRight(a.Text, "\n"), tags))
		}
	}
	b.WriteString("</skill>\n")
	return b.String()
}

func writeAvailable(b *strings.Builder, available []Listed) {
	b.WriteString("## Available Skills\n\nLoad a skill before a task that it fits; its instructions then follow below.\n\n")
	for _, l := range available[:min(len(available), maxBlockSkills)] {
		b.WriteString("- " + escaped(l.Name))
		if d := escaped(l.Description); d != "" {
			b.WriteString(": " + d)
		}
		b.WriteByte('\n')
	}
	if rest := len(available) - maxBlockSkills; rest > 0 {
		fmt.Fprintf(b, "… and %d more\n", rest)
	}
}

// escaped is a text within a line that makes no tag.
func escaped(text string) string {
	runes := []rune(skill.OneLine(text))
	if len(runes) > maxBlockRunes {
		runes = append(runes[:maxBlockRunes-1], '…')
	}
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(string(runes))
}

// tagsOf are the tags of the skills, each another one: the name with "_" for what is
// no letter and no digit.
func tagsOf(active []Active) []string {
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

// keepTags takes the end tags of a block out of a text: their "<" is written "&lt;".
func keepTags(text string, tags []string) string {
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

// endsBlock reports that what follows a "<" makes it the end tag of the block, of a
// part of it, or of what is around it.
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

// contextTag is around a block that a model would take for words of a person.
const contextTag = "application_skill_context"

// BlockMessage is the role and the text by which a block is told: "developer" where
// the model knows that role, else "user", with the text marked as not the person's. It
// is not for an empty block.
func BlockMessage(block string, developer bool) (role, text string) {
	if developer {
		return "developer", block
	}
	return "user", "<" + contextTag + ">\nThe application gives this context; the user did not write it.\n\n" +
		strings.TrimRight(block, "\n") + "\n</" + contextTag + ">\n"
}

// WithBlock returns the messages of a request with that of a block after the leading
// ones of the system. The messages that it is given stay as they are: a block is made
// anew for each request, and never part of a history.
func WithBlock[M any](messages []M, system func(M) bool, block M) []M {
	at := slices.IndexFunc(messages, func(m M) bool { return !system(m) })
	if at < 0 {
		at = len(messages)
	}
	return slices.Insert(slices.Clone(messages), at, block)
}
