package skill

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
)

// Some skills of an earlier system are Python modules that declare
//
//	SKILL_MANIFEST = SkillManifest(name="…", description="…", tools=[…])
//
// or the same as a dict. The declaration is read as text, never executed: what
// is not a literal is passed over.

// maxPython bounds a Python file.
const maxPython = 1 << 20

var errNoManifest = errors.New("there is no SKILL_MANIFEST = … at the top level")

// DraftFromPython reads the literal SKILL_MANIFEST of a Python module.
func DraftFromPython(src []byte) (*Draft, error) {
	if len(src) > maxPython {
		return nil, fmt.Errorf("the file has more than %d bytes", maxPython)
	}
	p := python{src: manifestValue(src)}
	if p.src == "" {
		return nil, errNoManifest
	}
	fields := p.fields()
	d := &Draft{Name: fields["name"], Description: fields["description"], Version: fields["version"], Category: fields["category"]}
	if d.Name == "" {
		return nil, errors.New("SKILL_MANIFEST has no name that is a literal text")
	}
	d.Name = Slug(d.Name)
	for _, name := range p.toolNames() {
		d.Tools = append(d.Tools, Tool{Name: name})
	}
	return d, nil
}

// manifestValue is the text after "SKILL_MANIFEST =" or "SKILL_MANIFEST: T =".
func manifestValue(src []byte) string {
	for at := 0; ; {
		i := bytes.Index(src[at:], []byte("SKILL_MANIFEST"))
		if i < 0 {
			return ""
		}
		i += at
		at = i + len("SKILL_MANIFEST")
		if i > 0 && src[i-1] != '\n' {
			continue
		}
		line, _, _ := bytes.Cut(src[at:], []byte("\n"))
		if eq := bytes.IndexByte(line, '='); eq >= 0 && !bytes.HasPrefix(line[eq:], []byte("==")) {
			return string(src[at+eq+1:])
		}
	}
}

// python walks over the tokens of one bracketed expression.
type python struct{ src string }

// token is a string literal, or one other character.
type pyToken struct {
	text    string // of a string, or the identifier or character
	literal bool
}

// tokens yields the tokens up to the bracket that closes the expression, with
// the depth of brackets at each.
func (p python) tokens(yield func(t pyToken, depth int) bool) {
	depth := 0
	for i := 0; i < len(p.src); {
		c := p.src[i]
		switch {
		case c == '#':
			for i < len(p.src) && p.src[i] != '\n' {
				i++
			}
			continue
		case c == '"' || c == '\'':
			s, n := pyString(p.src[i:])
			if !yield(pyToken{s, true}, depth) {
				return
			}
			i += n
			continue
		case isWord(c):
			j := i
			for j < len(p.src) && isWord(p.src[j]) {
				j++
			}
			if !yield(pyToken{p.src[i:j], false}, depth) {
				return
			}
			i = j
			continue
		case strings.IndexByte("([{", c) >= 0:
			depth++
		case strings.IndexByte(")]}", c) >= 0:
			depth--
		}
		if c > ' ' && !yield(pyToken{string(c), false}, depth) {
			return
		}
		if i++; depth == 0 && strings.IndexByte(")]}", c) >= 0 {
			return
		}
	}
}

func isWord(c byte) bool {
	return c == '_' || '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z'
}

// fields are the texts given at the first level: name="…" or "name": "…",
// neighbouring literals joined.
func (p python) fields() map[string]string {
	out := map[string]string{}
	var key, last string
	for t, depth := range p.tokens {
		if depth != 1 {
			last = ""
			continue
		}
		switch {
		case (t.text == "=" || t.text == ":") && !t.literal && last != "":
			key, last = last, ""
		case t.text == "," && !t.literal:
			key, last = "", ""
		case t.literal && key != "":
			out[key] += t.text
		default:
			last = t.text
		}
	}
	return out
}

// toolNames are the texts given as name below the field tools.
func (p python) toolNames() []string {
	var out []string
	inTools, named := false, false
	for t, depth := range p.tokens {
		switch {
		case depth == 1 && t.text == "tools":
			inTools = true
		case depth == 1 && t.text == ",":
			inTools = false
		case inTools && depth == 3 && t.text == "name":
			named = true
		case inTools && named && t.literal:
			if named = false; len(out) < maxListItems {
				out = append(out, t.text)
			}
		case named && t.text != "=" && t.text != ":":
			named = false
		}
	}
	return out
}

// pyString reads a string literal at the beginning of s and returns its text
// and how long it is written.
func pyString(s string) (string, int) {
	quote := s[:1]
	if strings.HasPrefix(s, strings.Repeat(quote, 3)) {
		quote = s[:3]
	}
	var b strings.Builder
	for i := len(quote); i < len(s); i++ {
		switch {
		case strings.HasPrefix(s[i:], quote):
			return b.String(), i + len(quote)
		case s[i] == '\\' && i+1 < len(s):
			i++
			b.WriteString(map[byte]string{'n': "\n", 't': "\t", '\n': ""}[s[i]])
			if strings.IndexByte("nt\n", s[i]) < 0 {
				b.WriteByte(s[i])
			}
		case s[i] == '\n' && len(quote) == 1:
			return b.String(), i // not closed
		default:
			b.WriteByte(s[i])
		}
	}
	return b.String(), len(s)
}
