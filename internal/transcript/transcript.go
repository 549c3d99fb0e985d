// Package transcript renders session events as Markdown, for exporting or
// printing conversations. It treats all text as untrusted. Start reading at
// [Markdown].
package transcript

import (
	"fmt"
	"strings"

	"github.com/loadout-dev/loadout/internal/printable"
	"github.com/loadout-dev/loadout/internal/untrusted"
	"github.com/loadout-dev/loadout/llm"
	"github.com/loadout-dev/loadout/session"
)

// maxResult is the maximum number of bytes of a call's result that are shown.
const maxResult = 4000

// Markdown renders one event as Markdown: messages, tool calls and the first
// 4,000 bytes of their results, and loaded and unloaded skills. It returns ""
// for other events. It escapes names, puts arguments and results in code
// blocks, and removes control characters.
func Markdown(e *session.Event) string {
	switch {
	case e.Message != nil && e.Message.Role == llm.User:
		return fmt.Sprintf("\n## You, %s\n\n%s\n", e.Time.Format("2006-01-02 15:04"), stripControls(e.Message.Text)) + imageList(e.Message.Images)
	case e.Message != nil:
		return answerMarkdown(e.Message)
	case e.Result != nil:
		text := e.Result.Text
		if len(text) > maxResult {
			text = strings.ToValidUTF8(text[:maxResult], "") + fmt.Sprintf("\n… (%d bytes in all)", len(e.Result.Text))
		}
		what := "Result"
		if e.Result.Error {
			what = "Error"
		}
		return fmt.Sprintf("\n%s:\n\n%s\n", what, Fence(text))
	case e.Loaded != nil:
		return fmt.Sprintf("\nThe skill %s was loaded.\n", Escape(e.Loaded.Skill.Name))
	case e.Unloaded != nil:
		return fmt.Sprintf("\nThe skill %s was unloaded: %s.\n", Escape(e.Unloaded.Skill.Name), Escape(e.Unloaded.Reason))
	case e.Compacted != nil:
		return "\nThe earlier conversation was compacted.\n"
	}
	return ""
}

// imageList names the images of a message, whose content is not part of the text.
func imageList(images []llm.Image) string {
	var b strings.Builder
	for _, i := range images {
		name := i.Name
		if name == "" {
			name = i.MIMEType
		}
		fmt.Fprintf(&b, "\nImage: %s\n", Escape(name))
	}
	return b.String()
}

func answerMarkdown(m *session.Message) string {
	var b strings.Builder
	if m.Text != "" {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n", printable.OneLine(m.Model), stripControls(m.Text))
	}
	for _, c := range m.Calls {
		fmt.Fprintf(&b, "\nCalled %s:\n\n%s\n", Escape(c.Name), Fence(c.Arguments))
	}
	return b.String()
}

// Escape joins untrusted text into one line and escapes its Markdown
// characters.
func Escape(text string) string {
	var b strings.Builder
	for _, r := range printable.OneLine(text) {
		if strings.ContainsRune("\\`*_{}[]<>()#+-.!|~&", r) {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}

// Fence returns untrusted text as a fenced code block.
func Fence(text string) string {
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

// stripControls removes terminal control characters.
func stripControls(text string) string {
	return untrusted.New(text).ForTerminalLines()
}
