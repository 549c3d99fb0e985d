package hub

import "io"

// roomy is a body of JSON with a bounded number of values: an empty object has two bytes,
// and takes hundreds once it is read. At one too many it ends, in a byte that no JSON has.
type roomy struct {
	io.ReadCloser
	left  int    // so many more may come
	ended func() // called when there were too many

	text, escaped bool // inside of a string, and behind a backslash there
}

func (b *roomy) Read(p []byte) (int, error) {
	if b.left < 0 {
		return 0, io.EOF
	}
	n, err := b.ReadCloser.Read(p)
	for i, c := range p[:n] {
		if b.begins(c); b.left < 0 {
			b.ended()
			p[i] = 0
			return i + 1, nil
		}
	}
	return n, err
}

// begins counts what each value or name has before or behind it.
func (b *roomy) begins(c byte) {
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
