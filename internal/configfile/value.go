package configfile

import (
	"encoding/json"
	"strconv"
)

// JSON returns the value as JSON, with keys in file order. Of repeated keys the
// last value counts. A number that JSON cannot express becomes a string.
func (n *Node) JSON() json.RawMessage {
	if n == nil {
		return nil
	}
	return n.append(nil)
}

func (n *Node) append(b []byte) []byte {
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
			b = item.append(b)
		}
		return append(b, ']')
	case Map:
		fields, _ := n.Unique()
		b = append(b, '{')
		for i, f := range fields {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(append(b, quoteJSON(f.Key)...), ':')
			b = f.Value.append(b)
		}
		return append(b, '}')
	}
	return append(b, quoteJSON(n.Text)...)
}

func quoteJSON(s string) []byte {
	js, _ := json.Marshal(s) // never fails for a string
	return js
}
