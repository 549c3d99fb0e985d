package terminal

import (
	"strings"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"

	"github.com/loadout-dev/loadout/internal/untrusted"
)

// IsControl reports whether r can control a terminal, reorder text or hide in it.
func IsControl(r rune) bool {
	return r == '\r' || r == '\f' || untrusted.Disallowed(r)
}

// Safe removes hidden characters and terminal control characters from untrusted
// text. It keeps line breaks and tabs.
func Safe(s string) string { return untrusted.New(s).ForTerminalLines() }

// Plain is like [Safe], but returns the text on one line.
func Plain(s string) string { return untrusted.New(s).ForTerminal() }

// Printable reports whether a terminal shows s unchanged on one line.
func Printable(s string) bool { return Safe(s) == s && !strings.ContainsAny(s, "\n\t") }

// OneLine is like [Plain], but keeps repeated spaces, which matter in a path.
func OneLine(s string) string {
	return strings.NewReplacer("\n", " ", "\t", " ").Replace(Safe(s))
}

// Clip truncates s to n columns, including an ellipsis. s must be plain text.
// Clip returns "" if n is less than 1.
func Clip(s string, n int) string {
	if n < 1 {
		return ""
	}
	s = Plain(s)
	if Width(s) <= n {
		return s
	}
	return Plain(ansi.Truncate(s, n-1, "")) + "…" // the cut may open an isolate
}

// expandTabs replaces tabs with spaces, because the width of a tab depends on
// the terminal.
func expandTabs(s string) string { return strings.ReplaceAll(s, "\t", "    ") }

// style holds the parameters of an SGR sequence. It uses only the sixteen
// colors of the terminal's theme.
type style string

const (
	normal style = ""
	bold   style = "1"
	faint  style = "2"
	italic style = "3"
	red    style = "31"
	green  style = "32"
	cyan   style = "36"
	purple style = "35"
)

// combine returns a style with the parameters of s and t.
func (s style) combine(t style) style {
	if s == "" || t == "" {
		return s + t
	}
	return s + ";" + t
}

// span is text in one style, without control characters and tabs.
type span struct {
	text  string
	style style
}

// line is one line of styled text.
type line []span

func styledText(s string, st style) line { return line{{expandTabs(Safe(s)), st}} }

// palette converts lines to terminal output.
type palette struct{ none bool } // without colors and bold text

func (p palette) paint(l line) string {
	var b strings.Builder
	for _, s := range l {
		if s.text == "" {
			continue
		}
		if s.style == normal || p.none {
			b.WriteString(s.text)
			continue
		}
		b.WriteString("\x1b[" + string(s.style) + "m" + s.text + "\x1b[0m")
	}
	return b.String()
}

func (p palette) paintAll(lines []line) []string {
	out := make([]string, len(lines))
	for i, l := range lines {
		out[i] = p.paint(l)
	}
	return out
}

func (l line) width() int {
	n := 0
	for _, s := range l {
		n += ansi.StringWidth(s.text)
	}
	return n
}

func (l line) plainText() string {
	var b strings.Builder
	for _, s := range l {
		b.WriteString(s.text)
	}
	return b.String()
}

// clip truncates a line to n columns.
func (l line) clip(n int) line {
	if l.width() <= n {
		return l
	}
	var out line
	for _, s := range l {
		w := ansi.StringWidth(s.text)
		if w > n-1 {
			return append(out, span{ansi.Truncate(s.text, max(n-1, 0), "") + "…", s.style})
		}
		out = append(out, s)
		n -= w
	}
	return out
}

// wrap breaks a line into lines of up to n columns. It breaks at spaces, between
// characters of scripts without spaces, and within words that are too long. All
// lines after the first start with indent.
func (l line) wrap(n int, indent line) []line { return l.wrapWith(n, indent, false) }

// wrapText is like wrap, but keeps a URL that is too long on one line, so that
// users can copy and open it.
func (l line) wrapText(n int, indent line) []line { return l.wrapWith(n, indent, true) }

func (l line) wrapWith(n int, indent line, keepURLs bool) []line {
	w := wrapper{width: max(n, indent.width()+8), indent: indent, keepURLs: keepURLs}
	for _, s := range l {
		for i, part := range strings.Split(s.text, "\n") {
			if i > 0 {
				w.endLine()
			}
			for _, piece := range splitWords(part) {
				if piece == " " {
					w.blank(s.style)
				} else {
					w.add(span{piece, s.style})
				}
			}
		}
	}
	w.endLine()
	return w.lines
}

// wrapper holds the state for wrapping one line.
type wrapper struct {
	width    int
	indent   line
	keepURLs bool

	lines       []line
	current     line
	used        int  // number of columns in current
	indentWidth int  // number of columns of the indent in current
	word        line // word that has not been added to current yet
	wide        bool // whether the word ends in a character of a script without spaces
	opens       bool // whether the word ends in an opening bracket of such a script
}

// add adds a piece of text without spaces to the word, or begins a word with it.
// Closing punctuation stays with the character before it, and an opening bracket
// with the one after it.
func (w *wrapper) add(s span) {
	first := firstLetter(s.text)
	wide := isWide(first)
	if (wide || w.wide) && !w.opens && !strings.ContainsRune(closingPunctuation, first) && Width(s.text) > 0 {
		w.endWord()
	}
	w.word = append(w.word, s)
	w.wide, w.opens = wide, strings.ContainsRune(openingPunctuation, first)
}

// Punctuation in scripts without spaces. Closing punctuation does not begin a
// line, and opening punctuation does not end one.
const (
	closingPunctuation = "、。，．：；！？）］｝」』】〉》〕〗’”…ー々ぁぃぅぇぉっゃゅょァィゥェォッャュョ"
	openingPunctuation = "（［｛「『【〈《〔〖"
)

func (w *wrapper) endLine() {
	w.endWord()
	w.flush()
}

func (w *wrapper) flush() {
	w.lines = append(w.lines, w.current.trimRight())
	w.current = append(line{}, w.indent...)
	w.indentWidth = w.indent.width()
	w.used = w.indentWidth
}

func (w *wrapper) blank(st style) {
	w.endWord()
	if w.used == w.indentWidth && len(w.lines) > 0 {
		return // a continuation line does not start with a space
	}
	w.current, w.used = append(w.current, span{" ", st}), w.used+1
}

// endWord adds the pending word to the current line or to the next. It splits a
// word that is too long.
func (w *wrapper) endWord() {
	n := w.word.width()
	if w.used+n > w.width && w.used > w.indentWidth {
		w.flush()
	}
	if w.keepURLs && w.used+n > w.width && strings.Contains(w.word.plainText(), "://") {
		w.current, w.used, w.word, w.wide, w.opens = append(w.current, w.word...), w.used+n, nil, false, false
		return
	}
	for _, s := range w.word {
		for {
			n := ansi.StringWidth(s.text)
			head := s.text
			if w.used+n > w.width {
				head = ansi.Truncate(s.text, w.width-w.used, "")
			}
			if head == "" && w.used == w.indentWidth {
				head = s.text // the character is wider than the line
			}
			w.current, w.used = append(w.current, span{head, s.style}), w.used+ansi.StringWidth(head)
			if s.text = s.text[len(head):]; s.text == "" {
				break
			}
			w.flush()
		}
	}
	w.word, w.wide, w.opens = nil, false, false
}

// trimRight returns the line without trailing spaces.
func (l line) trimRight() line {
	for len(l) > 0 && strings.TrimRight(l[len(l)-1].text, " ") == "" && len(l) > 1 {
		l = l[:len(l)-1]
	}
	return l.mergeSpans()
}

// mergeSpans merges adjacent spans with the same style.
func (l line) mergeSpans() line {
	var out line
	for _, s := range l {
		if k := len(out) - 1; k >= 0 && out[k].style == s.style {
			out[k].text += s.text
			continue
		}
		out = append(out, s)
	}
	return out
}

// splitWords splits s into words and single spaces. Each wide character is a
// word, because a line can break after it.
func splitWords(s string) []string {
	var out []string
	start := 0
	for i, r := range s {
		if r != ' ' && !isWide(r) {
			continue
		}
		if start < i {
			out = append(out, s[start:i])
		}
		start = i + len(string(r))
		out = append(out, s[i:start])
	}
	if start < len(s) {
		out = append(out, s[start:])
	}
	return out
}

// isWide reports whether r belongs to a script without spaces between words.
func isWide(r rune) bool { return r >= 0x2e80 && r <= 0xffdc || r >= 0x20000 && r <= 0x3ffff }

func firstLetter(s string) rune {
	r, _ := utf8.DecodeRuneInString(s)
	return r
}
