package skill

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
)

// Bounds on YAML from a stranger. The library refuses nesting beyond 10,000
// levels and does not expand aliases while reading nodes; rendering does.
const (
	maxDepth = 64
	maxNodes = 100_000
)

// syntaxError is YAML that cannot be read, with its place in the block.
type syntaxError struct {
	line, column int // 1-based within the block; 0 where unknown
	msg          string
}

func (e *syntaxError) Error() string { return e.msg }

// parseYAML reads one block to its root node, nil for an empty document.
func parseYAML(block []byte) (*yaml.Node, *syntaxError) {
	var doc yaml.Node
	err := yaml.Load(block, &doc)
	if err == nil {
		if doc.Kind == yaml.DocumentNode && len(doc.Content) == 1 {
			return doc.Content[0], nil
		}
		return &doc, nil
	}
	if strings.HasSuffix(err.Error(), "no documents in stream") {
		return nil, nil
	}
	if le, ok := errors.AsType[*yaml.LoadError](err); ok {
		msg := le.Message
		if le.ContextMsg != "" {
			msg = le.ContextMsg + ": " + msg
		}
		return nil, &syntaxError{line: le.Mark.Line, column: le.Mark.Column, msg: strings.TrimPrefix(msg, "yaml: ")}
	}
	return nil, &syntaxError{msg: strings.TrimPrefix(err.Error(), "yaml: ")}
}

// coreKind resolves a plain scalar by the YAML 1.2 core schema: unlike YAML
// 1.1, dates, yes/no, sexagesimals and merge keys are plain strings.
func coreKind(v string) string {
	switch v {
	case "", "~", "null", "Null", "NULL":
		return "null"
	case "true", "True", "TRUE", "false", "False", "FALSE":
		return "bool"
	}
	if c := v[0]; c == '+' || c == '-' || c == '.' || '0' <= c && c <= '9' {
		switch {
		case coreInt.MatchString(v):
			return "int"
		case coreFloat.MatchString(v):
			return "float"
		}
	}
	return "str"
}

var (
	coreInt   = regexp.MustCompile(`^(?:[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+)$`)
	coreFloat = regexp.MustCompile(`^(?:[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$`)
)

// isPlain reports whether a scalar was written without quotes, block
// indicator or tag, so that its type is up to the schema.
func isPlain(n *yaml.Node) bool {
	return n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle|yaml.TaggedStyle) == 0
}

// isNull reports whether a node is absent or an unquoted null.
func isNull(n *yaml.Node) bool {
	return n == nil || n.Kind == yaml.ScalarNode && isPlain(n) && coreKind(n.Value) == "null"
}

// renderer writes nodes as JSON by the YAML 1.2 core schema, keys in the
// order of the source, aliases resolved within a budget of nodes.
type renderer struct {
	buf   []byte
	nodes int
}

var errTooLarge = fmt.Errorf("the frontmatter expands to more than %d values or nests deeper than %d levels", maxNodes, maxDepth)

// toJSON renders a mapping node.
func toJSON(n *yaml.Node) (json.RawMessage, error) {
	var r renderer
	if err := r.node(n, 0); err != nil {
		return nil, err
	}
	return r.buf, nil
}

func (r *renderer) node(n *yaml.Node, depth int) error {
	if r.nodes++; r.nodes > maxNodes || depth > maxDepth {
		return errTooLarge
	}
	switch n.Kind {
	case yaml.AliasNode:
		if n.Alias == nil {
			return fmt.Errorf("alias *%s has no anchor", n.Value)
		}
		return r.node(n.Alias, depth+1)
	case yaml.MappingNode:
		return r.mapping(n, depth)
	case yaml.SequenceNode:
		r.buf = append(r.buf, '[')
		for i, c := range n.Content {
			if i > 0 {
				r.buf = append(r.buf, ',')
			}
			if err := r.node(c, depth+1); err != nil {
				return err
			}
		}
		r.buf = append(r.buf, ']')
		return nil
	default:
		r.scalar(n)
		return nil
	}
}

func (r *renderer) mapping(n *yaml.Node, depth int) error {
	last := make(map[string]int, len(n.Content)/2) // a repeated key: the last one counts
	for i := 0; i+1 < len(n.Content); i += 2 {
		if key := n.Content[i]; key.Kind != yaml.ScalarNode {
			return fmt.Errorf("line %d: a key is not a scalar", key.Line)
		}
		last[n.Content[i].Value] = i
	}
	r.buf = append(r.buf, '{')
	first := true
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i].Value
		if last[key] != i {
			continue
		}
		if !first {
			r.buf = append(r.buf, ',')
		}
		first = false
		r.string(key)
		r.buf = append(r.buf, ':')
		if err := r.node(n.Content[i+1], depth+1); err != nil {
			return err
		}
	}
	r.buf = append(r.buf, '}')
	return nil
}

func (r *renderer) scalar(n *yaml.Node) {
	kind := "str"
	switch {
	case isPlain(n):
		kind = coreKind(n.Value)
	case n.Style&yaml.TaggedStyle != 0:
		kind = strings.TrimPrefix(n.Tag, "!!")
	}
	switch kind {
	case "null":
		r.buf = append(r.buf, "null"...)
	case "bool":
		r.buf = append(r.buf, strings.ToLower(n.Value)...)
	case "int":
		if i, ok := new(big.Int).SetString(strings.TrimPrefix(intBase(n.Value), "+"), 0); ok {
			r.buf = i.Append(r.buf, 10)
			return
		}
		r.string(n.Value)
	case "float":
		f, err := strconv.ParseFloat(n.Value, 64)
		if err != nil || math.IsInf(f, 0) || math.IsNaN(f) {
			r.buf = append(r.buf, "null"...) // as JavaScript writes .inf and .nan
			return
		}
		b, _ := json.Marshal(f)
		r.buf = append(r.buf, b...)
	default:
		r.string(n.Value)
	}
}

// intBase makes a core-schema integer readable to math/big with base 0, where
// a leading zero would mean octal.
func intBase(v string) string {
	if strings.HasPrefix(v, "0o") || strings.HasPrefix(v, "0x") {
		return v
	}
	sign := ""
	if v[0] == '-' || v[0] == '+' {
		sign, v = v[:1], v[1:]
	}
	v = strings.TrimLeft(v, "0")
	if v == "" {
		v = "0"
	}
	return sign + v
}

// string appends a JSON string without escaping HTML characters.
func (r *renderer) string(s string) {
	const hex = "0123456789abcdef"
	r.buf = append(r.buf, '"')
	for i := 0; i < len(s); {
		c := s[i]
		switch {
		case c == '"' || c == '\\':
			r.buf = append(r.buf, '\\', c)
		case c == '\n':
			r.buf = append(r.buf, '\\', 'n')
		case c == '\t':
			r.buf = append(r.buf, '\\', 't')
		case c == '\r':
			r.buf = append(r.buf, '\\', 'r')
		case c < 0x20:
			r.buf = append(r.buf, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		case c < utf8.RuneSelf:
			r.buf = append(r.buf, c)
		default:
			ru, n := utf8.DecodeRuneInString(s[i:])
			r.buf = utf8.AppendRune(r.buf, ru)
			i += n
			continue
		}
		i++
	}
	r.buf = append(r.buf, '"')
}
