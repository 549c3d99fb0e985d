//lint:file-ignore SA1019 legacy clients and servers still use deprecated features

package mcpproxy

import (
	"context"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout/internal/rpcmessage"
)

// subscribe subscribes a client to a resource or, if on is false, unsubscribes
// the client. All modern clients share a subscription on the server.
func (s *Server) subscribe(ctx context.Context, ss *mcp.ServerSession, uri string, on bool) error {
	if !on { // even if the client has disconnected
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), notifyTimeout)
		defer cancel()
	}
	shared := ctx.Value(subscriptionKey{}) != nil
	in := &inboundRequest{ctx: ctx, ss: ss, modern: shared}
	ctx = upstreamContext{ctx}
	if !shared {
		in.client = s.clientFor(ss)
	}
	t, err := s.routeURI(ctx, in, uri)
	if err == nil && on {
		err = s.authorizeAccess(in.ctx, t, "resource")
	}
	if err != nil {
		return err
	}
	l, err := in.conn(ctx, t.up)
	if err != nil {
		return t.up.requestError("resources/subscribe", err)
	}
	if c := l.capabilities(); c.Resources == nil || !c.Resources.Subscribe {
		return &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "server " + t.up.Name + " does not support subscriptions"}
	}
	counts := l.subscribed // of a connection of a legacy client
	if shared {
		counts = t.up.subscribed
	}
	if on {
		return t.up.addSubscription(ctx, l, counts, t.name, shared)
	}
	return t.up.removeSubscription(ctx, l, counts, t.name)
}

const (
	// maxSubscriptions is the maximum number of resources of a server to which all
	// modern clients, or a legacy client, are subscribed.
	maxSubscriptions = 1000
	// refusedFor is the time for which a subscription that a server refused is not
	// requested again. A client is known to retry in a loop.
	refusedFor = 10 * time.Second
)

// refusal is a subscription that a server refused.
type refusal struct {
	at  time.Time
	err error
}

// addSubscription subscribes to a resource on a connection, unless it already is.
// If several is set, it counts the subscribers. counts is guarded by u.mu.
func (u *upstreamServer) addSubscription(ctx context.Context, l *upstreamConn, counts map[string]int, uri string, several bool) error {
	u.mu.Lock()
	before, refused := counts[uri], u.refused[uri]
	switch {
	case before == 0 && time.Since(refused.at) < refusedFor:
		u.mu.Unlock()
		return refused.err
	case before == 0 && len(counts) >= maxSubscriptions:
		u.mu.Unlock()
		return rpcmessage.InvalidParams("too many subscriptions to server %s (limit %d)", u.Name, maxSubscriptions)
	case before == 0 || several:
		counts[uri]++
	}
	u.mu.Unlock()
	if before > 0 {
		return nil
	}
	err := unwrapError(l.conn.Session.Subscribe(ctx, &mcp.SubscribeParams{URI: uri}))
	if err == nil {
		return nil
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	decrement(counts, uri)
	if ctx.Err() == nil {
		if u.refused == nil || len(u.refused) >= maxSubscriptions {
			u.refused = map[string]refusal{}
		}
		u.refused[uri] = refusal{time.Now(), err}
	}
	return err
}

// removeSubscription reverses addSubscription.
func (u *upstreamServer) removeSubscription(ctx context.Context, l *upstreamConn, counts map[string]int, uri string) error {
	u.mu.Lock()
	before := counts[uri]
	decrement(counts, uri)
	after := counts[uri]
	u.mu.Unlock()
	if before == 0 || after > 0 {
		return nil
	}
	return unwrapError(l.conn.Session.Unsubscribe(ctx, &mcp.UnsubscribeParams{URI: uri}))
}

func decrement(counts map[string]int, key string) {
	if counts[key]--; counts[key] <= 0 {
		delete(counts, key)
	}
}
