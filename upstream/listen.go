package upstream

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Backing off: the first wait, and the longest one.
const (
	firstWait = time.Second
	maxWait   = time.Minute
)

// backoff is how long to wait after so many failures in a row: doubling, with
// half of it left to chance.
func backoff(failures int) time.Duration {
	d := firstWait << min(max(failures-1, 0), 10)
	d = min(d, maxWait)
	return d/2 + rand.N(d/2+1)
}

// notice is middleware that sees the notifications of changed lists.
func (l *link) notice(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		res, err := next(ctx, method, req) // the SDK drops what it has cached
		if l.changed != nil {
			switch method {
			case "notifications/tools/list_changed":
				l.changed("tools")
			case "notifications/prompts/list_changed":
				l.changed("prompts")
			case "notifications/resources/list_changed":
				l.changed("resources")
			}
		}
		return res, err
	}
}

// listen keeps a stream of notifications open on a modern server that has any.
func (l *link) listen(s *mcp.ClientSession, o *DialOptions) {
	r := s.InitializeResult()
	if o.Changed == nil || eraOf(s) != Modern || r.Capabilities == nil {
		return
	}
	var what []string
	n := &mcp.NotificationSubscriptions{}
	if c := r.Capabilities.Tools; c != nil && c.ListChanged {
		n.ToolsListChanged = true
		what = append(what, "tools")
	}
	if c := r.Capabilities.Prompts; c != nil && c.ListChanged {
		n.PromptsListChanged = true
		what = append(what, "prompts")
	}
	if c := r.Capabilities.Resources; c != nil && c.ListChanged {
		n.ResourcesListChanged = true
		what = append(what, "resources")
	}
	if len(what) == 0 {
		return
	}
	meta := l.meta(r.ProtocolVersion)
	l.group.Go(func() {
		for failures := 0; ; {
			began := time.Now()
			_, err := l.ask(l.ctx, "subscriptions/listen", &mcp.SubscriptionsListenParams{Meta: meta, Notifications: n})
			var wire *jsonrpc.Error
			if l.ctx.Err() != nil || l.lost() {
				return
			}
			if errors.As(err, &wire) && wire.Code == jsonrpc.CodeMethodNotFound {
				return // it does not do what it says; lists are asked for by their age
			}
			if failures++; time.Since(began) > maxWait {
				failures = 1
			}
			select {
			case <-time.After(backoff(failures)):
			case <-l.ctx.Done():
				return
			}
			// What changed meanwhile was not told.
			for _, w := range what {
				o.Changed(w)
			}
		}
	})
}

// meta is what a request of our own says of itself in the modern era.
func (l *link) meta(version string) mcp.Meta {
	return mcp.Meta{
		mcp.MetaKeyProtocolVersion:    version,
		mcp.MetaKeyClientInfo:         l.dialer.client(),
		mcp.MetaKeyClientCapabilities: map[string]any{},
	}
}

// Check asks the server whether it is well: ping in the older era,
// server/discover in the newer.
func (c *Conn) Check(ctx context.Context) error {
	if c.Era == Legacy {
		return c.Ping(ctx, nil)
	}
	_, err := c.link.ask(ctx, "server/discover", &mcp.DiscoverParams{Meta: c.link.meta(c.InitializeResult().ProtocolVersion)})
	return err
}
