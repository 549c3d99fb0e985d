package mcpserver_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
)

// message is a raw JSON-RPC message.
type message struct {
	ID     json.RawMessage `json:"id,omitempty"`
	Method string          `json:"method,omitempty"`
	Params json.RawMessage `json:"params,omitempty"`
	Result json.RawMessage `json:"result,omitempty"`
	Error  *rpcError       `json:"error,omitempty"`
	raw    json.RawMessage
}

type rpcError struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`
}

// wire is a raw client: it sends what it is given and returns what arrives.
type wire struct {
	t       testing.TB
	ctx     context.Context
	version string
	name    string // of the client
	carrier carrier
	in      chan message
	notes   []message // that came while something else was awaited
	nextID  int
}

// carrier takes messages to a server.
type carrier interface {
	send(msg []byte, m message) error
	close()
}

// dial connects to the server, without a handshake.
func (w *world) dial(t testing.TB, how way) *wire {
	t.Helper()
	if how.transport == "http" {
		c := &wire{t: t, ctx: limited(t), version: how.version, name: "test", in: make(chan message, 1024)}
		c.carrier = newHTTPCarrier(c.ctx, w.serve(t, nil).URL+"/mcp", how.version, c.in)
		t.Cleanup(c.carrier.close)
		return c
	}
	c, ended := w.dialUntil(t, context.WithoutCancel(t.Context()), how.version)
	t.Cleanup(func() { <-ended })
	t.Cleanup(c.carrier.close)
	return c
}

// dialUntil connects to a server that runs on pipes until run is done. ended
// receives what Run returned. The caller closes the carrier.
func (w *world) dialUntil(t testing.TB, run context.Context, version string) (c *wire, ended chan error) {
	t.Helper()
	c = &wire{t: t, ctx: limited(t), version: version, name: "test", in: make(chan message, 1024)}
	serverIn, in := io.Pipe()
	out, serverOut := io.Pipe()
	ended = make(chan error, 1)
	go func() { ended <- w.server.Run(run, ioTransport(serverIn, serverOut)) }()
	c.carrier = newStdioCarrier(in, out, c.in)
	return c, ended
}

// begin is dial with the handshake of the era.
func (w *world) begin(t testing.TB, how way) *wire {
	t.Helper()
	c := w.dial(t, how)
	c.begin()
	return c
}

func (c *wire) begin() (result json.RawMessage) {
	c.t.Helper()
	if c.version >= modern {
		return c.ok("server/discover", nil)
	}
	result = c.ok("initialize", map[string]any{"protocolVersion": c.version, "capabilities": map[string]any{}, "clientInfo": map[string]any{"name": c.name, "version": "1"}})
	c.notify("notifications/initialized", nil)
	return result
}

// raw sends raw bytes.
func (c *wire) raw(msg string) {
	c.t.Helper()
	var m message
	_ = json.Unmarshal([]byte(msg), &m) // rubbish is sent too
	if err := c.carrier.send([]byte(msg), m); err != nil {
		c.t.Fatalf("send %s: %v", msg, err)
	}
}

func (c *wire) notify(method string, params any) {
	c.t.Helper()
	js, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "method": method, "params": params})
	if err != nil {
		c.t.Fatal(err)
	}
	c.raw(string(js))
}

// start sends a request and returns its id.
func (c *wire) start(method string, params map[string]any) string {
	c.t.Helper()
	c.nextID++
	id := fmt.Sprint(c.nextID)
	if c.version >= modern {
		p := map[string]any{"_meta": map[string]any{
			"io.modelcontextprotocol/protocolVersion":    c.version,
			"io.modelcontextprotocol/clientInfo":         map[string]any{"name": c.name, "version": "1"},
			"io.modelcontextprotocol/clientCapabilities": map[string]any{},
		}}
		for k, v := range params {
			p[k] = v
		}
		params = p
	}
	js, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": c.nextID, "method": method, "params": params})
	if err != nil {
		c.t.Fatal(err)
	}
	c.raw(string(js))
	return id
}

// request sends a request and returns the answer to it.
func (c *wire) request(method string, params map[string]any) message {
	c.t.Helper()
	return c.answer(c.start(method, params))
}

// answer waits for the answer to the request with that id.
func (c *wire) answer(id string) message {
	c.t.Helper()
	for {
		m := c.receive("the answer to " + id)
		if string(m.ID) == id && m.Method == "" {
			return m
		}
		c.notes = append(c.notes, m)
	}
}

// ok is request for one that is answered with a result.
func (c *wire) ok(method string, params map[string]any) json.RawMessage {
	c.t.Helper()
	m := c.request(method, params)
	if m.Error != nil {
		c.t.Fatalf("%s %v: error %d: %s", method, params, m.Error.Code, m.Error.Message)
	}
	return m.Result
}

// wait waits for a notification, one that came before too.
func (c *wire) wait(method string) message {
	c.t.Helper()
	for i, m := range c.notes {
		if m.Method == method {
			c.notes = append(c.notes[:i:i], c.notes[i+1:]...)
			return m
		}
	}
	for {
		m := c.receive(method)
		if m.Method == method {
			return m
		}
		c.notes = append(c.notes, m)
	}
}

func (c *wire) receive(what string) message {
	c.t.Helper()
	select {
	case m, ok := <-c.in:
		if !ok {
			c.t.Fatalf("the connection ended before %s", what)
		}
		return m
	case <-c.ctx.Done():
		c.t.Fatalf("%s does not come: %v", what, context.Cause(c.ctx))
	}
	panic("not reached")
}

// stdioCarrier is a pair of pipes with a message a line.
type stdioCarrier struct {
	mu   sync.Mutex
	in   io.WriteCloser
	done chan struct{}
}

func newStdioCarrier(in io.WriteCloser, out io.Reader, to chan<- message) *stdioCarrier {
	c := &stdioCarrier{in: in, done: make(chan struct{})}
	go func() {
		defer close(c.done)
		defer close(to)
		r := bufio.NewReader(out)
		for {
			line, err := r.ReadBytes('\n')
			if err != nil {
				return
			}
			var m message
			if err := json.Unmarshal(line, &m); err != nil {
				m.Error = &rpcError{Message: "no JSON: " + string(line)}
			}
			m.raw = line
			to <- m
		}
	}()
	return c
}

func (c *stdioCarrier) send(msg []byte, _ message) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, err := c.in.Write(append(msg[:len(msg):len(msg)], '\n'))
	return err
}

func (c *stdioCarrier) close() {
	c.in.Close()
	<-c.done
}

// httpCarrier posts each message. The server answers on the stream of the response, or
// in the legacy era on that of a GET.
type httpCarrier struct {
	ctx     context.Context
	cancel  context.CancelFunc
	url     string
	version string
	to      chan<- message
	running sync.WaitGroup
	client  *http.Client

	mu      sync.Mutex
	session string
}

func newHTTPCarrier(ctx context.Context, url, version string, to chan<- message) *httpCarrier {
	ctx, cancel := context.WithCancel(ctx)
	return &httpCarrier{ctx: ctx, cancel: cancel, url: url, version: version, to: to, client: &http.Client{Transport: &http.Transport{}}}
}

func (c *httpCarrier) close() {
	c.cancel()
	c.running.Wait()
	c.client.CloseIdleConnections()
}

func (c *httpCarrier) send(msg []byte, m message) error {
	req, err := http.NewRequestWithContext(c.ctx, http.MethodPost, c.url, bytes.NewReader(msg))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	if c.version >= modern {
		req.Header.Set("MCP-Protocol-Version", c.version)
		req.Header.Set("Mcp-Method", m.Method)
		var p struct{ Name, URI string }
		_ = json.Unmarshal(m.Params, &p)
		if name := p.Name + p.URI; name != "" && (m.Method == "tools/call" || m.Method == "prompts/get" || m.Method == "resources/read") {
			req.Header.Set("Mcp-Name", name)
		}
	}
	c.mu.Lock()
	if c.session != "" {
		req.Header.Set("Mcp-Session-Id", c.session)
		req.Header.Set("MCP-Protocol-Version", c.version)
	}
	c.mu.Unlock()
	// A subscription is a long stream. All other responses are awaited here, so that
	// messages arrive in the order of their requests.
	if m.Method == "subscriptions/listen" {
		c.running.Go(func() { c.do(req, m) })
		return nil
	}
	return c.do(req, m)
}

func (c *httpCarrier) do(req *http.Request, m message) error {
	res, err := c.client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if id := res.Header.Get("Mcp-Session-Id"); id != "" {
		c.mu.Lock()
		began := c.session == ""
		c.session = id
		c.mu.Unlock()
		if began {
			defer c.listen()
		}
	}
	if strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
		c.events(res.Body)
		return nil
	}
	b, err := io.ReadAll(res.Body)
	if err != nil {
		return err
	}
	var answer message
	if json.Unmarshal(b, &answer) != nil || answer.Error == nil && answer.Result == nil {
		if res.StatusCode == http.StatusAccepted {
			return nil
		}
		answer = message{ID: m.ID, Error: &rpcError{Code: -res.StatusCode, Message: strings.TrimSpace(string(b))}}
	}
	answer.raw = b
	c.to <- answer
	return nil
}

// listen opens the stream for notifications of the legacy era.
func (c *httpCarrier) listen() {
	req, err := http.NewRequestWithContext(c.ctx, http.MethodGet, c.url, nil)
	if err != nil {
		return
	}
	req.Header.Set("Accept", "text/event-stream")
	req.Header.Set("Mcp-Session-Id", c.session)
	opened := make(chan struct{})
	c.running.Go(func() {
		res, err := c.client.Do(req)
		close(opened)
		if err != nil {
			return
		}
		defer res.Body.Close()
		c.events(res.Body)
	})
	<-opened
}

// events reads a stream of events to its end.
func (c *httpCarrier) events(r io.Reader) {
	sc := bufio.NewScanner(r)
	sc.Buffer(nil, 64<<20)
	for sc.Scan() {
		data, ok := strings.CutPrefix(sc.Text(), "data: ")
		if !ok || strings.TrimSpace(data) == "" {
			continue
		}
		var m message
		if err := json.Unmarshal([]byte(data), &m); err != nil {
			m.Error = &rpcError{Message: "no JSON: " + data}
		}
		m.raw = json.RawMessage(data)
		c.to <- m
	}
}
