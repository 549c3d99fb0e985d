package openai

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
)

// Limits for a stream in bytes. A line holds at most a whole call. The whole
// stream holds the longest answers of current models, including the JSON around
// each word.
const (
	maxLine   = 8 << 20
	maxStream = 256 << 20
)

// events reads server-sent events, as far as chat completions use them.
type events struct {
	lines *bufio.Reader
	whole *io.LimitedReader
	limit int // maximum length of a line
}

func newEvents(r io.Reader) *events { return limitedEvents(r, maxLine, maxStream) }

func limitedEvents(r io.Reader, line int, stream int64) *events {
	whole := &io.LimitedReader{R: r, N: stream}
	return &events{bufio.NewReader(whole), whole, line}
}

// next returns the data of the next event, or nil at the end. Data is one line,
// because no server splits it and some omit the blank line between events. next
// skips comments, which keep connections alive, and other fields.
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
			return nil, fmt.Errorf("line of the answer too long (limit %d bytes)", e.limit)
		}
		line = append(line, piece...)
		if err != bufio.ErrBufferFull {
			return line, err
		}
	}
}
