package serverskill

import (
	"context"

	"github.com/loadout-dev/loadout/internal/upstream"
)

// SharedConnection returns a connector that uses the connections of a pool's
// server.
func SharedConnection(s *upstream.Server) Connector { return shared{s} }

type shared struct{ server *upstream.Server }

func (c shared) Do(ctx context.Context, what string, f func(context.Context, Conn) error) error {
	return c.server.Do(ctx, what, func(ctx context.Context, conn *upstream.Conn) error { return f(ctx, conn) })
}

// OwnConnection returns a connector that opens a connection for each operation
// and closes it afterwards. config returns the configuration with its variables
// resolved.
func OwnConnection(d *upstream.Dialer, config func() (*upstream.Config, error)) Connector {
	return own{d, config}
}

type own struct {
	dialer *upstream.Dialer
	config func() (*upstream.Config, error)
}

func (c own) Do(ctx context.Context, what string, f func(context.Context, Conn) error) error {
	config, err := c.config()
	if err != nil {
		return err
	}
	// If the caller serves MCP, ctx holds the protocol version of its client, which
	// the SDK would send to the server.
	plain, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	defer context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })()
	ctx = plain
	conn, err := c.dialer.Dial(ctx, config, nil)
	if err != nil {
		return err
	}
	defer conn.Close()
	return conn.Do(ctx, config, what, func(ctx context.Context, conn *upstream.Conn) error { return f(ctx, conn) })
}

// ListWhenConnected makes a source list the skills of a pool's server again when the
// server has connected and the listing is old, until cancel is called.
func ListWhenConnected(p *upstream.Pool, server *upstream.Server, s *Source) (cancel func()) {
	return p.Subscribe(func(changed *upstream.Server) {
		if changed != server {
			return
		}
		if state, _ := changed.Failure(); state == upstream.Ready {
			s.ListIfOld()
		}
	})
}
