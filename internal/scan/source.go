package scan

import (
	"bytes"
	"unicode/utf8"
)

// source is text to scan. It remembers the last requested position, because
// positions are mostly requested in order. Counting lines from the beginning
// each time would take quadratic time.
type source struct {
	name string
	data []byte

	at, line, column int // the last requested position
	// lines maps each line to one of the file, if the data is a part of it.
	lines []int
	// work is the number of bytes that patterns and searches have processed,
	// some of them repeatedly. It grows linearly with the text.
	work int

	lower []byte         // data in lower case, for countNamed
	named map[string]int // results of countNamed
}

func newSource(name string, data []byte) *source {
	return &source{name: name, data: data, line: 1, column: 1}
}

// position returns the position of the text between two offsets.
func (t *source) position(from, to int) position {
	for i := 0; i < utf8.UTFMax && from > 0 && from < len(t.data) && !utf8.RuneStart(t.data[from]); i++ {
		from--
	}
	t.moveTo(from)
	line := t.line
	if t.lines != nil {
		line = t.lines[max(0, min(line, len(t.lines))-1)]
	}
	return position{file: t.name, line: line, column: t.column, excerpt: string(t.data[from:max(from, min(to, from+4*maxExcerpt, len(t.data)))])}
}

// moveTo moves the remembered position forward or back to an offset.
func (t *source) moveTo(to int) {
	passed := t.data[min(t.at, to):max(t.at, to)]
	t.work += len(passed)
	lines := bytes.Count(passed, []byte("\n"))
	switch {
	case lines > 0:
		start := bytes.LastIndexByte(t.data[:to], '\n') + 1
		t.work += to - start
		if to < t.at {
			lines = -lines
		}
		t.line, t.column = t.line+lines, 1+utf8.RuneCount(t.data[start:to])
	case to < t.at:
		t.column = max(1, t.column-utf8.RuneCount(passed))
	default:
		t.column += utf8.RuneCount(passed)
	}
	t.at = to
}

// lineAt returns the line that contains an offset, within 200 bytes.
func (t *source) lineAt(at int) []byte {
	first, last := max(0, at-200), min(len(t.data), at+200)
	return t.data[first+bytes.LastIndexByte(t.data[first:at], '\n')+1 : at+lineLength(t.data[at:last])]
}

// keyOffset returns the offset of a YAML or JSON key in data, or -1.
func keyOffset(data []byte, key string) int {
	for at := 0; key != "" && at < len(data); at++ {
		i := bytes.Index(data[at:], []byte(key))
		if i < 0 {
			return -1
		}
		at += i
		before, after := at-1, at+len(key)
		if before >= 0 && (data[before] == '"' || data[before] == '\'') && after < len(data) && data[after] == data[before] {
			before, after = before-1, after+1
		}
		for range 8 {
			if after < len(data) && data[after] == ' ' {
				after++
			}
		}
		if (before < 0 || bytes.IndexByte([]byte("\n\t {,"), data[before]) >= 0) && after < len(data) && data[after] == ':' {
			return at
		}
	}
	return -1
}
