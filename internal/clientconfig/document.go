package clientconfig

import (
	"bytes"
	"math"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"
)

// document is a parsed configuration file. It proposes edits and never changes
// the bytes it was parsed from. An edit that cannot be made is a *refusal.
type document interface {
	// value returns the decoded entry of that name, and whether it is there.
	value(name string) (any, bool, error)
	// with returns the edit that adds the entry, or replaces the one there is.
	with(name string, o object) (edit, error)
	// without returns the edit that removes an entry that is there, and with
	// container also what held it, if nothing else is in that.
	without(name string, container bool) (edit, error)
	// hasContainer reports whether something to hold entries is there.
	hasContainer() bool
	// empty reports whether nothing is there, not even a comment.
	empty() bool
	// decoded is everything in it.
	decoded() map[string]any
	// marks are its comments and scalar values, in order, told apart by
	// whether they are in the entry of that name.
	marks(name string) []mark
}

// parse reads src as the configuration of c.
func parse(c Client, src []byte) (document, error) {
	if err := checkText(src); err != nil {
		return nil, err
	}
	if c.Format == TOML {
		return parseTOML(src, c.Key)
	}
	return parseJSON(src, c.Key)
}

// blank is the document of a file that does not exist.
func blank(c Client) document {
	d, err := parse(c, nil)
	if err != nil {
		panic("client: a blank " + c.Name + " file does not parse: " + err.Error())
	}
	return d
}

var bom = []byte("\xef\xbb\xbf")

// bomLen is the length of the byte order mark src begins with, 0 for none.
func bomLen(src []byte) int {
	if bytes.HasPrefix(src, bom) {
		return len(bom)
	}
	return 0
}

func checkText(src []byte) error {
	if bytes.HasPrefix(src, []byte("\xff\xfe")) || bytes.HasPrefix(src, []byte("\xfe\xff")) {
		return &refusal{-1, "the file is UTF-16", "save it as UTF-8"}
	}
	if utf8.Valid(src) {
		return nil
	}
	at := 0
	for {
		r, n := utf8.DecodeRune(src[at:])
		if r == utf8.RuneError && n <= 1 {
			return &refusal{at, "the file is not UTF-8 here", "save it as UTF-8"}
		}
		at += n
	}
}

// newline is the line end that src uses first.
func newline(src []byte) string {
	if i := bytes.IndexByte(src, '\n'); i > 0 && src[i-1] == '\r' {
		return "\r\n"
	}
	return "\n"
}

// span is a half-open range of offsets.
type span struct{ start, end int }

// splice puts text in the place of a span.
type splice struct {
	span
	text string
}

// edit is a set of splices that do not overlap, in any order.
type edit []splice

func insert(at int, text string) splice { return splice{span{at, at}, text} }
func cut(start, end int) splice         { return splice{span{start, end}, ""} }

// apply returns a new text. Of two insertions at one offset the first in e
// comes first.
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

// verify parses after and makes sure that it says what before says but for
// the entry, which is o, or absent where o is nil. It is the last guard: what
// it finds would be a fault of ours, so the file is left alone.
func verify(c Client, before document, after []byte, name string, o object) (document, error) {
	fault := &refusal{-1, "the entry cannot be edited in this file without touching something else", fixByHand}
	doc, err := parse(c, after)
	if err != nil {
		return nil, fault
	}
	value, there, err := doc.value(name)
	if err != nil || there != (o != nil) || there && !equal(value, o.decoded()) {
		return nil, fault
	}
	if !equal(drop(before.decoded(), c.Key, name), drop(doc.decoded(), c.Key, name)) {
		return nil, fault
	}
	return doc, nil
}

// drop takes the entry out of a decoded document, and the container with it
// when that leaves it empty.
func drop(doc map[string]any, key, name string) map[string]any {
	if servers, ok := doc[key].(map[string]any); ok {
		delete(servers, name)
		if len(servers) == 0 {
			delete(doc, key)
		}
	}
	return doc
}

// equal is reflect.DeepEqual on decoded documents, with NaN equal to itself.
func equal(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for k, v := range a {
			if w, ok := b[k]; !ok || !equal(v, w) {
				return false
			}
		}
		return true
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, equal)
	case []map[string]any:
		b, ok := b.([]map[string]any)
		return ok && slices.EqualFunc(a, b, func(x, y map[string]any) bool { return equal(x, y) })
	case float64:
		b, ok := b.(float64)
		return ok && (a == b || math.IsNaN(a) && math.IsNaN(b))
	}
	return reflect.DeepEqual(a, b)
}

// isBlank reports whether s has nothing but white space, as JSON and TOML see
// it.
func isBlank(s []byte) bool { return len(bytes.Trim(s, " \t\r\n")) == 0 }

// indentAt is the white space that begins the line of an offset.
func indentAt(src []byte, offset int) string {
	line := src[bytes.LastIndexByte(src[:offset], '\n')+1 : offset]
	if n := bomLen(src); bytes.HasPrefix(line, bom) {
		line = line[n:]
	}
	return string(line[:len(line)-len(bytes.TrimLeft(line, " \t"))])
}

// printable makes a line safe for a terminal: control and invisible characters
// become "?".
func printable(line string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\t':
			return r
		case r < ' ', r >= 0x7f && r < 0xa0, // controls
			r >= 0x200b && r <= 0x200f, r >= 0x2028 && r <= 0x202e, // zero width, direction
			r >= 0x2060 && r <= 0x206f, r == 0xfeff:
			return '?'
		}
		return r
	}, line)
}
