package terminal

import (
	"fmt"
	"strings"

	"github.com/charmbracelet/x/ansi"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// markdown renders Markdown in lines of up to width columns. It does not wrap
// lines of code and long URLs, so that users can copy them. It shows HTML as text.
func markdown(source string, width int) []line {
	d := document{source: []byte(expandTabs(Safe(source)))}
	return d.blocks(d.parse(), width)
}

// document holds the state for rendering one Markdown text.
type document struct {
	source []byte
	tight  bool // inside a list without blank lines between items
}

// parse parses the source as CommonMark. It treats HTML as text.
func (d *document) parse() ast.Node {
	p := parser.NewParser(
		parser.WithBlockParsers(
			util.Prioritized(parser.NewSetextHeadingParser(), 100),
			util.Prioritized(parser.NewThematicBreakParser(), 200),
			util.Prioritized(parser.NewListParser(), 300),
			util.Prioritized(parser.NewListItemParser(), 400),
			util.Prioritized(parser.NewCodeBlockParser(), 500),
			util.Prioritized(parser.NewATXHeadingParser(), 600),
			util.Prioritized(parser.NewFencedCodeBlockParser(), 700),
			util.Prioritized(parser.NewBlockquoteParser(), 800),
			util.Prioritized(parser.NewParagraphParser(), 1000)),
		parser.WithInlineParsers(
			util.Prioritized(parser.NewCodeSpanParser(), 100),
			util.Prioritized(parser.NewLinkParser(), 200),
			util.Prioritized(parser.NewAutoLinkParser(), 300),
			util.Prioritized(parser.NewEmphasisParser(), 500)),
		parser.WithParagraphTransformers(parser.DefaultParagraphTransformers()...))
	return p.Parse(text.NewReader(d.source))
}

// blocks renders a node's child blocks with blank lines between them.
func (d *document) blocks(n ast.Node, width int) []line {
	var out []line
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		next := d.block(c, width)
		if len(out) > 0 && len(next) > 0 && !d.tight {
			out = append(out, nil)
		}
		out = append(out, next...)
	}
	return out
}

func (d *document) block(n ast.Node, width int) []line {
	switch n := n.(type) {
	case *ast.Heading:
		return d.inline(n, bold.combine(purple)).wrapText(width, nil)
	case *ast.Paragraph, *ast.TextBlock:
		if rows := d.table(n); rows != nil {
			return rows.lines(width)
		}
		return d.inline(n, normal).wrapText(width, nil)
	case *ast.FencedCodeBlock, *ast.CodeBlock:
		return d.code(n)
	case *ast.Blockquote:
		return prefixLines(d.blocks(n, width-2), line{{"│ ", faint}}, line{{"│ ", faint}})
	case *ast.List:
		return d.list(n, width)
	case *ast.ThematicBreak:
		return []line{{{"───", faint}}}
	}
	return d.blocks(n, width)
}

// code renders a code block without indentation or wrapping, so that users can
// copy it.
func (d *document) code(n ast.Node) []line {
	var code []string
	for i := range n.Lines().Len() {
		at := n.Lines().At(i)
		code = append(code, strings.TrimRight(string(at.Value(d.source)), "\n"))
	}
	language := ""
	if fenced, ok := n.(*ast.FencedCodeBlock); ok {
		language = string(fenced.Language(d.source))
	}
	return highlight(code, language)
}

func (d *document) list(n *ast.List, width int) []line {
	var out []line
	number := n.Start
	for item := n.FirstChild(); item != nil; item = item.NextSibling() {
		mark := "• "
		if n.IsOrdered() {
			mark = fmt.Sprintf("%d. ", number)
			number++
		}
		outer := d.tight
		d.tight = n.IsTight
		next := d.blocks(item, width-ansi.StringWidth(mark))
		d.tight = outer
		if !n.IsTight && len(out) > 0 {
			out = append(out, nil)
		}
		out = append(out, prefixLines(next, line{{mark, faint}}, line{{strings.Repeat(" ", ansi.StringWidth(mark)), normal}})...)
	}
	return out
}

// prefixLines prefixes the first line with first and all other lines with
// others.
func prefixLines(lines []line, first, others line) []line {
	out := make([]line, 0, len(lines))
	for i, l := range lines {
		before := others
		if i == 0 {
			before = first
		}
		out = append(out, append(append(line{}, before...), l...))
	}
	if len(out) == 0 {
		out = append(out, first)
	}
	return out
}

// inline renders n's inline children as one line in style st.
func (d *document) inline(n ast.Node, st style) line {
	var out line
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		switch c := c.(type) {
		case *ast.Text:
			out = append(out, span{unescapeText(c.Segment.Value(d.source)), st})
			if c.HardLineBreak() {
				out = append(out, span{"\n", normal})
			} else if c.SoftLineBreak() {
				out = append(out, span{" ", st})
			}
		case *ast.String:
			out = append(out, span{string(c.Value), st})
		case *ast.CodeSpan:
			out = append(out, d.codeSpan(c, st.combine(cyan)))
		case *ast.Emphasis:
			how := italic
			if c.Level > 1 {
				how = bold
			}
			out = append(out, d.inline(c, st.combine(how))...)
		case *ast.Link:
			out = append(out, d.appendTarget(d.inline(c, st.combine(cyan)), string(c.Destination))...)
		case *ast.Image:
			out = append(out, d.appendTarget(d.inline(c, st.combine(italic)), string(c.Destination))...)
		case *ast.AutoLink:
			out = append(out, span{string(c.Label(d.source)), st.combine(cyan)})
		default:
			out = append(out, d.inline(c, st)...)
		}
	}
	return out
}

// appendTarget appends a link's URL to its label, because users must see the
// URL before they follow the link.
func (d *document) appendTarget(label line, to string) line {
	if to == "" || label.plainText() == to {
		return label
	}
	return append(label, span{" (" + Plain(to) + ")", faint})
}

// unescapeText replaces backslash escapes and entities, which could hide
// control characters.
func unescapeText(b []byte) string {
	return expandTabs(Safe(string(util.ResolveEntityNames(util.ResolveNumericReferences(util.UnescapePunctuations(b))))))
}

// codeSpan renders inline code without changes.
func (d *document) codeSpan(n ast.Node, st style) span {
	var b strings.Builder
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		if t, ok := c.(*ast.Text); ok {
			b.WriteString(strings.ReplaceAll(string(t.Segment.Value(d.source)), "\n", " "))
		}
	}
	return span{b.String(), st}
}

// Render renders Markdown for a terminal in lines of up to width columns; 0
// means unlimited. If plain is true, it uses neither colors nor bold text.
func Render(source string, width int, plain bool) string {
	if width <= 0 {
		width = maxText
	}
	return strings.Join(palette{plain}.paintAll(markdown(source, width)), "\n") + "\n"
}
