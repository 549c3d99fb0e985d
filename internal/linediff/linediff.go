// Package linediff compares two texts by lines, and finds the parts of the
// result that are worth showing. It writes to nobody.
package linediff

import "fmt"

// Step is one step of the way from one text to another.
type Step struct {
	Op   byte // ' ' for a line that stays, '-' for one that goes, '+' for one that comes
	A, B int  // index in the old and in the new text; of a line that comes, A is where it comes before, and B the like of one that goes
}

// Compare finds a short way from a to b. What the two have in common at their
// ends is skipped, which for one edit is nearly everything; should the rest
// need a table of more than most entries, it counts as replaced. The table is
// what takes time and memory: about 3 ns and 4 bytes an entry.
func Compare(a, b []string, most int) []Step {
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
	t := newTable(a[i:endA], b[j:endB], most)
	for i < endA || j < endB {
		switch x, y := i-fromA, j-fromB; {
		case i < endA && j < endB && t != nil && t.a[x] == t.b[y]:
			keep()
		case j == endB || i < endA && (t == nil || t.common(x+1, y) >= t.common(x, y+1)):
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

// table says how many lines the rests of two texts have in common.
type table struct {
	a, b   []int32 // the lines, by number: the same line is the same number
	counts []int32 // of a[i:] and b[j:], at i*(len(b)+1)+j
}

// newTable is nil where the table would be too large.
func newTable(a, b []string, most int) *table {
	rows, columns := len(a)+1, len(b)+1
	if rows > most/columns {
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

func (t *table) common(i, j int) int32 { return t.counts[i*(len(t.b)+1)+j] }

// Hunk is a part of the way from one text to another: lines that change, with
// some that stay around them.
type Hunk []Step

// Hunks returns the parts of steps that change something, each with so many
// lines that stay before and behind it. Those that would touch are one.
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

// Header is the line of the unified form that says where the hunk is, without
// a line end.
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
	return fmt.Sprintf("@@ -%s +%s @@", extent(h[0].A, old), extent(h[0].B, new))
}

// extent is "first,count", where a count of 0 has the number of the line before.
func extent(index, count int) string {
	if count > 0 {
		index++
	}
	return fmt.Sprintf("%d,%d", index, count)
}

const (
	maxLine = 160 // characters of a line that Elide leaves as it is
	kept    = 30  // characters of what two lines have in common that stay, at either end
)

// Omitted stands where [Elide] left something out.
const Omitted = "…"

// Elide leaves out of two lines, one of which is long, most of what they have
// in common at their ends, for files that are written on one line. What is
// different stays.
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
	head, tail = max(0, head-kept), max(0, tail-kept)
	return middle(x, head, tail), middle(y, head, tail)
}

func middle(s []rune, head, tail int) string {
	text := string(s[head : len(s)-tail])
	if head > 0 {
		text = Omitted + text
	}
	if tail > 0 {
		text += Omitted
	}
	return text
}
