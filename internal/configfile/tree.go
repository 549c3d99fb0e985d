// Package configfile parses the configuration files of other programs, in JSON
// with comments, YAML or TOML, into a common tree whose nodes have positions.
// It limits the size and depth of trees and expands aliases, so trees are safe
// to walk. It opens no files except in [ReadFile] and gives keys no meaning.
// Its errors quote no values.
package configfile

import (
	"bytes"
	"fmt"
	"path"
	"strings"
	"unicode/utf8"
)

// Limits of a configuration file.
const (
	MaxBytes = 1 << 20
	maxDepth = 64
	maxNodes = 100_000
	maxText  = 1 << 20 // bytes of scalars and keys after aliases are expanded
)

// Format is a configuration language.
type Format string

// Supported formats.
const (
	JSON Format = "JSON" // with comments and trailing commas
	YAML Format = "YAML"
	TOML Format = "TOML"
)

// FormatOf returns the format of a file. It uses the extension or, if the
// extension is unknown, the first characters of data.
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

// Kind is the type of a node.
type Kind string

// Kinds of nodes.
const (
	Null   Kind = "null"
	Bool   Kind = "boolean"
	Number Kind = "number"
	String Kind = "text"
	List   Kind = "list"
	Map    Kind = "map"
)

// Node is a value in a configuration file with its position.
type Node struct {
	Kind Kind
	// Text is the text of a scalar: a string without quotes, a number as
	// written, or true or false in lower case.
	Text   string
	Items  []*Node // items of a list
	Fields []Field // fields of a map, in file order; keys may repeat
	// Line and Column are the 1-based position, with columns in characters.
	// They are 0 if the position is unknown.
	Line, Column int
}

// Field is a key-value pair of a map.
type Field struct {
	Key          string
	Line, Column int
	Value        *Node
}

// Get returns the value of the last field with the given key. It returns nil if
// there is none or n is not a map.
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

// UniqueFields returns the fields of a map in file order, keeping only the last
// field for each key. overridden lists the other fields.
func (n *Node) UniqueFields() (fields, overridden []Field) {
	last := make(map[string]int, len(n.Fields))
	for i, f := range n.Fields {
		last[f.Key] = i
	}
	for i, f := range n.Fields {
		if last[f.Key] == i {
			fields = append(fields, f)
		} else {
			overridden = append(overridden, f)
		}
	}
	return fields, overridden
}

// IsScalar reports whether n is a string, number or boolean.
func (n *Node) IsScalar() bool {
	return n != nil && (n.Kind == String || n.Kind == Number || n.Kind == Bool)
}

// Error reports why a file cannot be parsed, with the position of the problem.
type Error struct {
	Line, Column int // 0 if the position is unknown
	Message      string
	TooLarge     bool // the file exceeds a limit but may be valid
}

// Error returns the message, preceded by the position if it is known.
func (e *Error) Error() string {
	if e.Line == 0 {
		return e.Message
	}
	return fmt.Sprintf("%d:%d: %s", e.Line, max(e.Column, 1), e.Message)
}

var bom = []byte("\xef\xbb\xbf")

// Parse parses a configuration file. JSON and TOML files contain one document.
// YAML files may contain several documents; empty documents are skipped. If a
// document is invalid, Parse also returns the documents before it.
func Parse(data []byte, f Format) ([]*Node, *Error) {
	if len(data) > MaxBytes {
		return nil, &Error{TooLarge: true, Message: fmt.Sprintf("file too large (%d bytes, limit %d)", len(data), MaxBytes)}
	}
	data = bytes.TrimPrefix(data, bom)
	if !utf8.Valid(data) {
		line, column := 1, 1
		for rest := data; ; {
			r, n := utf8.DecodeRune(rest)
			if r == utf8.RuneError && n == 1 {
				return nil, &Error{Line: line, Column: column, Message: "not valid UTF-8"}
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

// budget is the number of nodes and bytes of text that may still be added to a
// tree.
type budget struct{ nodes, text int }

func newBudget() *budget { return &budget{maxNodes, maxText} }

// spend deducts one node or key from the budget. It returns false if the budget
// is exceeded or depth is too large.
func (b *budget) spend(text string, depth int) bool {
	b.nodes--
	b.text -= len(text)
	return b.nodes >= 0 && b.text >= 0 && depth <= maxDepth
}

func tooLargeError(line, column int) *Error {
	return &Error{Line: line, Column: column, TooLarge: true, Message: fmt.Sprintf(
		"too large (limits: %d levels, %d values, %d bytes of text)", maxDepth, maxNodes, maxText)}
}
