package skill

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
)

// fastTree parses the most common forms of frontmatter, because the YAML parser
// takes twice as long as reading the file. It supports fields with a plain or
// simply quoted value, folded and literal values with constant indentation, and
// one level of nested fields. It returns nil for everything else. A result that
// is not nil has the same nodes as that of parseYAML; a fuzz test compares
// them.
func fastTree(block []byte) *yaml.Node {
	if !bytes.HasSuffix(block, []byte("\n")) {
		return nil
	}
	f := fastReader{rest: string(block), line: 1}
	root := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Line: 1, Column: 1}
	for f.rest != "" {
		line := f.peek()
		if line == "" {
			return nil
		}
		key, value, column, ok := fastField(line)
		if !ok {
			return nil
		}
		keyNode := f.scalar(key, 1)
		f.next()
		var val *yaml.Node
		switch {
		case value == "":
			val = f.nested()
		case value == ">-" || value == "|" || value == ">" || value == "|-":
			val = f.blockScalar(value, column)
		default:
			f.line--
			val = f.value(value, column)
			f.line++
		}
		if val == nil || strings.HasPrefix(f.rest, " ") {
			return nil // no value, or a continuation line
		}
		root.Content = append(root.Content, keyNode, val)
	}
	if len(root.Content) == 0 {
		return nil
	}
	return root
}

type fastReader struct {
	rest string
	line int
}

// peek returns the next line without its line feed and does not advance.
func (f *fastReader) peek() string {
	if i := strings.IndexByte(f.rest, '\n'); i >= 0 {
		return f.rest[:i]
	}
	return f.rest
}

func (f *fastReader) next() {
	if i := strings.IndexByte(f.rest, '\n'); i >= 0 {
		f.rest = f.rest[i+1:]
	} else {
		f.rest = ""
	}
	f.line++
}

func (f *fastReader) scalar(v string, column int) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: v, Line: f.line, Column: column}
}

// fastField splits "key: value" if the key is a plain word.
func fastField(line string) (key, value string, column int, ok bool) {
	colon := strings.IndexByte(line, ':')
	if colon < 1 || colon > 64 {
		return "", "", 0, false
	}
	key, rest := line[:colon], line[colon+1:]
	for i := 0; i < len(key); i++ {
		c := key[i] | 0x20
		if (c < 'a' || c > 'z') && (i == 0 || key[i] != '-' && key[i] != '_' && (key[i] < '0' || key[i] > '9')) {
			return "", "", 0, false
		}
	}
	if coreKind(key) != "str" {
		return "", "", 0, false
	}
	value = strings.TrimLeft(rest, " ")
	if value != "" && len(value) == len(rest) {
		return "", "", 0, false // "a:b" is not a field
	}
	column = 1 + colon + 1 + len(rest) - len(value)
	return key, strings.TrimRight(value, " "), column, true
}

// value parses a scalar on the same line as its key. It returns nil if the
// scalar is not simple.
func (f *fastReader) value(v string, column int) *yaml.Node {
	n := f.scalar(v, column)
	switch c := v[0]; {
	case c == '"' && len(v) > 2 && v[len(v)-1] == '"':
		n.Value, n.Style = v[1:len(v)-1], yaml.DoubleQuotedStyle
		if strings.ContainsAny(n.Value, `"\`) || !isPrintable(n.Value) {
			return nil
		}
	case c == '\'' && len(v) > 2 && v[len(v)-1] == '\'':
		n.Value, n.Style = v[1:len(v)-1], yaml.SingleQuotedStyle
		if strings.IndexByte(n.Value, '\'') >= 0 || !isPrintable(n.Value) {
			return nil
		}
	case c|0x20 >= 'a' && c|0x20 <= 'z', c >= utf8.RuneSelf:
		if !isPlainScalar(v) {
			return nil
		}
	default:
		return nil
	}
	return n
}

// isPlainScalar reports whether v is certainly a plain string in YAML. v must
// start with a letter or a non-ASCII character. It must not contain indicators
// or be a word that YAML reads as another type.
func isPlainScalar(v string) bool {
	if !isPrintable(v) || v[len(v)-1] == ':' || strings.Contains(v, ": ") || strings.Contains(v, " #") {
		return false
	}
	if len(v) <= 5 { // null, true, yes and similar words
		switch strings.ToLower(v) {
		case "null", "true", "false", "yes", "no", "on", "off", "y", "n":
			return false
		}
	}
	return true
}

// isPrintable reports whether s contains only characters without a special
// meaning in YAML.
func isPrintable(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] >= utf8.RuneSelf {
			return printableUnicode(s[i:])
		}
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

func printableUnicode(s string) bool {
	for _, r := range s {
		switch {
		case r < ' ', '~' < r && r < 0xa0, r == 0x2028, r == 0x2029, r == 0xfeff, r >= 0xfffd && r <= 0xffff:
			return false // also rejects invalid UTF-8
		}
	}
	return true
}

// nested parses one level of nested fields with simple values.
func (f *fastReader) nested() *yaml.Node {
	var n *yaml.Node
	indent := 0
	for strings.HasPrefix(f.rest, " ") {
		line := f.peek()
		text := strings.TrimLeft(line, " ")
		if n == nil {
			indent = len(line) - len(text)
			n = &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Line: f.line, Column: indent + 1}
		}
		key, value, column, ok := fastField(text)
		if !ok || value == "" || len(line)-len(text) != indent {
			return nil
		}
		val := f.value(value, column+indent)
		if val == nil {
			return nil
		}
		n.Content = append(n.Content, f.scalar(key, indent+1), val)
		f.next()
	}
	return n
}

// blockScalar parses the lines of a folded or literal value. They must have the
// same indentation, and none may be blank.
func (f *fastReader) blockScalar(style string, column int) *yaml.Node {
	n := f.scalar("", column)
	n.Line--
	sep := "\n"
	n.Style = yaml.LiteralStyle
	if style[0] == '>' {
		n.Style, sep = yaml.FoldedStyle, " "
	}
	var text []string
	indent := 0
	for strings.HasPrefix(f.rest, " ") {
		line := f.peek()
		t := strings.TrimLeft(line, " ")
		if text == nil {
			indent = len(line) - len(t)
		}
		if t == "" || len(line)-len(t) != indent || !isPrintable(t) || t[len(t)-1] == ' ' {
			return nil
		}
		text = append(text, t)
		f.next()
	}
	if text == nil || strings.HasPrefix(f.rest, "\n") {
		return nil
	}
	n.Value = strings.Join(text, sep)
	if len(style) == 1 {
		n.Value += "\n"
	}
	return n
}
