package configfile

import (
	"encoding/json"
	"strconv"
)

// JSON encodes the value as JSON, with keys in file order. Only the last value
// of a repeated key is included. A number that JSON cannot represent becomes a
// string.
func (n *Node) JSON() json.RawMessage {
	if n == nil {
		return nil
	}
	return n.appendJSON(nil)
}

func (n *Node) appendJSON(b []byte) []byte {
	switch n.Kind {
	case Null:
		return append(b, "null"...)
	case Bool:
		return append(b, n.Text...)
	case Number:
		if json.Valid([]byte(n.Text)) {
			return append(b, n.Text...)
		}
		if i, err := strconv.ParseInt(n.Text, 0, 64); err == nil {
			return strconv.AppendInt(b, i, 10)
		}
	case List:
		b = append(b, '[')
		for i, item := range n.Items {
			if i > 0 {
				b = append(b, ',')
			}
			b = item.appendJSON(b)
		}
		return append(b, ']')
	case Map:
		fields, _ := n.UniqueFields()
		b = append(b, '{')
		for i, f := range fields {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(append(b, quoteJSON(f.Key)...), ':')
			b = f.Value.appendJSON(b)
		}
		return append(b, '}')
	}
	return append(b, quoteJSON(n.Text)...)
}

func quoteJSON(s string) []byte {
	js, _ := json.Marshal(s) // cannot fail for a string
	return js
}
