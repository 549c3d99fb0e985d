package mcpproxy

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout/internal/rpcmessage"
	"github.com/loadout-dev/loadout/internal/upstream"
)

// An Opener connects to an upstream server. It must be safe for concurrent use.
type Opener interface {
	// Open opens a new connection. ctx applies only to the attempt.
	Open(ctx context.Context, o *OpenOptions) (*Conn, error)
}

// OpenOptions contains settings that an [Opener] must apply to a connection.
type OpenOptions struct {
	// Client configures the protocol client.
	Client *mcp.ClientOptions
	// Prepare must be called with the protocol client before it connects.
	Prepare func(*mcp.Client)
	// Changed must be called with "tools", "prompts" or "resources" when that
	// list has changed or a notification may have been missed. It does not
	// block.
	Changed func(what string)
}

// Conn is a connection opened by an [Opener].
type Conn struct {
	Session *mcp.ClientSession
	Era     string // upstream.Modern or upstream.Legacy
	// NotificationCount returns the number of notifications read so far,
	// excluding cancellations. It lets the proxy forward a response after the
	// notifications that preceded it. It is nil if the number is unknown.
	NotificationCount func() int64
	// Close closes the connection and waits until its resources are released.
	Close func() error
}

// A Dialer connects to servers. [upstream.Dialer] and [upstream.Pool] implement
// it; a pool also tracks the state of the server.
type Dialer interface {
	Dial(ctx context.Context, c *upstream.Config, o *upstream.DialOptions) (*upstream.Conn, error)
}

// NewDialOpener returns an opener that connects to a configured server.
func NewDialOpener(d Dialer, c *upstream.Config) Opener { return dialOpener{d, c} }

type dialOpener struct {
	dialer Dialer
	config *upstream.Config
}

func (d dialOpener) Open(ctx context.Context, o *OpenOptions) (*Conn, error) {
	c, err := d.dialer.Dial(ctx, d.config, &upstream.DialOptions{Options: o.Client, Prepare: o.Prepare, Changed: o.Changed})
	if err != nil {
		return nil, err
	}
	return &Conn{Session: c.ClientSession, Era: c.Era, NotificationCount: c.NotificationCount, Close: c.Close}, nil
}

// NewTransportOpener returns an opener that connects over SDK transports.
// transport must return a new transport on each call. If era is
// [upstream.Legacy], the opener uses the legacy protocol without trying the
// modern one.
func NewTransportOpener(transport func(context.Context) (mcp.Transport, error), era string) Opener {
	return transportOpener{transport, era}
}

type transportOpener struct {
	transport func(context.Context) (mcp.Transport, error)
	era       string
}

func (v transportOpener) Open(ctx context.Context, o *OpenOptions) (*Conn, error) {
	t, err := v.transport(ctx)
	if err != nil {
		return nil, err
	}
	opts := *o.Client
	opts.ToolListChangedHandler = func(context.Context, *mcp.ToolListChangedRequest) { o.Changed("tools") }
	opts.PromptListChangedHandler = func(context.Context, *mcp.PromptListChangedRequest) { o.Changed("prompts") }
	opts.ResourceListChangedHandler = func(context.Context, *mcp.ResourceListChangedRequest) { o.Changed("resources") }
	var notices func() int64
	if _, http := t.(*mcp.StreamableClientTransport); !http { // the SDK requires this type unwrapped
		n := &countingTransport{Transport: t}
		t, notices = n, n.read.Load
	}
	c := mcp.NewClient(&mcp.Implementation{Name: "loadout", Title: "Loadout", Version: "devel"}, &opts)
	o.Prepare(c)
	var so mcp.ClientSessionOptions
	if v.era == upstream.Legacy {
		so.ProtocolVersion = "2025-11-25"
	}
	s, err := c.Connect(ctx, t, &so)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	era := upstream.Legacy
	if s.InitializeResult().ProtocolVersion >= rpcmessage.ModernVersion {
		era = upstream.Modern
	}
	return &Conn{Session: s, Era: era, NotificationCount: notices, Close: s.Close}, nil
}

// countingTransport counts the notifications that its connections read.
type countingTransport struct {
	mcp.Transport
	read atomic.Int64
}

func (t *countingTransport) Connect(ctx context.Context) (mcp.Connection, error) {
	c, err := t.Transport.Connect(ctx)
	return &countingConn{c, &t.read}, err
}

type countingConn struct {
	mcp.Connection
	read *atomic.Int64
}

func (c *countingConn) Read(ctx context.Context) (jsonrpc.Message, error) {
	msg, err := c.Connection.Read(ctx)
	if r, ok := msg.(*jsonrpc.Request); ok && !r.IsCall() && r.Method != "notifications/cancelled" {
		c.read.Add(1)
	}
	return msg, err
}
