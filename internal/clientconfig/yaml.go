package clientconfig

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v4"

	"github.com/loadout-dev/loadout/internal/lazyregexp"
)

// yamlDoc is a YAML document. The parser provides the line of each key, and
// edits replace whole lines, because YAML encoders do not preserve layout.
// Documents that do not have one key per line are rejected.
type yamlDoc struct {
	src   []byte
	key   string
	lines []int // offset of each line; the first is after a byte order mark
	root  *yaml.Node
	// container is the index of the key's value in root.Content, or -1.
	container int
	all       map[string]any
}

var _ document = (*yamlDoc)(nil)

// maxYAMLNodes is the maximum number of decoded nodes, with expanded aliases.
const maxYAMLNodes = 100_000

func parseYAML(src []byte, key string) (*yamlDoc, error) {
	d := &yamlDoc{src: src, key: key, container: -1, all: map[string]any{}}
	n := bomLen(src)
	// Lines must be the same for the parser and for edits.
	if i := strings.IndexFunc(strings.ReplaceAll(string(src), "\r\n", "\n\n"), func(r rune) bool {
		return r == '\r' || r == 0x85 || r == 0x2028 || r == 0x2029
	}); i >= 0 {
		return nil, &refusal{i, "unusual line ending", "replace it"}
	}
	d.lines = []int{n}
	for i, b := range src {
		if b == '\n' && i+1 < len(src) && i >= n {
			d.lines = append(d.lines, i+1)
		}
	}
	if err := d.parse(); err != nil {
		return nil, err
	}
	return d, nil
}

func (d *yamlDoc) parse() error {
	l, err := yaml.NewLoader(bytes.NewReader(d.src[bomLen(d.src):]))
	if err != nil {
		return d.convertError(err)
	}
	var doc, more yaml.Node
	switch err := l.Load(&doc); {
	case errors.Is(err, io.EOF), err != nil && strings.HasSuffix(err.Error(), "no documents in stream"):
		return nil
	case err != nil:
		return d.convertError(err)
	}
	if err := l.Load(&more); err == nil || !errors.Is(err, io.EOF) {
		return &refusal{-1, "the file contains several YAML documents", fixByHand}
	}
	if len(doc.Content) == 0 || doc.Content[0].ShortTag() == "!!null" && doc.Content[0].Value == "" {
		return nil
	}
	if d.root = doc.Content[0]; d.root.Kind != yaml.MappingNode {
		return d.refuse(d.root, "the file does not contain a YAML mapping", "move it away")
	}
	budget := maxYAMLNodes
	v, err := d.decodeNode(d.root, 0, &budget)
	if err != nil {
		return err
	}
	d.all = v.(map[string]any)
	if d.container, err = d.find(d.root, d.key); err != nil || d.container < 0 {
		return err
	}
	switch c := d.root.Content[d.container]; {
	case isNullNode(c):
		delete(d.all, d.key)
	case c.Kind != yaml.MappingNode:
		return d.refuse(c, d.key+" is not a mapping", "replace it with {} or delete it")
	}
	return nil
}

// convertError converts a parser's error to a refusal. It drops the error text,
// which may quote the file.
func (d *yamlDoc) convertError(err error) error {
	r := &refusal{-1, "invalid YAML", fixSyntax}
	if le, ok := errors.AsType[*yaml.LoadError](err); ok && le.Mark.Line > 0 {
		r.offset = d.offset(le.Mark.Line, le.Mark.Column)
	}
	return r
}

func (d *yamlDoc) refuse(n *yaml.Node, problem, fix string) error {
	return &refusal{d.offset(n.Line, n.Column), problem, fix}
}

// offset returns the offset of a 1-based line and column. It counts columns in
// bytes, which is exact for keys.
func (d *yamlDoc) offset(line, column int) int {
	if line < 1 || line > len(d.lines) {
		return len(d.src)
	}
	return min(d.lines[line-1]+max(column-1, 0), len(d.src))
}

// line returns a line with its line ending, by its 0-based index.
func (d *yamlDoc) line(i int) []byte {
	if i+1 < len(d.lines) {
		return d.src[d.lines[i]:d.lines[i+1]]
	}
	return d.src[d.lines[i]:]
}

// start returns the offset of the line with the given 0-based index, or the
// length of the file.
func (d *yamlDoc) start(i int) int {
	if i < len(d.lines) {
		return d.lines[i]
	}
	return len(d.src)
}

func isNullNode(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" }

// yamlScalar is a scalar that is neither a string nor a boolean.
type yamlScalar struct{ tag, text string }

func (d *yamlDoc) decodeNode(n *yaml.Node, depth int, budget *int) (any, error) {
	if *budget--; *budget < 0 || depth > maxParts {
		return nil, d.refuse(n, "nesting too deep, or too many values", fixByHand)
	}
	switch n.Kind {
	case yaml.AliasNode:
		return d.decodeNode(n.Alias, depth+1, budget)
	case yaml.MappingNode:
		m := make(map[string]any, len(n.Content)/2)
		for i := 0; i+1 < len(n.Content); i += 2 {
			v, err := d.decodeNode(n.Content[i+1], depth+1, budget)
			if err != nil {
				return nil, err
			}
			m[keyText(n.Content[i])] = v
		}
		return m, nil
	case yaml.SequenceNode:
		list := make([]any, 0, len(n.Content))
		for _, c := range n.Content {
			v, err := d.decodeNode(c, depth+1, budget)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		return list, nil
	}
	switch tag := n.ShortTag(); tag {
	case "!!str":
		return n.Value, nil
	case "!!bool":
		return strings.EqualFold(n.Value, "true"), nil
	default:
		return yamlScalar{tag, n.Value}, nil
	}
}

// keyText returns the text of a key. Keys that are not strings do not equal
// any name.
func keyText(n *yaml.Node) string {
	if n.Kind == yaml.ScalarNode && n.ShortTag() == "!!str" {
		return n.Value
	}
	return fmt.Sprintf("\x00%s %s %d:%d", n.ShortTag(), n.Value, n.Line, n.Column)
}

// find returns the index of a value in a mapping's content, or -1.
func (d *yamlDoc) find(m *yaml.Node, name string) (int, error) {
	found := -1
	for i := 0; i+1 < len(m.Content); i += 2 {
		if keyText(m.Content[i]) != name {
			continue
		}
		if found >= 0 {
			return -1, d.refuse(m.Content[i], name+" is duplicated", "delete one of them")
		}
		found = i + 1
	}
	return found, nil
}

// entries returns the mapping of the entries, or nil if there is none.
func (d *yamlDoc) entries() *yaml.Node {
	if d.container < 0 || isNullNode(d.root.Content[d.container]) {
		return nil
	}
	return d.root.Content[d.container]
}

func (d *yamlDoc) entry(name string) (any, bool, error) {
	m := d.entries()
	if m == nil {
		return nil, false, nil
	}
	i, err := d.find(m, name)
	if err != nil || i < 0 {
		return nil, false, err
	}
	v, there := d.all[d.key].(map[string]any)[name]
	return v, there, nil
}

func (d *yamlDoc) hasContainer() bool { return d.container >= 0 }

func (d *yamlDoc) isEmpty() bool { return isBlank(d.src[bomLen(d.src):]) }

func (d *yamlDoc) decoded() map[string]any {
	budget := maxYAMLNodes
	if d.root == nil {
		return map[string]any{}
	}
	v, _ := d.decodeNode(d.root, 0, &budget) // cannot fail, because parse decoded it
	m := v.(map[string]any)
	if d.container >= 0 && isNullNode(d.root.Content[d.container]) {
		delete(m, d.key)
	}
	return m
}

func (d *yamlDoc) setEntry(name string, o object) (edit, error) {
	nl := lineEnding(d.src)
	if d.root != nil && d.root.Style&yaml.FlowStyle != 0 {
		return nil, d.refuse(d.root, "the file is written as one flow mapping, which cannot be edited", "write one key per line")
	}
	if d.container < 0 {
		return edit{insertAt(len(d.src), d.lineBreak(nl)+d.key+":"+nl+formatYAML(name, o, "  ", nl))}, nil
	}
	m := d.entries()
	value := d.root.Content[d.container]
	if m == nil || len(m.Content) == 0 {
		return d.fillContainer(value, name, o, nl)
	}
	if m.Style&yaml.FlowStyle != 0 || value.Kind == yaml.AliasNode || m.Anchor != "" {
		return nil, d.refuse(value, d.key+" is not written as one key per line, which cannot be edited", fixByHand)
	}
	indent := d.indent(m.Content[0])
	i, err := d.find(m, name)
	if err != nil {
		return nil, err
	}
	if i >= 0 {
		s := d.region(m, i)
		return edit{{s, formatYAML(name, o, indent, nl)}}, nil
	}
	end := d.region(m, len(m.Content)-1).end
	text := formatYAML(name, o, indent, nl)
	if end == len(d.src) {
		text = d.lineBreak(nl) + text
	}
	return edit{insertAt(end, text)}, nil
}

// lineBreak returns nl, or "" if the file is empty or ends with a line break.
func (d *yamlDoc) lineBreak(nl string) string {
	if body := d.src[bomLen(d.src):]; len(body) > 0 && body[len(body)-1] != '\n' {
		return nl
	}
	return ""
}

// fillContainer returns the edit that replaces an empty container.
func (d *yamlDoc) fillContainer(value *yaml.Node, name string, o object, nl string) (edit, error) {
	key := d.root.Content[d.container-1]
	indent := key.Column + 1
	text := formatYAML(name, o, strings.Repeat(" ", indent), nl)
	line := d.line(key.Line - 1)
	at := bytes.IndexByte(line, ':') + 1
	rest := line[at:]
	if value.Anchor != "" || value.Line != key.Line && !isNullNode(value) || at == 0 {
		return nil, d.refuse(value, d.key+" cannot be edited", "delete it if it is empty")
	}
	body := bytes.TrimRight(rest, "\r\n")
	offset := d.lines[key.Line-1] + at
	// Comments that are indented more than the entry would become part of it.
	last := key.Line
	for i := last; i < len(d.lines); i++ {
		t := bytes.TrimSpace(d.line(i))
		if len(t) > 0 && t[0] != '#' {
			break
		}
		if len(t) > 0 && bytes.IndexByte(d.line(i), '#') > indent {
			last = i + 1
		}
	}
	end := d.start(last)
	if end == len(d.src) {
		text = d.lineBreak(nl) + text
	}
	if empty := bytes.TrimSpace(body); len(empty) > 0 && empty[0] != '#' {
		i := bytes.IndexByte(body, '}')
		if !emptyFlow.Match(body) {
			return nil, d.refuse(value, d.key+" cannot be edited", "delete it if it is empty")
		}
		return edit{cutSpan(offset, offset+i+1), insertAt(end, text)}, nil
	}
	return edit{insertAt(end, text)}, nil
}

var emptyFlow = lazyregexp.New(`^[ \t]*\{[ \t]*\}[ \t]*(#.*)?$`)

// indent returns the white space before a key.
func (d *yamlDoc) indent(key *yaml.Node) string { return strings.Repeat(" ", key.Column-1) }

// region returns the lines of an entry, starting with its key. It excludes the
// blank lines after the entry, and comments that are not indented more than the
// key. i is the index of the entry's value in m.
func (d *yamlDoc) region(m *yaml.Node, i int) span {
	first := m.Content[i-1].Line - 1
	var next int // index of the line after the entry
	switch {
	case i+1 < len(m.Content):
		next = m.Content[i+1].Line - 1
	case d.container+1 < len(d.root.Content):
		next = d.root.Content[d.container+1].Line - 1
	default:
		for next = first + 1; next < len(d.lines) && !isDocumentEnd(d.line(next)); {
			next++
		}
	}
	for next > first+1 {
		line := d.line(next - 1)
		t := bytes.TrimSpace(line)
		if len(t) > 0 && (t[0] != '#' || bytes.IndexByte(line, '#') >= m.Content[i-1].Column) {
			break
		}
		next--
	}
	return span{d.lines[first], d.start(next)}
}

// isDocumentEnd reports whether a line is a marker that ends a YAML document.
func isDocumentEnd(line []byte) bool {
	rest, ok := bytes.CutPrefix(line, []byte("..."))
	return ok && (len(rest) == 0 || strings.ContainsRune(" \t\r\n", rune(rest[0])))
}

func (d *yamlDoc) removeEntry(name string, container bool) (edit, error) {
	m := d.entries()
	if m == nil {
		return nil, &refusal{-1, "entry not found", fixByHand}
	}
	i, err := d.find(m, name)
	if err != nil {
		return nil, err
	}
	if m.Style&yaml.FlowStyle != 0 || m.Anchor != "" {
		return nil, d.refuse(m, d.key+" is not written as one key per line, which cannot be edited", fixByHand)
	}
	s := d.region(m, i)
	if len(m.Content) > 2 {
		return edit{{s, ""}}, nil
	}
	key := d.root.Content[d.container-1]
	if line := d.line(key.Line - 1); container && key.Line+1 == m.Content[0].Line && isBlank(line[bytes.IndexByte(line, ':')+1:]) {
		return edit{cutSpan(d.lines[key.Line-1], s.end)}, nil
	}
	line := d.line(key.Line - 1)
	at := d.lines[key.Line-1] + bytes.IndexByte(line, ':') + 1
	return edit{insertAt(at, " {}"), {s, ""}}, nil
}

// formatYAML formats an entry as a block mapping.
func formatYAML(name string, o object, indent, nl string) string {
	var b strings.Builder
	b.WriteString(indent + quoteYAML(name) + ":" + nl)
	for _, f := range o {
		b.WriteString(indent + "  " + quoteYAML(f.key) + ": ")
		switch v := f.value.(type) {
		case string:
			b.WriteString(quoteYAML(v))
		case bool:
			fmt.Fprint(&b, v)
		case []string:
			var items []string
			for _, s := range v {
				items = append(items, doubleQuoteYAML(s))
			}
			b.WriteString("[" + strings.Join(items, ", ") + "]")
		}
		b.WriteString(nl)
	}
	return b.String()
}

var (
	plainYAML   = lazyregexp.New(`^[A-Za-z][A-Za-z0-9_-]*$`)
	keywordYAML = lazyregexp.New(`(?i)^(y|yes|n|no|true|false|on|off|null)$`)
)

// quoteYAML formats a string as a plain scalar if it cannot be misread, and in
// double quotes otherwise.
func quoteYAML(s string) string {
	if plainYAML.MatchString(s) && !keywordYAML.MatchString(s) {
		return s
	}
	return doubleQuoteYAML(s)
}

func doubleQuoteYAML(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteString(`\` + string(r))
		case r > 0xffff && !unicode.IsPrint(r):
			fmt.Fprintf(&b, `\U%08X`, r)
		case r != ' ' && !unicode.IsPrint(r):
			fmt.Fprintf(&b, `\u%04X`, r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String() + `"`
}

// marks returns marks that mask each line except for its first key, because the
// parser does not provide the ends of values.
func (d *yamlDoc) marks(name string) []mark {
	keys := map[int]yamlKey{}
	d.collectKeys(d.root, 0, keys)
	var own span
	if m := d.entries(); m != nil {
		if i, err := d.find(m, name); err == nil && i >= 0 {
			own = d.region(m, i)
			for j := 0; j+1 < len(m.Content[i].Content); j += 2 {
				k, v := m.Content[i].Content[j], m.Content[i].Content[j+1]
				if key, ok := keys[k.Line-1]; ok && v.Kind == yaml.ScalarNode && v.Line == k.Line {
					key.member, key.value = k.Value, v.Value
					keys[k.Line-1] = key
				}
			}
		}
	}
	var marks []mark
	for i := range d.lines {
		line := bytes.TrimRight(d.line(i), "\r\n")
		start := len(line) - len(bytes.TrimLeft(line, " "))
		key, ok := keys[i]
		if ok {
			start = key.end
			start += len(line[start:]) - len(bytes.TrimLeft(line[start:], " "))
		}
		if start >= len(line) {
			continue
		}
		m := mark{span: span{d.lines[i] + start, d.lines[i] + len(line)}, kind: markScalar, nth: -1}
		m.in = m.start >= own.start && m.end <= own.end && own.end > 0
		if line[start] == '#' {
			m.kind = markComment
		}
		if m.in && key.member != "" {
			m.kind, m.key, m.text = markString, key.member, key.value
		}
		marks = append(marks, m)
	}
	return marks
}

// yamlKey is the first key on a line.
type yamlKey struct {
	end           int    // end of the key and its colon in the line
	member, value string // set in the entry
}

// collectKeys finds the keys that are written on one line without escapes.
func (d *yamlDoc) collectKeys(n *yaml.Node, depth int, keys map[int]yamlKey) {
	if n == nil || depth > maxParts || n.Style&yaml.FlowStyle != 0 {
		return
	}
	for i, c := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 0 && c.Kind == yaml.ScalarNode && c.Line >= 1 && c.Line <= len(d.lines) {
			line := d.line(c.Line - 1)
			for _, text := range []string{c.Value, `"` + c.Value + `"`, "'" + c.Value + "'"} {
				at := c.Column - 1
				if _, taken := keys[c.Line-1]; !taken && at >= 0 && at <= len(line) && bytes.HasPrefix(line[at:], []byte(text+":")) {
					keys[c.Line-1] = yamlKey{end: at + len(text) + 1}
				}
			}
			continue
		}
		d.collectKeys(c, depth+1, keys)
	}
}
