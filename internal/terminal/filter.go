package terminal

import (
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	maxSequence = 64       // bytes of the parameters of a control sequence
	maxString   = 64 << 10 // characters of a string, such as a title or text for the clipboard
)

// Filter passes the output of an untrusted program to a terminal. It passes
// text, line feeds, CR, BS, tabs, and the sequences that set colors (SGR) or
// erase the line (EL). It replaces the sequence that moves the cursor to the
// first column (CHA) with CR. It removes all other control characters and
// sequences, such as those that move the cursor, clear the screen, set the
// title or the clipboard, create links, or reorder text. Invalid UTF-8 becomes
// U+FFFD.
//
// A sequence or character may be split over several writes; it is written when
// it is complete. A Filter is not safe for concurrent use.
type Filter struct {
	w       io.Writer
	state   filterState
	partial []byte          // start of a character
	params  strings.Builder // parameters of a control sequence
	length  int             // length of the current string, in characters
	styled  bool            // the last SGR sequence did not reset the style
}

// NewFilter returns a filter that writes to w.
func NewFilter(w io.Writer) *Filter { return &Filter{w: w} }

// filterState is the kind of sequence that the filter is in.
type filterState uint8

const (
	inText    filterState = iota
	inEscape              // after ESC
	inCommand             // after ESC and an intermediate character
	inControl             // after CSI
	inString              // after OSC, DCS, SOS, PM or APC
)

// Write filters p and writes the result. It returns len(p), or the error of the
// underlying writer.
func (f *Filter) Write(p []byte) (int, error) {
	in := p
	if len(f.partial) > 0 {
		in = append(f.partial, p...)
		f.partial = nil
	}
	var out strings.Builder
	for len(in) > 0 {
		if !utf8.FullRune(in) {
			f.partial = append([]byte(nil), in...)
			break
		}
		r, n := utf8.DecodeRune(in)
		f.next(&out, r)
		in = in[n:]
	}
	if err := f.write(out.String()); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Close ends the output: it drops an incomplete sequence and resets the style.
// It does not close the underlying writer.
func (f *Filter) Close() error {
	var out strings.Builder
	if len(f.partial) > 0 {
		f.next(&out, utf8.RuneError)
	}
	if f.styled {
		out.WriteString("\x1b[0m")
	}
	*f = Filter{w: f.w}
	return f.write(out.String())
}

func (f *Filter) write(s string) error {
	if s == "" {
		return nil
	}
	_, err := io.WriteString(f.w, s)
	return err
}

// next handles a character.
func (f *Filter) next(out *strings.Builder, r rune) {
	switch f.state {
	case inEscape:
		f.escape(out, r)
	case inCommand:
		switch {
		case r >= ' ' && r <= '/':
		case r >= '0' && r <= '~':
			f.state = inText
		default:
			f.text(out, r)
		}
	case inControl:
		f.control(out, r)
	case inString:
		f.length++
		switch {
		case r == 0x1b: // the next character ends the string, or begins another sequence
			f.state = inEscape
		case r == 0x07, r == 0x18, r == 0x1a, r == 0x9c, f.length > maxString:
			f.state = inText
		}
	default:
		f.text(out, r)
	}
}

// text handles a character outside of a sequence.
func (f *Filter) text(out *strings.Builder, r rune) {
	f.state = inText
	switch r {
	case 0x1b:
		f.state = inEscape
	case 0x9b: // CSI
		f.beginControl()
		f.params.WriteByte('!') // the terminal may not understand it, so it is never passed
	case 0x90, 0x98, 0x9d, 0x9e, 0x9f: // DCS, SOS, OSC, PM, APC
		f.beginString()
	case '\r', '\b':
		out.WriteRune(r)
	default:
		if !controls(r) {
			out.WriteRune(r)
		}
	}
}

// escape handles the character after ESC.
func (f *Filter) escape(out *strings.Builder, r rune) {
	switch {
	case r == '[':
		f.beginControl()
	case strings.ContainsRune("]PX^_", r): // OSC, DCS, SOS, PM, APC
		f.beginString()
	case r >= ' ' && r <= '/':
		f.state = inCommand
	case r >= '0' && r <= '~':
		f.state = inText
	default:
		f.text(out, r)
	}
}

func (f *Filter) beginControl() {
	f.state = inControl
	f.params.Reset()
}

func (f *Filter) beginString() { f.state, f.length = inString, 0 }

// control handles a character after CSI.
func (f *Filter) control(out *strings.Builder, r rune) {
	switch {
	case r >= ' ' && r <= '?':
		if f.params.Len() <= maxSequence {
			f.params.WriteByte(byte(r))
		}
	case r >= '@' && r <= '~':
		f.state = inText
		p := f.params.String()
		if r == 'G' && (p == "" || p == "0" || p == "1") { // first column
			out.WriteByte('\r')
			return
		}
		if !isAllowed(p, r) {
			return
		}
		out.WriteString("\x1b[" + p + string(r))
		if r == 'm' {
			f.styled = strings.Trim(p, "0") != ""
		}
	default:
		f.text(out, r)
	}
}

// isAllowed reports whether a control sequence sets colors or erases the line.
func isAllowed(params string, final rune) bool {
	switch final {
	case 'm':
		return len(params) <= maxSequence && strings.Trim(params, "0123456789;:") == ""
	case 'K':
		return params == "" || params == "0" || params == "1" || params == "2"
	}
	return false
}

// controls reports whether r controls a terminal or changes the direction of
// text. Unlike [IsControl], it permits the joiners in emoji and in scripts.
func controls(r rune) bool {
	return unicode.IsControl(r) && r != '\t' && r != '\n' || unicode.Is(unicode.Bidi_Control, r)
}
