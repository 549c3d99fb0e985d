package upstream

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// builtin maps types to transports. A new transport needs a file with such a function and
// a line here.
var builtin = map[string]func(l *link) (mcp.Transport, error){
	Stdio:     newStdio,
	HTTP:      newStreamable,
	SSE:       newSSE,
	WebSocket: newWebSocket,
}

func (d *Dialer) transport(typ string, c *Config, u string, l *link) (mcp.Transport, error) {
	if f := d.Transports[typ]; f != nil {
		return f(c, u)
	}
	if f := builtin[typ]; f != nil {
		return f(l)
	}
	known := slices.Sorted(maps.Keys(builtin))
	return nil, fmt.Errorf("unknown transport %q; use one of %q", typ, known)
}

var (
	errUnsent = errors.New("nothing was sent")
	errTooBig = errors.New("message too large")
)
