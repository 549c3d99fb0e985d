// Package untrusted makes text that someone else wrote safe to show: names,
// descriptions and errors of skills and servers. [Text] holds such text and has
// a method for each kind of reader. [Inspect] reports the disallowed characters
// in text that must not change, such as the instructions of a skill.
//
// One table decides which characters are disallowed; see [Disallowed]. A
// disallowed character controls a terminal, reorders text, or is visible to a
// model but not to a user. The package does not judge what the text says.
package untrusted

import (
	"fmt"
	"io"
	"log/slog"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Text is untrusted text, which someone else wrote. Each of its methods returns
// the text in a form that is safe for one kind of reader. Formatting it with
// package fmt, logging it and encoding it as JSON are safe too. The zero value
// is the empty text. A Text is immutable.
type Text struct{ s string }

// New returns s as untrusted text.
func New(s string) Text { return Text{s} }

// List returns each of the strings as untrusted text.
func List(ss []string) []Text {
	var out []Text
	for _, s := range ss {
		out = append(out, Text{s})
	}
	return out
}

// Sprintf returns the result of [fmt.Sprintf] as untrusted text.
func Sprintf(format string, args ...any) Text { return Text{fmt.Sprintf(format, args...)} }

// ErrorText returns the message of err as untrusted text.
func ErrorText(err error) Text { return Text{err.Error()} }

// ForModel returns the text on one line, without disallowed characters. A
// delimiter that could end or begin a part of a prompt is changed, so that it
// reads the same but has no effect: "</skill>" becomes "‹/skill>".
func (t Text) ForModel() string { return neutralize(t.line()) }

// ForModelLines is like [Text.ForModel], but keeps line breaks and tabs.
func (t Text) ForModelLines() string { return neutralize(t.lines()) }

// ForTerminal returns the text on one line, without disallowed characters.
func (t Text) ForTerminal() string { return t.line() }

// ForTerminalLines returns the text without disallowed characters. It keeps
// line breaks and tabs.
func (t Text) ForTerminalLines() string { return t.lines() }

// ForPage returns the text without disallowed characters, for a field of a
// page or of the API behind it. It keeps line breaks and tabs. It does not
// escape HTML.
func (t Text) ForPage() string { return t.lines() }

// ForLog returns the text on one line with each disallowed character made
// visible, as in ⟨U+202E⟩, so that a log shows the original characters.
func (t Text) ForLog() string { return oneLine(t.Visible()) }

// Visible returns the text with each disallowed character replaced by its code
// point, as in ⟨U+202E⟩. Bytes that are not valid UTF-8 become ⟨0xFF⟩.
func (t Text) Visible() string {
	return replace(t.s, func(b *strings.Builder, s string, r rune) {
		if r == utf8.RuneError && len(s) == 1 {
			fmt.Fprintf(b, "⟨0x%02X⟩", s[0])
			return
		}
		fmt.Fprintf(b, "⟨U+%04X⟩", r)
	})
}

// String returns the text as [Text.ForModel] does.
func (t Text) String() string { return t.ForModel() }

// Format implements [fmt.Formatter], so that no verb prints the unmodified
// text.
func (t Text) Format(f fmt.State, verb rune) {
	if verb == 'q' {
		fmt.Fprintf(f, "%q", t.ForModel())
		return
	}
	_, _ = io.WriteString(f, t.ForModel())
}

// MarshalText implements [encoding.TextMarshaler]. It returns the text as
// [Text.ForModel] does.
func (t Text) MarshalText() ([]byte, error) { return []byte(t.ForModel()), nil }

// LogValue implements [slog.LogValuer]. It returns the text as [Text.ForLog]
// does.
func (t Text) LogValue() slog.Value { return slog.StringValue(t.ForLog()) }

// MarkOrigin returns the description of a skill as a model reads it in a list.
// For the scope "project", whose skills come with a repository, the description
// begins with "[project]". That tells a model that someone else wrote the skill,
// regardless of what the skill's text says.
func MarkOrigin(scope, description string) string {
	switch {
	case scope != "project":
		return description
	case description == "":
		return "[project]"
	}
	return "[project] " + description
}

// line returns the text on one line without disallowed characters.
func (t Text) line() string {
	if isOneLineASCII(t.s) {
		return t.s
	}
	return oneLine(replace(t.s, spaceControl))
}

// lines returns the text without disallowed characters, carriage returns and form
// feeds.
func (t Text) lines() string {
	s := t.s
	if strings.ContainsAny(s, "\r\f") {
		s = returns.Replace(s)
	}
	return replace(s, dropHidden)
}

var returns = strings.NewReplacer("\r", "", "\f", "")

// dropHidden drops a disallowed character. Line separators become a space, and
// invalid bytes become U+FFFD.
func dropHidden(b *strings.Builder, _ string, r rune) {
	switch {
	case r == utf8.RuneError:
		b.WriteRune(utf8.RuneError)
	case unicode.IsSpace(r):
		b.WriteByte(' ')
	}
}

// spaceControl is like dropHidden, but control characters become a space,
// because they may separate words.
func spaceControl(b *strings.Builder, s string, r rune) {
	if unicode.IsControl(r) {
		b.WriteByte(' ')
		return
	}
	dropHidden(b, s, r)
}

// replace calls write with each disallowed character of s, and copies the rest.
func replace(s string, write func(b *strings.Builder, s string, r rune)) string {
	var b strings.Builder
	last := 0
	for c := range disallowedIn(s) {
		if last == 0 {
			b.Grow(len(s))
		}
		b.WriteString(s[last:c.at])
		write(&b, s[c.at:c.at+c.size], c.r)
		last = c.at + c.size
	}
	if last == 0 {
		return s
	}
	b.WriteString(s[last:])
	return b.String()
}

// isOneLineASCII reports whether s is printable ASCII on one line, without
// spaces that oneLine would remove.
func isOneLineASCII(s string) bool {
	// Nearly all texts are like that. The loop avoids a branch that is
	// mispredicted at every space.
	odd, space := len(s) == 0, true
	for i := 0; i < len(s); i++ {
		blank := s[i] == ' '
		odd = odd || s[i]-' ' >= 0x7f-' ' || blank && space
		space = blank
	}
	return !odd && !space
}

// oneLine replaces each run of white space with a space.
func oneLine(s string) string {
	if isOneLineASCII(s) {
		return s
	}
	return strings.Join(strings.FieldsFunc(s, unicode.IsSpace), " ")
}
