package skill

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
)

// The reference validator parses frontmatter differently. It splits the file at
// the first two occurrences of "---", even inside a value. It parses the text
// between them as a YAML dialect that has only block style and strings. This
// file reproduces its verdict. The field rules, which both verdicts share, are
// in parse.go and fields.go.

// referenceBlock returns the text that the reference validator treats as the
// frontmatter. same reports whether the parser has read the same text, so that
// it need not be parsed again.
func (p *parser) referenceBlock() (block []byte, same bool) {
	rest, ok := bytes.CutPrefix(p.src, []byte("---"))
	if !ok {
		return nil, true // rule 4, which findLayout has reported
	}
	block, _, ok = bytes.Cut(rest, []byte("---"))
	if !ok {
		p.useRule5()
		return nil, true
	}
	first := p.src[:p.lay.front]
	same = p.lay.end == 3+len(block) && p.lay.body > 0 && bytes.IndexByte(first, '\t') < 0 &&
		!bytes.HasPrefix(p.src[p.lay.front:], []byte("\xef\xbb\xbf"))
	return block, same
}

// useRule5 assigns rule 5 to the errors that findLayout reported.
func (p *parser) useRule5() {
	for i, d := range p.ds {
		if d.Severity == Error && d.Rule != 5 {
			what := strings.TrimPrefix(strings.TrimPrefix(d.Message, msgNoFrontmatter+": "), msgInvalidYAML)
			p.ds[i].Rule, p.ds[i].Message = 5, msgUnclosed+": "+what
		}
	}
}

// strictVerdict replaces the rule violations in the parsed block with those in
// the block that the reference validator reads.
func (p *parser) strictVerdict(block []byte) {
	for i := range p.ds {
		if p.ds[i].Code != "file-name" {
			p.ds[i].Rule = 0
		}
	}
	q := parser{src: p.src, folder: p.folder, lay: layout{line: 1}}
	if checkBlock(block, 1, &q.ds); q.ds.Loads() {
		if root, err := parseYAML(block); err != nil {
			q.ds.add(Diagnostic{Code: "yaml-invalid", Line: max(err.line, 1), Column: 1, Message: msgInvalidYAML + err.msg, Rule: 6})
		} else {
			q.fields(block, root)
		}
	}
	for _, d := range q.ds {
		if d.Rule == 0 {
			continue
		}
		if i := slices.IndexFunc(p.ds, func(e Diagnostic) bool { return e.Code == d.Code }); i >= 0 {
			p.ds[i].Rule = d.Rule
			continue
		}
		d.Severity = Info
		d.Message += "; the reference validator reads only the text between the first two ---, wherever they are"
		d.Fix = "write --- only on the lines around the frontmatter"
		p.ds.add(d)
	}
}

// dialect reports YAML constructs that the reference validator's dialect does
// not support.
type dialect struct {
	ds    *Diagnostics
	line  int  // file line of the block's first line
	found bool // whether a construct was reported; one is enough, except for duplicate keys
	dups  int
}

// maxDuplicates is the maximum number of repeated keys reported.
const maxDuplicates = 20

func (d *dialect) check(block []byte, root *yaml.Node) {
	if bytes.HasPrefix(bytes.TrimSpace(block), []byte("...")) {
		d.report(1, 1, "yaml-document-end", "a line of dots before the first field", "delete that line")
	}
	if root != nil {
		d.tree(root)
	}
	if !d.found && bytes.IndexByte(block, '\t') >= 0 {
		d.checkTabs(block)
	}
}

func (d *dialect) report(line, column int, code, what, fix string) {
	if !d.found {
		d.found = true
		d.ds.add(Diagnostic{Info, code, d.line + line - 1, column, msgInvalidYAML + what + ", which the reference validator does not allow", fix, 6})
	}
}

// tree reports unsupported constructs in n and its descendants.
func (d *dialect) tree(n *yaml.Node) {
	switch {
	case n.Kind == yaml.AliasNode:
		d.report(n.Line, n.Column, "yaml-alias", "an alias (*name)", "write the value out")
	case n.Anchor != "":
		d.report(n.Line, n.Column, "yaml-anchor", "an anchor (&name)", "put the value in quotes, or write it without &")
	case n.Style&yaml.TaggedStyle != 0, n.Tag == "!":
		d.report(n.Line, n.Column, "yaml-tag", "a tag (!name)", "put the value in quotes, or write it without !")
	case n.Style&yaml.FlowStyle != 0 && n.Kind != yaml.ScalarNode:
		d.report(n.Line, n.Column, "yaml-flow", "a collection in brackets or braces", "write it as indented lines")
	case n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0 && hasBreaks(n.Value):
		d.report(n.Line, n.Column, "yaml-line-separator", "a Unicode line separator in lines of text", "delete it")
	}
	if n.Kind == yaml.MappingNode {
		d.keys(n)
		d.checkIndentation(n)
	}
	for _, c := range n.Content {
		d.tree(c)
	}
}

func (d *dialect) keys(n *yaml.Node) {
	seen := make(map[string]bool, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		switch {
		case key.Kind != yaml.ScalarNode:
			if key.Kind != yaml.AliasNode {
				d.report(key.Line, key.Column, "yaml-key", "a key that is not a string", "write the key as a string")
			}
			continue
		case isPlain(key) && key.Value == "<<":
			d.report(key.Line, key.Column, "yaml-merge", "a merge key (<<)", "write the fields out")
		case len(key.Value) > 1024 && utf8.RuneCountInString(key.Value) > 1024:
			d.report(key.Line, key.Column, "yaml-long-key", "a key of more than 1024 characters", "shorten it")
		}
		if seen[key.Value] && d.dups < maxDuplicates {
			d.dups++
			d.ds.add(Diagnostic{Warning, "duplicate-key", d.line + key.Line - 1, key.Column,
				fmt.Sprintf("%sthe field %s is repeated; the last value counts", msgInvalidYAML, quote(key.Value)), "delete one of the two", 6})
		}
		seen[key.Value] = true
	}
}

// checkIndentation checks that all maps that are values of the same map have the
// same indentation.
func (d *dialect) checkIndentation(n *yaml.Node) {
	column := 0
	for i := 1; i < len(n.Content); i += 2 {
		c := n.Content[i]
		if c.Kind != yaml.MappingNode {
			continue
		}
		if column == 0 {
			column = c.Column
		}
		if c.Column != column {
			d.report(c.Line, c.Column, "yaml-indentation", "sibling maps with different indentation", "use the same indentation for them")
		}
	}
}

// checkTabs reports tabs outside quotes, block scalars and comments. It parses the
// block with each tab replaced by another character. Outside those contexts,
// that character either breaks the parse or becomes part of a plain scalar.
func (d *dialect) checkTabs(block []byte) {
	const stand = "\ufdd3"
	const code, what, fix = "yaml-tab", "a tab outside quotes", "write spaces instead of tabs"
	root, err := parseYAML(bytes.ReplaceAll(block, []byte("\t"), []byte(stand)))
	if err != nil {
		d.report(max(err.line, 1), max(err.column, 1), code, what, fix)
		return
	}
	var visit func(n *yaml.Node)
	visit = func(n *yaml.Node) {
		if n.Kind == yaml.ScalarNode && isPlain(n) && strings.Contains(n.Value, stand) {
			d.report(n.Line, n.Column, code, what, fix)
		}
		for _, c := range n.Content {
			visit(c)
		}
	}
	if root != nil {
		visit(root)
	}
}
