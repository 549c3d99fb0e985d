package skill

import (
	"bytes"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/loadout-dev/loadout/internal/tokencount"
)

// parser holds the state of parsing a SKILL.md.
type parser struct {
	src    []byte
	whole  bool // whether src is the whole file
	folder string
	lay    layout
	ds     Diagnostics
}

func (p *parser) fileName(file string) {
	if file == FileName || file == "" {
		return
	}
	d := Diagnostic{Severity: Warning, Code: "file-name", Message: fmt.Sprintf("the file is named %s, not %s", file, FileName),
		Fix: "rename it to " + FileName}
	if file != lowerFileName {
		d.Message, d.Rule = "Missing required file: SKILL.md ("+d.Message+")", 3
	}
	p.ds.add(d)
}

// parse parses the frontmatter. It returns nil if there is none.
func (p *parser) parse() *Skill {
	p.lay = findLayout(p.src, p.whole, &p.ds)
	reference, same := p.referenceBlock()
	var s *Skill
	if p.ds.Loads() {
		s = p.frontmatter()
	}
	if !same {
		p.strictVerdict(reference)
	}
	return s
}

func (p *parser) frontmatter() *Skill {
	block := p.src[p.lay.front:p.lay.end]
	checkBlock(block, p.lay.line, &p.ds)
	if !p.ds.Loads() {
		return nil
	}
	p.checkLineEndings(block)
	root, repaired := fastTree(block), false
	if root == nil {
		root, repaired = p.tree(block)
	}
	if !p.ds.Loads() {
		return nil
	}
	s := p.fields(block, root)
	if s != nil {
		s.Frontmatter = block
		s.Repaired = repaired
	}
	return s
}

// fields decodes the parsed block and checks its fields.
func (p *parser) fields(block []byte, root *yaml.Node) *Skill {
	check := dialect{ds: &p.ds, line: p.lay.line}
	check.check(block, root)
	if root == nil || root.Kind != yaml.MappingNode {
		p.ds.add(Diagnostic{Error, "frontmatter-not-a-mapping", p.lay.line, 1, "SKILL.md frontmatter must be a YAML mapping",
			"write it as lines of the form field: value", 7})
		return nil
	}
	d := decoder{ds: &p.ds, line: p.lay.line, folder: p.folder}
	return d.skill(root)
}

const msgInvalidYAML = "Invalid YAML in frontmatter: "

// tree parses the block. If that fails, it repairs the block and tries again.
func (p *parser) tree(block []byte) (root *yaml.Node, repaired bool) {
	root, err := parseYAML(block)
	if err == nil {
		return root, false
	}
	if err.tooLarge {
		p.ds.add(Diagnostic{Error, "yaml-too-large", p.lay.line, 1, msgInvalidYAML + err.msg, "write the values out, with less nesting", 6})
		return nil, false
	}
	if fixed, where := repair(block); fixed != nil {
		if root, again := parseYAML(fixed); again == nil {
			p.ds.add(Diagnostic{Warning, "yaml-repaired", p.lay.line + where.line - 1, where.column,
				fmt.Sprintf("%s%s; read as if the value of %s were quoted", msgInvalidYAML, err.msg, where.name),
				"put the value of " + where.name + " in quotes", 6})
			return root, true
		}
	}
	p.ds.add(Diagnostic{Error, "yaml-invalid", p.lay.line + max(err.line, 1) - 1, max(err.column, 1), msgInvalidYAML + err.msg, yamlFix(err), 6})
	return nil, false
}

// checkLineEndings reports carriage returns, because a checkout that converts them
// changes the file's digest.
func (p *parser) checkLineEndings(block []byte) {
	cr := bytes.Count(block, []byte("\r\n"))
	switch {
	case cr == 0:
	case cr == bytes.Count(block, []byte("\n")):
		p.ds.add(Diagnostic{Info, "line-endings-crlf", p.lay.line, 1, "lines end with CR LF", "end lines with LF, so that a checkout on another system keeps the digest", 0})
	default:
		p.ds.add(Diagnostic{Warning, "line-endings-mixed", p.lay.line, 1, "some lines end with CR LF and some with LF", "end all lines with LF", 0})
	}
}

// body checks the instructions. The whole file must have been read.
func (p *parser) body(s *Skill) {
	line := 1 + bytes.Count(p.src[:p.lay.body], []byte("\n"))
	text := s.Instructions
	if strings.TrimSpace(text) == "" {
		p.ds.add(Diagnostic{Warning, "body-empty", line, 1, "there are no instructions after the frontmatter", "write what to do when the skill is loaded", 0})
		return
	}
	if i := strings.IndexByte(text, 0); i >= 0 {
		l, c := position(p.src, p.lay.body+i)
		p.ds.add(Diagnostic{Warning, "body-nul-byte", l, c, "the instructions contain a NUL byte", "delete it", 0})
	}
	if at := invalidUTF8(text); at >= 0 {
		l, c := position(p.src, p.lay.body+at)
		p.ds.add(Diagnostic{Warning, "body-not-utf-8", l, c, "the instructions contain a byte that is not UTF-8", "save the file as UTF-8", 6})
	}
	if n := tokencount.Estimate(text); n > 5000 {
		p.ds.add(Diagnostic{Warning, "body-tokens", line, 1, fmt.Sprintf("the instructions have about %d tokens, more than 5000", n),
			"move the parts that are not always needed into files under references/", 0})
	}
	if n := strings.Count(text, "\n"); n > 500 {
		p.ds.add(Diagnostic{Warning, "body-lines", line, 1, fmt.Sprintf("the instructions have %d lines, more than 500", n),
			"move the parts that are not always needed into files under references/", 0})
	}
	if n := tokencount.Estimate("- " + s.Name + ": " + s.Description); n > 100 {
		p.ds.add(Diagnostic{Warning, "catalog-line-tokens", p.lay.line, 1, fmt.Sprintf("name and description have about %d tokens, more than 100; every agent pays for them in every conversation", n),
			"shorten the description to the text that says when to use the skill", 0})
	}
}
