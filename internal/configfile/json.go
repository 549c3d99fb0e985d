package configfile

import (
	"bytes"
	"errors"
	"strings"
	"unicode/utf8"

	"github.com/tailscale/hujson"
)

func parseJSON(data []byte) ([]*Node, *Error) {
	if len(bytes.TrimSpace(data)) == 0 {
		return nil, nil
	}
	if at := deepJSON(data); at >= 0 {
		c := cursor{data: data, line: 1, column: 1}
		return nil, tooLargeError(c.advance(at))
	}
	v, err := hujson.Parse(data)
	if err != nil {
		return nil, jsonError(data, err)
	}
	r := jsonReader{budget: newBudget(), at: cursor{data: data, line: 1, column: 1}}
	n, bad := r.value(v, 1)
	if bad != nil {
		return nil, bad
	}
	return []*Node{n}, nil
}

// jsonError converts an error from the JSON library. It parses the position in
// the error text and counts characters instead of bytes.
func jsonError(data []byte, err error) *Error {
	e := &Error{Message: "not valid JSON"}
	cause := errors.Unwrap(err)
	if cause == nil {
		return e
	}
	what, _, _ := strings.Cut(cause.Error(), "literal: ") // the rest may quote the file
	e.Message += ": " + what
	place := strings.TrimSuffix(err.Error(), cause.Error())
	var col int
	for i, f := range strings.Fields(strings.NewReplacer(",", " ", ":", " ").Replace(place)) {
		switch n := atoi(f); {
		case n > 0 && i == 2:
			e.Line = n
		case n > 0:
			col = n
		}
	}
	if e.Line == 0 {
		return e
	}
	lines := bytes.SplitN(data, []byte("\n"), e.Line+1)
	if e.Line <= len(lines) {
		line := lines[e.Line-1]
		e.Column = utf8.RuneCount(line[:min(max(col-1, 0), len(line))]) + 1
	}
	return e
}

func atoi(s string) int {
	n := 0
	for _, c := range s {
		if c < '0' || c > '9' || n > MaxBytes {
			return 0
		}
		n = n*10 + int(c-'0')
	}
	return n
}

// deepJSON returns the offset at which brackets are nested too deeply, or -1.
// The check is needed because the JSON library recurses without a limit. After
// a syntax error, the result may be wrong.
func deepJSON(data []byte) int {
	depth := 0
	for i := 0; i < len(data); i++ {
		switch data[i] {
		case '{', '[':
			if depth++; depth > maxDepth {
				return i
			}
		case '}', ']':
			depth--
		case '"':
			for i++; i < len(data) && data[i] != '"'; i++ {
				if data[i] == '\\' {
					i++
				}
			}
		case '/':
			switch {
			case bytes.HasPrefix(data[i:], []byte("//")):
				n := bytes.IndexByte(data[i:], '\n')
				if n < 0 {
					return -1
				}
				i += n
			case bytes.HasPrefix(data[i:], []byte("/*")):
				n := bytes.Index(data[i+2:], []byte("*/"))
				if n < 0 {
					return -1
				}
				i += 2 + n + 1
			}
		}
	}
	return -1
}

// cursor converts increasing byte offsets to lines and columns.
type cursor struct {
	data              []byte
	off, line, column int
}

func (c *cursor) advance(off int) (line, column int) {
	for c.off < off && c.off < len(c.data) {
		switch b := c.data[c.off]; {
		case b == '\n':
			c.line++
			c.column = 1
		case utf8.RuneStart(b):
			c.column++
		}
		c.off++
	}
	return c.line, c.column
}

type jsonReader struct {
	budget *budget
	at     cursor
}

func (r *jsonReader) value(v hujson.Value, depth int) (*Node, *Error) {
	n := &Node{}
	n.Line, n.Column = r.at.advance(v.StartOffset)
	switch v := v.Value.(type) {
	case *hujson.Object:
		n.Kind = Map
		for _, m := range v.Members {
			f := Field{Key: m.Name.Value.(hujson.Literal).String()}
			f.Line, f.Column = r.at.advance(m.Name.StartOffset)
			if !r.budget.spend(f.Key, depth) {
				return nil, tooLargeError(f.Line, f.Column)
			}
			var err *Error
			if f.Value, err = r.value(m.Value, depth+1); err != nil {
				return nil, err
			}
			n.Fields = append(n.Fields, f)
		}
	case *hujson.Array:
		n.Kind = List
		for _, e := range v.Elements {
			item, err := r.value(e, depth+1)
			if err != nil {
				return nil, err
			}
			n.Items = append(n.Items, item)
		}
	case hujson.Literal:
		switch v.Kind() {
		case 'n':
			n.Kind = Null
		case 't', 'f':
			n.Kind, n.Text = Bool, string(v)
		case '"':
			n.Kind, n.Text = String, v.String()
		default:
			n.Kind, n.Text = Number, string(v)
		}
	}
	if !r.budget.spend(n.Text, depth) {
		return nil, tooLargeError(n.Line, n.Column)
	}
	return n, nil
}
