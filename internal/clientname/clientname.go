// Package clientname determines the name of an MCP client from its requests,
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

// Observer finds a client's name in the client's requests. It is safe for
// concurrent use.
type Observer struct {
	changed func()

	mu   sync.Mutex
	name string
	read int // number of requests searched
}

// New returns an observer that calls changed when it finds the client's name.
func New(changed func()) *Observer { return &Observer{changed: changed} }

// Name returns the client's name, or "" if it is not known yet.
func (o *Observer) Name() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.name
}

// Transport wraps t so that the observer sees all requests.
func (o *Observer) Transport(t mcp.Transport) mcp.Transport { return &transport{t, o} }

// observe searches a request for the client's name. In older protocol versions,
// only the first request contains the name; in newer versions, every request
// does.
func (o *Observer) observe(req *jsonrpc.Request) {
	const (
		most    = 10 // maximum number of requests to search
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
