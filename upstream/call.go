package upstream

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// maxRounds bounds the questions of a server in one call.
const maxRounds = 10

// CallOptions are the choices for one call.
type CallOptions struct {
	Timeout time.Duration // 0 is [Config.CallTimeout], and that [DefaultCallTimeout]
	// Progress gets notifications of progress, with the token of the caller's own
	// params. It is called from the goroutine that reads: it must not wait.
	Progress func(*mcp.ProgressNotificationParams)
	// Elicit answers questions to the person: of the newer era as results that
	// need input, of the older as requests. A shared connection of the older era
	// does not say which call asks: with several on their way, it is cancelled.
	// Nil: results that need input are returned as they are.
	Elicit func(context.Context, *mcp.ElicitParams) (*mcp.ElicitResult, error)
}

// call is one on its way.
type call struct {
	o     *CallOptions
	token any // of the caller
}

var tokens atomic.Int64

// Call calls a tool, and connects first if need be. The result is whole, as the
// server gave it; params is not changed. ctx ends the call, and tells the server.
//
// An error of the protocol is in the chain as [*jsonrpc.Error], with its code and
// data. Where the request was sent and no answer came, it is an
// [*OutcomeUnknownError], and the call is not repeated. It is repeated where it
// was surely not accepted: when nothing was sent (also at another URL of the
// server), and once when a session of HTTP has expired.
func (s *Server) Call(ctx context.Context, params *mcp.CallToolParams, o *CallOptions) (*mcp.CallToolResult, error) {
	if o == nil {
		o = &CallOptions{}
	}
	limit := o.Timeout
	if limit <= 0 {
		limit = s.config.CallTimeout
	}
	if limit <= 0 {
		limit = DefaultCallTimeout
	}
	caller, cancel := context.WithTimeoutCause(ctx, limit, &lateError{"no answer", limit})
	if s.config.Type == Stdio || s.config.Type == "" && len(s.config.URLs) == 0 {
		defer cancel()
	} else {
		// The SDK reads the end of a stream after it has delivered the answer; cut
		// short, the connection of HTTP could not be used again.
		defer func() { time.AfterFunc(time.Second, cancel) }()
	}
	if caller.Err() != nil {
		return nil, s.callError(params.Name, context.Cause(caller))
	}
	ctx = outward(caller)
	if s.slots != nil {
		select {
		case s.slots <- struct{}{}:
			defer func() { <-s.slots }()
		case <-ctx.Done():
			return nil, s.callError(params.Name, fmt.Errorf("waiting for one of its %d calls at a time to end: %w", cap(s.slots), context.Cause(ctx)))
		}
	}
	p := *params
	for range maxRounds {
		res, err := s.deliver(ctx, &p, o)
		if err != nil || !res.NeedsInput() || o.Elicit == nil {
			return res, err
		}
		answers, err := answers(caller, res, o)
		if err != nil {
			return nil, s.callError(params.Name, err)
		}
		p.InputResponses, p.RequestState = answers, res.RequestState
	}
	return nil, s.callError(params.Name, fmt.Errorf("it asked for input more than %d times", maxRounds))
}

// outward is a context that ends with ctx, for the same cause, and has none of its
// values: of a caller who serves MCP, the SDK keeps the version of the protocol
// of its client there, and would use it as the server's.
func outward(ctx context.Context) context.Context {
	out, end := context.WithCancelCause(context.Background())
	context.AfterFunc(ctx, func() { end(context.Cause(ctx)) })
	return out
}

// forServer is the _meta of a call as a server of this era gets it, without what
// is between a client and the caller.
func forServer(meta mcp.Meta, era string) mcp.Meta {
	m := maps.Clone(meta)
	delete(m, mcp.MetaKeyProtocolVersion)
	delete(m, mcp.MetaKeySubscriptionID)
	if era != Modern {
		delete(m, mcp.MetaKeyClientInfo)
		delete(m, mcp.MetaKeyClientCapabilities)
		//lint:ignore SA1019 servers of the older era may log
		delete(m, mcp.MetaKeyLogLevel)
	}
	return m
}

// answers has the person answer what a result asks for.
func answers(ctx context.Context, res *mcp.CallToolResult, o *CallOptions) (mcp.InputResponseMap, error) {
	all := mcp.InputResponseMap{}
	for id, req := range res.InputRequests {
		e, ok := req.(*mcp.ElicitParams)
		if !ok {
			return nil, fmt.Errorf("it asks for input of a kind that is not supported (%T)", req)
		}
		a, err := o.Elicit(ctx, e)
		if err != nil {
			return nil, fmt.Errorf("asking the person: %w", err)
		}
		all[id] = a
	}
	return all, nil
}

// deliver makes one request, at whichever instance takes it.
func (s *Server) deliver(ctx context.Context, p *mcp.CallToolParams, o *CallOptions) (*mcp.CallToolResult, error) {
	expired := false
	for tries := 0; ; tries++ {
		if err := s.Connect(ctx); err != nil {
			return nil, err
		}
		i, conn, c, token := s.take(p, o)
		if i == nil {
			if tries > len(s.instances)+1 {
				return nil, s.callError(p.Name, errEnded)
			}
			continue
		}
		t := &track{}
		began := time.Now()
		res, err := conn.CallTool(context.WithValue(ctx, trackKey{}, t), c)
		s.give(i, token, time.Since(began))
		if err == nil {
			return res, nil
		}
		if wire := wireError(err); wire != nil && !goneSession(t, err) {
			return nil, s.callError(p.Name, concealWire(s.config, wire))
		}
		status := int(t.status.Load())
		switch {
		case t.answered.Load():
			return nil, s.callError(p.Name, fmt.Errorf("its result cannot be read: %w", err))
		case status == http.StatusUnauthorized || status == http.StatusForbidden:
			auth := &AuthError{Server: s.config.Name, Status: status, Next: conn.link.next(), Err: ofTransport(err)}
			i.evict(conn, auth)
			return nil, auth
		case goneSession(t, err):
			i.evict(conn, errors.New("its session has expired"))
			if !expired {
				expired = true
				continue
			}
			return nil, s.callError(p.Name, errors.New("its session has expired, and the next one at once"))
		case ctx.Err() != nil:
			if late := context.Cause(ctx); t.sent.Load() && errors.As(late, new(*lateError)) {
				return nil, &OutcomeUnknownError{s.config.Name, p.Name, late}
			}
			return nil, s.callError(p.Name, context.Cause(ctx))
		case status != 0 && !uncertain(status):
			return nil, s.callError(p.Name, fmt.Errorf("it answers %d %s", status, http.StatusText(status)))
		case status != 0:
			return nil, &OutcomeUnknownError{s.config.Name, p.Name, fmt.Errorf("it answers %d %s", status, http.StatusText(status))}
		}
		i.evict(conn, errors.New("a call found its connection broken"))
		if !t.sent.Load() && tries <= len(s.instances) {
			continue
		}
		err = s.lastWords(conn, err)
		if t.sent.Load() {
			return nil, &OutcomeUnknownError{s.config.Name, p.Name, err}
		}
		return nil, s.callError(p.Name, err)
	}
}

// take chooses the instance with the least calls on their way, and prepares the
// request for it. The instance is nil where no one is connected any more.
func (s *Server) take(p *mcp.CallToolParams, o *CallOptions) (*instance, *Conn, *mcp.CallToolParams, string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var best *instance
	least := math.MaxInt
	for _, i := range s.instances {
		if i.conn != nil && len(i.calls) < least {
			best, least = i, len(i.calls)
		}
	}
	if best == nil {
		return nil, nil, nil, ""
	}
	c := *p
	c.Meta = forServer(p.Meta, best.conn.Era)
	token := "lo-" + strconv.FormatInt(tokens.Add(1), 10)
	own := &call{o: o, token: c.Meta["progressToken"]}
	if own.token != nil || o.Progress != nil {
		// Tokens of several callers may be the same.
		c.SetProgressToken(token)
	}
	if best.conn.Era == Modern && c.Meta[mcp.MetaKeyClientCapabilities] == nil {
		caps := map[string]any{}
		if o.Elicit != nil {
			caps["elicitation"] = map[string]any{"form": map[string]any{}}
		}
		if c.Meta == nil {
			c.Meta = mcp.Meta{}
		}
		c.Meta[mcp.MetaKeyClientCapabilities] = caps
	}
	best.calls[token] = own
	return best, best.conn, &c, token
}

func (s *Server) give(i *instance, token string, took time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(i.calls, token)
	s.used = time.Now()
	s.latency = took
}

// progress hands a notification to the call that it is about.
func (i *instance) progress(_ context.Context, req *mcp.ProgressNotificationClientRequest) {
	token, _ := req.Params.ProgressToken.(string)
	i.server.mu.Lock()
	c := i.calls[token]
	i.server.mu.Unlock()
	if c == nil || c.o.Progress == nil {
		return
	}
	n := *req.Params
	n.ProgressToken = c.token
	c.o.Progress(&n)
}

// elicit hands a question of the older era to the only call that can have asked.
func (i *instance) elicit(ctx context.Context, req *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
	i.server.mu.Lock()
	var only *call
	if len(i.calls) == 1 {
		for _, c := range i.calls {
			only = c
		}
	}
	i.server.mu.Unlock()
	if only == nil || only.o.Elicit == nil {
		return &mcp.ElicitResult{Action: "cancel"}, nil
	}
	return only.o.Elicit(ctx, req.Params)
}

// wireError is the error of the server in a chain, not one that the SDK made.
func wireError(err error) *jsonrpc.Error {
	var wire *jsonrpc.Error
	if errors.As(err, &wire) && !internalCode(wire) {
		return wire
	}
	return nil
}

// goneSession says whether a server has refused a request for its session: with
// 404, as the protocol has it, or with 400 and words to that effect.
func goneSession(t *track, err error) bool {
	if !t.session.Load() {
		return false
	}
	switch t.status.Load() {
	case http.StatusNotFound:
		return true
	case http.StatusBadRequest:
		return strings.Contains(strings.ToLower(err.Error()), "session")
	}
	return false
}

// uncertain says whether an HTTP status leaves open what became of the request.
func uncertain(status int) bool {
	switch status {
	case http.StatusInternalServerError, http.StatusBadGateway, http.StatusGatewayTimeout:
		return true
	}
	return false
}

// lastWords says why a connection broke, and what the server said last.
func (s *Server) lastWords(conn *Conn, err error) error {
	if conn.Transport == Stdio {
		conn.Close() // once it is reaped, its end and last words are known
	}
	return &said{scrub(s.config, reason(s.config, conn.link, err)+tail(conn.Stderr())), err, 0}
}

// callError says which tool of which server failed, and why.
func (s *Server) callError(tool string, err error) error {
	why := err.Error()
	if wire := wireError(err); wire != nil {
		why = fmt.Sprintf("%s (%d)", clip(conceal(s.config, wire.Message), 2000), wire.Code)
	}
	return &said{scrub(s.config, fmt.Sprintf("tool %q of server %q: %s", tool, s.config.Name, why)), err, 0}
}
