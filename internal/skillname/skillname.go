// Package skillname implements the rules for skill names. It never looks at
// files.
package skillname

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Normalize returns s in the form used to compare names: trimmed and in NFKC.
func Normalize(s string) string { return Trim(norm.NFKC.String(Trim(s))) }

// Slug converts any text to a valid name: at most 64 lower-case ASCII letters,
// digits and single hyphens. It returns "skill" if no characters are left.
func Slug(s string) string {
	var b strings.Builder
	hyphen := false
	for _, r := range strings.ToLower(norm.NFKD.String(s)) {
		switch {
		case 'a' <= r && r <= 'z', '0' <= r && r <= '9':
			if hyphen && b.Len() > 0 {
				b.WriteByte('-')
			}
			hyphen = false
			b.WriteRune(r)
		case unicode.Is(unicode.Mn, r):
		default:
			hyphen = true
		}
		if b.Len() >= 63 {
			break
		}
	}
	if b.Len() == 0 {
		return "skill"
	}
	return strings.TrimRight(b.String(), "-")
}

// IsPortable reports whether every consumer of skills accepts the name s: 1 to
// 64 lower-case ASCII letters, digits and single inner hyphens.
func IsPortable(s string) bool {
	if s == "" || len(s) > 64 || s[0] == '-' || s[len(s)-1] == '-' || strings.Contains(s, "--") {
		return false
	}
	return !strings.ContainsFunc(s, func(r rune) bool {
		return r != '-' && (r < 'a' || r > 'z') && (r < '0' || r > '9')
	})
}

// IsValid reports whether the reference validator accepts the name s, in the form that
// [Normalize] returns: 1 to 64 lower-case letters and digits of any script, and single
// inner hyphens.
func IsValid(s string) bool {
	if s == "" || utf8.RuneCountInString(s) > 64 || s != strings.ToLower(s) || s[0] == '-' || s[len(s)-1] == '-' || strings.Contains(s, "--") {
		return false
	}
	return !strings.ContainsFunc(s, func(r rune) bool { return r != '-' && !unicode.IsLetter(r) && !unicode.IsNumber(r) })
}

// Trim trims the same characters as Python's str.strip, which is what the
// reference validator uses.
func Trim(s string) string {
	return strings.TrimFunc(s, func(r rune) bool { return unicode.IsSpace(r) || 0x1c <= r && r <= 0x1f })
}

// IsPythonModule reports whether ref is a dotted name of Python identifiers, as
// in app.tools.requests. Skills of other systems list such modules among their
// dependencies. The specification allows no dots in names of skills.
func IsPythonModule(ref string) bool {
	parts := strings.Split(ref, ".")
	return len(parts) > 1 && !slices.ContainsFunc(parts, func(p string) bool {
		return p == "" || '0' <= p[0] && p[0] <= '9' || strings.ContainsFunc(p, func(r rune) bool {
			return r != '_' && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9')
		})
	})
}
