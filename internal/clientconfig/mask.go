package clientconfig

import (
	"net/url"
	"strings"

	"github.com/loadout-dev/loadout/internal/redact"
)

// mark is a comment or a scalar value, with its position in a document.
type mark struct {
	span
	kind markKind
	in   bool   // whether it belongs to the entry
	key  string // member of the entry that contains the value
	nth  int    // index in the member's list, or -1 if the value is not in a list
	text string // decoded string; set only in the entry
}

type markKind int

const (
	markString  markKind = iota
	markScalar           // number or date
	markWord             // true, false, null
	markComment          // masked like a value, because comments can contain tokens
)

const hidden = redact.Marker

// maskText returns src with each mark replaced with the text that show returns
// for it. The number of lines is preserved.
func maskText(src []byte, marks []mark, show func(mark) string) string {
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

// showNewEntry returns a function for maskText that reveals the new entry.
func showNewEntry(src []byte) func(mark) string {
	return func(m mark) string {
		if m.in {
			return string(src[m.start:m.end])
		}
		return placeholder(m, src)
	}
}

// showOldEntry returns a function for maskText that reveals the parts of an
// existing entry that cannot be secret: values that the new entry also
// contains, the type, the command, flag names, and the host of a URL.
func showOldEntry(src []byte, known map[string]bool) func(mark) string {
	return func(m mark) string {
		raw := string(src[m.start:m.end])
		switch {
		case !m.in || m.kind != markString || strings.Contains(raw, "\n"):
			return placeholder(m, src)
		case known[m.text]:
			return raw
		case m.nth < 0 && (m.key == "type" || m.key == "transport" || m.key == "command" || m.key == "cmd") && !strings.Contains(m.text, "="):
			return raw
		case m.nth < 0 && (m.key == "url" || m.key == "httpUrl" || m.key == "serverUrl" || m.key == "uri"):
			return `"` + maskURL(m.text) + `"`
		case m.nth >= 0 && m.key == "args":
			return `"` + maskArgument(m.text) + `"`
		}
		return placeholder(m, src)
	}
}

// placeholder returns the text that replaces a masked value or comment.
func placeholder(m mark, src []byte) string {
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

// maskURL masks the parts of a URL that can contain a token: user, path and
// query.
func maskURL(s string) string {
	u, err := url.Parse(s)
	if err != nil || u.Host == "" {
		return hidden
	}
	return u.Scheme + "://" + u.Host + "/" + hidden
}

// maskArgument masks the value of a flag, and any argument that is neither a
// flag nor Loadout's own subcommand.
func maskArgument(s string) string {
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
