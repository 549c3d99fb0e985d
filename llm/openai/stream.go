package openai

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
)

// Limits on a stream in bytes. A line contains at most a complete call. A
// stream contains the longest responses of current models, including the JSON
// around each word.
const (
	maxLine   = 8 << 20
	maxStream = 256 << 20
)

// eventReader parses the subset of server-sent events that chat completions
// use.
type eventReader struct {
	lines *bufio.Reader
	whole *io.LimitedReader
	limit int // maximum length of a line in bytes
}

func newEventReader(r io.Reader) *eventReader { return newLimitedReader(r, maxLine, maxStream) }

func newLimitedReader(r io.Reader, line int, stream int64) *eventReader {
	whole := &io.LimitedReader{R: r, N: stream}
	return &eventReader{bufio.NewReader(whole), whole, line}
}

// next returns the data of the next event, or nil at the end of the stream.
// Data is a single line, because no server splits it and some servers omit the
// blank line between events. next ignores other fields and comments, which
// servers send to keep connections alive.
func (e *eventReader) next() ([]byte, error) {
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

func (e *eventReader) line() ([]byte, error) {
	var line []byte
	for {
		piece, err := e.lines.ReadSlice('\n')
		if len(line)+len(piece) > e.limit {
			return nil, fmt.Errorf("response line too long (limit %d bytes)", e.limit)
		}
		line = append(line, piece...)
		if err != bufio.ErrBufferFull {
			return line, err
		}
	}
}
