// Package tree reads configuration that somebody else wrote, be it JSON with
// comments, YAML or TOML, into one kind of tree in which every value knows its
// place in the file. What it returns is bounded in size and depth, aliases
// expanded, so that it can be walked without care. It opens no file, knows no
// setting by name, and an error of it quotes no value.
package tree

import (
	"bytes"
	"fmt"
	"path"
	"strings"
	"unicode/utf8"
)

// Bounds on what is read.
const (
	MaxBytes = 1 << 20
	maxDepth = 64
	maxNodes = 100_000
	maxText  = 1 << 20 // bytes of scalars and keys, aliases expanded
)

// Format is a language of configuration.
type Format string

// The formats.
const (
	JSON Format = "JSON" // with comments and trailing commas
	YAML Format = "YAML"
	TOML Format = "TOML"
)

// FormatOf tells the format of a file by the extension of its name, else by
// how it begins.
func FormatOf(name string, data []byte) Format {
	switch strings.ToLower(path.Ext(name)) {
	case ".json", ".jsonc", ".json5":
		return JSON
	case ".yaml", ".yml":
		return YAML
	case ".toml":
		return TOML
	}
	data = bytes.TrimLeft(bytes.TrimPrefix(data, bom), " \t\r\n")
	for _, begin := range []string{"{", "[", "//", "/*"} {
		if bytes.HasPrefix(data, []byte(begin)) {
			return JSON
		}
	}
	return YAML
}

// Kind is what a node is.
type Kind string

// The kinds.
const (
	Null   Kind = "null"
	Bool   Kind = "boolean"
	Number Kind = "number"
	String Kind = "text"
	List   Kind = "list"
	Map    Kind = "map"
)

// Node is one value.
type Node struct {
	Kind Kind
	// Text is a scalar: a string without its quotes, a number as written, true
	// or false in lower case.
	Text   string
	Items  []*Node // of a list
	Fields []Field // of a map, in the order of the file; a key may come twice
	// Line and Column are 1-based, in lines and characters; 0 where unknown.
	Line, Column int
}

// Field is one entry of a map.
type Field struct {
	Key          string
	Line, Column int
	Value        *Node
}

// Get returns the value of a key, the last one where it comes twice, and nil
// where there is none or n is no map.
func (n *Node) Get(key string) *Node {
	if n == nil {
		return nil
	}
	for i := len(n.Fields) - 1; i >= 0; i-- {
		if n.Fields[i].Key == key {
			return n.Fields[i].Value
		}
	}
	return nil
}

// Unique returns the fields of a map with each key once, in the order of the
// file, and those that do not count because their key comes again later.
func (n *Node) Unique() (fields, passed []Field) {
	last := make(map[string]int, len(n.Fields))
	for i, f := range n.Fields {
		last[f.Key] = i
	}
	for i, f := range n.Fields {
		if last[f.Key] == i {
			fields = append(fields, f)
		} else {
			passed = append(passed, f)
		}
	}
	return fields, passed
}

// Scalar reports whether n is a value with a text: a string, number or boolean.
func (n *Node) Scalar() bool {
	return n != nil && (n.Kind == String || n.Kind == Number || n.Kind == Bool)
}

// Error is a file that cannot be read, and where.
type Error struct {
	Line, Column int // 0 where unknown
	Message      string
	TooLarge     bool // beyond the bounds, rather than wrong
}

// Error is the message with its place.
func (e *Error) Error() string {
	if e.Line == 0 {
		return e.Message
	}
	return fmt.Sprintf("%d:%d: %s", e.Line, max(e.Column, 1), e.Message)
}

var bom = []byte("\xef\xbb\xbf")

// Parse reads a file. JSON and TOML are one document, a file of YAML any
// number, empty ones left out. Those before an error are returned with it.
func Parse(data []byte, f Format) ([]*Node, *Error) {
	if len(data) > MaxBytes {
		return nil, &Error{TooLarge: true, Message: fmt.Sprintf("it has %d bytes, and at most %d are read", len(data), MaxBytes)}
	}
	data = bytes.TrimPrefix(data, bom)
	if !utf8.Valid(data) {
		line, column := 1, 1
		for rest := data; ; {
			r, n := utf8.DecodeRune(rest)
			if r == utf8.RuneError && n == 1 {
				return nil, &Error{Line: line, Column: column, Message: "it is not UTF-8"}
			}
			if column++; r == '\n' {
				line, column = line+1, 1
			}
			rest = rest[n:]
		}
	}
	switch f {
	case TOML:
		return parseTOML(string(data))
	case YAML:
		return parseYAML(data)
	}
	return parseJSON(data)
}

// budget is what may still be added to a tree.
type budget struct{ nodes, text int }

func newBudget() *budget { return &budget{maxNodes, maxText} }

// take pays for a node or a key with its text.
func (b *budget) take(text string, depth int) bool {
	b.nodes--
	b.text -= len(text)
	return b.nodes >= 0 && b.text >= 0 && depth <= maxDepth
}

func tooLarge(line, column int) *Error {
	return &Error{Line: line, Column: column, TooLarge: true, Message: fmt.Sprintf(
		"it nests deeper than %d levels, or holds more than %d values or %d bytes of them", maxDepth, maxNodes, maxText)}
}
