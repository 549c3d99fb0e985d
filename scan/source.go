package scan

import (
	"bytes"
	"unicode/utf8"
)

// source is a text that is looked through. It knows the place that was asked for
// last, as most are asked for in order: counting lines from the beginning for each
// would take quadratic time.
type source struct {
	name string
	data []byte

	at, line, column int // of the place that was asked for last
	// work is how many bytes were looked at by patterns and searches, some of them
	// more than once. It grows with the text, not faster.
	work int
}

func newSource(name string, data []byte) *source {
	return &source{name: name, data: data, line: 1, column: 1}
}

// place is a part of the text.
func (t *source) place(from, to int) place {
	for i := 0; i < utf8.UTFMax && from > 0 && from < len(t.data) && !utf8.RuneStart(t.data[from]); i++ {
		from--
	}
	t.move(from)
	return place{file: t.name, line: t.line, column: t.column, excerpt: string(t.data[from:max(from, min(to, from+4*maxExcerpt, len(t.data)))])}
}

// move counts lines and columns on, or back.
func (t *source) move(to int) {
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

// keyed is the offset of a key of YAML or JSON in a part of the text, -1 where it
// is not there.
func keyed(data []byte, key string) int {
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
