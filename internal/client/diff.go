package client

import (
	"fmt"
	"strings"

	"github.com/loadout-dev/loadout/internal/linediff"
)

const (
	contextLines = 3
	maxLine      = 160     // characters of a line shown
	maxTable     = 4 << 20 // entries of a comparison
)

// unified compares two texts by lines and shows the difference in the unified
// form, in the words of their masked twins, which have the same line ends.
// Names are those of the old and the new file.
func unified(oldName, newName string, before, after []byte, maskedBefore, maskedAfter string) string {
	a, b := splitLines(string(before)), splitLines(string(after))
	shownA, shownB := splitLines(maskedBefore), splitLines(maskedAfter)
	steps := linediff.Compare(a, b, maxTable)
	var out strings.Builder
	fmt.Fprintf(&out, "--- %s\n+++ %s\n", printable(oldName), printable(newName))
	for _, part := range linediff.Hunks(steps, contextLines) {
		out.WriteString(part.Header() + "\n")
		for i, s := range part {
			var text string
			switch {
			case s.Op == '+':
				text = shownB[s.B]
				if i > 0 && part[i-1].Op == '-' {
					_, text = linediff.Elide(shownA[part[i-1].A], text)
				}
			case s.Op == '-' && i+1 < len(part) && part[i+1].Op == '+':
				text, _ = linediff.Elide(shownA[s.A], shownB[part[i+1].B])
			default:
				text = shownA[s.A]
			}
			text = printable(strings.TrimSuffix(text, "\r"))
			if s.Op != '+' { // a new line is shown whole
				text = shorten(text)
			}
			out.WriteByte(s.Op)
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

// shorten cuts a line that is too long.
func shorten(s string) string {
	if r := []rune(s); len(r) > 2*maxLine {
		return string(r[:2*maxLine]) + hidden
	}
	return s
}
