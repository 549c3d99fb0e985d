package upstream

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// streamConn is a connection over streamable HTTP. For the legacy era, it adds
// the version header and the GET stream of server messages, which the SDK adds
// only to its own connections. Unlike the SDK, it reopens the stream whenever
// the stream is interrupted.
type streamConn struct {
	mcp.Connection
	link     *link
	trip     *roundTripper
	client   *http.Client
	endpoint string
	oauth    auth.OAuthHandler

	in   chan receivedMessage
	once sync.Once

	mu   sync.Mutex
	init jsonrpc.ID // ID of the initialize request
}

type receivedMessage struct {
	msg jsonrpc.Message
	err error
}

type streamableTransport struct {
	link     *link
	inner    *mcp.StreamableClientTransport
	trip     *roundTripper
	endpoint string
}

func (t *streamableTransport) Connect(ctx context.Context) (mcp.Connection, error) {
	inner, err := t.inner.Connect(ctx)
	if err != nil {
		return nil, err
	}
	c := &streamConn{
		Connection: inner, link: t.link, trip: t.trip, client: t.inner.HTTPClient, endpoint: t.endpoint,
		oauth: t.inner.OAuthHandler, in: make(chan receivedMessage),
	}
	t.link.group.Go(c.readResponses)
	return c, nil
}

// readResponses forwards the messages that the SDK reads to Read.
func (c *streamConn) readResponses() {
	for {
		msg, err := c.Connection.Read(c.link.ctx)
		select {
		case c.in <- receivedMessage{msg, err}:
		case <-c.link.ctx.Done():
			return
		}
		if err != nil {
			return
		}
	}
}

func (c *streamConn) Read(ctx context.Context) (jsonrpc.Message, error) {
	select {
	case r := <-c.in:
		if res, ok := r.msg.(*jsonrpc.Response); ok {
			c.setVersion(res)
		}
		return r.msg, r.err
	case <-c.link.ctx.Done():
		return nil, io.EOF
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// setVersion sets the version header for later requests if res is the response
// to initialize.
func (c *streamConn) setVersion(res *jsonrpc.Response) {
	c.mu.Lock()
	own := c.init.IsValid() && c.init == res.ID
	c.mu.Unlock()
	if !own || res.Error != nil {
		return
	}
	var r struct {
		ProtocolVersion string `json:"protocolVersion"`
	}
	if json.Unmarshal(res.Result, &r) == nil && len(r.ProtocolVersion) < 100 {
		c.trip.version.Store(&r.ProtocolVersion)
	}
}

func (c *streamConn) Write(ctx context.Context, msg jsonrpc.Message) error {
	req, _ := msg.(*jsonrpc.Request)
	if req != nil && req.Method == "initialize" {
		c.mu.Lock()
		c.init = req.ID
		c.mu.Unlock()
	}
	err := c.Connection.Write(ctx, msg)
	if err == nil && req != nil && req.Method == "notifications/initialized" {
		c.once.Do(func() {
			// Wait briefly for the stream to open, because a server may send a
			// request on it during the first call.
			first := make(chan struct{})
			c.link.group.Go(func() { c.maintainStream(sync.OnceFunc(func() { close(first) })) })
			late := time.NewTimer(streamWait)
			defer late.Stop()
			select {
			case <-first:
			case <-late.C:
			case <-ctx.Done():
			case <-c.link.ctx.Done():
			}
		})
	}
	return err
}

// streamWait is the maximum time to wait for the stream of server messages to
// open.
const streamWait = 2 * time.Second

// maintainStream keeps the stream of server messages open until the connection
// ends. It calls answered after the first response, and returns early if the
// server does not support the stream.
func (c *streamConn) maintainStream(answered func()) {
	defer answered()
	ctx := c.link.ctx
	last, retry := "", time.Duration(0)
	for failures := 0; ; {
		start := time.Now()
		res, err := c.openStream(ctx, last)
		answered()
		if err == nil {
			if !strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") || res.StatusCode != http.StatusOK {
				res.Body.Close()
				if res.StatusCode < 500 {
					return
				}
			} else {
				if failures > 0 && last == "" && c.link.changed != nil {
					c.link.changed("tools") // notifications may have been missed
					c.link.changed("prompts")
					c.link.changed("resources")
				}
				err = readEvents(res.Body, c.link.dialer.maxMessage(), func(e serverEvent) error {
					if e.id != "" {
						last = e.id
					}
					if e.retry > 0 {
						retry = e.retry
					}
					return c.handleEvent(ctx, e)
				})
				res.Body.Close()
				if errors.Is(err, errTooBig) {
					c.link.beginClose(err)
					return
				}
			}
		}
		if failures++; time.Since(start) > maxWait {
			failures = 1
		}
		select {
		case <-time.After(max(backoff(failures), min(retry, maxWait))):
		case <-ctx.Done():
			return
		}
	}
}

func (c *streamConn) openStream(ctx context.Context, last string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.endpoint, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "text/event-stream")
	if id := c.SessionID(); id != "" {
		req.Header.Set("Mcp-Session-Id", id)
	}
	if last != "" {
		req.Header.Set("Last-Event-Id", last)
	}
	if c.oauth != nil {
		source, err := c.oauth.TokenSource(ctx)
		if err != nil {
			return nil, err
		}
		if source != nil {
			token, err := source.Token()
			if err != nil {
				return nil, err
			}
			req.Header.Set("Authorization", "Bearer "+token.AccessToken)
		}
	}
	return c.client.Do(req)
}

func (c *streamConn) handleEvent(ctx context.Context, e serverEvent) error {
	if len(e.data) == 0 || e.name != "" && e.name != "message" {
		return nil
	}
	msg, err := jsonrpc.DecodeMessage(e.data)
	if err != nil {
		c.link.addNoise(string(e.data[:min(len(e.data), 4*maxNoiseLine)]))
		return nil
	}
	select {
	case c.in <- receivedMessage{msg, nil}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// serverEvent is a server-sent event.
type serverEvent struct {
	name, id string
	data     []byte
	retry    time.Duration
}

// readEvents calls f for each event until the stream ends or f returns an
// error. The maximum size of an event is limit bytes.
func readEvents(r io.Reader, limit int, f func(serverEvent) error) error {
	b := bufio.NewReader(r)
	var e serverEvent
	var data [][]byte
	size := 0
	for {
		line, err := readEventLine(b, limit-size)
		if err != nil {
			return err
		}
		size += len(line)
		if len(line) == 0 {
			e.data = bytes.Join(data, []byte("\n"))
			if err := f(e); err != nil {
				return err
			}
			e, data, size = serverEvent{}, nil, 0
			continue
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(name) {
		case "event":
			e.name = string(value)
		case "id":
			e.id = string(value)
		case "data":
			data = append(data, value)
		case "retry":
			var ms int
			if _, err := fmt.Sscanf(string(value), "%d", &ms); err == nil && ms > 0 {
				e.retry = time.Duration(min(ms, int(time.Hour/time.Millisecond))) * time.Millisecond
			}
		}
	}
}

func readEventLine(b *bufio.Reader, limit int) ([]byte, error) {
	var line []byte
	for {
		part, err := b.ReadSlice('\n')
		if len(line)+len(part) > limit+2 {
			return nil, fmt.Errorf("%w: event exceeds the limit", errTooBig)
		}
		line = append(line, part...)
		if err == nil {
			return bytes.TrimRight(line, "\r\n"), nil
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return nil, err
		}
	}
}
