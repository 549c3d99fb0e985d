package api

import "io"

// limitedJSON limits the number of values in a JSON body: an empty object has
// two bytes, but takes hundreds in memory. At one value too many the body ends,
// with a byte that is invalid in JSON.
type limitedJSON struct {
	io.ReadCloser
	left       int    // values that may still follow
	onExceeded func() // called if there are too many

	text, escaped bool // inside a string, and after a backslash there
}

func (b *limitedJSON) Read(p []byte) (int, error) {
	if b.left < 0 {
		return 0, io.EOF
	}
	n, err := b.ReadCloser.Read(p)
	for i, c := range p[:n] {
		if b.countValues(c); b.left < 0 {
			b.onExceeded()
			p[i] = 0
			return i + 1, nil
		}
	}
	return n, err
}

// countValues counts the characters that separate or start values.
func (b *limitedJSON) countValues(c byte) {
	switch {
	case b.escaped:
		b.escaped = false
	case b.text:
		b.escaped, b.text = c == '\\', c != '"'
	case c == '"':
		b.text = true
	case c == ',' || c == '[' || c == '{':
		b.left--
	}
}
