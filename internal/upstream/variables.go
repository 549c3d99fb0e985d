package upstream

import (
	"slices"
	"strings"

	"github.com/loadout-dev/loadout/internal/lazyregexp"
	"github.com/loadout-dev/loadout/internal/secretname"
)

// Kinds of variables.
const (
	FromEnv    = "env"    // ${NAME}, ${env:NAME}, ${env://NAME}
	FromInput  = "input"  // ${input:ID}
	FromUser   = "user"   // ${{user.NAME}}
	FromSecret = "secret" // ${{secrets.NAME}}
	FromPath   = "path"   // ${workspaceFolder} and other predefined names
	// FromPlatform is a platform value: ${{NAME}} or ${{NAME.FIELD}}.
	FromPlatform = "platform"
	// Unknown is text that looks like a variable but is not one.
	Unknown = "unknown"
	// NotPermitted is a platform value that the server may not receive.
	NotPermitted = "not permitted"
	// Invalid is a value that is not valid where its variable is used.
	Invalid = "invalid"
)

// maxExpanded is the maximum total size in bytes of a configuration's strings
// after their variables are replaced.
const maxExpanded = 1 << 20

// part is a literal or a variable.
type part struct {
	literal string
	v       *variable
}

// variable is a parsed ${...} reference.
type variable struct {
	source   string // text of the reference as written
	kind     string
	name     string
	fallback []part // default after :-
	optional bool   // :- is present
}

// fieldName matches the name of a secret or a user field.
var fieldName = lazyregexp.New(`^[A-Za-z0-9_](?:[A-Za-z0-9_.-]{0,126}[A-Za-z0-9_])?$`)

// printableVariable matches unknown variables that are safe to print. Other
// text may be a password that contains "${".
var printableVariable = lazyregexp.New(`^[A-Za-z0-9_.:/ -]{1,64}$`)

// predefined lists the variables for well-known paths.
var predefined = []string{"workspaceFolder", "workspaceRoot", "workspaceFolderBasename", "userHome", "pathSeparator", "/"}

// parseTemplate splits s into literals and variables. $${ is an escaped ${. An
// unterminated ${ is an unknown variable, so that it is reported rather than
// passed through.
func parseTemplate(s string, depth int) []part {
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
		n := variableLength(s[i:])
		out = append(out, part{v: parseVariable(s[i:i+n], depth)})
		s = s[i+n:]
	}
	flush()
	return out
}

// variableLength returns the length of the variable at the start of s. The
// variable ends at the matching brace, else at the first closing brace, else at
// the end of s.
func variableLength(s string) int {
	const most = 512 // maximum length with nested braces, to avoid quadratic time
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

// parseVariable parses s as a variable. depth is the nesting level of defaults.
func parseVariable(s string, depth int) *variable {
	const maxNested = 8
	v := &variable{source: s, kind: Unknown, name: strings.TrimSpace(strings.Trim(s, "${}"))}
	if !printableVariable.MatchString(v.name) {
		v.name = "…"
	}
	if inner, ok := cutAffixes(s, "${{", "}}"); ok {
		inner = strings.TrimSpace(inner)
		for prefix, kind := range map[string]string{"user.": FromUser, "secrets.": FromSecret} {
			if name, ok := strings.CutPrefix(inner, prefix); ok && fieldName.MatchString(name) {
				v.kind, v.name = kind, name
			}
		}
		if secretname.IsVariable(inner) {
			v.kind, v.name = FromPlatform, inner
		}
		return v
	}
	inner, ok := cutAffixes(s, "${", "}")
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
	case kind == FromEnv && !envName.MatchString(name), kind == FromInput && !fieldName.MatchString(name):
		return v
	}
	v.kind, v.name, v.optional = kind, name, optional
	if optional {
		v.fallback = parseTemplate(fallback, depth+1)
	}
	return v
}

func cutAffixes(s, begin, end string) (string, bool) {
	s, ok := strings.CutPrefix(s, begin)
	if !ok {
		return "", false
	}
	return strings.CutSuffix(s, end)
}

// eachVariable calls f for each variable in parts, including those in defaults.
func eachVariable(parts []part, f func(*variable)) {
	for _, p := range parts {
		if p.v != nil {
			f(p.v)
			eachVariable(p.v.fallback, f)
		}
	}
}
