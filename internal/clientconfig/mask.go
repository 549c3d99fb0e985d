package clientconfig

import (
	"net/url"
	"strings"

	"github.com/loadout-dev/loadout/internal/redact"
)

// mark is a comment or a scalar value in a document, and where it stands.
type mark struct {
	span
	kind markKind
	in   bool   // in the entry
	key  string // the member of the entry it is the value of, or an element of
	nth  int    // which element, -1 for the value itself
	text string // of a string, decoded; set in the entry only
}

type markKind int

const (
	markString  markKind = iota
	markScalar           // a number or a date
	markWord             // true, false, null
	markComment          // kept out of sight like a value: people park tokens in them
)

const hidden = redact.Marker

// masked returns src with every value and comment hidden but those that show
// lets through. It has the same line ends at the same places.
func masked(src []byte, marks []mark, show func(mark) string) string {
	var b strings.Builder
	at := 0
	for _, m := range marks {
		b.Write(src[at:m.start])
		text := show(m)
		b.WriteString(text)
		for range strings.Count(string(src[m.start:m.end]), "\n") - strings.Count(text, "\n") {
			b.WriteString("\n" + hidden)
		}
		at = m.end
	}
	b.Write(src[at:])
	return b.String()
}

// showNew lets through what is in the entry, which is ours.
func showNew(src []byte) func(mark) string {
	return func(m mark) string {
		if m.in {
			return string(src[m.start:m.end])
		}
		return hide(m, src)
	}
}

// showOld lets through, of an entry that may be a person's, what cannot be a
// secret: values of the new entry, the type, the command, the names of flags,
// the host of a URL.
func showOld(src []byte, known map[string]bool) func(mark) string {
	return func(m mark) string {
		raw := string(src[m.start:m.end])
		switch {
		case !m.in || m.kind != markString || strings.Contains(raw, "\n"):
			return hide(m, src)
		case known[m.text]:
			return raw
		case m.nth < 0 && (m.key == "type" || m.key == "command") && !strings.Contains(m.text, "="):
			return raw
		case m.nth < 0 && (m.key == "url" || m.key == "httpUrl"):
			return `"` + hostOnly(m.text) + `"`
		case m.nth >= 0 && m.key == "args":
			return `"` + flagOnly(m.text) + `"`
		}
		return hide(m, src)
	}
}

// hide stands for a value or comment.
func hide(m mark, src []byte) string {
	switch m.kind {
	case markString:
		return `"` + hidden + `"`
	case markScalar:
		return hidden
	case markWord:
		return string(src[m.start:m.end])
	}
	text := string(src[m.start:m.end])
	switch {
	case strings.HasPrefix(text, "#"):
		return "# " + hidden
	case strings.HasPrefix(text, "/*") && !strings.Contains(text, "\n"):
		return "/* " + hidden + " */"
	case strings.HasPrefix(text, "/*"):
		return "/* " + hidden
	}
	return "// " + hidden
}

// hostOnly leaves out what a URL may carry a token in: user, path and query.
func hostOnly(s string) string {
	u, err := url.Parse(s)
	if err != nil || u.Host == "" {
		return hidden
	}
	return u.Scheme + "://" + u.Host + "/" + hidden
}

// flagOnly leaves out what a flag is set to, and what is no flag but the name
// of our own subcommand.
func flagOnly(s string) string {
	name, _, set := strings.Cut(s, "=")
	switch {
	case s == "mcp":
		return s
	case !strings.HasPrefix(name, "-") || len(name) > 40 || strings.ContainsAny(name, " \t\"\\"):
		return hidden
	case set:
		return name + "=" + hidden
	case strings.HasPrefix(name, "--"):
		return name
	case len(name) == 2: // -x, but not -xSECRET
		return name
	}
	return hidden
}
