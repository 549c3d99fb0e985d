// Package clientname extracts the name of an MCP client from its requests,
// without changing or delaying messages.
package clientname

import (
	"cmp"
	"context"
	"encoding/json"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout/internal/printable"
)

// Observer extracts the name of a client from its requests. It is safe for
// concurrent use.
type Observer struct {
	changed func()

	mu   sync.Mutex
	name string
	read int // number of requests that were searched
}

// New returns an observer that calls changed when it finds the name.
func New(changed func()) *Observer { return &Observer{changed: changed} }

// Name returns the name of the client, or "" if it is not known.
func (o *Observer) Name() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.name
}

// Transport returns a transport that passes its requests to the observer.
func (o *Observer) Transport(t mcp.Transport) mcp.Transport { return &transport{t, o} }

// observe searches a request for the name of the client. In the older protocol
// era the first request contains it, in the newer era each request.
func (o *Observer) observe(req *jsonrpc.Request) {
	const (
		most    = 10 // requests to search; a client sends its name by then or never
		maxSize = 64 << 10
		maxName = 100
	)
	o.mu.Lock()
	o.read++
	enough := o.name != "" || o.read > most
	o.mu.Unlock()
	if enough || len(req.Params) > maxSize {
		return
	}
	type info struct {
		Name string `json:"name"`
	}
	var params struct {
		ClientInfo info `json:"clientInfo"`
		Meta       struct {
			ClientInfo info `json:"io.modelcontextprotocol/clientInfo"`
		} `json:"_meta"`
	}
	if json.Unmarshal(req.Params, &params) != nil {
		return
	}
	name := printable.OneLine(cmp.Or(params.ClientInfo.Name, params.Meta.ClientInfo.Name))
	if name == "" || len(name) > maxName {
		return
	}
	o.mu.Lock()
	o.name = name
	o.mu.Unlock()
	o.changed()
}

type transport struct {
	mcp.Transport
	observer *Observer
}

func (t *transport) Connect(ctx context.Context) (mcp.Connection, error) {
	c, err := t.Transport.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &connection{c, t.observer}, nil
}

type connection struct {
	mcp.Connection
	observer *Observer
}

func (c *connection) Read(ctx context.Context) (jsonrpc.Message, error) {
	msg, err := c.Connection.Read(ctx)
	if req, ok := msg.(*jsonrpc.Request); ok {
		c.observer.observe(req)
	}
	return msg, err
}
