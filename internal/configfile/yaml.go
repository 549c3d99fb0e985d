package configfile

import (
	"bytes"
	"errors"
	"io"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/loadout-dev/loadout/internal/lazyregexp"
)

func parseYAML(data []byte) ([]*Node, *Error) {
	l, err := yaml.NewLoader(bytes.NewReader(data))
	if err != nil {
		return nil, yamlError(err)
	}
	var out []*Node
	r := yamlReader{budget: newBudget()}
	for {
		var doc yaml.Node
		err := l.Load(&doc)
		if errors.Is(err, io.EOF) || err != nil && strings.HasSuffix(err.Error(), "no documents in stream") {
			return out, nil
		}
		if err != nil {
			return out, yamlError(err)
		}
		if len(doc.Content) == 0 {
			continue
		}
		n, bad := r.node(doc.Content[0], 1)
		if bad != nil {
			return out, bad
		}
		if n.Kind != Null {
			out = append(out, n)
		}
	}
}

func yamlError(err error) *Error {
	le, ok := errors.AsType[*yaml.LoadError](err)
	if !ok {
		return &Error{Message: "not valid YAML"}
	}
	msg, at := le.Message, le.Mark
	if le.ContextMsg != "" {
		msg = le.ContextMsg + ": " + msg
	}
	if strings.HasPrefix(le.ContextMsg, "while scanning") {
		at = le.ContextMark // where the unterminated item starts
	}
	return &Error{Line: at.Line, Column: at.Column, Message: "not valid YAML: " + strings.TrimPrefix(msg, "yaml: ")}
}

type yamlReader struct{ budget *budget }

// node copies a YAML node and expands aliases. A recursive alias exceeds the
// depth limit.
func (r *yamlReader) node(y *yaml.Node, depth int) (*Node, *Error) {
	n := &Node{Line: y.Line, Column: y.Column}
	if y.Kind == yaml.AliasNode {
		y = y.Alias
	}
	switch y.Kind {
	case yaml.MappingNode:
		n.Kind = Map
	case yaml.SequenceNode:
		n.Kind = List
	default:
		n.Kind, n.Text = scalar(y)
	}
	if !r.budget.spend(n.Text, depth) {
		return nil, tooLargeError(n.Line, n.Column)
	}
	if n.Kind == List {
		for _, c := range y.Content {
			item, err := r.node(c, depth+1)
			if err != nil {
				return nil, err
			}
			n.Items = append(n.Items, item)
		}
	}
	if n.Kind == Map {
		return n, r.fields(n, y, depth)
	}
	return n, nil
}

func (r *yamlReader) fields(n *Node, y *yaml.Node, depth int) *Error {
	var merged []*Node
	for i := 0; i+1 < len(y.Content); i += 2 {
		k := y.Content[i]
		f := Field{Line: k.Line, Column: k.Column}
		if k.Kind == yaml.AliasNode {
			k = k.Alias
		}
		if k.Kind != yaml.ScalarNode {
			return &Error{Line: f.Line, Column: f.Column, Message: "map key is not a scalar"}
		}
		f.Key = k.Value
		if !r.budget.spend(f.Key, depth) {
			return tooLargeError(f.Line, f.Column)
		}
		var err *Error
		if f.Value, err = r.node(y.Content[i+1], depth+1); err != nil {
			return err
		}
		switch {
		case f.Key == "<<" && isPlain(k) && f.Value.Kind == Map:
			merged = append(merged, f.Value)
		case f.Key == "<<" && isPlain(k) && f.Value.Kind == List:
			merged = append(merged, f.Value.Items...)
		default:
			n.Fields = append(n.Fields, f)
		}
	}
	// The map's own keys take precedence over merged keys, and earlier merged
	// maps over later ones.
	if len(merged) == 0 {
		return nil
	}
	have := map[string]bool{}
	for _, f := range n.Fields {
		have[f.Key] = true
	}
	for _, m := range merged {
		for _, f := range m.Fields {
			if !have[f.Key] {
				have[f.Key] = true
				n.Fields = append(n.Fields, f)
			}
		}
	}
	return nil
}

// scalar resolves a scalar according to the YAML 1.2 core schema, in which
// dates, yes, no and sexagesimal numbers are strings.
func scalar(y *yaml.Node) (Kind, string) {
	if !isPlain(y) {
		return String, y.Value
	}
	switch v := y.Value; v {
	case "", "~", "null", "Null", "NULL":
		return Null, ""
	case "true", "True", "TRUE", "false", "False", "FALSE":
		return Bool, strings.ToLower(v)
	default:
		if coreNumber.MatchString(v) {
			return Number, v
		}
		return String, v
	}
}

var coreNumber = lazyregexp.New(`^(?:[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|0o[0-7]+|0x[0-9a-fA-F]+)$`)

// isPlain reports whether a scalar has no quotes, block indicator or tag, so
// that the schema determines its type.
func isPlain(y *yaml.Node) bool {
	const given = yaml.SingleQuotedStyle | yaml.DoubleQuotedStyle | yaml.LiteralStyle | yaml.FoldedStyle | yaml.TaggedStyle
	return y.Style&given == 0 && y.Tag != "!"
}
