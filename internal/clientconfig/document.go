package clientconfig

import (
	"bytes"
	"math"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"
)

// document is a parsed configuration file. It returns edits but never changes
// its source. If an edit is impossible, a method returns a *refusal.
type document interface {
	// entry returns the decoded entry with the given name. It returns false if
	// there is none.
	entry(name string) (any, bool, error)
	// setEntry returns the edit that adds or replaces the entry.
	setEntry(name string, o object) (edit, error)
	// removeEntry returns the edit that removes an existing entry. If container
	// is true, the edit also removes the entry's parent if that is then empty.
	removeEntry(name string, container bool) (edit, error)
	// hasContainer reports whether the parent of the entries exists.
	hasContainer() bool
	// isEmpty reports whether the document contains nothing, not even a
	// comment.
	isEmpty() bool
	// decoded returns the decoded document.
	decoded() map[string]any
	// marks returns the document's comments and scalar values in order. It
	// flags those in the named entry.
	marks(name string) []mark
}

// parse parses a configuration file in the format of c.
func parse(c Client, src []byte) (document, error) {
	if err := checkText(src); err != nil {
		return nil, err
	}
	switch c.Format {
	case TOML:
		return parseTOML(src, c.Key)
	case YAML:
		return parseYAML(src, c.Key)
	}
	return parseJSON(src, c.Key)
}

// emptyDocument returns the document for a missing file.
func emptyDocument(c Client) document {
	d, err := parse(c, nil)
	if err != nil {
		panic("client: a blank " + c.Name + " file does not parse: " + err.Error())
	}
	return d
}

var bom = []byte("\xef\xbb\xbf")

// bomLen returns the length of a byte order mark at the start of src.
func bomLen(src []byte) int {
	if bytes.HasPrefix(src, bom) {
		return len(bom)
	}
	return 0
}

func checkText(src []byte) error {
	if bytes.HasPrefix(src, []byte("\xff\xfe")) || bytes.HasPrefix(src, []byte("\xfe\xff")) {
		return &refusal{-1, "unsupported encoding UTF-16", "save it as UTF-8"}
	}
	if utf8.Valid(src) {
		return nil
	}
	at := 0
	for {
		r, n := utf8.DecodeRune(src[at:])
		if r == utf8.RuneError && n <= 1 {
			return &refusal{at, "invalid UTF-8", "save it as UTF-8"}
		}
		at += n
	}
}

// lineEnding returns the first line ending in src.
func lineEnding(src []byte) string {
	if i := bytes.IndexByte(src, '\n'); i > 0 && src[i-1] == '\r' {
		return "\r\n"
	}
	return "\n"
}

// span is a half-open range of byte offsets.
type span struct{ start, end int }

// splice replaces a span with text.
type splice struct {
	span
	text string
}

// edit is a list of non-overlapping splices in any order.
type edit []splice

func insertAt(at int, text string) splice { return splice{span{at, at}, text} }
func cutSpan(start, end int) splice       { return splice{span{start, end}, ""} }

// apply returns the edited text. Insertions at the same offset keep their
// order.
func (e edit) apply(src []byte) []byte {
	sorted := slices.Clone(e)
	slices.SortStableFunc(sorted, func(a, b splice) int { return a.start - b.start })
	var out bytes.Buffer
	at := 0
	for _, s := range sorted {
		out.Write(src[at:s.start])
		out.WriteString(s.text)
		at = s.end
	}
	out.Write(src[at:])
	return out.Bytes()
}

// verify parses after and checks that it equals before except for the entry,
// which must be o, or absent if o is nil. Any other difference is a bug in this
// package, and the error prevents the file from being written.
func verify(c Client, before document, after []byte, name string, o object) (document, error) {
	fault := &refusal{-1, "the entry cannot be edited without changing other parts of the file", fixByHand}
	doc, err := parse(c, after)
	if err != nil {
		return nil, fault
	}
	value, there, err := doc.entry(name)
	if err != nil || there != (o != nil) || there && !equalValues(value, o.decoded()) {
		return nil, fault
	}
	if !equalValues(dropEntry(before.decoded(), c.Key, name), dropEntry(doc.decoded(), c.Key, name)) {
		return nil, fault
	}
	return doc, nil
}

// dropEntry removes the entry from a decoded document. It also removes the
// entry's parent if that is then empty.
func dropEntry(doc map[string]any, key, name string) map[string]any {
	if servers, ok := doc[key].(map[string]any); ok {
		delete(servers, name)
		if len(servers) == 0 {
			delete(doc, key)
		}
	}
	return doc
}

// equalValues is like reflect.DeepEqual for decoded documents, but NaN equals
// NaN.
func equalValues(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for k, v := range a {
			if w, ok := b[k]; !ok || !equalValues(v, w) {
				return false
			}
		}
		return true
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, equalValues)
	case []map[string]any:
		b, ok := b.([]map[string]any)
		return ok && slices.EqualFunc(a, b, func(x, y map[string]any) bool { return equalValues(x, y) })
	case float64:
		b, ok := b.(float64)
		return ok && (a == b || math.IsNaN(a) && math.IsNaN(b))
	}
	return reflect.DeepEqual(a, b)
}

// isBlank reports whether s contains only white space as defined by JSON and
// TOML.
func isBlank(s []byte) bool { return len(bytes.Trim(s, " \t\r\n")) == 0 }

// indentAt returns the indentation of the line that contains offset.
func indentAt(src []byte, offset int) string {
	line := src[bytes.LastIndexByte(src[:offset], '\n')+1 : offset]
	if n := bomLen(src); bytes.HasPrefix(line, bom) {
		line = line[n:]
	}
	return string(line[:len(line)-len(bytes.TrimLeft(line, " \t"))])
}

// sanitizeLine replaces control characters and invisible characters with "?",
// so that the line is safe to print.
func sanitizeLine(line string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\t':
			return r
		case r < ' ', r >= 0x7f && r < 0xa0, // control characters
			r >= 0x200b && r <= 0x200f, r >= 0x2028 && r <= 0x202e, // zero width, direction
			r >= 0x2060 && r <= 0x206f, r == 0xfeff:
			return '?'
		}
		return r
	}, line)
}
