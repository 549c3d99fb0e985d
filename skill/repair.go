package skill

import (
	"bytes"
	"strings"
)

// place is where a repair was made.
type place struct {
	line, column int
	key          string
}

// repair quotes the plain values of top-level fields that YAML cannot read as
// they stand: mostly a description with a colon in it (53 of 66 real files
// that do not parse), else a value that begins with a character of YAML's
// own. It returns nil where it finds nothing to quote. The first field that
// was quoted is named; nested values are left alone.
func repair(block []byte) ([]byte, place) {
	var out bytes.Buffer
	var where place
	lines := strings.SplitAfter(string(block), "\n")
	for i := 0; i < len(lines); {
		key, value, ok := topField(lines[i])
		end := i + 1
		if ok {
			for end < len(lines) && continues(lines[end]) {
				end++
			}
		}
		if !ok || !needsQuotes(value, lines[i+1:end]) {
			for ; i < end; i++ {
				out.WriteString(lines[i])
			}
			continue
		}
		if where.key == "" {
			where = place{line: i + 1, column: len(key) + 2 + len(value) - len(strings.TrimLeft(value, " \t")), key: key}
		}
		text := strings.TrimSpace(value)
		for _, l := range lines[i+1 : end] {
			if l = strings.TrimSpace(l); l != "" {
				text += " " + l
			}
		}
		out.WriteString(key + ": '" + strings.ReplaceAll(text, "'", "''") + "'\n")
		i = end
	}
	if where.key == "" {
		return nil, place{}
	}
	return out.Bytes(), where
}

// topField splits "key: value" at the beginning of a line.
func topField(line string) (key, value string, ok bool) {
	line = strings.TrimRight(line, "\r\n")
	key, value, ok = strings.Cut(line, ":")
	if !ok || key == "" || value != "" && value[0] != ' ' && value[0] != '\t' {
		return "", "", false
	}
	for i := 0; i < len(key); i++ {
		c := key[i]
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' || c == '_') {
			return "", "", false
		}
	}
	return key, value, true
}

// continues reports whether a line belongs to the field above it.
func continues(line string) bool {
	return line != "" && (line[0] == ' ' || line[0] == '\t' || strings.TrimSpace(line) == "")
}

// needsQuotes reports whether a value is plain text that YAML misreads.
func needsQuotes(value string, more []string) bool {
	v := strings.TrimSpace(value)
	if v == "" {
		return false // a nested value
	}
	switch v[0] {
	case '|', '>':
		return false
	case '"', '\'':
		return !closedQuote(v, more)
	case '[', '{', '@', '`', '%', '*', '&', '!', ']', '}', ',':
		return true
	}
	for _, l := range append([]string{v}, more...) {
		if strings.Contains(l, ": ") || strings.HasSuffix(strings.TrimRight(l, " \t\r\n"), ":") {
			return true
		}
	}
	return strings.ContainsAny(v, "\t") || strings.HasPrefix(v, "- ") || strings.HasPrefix(v, "? ")
}

// closedQuote reports whether a quoted value ends where its text ends. What
// follows the closing quote is most often the rest of a sentence that begins
// with a quoted word.
func closedQuote(v string, more []string) bool {
	if len(more) > 0 {
		v += " " + strings.TrimSpace(strings.Join(more, " "))
	}
	q := v[0]
	for i := 1; i < len(v); i++ {
		switch {
		case q == '"' && v[i] == '\\':
			i++
		case v[i] == q && q == '\'' && i+1 < len(v) && v[i+1] == q:
			i++
		case v[i] == q:
			rest := strings.TrimSpace(v[i+1:])
			return rest == "" || rest[0] == '#'
		}
	}
	return false
}

// yamlFix says how to mend what repair could not.
func yamlFix(block []byte, err *syntaxError) string {
	switch {
	case bytes.Contains(block, []byte("\n\t")) && strings.Contains(err.msg, "tab"):
		return "indent with spaces, not tabs"
	case strings.Contains(err.msg, "control characters"):
		return "delete the control character"
	case strings.Contains(err.msg, "mapping values"):
		return "put the value in double quotes"
	}
	return "put the value in double quotes, or write it under a line ending in |"
}
