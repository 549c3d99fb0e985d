// Package pythonskill reads skills in a legacy format: Python modules that
// declare
//
//	SKILL_MANIFEST = SkillManifest(name="…", description="…", tools=[…])
//
// or the same as a dict. It reads the declaration as text and never executes it.
// It skips expressions that are not literals. Start reading at [ReadDraft].
package pythonskill

import (
	"errors"
	"fmt"
	"github.com/loadout-dev/loadout/internal/printable"
	"github.com/loadout-dev/loadout/internal/skillname"
	"github.com/loadout-dev/loadout/skill"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Limits on a Python file.
const (
	maxBytes   = 1 << 20
	maxNesting = 50   // nested brackets
	maxTools   = 1000 // further tools are ignored
)

// ErrNoManifest is returned if a Python file does not declare a skill.
var ErrNoManifest = errors.New("SKILL_MANIFEST not found at the top level")

// ReadDraft parses the literal SKILL_MANIFEST of a Python module. If there are
// several, it uses the first that has a name. If there is none, the error is
// [ErrNoManifest].
func ReadDraft(src []byte) (*skill.Draft, error) {
	if len(src) > maxBytes {
		return nil, fmt.Errorf("file too large (limit %d bytes)", maxBytes)
	}
	p := scanner{src: string(src)}
	err := ErrNoManifest
	for p.findManifest() {
		d := newDraft(p.readExpression(0, ""))
		if d != nil {
			return d, nil
		}
		err = errors.New("name in SKILL_MANIFEST is missing or not a string literal")
	}
	return nil, err
}

// newDraft converts a manifest to a draft. It returns nil if the manifest has
// no name.
func newDraft(v pyValue) *skill.Draft {
	name := printable.OneLine(v.text("name"))
	if name == "" {
		return nil
	}
	d := &skill.Draft{Name: skillname.Slug(name), Description: printable.OneLine(v.text("description")), Version: printable.OneLine(v.text("version")), Category: printable.OneLine(v.text("category"))}
	for _, t := range v.fields["tools"].items {
		tool := printable.OneLine(t.text("name"))
		if t.kind == pyText {
			tool = printable.OneLine(t.literal)
		}
		if tool != "" && len(d.Tools) < maxTools {
			d.Tools = append(d.Tools, skill.Tool{Name: tool, Description: printable.OneLine(t.text("description"))})
		}
	}
	return d
}

// MaxDescription is the maximum length of a description in characters.
const MaxDescription = 1024

// TruncateDescription truncates a long description at a word boundary. It
// reports whether it did.
func TruncateDescription(s string) (string, bool) {
	r := []rune(s)
	if len(r) <= MaxDescription {
		return s, false
	}
	s = string(r[:MaxDescription-1])
	if i := strings.LastIndexByte(s, ' '); i > 0 {
		s = s[:i]
	}
	return s + "…", true
}

type pyKind uint8

const (
	pyOpaque pyKind = iota // not a literal
	pyText
	pyNumber
	pyList
	pyFields // a dict, or the keyword arguments of a call
)

type pyValue struct {
	kind    pyKind
	literal string
	items   []pyValue
	fields  map[string]pyValue
}

// text returns the value of a field if it is a string or a number, and ""
// otherwise.
func (v pyValue) text(field string) string {
	if f := v.fields[field]; f.kind == pyText || f.kind == pyNumber {
		return f.literal
	}
	return ""
}

// scanner reads a Python module's source in a single pass.
type scanner struct {
	src   string
	pos   int
	depth int // number of open brackets; inside brackets, line ends are ignored
}

func (p *scanner) hasMore() bool { return p.pos < len(p.src) }

// findManifest moves past the next "SKILL_MANIFEST =", with or without a type
// annotation. It must be at the beginning of a line, outside brackets and
// string literals.
func (p *scanner) findManifest() bool {
	const word = "SKILL_MANIFEST"
	for p.depth = 0; p.hasMore(); {
		first := p.depth == 0 && (p.pos == 0 || p.src[p.pos-1] == '\n')
		if rest := p.src[p.pos:]; first && strings.HasPrefix(rest, word) && (len(rest) == len(word) || !isWord(rest[len(word)])) {
			p.pos += len(word)
			if p.skipSpace(); p.startsWith(':') {
				p.pos++
				p.skipExpression("=")
			}
			if p.startsWith('=') && !strings.HasPrefix(p.src[p.pos:], "==") {
				p.pos++
				return true
			}
			continue
		}
		p.skipToken()
	}
	return false
}

// skipToken skips a character, string literal, comment or bracket.
func (p *scanner) skipToken() {
	switch c := p.src[p.pos]; c {
	case '#':
		p.skipComment()
	case '"', '\'':
		p.readQuoted(false)
	case '(', '[', '{':
		p.depth++
		p.pos++
	case ')', ']', '}':
		p.depth = max(p.depth-1, 0)
		p.pos++
	default:
		p.pos++
	}
}

func (p *scanner) skipComment() {
	if n := strings.IndexByte(p.src[p.pos:], '\n'); n >= 0 {
		p.pos += n
	} else {
		p.pos = len(p.src)
	}
}

// skipSpace skips white space and comments.
func (p *scanner) skipSpace() {
	for p.hasMore() {
		switch c := p.src[p.pos]; {
		case c == '#':
			p.skipComment()
		case c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\n' && p.depth > 0:
			p.pos++
		case c == '\\' && strings.HasPrefix(strings.TrimPrefix(p.src[p.pos+1:], "\r"), "\n"):
			p.pos += strings.IndexByte(p.src[p.pos:], '\n') + 1
		default:
			return
		}
	}
}

func (p *scanner) startsWith(c byte) bool { return p.hasMore() && p.src[p.pos] == c }

// isExpressionEnd reports whether an expression ends at the current position:
// at a comma, a closing bracket, the end of the line or one of the characters
// in stop.
func (p *scanner) isExpressionEnd(stop string) bool {
	if !p.hasMore() {
		return true
	}
	c := p.src[p.pos]
	return strings.IndexByte(",)]}", c) >= 0 || strings.IndexByte(stop, c) >= 0 || p.depth == 0 && (c == '\n' || c == ';')
}

// skipExpression moves to the end of an expression.
func (p *scanner) skipExpression(stop string) {
	outer := p.depth
	for p.hasMore() && (p.depth > outer || !p.isExpressionEnd(stop)) {
		p.skipToken()
	}
	p.depth = outer
}

// readExpression reads an expression up to its end. Unless it is a single
// literal, the result is opaque.
func (p *scanner) readExpression(level int, stop string) pyValue {
	p.skipSpace()
	v := p.readLiteral(level)
	p.skipSpace()
	if !p.isExpressionEnd(stop) {
		p.skipExpression(stop)
		return pyValue{}
	}
	return v
}

// readLiteral reads a literal. If there is none, the result is opaque.
func (p *scanner) readLiteral(level int) pyValue {
	if !p.hasMore() || level > maxNesting {
		return pyValue{}
	}
	switch c := p.src[p.pos]; {
	case c == '(' || c == '[':
		return p.readSequence(level)
	case c == '{':
		return pyValue{kind: pyFields, fields: p.readDict(level)}
	case c == '"' || c == '\'':
		return p.readTexts()
	case '0' <= c && c <= '9' || c == '.':
		start := p.pos
		for p.hasMore() && (isWord(p.src[p.pos]) || p.src[p.pos] == '.') {
			p.pos++
		}
		return pyValue{kind: pyNumber, literal: p.src[start:p.pos]}
	case !isWord(c):
		return pyValue{}
	}
	start := p.pos
	for p.hasMore() && (isWord(p.src[p.pos]) || p.src[p.pos] == '.') {
		p.pos++
	}
	word := p.src[start:p.pos]
	if p.startsWith('"') || p.startsWith('\'') {
		p.pos = start
		return p.readTexts()
	}
	if p.skipSpace(); p.startsWith('(') && word != "lambda" {
		return pyValue{kind: pyFields, fields: p.readArguments(level)}
	}
	return pyValue{}
}

// readSequence reads a list, a tuple or a value in parentheses.
func (p *scanner) readSequence(level int) pyValue {
	round := p.src[p.pos] == '('
	v, commas := pyValue{kind: pyList}, 0
	p.readItems(func() {
		v.items = append(v.items, p.readExpression(level+1, ""))
	}, &commas)
	if round && commas == 0 && len(v.items) == 1 {
		return v.items[0]
	}
	return v
}

// readDict reads a dict. If a key is repeated, the last value is used.
func (p *scanner) readDict(level int) map[string]pyValue {
	fields := map[string]pyValue{}
	p.readItems(func() {
		key := p.readExpression(level+1, ":")
		if !p.startsWith(':') {
			return // an item of a set, or an unpacked dict
		}
		p.pos++
		if v := p.readExpression(level+1, ""); key.kind == pyText {
			fields[key.literal] = v
		}
	}, nil)
	return fields
}

// readArguments reads the keyword arguments of a call.
func (p *scanner) readArguments(level int) map[string]pyValue {
	fields := map[string]pyValue{}
	p.readItems(func() {
		start := p.pos
		for p.hasMore() && isWord(p.src[p.pos]) {
			p.pos++
		}
		name := p.src[start:p.pos]
		if p.skipSpace(); name == "" || !p.startsWith('=') || strings.HasPrefix(p.src[p.pos:], "==") {
			p.skipExpression("") // a positional argument
			return
		}
		p.pos++
		fields[name] = p.readExpression(level+1, "")
	}, nil)
	return fields
}

// readItems reads the items between brackets. It calls item at the start of
// each, and adds the number of commas to *commas if that is not nil.
func (p *scanner) readItems(item func(), commas *int) {
	p.depth++
	p.pos++
	for p.skipSpace(); p.hasMore(); p.skipSpace() {
		switch c := p.src[p.pos]; c {
		case ')', ']', '}':
			p.pos++
			p.depth--
			return
		case ',':
			p.pos++
			if commas != nil {
				*commas++
			}
		default:
			before := p.pos
			if item(); p.pos == before {
				p.pos++ // invalid Python
			}
		}
	}
	p.depth--
}

// readTexts reads adjacent string literals. If any is not plain text, for
// example an f-string, the whole value is opaque.
func (p *scanner) readTexts() pyValue {
	v := pyValue{kind: pyText}
	for {
		start := p.pos
		for p.hasMore() && isWord(p.src[p.pos]) {
			p.pos++
		}
		prefix := strings.ToLower(p.src[start:p.pos])
		if !p.startsWith('"') && !p.startsWith('\'') {
			p.pos = start
			return v
		}
		text, ok := p.readQuoted(strings.Contains(prefix, "r"))
		if !ok || prefix != "" && prefix != "r" && prefix != "u" {
			v.kind = pyOpaque
		}
		v.literal += text
		p.skipSpace()
	}
}

func isWord(c byte) bool {
	return c == '_' || '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z' || c >= utf8.RuneSelf
}

// readQuoted reads a string literal and returns its value. It returns false if
// the literal is not closed.
func (p *scanner) readQuoted(raw bool) (string, bool) {
	s := p.src[p.pos:]
	quote := s[:1]
	if strings.HasPrefix(s, strings.Repeat(quote, 3)) {
		quote = s[:3]
	}
	var b strings.Builder
	for i := len(quote); i < len(s); {
		switch {
		case strings.HasPrefix(s[i:], quote):
			p.pos += i + len(quote)
			return strings.ToValidUTF8(b.String(), "�"), true
		case s[i] == '\n' && len(quote) == 1:
			p.pos += i
			return "", false
		case s[i] == '\\' && i+1 < len(s):
			text, n := decodeEscape(s[i:])
			if raw {
				n = 2
				text = s[i : i+n]
			}
			b.WriteString(text)
			i += n
		default:
			b.WriteByte(s[i])
			i++
		}
	}
	p.pos = len(p.src)
	return "", false
}

// decodeEscape decodes the escape sequence at the start of s and returns its
// length. s must have at least two bytes. Unknown sequences are returned
// unchanged.
func decodeEscape(s string) (string, int) {
	const from, to = "abfnrtv\\'\"", "\a\b\f\n\r\t\v\\'\""
	if i := strings.IndexByte(from, s[1]); i >= 0 {
		return to[i : i+1], 2
	}
	switch c := s[1]; {
	case c == '\n':
		return "", 2
	case c == '\r' && len(s) > 2 && s[2] == '\n':
		return "", 3
	case '0' <= c && c <= '7':
		n := 2
		for n < len(s) && n < 4 && '0' <= s[n] && s[n] <= '7' {
			n++
		}
		return decodeRune(s[1:n], 8), n
	}
	digits := map[byte]int{'x': 2, 'u': 4, 'U': 8}[s[1]]
	if digits > 0 && len(s) >= 2+digits {
		if text := decodeRune(s[2:2+digits], 16); text != "" {
			return text, 2 + digits
		}
	}
	return s[:2], 2
}

// decodeRune returns the character whose code point is number in the given
// base, or "" if there is none.
func decodeRune(number string, base int) string {
	n, err := strconv.ParseUint(number, base, 32)
	if err != nil || n > utf8.MaxRune {
		return ""
	}
	return string(rune(n))
}
