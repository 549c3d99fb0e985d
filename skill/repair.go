package skill

import (
	"bytes"
	"strings"
)

// place is where a repair was made.
type place struct {
	line, column int
	what         string
}

// maxRepairFields bounds the fields that repair tries one by one.
const maxRepairFields = 200

// repair quotes the values of fields and list items that YAML cannot read by
// themselves: mostly a description with a colon in it (53 of 66 real files
// that do not parse), else a value that begins with a character of YAML's own,
// or with a quoted word. It returns nil where it finds nothing to quote. The
// place is that of the first value it quoted.
func repair(block []byte) ([]byte, place) {
	var out bytes.Buffer
	var where place
	lines := strings.SplitAfter(string(block), "\n")
	for i, tried := 0, 0; i < len(lines); {
		f, ok := fieldOf(lines[i])
		end := i + 1
		for ok && end < len(lines) && continues(lines[end], f.indent) {
			end++
		}
		if ok {
			if tried++; tried > maxRepairFields {
				return nil, place{}
			}
		}
		if !ok || !f.broken(lines[i:end]) {
			for ; i < end; i++ {
				out.WriteString(lines[i])
			}
			continue
		}
		if where.what == "" {
			where = place{i + 1, f.column, f.what}
		}
		out.WriteString(lines[i][:f.indent] + f.lead + " '" + strings.ReplaceAll(f.text(lines[i+1:end]), "'", "''") + "'")
		out.WriteString(strings.Repeat("\n", end-i)) // what follows keeps its line
		i = end
	}
	if where.what == "" {
		return nil, place{}
	}
	return out.Bytes(), where
}

// field is a line of the form "key: value" or "- value" that has a value.
type field struct {
	indent int    // blanks before it
	lead   string // "key:" or "-"
	value  string
	column int    // of the value
	what   string // for a person
}

func fieldOf(line string) (field, bool) {
	line = strings.TrimRight(line, "\r\n")
	text := strings.TrimLeft(line, " ")
	f := field{indent: len(line) - len(text)}
	if item, ok := strings.CutPrefix(text, "- "); ok {
		f.lead, f.value, f.what = "-", item, "the list item"
	} else if key, value, ok := strings.Cut(text, ":"); ok && plainKey(key) && (strings.HasPrefix(value, " ") || strings.HasPrefix(value, "\t")) {
		f.lead, f.value, f.what = key+":", value, key
	}
	f.value = strings.TrimLeft(f.value, " \t")
	f.column = 1 + len(line) - len(f.value)
	f.value = strings.TrimRight(f.value, " \t")
	return f, f.value != "" && f.value[0] != '|' && f.value[0] != '>'
}

func plainKey(key string) bool {
	return key != "" && !strings.ContainsFunc(key, func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '-' && c != '_'
	})
}

// continues reports whether a line belongs to the value of a field above it.
func continues(line string, indent int) bool {
	text := strings.TrimLeft(line, " \t")
	return line != "" && (len(line)-len(text) > indent || strings.TrimSpace(text) == "")
}

// broken reports whether the lines of the field alone are not YAML.
func (f field) broken(lines []string) bool {
	_, err := parseYAML([]byte(strings.Join(lines, "")))
	return err != nil
}

// text is what the author will have meant: the value and the lines that
// continue it as one line, without quotes around the whole of it.
func (f field) text(more []string) string {
	text := f.value
	for _, l := range more {
		if l = strings.TrimSpace(l); l != "" {
			text += " " + l
		}
	}
	if q, last := text[0], len(text)-1; (q == '"' || q == '\'') && last > 0 && text[last] == q && strings.IndexByte(text[1:last], q) < 0 {
		return text[1:last]
	}
	return text
}

// yamlFix says how to mend what repair could not.
func yamlFix(err *syntaxError) string {
	switch {
	case strings.Contains(err.msg, "tab"):
		return "indent with spaces, not tabs"
	case strings.Contains(err.msg, "could not find expected ':'"):
		return "write the line as field: value, or indent it where it goes on with the value above"
	case strings.Contains(err.msg, "end of stream"):
		return "close the quote or bracket that begins there"
	case strings.Contains(err.msg, "block mapping"), strings.Contains(err.msg, "block collection"):
		return "indent the fields of one map alike"
	}
	return "put the value in double quotes, or write it under a line ending in |"
}
