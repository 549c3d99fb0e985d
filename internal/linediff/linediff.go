// Package linediff compares two texts by lines and selects the hunks to show. It returns
// line indexes, so that callers can mask, shorten and style the lines themselves. It
// performs no I/O.
//
// Start reading at [Compare] and [Hunks].
package linediff

import (
	"fmt"
	"iter"
)

// Step is an edit that keeps, removes or adds a line.
type Step struct {
	Op   byte // ' ' keeps, '-' removes, '+' adds
	A, B int  // line indexes in the old and new text; for '+' A is the next old line, for '-' B is the next new line
}

// Line returns the step's line: from the new text b if it is added, or else from the old
// text a.
func (s Step) Line(a, b []string) string {
	if s.Op == '+' {
		return b[s.B]
	}
	return a[s.A]
}

// Compare returns a shortest list of steps from a to b. It skips the lines that
// the texts have in common at the start and at the end; after a single edit,
// these are nearly all lines. If the table for the remaining lines would have
// more than maxTable entries, Compare replaces all of them. Each entry takes
// about 3 ns and 4 bytes.
func Compare(a, b []string, maxTable int) []Step {
	steps := make([]Step, 0, max(len(a), len(b)))
	i, j := 0, 0
	keep := func() { steps = append(steps, Step{' ', i, j}); i, j = i+1, j+1 }
	drop := func() { steps = append(steps, Step{'-', i, j}); i++ }
	add := func() { steps = append(steps, Step{'+', i, j}); j++ }

	for i < len(a) && j < len(b) && a[i] == b[j] {
		keep()
	}
	tail := 0
	for tail < len(a)-i && tail < len(b)-j && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	fromA, fromB, endA, endB := i, j, len(a)-tail, len(b)-tail
	t := newTable(a[i:endA], b[j:endB], maxTable)
	for i < endA || j < endB {
		switch x, y := i-fromA, j-fromB; {
		case i < endA && j < endB && t != nil && t.a[x] == t.b[y]:
			keep()
		case j == endB || i < endA && (t == nil || t.commonLines(x+1, y) >= t.commonLines(x, y+1)):
			drop()
		default:
			add()
		}
	}
	for i < len(a) {
		keep()
	}
	return steps
}

// table holds the length of the longest common subsequence for each pair of suffixes of two
// texts.
type table struct {
	a, b   []int32 // the lines; equal lines have equal numbers
	counts []int32 // for a[i:] and b[j:], at i*(len(b)+1)+j
}

// newTable returns the longest-common-subsequence table for a and b, or nil if it would
// have more than maxTable entries.
func newTable(a, b []string, maxTable int) *table {
	rows, columns := len(a)+1, len(b)+1
	if rows > maxTable/columns {
		return nil
	}
	numbers := make(map[string]int32, len(a))
	number := func(lines []string) []int32 {
		out := make([]int32, len(lines))
		for i, s := range lines {
			n, ok := numbers[s]
			if !ok {
				n = int32(len(numbers))
				numbers[s] = n
			}
			out[i] = n
		}
		return out
	}
	t := &table{number(a), number(b), make([]int32, rows*columns)}
	for i := len(a) - 1; i >= 0; i-- {
		row, below := t.counts[i*columns:(i+1)*columns], t.counts[(i+1)*columns:]
		for j := len(b) - 1; j >= 0; j-- {
			if t.a[i] == t.b[j] {
				row[j] = below[j+1] + 1
			} else {
				row[j] = max(below[j], row[j+1])
			}
		}
	}
	return t
}

func (t *table) commonLines(i, j int) int32 { return t.counts[i*(len(t.b)+1)+j] }

// Hunk is a sequence of steps: changes with their context.
type Hunk []Step

// Hunks groups steps into hunks. Each change gets up to context unchanged lines
// before and after it. Hunks that touch or overlap are merged.
func Hunks(steps []Step, context int) []Hunk {
	type span struct{ start, end int }
	var spans []span
	for i, s := range steps {
		if s.Op == ' ' {
			continue
		}
		h := span{max(0, i-context), min(len(steps), i+context+1)}
		if n := len(spans); n > 0 && spans[n-1].end >= h.start {
			spans[n-1].end = h.end
		} else {
			spans = append(spans, h)
		}
	}
	out := make([]Hunk, len(spans))
	for i, s := range spans {
		out[i] = steps[s.start:s.end]
	}
	return out
}

// Pairs yields each step with the index of its counterpart, or -1 if it has none. Where
// removed lines are followed by added ones, the first removed line is the counterpart of
// the first added line, and so on. The index for a removed line refers to the new text, and
// the index for an added line to the old text.
func (h Hunk) Pairs() iter.Seq2[Step, int] {
	return func(yield func(Step, int) bool) {
		for i := 0; i < len(h); {
			start := i
			for i < len(h) && h[i].Op == '-' {
				i++
			}
			removed := h[start:i]
			start = i
			for i < len(h) && h[i].Op == '+' {
				i++
			}
			added := h[start:i]
			for n, s := range removed {
				other := -1
				if n < len(added) {
					other = added[n].B
				}
				if !yield(s, other) {
					return
				}
			}
			for n, s := range added {
				other := -1
				if n < len(removed) {
					other = removed[n].A
				}
				if !yield(s, other) {
					return
				}
			}
			for ; i < len(h) && h[i].Op == ' '; i++ {
				if !yield(h[i], -1) {
					return
				}
			}
		}
	}
}

// Header returns the hunk's header in the unified format, without a newline.
func (h Hunk) Header() string {
	var old, new int // lines
	for _, s := range h {
		if s.Op != '+' {
			old++
		}
		if s.Op != '-' {
			new++
		}
	}
	return fmt.Sprintf("@@ -%s +%s @@", lineRange(h[0].A, old), lineRange(h[0].B, new))
}

// lineRange formats a range of lines as "first,count". If count is 0, first is the number
// of the preceding line.
func lineRange(index, count int) string {
	if count > 0 {
		index++
	}
	return fmt.Sprintf("%d,%d", index, count)
}

const (
	maxLine    = 160 // Elide leaves lines of up to this many characters unchanged
	maxContext = 30  // characters of a common prefix or suffix that Elide preserves
)

// Ellipsis is written in place of text that [Elide] removes.
const Ellipsis = "…"

// Elide shortens the common prefix and suffix of two lines if one of them is long, for
// example in minified files. It preserves all differing characters.
func Elide(a, b string) (string, string) {
	x, y := []rune(a), []rune(b)
	if len(x) <= maxLine && len(y) <= maxLine {
		return a, b
	}
	head, tail := 0, 0
	for head < min(len(x), len(y)) && x[head] == y[head] {
		head++
	}
	for tail < min(len(x), len(y))-head && x[len(x)-1-tail] == y[len(y)-1-tail] {
		tail++
	}
	head, tail = max(0, head-maxContext), max(0, tail-maxContext)
	return cutEnds(x, head, tail), cutEnds(y, head, tail)
}

// cutEnds removes head characters from the start of s and tail characters from its end.
func cutEnds(s []rune, head, tail int) string {
	text := string(s[head : len(s)-tail])
	if head > 0 {
		text = Ellipsis + text
	}
	if tail > 0 {
		text += Ellipsis
	}
	return text
}
