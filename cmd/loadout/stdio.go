package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout/internal/message"
)

// lines is the transport of MCP over standard input and output: one JSON-RPC
// message a line. Unlike the one of the SDK it answers a line that is no
// message with the protocol's error and goes on, and answers what was asked
// before the input ended.
type lines struct {
	in  io.Reader
	out io.Writer
}

var _ mcp.Transport = (*lines)(nil)

const (
	// maxLine bounds a message; a longer line is refused and skipped.
	maxLine = 16 << 20
	// lastAnswers is how long answers may take after the input has ended.
	lastAnswers = 10 * time.Second
)

// Connect starts to read. It can be called once.
func (t *lines) Connect(context.Context) (mcp.Connection, error) {
	c := &lineConn{out: t.out, incoming: make(chan line), closed: make(chan struct{}), answered: make(chan struct{}, 1), pending: map[jsonrpc.ID]call{}}
	go c.read(bufio.NewReaderSize(t.in, 64<<10))
	return c, nil
}

// line is one line of input, or why there is none.
type line struct {
	text []byte
	err  error
}

var errLineTooLong = fmt.Errorf("a message has more than %d bytes", maxLine)

// call is a request that is not answered yet.
type call struct {
	batch      *batch
	initialize bool
}

// batch are requests that came in one array; their answers go out in one.
type batch struct {
	open    int
	answers []json.RawMessage
}

type lineConn struct {
	incoming  chan line
	closed    chan struct{}
	closeOnce sync.Once
	answered  chan struct{} // has an item after an answer
	queue     []jsonrpc.Message

	writing sync.Mutex // held while a line is written
	out     io.Writer

	mu      sync.Mutex // guards what follows
	pending map[jsonrpc.ID]call
	version string // of the protocol, once negotiated
}

// read sends lines until the input ends. It ends with the input or the
// connection, but cannot be woken from waiting for a terminal or a pipe.
func (c *lineConn) read(in *bufio.Reader) {
	for first := true; ; first = false {
		text, err := readLine(in)
		if first {
			text = bytes.TrimPrefix(text, []byte("\xef\xbb\xbf")) // as some shells add to a pipe
		}
		if err == nil && len(bytes.TrimSpace(text)) == 0 {
			continue
		}
		select {
		case c.incoming <- line{text, err}:
		case <-c.closed:
			return
		}
		if err != nil && !errors.Is(err, errLineTooLong) {
			return
		}
	}
}

// readLine reads a line of bounded length; the last one may lack its end.
func readLine(in *bufio.Reader) ([]byte, error) {
	var text []byte
	long := false
	for {
		part, err := in.ReadSlice('\n')
		if long = long || len(text)+len(part) > maxLine; !long {
			text = append(text, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil && !(errors.Is(err, io.EOF) && len(text) > 0):
			return nil, err
		case long:
			return nil, errLineTooLong
		}
		return text, nil
	}
}

// SessionID is empty: there is one connection.
func (c *lineConn) SessionID() string { return "" }

// Close ends the connection. It leaves standard output open for the last
// words of the command.
func (c *lineConn) Close() error {
	c.closeOnce.Do(func() { close(c.closed) })
	return nil
}

// Read returns the next message. At the end of the input it waits until what
// was asked is answered.
func (c *lineConn) Read(ctx context.Context) (jsonrpc.Message, error) {
	for {
		if len(c.queue) > 0 {
			next := c.queue[0]
			c.queue = c.queue[1:]
			return next, nil
		}
		var l line
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-c.closed:
			return nil, io.EOF
		case l = <-c.incoming:
		}
		switch {
		case errors.Is(l.err, errLineTooLong):
			if err := c.refuse(jsonrpc.CodeInvalidRequest, l.err.Error(), nil); err != nil {
				return nil, err
			}
		case l.err != nil:
			c.drain(ctx)
			return nil, l.err
		default:
			if err := c.take(l.text); err != nil {
				return nil, err
			}
		}
	}
}

// drain waits until everything is answered, or for a while.
func (c *lineConn) drain(ctx context.Context) {
	late := time.After(lastAnswers)
	for {
		c.mu.Lock()
		open := len(c.pending)
		c.mu.Unlock()
		if open == 0 {
			return
		}
		select {
		case <-c.answered:
		case <-late:
			return
		case <-ctx.Done():
			return
		case <-c.closed:
			return
		}
	}
}

// take puts the messages of a line into the queue, or answers what is wrong
// with it. The error is that of writing.
func (c *lineConn) take(text []byte) error {
	if msg := message.Plain(text); msg != nil {
		c.accept(msg, nil)
		return nil
	}
	if !json.Valid(text) {
		return c.refuse(jsonrpc.CodeParseError, "parse error: a line is not valid JSON; send one JSON-RPC message a line", nil)
	}
	if trimmed := bytes.TrimSpace(text); trimmed[0] == '[' {
		return c.takeBatch(trimmed)
	}
	msg, err := decodeMessage(text)
	if err != nil {
		return c.refuse(jsonrpc.CodeInvalidRequest, err.Error(), text)
	}
	c.accept(msg, nil)
	return nil
}

// takeBatch accepts an array of messages where the protocol has them, which
// are its versions before 2025-06-18.
func (c *lineConn) takeBatch(text []byte) error {
	c.mu.Lock()
	version := c.version
	c.mu.Unlock()
	var raw []json.RawMessage
	if err := json.Unmarshal(text, &raw); err != nil || len(raw) == 0 {
		return c.refuse(jsonrpc.CodeInvalidRequest, "invalid request: an empty batch", nil)
	}
	if version >= "2025-06-18" {
		return c.refuse(jsonrpc.CodeInvalidRequest, "invalid request: protocol version "+version+" has no batches; send one message a line", nil)
	}
	b, seen := &batch{}, map[jsonrpc.ID]bool{}
	var messages []jsonrpc.Message
	for _, text := range raw {
		msg, err := decodeMessage(text)
		if err != nil {
			b.answers = append(b.answers, refusal(jsonrpc.CodeInvalidRequest, err.Error(), text))
			continue
		}
		if req, ok := msg.(*jsonrpc.Request); ok && req.IsCall() {
			if seen[req.ID] || c.asked(req.ID) {
				b.answers = append(b.answers, refusal(jsonrpc.CodeInvalidRequest, "invalid request: its id is in use", nil))
				continue
			}
			seen[req.ID] = true
			b.open++
		}
		messages = append(messages, msg)
	}
	if b.open == 0 && len(b.answers) > 0 {
		return c.write(joined(b.answers))
	}
	for _, msg := range messages {
		c.accept(msg, b)
	}
	return nil
}

// asked reports whether a request of that id waits for its answer.
func (c *lineConn) asked(id jsonrpc.ID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, ok := c.pending[id]
	return ok
}

// accept queues a message, and remembers a request until it is answered.
func (c *lineConn) accept(msg jsonrpc.Message, b *batch) {
	c.queue = append(c.queue, msg)
	req, ok := msg.(*jsonrpc.Request)
	if !ok {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case req.Method == "notifications/cancelled":
		var p struct {
			RequestID any `json:"requestId"`
		}
		if json.Unmarshal(req.Params, &p) == nil {
			if id, err := jsonrpc.MakeID(p.RequestID); err == nil && c.pending[id].batch == nil {
				delete(c.pending, id) // its answer may not come
			}
		}
	case !req.IsCall() || b == nil && req.Method == "subscriptions/listen":
		// There is no answer, or not before the connection ends.
	default:
		c.pending[req.ID] = call{b, req.Method == "initialize"}
	}
}

// decodeMessage is strict where the SDK's decoder takes an object with
// nothing but an id for an answer.
func decodeMessage(text []byte) (jsonrpc.Message, error) {
	msg, err := jsonrpc.DecodeMessage(text)
	if err != nil {
		return nil, errors.New("invalid request: this is no JSON-RPC 2.0 message")
	}
	if r, ok := msg.(*jsonrpc.Response); ok && r.Result == nil && r.Error == nil {
		return nil, errors.New("invalid request: it has no method, result or error")
	}
	var head struct {
		ID json.RawMessage `json:"id"`
	}
	if json.Unmarshal(text, &head) == nil && len(head.ID) > 0 && head.ID[0] != '"' && bytes.ContainsAny(head.ID, ".eE") && !bytes.Equal(head.ID, []byte("null")) {
		return nil, errors.New("invalid request: an id is a text or a whole number")
	}
	return msg, nil
}

// refuse answers a line that is no message.
func (c *lineConn) refuse(code int64, message string, text []byte) error {
	return c.write(refusal(code, message, text))
}

// refusal is the answer to text, under its id where it has one.
func refusal(code int64, message string, text []byte) json.RawMessage {
	var answer struct {
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Error   struct {
			Code    int64  `json:"code"`
			Message string `json:"message"`
		} `json:"error"`
	}
	if json.Unmarshal(text, &answer) != nil || len(answer.ID) == 0 || answer.ID[0] == '{' || answer.ID[0] == '[' {
		answer.ID = json.RawMessage("null")
	}
	answer.Version, answer.Error.Code, answer.Error.Message = "2.0", code, message
	out, err := json.Marshal(answer)
	if err != nil {
		panic(err) // all of it is plain data
	}
	return out
}

// Write sends a message; the answer to a part of a batch waits for the others.
func (c *lineConn) Write(ctx context.Context, msg jsonrpc.Message) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	text, err := message.Line(msg)
	if err != nil {
		return err
	}
	text = text[:len(text)-1]
	r, ok := msg.(*jsonrpc.Response)
	if !ok {
		return c.write(text)
	}
	if text = c.answer(r, text); text == nil {
		return nil
	}
	err = c.write(text)
	c.mu.Lock()
	delete(c.pending, r.ID) // only now, as the program may end when none is left
	c.mu.Unlock()
	select {
	case c.answered <- struct{}{}:
	default:
	}
	return err
}

// answer is what to send for an answer: itself, nil for a part of a batch that
// lacks others, or the batch.
func (c *lineConn) answer(r *jsonrpc.Response, text []byte) []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	asked := c.pending[r.ID]
	if asked.initialize && r.Error == nil {
		var result struct {
			Version string `json:"protocolVersion"`
		}
		if json.Unmarshal(r.Result, &result) == nil {
			c.version = result.Version
		}
	}
	b := asked.batch
	if b == nil {
		return text
	}
	b.answers = append(b.answers, text)
	if b.open--; b.open > 0 {
		delete(c.pending, r.ID)
		return nil
	}
	return joined(b.answers)
}

func joined(answers []json.RawMessage) []byte {
	text := []byte("[")
	for i, a := range answers {
		if i > 0 {
			text = append(text, ',')
		}
		text = append(text, a...)
	}
	return append(text, ']')
}

// write sends one line.
func (c *lineConn) write(text []byte) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	_, err := c.out.Write(append(text, '\n'))
	return err
}
