package terminal

import (
	"strings"
	"unicode"

	"github.com/charmbracelet/x/ansi"
)

// maxInput is the maximum length of the input in grapheme clusters.
const maxInput = 1 << 20

// editor is a multi-line text input.
type editor struct {
	letters []string // grapheme clusters
	at      int      // index of the grapheme cluster under the cursor
	secret  bool     // whether the text is shown as dots
}

func (e *editor) String() string { return strings.Join(e.letters, "") }

func (e *editor) empty() bool { return len(e.letters) == 0 }

func (e *editor) set(text string) {
	e.letters, e.at = splitLetters(text), 0
	e.at = len(e.letters)
}

func splitLetters(text string) []string {
	text = expandTabs(Safe(strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n")))
	var out []string
	for text != "" && len(out) < maxInput {
		letter, _ := ansi.FirstGraphemeCluster(text, ansi.GraphemeWidth)
		out = append(out, letter)
		text = text[len(letter):]
	}
	return out
}

func (e *editor) insert(text string) {
	all := splitLetters(text)
	all = all[:max(min(len(all), maxInput-len(e.letters)), 0)]
	e.letters = append(e.letters[:e.at:e.at], append(all, e.letters[e.at:]...)...)
	e.at += len(all)
}

func (e *editor) remove(from, to int) {
	from, to = max(from, 0), min(to, len(e.letters))
	if from >= to {
		return
	}
	e.letters = append(e.letters[:from:from], e.letters[to:]...)
	e.at = from
}

// lineStart returns the index of the start of the line with the cursor.
func (e *editor) lineStart() int {
	i := e.at
	for i > 0 && e.letters[i-1] != "\n" {
		i--
	}
	return i
}

func (e *editor) lineEnd() int {
	i := e.at
	for i < len(e.letters) && e.letters[i] != "\n" {
		i++
	}
	return i
}

// lineRest returns the end of the current line. If the cursor is already there,
// it returns the end of the line break instead.
func (e *editor) lineRest() int {
	if end := e.lineEnd(); end > e.at {
		return end
	}
	return e.at + 1
}

func (e *editor) isSpace(i int) bool { return strings.TrimFunc(e.letters[i], unicode.IsSpace) == "" }

func (e *editor) wordLeft() int {
	i := e.at
	for i > 0 && e.isSpace(i-1) {
		i--
	}
	for i > 0 && !e.isSpace(i-1) {
		i--
	}
	return i
}

func (e *editor) wordRight() int {
	i := e.at
	for i < len(e.letters) && e.isSpace(i) {
		i++
	}
	for i < len(e.letters) && !e.isSpace(i) {
		i++
	}
	return i
}

// moveVertically moves the cursor up or down by lines. It returns false at the
// first and the last line.
func (e *editor) moveVertically(by int) bool {
	column := e.at - e.lineStart()
	switch {
	case by < 0:
		if e.lineStart() == 0 {
			return false
		}
		e.at = e.lineStart() - 1
	default:
		if e.lineEnd() == len(e.letters) {
			return false
		}
		e.at = e.lineEnd() + 1
	}
	e.at = min(e.lineStart()+column, e.lineEnd())
	return true
}

// key handles an editing key. It returns false for any other key.
func (e *editor) key(name, text string) bool {
	switch name {
	case "left", "ctrl+b":
		e.at = max(e.at-1, 0)
	case "right", "ctrl+f":
		e.at = min(e.at+1, len(e.letters))
	case "home", "ctrl+a":
		e.at = e.lineStart()
	case "end", "ctrl+e":
		e.at = e.lineEnd()
	case "ctrl+left", "alt+left", "alt+b":
		e.at = e.wordLeft()
	case "ctrl+right", "alt+right", "alt+f":
		e.at = e.wordRight()
	case "backspace", "ctrl+h", "shift+backspace":
		e.remove(e.at-1, e.at)
	case "delete", "ctrl+d":
		e.remove(e.at, e.at+1)
	case "ctrl+w", "alt+backspace", "ctrl+backspace":
		e.remove(e.wordLeft(), e.at)
	case "alt+d", "ctrl+delete", "alt+delete":
		e.remove(e.at, e.wordRight())
	case "ctrl+u":
		e.remove(e.lineStart(), e.at)
	case "ctrl+k":
		e.remove(e.at, e.lineRest())
	case "alt+enter", "shift+enter", "ctrl+j", "ctrl+enter":
		e.insert("\n")
	default:
		if text == "" {
			return false
		}
		e.insert(text)
	}
	return true
}

// rows wraps the text to width columns. x and y are the cursor position within
// rows.
func (e *editor) rows(width int) (rows []string, x, y int) {
	var row strings.Builder
	used := 0
	flush := func() { rows = append(rows, row.String()); row.Reset(); used = 0 }
	for i, l := range e.letters {
		shown := l
		if e.secret {
			shown = "•"
		}
		w := ansi.StringWidth(shown)
		if l != "\n" && used+w > width {
			flush()
		}
		if i == e.at {
			x, y = used, len(rows)
		}
		if l == "\n" {
			flush()
			continue
		}
		row.WriteString(shown)
		used += w
	}
	if e.at == len(e.letters) {
		if used >= width {
			flush()
		}
		x, y = used, len(rows)
	}
	flush()
	return rows, x, y
}
