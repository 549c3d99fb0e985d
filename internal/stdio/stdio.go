// Package stdio implements the MCP transport over standard input and output,
// for a server that a client starts.
//
// It passes messages to the server without interpreting them. Start reading at
// [Transport].
package stdio

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

	"github.com/loadout-dev/loadout/internal/rpcmessage"
)

// Transport is an MCP transport over standard input and output with one
// JSON-RPC message per line. Unlike the SDK's transport, it responds to an
// invalid line with a protocol error and continues. It also responds to pending
// requests after the input ends.
type Transport struct {
	In  io.Reader
	Out io.Writer
}

var _ mcp.Transport = (*Transport)(nil)

const (
	// maxLine is the maximum length of a line in bytes. A longer line is
	// rejected and skipped.
	maxLine = 16 << 20
	// drainTimeout is the maximum time to wait for pending responses after the
	// end of the input.
	drainTimeout = 10 * time.Second
)

// Connect starts reading. It must be called only once.
func (t *Transport) Connect(context.Context) (mcp.Connection, error) {
	c := &conn{out: t.Out, incoming: make(chan inputLine), closed: make(chan struct{}), answered: make(chan struct{}, 1), pending: map[jsonrpc.ID]call{}}
	go c.read(bufio.NewReaderSize(t.In, 64<<10))
	return c, nil
}

// inputLine is one line of input, or the error from reading it.
type inputLine struct {
	text []byte
	err  error
}

var errLineTooLong = fmt.Errorf("message too large (limit %d bytes)", maxLine)

// call is a pending request.
type call struct {
	batch      *batch
	initialize bool
}

// batch is a group of requests received in one array. Their responses are sent
// in one array.
type batch struct {
	open    int
	answers []json.RawMessage
}

type conn struct {
	incoming  chan inputLine
	closed    chan struct{}
	closeOnce sync.Once
	answered  chan struct{} // receives a value after each response
	queue     []jsonrpc.Message

	writing sync.Mutex // held while a line is written
	out     io.Writer

	mu      sync.Mutex // guards the fields below
	pending map[jsonrpc.ID]call
	version string // negotiated protocol version
}

// read sends lines to incoming until the input ends or the connection is
// closed. A pending read from a terminal or pipe cannot be interrupted.
func (c *conn) read(in *bufio.Reader) {
	for first := true; ; first = false {
		text, err := readLine(in)
		if first {
			text = bytes.TrimPrefix(text, []byte("\xef\xbb\xbf")) // some shells add a byte order mark to a pipe
		}
		if err == nil && len(bytes.TrimSpace(text)) == 0 {
			continue
		}
		select {
		case c.incoming <- inputLine{text, err}:
		case <-c.closed:
			return
		}
		if err != nil && !errors.Is(err, errLineTooLong) {
			return
		}
	}
}

// readLine reads a line of up to maxLine bytes. The last line may lack a
// newline.
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

// SessionID returns "", because there is only one connection.
func (c *conn) SessionID() string { return "" }

// Close closes the connection. It keeps standard output open for the command's
// final messages.
func (c *conn) Close() error {
	c.closeOnce.Do(func() { close(c.closed) })
	return nil
}

// Read returns the next message. At the end of the input, it first waits for
// responses to pending requests.
func (c *conn) Read(ctx context.Context) (jsonrpc.Message, error) {
	for {
		if len(c.queue) > 0 {
			next := c.queue[0]
			c.queue = c.queue[1:]
			return next, nil
		}
		var l inputLine
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-c.closed:
			return nil, io.EOF
		case l = <-c.incoming:
		}
		switch {
		case errors.Is(l.err, errLineTooLong):
			if err := c.reject(jsonrpc.CodeInvalidRequest, l.err.Error(), nil); err != nil {
				return nil, err
			}
		case l.err != nil:
			c.drain(ctx)
			return nil, l.err
		default:
			if err := c.acceptLine(l.text); err != nil {
				return nil, err
			}
		}
	}
}

// drain waits for up to drainTimeout until all requests have been answered.
func (c *conn) drain(ctx context.Context) {
	late := time.After(drainTimeout)
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

// acceptLine queues the messages in a line, or responds to an invalid line. It
// returns an error only if the response cannot be written.
func (c *conn) acceptLine(text []byte) error {
	if msg := rpcmessage.DecodePlain(text); msg != nil {
		c.accept(msg, nil)
		return nil
	}
	if !json.Valid(text) {
		return c.reject(jsonrpc.CodeParseError, "parse error: the line is not valid JSON; send one JSON-RPC message per line", nil)
	}
	if trimmed := bytes.TrimSpace(text); trimmed[0] == '[' {
		return c.acceptBatch(trimmed)
	}
	msg, err := decodeMessage(text)
	if err != nil {
		return c.reject(jsonrpc.CodeInvalidRequest, err.Error(), text)
	}
	c.accept(msg, nil)
	return nil
}

// acceptBatch accepts an array of messages, which protocol versions before
// 2025-06-18 support.
func (c *conn) acceptBatch(text []byte) error {
	c.mu.Lock()
	version := c.version
	c.mu.Unlock()
	var raw []json.RawMessage
	if err := json.Unmarshal(text, &raw); err != nil || len(raw) == 0 {
		return c.reject(jsonrpc.CodeInvalidRequest, "invalid request: empty batch", nil)
	}
	if version >= "2025-06-18" {
		return c.reject(jsonrpc.CodeInvalidRequest, "invalid request: protocol version "+version+" has no batches; send one message per line", nil)
	}
	b, seen := &batch{}, map[jsonrpc.ID]bool{}
	var messages []jsonrpc.Message
	for _, text := range raw {
		msg, err := decodeMessage(text)
		if err != nil {
			b.answers = append(b.answers, errorResponse(jsonrpc.CodeInvalidRequest, err.Error(), text))
			continue
		}
		if req, ok := msg.(*jsonrpc.Request); ok && req.IsCall() {
			if seen[req.ID] || c.isPending(req.ID) {
				b.answers = append(b.answers, errorResponse(jsonrpc.CodeInvalidRequest, "invalid request: id already in use", nil))
				continue
			}
			seen[req.ID] = true
			b.open++
		}
		messages = append(messages, msg)
	}
	if b.open == 0 && len(b.answers) > 0 {
		return c.write(joinBatch(b.answers))
	}
	for _, msg := range messages {
		c.accept(msg, b)
	}
	return nil
}

// isPending reports whether the request with the given ID has no response yet.
func (c *conn) isPending(id jsonrpc.ID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, ok := c.pending[id]
	return ok
}

// accept queues a message. If it is a request, accept tracks it until it is
// answered.
func (c *conn) accept(msg jsonrpc.Message, b *batch) {
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
				delete(c.pending, id) // there may be no response
			}
		}
	case !req.IsCall() || b == nil && req.Method == "subscriptions/listen":
		// There is no response, or only at the end of the connection.
	default:
		c.pending[req.ID] = call{b, req.Method == "initialize"}
	}
}

// decodeMessage decodes a message. Unlike the SDK, it rejects an object with
// only an ID, which the SDK decodes as a response.
func decodeMessage(text []byte) (jsonrpc.Message, error) {
	msg, err := jsonrpc.DecodeMessage(text)
	if err != nil {
		return nil, errors.New("invalid request: not a JSON-RPC 2.0 message")
	}
	if r, ok := msg.(*jsonrpc.Response); ok && r.Result == nil && r.Error == nil {
		return nil, errors.New("invalid request: no method, result or error")
	}
	var head struct {
		ID json.RawMessage `json:"id"`
	}
	if json.Unmarshal(text, &head) == nil && len(head.ID) > 0 && head.ID[0] != '"' && bytes.ContainsAny(head.ID, ".eE") && !bytes.Equal(head.ID, []byte("null")) {
		return nil, errors.New("invalid request: id is not a string or an integer")
	}
	return msg, nil
}

// reject responds to an invalid line with an error.
func (c *conn) reject(code int64, message string, text []byte) error {
	return c.write(errorResponse(code, message, text))
}

// errorResponse returns an error response to the request in text, with the
// request's ID if present.
func errorResponse(code int64, message string, text []byte) json.RawMessage {
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
		panic(err) // cannot fail: plain data only
	}
	return out
}

// Write sends a message. A response within a batch is sent when the batch is
// complete.
func (c *conn) Write(ctx context.Context, msg jsonrpc.Message) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	text, err := rpcmessage.EncodeLine(msg)
	if err != nil {
		return err
	}
	text = text[:len(text)-1]
	r, ok := msg.(*jsonrpc.Response)
	if !ok {
		return c.write(text)
	}
	if text = c.completeBatch(r, text); text == nil {
		return nil
	}
	err = c.write(text)
	c.mu.Lock()
	delete(c.pending, r.ID) // only after writing: the process may exit when no request is pending
	c.mu.Unlock()
	select {
	case c.answered <- struct{}{}:
	default:
	}
	return err
}

// completeBatch returns the text to send for a response: the response itself,
// the whole batch, or nil if the batch is incomplete.
func (c *conn) completeBatch(r *jsonrpc.Response, text []byte) []byte {
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
	return joinBatch(b.answers)
}

func joinBatch(answers []json.RawMessage) []byte {
	text := []byte("[")
	for i, a := range answers {
		if i > 0 {
			text = append(text, ',')
		}
		text = append(text, a...)
	}
	return append(text, ']')
}

// write writes one line to standard output.
func (c *conn) write(text []byte) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	_, err := c.out.Write(append(text, '\n'))
	return err
}
