package terminal

import (
	"strings"
	"unicode"

	"github.com/charmbracelet/x/ansi"
)

// maxInput bounds what is typed and pasted, in letters.
const maxInput = 1 << 20

// editor is the text that a person types, of any number of lines.
type editor struct {
	letters []string // what a person takes for one
	at      int      // the letter that the cursor is on
	secret  bool     // shown as dots
}

func (e *editor) String() string { return strings.Join(e.letters, "") }

func (e *editor) empty() bool { return len(e.letters) == 0 }

func (e *editor) set(text string) {
	e.letters, e.at = letters(text), 0
	e.at = len(e.letters)
}

func letters(text string) []string {
	text = untabbed(Safe(strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n")))
	var out []string
	for text != "" && len(out) < maxInput {
		letter, _ := ansi.FirstGraphemeCluster(text, ansi.GraphemeWidth)
		out = append(out, letter)
		text = text[len(letter):]
	}
	return out
}

func (e *editor) insert(text string) {
	all := letters(text)
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

// lineStart and lineEnd are those of the line of the cursor.
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

// lineRest is the end of the line, and at it that of the line break.
func (e *editor) lineRest() int {
	if end := e.lineEnd(); end > e.at {
		return end
	}
	return e.at + 1
}

func (e *editor) blank(i int) bool { return strings.TrimFunc(e.letters[i], unicode.IsSpace) == "" }

func (e *editor) wordLeft() int {
	i := e.at
	for i > 0 && e.blank(i-1) {
		i--
	}
	for i > 0 && !e.blank(i-1) {
		i--
	}
	return i
}

func (e *editor) wordRight() int {
	i := e.at
	for i < len(e.letters) && e.blank(i) {
		i++
	}
	for i < len(e.letters) && !e.blank(i) {
		i++
	}
	return i
}

// vertical moves the cursor by lines of the text; false is that there is none there.
func (e *editor) vertical(by int) bool {
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

// key does what a key does to a text; false is that it does nothing.
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

// rows are the text in rows of at most width columns, and where the cursor is among
// them.
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
