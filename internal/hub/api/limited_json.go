package api

import "io"

// limitedJSON limits the number of values in a JSON body, because an empty
// object takes two bytes in JSON but hundreds of bytes in memory. When the
// limit is exceeded, the body ends with a byte that is invalid in JSON.
type limitedJSON struct {
	io.ReadCloser
	left       int    // number of values still allowed
	onExceeded func() // called when the limit is exceeded

	text, escaped bool // whether the next byte is in a string, and whether it follows a backslash
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

// countValues counts the characters that start or separate values.
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
