package upstream

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout/internal/rpcmessage"
)

const (
	maxNoise     = 5   // maximum number of recorded lines
	maxNoiseLine = 200 // maximum length of a recorded line, in bytes
	maxBatch     = 1000
)

// newStdio returns a transport over the standard streams of a process, with one
// message per line. Other lines are recorded and skipped.
func newStdio(l *link) (mcp.Transport, error) {
	if l.dialer.Spawn == nil {
		return nil, errors.New("stdio servers are disabled; use a url")
	}
	return &stdioTransport{link: l}, nil
}

type stdioTransport struct{ link *link }

func (s *stdioTransport) Connect(ctx context.Context) (mcp.Connection, error) {
	p, err := s.link.dialer.Spawn(ctx, s.link.config)
	if err != nil {
		return nil, err
	}
	s.link.mu.Lock()
	s.link.process = p
	s.link.mu.Unlock()
	c := &stdioConn{
		link:  s.link,
		proc:  p,
		limit: s.link.dialer.maxMessage(),
		in:    make(chan incomingLine),
		out:   make(chan *outgoingLine),
		done:  make(chan struct{}),
	}
	s.link.group.Go(c.read)
	s.link.group.Go(c.write)
	return c, nil
}

type stdioConn struct {
	link  *link
	proc  Process
	limit int
	in    chan incomingLine
	out   chan *outgoingLine
	queue []jsonrpc.Message // rest of a batch; used only by Read

	// queued is the number of lines that callers have passed to the goroutine and
	// that are not written. While mu is held and queued is 0, no line is being
	// written.
	mu     sync.Mutex
	queued int

	close sync.Once
	done  chan struct{}
}

type incomingLine struct {
	messages []jsonrpc.Message
	err      error
}

type outgoingLine struct {
	ctx     context.Context
	line    []byte
	written chan error // buffered
}

// read reads lines until the process closes its output. After the connection is
// closed, it discards them, because a process that cannot write may never exit.
func (c *stdioConn) read() {
	r := bufio.NewReaderSize(c.proc, 64<<10)
	for {
		line, err := readLine(r, c.limit)
		var in incomingLine
		switch {
		case errors.Is(err, errTooBig):
			in.err = fmt.Errorf("%w: line too long (limit %d bytes)", errTooBig, c.limit)
		case err != nil && len(line) == 0:
			in.err = readError(err)
		default:
			line = bytes.TrimSpace(line)
			if len(line) == 0 {
				continue
			}
			in.messages = decodeLine(line)
			if in.messages == nil {
				c.link.addNoise(string(line[:min(len(line), 4*maxNoiseLine)]))
				continue
			}
		}
		select {
		case c.in <- in:
		case <-c.done:
			io.Copy(io.Discard, r)
			return
		}
		if in.err != nil {
			return
		}
	}
}

// endedError is an [io.EOF] with the reason why the process was stopped, such
// as a revoked permission.
type endedError struct{ why error }

func (e *endedError) Error() string   { return e.why.Error() }
func (e *endedError) Is(t error) bool { return t == io.EOF }

func readError(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, fs.ErrClosed) {
		return io.EOF
	}
	return &endedError{err}
}

// readLine reads a line of up to limit bytes. If a line is longer, readLine
// returns errTooBig or, if the line cannot be a message, truncates it.
func readLine(r *bufio.Reader, limit int) ([]byte, error) {
	var line []byte
	skip := false
	for {
		part, err := r.ReadSlice('\n')
		if !skip {
			line = append(line, part...)
		}
		if len(line) > limit {
			if first := bytes.TrimLeft(line, " \t\r"); len(first) > 0 && (first[0] == '{' || first[0] == '[') {
				return nil, errTooBig
			}
			line, skip = line[:min(len(line), 4*maxNoiseLine)], true
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}

// decodeLine decodes a line that contains a message or a batch of messages
// (2025-03-26). It returns nil for any other line.
func decodeLine(line []byte) []jsonrpc.Message {
	if line[0] == '[' {
		var raw []json.RawMessage
		if json.Unmarshal(line, &raw) != nil || len(raw) == 0 || len(raw) > maxBatch {
			return nil
		}
		ms := make([]jsonrpc.Message, 0, len(raw))
		for _, one := range raw {
			m, err := jsonrpc.DecodeMessage(one)
			if err != nil {
				return nil
			}
			ms = append(ms, m)
		}
		return ms
	}
	if line[0] != '{' {
		return nil
	}
	if m := rpcmessage.DecodePlain(line); m != nil {
		return []jsonrpc.Message{m}
	}
	m, err := jsonrpc.DecodeMessage(line)
	if err != nil {
		return nil
	}
	return []jsonrpc.Message{m}
}

// write writes queued lines in the background, so that a process that does not
// read cannot block Write after its context is done.
func (c *stdioConn) write() {
	for {
		select {
		case o := <-c.out:
			err := c.writeLine(o)
			c.addQueued(-1)
			o.written <- err
		case <-c.done:
			return
		}
	}
}

func (c *stdioConn) writeLine(o *outgoingLine) error {
	if o.ctx.Err() != nil {
		return fmt.Errorf("%w: %w", errUnsent, o.ctx.Err())
	}
	// A process cannot parse a truncated line, so an error means unsent.
	if _, err := c.proc.Write(o.line); err != nil {
		return fmt.Errorf("%w: %w", errUnsent, err)
	}
	return nil
}

func (c *stdioConn) addQueued(n int) {
	c.mu.Lock()
	c.queued += n
	c.mu.Unlock()
}

// An immediateWriter is a [Process] to which short lines can be written without
// waiting.
type immediateWriter interface {
	// TryWrite writes b completely, or returns false if b is too long or the process
	// must read first. It does not wait.
	TryWrite(b []byte) (bool, error)
}

// tryWrite writes a line if that is possible without waiting, and so avoids two
// switches between goroutines. Otherwise, it returns false and counts the line as
// queued. Lines stay in order, so no cancellation precedes its request.
func (c *stdioConn) tryWrite(line []byte) (bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if w, ok := c.proc.(immediateWriter); ok && c.queued == 0 {
		if ok, err := w.TryWrite(line); ok || err != nil {
			return true, err
		}
	}
	c.queued++
	return false, nil
}

func (c *stdioConn) SessionID() string { return "" }

func (c *stdioConn) Read(ctx context.Context) (jsonrpc.Message, error) {
	if len(c.queue) == 0 {
		select {
		case in := <-c.in:
			if in.err != nil {
				return nil, in.err
			}
			c.queue = in.messages
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-c.done:
			return nil, io.EOF
		}
	}
	m := c.queue[0]
	c.queue[0] = nil // it may be large
	c.queue = c.queue[1:]
	return m, nil
}

func (c *stdioConn) Write(ctx context.Context, msg jsonrpc.Message) error {
	line, err := rpcmessage.EncodeLine(msg)
	if err != nil {
		return err
	}
	select {
	case <-c.done:
		return fmt.Errorf("%w: %w", errUnsent, errEnded)
	default:
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%w: %w", errUnsent, err)
	}
	if done, err := c.tryWrite(line); done {
		if err != nil {
			err = fmt.Errorf("%w: %w", errUnsent, err)
		}
		return err
	}
	o := &outgoingLine{ctx: ctx, line: line, written: make(chan error, 1)}
	select {
	case c.out <- o:
	case <-ctx.Done():
		c.addQueued(-1)
		return fmt.Errorf("%w: %w", errUnsent, ctx.Err())
	case <-c.done:
		return fmt.Errorf("%w: %w", errUnsent, errEnded)
	}
	select {
	case err := <-o.written:
		return err
	case <-ctx.Done():
		return ctx.Err()
	case <-c.done:
		return errEnded
	}
}

// Close stops the process and waits for it to exit.
func (c *stdioConn) Close() error {
	var err error
	c.close.Do(func() {
		close(c.done)
		err = c.proc.Close()
	})
	return err
}
