package session

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/loadout-dev/loadout/skill"
)

// maxMarkdown bounds what is written of the result of a call, in bytes.
const maxMarkdown = 4000

// Markdown is one step of a transcript as people read it: what was said, what was
// called and what came of it (its first 4,000 bytes), which skills came and went. It is
// "" for steps that only programs need. What others wrote means nothing to Markdown
// where it is a name, is a block of code where it is an argument or a result, and
// drives no terminal.
func Markdown(e *Event) string {
	switch {
	case e.Message != nil && e.Message.Role == RoleUser:
		return fmt.Sprintf("\n## You, %s\n\n%s\n", e.Time.Format("2006-01-02 15:04"), shown(e.Message.Text))
	case e.Message != nil:
		return answerMarkdown(e.Message)
	case e.Result != nil:
		text := e.Result.Text
		if len(text) > maxMarkdown {
			text = strings.ToValidUTF8(text[:maxMarkdown], "") + fmt.Sprintf("\n… (%d bytes in all)", len(e.Result.Text))
		}
		what := "It came to"
		if e.Result.Error {
			what = "It failed"
		}
		return fmt.Sprintf("\n%s:\n\n%s\n", what, Fenced(text))
	case e.Loaded != nil:
		return fmt.Sprintf("\nThe skill %s was loaded.\n", Literal(e.Loaded.Skill.Name))
	case e.Unloaded != nil:
		return fmt.Sprintf("\nThe skill %s was unloaded: %s.\n", Literal(e.Unloaded.Skill.Name), Literal(e.Unloaded.Reason))
	case e.Compacted != nil:
		return "\nWhat was said before was put in short.\n"
	}
	return ""
}

func answerMarkdown(m *Message) string {
	var b strings.Builder
	if m.Text != "" {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n", skill.OneLine(m.Model), shown(m.Text))
	}
	for _, c := range m.Calls {
		fmt.Fprintf(&b, "\nCalled %s:\n\n%s\n", Literal(c.Name), Fenced(c.Arguments))
	}
	return b.String()
}

// Literal is a text of others on one line, in which nothing means anything to Markdown.
func Literal(text string) string {
	var b strings.Builder
	for _, r := range skill.OneLine(text) {
		if strings.ContainsRune("\\`*_{}[]<>()#+-.!|~&", r) {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}

// Fenced is a text of others as a block of code in Markdown.
func Fenced(text string) string {
	longest, run := 2, 0
	for _, r := range text {
		if run++; r != '`' {
			run = 0
		}
		longest = max(longest, run)
	}
	fence := strings.Repeat("`", longest+1)
	return fence + "\n" + strings.TrimSuffix(shown(text), "\n") + "\n" + fence
}

// shown is a text without what would steer a terminal.
func shown(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			return -1
		}
		return r
	}, text)
}
