package skilldiff

import (
	"fmt"
	"strings"

	"github.com/loadout-dev/loadout/internal/linediff"
)

const (
	contextLines = 3
	missingName  = "/dev/null" // name of a missing file, as in other diff tools
	noLineEnd    = "\\ No newline at end of file"
)

// Unified returns the difference between two texts in the unified format with
// three lines of context. If the texts are equal, it returns "". It applies
// FileBytes and LineBytes of o. If lines were omitted, the last line states
// their number.
//
// The result is safe to print on a terminal: control characters, invisible
// characters and characters that change the text direction are written as
// \u{…}. Unchanged parts of long lines are omitted. The result is not meant to
// be applied as a patch.
func Unified(old, new []byte, oldName, newName string, o *Options) string {
	full := o.withDefaults()
	out, _ := newTextPair(string(old), string(new), maxTable).unified(oldName, newName, full.FileBytes, full.LineBytes)
	return out
}

// textPair holds two texts and their line-by-line comparison.
type textPair struct {
	a, b           []string // lines including their line ends
	steps          []linediff.Step
	added, removed int
	entries        int  // upper bound for the table entries that the comparison uses
	crlf           bool // every line of both texts ends with CR LF
}

func newTextPair(old, new string, table int) *textPair {
	t := &textPair{a: splitLines(old), b: splitLines(new)}
	t.entries = min((len(t.a)+1)*(len(t.b)+1), table)
	t.steps = linediff.Compare(t.a, t.b, table)
	for _, s := range t.steps {
		switch s.Op {
		case '+':
			t.added++
		case '-':
			t.removed++
		}
	}
	t.crlf = allCRLF(t.a) && allCRLF(t.b)
	return t
}

// splitLines splits s into lines that include their line ends. A final line end
// does not start another line.
func splitLines(s string) []string {
	lines := strings.SplitAfter(s, "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}

func allCRLF(lines []string) bool {
	for _, l := range lines {
		if strings.HasSuffix(l, "\n") && !strings.HasSuffix(l, "\r\n") {
			return false
		}
	}
	return true
}

// unified returns the difference and the number of omitted lines. The
// difference has up to maxBytes, plus one line.
func (t *textPair) unified(oldName, newName string, maxBytes, lineBytes int) (text string, omitted int) {
	if t.added+t.removed == 0 {
		return "", 0
	}
	w := hunkWriter{textPair: t, maxBytes: maxBytes, lineBytes: lineBytes}
	w.line("--- " + escapeText(oldName, MaxValueBytes))
	w.line("+++ " + escapeText(newName, MaxValueBytes))
	for _, h := range linediff.Hunks(t.steps, contextLines) {
		w.line(h.Header())
		w.hunk(h)
	}
	if w.omitted > 0 {
		fmt.Fprintf(&w.out, "… %d more lines of the diff are not shown\n", w.omitted)
	}
	return w.out.String(), w.omitted
}

// hunkWriter writes hunks up to a size limit and counts the omitted lines.
type hunkWriter struct {
	*textPair
	out                 strings.Builder
	maxBytes, lineBytes int
	omitted             int // number of omitted lines
}

func (w *hunkWriter) line(s string) {
	if w.omitted > 0 || w.out.Len()+len(s)+1 > w.maxBytes {
		w.omitted++
		return
	}
	w.out.WriteString(s)
	w.out.WriteByte('\n')
}

func (w *hunkWriter) hunk(h linediff.Hunk) {
	for s, other := range h.Pairs() {
		counterpart := ""
		switch {
		case other < 0:
		case s.Op == '-':
			counterpart = w.b[other]
		case s.Op == '+':
			counterpart = w.a[other]
		}
		w.writeLine(s.Op, s.Line(w.a, w.b), counterpart)
	}
}

// writeLine writes a line. If the line is long, it omits the parts that also occur
// in counterpart, which is "" if there is none.
func (w *hunkWriter) writeLine(op byte, line, counterpart string) {
	if w.omitted > 0 {
		w.omitted++
		return
	}
	text := w.escape(line)
	if counterpart != "" {
		text, _ = linediff.Elide(text, w.escape(counterpart))
	}
	w.line(string(op) + cutLine(text, w.lineBytes))
	if !strings.HasSuffix(line, "\n") {
		w.line(noLineEnd)
	}
}

// escape escapes the unsafe characters in a line and removes its line end.
func (w *hunkWriter) escape(line string) string {
	line = strings.TrimSuffix(line, "\n")
	if w.crlf {
		line = strings.TrimSuffix(line, "\r")
	}
	return escapeUnsafe(line, "\t")
}
