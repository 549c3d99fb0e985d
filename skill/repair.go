package skill

import (
	"bytes"
	"strings"
)

// repairPosition is the position and the field name of a repaired value.
type repairPosition struct {
	line, column int
	name         string
}

// maxRepairFields is the maximum number of fields that repair checks
// individually.
const maxRepairFields = 200

// repair quotes the values of fields and list items that are not valid YAML on
// their own. In 53 of 66 real files that fail to parse, the value is a
// description with a colon. Other such values start with a YAML indicator or a
// quoted word. repair returns the repaired block and the position of the first
// value that it quoted. It returns nil if it found nothing to quote.
func repair(block []byte) ([]byte, repairPosition) {
	var out bytes.Buffer
	var where repairPosition
	lines := strings.SplitAfter(string(block), "\n")
	for i, tried := 0, 0; i < len(lines); {
		f, ok := parseField(lines[i])
		end := i + 1
		for ok && end < len(lines) && continues(lines[end], f.indent) {
			end++
		}
		if ok {
			if tried++; tried > maxRepairFields {
				return nil, repairPosition{}
			}
		}
		if !ok || !f.isBroken(lines[i:end]) {
			for ; i < end; i++ {
				out.WriteString(lines[i])
			}
			continue
		}
		if where.name == "" {
			where = repairPosition{i + 1, f.column, f.name}
		}
		out.WriteString(lines[i][:f.indent] + f.lead + " '" + strings.ReplaceAll(f.text(lines[i+1:end]), "'", "''") + "'")
		out.WriteString(strings.Repeat("\n", end-i)) // preserve the numbers of the following lines
		i = end
	}
	if where.name == "" {
		return nil, repairPosition{}
	}
	return out.Bytes(), where
}

// field is a line of the form "key: value" or "- value" with a non-empty value.
type field struct {
	indent int    // number of leading spaces
	lead   string // "key:" or "-"
	value  string
	column int    // column of the value
	name   string // used in messages
}

func parseField(line string) (field, bool) {
	line = strings.TrimRight(line, "\r\n")
	text := strings.TrimLeft(line, " ")
	f := field{indent: len(line) - len(text)}
	if item, ok := strings.CutPrefix(text, "- "); ok {
		f.lead, f.value, f.name = "-", item, "the list item"
	} else if key, value, ok := strings.Cut(text, ":"); ok && plainKey(key) && (strings.HasPrefix(value, " ") || strings.HasPrefix(value, "\t")) {
		f.lead, f.value, f.name = key+":", value, key
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

// continues reports whether a line continues the value of the preceding field.
func continues(line string, indent int) bool {
	text := strings.TrimLeft(line, " \t")
	return line != "" && (len(line)-len(text) > indent || strings.TrimSpace(text) == "")
}

// isBroken reports whether the field's lines are not valid YAML on their own.
func (f field) isBroken(lines []string) bool {
	_, err := parseYAML([]byte(strings.Join(lines, "")))
	return err != nil
}

// text returns the value that the author probably meant: the value and its
// continuation lines, joined on one line and without surrounding quotes.
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

// yamlFix suggests a fix for a syntax error that repair did not correct.
func yamlFix(err *syntaxError) string {
	switch {
	case strings.Contains(err.msg, "tab"):
		return "indent with spaces, not tabs"
	case strings.Contains(err.msg, "could not find expected ':'"):
		return "write the line as field: value, or indent it if it continues the value above"
	case strings.Contains(err.msg, "end of stream"):
		return "close the quote or bracket that starts there"
	case strings.Contains(err.msg, "block mapping"), strings.Contains(err.msg, "block collection"):
		return "use the same indentation for all fields of a map"
	}
	return "put the value in double quotes, or write it under a line ending in |"
}
