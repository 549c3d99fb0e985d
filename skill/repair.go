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

// repair quotes the plain values of fields that YAML cannot read as they
// stand: mostly a description with a colon in it (53 of 66 real files that do
// not parse), else a value that begins with a character of YAML's own. It
// returns nil where it finds nothing to quote. The first field that was quoted
// is named.
func repair(block []byte) ([]byte, place) {
	var out bytes.Buffer
	var where place
	lines := strings.SplitAfter(string(block), "\n")
	for i := 0; i < len(lines); {
		f, ok := fieldOf(lines[i])
		if !ok || strings.TrimSpace(f.value) == "" {
			out.WriteString(lines[i]) // also the head of fields below it
			i++
			continue
		}
		end := i + 1
		for end < len(lines) && continues(lines[end], f.indent) {
			end++
		}
		if !needsQuotes(f.value, lines[i+1:end]) {
			for ; i < end; i++ {
				out.WriteString(lines[i])
			}
			continue
		}
		if where.key == "" {
			blanks := len(f.value) - len(strings.TrimLeft(f.value, " \t"))
			where = place{line: i + 1, column: f.indent + len(f.key) + 2 + blanks, key: f.key}
		}
		text := strings.TrimSpace(f.value)
		for _, l := range lines[i+1 : end] {
			if l = strings.TrimSpace(l); l != "" {
				text += " " + l
			}
		}
		out.WriteString(lines[i][:f.indent] + f.key + ": '" + strings.ReplaceAll(text, "'", "''") + "'\n")
		i = end
	}
	if where.key == "" {
		return nil, place{}
	}
	return out.Bytes(), where
}

// field is one line of the form "key: value".
type field struct {
	indent     int // blanks before the key
	key, value string
}

func fieldOf(line string) (field, bool) {
	line = strings.TrimRight(line, "\r\n")
	text := strings.TrimLeft(line, " ")
	key, value, ok := strings.Cut(text, ":")
	if !ok || key == "" || value != "" && value[0] != ' ' && value[0] != '\t' {
		return field{}, false
	}
	for i := 0; i < len(key); i++ {
		c := key[i]
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' || c == '_') {
			return field{}, false
		}
	}
	return field{len(line) - len(text), key, value}, true
}

// continues reports whether a line belongs to the value of a field above it.
func continues(line string, indent int) bool {
	text := strings.TrimLeft(line, " \t")
	return line != "" && (len(line)-len(text) > indent || strings.TrimSpace(text) == "")
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
