// Package redact replaces secrets in texts before they are shown, logged or sent. It only
// finds values that it was given; it never guesses what looks like a secret.
//
// Start reading at [New].
package redact

import (
	"bufio"
	"bytes"
	"cmp"
	"io"
	"slices"
	"strings"
)

// Marker replaces a secret without a name.
const Marker = "•••"

const (
	// MinLength is the length in bytes below which a value is not worth replacing: shorter
	// ones occur in unrelated texts. Callers that know better may pass shorter ones.
	MinLength = 6

	minFragment = 4
	maxLine     = 1 << 20
)

// Secret is a value and the text that replaces it.
type Secret struct {
	Value       string
	Replacement string // "" for [Marker]
}

// Redactor replaces secrets in texts. It is immutable and safe for concurrent use.
type Redactor struct {
	secrets []Secret // longest first
}

// New returns a redactor of secrets. It ignores empty values. Of secrets with the same
// value the first wins.
func New(secrets ...Secret) *Redactor {
	r := &Redactor{}
	for _, s := range secrets {
		s.Replacement = cmp.Or(s.Replacement, Marker)
		if s.Value != "" {
			r.secrets = append(r.secrets, s)
		}
	}
	slices.SortStableFunc(r.secrets, func(a, b Secret) int { return cmp.Or(len(b.Value)-len(a.Value), cmp.Compare(a.Value, b.Value)) })
	r.secrets = slices.CompactFunc(r.secrets, func(a, b Secret) bool { return a.Value == b.Value })
	return r
}

// Values returns a redactor that replaces values with [Marker].
func Values(values ...string) *Redactor {
	secrets := make([]Secret, len(values))
	for i, v := range values {
		secrets[i].Value = v
	}
	return New(secrets...)
}

// String returns text with each secret replaced.
func (r *Redactor) String(text string) string {
	for _, s := range r.secrets {
		text = strings.ReplaceAll(text, s.Value, s.Replacement)
	}
	return text
}

// Bytes returns b with each secret replaced. The result is b itself if it contains none.
func (r *Redactor) Bytes(b []byte) []byte {
	for _, s := range r.secrets {
		if bytes.Contains(b, []byte(s.Value)) {
			b = bytes.ReplaceAll(b, []byte(s.Value), []byte(s.Replacement))
		}
	}
	return b
}

// Fragment is [Redactor.String] for a text cut out of a longer one. It also replaces the end
// of a secret at the start of the text and the start of a secret at its end, from four bytes.
func (r *Redactor) Fragment(text string) string {
	text = r.String(text)
	for _, s := range r.secrets {
		v := s.Value
		for n := min(len(v)-1, len(text)); n >= minFragment; n-- {
			if strings.HasPrefix(text, v[len(v)-n:]) {
				text = s.Replacement + text[n:]
				break
			}
		}
		for n := min(len(v)-1, len(text)); n >= minFragment; n-- {
			if strings.HasSuffix(text, v[:n]) {
				text = text[:len(text)-n] + s.Replacement
				break
			}
		}
	}
	return text
}

// FoldString is [Redactor.String] without regard to case, for host names and other short
// texts. Where folding changes the length of the text, it replaces the whole text.
func (r *Redactor) FoldString(text string) string {
	for _, s := range r.secrets {
		lower, value := strings.ToLower(text), strings.ToLower(s.Value)
		for i := strings.Index(lower, value); i >= 0 && len(lower) == len(text); i = strings.Index(lower, value) {
			text = text[:i] + s.Replacement + text[i+len(value):]
			lower = strings.ToLower(text)
			if strings.Contains(strings.ToLower(s.Replacement), value) {
				break // or the loop would never end
			}
		}
		if len(lower) != len(text) && strings.Contains(lower, value) {
			text = s.Replacement
		}
	}
	return text
}

// Stream returns a redactor for one text that arrives in chunks.
func (r *Redactor) Stream() *Stream {
	s := &Stream{redactor: r}
	if len(r.secrets) > 0 {
		s.longest = len(r.secrets[0].Value)
	}
	return s
}

// Stream redacts a text whose secrets may be split between chunks. It is not safe for
// concurrent use.
type Stream struct {
	redactor *Redactor
	longest  int    // length of the longest secret
	pending  []byte // the end of the input, which may be the start of a secret
}

// Write adds a chunk and returns the text that is ready. The result is valid until the next
// call. It holds back what may be the start of a secret before it replaces others, as it may
// contain a shorter one.
func (s *Stream) Write(chunk []byte) []byte {
	if s.longest == 0 {
		return chunk
	}
	data := append(s.pending, chunk...)
	end := s.alignToSecrets(data, len(data)-s.partialLength(data))
	out := s.redactor.Bytes(slices.Clone(data[:end]))
	s.pending = slices.Clone(data[end:])
	return out
}

// Flush returns the rest of the text. The stream can be used again.
func (s *Stream) Flush() []byte {
	out := s.redactor.Bytes(s.pending)
	s.pending = nil
	return out
}

// alignToSecrets returns the last offset up to end that is not inside a secret.
func (s *Stream) alignToSecrets(b []byte, end int) int {
	secrets := s.redactor.secrets
	for i := 0; i < len(secrets); i++ {
		n := len(secrets[i].Value)
		from := max(end-n+1, 0)
		at := bytes.Index(b[from:min(end+n-1, len(b))], []byte(secrets[i].Value))
		if at >= 0 {
			end = from + at
			i = -1 // another secret may span the new offset
		}
	}
	return end
}

// partialLength returns the length of the longest suffix of b that is the start of a secret.
func (s *Stream) partialLength(b []byte) int {
	for n := min(s.longest-1, len(b)); n > 0; n-- {
		suffix := b[len(b)-n:]
		for _, secret := range s.redactor.secrets {
			if len(secret.Value) > n && strings.HasPrefix(secret.Value, string(suffix)) {
				return n
			}
		}
	}
	return 0
}

// Lines returns a reader of from that passes each line through redactLine. It delivers a line
// once it is complete, without waiting for the next. It splits lines longer than 1 MiB, so a
// secret across such a split is not found.
func Lines(from io.Reader, redactLine func([]byte) []byte) io.Reader {
	return &lineReader{from: bufio.NewReaderSize(from, maxLine), redactLine: redactLine}
}

type lineReader struct {
	from       *bufio.Reader
	redactLine func([]byte) []byte
	ready      []byte
	err        error
}

// Read implements [io.Reader].
func (l *lineReader) Read(b []byte) (int, error) {
	for len(l.ready) == 0 {
		if l.err != nil {
			return 0, l.err
		}
		var line []byte
		line, l.err = l.from.ReadSlice('\n')
		if l.err == bufio.ErrBufferFull {
			l.err = nil
		}
		l.ready = l.redactLine(line)
	}
	n := copy(b, l.ready)
	l.ready = l.ready[n:]
	return n, nil
}
