package seal

import (
	"errors"
	"fmt"
	"io"

	"github.com/loadout-dev/loadout/sandbox"
)

const (
	// minSecret is the length from which a value, or a form of it, is replaced
	// wherever it turns up. A shorter one would be found in texts that have nothing
	// to do with it.
	minSecret = 6
	// maxSecrets bounds the bytes of all values of a redactor, which takes about
	// 300 bytes of memory for each.
	maxSecrets = 256 << 10
)

// Redactor replaces the values of secrets in texts by their names, also where they
// are written for JSON or a URL, or are a part of something in base64, as in the
// header of a request. It does not find what was compressed, encrypted, or broken
// into lines after it was encoded, nor values of fewer than six bytes. What it takes
// grows with the text alone, not with the number of secrets. It never changes, and
// is safe for concurrent use.
//
// Package sandbox has a smaller one inside, for values as they are, of one command.
type Redactor struct {
	words words
	marks [][]byte // what stands in place of the secret of a number
}

// NewRedactor returns a redactor of these secrets. It fails where all values
// together have more than 256 KiB.
func NewRedactor(secrets ...sandbox.Secret) (*Redactor, error) {
	r := &Redactor{words: newWords()}
	total := 0
	for _, s := range secrets {
		value := s.Reveal()
		if total += len(value); total > maxSecrets {
			return nil, fmt.Errorf("the secrets to hide have more than %d bytes", maxSecrets)
		}
		if len(value) < minSecret {
			continue
		}
		for _, form := range formsOf(value) {
			r.words.add(form, len(r.marks))
		}
		r.marks = append(r.marks, []byte("["+s.String()+"]"))
	}
	r.words.link()
	return r, nil
}

// Bytes returns b without secrets. It is b itself where there are none in it.
func (r *Redactor) Bytes(b []byte) []byte {
	s := stream{redactor: r}
	out := s.add(nil, b)
	if s.clean {
		return b
	}
	return s.end(out)
}

// Text is [Redactor.Bytes] for a string.
func (r *Redactor) Text(text string) string {
	s := stream{redactor: r}
	out := s.add(nil, []byte(text))
	if s.clean {
		return text
	}
	return string(s.end(out))
}

// Writer returns a writer that passes on to w what is written without secrets, also
// where one comes in pieces.
func (r *Redactor) Writer(w io.Writer) *Writer { return &Writer{stream: stream{redactor: r}, to: w} }

// Writer writes without secrets. What may be the beginning of one is held back until
// more is written, or it is closed. It is not safe for concurrent use.
type Writer struct {
	stream stream
	to     io.Writer
	closed bool
}

var errClosed = errors.New("write without secrets: the writer is closed")

// Write implements [io.Writer]. After an error of the writer below, some of p may
// have been written.
func (w *Writer) Write(p []byte) (int, error) {
	if w.closed {
		return 0, errClosed
	}
	if out := w.stream.add(nil, p); len(out) > 0 {
		if _, err := w.to.Write(out); err != nil {
			return 0, err
		}
	}
	return len(p), nil
}

// Close writes what was held back. It does not close the writer below. Closing
// again does nothing.
func (w *Writer) Close() error {
	if w.closed {
		return nil
	}
	w.closed = true
	if out := w.stream.end(nil); len(out) > 0 {
		_, err := w.to.Write(out)
		return err
	}
	return nil
}

// stream is a text that comes in pieces.
type stream struct {
	redactor *Redactor
	at       int32   // where in the words
	rest     []byte  // what came and is not said
	found    []found // in rest, one after the other, none touching
	clean    bool    // whether the first piece has no secret, nor the beginning of one
}

// found is a part of the rest that is a secret, or several of which each has a part
// of the next.
type found struct {
	from, to, secret int
	said             bool // its mark, so that more of it is dropped
}

// add appends to out what can be said by now.
func (s *stream) add(out, piece []byte) []byte {
	w := &s.redactor.words
	old := len(s.rest)
	s.rest = append(s.rest, piece...)
	for i := old; i < len(s.rest); i++ {
		s.at = w.next(s.at, s.rest[i])
		if n := w.nodes[s.at]; n.length > 0 {
			s.find(i+1-int(n.length), i+1, int(n.secret))
		}
	}
	sure := len(s.rest) - int(w.nodes[s.at].depth) // no secret that is still to end began before
	s.clean = old == 0 && len(s.found) == 0 && sure == len(s.rest)
	return s.say(out, sure)
}

// find notes a secret. One that has a part of those before becomes one with them.
func (s *stream) find(from, to, secret int) {
	f := found{from: from, to: to, secret: secret}
	for n := len(s.found); n > 0 && s.found[n-1].to > f.from; n-- {
		last := s.found[n-1]
		if last.from <= f.from {
			f.from, f.secret, f.said = last.from, last.secret, last.said
		}
		s.found = s.found[:n-1]
	}
	s.found = append(s.found, f)
}

// say appends the rest up to a border, and forgets it. Of a secret that begins
// there, the mark is said already: nothing that is still to end has a part of it
// and began before.
func (s *stream) say(out []byte, border int) []byte {
	done, kept := 0, s.found[:0]
	for _, f := range s.found {
		if f.from <= border {
			out = append(out, s.rest[done:max(f.from, done)]...)
			if !f.said {
				out = append(out, s.redactor.marks[f.secret]...)
			}
			f.said = true
			done = min(f.to, border)
		}
		if f.to > border {
			f.from, f.to = max(f.from-border, 0), f.to-border
			kept = append(kept, f)
		}
	}
	out = append(out, s.rest[done:max(border, done)]...)
	s.found = kept
	s.rest = append(s.rest[:0], s.rest[border:]...)
	return out
}

func (s *stream) end(out []byte) []byte {
	out = s.say(out, len(s.rest))
	s.at = 0
	return out
}
