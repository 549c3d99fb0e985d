//lint:file-ignore SA1019 what is deprecated still passes between old peers

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
)

// pendingCalls are the calls to servers of the older era that wait for a client of the
// newer one to come back with answers, by the handle that it was given.
type pendingCalls struct {
	max int
	ttl time.Duration

	mu     sync.Mutex // guards what follows
	calls  map[string]*pendingCall
	closed bool
}

func (h *pendingCalls) init(most int, ttl time.Duration) {
	h.max, h.ttl, h.calls = most, ttl, map[string]*pendingCall{}
}

// pendingCall is one call that goes on while its client is away.
type pendingCall struct {
	digest      string // of what was asked, and by whom
	cancel      context.CancelCauseFunc
	ctx         context.Context // of the call
	line        *upstreamConn
	call        *call
	newQuestion chan struct{} // has one where there is a new question
	done        chan struct{} // closed when res and err are there
	res         mcp.Result
	err         error
	timer       *time.Timer

	mu         sync.Mutex // guards what follows
	next       int
	unanswered map[string]*question // by the id that the client is given
	ended      bool
}

// question is a question without an answer.
type question struct {
	request mcp.InputRequest
	answer  chan mcp.InputResponse // buffered
}

var errExpired = errors.New("nobody answered in time")

// put keeps a call, and returns the handle by which its client finds it again.
func (h *pendingCalls) put(w *pendingCall) (string, error) {
	handle := "held." + rand.Text()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed || len(h.calls) >= h.max {
		return "", &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: fmt.Sprintf("%d calls wait for answers already; try again later", h.max)}
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

// take finds a call. Taking it is what decides: a handle works once, and only
// for the same request of the same caller.
func (h *pendingCalls) take(handle, digest string) (*pendingCall, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	w := h.calls[handle]
	if w == nil || w.digest != digest {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "unknown or expired requestState; make the request again without it"}
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

// forwardModernToLegacy serves a client of the newer era with a server of the older one. The
// call runs on its own; where the server asks, the client gets the question as a
// result, and the call waits for the retry.
func (s *Server) forwardModernToLegacy(ctx context.Context, in *inbound, x *exchange) (mcp.Result, error) {
	var w *pendingCall
	if x.state != "" {
		var err error
		if w, err = s.pending.take(x.state, x.digest); err != nil {
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
			w.line.waitForNotifications() // what was asked at the same time goes with it
		case <-ctx.Done():
			w.cancel(context.Cause(ctx))
			<-w.done
			return nil, ctx.Err()
		}
		asked := w.openQuestions()
		if len(asked) == 0 {
			continue // it was withdrawn
		}
		handle, err := s.pending.put(w)
		if err != nil {
			w.cancel(err)
			<-w.done
			return nil, err
		}
		return x.newQuestion(asked, handle), nil
	}
}

// startPending starts a call that outlives the request it came with.
func (s *Server) startPending(in *inbound, x *exchange, l *upstreamConn) (*pendingCall, error) {
	run, cancel := context.WithCancelCause(s.ctx)
	w := &pendingCall{digest: x.digest, ctx: run, line: l, cancel: cancel, newQuestion: make(chan struct{}, 1), done: make(chan struct{}), unanswered: map[string]*question{}}
	w.call = &call{ctx: in.ctx, ss: in.ss, progress: in.meta["progressToken"], modern: true, ask: w.ask}
	ok := s.goroutine(func() {
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

// isConnUsable reports whether a connection is good after an error: the server's own
// refusals say nothing against it.
func isConnUsable(err error) bool {
	var e *jsonrpc.Error
	return err == nil || errors.As(err, &e) && !isSDKCode(e.Code)
}

// resume gives the call the request that its client came back with.
func (w *pendingCall) resume(in *inbound) {
	w.call.mu.Lock()
	defer w.call.mu.Unlock()
	w.call.ctx, w.call.ss = in.ctx, in.ss
	if t := in.meta["progressToken"]; w.call.progress != nil && t != nil {
		w.call.progress = t
	}
}

// ask is what the server wants to know. It waits for the client.
func (w *pendingCall) ask(ctx context.Context, method string, p mcp.Params) (mcp.Result, error) {
	q, ok := p.(mcp.InputRequest)
	if !ok {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: method + " cannot be passed on"}
	}
	one := &question{request: q, answer: make(chan mcp.InputResponse, 1)}
	w.mu.Lock()
	if w.ended || len(w.unanswered) >= 32 {
		w.mu.Unlock()
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: method + ": too much is asked at a time"}
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
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: method + ": the client gave no fitting answer"}
	case <-ctx.Done(): // the server withdrew it, or is gone
	case <-w.ctx.Done():
	case <-w.done:
	}
	w.mu.Lock()
	delete(w.unanswered, id)
	w.mu.Unlock()
	return nil, errors.New("the question was withdrawn")
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

// openQuestions are those without an answer.
func (w *pendingCall) openQuestions() mcp.InputRequestMap {
	w.mu.Lock()
	defer w.mu.Unlock()
	m := mcp.InputRequestMap{}
	for id, one := range w.unanswered {
		m[id] = one.request
	}
	return m
}

// answer hands answers to who waits for them. Where some are missing the client is
// asked again.
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

// matchesRequest reports whether an answer is of the kind that was asked for.
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
