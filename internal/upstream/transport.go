package upstream

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// builtinTransports maps each transport type to its constructor.
var builtinTransports = map[string]func(l *link) (mcp.Transport, error){
	Stdio:     newStdio,
	HTTP:      newStreamable,
	SSE:       newSSE,
	WebSocket: newWebSocket,
}

func (d *Dialer) transport(typ string, c *Config, u string, l *link) (mcp.Transport, error) {
	if f := d.Transports[typ]; f != nil {
		return f(c, u)
	}
	if f := builtinTransports[typ]; f != nil {
		return f(l)
	}
	known := slices.Sorted(maps.Keys(builtinTransports))
	return nil, fmt.Errorf("unknown transport %q; use one of %q", typ, known)
}

var (
	errUnsent = errors.New("request not sent")
	errTooBig = errors.New("message too large")
)
