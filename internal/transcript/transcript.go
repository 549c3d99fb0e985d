package session

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/loadout-dev/loadout/skill"
)

// maxMarkdown is the number of bytes shown of a call's result.
const maxMarkdown = 4000

// EventMarkdown renders one event of a transcript as Markdown: messages, tool
// calls and their results (the first 4,000 bytes), loads and unloads. It
// returns "" for events that only programs need. Names are escaped, arguments
// and results are code blocks, and control characters are removed.
func EventMarkdown(e *Event) string {
	switch {
	case e.Message != nil && e.Message.Role == RoleUser:
		return fmt.Sprintf("\n## You, %s\n\n%s\n", e.Time.Format("2006-01-02 15:04"), stripControls(e.Message.Text))
	case e.Message != nil:
		return answerMarkdown(e.Message)
	case e.Result != nil:
		text := e.Result.Text
		if len(text) > maxMarkdown {
			text = strings.ToValidUTF8(text[:maxMarkdown], "") + fmt.Sprintf("\n… (%d bytes in all)", len(e.Result.Text))
		}
		what := "Result"
		if e.Result.Error {
			what = "Error"
		}
		return fmt.Sprintf("\n%s:\n\n%s\n", what, FencedBlock(text))
	case e.Loaded != nil:
		return fmt.Sprintf("\nThe skill %s was loaded.\n", EscapeMarkdown(e.Loaded.Skill.Name))
	case e.Unloaded != nil:
		return fmt.Sprintf("\nThe skill %s was unloaded: %s.\n", EscapeMarkdown(e.Unloaded.Skill.Name), EscapeMarkdown(e.Unloaded.Reason))
	case e.Compacted != nil:
		return "\nThe earlier conversation was compacted.\n"
	}
	return ""
}

func answerMarkdown(m *Message) string {
	var b strings.Builder
	if m.Text != "" {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n", skill.OneLine(m.Model), stripControls(m.Text))
	}
	for _, c := range m.Calls {
		fmt.Fprintf(&b, "\nCalled %s:\n\n%s\n", EscapeMarkdown(c.Name), FencedBlock(c.Arguments))
	}
	return b.String()
}

// EscapeMarkdown returns untrusted text on one line, with its Markdown
// characters escaped.
func EscapeMarkdown(text string) string {
	var b strings.Builder
	for _, r := range skill.OneLine(text) {
		if strings.ContainsRune("\\`*_{}[]<>()#+-.!|~&", r) {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}

// FencedBlock returns untrusted text as a fenced code block.
func FencedBlock(text string) string {
	longest, run := 2, 0
	for _, r := range text {
		if run++; r != '`' {
			run = 0
		}
		longest = max(longest, run)
	}
	fence := strings.Repeat("`", longest+1)
	return fence + "\n" + strings.TrimSuffix(stripControls(text), "\n") + "\n" + fence
}

// stripControls removes control characters that could steer a terminal.
func stripControls(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			return -1
		}
		return r
	}, text)
}
