package clientconfig

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/tailscale/hujson"
)

// jsonDoc is a JSON document with comments and trailing commas. The hujson
// parser provides the offset of each value. Edits change only the bytes of the
// entry.
type jsonDoc struct {
	src  []byte
	key  string
	root hujson.Value
	top  *hujson.Object // value of root; nil for an empty file
	// servers is the index in top of the member named key, or -1. entries is
	// the value of that member.
	servers int
	entries *hujson.Object
}

var _ document = (*jsonDoc)(nil)

func parseJSON(src []byte, key string) (*jsonDoc, error) {
	d := &jsonDoc{src: src, key: key, servers: -1}
	n := bomLen(src)
	if isBlank(src[n:]) {
		return d, nil
	}
	if err := checkDepth(src); err != nil {
		return nil, err
	}
	// Replace the byte order mark with spaces to preserve offsets. The final
	// newline permits a comment at the end of the file, which hujson rejects
	// otherwise.
	text := append(bytes.Repeat([]byte(" "), n), src[n:]...)
	text = append(text, '\n')
	var err error
	if d.root, err = hujson.Parse(text); err != nil {
		return nil, jsonRefusal(text, err)
	}
	var ok bool
	if d.top, ok = d.root.Value.(*hujson.Object); !ok {
		return nil, &refusal{d.root.StartOffset, "the file does not contain a JSON object", "replace it with {} or move it away"}
	}
	if d.servers, err = findMember(d.top, key); err != nil || d.servers < 0 {
		return d, err
	}
	value := d.top.Members[d.servers].Value
	if d.entries, ok = value.Value.(*hujson.Object); !ok {
		return nil, &refusal{value.StartOffset, `"` + key + `" is not an object`, "replace it with {} or delete it"}
	}
	return d, nil
}

// maxDepth is the maximum nesting depth, because the parsers are recursive.
const maxDepth = 500

// checkDepth returns an error if brackets are nested deeper than maxDepth. It
// ignores strings and comments, and accepts invalid JSON.
func checkDepth(src []byte) error {
	depth := 0
	for i := 0; i < len(src); i++ {
		switch rest := src[i:]; {
		case rest[0] == '"':
			for i++; i < len(src) && src[i] != '"'; i++ {
				if src[i] == '\\' {
					i++
				}
			}
		case bytes.HasPrefix(rest, []byte("//")):
			i += lengthTo(rest, "\n")
		case bytes.HasPrefix(rest, []byte("/*")):
			i += len("/*") + lengthTo(rest[2:], "*/") + 1 // up to the last byte of the comment
		case rest[0] == '{' || rest[0] == '[':
			if depth++; depth > maxDepth {
				return &refusal{i, "nesting too deep", fixSyntax}
			}
		case rest[0] == '}' || rest[0] == ']':
			depth--
		}
	}
	return nil
}

// lengthTo returns the length of s up to and including end, or the length of s
// if end does not occur.
func lengthTo(s []byte, end string) int {
	if i := bytes.Index(s, []byte(end)); i >= 0 {
		return i
	}
	return len(s)
}

// jsonRefusal converts a parser's error to a refusal with its position. It
// includes the parser's reason only if the reason cannot quote the file.
func jsonRefusal(text []byte, err error) error {
	problem := "invalid JSON"
	cause := err
	if inner := errors.Unwrap(err); inner != nil {
		cause = inner
	}
	switch reason := cause.Error(); {
	case errors.Is(err, io.ErrUnexpectedEOF):
		problem += ": unexpected end of file"
	case strings.HasPrefix(reason, "invalid character "): // quotes at most one character
		problem += ": " + reason
	}
	return &refusal{jsonOffset(text, err), problem, fixSyntax}
}

// jsonOffset returns the offset of a parser's error, or -1. The parser counts
// columns in bytes.
func jsonOffset(text []byte, err error) int {
	var line, column int
	if n, _ := fmt.Sscanf(err.Error(), "hujson: line %d, column %d:", &line, &column); n != 2 {
		return -1
	}
	at := 0
	for ; line > 1; line-- {
		at += lengthTo(text[at:], "\n") + 1
	}
	return min(at+column-1, len(text)-1)
}

// findMember returns the index of the member with the given name, or -1. It
// returns an error for duplicates, because clients differ in which one they
// use.
func findMember(o *hujson.Object, name string) (int, error) {
	found := -1
	for i, m := range o.Members {
		if m.Name.Value.(hujson.Literal).String() != name {
			continue
		}
		if found >= 0 {
			return -1, &refusal{m.Name.StartOffset, `"` + name + `" is duplicated`, "delete one of them"}
		}
		found = i
	}
	return found, nil
}

// findEntry returns the index of an entry in d.entries, or -1.
func (d *jsonDoc) findEntry(name string) (int, error) {
	if d.entries == nil {
		return -1, nil
	}
	return findMember(d.entries, name)
}

func (d *jsonDoc) entry(name string) (any, bool, error) {
	i, err := d.findEntry(name)
	if err != nil || i < 0 {
		return nil, false, err
	}
	return decodeJSON(d.entries.Members[i].Value.Value), true, nil
}

func (d *jsonDoc) hasContainer() bool { return d.entries != nil }

func (d *jsonDoc) isEmpty() bool {
	return d.top == nil || len(d.top.Members) == 0 &&
		isBlank(d.root.BeforeExtra) && isBlank(d.top.AfterExtra) && isBlank(d.root.AfterExtra)
}

func (d *jsonDoc) decoded() map[string]any {
	if d.top == nil {
		return map[string]any{}
	}
	return decodeJSON(d.top).(map[string]any)
}

// decodeJSON decodes a value. Numbers keep their spelling. If a key is
// repeated, the last value wins.
func decodeJSON(v hujson.ValueTrimmed) any {
	switch v := v.(type) {
	case *hujson.Object:
		m := make(map[string]any, len(v.Members))
		for _, f := range v.Members {
			m[f.Name.Value.(hujson.Literal).String()] = decodeJSON(f.Value.Value)
		}
		return m
	case *hujson.Array:
		list := make([]any, 0, len(v.Elements))
		for _, e := range v.Elements {
			list = append(list, decodeJSON(e.Value))
		}
		return list
	case hujson.Literal:
		switch v.Kind() {
		case '"':
			return v.String()
		case '0':
			return json.Number(string(v))
		case 't', 'f':
			return v.Bool()
		}
	}
	return nil
}

func (d *jsonDoc) marks(name string) []mark {
	if d.top == nil {
		return nil
	}
	w := markCollector{src: d.src, own: -1}
	if i, _ := d.findEntry(name); i >= 0 {
		w.own = d.entries.Members[i].Value.StartOffset
	}
	w.value(d.root, false, "", -1)
	return w.found
}

// markCollector collects a document's marks in order.
type markCollector struct {
	src   []byte
	own   int // offset of the entry's value, or -1
	found []mark
}

// value collects the marks of v. inEntry reports whether v is inside the entry.
// If v is the value of a member of the entry, or element nth of such a value,
// key is the name of the member; otherwise, key is "". nth is -1 unless v is an
// array element.
func (w *markCollector) value(v hujson.Value, inEntry bool, key string, nth int) {
	w.addComments(v.StartOffset-len(v.BeforeExtra), v.BeforeExtra)
	isEntry := v.StartOffset == w.own
	inEntry = inEntry || isEntry
	switch x := v.Value.(type) {
	case hujson.Literal:
		m := mark{span: span{v.StartOffset, v.EndOffset}, kind: literalKind(x), in: inEntry, key: key, nth: nth}
		if inEntry {
			m.text = x.String()
		}
		w.found = append(w.found, m)
	case *hujson.Object:
		for _, m := range x.Members {
			w.addComments(m.Name.StartOffset-len(m.Name.BeforeExtra), m.Name.BeforeExtra)
			w.addComments(m.Name.EndOffset, m.Name.AfterExtra)
			below := ""
			if isEntry {
				below = m.Name.Value.(hujson.Literal).String()
			}
			w.value(m.Value, inEntry, below, -1)
		}
		w.addComments(v.EndOffset-1-len(x.AfterExtra), x.AfterExtra)
	case *hujson.Array:
		for i, e := range x.Elements {
			w.value(e, inEntry, key, i)
		}
		w.addComments(v.EndOffset-1-len(x.AfterExtra), x.AfterExtra)
	}
	w.addComments(v.EndOffset, v.AfterExtra)
}

func literalKind(l hujson.Literal) markKind {
	switch l.Kind() {
	case '"':
		return markString
	case '0':
		return markScalar
	}
	return markWord
}

// addComments adds marks for the comments between two tokens.
func (w *markCollector) addComments(at int, extra []byte) {
	for _, c := range jsonComments(extra) {
		end := min(at+c.end, len(w.src)) // the parsed text ends in an additional newline
		w.found = append(w.found, mark{span: span{at + c.start, end}, kind: markComment})
	}
}

// jsonComments returns the comments between two tokens, without the newline at
// their end.
func jsonComments(extra []byte) []span {
	var found []span
	for i := 0; i < len(extra); {
		n := 1
		switch rest := extra[i:]; {
		case bytes.HasPrefix(rest, []byte("/*")):
			n = len("/*") + lengthTo(rest[2:], "*/") + len("*/")
			found = append(found, span{i, i + n})
		case bytes.HasPrefix(rest, []byte("//")):
			n = lengthTo(rest, "\n")
			found = append(found, span{i, i + len(bytes.TrimSuffix(rest[:n], []byte("\r")))})
		}
		i += n
	}
	return found
}
