package console

import (
	"io"
	"os"
	"sync"
)

// SharedInput passes a terminal's input to a command and, after that, to a
// prompt. A command may leave behind a reader that is still waiting for input;
// SharedInput passes what that reader receives to the prompt.
type SharedInput struct {
	file   *os.File
	chunks chan []byte // closed at the end of the input
	ended  chan struct{}
	start  sync.Once
}

// NewSharedInput returns a SharedInput for a terminal. It reads nothing yet.
func NewSharedInput(f *os.File) *SharedInput {
	return &SharedInput{file: f, chunks: make(chan []byte), ended: make(chan struct{})}
}

// Command returns the input of the command, which ends when Prompt is called.
// It is not safe for concurrent use.
func (s *SharedInput) Command() io.Reader { return &sharedReader{s: s, ended: s.ended} }

// Prompt ends the input of the command and returns the input of a prompt. What
// the user typed before is discarded, because it did not answer the prompt.
// Prompt must be called at most once.
func (s *SharedInput) Prompt() io.Reader {
	close(s.ended)
	s.start.Do(s.read)
	discardInput(s.file)
	select {
	case <-s.chunks:
	default:
	}
	return &sharedReader{s: s}
}

// read reads the input in the background, as long as the program runs.
func (s *SharedInput) read() {
	go func() {
		defer close(s.chunks)
		for {
			b := make([]byte, 4096)
			n, err := s.file.Read(b)
			if n > 0 {
				s.chunks <- b[:n]
			}
			if err != nil {
				return
			}
		}
	}()
}

type sharedReader struct {
	s     *SharedInput
	ended chan struct{} // nil for a prompt
	rest  []byte
}

func (r *sharedReader) Read(b []byte) (int, error) {
	r.s.start.Do(r.s.read)
	if len(r.rest) == 0 {
		select {
		case <-r.ended:
			return 0, io.EOF
		case chunk, ok := <-r.s.chunks:
			if !ok {
				return 0, io.EOF
			}
			r.rest = chunk
		}
	}
	n := copy(b, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}
