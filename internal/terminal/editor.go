package terminal

import (
	"strings"
	"unicode"

	"github.com/charmbracelet/x/ansi"
)

// maxInput is the maximum length of the input in grapheme clusters, and the
// maximum total size of its folded text in bytes.
const maxInput = 1 << 20

// editor is a multi-line text input.
type editor struct {
	letters []letter
	at      int  // index of the letter under the cursor
	secret  bool // whether the text is shown as dots
}

// letter is a grapheme cluster, or a block of folded text, which is edited as a
// whole.
type letter struct {
	text   string
	pasted bool
}

func (l letter) folded() bool { return l.pasted && isFolded(l.text) }

func (e *editor) String() string { return joinLetters(e.letters) }

func joinLetters(all []letter) string {
	var b strings.Builder
	for _, l := range all {
		b.WriteString(l.text)
	}
	return b.String()
}

// value returns the text and marks which parts of it were pasted.
func (e *editor) value() input {
	var b strings.Builder
	var out input
	for i, l := range e.letters {
		from := b.Len()
		b.WriteString(l.text)
		if n := len(out.pasted); l.pasted && n > 0 && out.pasted[n-1].to == from && !l.folded() && !e.letters[i-1].folded() {
			out.pasted[n-1].to = b.Len()
		} else if l.pasted {
			out.pasted = append(out.pasted, extent{from, b.Len()})
		}
	}
	out.text = b.String()
	return out
}

func (e *editor) empty() bool { return len(e.letters) == 0 }

func (e *editor) set(text string) { e.restore(input{text: text}) }

// restore replaces the text. The cursor is at the end.
func (e *editor) restore(in input) {
	e.letters, e.at = nil, 0
	at := 0
	for _, p := range in.pasted {
		e.insert(in.text[at:p.from])
		e.paste(in.text[p.from:p.to])
		at = p.to
	}
	e.insert(in.text[at:])
}

// cleanInput removes control characters from text and normalizes line breaks.
func cleanInput(text string) string {
	return expandTabs(Safe(strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n")))
}

func splitLetters(text string, pasted bool) []letter {
	text = cleanInput(text)
	var out []letter
	for text != "" && len(out) < maxInput {
		cluster, _ := ansi.FirstGraphemeCluster(text, ansi.GraphemeWidth)
		out = append(out, letter{cluster, pasted})
		text = text[len(cluster):]
	}
	return out
}

func (e *editor) insert(text string) { e.insertLetters(splitLetters(text, false)) }

// paste inserts pasted text. It folds long text.
func (e *editor) paste(text string) {
	if text = cleanInput(text); !isFolded(text) {
		e.insertLetters(splitLetters(text, true))
		return
	}
	free := maxInput
	for _, l := range e.letters {
		if l.folded() {
			free -= len(l.text)
		}
	}
	if text = strings.ToValidUTF8(text[:max(min(len(text), free), 0)], ""); text != "" {
		e.insertLetters([]letter{{text, true}})
	}
}

// unfold expands the folded text before the cursor. It returns false if there
// is none.
func (e *editor) unfold() bool {
	if e.at == 0 || !e.letters[e.at-1].folded() {
		return false
	}
	text := e.letters[e.at-1].text
	e.remove(e.at-1, e.at)
	e.insertLetters(splitLetters(text, true)) // an @ in it still names no file
	return true
}

func (e *editor) insertLetters(all []letter) {
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
	for i > 0 && e.letters[i-1].text != "\n" {
		i--
	}
	return i
}

func (e *editor) lineEnd() int {
	i := e.at
	for i < len(e.letters) && e.letters[i].text != "\n" {
		i++
	}
	return i
}

// killEnd returns the index up to which Ctrl-K deletes: the end of the current
// line or, if the cursor is already there, the index after the line break.
func (e *editor) killEnd() int {
	if end := e.lineEnd(); end > e.at {
		return end
	}
	return e.at + 1
}

func (e *editor) isSpace(i int) bool {
	return strings.TrimFunc(e.letters[i].text, unicode.IsSpace) == ""
}

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
		e.remove(e.at, e.killEnd())
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

// rows wraps the text to width columns, at spaces if possible. x and y are the
// cursor position within rows. Spaces that do not fit at the end of a row are
// omitted.
func (e *editor) rows(width int) (rows []string, x, y int) {
	shown := e.shownLetters(width)
	starts := rowStarts(shown, width)
	for i, from := range starts {
		to := len(shown)
		if i+1 < len(starts) {
			to = starts[i+1]
		}
		var row strings.Builder
		used := 0
		for at := from; at <= to; at++ {
			if at == e.at && (at < to || i+1 == len(starts)) {
				x, y = used, i
			}
			if at == to || shown[at] == "\n" {
				continue
			}
			if w := Width(shown[at]); used+w <= width || shown[at] != " " {
				row.WriteString(shown[at])
				used += w
			}
		}
		rows = append(rows, row.String())
	}
	return rows, x, y
}

// shownLetters returns the text displayed for each letter, in up to width columns.
func (e *editor) shownLetters(width int) []string {
	out := make([]string, len(e.letters))
	pastes := 0
	for i, l := range e.letters {
		switch {
		case e.secret && l.text != "\n":
			out[i] = "•"
		case l.folded():
			pastes++
			out[i] = Clip(pasteLabel(pastes, l.text), width)
		default:
			out[i] = l.text
		}
	}
	return out
}

// rowStarts returns the index of the first letter of each row of width columns.
func rowStarts(shown []string, width int) []int {
	starts := []int{0}
	used, breakAt := 0, 0 // breakAt is the last index where a row may begin
	begin := func(i int) { starts, breakAt = append(starts, i), i }
	for i, l := range shown {
		w := Width(l)
		wide := isWide(firstLetter(l))
		if wide = wide || w > 2; wide { // a label
			breakAt = i
		}
		for l != "\n" && l != " " && used+w > width && i > starts[len(starts)-1] {
			if breakAt > starts[len(starts)-1] {
				begin(breakAt)
			} else {
				begin(i)
			}
			used = 0
			for _, moved := range shown[breakAt:i] {
				used += Width(moved)
			}
		}
		switch {
		case l == "\n":
			begin(i + 1)
			used = 0
		case l == " ":
			used, breakAt = min(used+1, width), i+1
		default:
			if used += w; wide {
				breakAt = i + 1
			}
		}
	}
	return starts
}
