package terminal

import (
	"strings"

	"github.com/yuin/goldmark/ast"
)

// table is a Markdown table. The first row is the header.
type table struct {
	rows  [][]line
	right []bool // whether each column is right-aligned
}

// table parses a paragraph as a table. It returns nil if the second line is not
// a delimiter row.
func (d *document) table(n ast.Node) *table {
	if n.Lines().Len() < 2 {
		return nil
	}
	under := cells(d.lineText(n, 1))
	out := &table{}
	for _, c := range under {
		bare := strings.Trim(c, ":")
		if bare == "" || strings.Trim(bare, "-") != "" {
			return nil
		}
		out.right = append(out.right, strings.HasSuffix(c, ":") && !strings.HasPrefix(c, ":"))
	}
	if heads := cells(d.lineText(n, 0)); len(heads) != len(under) || !strings.Contains(d.lineText(n, 0), "|") {
		return nil
	}
	for i := range n.Lines().Len() {
		if i == 1 {
			continue
		}
		row := make([]line, len(under))
		for j, c := range cells(d.lineText(n, i)) {
			if j < len(row) {
				row[j] = d.cell(c, i == 0)
			}
		}
		out.rows = append(out.rows, row)
	}
	return out
}

func (d *document) lineText(n ast.Node, i int) string {
	at := n.Lines().At(i)
	return strings.TrimSpace(string(at.Value(d.source)))
}

// cells splits a row into cells. An escaped bar does not end a cell.
func cells(s string) []string {
	s = strings.TrimPrefix(strings.ReplaceAll(s, `\|`, "\x00"), "|")
	s = strings.TrimSuffix(s, "|")
	out := strings.Split(s, "|")
	for i, c := range out {
		out[i] = strings.TrimSpace(strings.ReplaceAll(c, "\x00", "|"))
	}
	return out
}

func (d *document) cell(s string, head bool) line {
	c := document{source: []byte(s)}
	st := normal
	if head {
		st = bold
	}
	n := c.parse().FirstChild()
	if n == nil || n.Kind() != ast.KindParagraph {
		return line{{s, st}}
	}
	return c.inline(n, st)
}

// lines renders the table in columns, or as a list if the columns do not fit.
func (t *table) lines(width int) []line {
	const gap = 2
	widths := make([]int, len(t.right))
	total := gap * (len(widths) - 1)
	for j := range widths {
		for _, row := range t.rows {
			widths[j] = max(widths[j], row[j].width())
		}
		total += widths[j]
	}
	if total > width {
		return t.list(width)
	}
	var out []line
	for i, row := range t.rows {
		var l line
		for j, c := range row {
			pad := span{strings.Repeat(" ", widths[j]-c.width()), normal}
			if j > 0 {
				l = append(l, span{strings.Repeat(" ", gap), normal})
			}
			if t.right[j] {
				l = append(append(l, pad), c...)
			} else {
				l = append(append(l, c...), pad)
			}
		}
		out = append(out, l.trimRight())
		if i == 0 {
			out = append(out, line{{strings.Repeat("─", total), faint}})
		}
	}
	return out
}

// list renders each cell on its own line, preceded by its column's header.
func (t *table) list(width int) []line {
	var out []line
	for i, row := range t.rows[1:] {
		if i > 0 {
			out = append(out, nil)
		}
		for j, c := range row {
			whole := append(append(append(line{}, t.rows[0][j]...), span{": ", faint}), c...)
			out = append(out, whole.wrap(width, line{{"  ", normal}})...)
		}
	}
	return out
}
