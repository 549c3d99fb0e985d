package clientconfig

import (
	"fmt"
	"strings"

	"github.com/loadout-dev/loadout/internal/linediff"
)

const (
	contextLines = 3
	maxLine      = 320     // maximum length of an unchanged or removed line in characters
	maxTable     = 4 << 20 // maximum size of the comparison table
)

// unifiedDiff returns a unified diff of two texts. It compares the texts but
// shows lines of their masked versions, which must have the same number of
// lines.
func unifiedDiff(oldName, newName string, before, after []byte, maskedBefore, maskedAfter string) string {
	a, b := splitLines(string(before)), splitLines(string(after))
	shownA, shownB := splitLines(maskedBefore), splitLines(maskedAfter)
	steps := linediff.Compare(a, b, maxTable)
	var out strings.Builder
	fmt.Fprintf(&out, "--- %s\n+++ %s\n", sanitizeLine(oldName), sanitizeLine(newName))
	for _, hunk := range linediff.Hunks(steps, contextLines) {
		out.WriteString(hunk.Header() + "\n")
		for s, other := range hunk.Pairs() {
			text := s.Line(shownA, shownB)
			switch {
			case s.Op == '-' && other >= 0:
				text, _ = linediff.Elide(text, shownB[other])
			case s.Op == '+' && other >= 0:
				_, text = linediff.Elide(shownA[other], text)
			}
			text = sanitizeLine(strings.TrimSuffix(text, "\r"))
			if s.Op != '+' { // added lines are never shortened
				text = shorten(text)
			}
			out.WriteByte(s.Op)
			out.WriteString(text)
			out.WriteByte('\n')
		}
	}
	return out.String()
}

// splitLines splits s into lines. A final newline does not start another line.
func splitLines(s string) []string {
	s = strings.TrimPrefix(s, string(bom))
	if s == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(s, "\n"), "\n")
}

// shorten truncates a line to maxLine characters.
func shorten(s string) string {
	if r := []rune(s); len(r) > maxLine {
		return string(r[:maxLine]) + linediff.Ellipsis
	}
	return s
}
