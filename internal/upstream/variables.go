package upstream

import (
	"slices"
	"strings"

	"github.com/loadout-dev/loadout/internal/lazyregexp"
)

// Kinds of variables.
const (
	FromEnv    = "env"    // ${NAME}, ${env:NAME}, ${env://NAME}
	FromInput  = "input"  // ${input:ID}
	FromUser   = "user"   // ${{user.NAME}}
	FromSecret = "secret" // ${{secrets.NAME}}
	FromPath   = "path"   // ${workspaceFolder} and the like
	// Unknown is what looks like a variable and is none that exists here.
	Unknown = "unknown"
	// Invalid is a value that cannot stand where its variable does.
	Invalid = "invalid"
)

// maxExpanded bounds one value with its variables resolved, and all of a
// configuration together.
const maxExpanded = 1 << 20

// part is a piece of a text: what it says itself, or a variable.
type part struct {
	literal string
	v       *variable
}

// variable is a use of a value that comes from elsewhere.
type variable struct {
	source   string // as written
	kind     string
	name     string
	fallback []part // what follows :-
	optional bool   // there is a :-
}

// fieldName is the name of a secret or of a field of the person.
var fieldName = lazyregexp.New(`^[A-Za-z0-9_](?:[A-Za-z0-9_.-]{0,126}[A-Za-z0-9_])?$`)

// sayable is what is shown of a variable that is not known; other text may be a
// password with a ${ in it.
var sayable = lazyregexp.New(`^[A-Za-z0-9_.:/ -]{1,64}$`)

// predefined are the names of places.
var predefined = []string{"workspaceFolder", "workspaceRoot", "workspaceFolderBasename", "userHome", "pathSeparator", "/"}

// template splits a text into its parts. $${ stands for ${ itself. A ${ without
// an end is a variable that is not known, so that nothing that looks like one
// is ever handed on.
func template(s string, depth int) []part {
	var out []part
	var literal strings.Builder
	flush := func() {
		if literal.Len() > 0 {
			out = append(out, part{literal: literal.String()})
			literal.Reset()
		}
	}
	for s != "" {
		i := strings.Index(s, "${")
		if i < 0 {
			literal.WriteString(s)
			break
		}
		if i > 0 && s[i-1] == '$' {
			literal.WriteString(s[:i-1] + "${")
			s = s[i+2:]
			continue
		}
		literal.WriteString(s[:i])
		flush()
		n := extent(s[i:])
		out = append(out, part{v: variableOf(s[i:i+n], depth)})
		s = s[i+n:]
	}
	flush()
	return out
}

// extent is the length of the variable at the beginning of s: to the brace that
// ends it, the ones inside being in pairs, else to the first that could, else
// the whole.
func extent(s string) int {
	const most = 512 // of a variable with braces inside: hostile text is not read again and again
	open, first := 0, 0
	for i := range len(s) {
		if i > most && first > 0 {
			return first
		}
		switch s[i] {
		case '{':
			open++
		case '}':
			if first == 0 {
				first = i + 1
			}
			if open--; open == 0 {
				return i + 1
			}
		}
	}
	if first > 0 {
		return first
	}
	return len(s)
}

// variableOf reads a variable from its text.
func variableOf(s string, depth int) *variable {
	const maxNested = 8
	v := &variable{source: s, kind: Unknown, name: strings.TrimSpace(strings.Trim(s, "${}"))}
	if !sayable().MatchString(v.name) {
		v.name = "…"
	}
	if inner, ok := between(s, "${{", "}}"); ok {
		inner = strings.TrimSpace(inner)
		for prefix, kind := range map[string]string{"user.": FromUser, "secrets.": FromSecret} {
			if name, ok := strings.CutPrefix(inner, prefix); ok && fieldName().MatchString(name) {
				v.kind, v.name = kind, name
			}
		}
		return v
	}
	inner, ok := between(s, "${", "}")
	if !ok || depth > maxNested {
		return v
	}
	kind := FromEnv
	switch {
	case strings.HasPrefix(inner, "env:"):
		inner = strings.TrimPrefix(strings.TrimPrefix(inner, "env:"), "//")
	case strings.HasPrefix(inner, "input:"):
		kind, inner = FromInput, strings.TrimPrefix(inner, "input:")
	}
	name, fallback, optional := strings.Cut(inner, ":-")
	switch {
	case kind == FromEnv && slices.Contains(predefined, name):
		kind = FromPath
	case kind == FromEnv && !envName().MatchString(name), kind == FromInput && !fieldName().MatchString(name):
		return v
	}
	v.kind, v.name, v.optional = kind, name, optional
	if optional {
		v.fallback = template(fallback, depth+1)
	}
	return v
}

func between(s, begin, end string) (string, bool) {
	s, ok := strings.CutPrefix(s, begin)
	if !ok {
		return "", false
	}
	return strings.CutSuffix(s, end)
}

// each calls f for the variables of parts, those of fallbacks too.
func each(parts []part, f func(*variable)) {
	for _, p := range parts {
		if p.v != nil {
			f(p.v)
			each(p.v.fallback, f)
		}
	}
}
