package upstream

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Initial and maximum retry delay.
const (
	firstWait = time.Second
	maxWait   = time.Minute
)

// backoff returns the delay before a retry. The delay doubles with each
// consecutive failure, and up to half of it is random.
func backoff(failures int) time.Duration {
	d := firstWait << min(max(failures-1, 0), 10)
	d = min(d, maxWait)
	return d/2 + rand.N(d/2+1)
}

// observeListChanges is receiving middleware that reports list_changed
// notifications to l.changed.
func (l *link) observeListChanges(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		res, err := next(ctx, method, req) // the SDK clears its cache
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

// listen keeps a stream of list change notifications open in the background if
// the server is modern and supports it.
func (l *link) listen(s *mcp.ClientSession, o *DialOptions) {
	r := s.InitializeResult()
	if o.Changed == nil || sessionEra(s) != Modern || r.Capabilities == nil {
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
	meta := l.requestMeta(r.ProtocolVersion)
	l.group.Go(func() {
		for failures := 0; ; {
			start := time.Now()
			_, err := l.sendRequest(l.ctx, "subscriptions/listen", &mcp.SubscriptionsListenParams{Meta: meta, Notifications: n})
			var wire *jsonrpc.Error
			if l.ctx.Err() != nil || l.isLost() {
				return
			}
			if errors.As(err, &wire) && wire.Code == jsonrpc.CodeMethodNotFound {
				return // unsupported despite its capabilities; lists are refreshed by age
			}
			if failures++; time.Since(start) > maxWait {
				failures = 1
			}
			select {
			case <-time.After(backoff(failures)):
			case <-l.ctx.Done():
				return
			}
			// Notifications may have been missed.
			for _, w := range what {
				o.Changed(w)
			}
		}
	})
}

// requestMeta returns the _meta field of requests to modern servers.
func (l *link) requestMeta(version string) mcp.Meta {
	return mcp.Meta{
		mcp.MetaKeyProtocolVersion:    version,
		mcp.MetaKeyClientInfo:         l.dialer.client(),
		mcp.MetaKeyClientCapabilities: map[string]any{},
	}
}

// Check returns an error if the server does not respond. It sends ping to
// legacy servers and server/discover to modern servers.
func (c *Conn) Check(ctx context.Context) error {
	if c.Era == Legacy {
		return c.Ping(ctx, nil)
	}
	_, err := c.link.sendRequest(ctx, "server/discover", &mcp.DiscoverParams{Meta: c.link.requestMeta(c.InitializeResult().ProtocolVersion)})
	return err
}
