package skill

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"

	"github.com/loadout-dev/loadout/internal/lazyregexp"
)

// Limits on untrusted YAML after aliases are expanded. The library itself
// rejects nesting beyond 10,000 levels and does not expand aliases.
const (
	maxDepth = 64
	maxNodes = 100_000
	maxText  = 1 << 20 // bytes in scalars
)

// syntaxError describes invalid YAML with its position in the block.
type syntaxError struct {
	line, column int // 1-based within the block; 0 if unknown
	msg          string
	tooLarge     bool
}

func (e *syntaxError) Error() string { return e.msg }

// parseYAML parses a block and returns its root node, or nil for an empty
// document. The result is small enough to be walked with aliases expanded.
func parseYAML(block []byte) (*yaml.Node, *syntaxError) {
	block, hidden := hideBreaks(block)
	var doc yaml.Node
	if err := yaml.Load(block, &doc); err != nil {
		if strings.HasSuffix(err.Error(), "no documents in stream") {
			return nil, nil
		}
		if le, ok := errors.AsType[*yaml.LoadError](err); ok {
			msg, at := le.Message, le.Mark
			if le.ContextMsg != "" {
				msg = le.ContextMsg + ": " + msg
			}
			if strings.HasPrefix(le.ContextMsg, "while scanning") {
				at = le.ContextMark // where the unterminated token starts, not where the parser noticed it
			}
			return nil, &syntaxError{line: at.Line, column: at.Column, msg: strings.TrimPrefix(msg, "yaml: ")}
		}
		return nil, &syntaxError{msg: strings.TrimPrefix(err.Error(), "yaml: ")}
	}
	root := &doc
	if doc.Kind == yaml.DocumentNode && len(doc.Content) == 1 {
		root = doc.Content[0]
	}
	if _, ok := (measure{}).node(root, 0); !ok {
		return nil, &syntaxError{line: 1, tooLarge: true, msg: fmt.Sprintf(
			"nests deeper than %d levels, or expands to more than %d values or %d bytes", maxDepth, maxNodes, maxText)}
	}
	if hidden {
		showBreaks(root)
	}
	return root, nil
}

// breakHider replaces characters that are ordinary in YAML 1.2, but that the YAML
// library treats as line breaks, with noncharacters, which text must not contain.
// breakShow reverses the replacement.
var (
	breakHider = strings.NewReplacer("\u0085", "\ufdd0", "\u2028", "\ufdd1", "\u2029", "\ufdd2")
	breakShow  = strings.NewReplacer("\ufdd0", "\u0085", "\ufdd1", "\u2028", "\ufdd2", "\u2029")
)

func hideBreaks(block []byte) ([]byte, bool) {
	text := string(block)
	if !hasBreaks(text) || strings.ContainsAny(text, "\ufdd0\ufdd1\ufdd2") {
		return block, false
	}
	return []byte(breakHider.Replace(text)), true
}

func hasBreaks(s string) bool { return !isASCII(s) && strings.ContainsAny(s, "\u0085\u2028\u2029") }

func showBreaks(n *yaml.Node) {
	n.Value = breakShow.Replace(n.Value)
	for _, c := range n.Content {
		showBreaks(c)
	}
}

// measure maps each anchored node to its extent: the number of nodes, the size
// of the text and the depth, with aliases expanded.
type measure map[*yaml.Node]extent

type extent struct{ nodes, text, depth int }

// node returns the extent of n at the given level. It returns false if the
// limits are exceeded.
func (m measure) node(n *yaml.Node, level int) (extent, bool) {
	if level > maxDepth {
		return extent{}, false
	}
	if n.Kind == yaml.AliasNode {
		e := m[n.Alias] // an anchor precedes its aliases
		return e, level+e.depth <= maxDepth
	}
	if n.Anchor != "" {
		m[n] = extent{depth: maxDepth + 1} // in case of an alias inside its own anchor
	}
	e := extent{nodes: 1, text: len(n.Value)}
	for _, c := range n.Content {
		ce, ok := m.node(c, level+1)
		e.nodes += ce.nodes
		e.text += ce.text
		e.depth = max(e.depth, ce.depth+1)
		if !ok || e.nodes > maxNodes || e.text > maxText {
			return e, false
		}
	}
	if n.Anchor != "" {
		m[n] = e
	}
	return e, true
}

// resolve returns the target of an alias. It returns other nodes unchanged.
func resolve(n *yaml.Node) *yaml.Node {
	if n != nil && n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

// coreKind returns the type of a plain scalar in the YAML 1.2 core schema.
// Unlike in YAML 1.1, dates, yes/no, sexagesimals and merge keys are strings.
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
	coreInt   = lazyregexp.New(`^(?:[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+)$`)
	coreFloat = lazyregexp.New(`^(?:[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$`)
)

// isPlain reports whether a scalar was written without quotes, block indicator
// or tag, so that the schema determines its type.
func isPlain(n *yaml.Node) bool {
	const given = yaml.SingleQuotedStyle | yaml.DoubleQuotedStyle | yaml.LiteralStyle | yaml.FoldedStyle | yaml.TaggedStyle
	return n.Style&given == 0 && n.Tag != "!"
}

// isNull reports whether a node is absent or an unquoted null.
func isNull(n *yaml.Node) bool {
	return n == nil || n.Kind == yaml.ScalarNode && isPlain(n) && coreKind(n.Value) == "null"
}

// renderer writes nodes as JSON according to the YAML 1.2 core schema, with
// keys in source order and aliases expanded.
type renderer struct{ buf []byte }

// toJSON renders a node returned by parseYAML, or a node below it.
func toJSON(n *yaml.Node) (json.RawMessage, error) {
	var r renderer
	if err := r.node(n); err != nil {
		return nil, err
	}
	return r.buf, nil
}

func (r *renderer) node(n *yaml.Node) error {
	switch n = resolve(n); n.Kind {
	case yaml.MappingNode:
		return r.mapping(n)
	case yaml.SequenceNode:
		r.buf = append(r.buf, '[')
		for i, c := range n.Content {
			if i > 0 {
				r.buf = append(r.buf, ',')
			}
			if err := r.node(c); err != nil {
				return err
			}
		}
		r.buf = append(r.buf, ']')
	default:
		r.scalar(n)
	}
	return nil
}

func (r *renderer) mapping(n *yaml.Node) error {
	last := make(map[string]int, len(n.Content)/2) // by key; the last duplicate wins
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := resolve(n.Content[i])
		if key.Kind != yaml.ScalarNode {
			return fmt.Errorf("line %d: key is not a scalar", key.Line)
		}
		last[key.Value] = i
	}
	r.buf = append(r.buf, '{')
	first := true
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := resolve(n.Content[i]).Value
		if last[key] != i {
			continue
		}
		if !first {
			r.buf = append(r.buf, ',')
		}
		first = false
		r.string(key)
		r.buf = append(r.buf, ':')
		if err := r.node(n.Content[i+1]); err != nil {
			return err
		}
	}
	r.buf = append(r.buf, '}')
	return nil
}

func (r *renderer) scalar(n *yaml.Node) {
	switch scalarKind(n) {
	case "null":
		r.buf = append(r.buf, "null"...)
	case "bool":
		r.buf = append(r.buf, strings.ToLower(n.Value)...)
	case "int":
		base := 10 // a leading zero has no meaning, 0o and 0x do
		if len(n.Value) > 2 && (n.Value[1] == 'o' || n.Value[1] == 'x') {
			base = 0
		}
		i, _ := new(big.Int).SetString(n.Value, base)
		r.buf = i.Append(r.buf, 10)
	case "float":
		f, err := strconv.ParseFloat(n.Value, 64)
		if err != nil || math.IsInf(f, 0) || math.IsNaN(f) {
			r.buf = append(r.buf, "null"...) // as JavaScript encodes .inf and .nan
			return
		}
		b, _ := json.Marshal(f)
		r.buf = append(r.buf, b...)
	default:
		r.string(n.Value)
	}
}

// scalarKind returns the type of a scalar. It ignores a tag that does not fit
// the value.
func scalarKind(n *yaml.Node) string {
	if isPlain(n) {
		return coreKind(n.Value)
	}
	if n.Style&yaml.TaggedStyle == 0 {
		return "str"
	}
	kind := coreKind(n.Value)
	switch {
	case n.Tag == "!!"+kind:
		return kind
	case n.Tag == "!!float" && kind == "int":
		return "float"
	}
	return "str"
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
