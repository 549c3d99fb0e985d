//lint:file-ignore SA1019 legacy clients and servers still use deprecated features

package mcpproxy

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout/internal/rpcmessage"
)

// pendingCalls holds the calls to legacy servers that await input from modern
// clients, by handle. The client returns the handle with its input.
type pendingCalls struct {
	max int
	ttl time.Duration

	mu     sync.Mutex // guards the fields below
	calls  map[string]*pendingCall
	closed bool
}

func (h *pendingCalls) init(most int, ttl time.Duration) {
	h.max, h.ttl, h.calls = most, ttl, map[string]*pendingCall{}
}

// pendingCall is a call to a legacy server that continues after the client has
// received an input request instead of the result.
type pendingCall struct {
	digest      string // digest of the request and its user
	cancel      context.CancelCauseFunc
	ctx         context.Context // context of the call
	line        *upstreamConn
	call        *call
	newQuestion chan struct{} // receives a value when there is a new input request
	done        chan struct{} // closed after res and err are set
	res         mcp.Result
	err         error
	timer       *time.Timer

	mu         sync.Mutex // guards the fields below
	next       int
	unanswered map[string]*question // by the ID sent to the client
	ended      bool
}

// question is an input request that the client has not answered yet.
type question struct {
	request mcp.InputRequest
	answer  chan mcp.InputResponse // buffered
}

var errExpired = errors.New("timed out waiting for client response")

// add stores a call and returns the handle for the client.
func (h *pendingCalls) add(w *pendingCall) (string, error) {
	handle := "held." + rand.Text()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed || len(h.calls) >= h.max {
		return "", &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: fmt.Sprintf("too many calls are waiting for answers (limit %d); try again later", h.max)}
	}
	h.calls[handle] = w
	w.timer = time.AfterFunc(h.ttl, func() {
		h.mu.Lock()
		mine := h.calls[handle] == w
		delete(h.calls, handle)
		h.mu.Unlock()
		if mine {
			w.cancel(errExpired)
		}
	})
	return handle, nil
}

// remove removes and returns a call, so a handle works only once. It returns an
// error unless the digest, which covers the request and its user, matches.
func (h *pendingCalls) remove(handle, digest string) (*pendingCall, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	w := h.calls[handle]
	if w == nil || w.digest != digest {
		return nil, rpcmessage.InvalidParams("unknown or expired requestState; repeat the request without it")
	}
	delete(h.calls, handle)
	w.timer.Stop()
	return w, nil
}

func (h *pendingCalls) close() {
	h.mu.Lock()
	h.closed = true
	waits := h.calls
	h.calls = map[string]*pendingCall{}
	h.mu.Unlock()
	for _, w := range waits {
		w.timer.Stop()
		w.cancel(context.Canceled)
	}
}

// forwardModernToLegacy forwards the request of a modern client to a legacy
// server. The call runs in its own goroutine. When the server requests input,
// the client receives an input_required result, and the call waits for the
// client's retry.
func (s *Server) forwardModernToLegacy(ctx context.Context, in *inboundRequest, x *exchange) (mcp.Result, error) {
	var w *pendingCall
	if x.state != "" {
		var err error
		if w, err = s.pending.remove(x.state, x.digest); err != nil {
			return nil, err
		}
		w.resume(in)
		w.answer(x.responses)
	} else {
		l, err := x.up.acquireConn(ctx, in.caps)
		if err != nil {
			return nil, err
		}
		if w, err = s.startPending(in, x, l); err != nil {
			x.up.releaseConn(l, in.caps, true)
			return nil, err
		}
	}
	for {
		select {
		case <-w.done:
			if w.err != nil {
				return nil, w.err
			}
			return x.convertResult(w.res, true), nil
		case <-w.newQuestion:
			w.line.waitForNotifications() // collect simultaneous input requests
		case <-ctx.Done():
			w.cancel(context.Cause(ctx))
			<-w.done
			return nil, ctx.Err()
		}
		asked := w.openQuestions()
		if len(asked) == 0 {
			continue // withdrawn
		}
		handle, err := s.pending.add(w)
		if err != nil {
			w.cancel(err)
			<-w.done
			return nil, err
		}
		return x.newQuestion(asked, handle), nil
	}
}

// startPending starts a call that can outlive the client's request. The call
// releases the connection when it ends.
func (s *Server) startPending(in *inboundRequest, x *exchange, l *upstreamConn) (*pendingCall, error) {
	run, cancel := context.WithCancelCause(s.ctx)
	w := &pendingCall{digest: x.digest, ctx: run, line: l, cancel: cancel, newQuestion: make(chan struct{}, 1), done: make(chan struct{}), unanswered: map[string]*question{}}
	w.call = &call{ctx: in.ctx, ss: in.ss, progress: in.meta["progressToken"], modern: true, ask: w.ask}
	ok := s.startGoroutine(func() {
		defer cancel(nil)
		l.addCall(w.call)
		if level, _ := in.meta[mcp.MetaKeyLogLevel].(string); level != "" && l.capabilities().Logging != nil {
			_ = l.conn.Session.SetLoggingLevel(run, &mcp.SetLoggingLevelParams{Level: mcp.LoggingLevel(level)})
		}
		res, err := x.call(run, l, serverMeta(in.meta, l, w.call), nil, "")
		l.removeCall(w.call)
		if err != nil && run.Err() != nil {
			err = context.Cause(run)
		}
		w.res, w.err = res, err
		x.up.releaseConn(l, in.caps, run.Err() == nil && isConnUsable(err))
		w.markEnded()
		close(w.done)
	})
	if !ok {
		cancel(nil)
		return nil, context.Canceled
	}
	return w, nil
}

// isConnUsable reports whether a connection remains usable after a call
// returned err. Errors from the server do not affect the connection.
func isConnUsable(err error) bool {
	var e *jsonrpc.Error
	return err == nil || errors.As(err, &e) && !isSDKCode(e.Code)
}

// resume makes the client's retry the current request of the call.
func (w *pendingCall) resume(in *inboundRequest) {
	w.call.mu.Lock()
	defer w.call.mu.Unlock()
	w.call.ctx, w.call.ss = in.ctx, in.ss
	if t := in.meta["progressToken"]; w.call.progress != nil && t != nil {
		w.call.progress = t
	}
}

// ask passes an input request from the server to the client and waits for the
// response.
func (w *pendingCall) ask(ctx context.Context, method string, p mcp.Params) (mcp.Result, error) {
	q, ok := p.(mcp.InputRequest)
	if !ok {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: method + " is not supported"}
	}
	one := &question{request: q, answer: make(chan mcp.InputResponse, 1)}
	w.mu.Lock()
	if w.ended || len(w.unanswered) >= 32 {
		w.mu.Unlock()
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: method + ": too many open questions"}
	}
	w.next++
	id := "q" + strconv.Itoa(w.next)
	w.unanswered[id] = one
	w.mu.Unlock()
	w.signal()
	select {
	case r := <-one.answer:
		if res, ok := r.(mcp.Result); ok {
			return res, nil
		}
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: method + ": client answered with the wrong type"}
	case <-ctx.Done(): // withdrawn, or the server disconnected
	case <-w.ctx.Done():
	case <-w.done:
	}
	w.mu.Lock()
	delete(w.unanswered, id)
	w.mu.Unlock()
	return nil, errors.New("input request withdrawn")
}

func (w *pendingCall) signal() {
	select {
	case w.newQuestion <- struct{}{}:
	default:
	}
}

func (w *pendingCall) markEnded() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = true
}

// openQuestions returns the input requests that the client has not answered.
func (w *pendingCall) openQuestions() mcp.InputRequestMap {
	w.mu.Lock()
	defer w.mu.Unlock()
	m := mcp.InputRequestMap{}
	for id, one := range w.unanswered {
		m[id] = one.request
	}
	return m
}

// answer delivers the client's input. If some input is missing, it signals that
// the client must be asked again.
func (w *pendingCall) answer(given mcp.InputResponseMap) {
	w.mu.Lock()
	for id, r := range given {
		if one := w.unanswered[id]; one != nil && matchesRequest(one.request, r) {
			one.answer <- r
			delete(w.unanswered, id)
		}
	}
	left := len(w.unanswered)
	w.mu.Unlock()
	if left > 0 {
		w.signal()
	}
}

// matchesRequest reports whether r has the response type for q.
func matchesRequest(q mcp.InputRequest, r mcp.InputResponse) bool {
	ok := false
	switch q.(type) {
	case *mcp.ElicitParams:
		_, ok = r.(*mcp.ElicitResult)
	case *mcp.CreateMessageWithToolsParams:
		_, ok = r.(*mcp.CreateMessageWithToolsResult)
	case *mcp.ListRootsParams:
		_, ok = r.(*mcp.ListRootsResult)
	}
	return ok
}
