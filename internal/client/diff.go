package client

import (
	"fmt"
	"strings"
)

const (
	contextLines = 3
	maxLine      = 160 // characters of a line shown
	maxTable     = 4 << 20
)

// line is one step of the way from one text to another.
type line struct {
	op   byte // ' ', '-' or '+'
	a, b int  // index in the old and the new text
}

// unified compares two texts by lines and shows the difference in the unified
// form, in the words of their masked twins, which have the same line ends.
// Names are those of the old and the new file.
func unified(oldName, newName string, before, after []byte, maskedBefore, maskedAfter string) string {
	a, b := splitLines(string(before)), splitLines(string(after))
	shownA, shownB := splitLines(maskedBefore), splitLines(maskedAfter)
	steps := compare(a, b)
	var out strings.Builder
	fmt.Fprintf(&out, "--- %s\n+++ %s\n", printable(oldName), printable(newName))
	for _, h := range hunks(steps) {
		part := steps[h.start:h.end]
		fmt.Fprintf(&out, "@@ -%s +%s @@\n", extent(part, '+'), extent(part, '-'))
		for i, s := range part {
			var text string
			switch {
			case s.op == '+':
				text = shownB[s.b]
				if i > 0 && part[i-1].op == '-' {
					_, text = elide(shownA[part[i-1].a], text)
				}
			case s.op == '-' && i+1 < len(part) && part[i+1].op == '+':
				text, _ = elide(shownA[s.a], shownB[part[i+1].b])
			default:
				text = shownA[s.a]
			}
			text = printable(strings.TrimSuffix(text, "\r"))
			if s.op != '+' { // a new line is shown whole
				text = shorten(text)
			}
			out.WriteByte(s.op)
			out.WriteString(text)
			out.WriteByte('\n')
		}
	}
	return out.String()
}

// splitLines gives no line for what follows the last line end.
func splitLines(s string) []string {
	s = strings.TrimPrefix(s, string(bom))
	if s == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(s, "\n"), "\n")
}

// compare finds a short way from a to b. What the two have in common at their
// ends is skipped, which for one edit is nearly everything; should the rest be
// too long for a table, it counts as replaced.
func compare(a, b []string) []line {
	var steps []line
	i, j := 0, 0
	keep := func() { steps = append(steps, line{' ', i, j}); i, j = i+1, j+1 }
	drop := func() { steps = append(steps, line{'-', i, j}); i++ }
	add := func() { steps = append(steps, line{'+', i, j}); j++ }

	for i < len(a) && j < len(b) && a[i] == b[j] {
		keep()
	}
	tail := 0
	for tail < len(a)-i && tail < len(b)-j && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	endA, endB := len(a)-tail, len(b)-tail
	common := commonTable(a[i:endA], b[j:endB])
	fromA, fromB := i, j
	for i < endA || j < endB {
		switch {
		case i < endA && j < endB && a[i] == b[j] && common != nil:
			keep()
		case j == endB || i < endA && (common == nil || common[i+1-fromA][j-fromB] >= common[i-fromA][j+1-fromB]):
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

// commonTable says how many lines a[i:] and b[j:] have in common, nil where
// it would be too large.
func commonTable(a, b []string) [][]int {
	if (len(a)+1)*(len(b)+1) > maxTable {
		return nil
	}
	t := make([][]int, len(a)+1)
	for i := range t {
		t[i] = make([]int, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if a[i] == b[j] {
				t[i][j] = t[i+1][j+1] + 1
			} else {
				t[i][j] = max(t[i+1][j], t[i][j+1])
			}
		}
	}
	return t
}

// hunks are the ranges of steps to show: changes with context, joined where
// they touch.
func hunks(steps []line) []span {
	var found []span
	for i, s := range steps {
		if s.op == ' ' {
			continue
		}
		h := span{max(0, i-contextLines), min(len(steps), i+contextLines+1)}
		if n := len(found); n > 0 && found[n-1].end >= h.start {
			found[n-1].end = h.end
		} else {
			found = append(found, h)
		}
	}
	return found
}

// extent is "first,count" of the lines of a hunk that are not op.
func extent(part []line, op byte) string {
	count := 0
	for _, s := range part {
		if s.op != op {
			count++
		}
	}
	first := part[0].a
	if op == '-' {
		first = part[0].b
	}
	if count > 0 {
		first++
	}
	return fmt.Sprintf("%d,%d", first, count)
}

// elide leaves out of two long lines most of what they have in common at their
// ends, for files written on one line.
func elide(a, b string) (string, string) {
	const kept = 30
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
		text = hidden + text
	}
	if tail > 0 {
		text += hidden
	}
	return text
}

// shorten cuts a line that is too long.
func shorten(s string) string {
	if r := []rune(s); len(r) > 2*maxLine {
		return string(r[:2*maxLine]) + hidden
	}
	return s
}
