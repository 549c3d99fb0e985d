package skilldiff

import (
	"fmt"
	"strings"

	"github.com/loadout-dev/loadout/internal/linediff"
)

const (
	contextLines = 3
	nowhere      = "/dev/null" // as the name of a file that is not there, which tools understand
	noEnd        = "\\ no line end at the end of the file"
)

// Unified writes the lines in which two texts differ in the unified form, with
// three lines around each change: "" where the texts are the same. Of o it heeds
// FileBytes and LineBytes; what is left out is said in the last line.
//
// It is for people: safe to show on a terminal, as control characters, those
// that cannot be seen and those that change the direction are written as \u{…}.
// Of a long line most of what did not change is left out. No tool can apply it
// where that was needed. Names are those of the old and the new file.
func Unified(old, new []byte, oldName, newName string, o *Options) string {
	full := o.complete()
	out, _ := newTexts(string(old), string(new), maxTable).unified(oldName, newName, full.FileBytes, full.LineBytes)
	return out
}

// texts are two texts compared by lines.
type texts struct {
	a, b           []string // lines, each with its end
	steps          []linediff.Step
	added, removed int
	entries        int  // of a table that the comparison took, at most
	returns        bool // every line of both ends with a carriage return and a line feed
}

func newTexts(old, new string, table int) *texts {
	t := &texts{a: splitLines(old), b: splitLines(new)}
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
	t.returns = allReturns(t.a) && allReturns(t.b)
	return t
}

// splitLines splits a text into lines with their ends; there is none after the
// last end.
func splitLines(s string) []string {
	lines := strings.SplitAfter(s, "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}

func allReturns(lines []string) bool {
	for _, l := range lines {
		if strings.HasSuffix(l, "\n") && !strings.HasSuffix(l, "\r\n") {
			return false
		}
	}
	return true
}

// unified is the difference in at most so many bytes and a line, and how many of
// its lines are left out.
func (t *texts) unified(oldName, newName string, most, lineBytes int) (string, int) {
	if t.added+t.removed == 0 {
		return "", 0
	}
	w := writer{texts: t, most: most, lineBytes: lineBytes}
	w.line("--- " + visible(oldName, MaxValueBytes))
	w.line("+++ " + visible(newName, MaxValueBytes))
	for _, h := range linediff.Hunks(t.steps, contextLines) {
		w.line(h.Header())
		w.hunk(h)
	}
	if w.left > 0 {
		fmt.Fprintf(&w.out, "… %d lines more of the difference are not shown\n", w.left)
	}
	return w.out.String(), w.left
}

// writer writes hunks until there is no room.
type writer struct {
	*texts
	out             strings.Builder
	most, lineBytes int
	left            int // lines for which there was no room
}

func (w *writer) line(s string) {
	if w.left > 0 || w.out.Len()+len(s)+1 > w.most {
		w.left++
		return
	}
	w.out.WriteString(s)
	w.out.WriteByte('\n')
}

func (w *writer) hunk(h linediff.Hunk) {
	for len(h) > 0 {
		if h[0].Op == ' ' {
			w.text(' ', w.a[h[0].A], "")
			h = h[1:]
			continue
		}
		removed := leading(h, '-')
		added := leading(h[removed:], '+')
		for i := range removed {
			other := ""
			if i < added {
				other = w.b[h[removed+i].B]
			}
			w.text('-', w.a[h[i].A], other)
		}
		for i := range added {
			other := ""
			if i < removed {
				other = w.a[h[i].A]
			}
			w.text('+', w.b[h[removed+i].B], other)
		}
		h = h[removed+added:]
	}
}

func leading(h linediff.Hunk, op byte) int {
	n := 0
	for n < len(h) && h[n].Op == op {
		n++
	}
	return n
}

// text writes a line. Of a long one, what it has in common with the line that
// it replaces, or that replaces it, is mostly left out.
func (w *writer) text(op byte, line, other string) {
	if w.left > 0 {
		w.left++
		return
	}
	text := w.shown(line)
	if other != "" {
		text, _ = linediff.Elide(text, w.shown(other))
	}
	w.line(string(op) + cutLine(text, w.lineBytes))
	if !strings.HasSuffix(line, "\n") {
		w.line(noEnd)
	}
}

// shown is a line without its end, and all else spelled out.
func (w *writer) shown(line string) string {
	line = strings.TrimSuffix(line, "\n")
	if w.returns {
		line = strings.TrimSuffix(line, "\r")
	}
	return spelled(line, "\t")
}
