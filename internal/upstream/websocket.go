package upstream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/coder/websocket"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// frameTimeout is the timeout for writing a frame. After a timeout, the
// connection is closed, because the library cannot abort an individual frame.
const frameTimeout = 30 * time.Second

// newWebSocket returns a transport over a WebSocket with the subprotocol mcp.
// Each text frame is one message.
func newWebSocket(l *link) (mcp.Transport, error) { return &webSocketTransport{link: l}, nil }

type webSocketTransport struct{ link *link }

func (s *webSocketTransport) Connect(ctx context.Context) (mcp.Connection, error) {
	client, endpoint, err := s.link.httpClient()
	if err != nil {
		return nil, err
	}
	ws, res, err := websocket.Dial(ctx, endpoint, &websocket.DialOptions{HTTPClient: client, Subprotocols: []string{"mcp"}})
	if err != nil {
		if res != nil && res.Body != nil {
			res.Body.Close()
		}
		return nil, err
	}
	ws.SetReadLimit(int64(s.link.dialer.maxMessage()))
	c := &webSocketConn{link: s.link, ws: ws}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	return c, nil
}

type webSocketConn struct {
	link   *link
	ws     *websocket.Conn
	ctx    context.Context // context of reads, cancelled by Close
	cancel context.CancelFunc
	once   sync.Once
}

func (c *webSocketConn) SessionID() string { return "" }

// Read reads the message in the next frame. It ignores its context, because the
// library closes the connection when the context passed to a read is done.
func (c *webSocketConn) Read(context.Context) (jsonrpc.Message, error) {
	for {
		kind, data, err := c.ws.Read(c.ctx)
		if err != nil {
			var closed websocket.CloseError
			switch {
			case errors.Is(err, websocket.ErrMessageTooBig):
				return nil, fmt.Errorf("%w: message too large (limit %d bytes)", errTooBig, c.link.dialer.maxMessage())
			case errors.As(err, &closed) && closed.Code == websocket.StatusNormalClosure, c.ctx.Err() != nil:
				return nil, io.EOF
			}
			return nil, err
		}
		m, err := jsonrpc.DecodeMessage(data)
		if kind != websocket.MessageText || err != nil {
			c.link.addNoise(string(data[:min(len(data), 4*maxNoiseLine)]))
			continue
		}
		return m, nil
	}
}

func (c *webSocketConn) Write(ctx context.Context, msg jsonrpc.Message) error {
	data, err := jsonrpc.EncodeMessage(msg)
	if err != nil {
		return err
	}
	if ctx.Err() != nil { // an aborted write would close the connection
		return fmt.Errorf("%w: %w", errUnsent, ctx.Err())
	}
	bounded, cancel := context.WithTimeout(c.ctx, frameTimeout)
	defer cancel()
	return c.ws.Write(bounded, websocket.MessageText, data)
}

// Close sends a close frame and closes the connection.
func (c *webSocketConn) Close() error {
	c.once.Do(func() {
		c.ws.Close(websocket.StatusNormalClosure, "")
		c.cancel()
	})
	return nil
}
