package openai

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
)

// How much of a stream is read: a line holds at most a whole call, and all of it
// the longest answer that models give, with what each word is wrapped in.
const (
	maxLine   = 8 << 20
	maxStream = 256 << 20
)

// events are the events of a stream, as far as chat completions use them.
type events struct {
	lines *bufio.Reader
	whole *io.LimitedReader
	limit int // of a line
}

func newEvents(r io.Reader) *events { return limitedEvents(r, maxLine, maxStream) }

func limitedEvents(r io.Reader, line int, stream int64) *events {
	whole := &io.LimitedReader{R: r, N: stream}
	return &events{bufio.NewReader(whole), whole, line}
}

// next returns the data of the next event, or nil at the end. Data is one line:
// no server splits it, and some leave out the blank line between two. Comments,
// which keep connections alive, and other fields are left out.
func (e *events) next() ([]byte, error) {
	for {
		line, err := e.line()
		if err != nil && err != io.EOF {
			return nil, err
		}
		if data, ok := bytes.CutPrefix(line, []byte("data:")); ok {
			if data = bytes.TrimSpace(data); len(data) > 0 {
				return data, nil
			}
		}
		switch {
		case err == io.EOF && e.whole.N <= 0:
			return nil, errTooLong
		case err == io.EOF:
			return nil, nil
		}
	}
}

func (e *events) line() ([]byte, error) {
	var line []byte
	for {
		piece, err := e.lines.ReadSlice('\n')
		if len(line)+len(piece) > e.limit {
			return nil, fmt.Errorf("a line of the answer is longer than %d bytes", e.limit)
		}
		line = append(line, piece...)
		if err != bufio.ErrBufferFull {
			return line, err
		}
	}
}
