package clientconfig

import (
	"bytes"
	"strings"

	"github.com/BurntSushi/toml"
)

// expressionKind is the kind of an expression in a TOML document.
type expressionKind int

const (
	tomlPair   expressionKind = iota // key = value
	tomlHeader                       // [table]
	tomlList                         // [[array of tables]]
)

// expression is a key with its value, or a table header.
type expression struct {
	span  // whole lines, including the newline
	kind  expressionKind
	path  []string // path of the table or key from the root
	at    int      // offset of the expression
	table int      // index of the header before a pair, or -1 for the root
	first int      // index of its first mark; its marks are marks[first:last]
	last  int
}

// maxParts is the maximum number of key parts, per dotted key and per value,
// and the maximum nesting depth of a value. It bounds the running time of the
// parser, which is quadratic.
const maxParts = 64

// tomlScan splits a document into expressions. It leaves validation to the
// parser. Its limits protect the parser from deep nesting and long keys.
type tomlScan struct {
	src   []byte
	pos   int
	items []expression
	marks []mark
}

// scanTOML scans src. It returns a refusal for syntax that no valid document
// contains.
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
		it := expression{at: s.pos, table: table, first: len(s.marks)}
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

// scanExpression scans a table header, or a key and its value.
func (s *tomlScan) scanExpression(it *expression) (err error) {
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

// scanKey scans a dotted key and the space around it.
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

// unquote decodes the string from start to the current position. It returns ""
// if the string is invalid.
func (s *tomlScan) unquote(start int) string {
	var doc struct{ V string }
	if _, err := toml.Decode("V = "+string(s.src[start:s.pos]), &doc); err != nil {
		return ""
	}
	return doc.V
}

// skipString skips any of the four kinds of TOML strings.
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

// tomlValue holds the state for scanning a value.
type tomlValue struct {
	begin, depth int
	nth          int // number of commas at depth 1
	dots         int
}

// skipToken skips the next token of a value. done reports whether the value has
// ended.
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

// checkValue returns an error if the value is missing.
func (s *tomlScan) checkValue(v tomlValue) error {
	if isBlank(s.src[v.begin:s.pos]) {
		return s.refuse(": missing value")
	}
	return nil
}

// skipWord skips an unquoted token: a number, a date, a boolean, or a part of a
// key in an inline table.
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
