package upstream

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout/internal/toolresult"
)

// maxRounds is the maximum number of times that a server may request input
// during a call.
const maxRounds = 10

// CallOptions configures a tool call.
type CallOptions struct {
	Timeout time.Duration // default is [Config.CallTimeout], then [DefaultCallTimeout]
	// Progress receives progress notifications, with the progress token in the
	// caller's params. It is called by the reading goroutine and must not
	// block.
	Progress func(*mcp.ProgressNotificationParams)
	// Elicit handles requests for user input. A modern server returns such a
	// request as the call's result. A legacy server's request does not identify
	// the call, so it is cancelled unless exactly one call is running. If
	// Elicit is nil, results that request input are returned unchanged.
	Elicit func(context.Context, *mcp.ElicitParams) (*mcp.ElicitResult, error)
}

// call holds the options and the progress token of a running tool call.
type call struct {
	o     *CallOptions
	token any // caller's progress token; may be nil
}

var tokens atomic.Int64

// Call calls a tool. It connects to the server first if necessary. It returns
// the server's result unchanged and does not change params. When ctx is done,
// Call cancels the call on the server.
//
// If the server returns a protocol error, the error wraps a [*jsonrpc.Error].
// If the request was sent but got no response, the error is an
// [*OutcomeUnknownError]. Call retries only requests that the server cannot
// have executed: those that were not sent, and, once, those rejected because
// the HTTP session had expired. It does not retry after a [LocalError].
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
	caller, cancel := context.WithTimeoutCause(ctx, limit, &timeoutError{"no answer", limit})
	if s.config.Type == Stdio || s.config.Type == "" && len(s.config.URLs) == 0 {
		defer cancel()
	} else {
		// The SDK reads the rest of the stream after it has delivered the
		// response. Cancelling earlier would make the HTTP connection unusable.
		defer func() { time.AfterFunc(time.Second, cancel) }()
	}
	if caller.Err() != nil {
		return nil, s.callError(params.Name, context.Cause(caller))
	}
	ctx = detachContext(caller)
	if s.slots != nil {
		select {
		case s.slots <- struct{}{}:
			defer func() { <-s.slots }()
		case <-ctx.Done():
			return nil, s.callError(params.Name, fmt.Errorf("wait for one of %d concurrent calls to finish: %w", cap(s.slots), context.Cause(ctx)))
		}
	}
	p := *params
	for range maxRounds {
		res, err := s.sendCall(ctx, &p, o)
		if err == nil {
			cleanInputRequests(s.config.Name, res)
		}
		if err != nil || !res.NeedsInput() || o.Elicit == nil {
			return res, err
		}
		answers, err := collectInput(caller, res, o)
		if err != nil {
			return nil, s.callError(params.Name, err)
		}
		p.InputResponses, p.RequestState = answers, res.RequestState
	}
	return nil, s.callError(params.Name, fmt.Errorf("too many input requests in one call (limit %d)", maxRounds))
}

// detachContext returns a context that is cancelled with ctx. Of the values in ctx, it keeps only
// the one that says whether the result is forwarded. If the caller serves MCP, ctx also holds the
// protocol version of its client, and the SDK would send that version to the server.
func detachContext(ctx context.Context) context.Context {
	out, end := context.WithCancelCause(context.Background())
	context.AfterFunc(ctx, func() { end(context.Cause(ctx)) })
	if m, ok := toolresult.Forwarding(ctx); ok {
		return toolresult.WithForwarding(out, m)
	}
	return out
}

// callMeta returns a copy of meta to send with a call to a server that speaks
// the protocol of the given era, [Modern] or [Legacy]. It omits entries that
// are meant for another connection, and those that the era does not support.
func callMeta(meta mcp.Meta, era string) mcp.Meta {
	m := maps.Clone(meta)
	delete(m, mcp.MetaKeyProtocolVersion)
	delete(m, mcp.MetaKeySubscriptionID)
	if era != Modern {
		delete(m, mcp.MetaKeyClientInfo)
		delete(m, mcp.MetaKeyClientCapabilities)
		//lint:ignore SA1019 legacy servers may still log
		delete(m, mcp.MetaKeyLogLevel)
	}
	return m
}

// collectInput asks the user for the input that a result requests.
func collectInput(ctx context.Context, res *mcp.CallToolResult, o *CallOptions) (mcp.InputResponseMap, error) {
	all := mcp.InputResponseMap{}
	for id, req := range res.InputRequests {
		e, ok := req.(*mcp.ElicitParams)
		if !ok {
			return nil, fmt.Errorf("unsupported input request %T", req)
		}
		a, err := o.Elicit(ctx, e)
		if err != nil {
			return nil, fmt.Errorf("get input from the user: %w", err)
		}
		all[id] = ForwardedResponse(a)
	}
	return all, nil
}

// sendCall sends a call to one of the instances and retries it if that is safe.
func (s *Server) sendCall(ctx context.Context, p *mcp.CallToolParams, o *CallOptions) (*mcp.CallToolResult, error) {
	expired := false
	for tries := 0; ; tries++ {
		if err := s.Connect(ctx); err != nil {
			return nil, err
		}
		i, conn, c, token := s.acquireInstance(p, o)
		if i == nil {
			if tries > len(s.instances)+1 {
				return nil, s.callError(p.Name, errEnded)
			}
			continue
		}
		t := &track{}
		start := time.Now()
		res, err := conn.CallTool(context.WithValue(ctx, trackKey{}, t), c)
		s.releaseInstance(i, token, time.Since(start))
		if err == nil {
			return res, nil
		}
		if wire := wireError(err); wire != nil && !isSessionExpired(t, err) {
			return nil, s.callError(p.Name, cleanWireError(redactWireError(s.config, wire)))
		}
		status := int(t.status.Load())
		switch {
		case t.answered.Load():
			return nil, s.callError(p.Name, fmt.Errorf("invalid result: %w", err))
		case ctx.Err() == nil && localError(err) != nil: // the connection is still usable
			return nil, s.callError(p.Name, localError(err))
		case status == http.StatusUnauthorized || status == http.StatusForbidden:
			auth := &AuthError{Server: s.config.Name, Status: status, Next: conn.link.nextStep(), Err: transportError(err)}
			i.evict(conn, auth)
			return nil, auth
		case isSessionExpired(t, err):
			i.evict(conn, errors.New("session expired"))
			if !expired {
				expired = true
				continue
			}
			return nil, s.callError(p.Name, errors.New("session expired twice in a row"))
		case ctx.Err() != nil:
			if late := context.Cause(ctx); t.sent.Load() && errors.As(late, new(*timeoutError)) {
				return nil, &OutcomeUnknownError{s.config.Name, p.Name, late}
			}
			return nil, s.callError(p.Name, context.Cause(ctx))
		case status != 0 && !isUncertain(status):
			return nil, s.callError(p.Name, fmt.Errorf("server answered %d %s", status, http.StatusText(status)))
		case status != 0:
			return nil, &OutcomeUnknownError{s.config.Name, p.Name, fmt.Errorf("server answered %d %s", status, http.StatusText(status))}
		}
		i.evict(conn, errors.New("connection broken"))
		if !t.sent.Load() && tries <= len(s.instances) {
			continue
		}
		err = s.brokenError(conn, err)
		if t.sent.Load() {
			return nil, &OutcomeUnknownError{s.config.Name, p.Name, err}
		}
		return nil, s.callError(p.Name, err)
	}
}

// acquireInstance registers a call with the connected instance that has the
// fewest running calls. It returns the instance, its connection, the request to
// send, and the call's token. If no instance is connected, it returns a nil
// instance.
func (s *Server) acquireInstance(p *mcp.CallToolParams, o *CallOptions) (*instance, *Conn, *mcp.CallToolParams, string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	best := s.leastBusy()
	if best == nil {
		return nil, nil, nil, ""
	}
	c := *p
	c.Meta = callMeta(p.Meta, best.conn.Era)
	token := "lo-" + strconv.FormatInt(tokens.Add(1), 10)
	own := &call{o: o, token: c.Meta["progressToken"]}
	if own.token != nil || o.Progress != nil {
		// Several callers may use the same token.
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

// leastBusy returns the connected instance that has the fewest running calls, or nil if
// none is connected. s.mu must be held.
func (s *Server) leastBusy() *instance {
	var best *instance
	for _, i := range s.instances {
		if i.conn != nil && (best == nil || len(i.calls) < len(best.calls)) {
			best = i
		}
	}
	return best
}

func (s *Server) releaseInstance(i *instance, token string, elapsed time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(i.calls, token)
	s.used = time.Now()
	s.latency = elapsed
}

// progress passes a progress notification to the call identified by its token.
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
	n.Message = clean(n.Message)
	c.o.Progress(&n)
}

// elicit passes a legacy request for user input to the running call. It cancels
// the request unless exactly one call is running.
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
	a, err := only.o.Elicit(ctx, cleanElicit(i.server.config.Name, req.Params))
	return ForwardedResponse(a), err
}

// wireError returns the protocol error in err's tree if the server sent it. It
// returns nil for an error that the SDK created.
func wireError(err error) *jsonrpc.Error {
	var wire *jsonrpc.Error
	if errors.As(err, &wire) && !isSDKError(wire) {
		return wire
	}
	return nil
}

// isSessionExpired reports whether a server rejected a request because its
// session has expired: with status 404, as the protocol requires, or with
// status 400 and a message about sessions.
func isSessionExpired(t *track, err error) bool {
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

// isUncertain reports whether a server that responds with the given HTTP status
// may nevertheless have executed the request.
func isUncertain(status int) bool {
	switch status {
	case http.StatusInternalServerError, http.StatusBadGateway, http.StatusGatewayTimeout:
		return true
	}
	return false
}

// brokenError returns an error that says why a connection broke, with the last
// lines of the server's standard error.
func (s *Server) brokenError(conn *Conn, err error) error {
	if conn.Transport == Stdio {
		conn.Close() // after Close the exit status and stderr are complete
	}
	return &displayError{redactText(s.config, failureReason(s.config, conn.link, err)+lastLines(conn.Stderr())), transportError(err), 0}
}

// callError wraps err in an error that names the tool and the server. It
// redacts secrets.
func (s *Server) callError(tool string, err error) error {
	why := err.Error()
	if wire := wireError(err); wire != nil {
		why = fmt.Sprintf("%s (%d)", truncate(redactSecrets(s.config, wire.Message), 2000), wire.Code)
	}
	return &displayError{redactText(s.config, fmt.Sprintf("tool %q of server %q: %s", tool, s.config.Name, why)), transportError(err), 0}
}
