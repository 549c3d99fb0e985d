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

// holds are the calls to servers of the older era that wait for a client of the
// newer one to come back with answers, by the handle that it was given.
type holds struct {
	most int
	ttl  time.Duration

	mu     sync.Mutex // guards what follows
	waits  map[string]*hold
	closed bool
}

func (h *holds) init(most int, ttl time.Duration) {
	h.most, h.ttl, h.waits = most, ttl, map[string]*hold{}
}

// hold is one call that goes on while its client is away.
type hold struct {
	digest string // of what was asked, and by whom
	cancel context.CancelCauseFunc
	run    context.Context // of the call
	line   *line
	call   *call
	asked  chan struct{} // has one where there is a new question
	done   chan struct{} // closed when res and err are there
	res    mcp.Result
	err    error
	timer  *time.Timer

	mu    sync.Mutex // guards what follows
	next  int
	open  map[string]*pending // by the id that the client is given
	ended bool
}

// pending is a question without an answer.
type pending struct {
	request mcp.InputRequest
	answer  chan mcp.InputResponse // buffered
}

var errExpired = errors.New("nobody answered in time")

// put keeps a call, and returns the handle by which its client finds it again.
func (h *holds) put(w *hold) (string, error) {
	handle := "held." + rand.Text()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed || len(h.waits) >= h.most {
		return "", &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: fmt.Sprintf("%d calls wait for answers already; try again later", h.most)}
	}
	h.waits[handle] = w
	w.timer = time.AfterFunc(h.ttl, func() {
		h.mu.Lock()
		mine := h.waits[handle] == w
		delete(h.waits, handle)
		h.mu.Unlock()
		if mine {
			w.cancel(errExpired)
		}
	})
	return handle, nil
}

// take finds a call. Taking it is what decides: a handle works once, and only
// for the same request of the same caller.
func (h *holds) take(handle, digest string) (*hold, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	w := h.waits[handle]
	if w == nil || w.digest != digest {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "unknown or expired requestState; make the request again without it"}
	}
	delete(h.waits, handle)
	w.timer.Stop()
	return w, nil
}

func (h *holds) close() {
	h.mu.Lock()
	h.closed = true
	waits := h.waits
	h.waits = map[string]*hold{}
	h.mu.Unlock()
	for _, w := range waits {
		w.timer.Stop()
		w.cancel(context.Canceled)
	}
}

// holding serves a client of the newer era with a server of the older one. The
// call runs on its own; where the server asks, the client gets the question as a
// result, and the call waits for the retry.
func (s *Server) holding(ctx context.Context, in *inbound, x *exchange) (mcp.Result, error) {
	var w *hold
	if x.state != "" {
		var err error
		if w, err = s.held.take(x.state, x.digest); err != nil {
			return nil, err
		}
		w.resume(in)
		w.give(x.given)
	} else {
		l, err := x.up.lease(ctx, in.caps)
		if err != nil {
			return nil, err
		}
		if w, err = s.hold(in, x, l); err != nil {
			x.up.release(l, in.caps, true)
			return nil, err
		}
	}
	for {
		select {
		case <-w.done:
			if w.err != nil {
				return nil, w.err
			}
			return x.done(w.res, true), nil
		case <-w.asked:
			w.line.settle() // what was asked at the same time goes with it
		case <-ctx.Done():
			w.cancel(context.Cause(ctx))
			<-w.done
			return nil, ctx.Err()
		}
		asked := w.questions()
		if len(asked) == 0 {
			continue // it was withdrawn
		}
		handle, err := s.held.put(w)
		if err != nil {
			w.cancel(err)
			<-w.done
			return nil, err
		}
		return x.question(asked, handle), nil
	}
}

// hold starts a call that outlives the request it came with.
func (s *Server) hold(in *inbound, x *exchange, l *line) (*hold, error) {
	run, cancel := context.WithCancelCause(s.ctx)
	w := &hold{digest: x.digest, run: run, line: l, cancel: cancel, asked: make(chan struct{}, 1), done: make(chan struct{}), open: map[string]*pending{}}
	w.call = &call{ctx: in.ctx, ss: in.ss, progress: in.meta["progressToken"], modern: true, ask: w.ask}
	ok := s.start(func() {
		defer cancel(nil)
		l.begin(w.call)
		if level, _ := in.meta[mcp.MetaKeyLogLevel].(string); level != "" && l.capabilities().Logging != nil {
			_ = l.conn.Session.SetLoggingLevel(run, &mcp.SetLoggingLevelParams{Level: mcp.LoggingLevel(level)})
		}
		res, err := x.call(run, l, forServer(in.meta, l, w.call), nil, "")
		l.finish(w.call)
		if err != nil && run.Err() != nil {
			err = context.Cause(run)
		}
		w.res, w.err = res, err
		x.up.release(l, in.caps, run.Err() == nil && clean(err))
		w.end()
		close(w.done)
	})
	if !ok {
		cancel(nil)
		return nil, context.Canceled
	}
	return w, nil
}

// clean reports whether a connection is good after an error: the server's own
// refusals say nothing against it.
func clean(err error) bool {
	var e *jsonrpc.Error
	return err == nil || errors.As(err, &e) && !ours(e.Code)
}

// resume gives the call the request that its client came back with.
func (w *hold) resume(in *inbound) {
	w.call.mu.Lock()
	defer w.call.mu.Unlock()
	w.call.ctx, w.call.ss = in.ctx, in.ss
	if t := in.meta["progressToken"]; w.call.progress != nil && t != nil {
		w.call.progress = t
	}
}

// ask is what the server wants to know. It waits for the client.
func (w *hold) ask(ctx context.Context, method string, p mcp.Params) (mcp.Result, error) {
	q, ok := p.(mcp.InputRequest)
	if !ok {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: method + " cannot be passed on"}
	}
	one := &pending{request: q, answer: make(chan mcp.InputResponse, 1)}
	w.mu.Lock()
	if w.ended || len(w.open) >= 32 {
		w.mu.Unlock()
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: method + ": too much is asked at a time"}
	}
	w.next++
	id := "q" + strconv.Itoa(w.next)
	w.open[id] = one
	w.mu.Unlock()
	w.nudge()
	select {
	case r := <-one.answer:
		if res, ok := r.(mcp.Result); ok {
			return res, nil
		}
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: method + ": the client gave no fitting answer"}
	case <-ctx.Done(): // the server withdrew it, or is gone
	case <-w.run.Done():
	case <-w.done:
	}
	w.mu.Lock()
	delete(w.open, id)
	w.mu.Unlock()
	return nil, errors.New("the question was withdrawn")
}

func (w *hold) nudge() {
	select {
	case w.asked <- struct{}{}:
	default:
	}
}

func (w *hold) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = true
}

// questions are those without an answer.
func (w *hold) questions() mcp.InputRequestMap {
	w.mu.Lock()
	defer w.mu.Unlock()
	m := mcp.InputRequestMap{}
	for id, one := range w.open {
		m[id] = one.request
	}
	return m
}

// give hands answers to who waits for them. Where some are missing the client is
// asked again.
func (w *hold) give(given mcp.InputResponseMap) {
	w.mu.Lock()
	for id, r := range given {
		if one := w.open[id]; one != nil && fits(one.request, r) {
			one.answer <- r
			delete(w.open, id)
		}
	}
	left := len(w.open)
	w.mu.Unlock()
	if left > 0 {
		w.nudge()
	}
}

// fits reports whether an answer is of the kind that was asked for.
func fits(q mcp.InputRequest, r mcp.InputResponse) bool {
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
