//lint:file-ignore SA1019 legacy clients and servers still use deprecated features

package mcpproxy

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// notifyTimeout is the timeout for sending a notification, in case the client
// does not read.
const notifyTimeout = 10 * time.Second

// subscription is a running subscriptions/listen request from a modern client.
type subscription struct {
	ss     *mcp.ServerSession
	id     any // ID of the request, from the SDK's acknowledgement
	filter mcp.NotificationSubscriptions
}

type subscriptionKey struct{}

// interceptSend is sending middleware. It drops the SDK's change notifications,
// because the SDK does not know the merged lists, and registers subscriptions
// when they are acknowledged.
func (s *Server) interceptSend(next mcp.MethodHandler) mcp.MethodHandler {
	s.send = next
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		switch p := req.GetParams().(type) {
		case *mcp.ToolListChangedParams, *mcp.PromptListChangedParams, *mcp.ResourceListChangedParams, *mcp.ResourceUpdatedNotificationParams:
			return nil, nil
		case *mcp.SubscriptionsAcknowledgedParams:
			if l, ok := ctx.Value(subscriptionKey{}).(*subscription); ok {
				res, err := next(ctx, method, req)
				if err == nil {
					s.mu.Lock()
					l.id, l.filter = p.Meta[mcp.MetaKeySubscriptionID], p.Notifications
					s.subscriptions[l] = true
					s.mu.Unlock()
				}
				return res, err
			}
		}
		return next(ctx, method, req)
	}
}

// serveSubscription serves a subscriptions/listen request until the request is
// cancelled.
func (s *Server) serveSubscription(ctx context.Context, ss *mcp.ServerSession, next func(context.Context) (mcp.Result, error)) (mcp.Result, error) {
	l := &subscription{ss: ss}
	defer func() {
		s.mu.Lock()
		delete(s.subscriptions, l)
		s.mu.Unlock()
	}()
	// Connect to all servers, so that their notifications arrive.
	for _, u := range s.upstreams {
		s.startGoroutine(func() {
			if _, err := u.shared.get(upstreamContext{ctx}); err != nil && ctx.Err() == nil {
				s.reportError(u, err)
			}
		})
	}
	return next(context.WithValue(ctx, subscriptionKey{}, l))
}

// notify sends a notification to a client. ctx is the context of the related
// request, or context.Background() if there is none.
func (s *Server) notify(ctx context.Context, ss *mcp.ServerSession, method string, p mcp.Params) error {
	ctx, cancel := context.WithTimeout(ctx, notifyTimeout)
	defer cancel()
	var req mcp.Request
	switch p := p.(type) {
	case *mcp.ProgressNotificationParams:
		req = &mcp.ServerRequest[*mcp.ProgressNotificationParams]{Session: ss, Params: p}
	case *mcp.LoggingMessageParams:
		req = &mcp.ServerRequest[*mcp.LoggingMessageParams]{Session: ss, Params: p}
	case *mcp.ElicitationCompleteParams:
		req = &mcp.ServerRequest[*mcp.ElicitationCompleteParams]{Session: ss, Params: p}
	case *mcp.ResourceUpdatedNotificationParams:
		req = &mcp.ServerRequest[*mcp.ResourceUpdatedNotificationParams]{Session: ss, Params: p}
	case *mcp.ToolListChangedParams:
		req = &mcp.ServerRequest[*mcp.ToolListChangedParams]{Session: ss, Params: p}
	case *mcp.PromptListChangedParams:
		req = &mcp.ServerRequest[*mcp.PromptListChangedParams]{Session: ss, Params: p}
	case *mcp.ResourceListChangedParams:
		req = &mcp.ServerRequest[*mcp.ResourceListChangedParams]{Session: ss, Params: p}
	}
	_, err := s.send(ctx, method, req)
	return err
}

// notifyListChanged notifies a session that a list has changed. id is the
// subscription ID, or nil for a legacy client.
func (s *Server) notifyListChanged(ss *mcp.ServerSession, what string, id any) {
	var meta mcp.Meta
	if id != nil {
		meta = mcp.Meta{mcp.MetaKeySubscriptionID: id}
	}
	var p mcp.Params
	switch what {
	case "tools":
		p = &mcp.ToolListChangedParams{Meta: meta}
	case "prompts":
		p = &mcp.PromptListChangedParams{Meta: meta}
	default:
		p = &mcp.ResourceListChangedParams{Meta: meta}
	}
	if err := s.notify(context.Background(), ss, "notifications/"+what+"/list_changed", p); err != nil {
		s.log.Debug("could not notify client of a change", "error", err)
	}
}

func (s *Server) listSubscriptions() []*subscription {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.subscriptions))
}

// notifySubscribers notifies the subscribers to a list that the list has
// changed.
func (s *Server) notifySubscribers(what string) {
	for _, l := range s.listSubscriptions() {
		if what == "tools" && l.filter.ToolsListChanged || what == "prompts" && l.filter.PromptsListChanged || what == "resources" && l.filter.ResourcesListChanged {
			s.notifyListChanged(l.ss, what, l.id)
		}
	}
}

// notifyUpdated notifies the subscribers to a resource that the resource was
// updated.
func (s *Server) notifyUpdated(p *mcp.ResourceUpdatedNotificationParams) {
	for _, l := range s.listSubscriptions() {
		if slices.Contains(l.filter.ResourceSubscriptions, p.URI) {
			q := *p
			q.Meta = mcp.Meta(maps.Clone(p.Meta))
			if q.Meta == nil {
				q.Meta = mcp.Meta{}
			}
			q.Meta[mcp.MetaKeySubscriptionID] = l.id
			if err := s.notify(context.Background(), l.ss, "notifications/resources/updated", &q); err != nil {
				s.log.Debug("could not notify client of a change", "error", err)
			}
		}
	}
}
