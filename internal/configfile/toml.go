package configfile

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/BurntSushi/toml"
)

// The TOML library copies the whole path for each key. These limits prevent it
// from allocating gigabytes for a megabyte of input.
const (
	maxKeyParts  = 8
	maxTOMLDepth = 8
)

func parseTOML(text string) ([]*Node, *Error) {
	s := &tomlScan{text: text, line: 1, positions: map[string]position{}}
	if bad := s.scan(); bad != nil {
		return nil, bad
	}
	var doc map[string]any
	md, err := toml.Decode(text, &doc)
	if err != nil {
		return nil, tomlError(err)
	}
	if len(doc) == 0 {
		return nil, nil
	}
	r := tomlReader{budget: newBudget(), positions: s.positions, order: map[string]int{}}
	for i, k := range md.Keys() {
		p := ""
		for _, part := range k { // parent tables may have no header
			if p = joinKey(p, part); r.order[p] == 0 {
				r.order[p] = i + 1
			}
		}
	}
	n, bad := r.value(doc, "", 1)
	if bad != nil {
		return nil, bad
	}
	return []*Node{n}, nil
}

// tomlError converts an error from the TOML library. It drops messages that
// quote the file.
func tomlError(err error) *Error {
	pe, ok := errors.AsType[toml.ParseError](err)
	if !ok {
		return &Error{Message: "not valid TOML"}
	}
	e := &Error{Line: pe.Position.Line, Column: pe.Position.Col, Message: "not valid TOML"}
	switch m := pe.Message; {
	case strings.HasPrefix(m, "Key "):
		e.Message += ": " + strings.ToLower(m[:1]) + strings.TrimSuffix(m[1:], ".")
	case !strings.ContainsAny(m, "\"'"):
		e.Message += ": " + m
	}
	return e
}

// sep separates the parts of a dotted key that is used as a map key.
const sep = "\x00"

type position struct{ line, column int }

// tomlScan scans a file before the library parses it. It enforces limits that
// the library lacks, and records positions that the library does not return. It
// may be wrong after the first syntax error.
type tomlScan struct {
	text      string
	i         int
	line      int
	start     int // offset of the current line
	depth     int
	dots      int
	table     string // parts of the current table header, joined
	positions map[string]position
}

func (s *tomlScan) position() position {
	return position{s.line, utf8.RuneCountInString(s.text[s.start:s.i]) + 1}
}

func (s *tomlScan) scan() *Error {
	fresh := true // whether a statement can start here
	for s.i < len(s.text) {
		if fresh && s.depth == 0 && !strings.ContainsRune(" \t\r\n#", rune(s.text[s.i])) {
			s.statement()
			fresh = false
		}
		switch c := s.text[s.i]; c {
		case '\n':
			s.line++
			s.start = s.i + 1
			s.dots = 0
			fresh = true
		case '#':
			if n := strings.IndexByte(s.text[s.i:], '\n'); n >= 0 {
				s.i += n - 1
			} else {
				s.i = len(s.text)
			}
		case '"', '\'':
			s.skipString(c)
		case '{', '[':
			s.depth++
			s.dots = 0
		case '}', ']':
			s.depth = max(s.depth-1, 0)
		case '=', ',':
			s.dots = 0
		case '.':
			s.dots++
		}
		if s.depth > maxTOMLDepth || s.dots >= maxKeyParts {
			p := s.position()
			return &Error{Line: p.line, Column: p.column, TooLarge: true, Message: fmt.Sprintf(
				"too large (limits: %d levels, %d parts in a key)", maxTOMLDepth, maxKeyParts)}
		}
		s.i++
	}
	return nil
}

// skipString advances i to the last quote of a string.
func (s *tomlScan) skipString(q byte) {
	end := string(q)
	if long := strings.Repeat(end, 3); strings.HasPrefix(s.text[s.i:], long) {
		end = long
	}
	for s.i += len(end); s.i < len(s.text); s.i++ {
		switch c := s.text[s.i]; {
		case c == '\\' && q == '"':
			s.i++
			if s.i < len(s.text) && s.text[s.i] == '\n' {
				s.line++
				s.start = s.i + 1
			}
		case c == '\n':
			s.line++
			s.start = s.i + 1
		case strings.HasPrefix(s.text[s.i:], end):
			s.i += len(end) - 1
			for len(end) == 3 && s.i+1 < len(s.text) && s.text[s.i+1] == q {
				s.i++ // up to two quotes may precede the closing three
			}
			return
		}
	}
}

// statement records the position of the table header or key at i.
func (s *tomlScan) statement() {
	at, rest := s.position(), s.text[s.i:]
	line, _, _ := strings.Cut(rest, "\n")
	if header := strings.HasPrefix(line, "["); header {
		parts := keyParts(strings.TrimLeft(line, "["))
		s.table = strings.Join(parts, sep)
		s.record("", parts, at)
		return
	}
	s.record(s.table, keyParts(line), at)
}

// record stores the position of a key and of its parents, unless they already
// have one.
func (s *tomlScan) record(table string, parts []string, at position) {
	p := table
	for _, part := range parts {
		p = joinKey(p, part)
		if _, ok := s.positions[p]; !ok {
			s.positions[p] = at
		}
	}
}

func joinKey(p, part string) string {
	if p == "" {
		return part
	}
	return p + sep + part
}

// keyParts parses the dotted key at the start of a line.
func keyParts(line string) []string {
	var out []string
	for len(out) <= maxKeyParts {
		line = strings.TrimLeft(line, " \t")
		var part string
		if line != "" && (line[0] == '"' || line[0] == '\'') {
			end := 1
			for end < len(line) && line[end] != line[0] {
				if line[end] == '\\' && line[0] == '"' {
					end++
				}
				end++
			}
			if end >= len(line) {
				return out
			}
			part = line[1:end]
			if line[0] == '"' {
				if u, err := strconv.Unquote(line[:end+1]); err == nil {
					part = u
				}
			}
			line = line[end+1:]
		} else {
			end := strings.IndexAny(line, ".=] \t\r")
			if end < 0 {
				return out
			}
			part, line = line[:end], line[end:]
		}
		out = append(out, part)
		line = strings.TrimLeft(line, " \t")
		if !strings.HasPrefix(line, ".") {
			return out
		}
		line = line[1:]
	}
	return out
}

type tomlReader struct {
	budget    *budget
	positions map[string]position
	order     map[string]int
	last      position // position of the enclosing value
}

func (r *tomlReader) value(v any, p string, depth int) (*Node, *Error) {
	at, ok := r.positions[p]
	if !ok {
		at = r.last
	}
	around := r.last
	r.last = at
	defer func() { r.last = around }()
	n := &Node{Line: max(at.line, 1), Column: max(at.column, 1)}
	var items []any
	switch v := v.(type) {
	case map[string]any:
		n.Kind = Map
		keys := slices.SortedFunc(maps.Keys(v), func(a, b string) int {
			return cmp.Or(cmp.Compare(r.order[joinKey(p, a)], r.order[joinKey(p, b)]), cmp.Compare(a, b))
		})
		for _, k := range keys {
			if !r.budget.spend(k, depth) {
				return nil, tooLargeError(n.Line, n.Column)
			}
			c, err := r.value(v[k], joinKey(p, k), depth+1)
			if err != nil {
				return nil, err
			}
			n.Fields = append(n.Fields, Field{Key: k, Line: c.Line, Column: c.Column, Value: c})
		}
	case []any:
		n.Kind, items = List, v
	case []map[string]any:
		n.Kind = List
		for _, m := range v {
			items = append(items, m)
		}
	case string:
		n.Kind, n.Text = String, v
	case bool:
		n.Kind, n.Text = Bool, strconv.FormatBool(v)
	case int64:
		n.Kind, n.Text = Number, strconv.FormatInt(v, 10)
	case float64:
		n.Kind, n.Text = Number, strconv.FormatFloat(v, 'g', -1, 64)
	case time.Time:
		n.Kind, n.Text = String, v.Format(time.RFC3339Nano)
	default:
		n.Kind = Null
	}
	for _, item := range items {
		c, err := r.value(item, p, depth+1)
		if err != nil {
			return nil, err
		}
		n.Items = append(n.Items, c)
	}
	if !r.budget.spend(n.Text, depth) {
		return nil, tooLargeError(n.Line, n.Column)
	}
	return n, nil
}
