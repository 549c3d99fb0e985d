package terminal

import (
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// Width returns the number of terminal columns that s occupies.
func Width(s string) int {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return ansi.StringWidth(s)
		}
	}
	return len(s)
}

// Layout formats command output and removes control characters from it.
type Layout struct {
	Width       int                      // width in columns; 0 for a file or pipe, whose lines are neither truncated nor wrapped
	Bold, Faint func(text string) string // styles of tables
}

// Wrap wraps s into lines that fit the width. Each line starts with indent.
func (l Layout) Wrap(indent, s string, style func(string) string) string {
	limit := l.Width - len(indent)
	var b strings.Builder
	line, used := "", 0
	flush := func() {
		if line != "" {
			b.WriteString(indent + style(line) + "\n")
		}
		line, used = "", 0
	}
	for word := range strings.FieldsSeq(Plain(s)) {
		n := Width(word)
		if used > 0 && limit > 0 && used+1+n > limit {
			flush()
		}
		if used > 0 {
			line, used = line+" ", used+1
		}
		line, used = line+word, used+n
	}
	flush()
	return b.String()
}

// Table formats rows in columns. The first column is bold, the last has no
// style, and the others are faint. Only the last column is truncated to the
// width, because users may want to copy the others.
func (l Layout) Table(indent string, rows [][]string) string {
	plain := make([][]string, len(rows))
	for i, r := range rows {
		plain[i] = make([]string, len(r))
		for j, c := range r {
			plain[i][j] = Plain(c)
		}
	}
	widths := l.columnWidths(plain)
	var out strings.Builder
	for _, r := range plain {
		var b strings.Builder
		b.WriteString(indent)
		used := len(indent)
		for i, c := range r {
			if i == len(r)-1 {
				if l.Width > 0 {
					c = Clip(c, max(l.Width-used, 20))
				}
				b.WriteString(c)
				break
			}
			n := Width(c)
			pad := max(widths[i]-n, 0) + 2
			used += n + pad
			if i == 0 {
				c = l.Bold(c)
			} else {
				c = l.Faint(c)
			}
			b.WriteString(c + strings.Repeat(" ", pad))
		}
		out.WriteString(strings.TrimRight(b.String(), " ") + "\n")
	}
	return out.String()
}

// columnWidths returns the width of each column of plain text, up to a maximum.
// A wider cell shifts the rest of its row.
func (l Layout) columnWidths(rows [][]string) []int {
	most := 40
	if l.Width > 0 {
		most = max(l.Width/3, 20)
	}
	var widths []int
	for _, r := range rows {
		for len(widths) < len(r) {
			widths = append(widths, 0)
		}
		for i, c := range r {
			if n := Width(c); n <= most {
				widths[i] = max(widths[i], n)
			}
		}
	}
	return widths
}
