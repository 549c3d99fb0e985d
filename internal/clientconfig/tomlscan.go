package clientconfig

import (
	"bytes"
	"strings"

	"github.com/BurntSushi/toml"
)

// itemKind is the kind of an expression in a TOML document.
type itemKind int

const (
	tomlPair   itemKind = iota // key = value
	tomlHeader                 // [table]
	tomlList                   // [[array of tables]]
)

// item is one expression of a TOML document.
type item struct {
	span  // whole lines, including the newline
	kind  itemKind
	path  []string // path of the table or key, from the root
	at    int      // offset of the expression itself
	table int      // index of the header that contains a pair, -1 for the root
	first int      // its marks are marks[first:last]
	last  int
}

// maxParts limits the parts of a dotted key, those of all keys in one value together, and
// the nesting depth of a value, because the parser takes quadratic time.
const maxParts = 64

// tomlScan splits a document into expressions. It does not validate the document; the real
// parser does. The limits on depth and dotted keys protect that parser.
type tomlScan struct {
	src   []byte
	pos   int
	items []item
	marks []mark
}

// scanTOML scans src. It fails with a refusal on syntax that no valid document has.
func scanTOML(src []byte) (*tomlScan, error) {
	s := &tomlScan{src: src, pos: bomLen(src)}
	table := -1
	for {
		s.skipAny(" \t\r\n")
		if s.pos == len(src) {
			return s, nil
		}
		if src[s.pos] == '#' {
			s.skipComment()
			continue
		}
		it := item{at: s.pos, table: table, first: len(s.marks)}
		it.start = bytes.LastIndexByte(src[:s.pos], '\n') + 1
		if it.start == 0 {
			it.start = bomLen(src)
		}
		if err := s.scanExpression(&it); err != nil {
			return nil, err
		}
		s.skipAny(" \t\r")
		if s.pos < len(src) && src[s.pos] == '#' {
			s.skipComment()
		}
		s.skipAny("\r")
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
	return &refusal{s.pos, "invalid TOML" + reason, fixSyntax}
}

func (s *tomlScan) skipAny(set string) {
	for s.pos < len(s.src) && strings.IndexByte(set, s.src[s.pos]) >= 0 {
		s.pos++
	}
}

func (s *tomlScan) accept(text string) bool {
	return bytes.HasPrefix(s.src[s.pos:], []byte(text))
}

func (s *tomlScan) skipComment() {
	n := lengthTo(s.src[s.pos:], "\n")
	s.marks = append(s.marks, mark{span: span{s.pos, s.pos + n}, kind: markComment})
	s.pos += n
}

// scanExpression scans a header, or a key with its value.
func (s *tomlScan) scanExpression(it *item) (err error) {
	closing := "="
	switch {
	case s.accept("[["):
		it.kind, closing = tomlList, "]]"
		s.pos += 2
	case s.accept("["):
		it.kind, closing = tomlHeader, "]"
		s.pos++
	}
	if it.path, err = s.scanKey(); err != nil {
		return err
	}
	if !s.accept(closing) {
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
	return s.skipValue()
}

// scanKey scans a key and the space around it.
func (s *tomlScan) scanKey() ([]string, error) {
	var path []string
	for len(path) < maxParts {
		s.skipAny(" \t")
		part, err := s.scanPart()
		if err != nil {
			return nil, err
		}
		path = append(path, part)
		s.skipAny(" \t")
		if !s.accept(".") {
			return path, nil
		}
		s.pos++
	}
	return nil, s.refuse(": too many parts in a key")
}

// scanPart scans one bare or quoted part of a key.
func (s *tomlScan) scanPart() (string, error) {
	start := s.pos
	if s.accept(`"`) || s.accept(`'`) {
		if err := s.skipString(); err != nil {
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

// unquote decodes the string from start to the current position, or returns "".
func (s *tomlScan) unquote(start int) string {
	var doc struct{ V string }
	if _, err := toml.Decode("V = "+string(s.src[start:s.pos]), &doc); err != nil {
		return ""
	}
	return doc.V
}

// skipString skips a string of any of the four kinds.
func (s *tomlScan) skipString() error {
	quote := s.src[s.pos]
	mark := strings.Repeat(string(quote), 3)
	long := s.accept(mark)
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
			return s.refuse(": unterminated string")
		case s.accept(mark):
			s.pos += len(mark)
			for n := 0; long && n < 2 && s.accept(mark[:1]); n++ { // """"" ends with two quotes of its own
				s.pos++
			}
			return nil
		}
	}
	s.pos = begin
	return s.refuse(": unterminated string")
}

// skipValue skips a value and records its marks.
func (s *tomlScan) skipValue() error {
	s.skipAny(" \t")
	v := tomlValue{begin: s.pos}
	for s.pos < len(s.src) {
		done, err := s.skipToken(&v)
		if done || err != nil {
			return err
		}
	}
	return s.checkValue(v)
}

// tomlValue is the state of scanning a value.
type tomlValue struct {
	begin, depth int
	nth          int // number of commas at depth 1
	dots         int
}

// skipToken skips the next part of a value, and reports whether the value ends.
func (s *tomlScan) skipToken(v *tomlValue) (done bool, err error) {
	start := s.pos
	switch b := s.src[s.pos]; b {
	case '\n', '#':
		if v.depth == 0 {
			return true, s.checkValue(*v)
		}
		if b == '#' {
			s.skipComment()
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
			return false, s.refuse(": nesting too deep")
		}
		s.pos++
	case ']', '}':
		s.pos++
		v.depth--
		return v.depth <= 0, nil
	case '"', '\'':
		if err := s.skipString(); err != nil {
			return false, err
		}
		s.mark(start, markString, *v)
		return v.depth == 0, nil
	case '.':
		if v.dots++; v.dots > maxParts {
			return false, s.refuse(": too many parts in keys")
		}
		s.pos++
	default:
		s.skipWord()
		s.mark(start, markScalar, *v)
	}
	return false, nil
}

// checkValue rejects a missing value.
func (s *tomlScan) checkValue(v tomlValue) error {
	if isBlank(s.src[v.begin:s.pos]) {
		return s.refuse(": missing value")
	}
	return nil
}

// skipWord skips an unquoted part of a value: a number, a date, a boolean, or a part of a key
// in an inline table.
func (s *tomlScan) skipWord() {
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
