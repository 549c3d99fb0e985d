// Package redact replaces secrets in text that is displayed, logged or sent. It
// only replaces given values and never guesses what may be a secret. Start
// reading at [New].
package redact

import (
	"bufio"
	"bytes"
	"cmp"
	"io"
	"slices"
	"strings"
)

// Marker is the default replacement for a secret.
const Marker = "•••"

const (
	// MinLength is the minimum length in bytes of a value that callers should
	// redact. Shorter values occur in unrelated text, but [New] accepts them.
	MinLength = 6

	minFragment = 4
	maxLine     = 1 << 20
)

// Secret is a value to redact and its replacement.
type Secret struct {
	Value       string
	Replacement string // "" for [Marker]
}

// Redactor replaces secrets in text. It is immutable and safe for concurrent
// use.
type Redactor struct {
	secrets []Secret // longest first
}

// New returns a redactor for the given secrets. It ignores empty values. If
// several secrets have the same value, it uses the first one.
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

// Bytes returns b with each secret replaced. If b contains no secret, it
// returns b itself.
func (r *Redactor) Bytes(b []byte) []byte {
	for _, s := range r.secrets {
		if bytes.Contains(b, []byte(s.Value)) {
			b = bytes.ReplaceAll(b, []byte(s.Value), []byte(s.Replacement))
		}
	}
	return b
}

// Fragment is like [Redactor.String], but text is part of a longer text. It
// also replaces a partial secret of at least four bytes: the end of a secret at
// the start of text, or the start of a secret at the end of text.
func (r *Redactor) Fragment(text string) string {
	return r.Ends(r.String(text))
}

// Ends is like [Redactor.Fragment], but only replaces partial secrets.
func (r *Redactor) Ends(text string) string {
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

// FoldString is like [Redactor.String], but ignores case. It is for host names
// and other short text. If folding changes the length, the whole text is
// replaced.
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

// Stream returns a redactor for text received in chunks.
func (r *Redactor) Stream() *Stream {
	s := &Stream{redactor: r}
	if len(r.secrets) > 0 {
		s.longest = len(r.secrets[0].Value)
	}
	return s
}

// Stream redacts text received in chunks, including secrets that are split
// between chunks. It is not safe for concurrent use.
type Stream struct {
	redactor *Redactor
	longest  int    // length of the longest secret
	pending  []byte // end of the input that may be the start of a secret
}

// Write adds a chunk and returns the text that can be released. The result is
// valid until the next call. Input that may be the start of a secret is held
// back before other secrets are replaced, because it may contain a shorter
// secret.
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

// Flush returns the rest of the text. The stream can then be reused.
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

// partialLength returns the length of the longest suffix of b that is the start
// of a secret.
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

// Lines returns a reader that passes each line of r through redactLine as soon
// as the line is complete. Lines longer than 1 MiB are split, and a secret that
// spans a split is not redacted.
func Lines(r io.Reader, redactLine func([]byte) []byte) io.Reader {
	return &lineReader{from: bufio.NewReaderSize(r, maxLine), redactLine: redactLine}
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
