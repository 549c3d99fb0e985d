package skill

import (
	"bytes"
	"slices"

	"go.yaml.in/yaml/v4"
)

// The reference validator reads frontmatter in its own way: it splits the
// file at the first two places that hold "---", inside a value or not, and
// reads what is between with a YAML dialect that has only block style and
// strings. This file reproduces its verdict; parse.go and fields.go hold the
// rules on fields, which both verdicts share.

// referenceBlock returns what the reference takes for the frontmatter, and
// whether that is what the parser reads, so that one pass serves both.
func (p *parser) referenceBlock() (block []byte, same bool) {
	rest, ok := bytes.CutPrefix(p.src, []byte("---"))
	if !ok {
		p.requireRule(4)
		return nil, true
	}
	block, _, ok = bytes.Cut(rest, []byte("---"))
	if !ok {
		p.requireRule(5)
		return nil, true
	}
	if p.lay.body == 0 {
		return block, false
	}
	return block, bytes.Equal(bytes.TrimSpace(block), bytes.TrimSpace(p.src[p.lay.front:p.lay.end]))
}

// requireRule makes sure that a broken rule 4 or 5 is among the findings.
func (p *parser) requireRule(rule int) {
	for i, d := range p.ds {
		if d.Rule == rule {
			return
		}
		if d.Code == "frontmatter-fence" || d.Rule == 6 && rule == 5 {
			p.ds[i].Rule = rule
			return
		}
	}
	if rule == 5 {
		p.ds.add(Diagnostic{Error, "frontmatter-unclosed", 1, 1, "SKILL.md frontmatter not properly closed with ---", "add a line --- after the last field", 5})
	}
}

// strictVerdict replaces the rules broken by what the parser read with those
// broken by what the reference reads.
func (p *parser) strictVerdict(block []byte) {
	for i := range p.ds {
		if p.ds[i].Code != "file-name" {
			p.ds[i].Rule = 0
		}
	}
	q := parser{src: p.src, folder: p.folder, lay: layout{line: 1}}
	checkBlock(block, 1, &q.ds)
	if q.ds.Loads() {
		q.referenceFields(block)
	}
	const cut = "; the reference validator ends the frontmatter at the first ---, here inside a line"
	for _, d := range q.ds {
		if d.Rule == 0 {
			continue
		}
		if i := slices.IndexFunc(p.ds, func(e Diagnostic) bool { return e.Code == d.Code }); i >= 0 {
			p.ds[i].Rule = d.Rule
			continue
		}
		d.Severity, d.Message = Info, d.Message+cut
		d.Fix = "write no --- inside the frontmatter"
		p.ds.add(d)
	}
}

// referenceFields applies the rules to the block that the reference reads.
func (p *parser) referenceFields(block []byte) {
	root, err := parseYAML(block)
	switch {
	case err != nil:
		p.ds.add(Diagnostic{Severity: Error, Code: "yaml-invalid", Line: max(err.line, 1), Column: 1, Message: "Invalid YAML in frontmatter: " + err.msg, Rule: 6})
	case root == nil || root.Kind != yaml.MappingNode:
		p.ds.add(Diagnostic{Severity: Error, Code: "frontmatter-not-a-mapping", Line: 1, Column: 1, Message: "SKILL.md frontmatter must be a YAML mapping", Rule: 7})
	default:
		p.strictYAML(root)
		d := decoder{ds: &p.ds, line: 1, folder: p.folder}
		d.skill(root)
	}
}

// strictYAML notes the first thing that YAML allows and the reference's
// dialect does not: flow collections, anchors, aliases, tags, and sibling
// maps that are indented differently. Duplicate keys are found by decoder.
func (p *parser) strictYAML(root *yaml.Node) {
	nodes := 0
	var visit func(n *yaml.Node, depth int) bool
	report := func(n *yaml.Node, code, what, fix string) bool {
		p.ds.add(Diagnostic{Info, code, p.lay.line + n.Line - 1, n.Column, "Invalid YAML in frontmatter: " + what, fix, 6})
		return false
	}
	visit = func(n *yaml.Node, depth int) bool {
		if nodes++; nodes > maxNodes || depth > maxDepth {
			return report(n, "yaml-too-deep", "it nests too deep", "write it flatter")
		}
		switch {
		case n.Kind == yaml.AliasNode:
			return report(n, "yaml-alias", "an alias (*name), which the reference validator does not allow", "write the value out")
		case n.Anchor != "":
			return report(n, "yaml-anchor", "an anchor (&name), which the reference validator does not allow", "put the value in quotes, or write it without &")
		case n.Style&yaml.TaggedStyle != 0:
			return report(n, "yaml-tag", "a tag (!name), which the reference validator does not allow", "put the value in quotes, or write it without !")
		case n.Style&yaml.FlowStyle != 0 && n.Kind != yaml.ScalarNode:
			return report(n, "yaml-flow", "a collection in brackets or braces, which the reference validator does not allow", "write it as indented lines")
		}
		column := 0
		for i, c := range n.Content {
			if n.Kind == yaml.MappingNode && i%2 == 1 && c.Kind == yaml.MappingNode {
				if column == 0 {
					column = c.Column
				}
				if c.Column != column && c.Style&yaml.FlowStyle == 0 {
					return report(c, "yaml-indentation", "maps beside each other are indented differently", "indent them alike")
				}
			}
			if !visit(c, depth+1) {
				return false
			}
		}
		return true
	}
	visit(root, 0)
}
