package clientconfig

import (
	"bytes"
	"strings"

	"github.com/BurntSushi/toml"
)

// itemKind tells the expressions of a TOML document apart.
type itemKind int

const (
	tomlPair   itemKind = iota // key = value
	tomlHeader                 // [table]
	tomlList                   // [[array of tables]]
)

// item is one expression of a TOML document.
type item struct {
	span  // whole lines, line end included
	kind  itemKind
	path  []string // from the root: of the table, or of the key
	at    int      // where the expression itself begins
	table int      // index of the header a pair is below, -1 for the root
	first int      // marks[first:last] are in it
	last  int
}

// maxParts bounds the parts of a dotted key, those of all keys in one value
// together, and how deep a value nests: the parser takes quadratic time.
const maxParts = 64

// tomlScan finds the expressions of a document. It knows only what tells them
// apart; whether the document is valid is left to a real parser, which may
// then rely on the limits on depth and dotted keys that are kept here.
type tomlScan struct {
	src   []byte
	pos   int
	items []item
	marks []mark
}

// scanTOML stops with a refusal at what no valid document has.
func scanTOML(src []byte) (*tomlScan, error) {
	s := &tomlScan{src: src, pos: bomLen(src)}
	table := -1
	for {
		s.skip(" \t\r\n")
		if s.pos == len(src) {
			return s, nil
		}
		if src[s.pos] == '#' {
			s.comment()
			continue
		}
		it := item{at: s.pos, table: table, first: len(s.marks)}
		it.start = bytes.LastIndexByte(src[:s.pos], '\n') + 1
		if it.start == 0 {
			it.start = bomLen(src)
		}
		if err := s.expression(&it); err != nil {
			return nil, err
		}
		s.skip(" \t\r")
		if s.pos < len(src) && src[s.pos] == '#' {
			s.comment()
		}
		s.skip("\r")
		if s.pos < len(src) {
			if src[s.pos] != '\n' {
				return nil, s.refuse("")
			}
			s.pos++
		}
		it.end, it.last = s.pos, len(s.marks)
		if it.kind != tomlPair {
			table = len(s.items)
		}
		s.items = append(s.items, it)
	}
}

func (s *tomlScan) refuse(reason string) error {
	return &refusal{s.pos, "this is not valid TOML" + reason, fixSyntax}
}

func (s *tomlScan) skip(set string) {
	for s.pos < len(s.src) && strings.IndexByte(set, s.src[s.pos]) >= 0 {
		s.pos++
	}
}

func (s *tomlScan) next(text string) bool {
	return bytes.HasPrefix(s.src[s.pos:], []byte(text))
}

func (s *tomlScan) comment() {
	n := lengthTo(s.src[s.pos:], "\n")
	s.marks = append(s.marks, mark{span: span{s.pos, s.pos + n}, kind: markComment})
	s.pos += n
}

// expression reads a header, or a key with its value.
func (s *tomlScan) expression(it *item) (err error) {
	closing := "="
	switch {
	case s.next("[["):
		it.kind, closing = tomlList, "]]"
		s.pos += 2
	case s.next("["):
		it.kind, closing = tomlHeader, "]"
		s.pos++
	}
	if it.path, err = s.dotted(); err != nil {
		return err
	}
	if !s.next(closing) {
		return s.refuse("")
	}
	s.pos += len(closing)
	if it.kind != tomlPair {
		it.table = -1
		return nil
	}
	if it.table >= 0 {
		it.path = append(append([]string{}, s.items[it.table].path...), it.path...)
	}
	return s.value()
}

// dotted reads a key and the space around it.
func (s *tomlScan) dotted() ([]string, error) {
	var path []string
	for len(path) < maxParts {
		s.skip(" \t")
		part, err := s.part()
		if err != nil {
			return nil, err
		}
		path = append(path, part)
		s.skip(" \t")
		if !s.next(".") {
			return path, nil
		}
		s.pos++
	}
	return nil, s.refuse(": a key has too many parts")
}

// part reads one bare or quoted part of a key.
func (s *tomlScan) part() (string, error) {
	start := s.pos
	if s.next(`"`) || s.next(`'`) {
		if err := s.text(); err != nil {
			return "", err
		}
		return s.unquote(start), nil
	}
	for s.pos < len(s.src) && strings.IndexByte(".=]#'\" \t\r\n", s.src[s.pos]) < 0 {
		s.pos++
	}
	if s.pos == start {
		return "", s.refuse("")
	}
	return string(s.src[start:s.pos]), nil
}

// unquote is the value of the string from start to here, "" if it has none.
func (s *tomlScan) unquote(start int) string {
	var doc struct{ V string }
	if _, err := toml.Decode("V = "+string(s.src[start:s.pos]), &doc); err != nil {
		return ""
	}
	return doc.V
}

// text skips a string of any of the four kinds.
func (s *tomlScan) text() error {
	quote := s.src[s.pos]
	mark := strings.Repeat(string(quote), 3)
	long := s.next(mark)
	if !long {
		mark = mark[:1]
	}
	begin := s.pos
	for s.pos += len(mark); s.pos < len(s.src); s.pos++ {
		switch {
		case s.src[s.pos] == '\\' && quote == '"':
			s.pos++
		case s.src[s.pos] == '\n' && !long:
			s.pos = begin
			return s.refuse(": a string does not end")
		case s.next(mark):
			s.pos += len(mark)
			for n := 0; long && n < 2 && s.next(mark[:1]); n++ { // """"" ends with two of its own
				s.pos++
			}
			return nil
		}
	}
	s.pos = begin
	return s.refuse(": a string does not end")
}

// value skips a value and marks what is in it.
func (s *tomlScan) value() error {
	s.skip(" \t")
	v := tomlValue{begin: s.pos}
	for s.pos < len(s.src) {
		done, err := s.token(&v)
		if done || err != nil {
			return err
		}
	}
	return s.ended(v)
}

// tomlValue is how far a value has been read.
type tomlValue struct {
	begin, depth int
	nth          int // how many commas there were at depth 1
	dots         int
}

// token skips the next part of a value, and reports whether the value ends.
func (s *tomlScan) token(v *tomlValue) (done bool, err error) {
	start := s.pos
	switch b := s.src[s.pos]; b {
	case '\n', '#':
		if v.depth == 0 {
			return true, s.ended(*v)
		}
		if b == '#' {
			s.comment()
			return false, nil
		}
		s.pos++
	case ' ', '\t', '\r', '=':
		s.pos++
	case ',':
		s.pos++
		if v.depth == 1 {
			v.nth++
		}
	case '[', '{':
		if v.depth++; v.depth > maxParts {
			return false, s.refuse(": it is nested too deep")
		}
		s.pos++
	case ']', '}':
		s.pos++
		v.depth--
		return v.depth <= 0, nil
	case '"', '\'':
		if err := s.text(); err != nil {
			return false, err
		}
		s.mark(start, markString, *v)
		return v.depth == 0, nil
	case '.':
		if v.dots++; v.dots > maxParts {
			return false, s.refuse(": keys have too many parts")
		}
		s.pos++
	default:
		s.word()
		s.mark(start, markScalar, *v)
	}
	return false, nil
}

// ended refuses a value that is not there.
func (s *tomlScan) ended(v tomlValue) error {
	if isBlank(s.src[v.begin:s.pos]) {
		return s.refuse(": a value is missing")
	}
	return nil
}

// word skips what stands unquoted in a value: a number with its fraction, a
// date, a boolean, or a part of a key in an inline table.
func (s *tomlScan) word() {
	number := strings.IndexByte("+-0123456789", s.src[s.pos]) >= 0
	for s.pos < len(s.src) && strings.IndexByte(" \t\r\n,=[]{}#'\"", s.src[s.pos]) < 0 {
		if s.src[s.pos] == '.' {
			if !number {
				return
			}
			number = false
		}
		s.pos++
	}
}

func (s *tomlScan) mark(start int, kind markKind, v tomlValue) {
	if v.depth == 0 {
		v.nth = -1
	}
	if w := string(s.src[start:s.pos]); w == "true" || w == "false" {
		kind = markWord
	}
	s.marks = append(s.marks, mark{span: span{start, s.pos}, kind: kind, nth: v.nth})
}
