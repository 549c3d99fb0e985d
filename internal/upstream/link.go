package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout/internal/toolresult"
)

// errEnded is returned by reads and writes after this program has closed the
// connection.
var errEnded = errors.New("connection closed")

// A link is the transport passed to the SDK. It wraps the real transport and
// records what the SDK does not report: whether a request was sent, whether a
// response was received, and the outcome of the probe. It also sends requests
// without the SDK (health checks, subscriptions, tool calls), and can close a
// connection while calls are running.
type link struct {
	config     *Config
	url        string
	transport  string
	dialer     *Dialer
	inner      mcp.Transport
	probeLimit time.Duration // timeout of server/discover; 0 means none
	changed    func(what string)

	ctx          context.Context // cancelled when the connection ends
	stop         context.CancelCauseFunc
	group        sync.WaitGroup // all goroutines of the connection
	requestCount atomic.Int64   // counter for IDs of requests that the link sends
	noticeCount  atomic.Int64   // number of notifications read

	// mu guards the fields below. It is never held during I/O.
	mu           sync.Mutex
	conn         mcp.Connection // nil until connected
	pending      map[jsonrpc.ID]*request
	probeID      jsonrpc.ID // ID of server/discover
	probed       probeOutcome
	timer        *time.Timer
	readErr      error // why reading ended, unless closed here
	process      Process
	http         *http.Transport // used by this connection only; may be nil
	noise        []string
	status       int // HTTP status of the last rejected request
	challenge    string
	otherHostErr error       // set if the server sent messages to another host
	oauthHandler NextStepper // the OAuth handler; may be nil
}

// request is a sent request whose response is pending.
type request struct {
	cancel context.CancelFunc
	detach func() bool            // makes the request independent of its context
	track  *track                 // progress of a tool call; nil for other requests
	answer chan *jsonrpc.Response // receives the response to a request that the link sends; nil for other requests
}

// track records the progress of a tool call. The call's context carries the
// track.
type track struct {
	sent     atomic.Bool // the server may have received the request
	answered atomic.Bool
	status   atomic.Int32 // HTTP status, if the request was rejected
	session  atomic.Bool  // the request had an HTTP session
}

type trackKey struct{}

func trackFromContext(ctx context.Context) *track {
	t, _ := ctx.Value(trackKey{}).(*track)
	return t
}

func newLink(c *Config, u, typ string, d *Dialer) *link {
	l := &link{config: c, url: u, transport: typ, dialer: d, pending: map[jsonrpc.ID]*request{}}
	l.ctx, l.stop = context.WithCancelCause(context.Background())
	return l
}

// Connect implements [mcp.Transport].
func (l *link) Connect(ctx context.Context) (mcp.Connection, error) {
	conn, err := l.inner.Connect(ctx)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	l.conn = conn
	l.mu.Unlock()
	return l, nil
}

// SessionID implements [mcp.Connection].
func (l *link) SessionID() string {
	if c := l.connection(); c != nil {
		return c.SessionID()
	}
	return ""
}

func (l *link) connection() mcp.Connection {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.conn
}

// Read implements [mcp.Connection]. It does not return responses to requests
// that the link itself sent.
func (l *link) Read(ctx context.Context) (jsonrpc.Message, error) {
	conn := l.connection()
	for {
		msg, err := conn.Read(ctx)
		if err != nil {
			l.setReadError(err)
			return nil, err
		}
		res, ok := msg.(*jsonrpc.Response)
		if !ok {
			if r, is := msg.(*jsonrpc.Request); is && !r.IsCall() && r.Method != "notifications/cancelled" {
				l.noticeCount.Add(1)
			}
			return msg, nil
		}
		if !l.deliverAnswer(res) {
			return msg, nil
		}
	}
}

// deliverAnswer records a response. If the link itself sent the request,
// deliverAnswer delivers the response to the waiting goroutine and returns
// true.
func (l *link) deliverAnswer(res *jsonrpc.Response) bool {
	l.mu.Lock()
	r := l.pending[res.ID]
	delete(l.pending, res.ID)
	if l.probed == probePending && l.probeID.IsValid() && l.probeID == res.ID {
		l.probed = probeAnswered
		l.timer.Stop()
	}
	l.mu.Unlock()
	if r == nil {
		return false
	}
	// Do not cancel the request's context yet: the write may not have returned,
	// and the rest of an HTTP stream may be unread.
	r.detach()
	// The SDK creates other errors for a stream that ended.
	if r.track != nil && (res.Error == nil || errors.As(res.Error, new(*jsonrpc.Error))) {
		r.track.answered.Store(true)
	}
	if r.answer == nil {
		return false
	}
	r.answer <- res // buffered, and sent once
	return true
}

func (l *link) setReadError(err error) {
	l.mu.Lock()
	if l.ctx.Err() == nil && l.readErr == nil {
		l.readErr = err
	}
	if l.probed == probePending && l.probeID.IsValid() {
		l.probed = probeDisconnected
		l.timer.Stop()
	}
	rs := l.pending
	l.pending = map[jsonrpc.ID]*request{}
	l.mu.Unlock()
	for _, r := range rs {
		r.cancel()
		if r.answer != nil {
			close(r.answer)
		}
	}
}

// Write implements [mcp.Connection].
func (l *link) Write(ctx context.Context, msg jsonrpc.Message) error {
	if l.ctx.Err() != nil {
		return errEnded
	}
	req, ok := msg.(*jsonrpc.Request)
	if !ok || !req.IsCall() {
		return l.connection().Write(ctx, msg)
	}
	return l.send(ctx, req, nil)
}

// send writes a request and registers it as pending until its response arrives
// or ctx is done.
func (l *link) send(ctx context.Context, req *jsonrpc.Request, answer chan *jsonrpc.Response) error {
	ctx, cancel := context.WithCancel(ctx)
	r := &request{cancel: cancel, track: trackFromContext(ctx), answer: answer}
	l.mu.Lock()
	if l.ctx.Err() != nil || l.readErr != nil {
		l.mu.Unlock()
		cancel()
		return errEnded
	}
	l.pending[req.ID] = r
	if req.Method == "server/discover" && l.probeLimit > 0 && !l.probeID.IsValid() && answer == nil {
		l.probeID = req.ID
		l.timer = time.AfterFunc(l.probeLimit, l.handleProbeTimeout)
	}
	conn := l.conn
	r.detach = context.AfterFunc(ctx, func() { l.dropRequest(req.ID, r) })
	l.mu.Unlock()

	// HTTP transports set this more precisely in RoundTrip.
	if r.track != nil && (l.transport == Stdio || l.transport == WebSocket) {
		r.track.sent.Store(true)
	}
	err := conn.Write(ctx, req)
	if err != nil {
		if errors.Is(err, errUnsent) && r.track != nil {
			r.track.sent.Store(false)
		}
		l.mu.Lock()
		if l.probed == probePending && l.probeID == req.ID && l.probeID.IsValid() && l.ctx.Err() == nil {
			l.probed = probeAnswered // the request was rejected
			l.timer.Stop()
		}
		l.mu.Unlock()
		cancel()
	}
	return err
}

func (l *link) dropRequest(id jsonrpc.ID, r *request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.pending[id] == r {
		delete(l.pending, id)
		if r.answer != nil {
			close(r.answer)
		}
	}
}

func (l *link) handleProbeTimeout() {
	l.mu.Lock()
	late := l.probed == probePending
	if late {
		l.probed = probeTimedOut
	}
	l.mu.Unlock()
	if late {
		l.beginClose(fmt.Errorf("no answer to server/discover within %v", l.probeLimit))
	}
}

// Close implements [mcp.Connection]. It does not wait for the connection to be
// closed, because the SDK calls it with a lock held.
func (l *link) Close() error {
	l.beginClose(nil)
	return nil
}

// beginClose starts to close the connection. The connection is closed when all
// goroutines in l.group have finished.
func (l *link) beginClose(cause error) {
	if cause == nil {
		cause = errEnded
	}
	l.mu.Lock()
	if l.ctx.Err() != nil {
		l.mu.Unlock()
		return
	}
	l.stop(cause)
	if l.timer != nil {
		l.timer.Stop()
	}
	conn, transport := l.conn, l.http
	rs := make([]*request, 0, len(l.pending))
	for _, r := range l.pending {
		rs = append(rs, r)
	}
	l.group.Go(func() { // before another goroutine can wait for the group
		if conn != nil {
			conn.Close()
		}
		if transport != nil {
			transport.CloseIdleConnections()
		}
	})
	l.mu.Unlock()
	for _, r := range rs {
		r.cancel()
	}
}

// closeAndWait closes the connection and waits for its goroutines to finish.
func (l *link) closeAndWait(cause error) {
	l.beginClose(cause)
	l.group.Wait()
}

// sendRequest sends a request without the SDK and waits for the response.
func (l *link) sendRequest(ctx context.Context, method string, params any) (json.RawMessage, error) {
	id, err := l.newRequestID()
	if err != nil {
		return nil, err
	}
	return l.sendRequestWithID(ctx, id, method, params)
}

func (l *link) newRequestID() (jsonrpc.ID, error) {
	return jsonrpc.MakeID("loadout-" + strconv.FormatInt(l.requestCount.Add(1), 10))
}

func (l *link) sendRequestWithID(ctx context.Context, id jsonrpc.ID, method string, params any) (json.RawMessage, error) {
	data, err := json.Marshal(params)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	answer := make(chan *jsonrpc.Response, 1)
	if err := l.send(ctx, &jsonrpc.Request{ID: id, Method: method, Params: data}, answer); err != nil {
		return nil, err
	}
	res, ok := <-answer
	switch {
	case !ok && ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case !ok:
		return nil, errEnded
	case res.Error != nil:
		return nil, res.Error
	}
	return res.Result, nil
}

// interceptToolCalls is sending middleware that sends tool calls without the
// SDK, so that each result is decoded only once.
func (l *link) interceptToolCalls(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		if method != "tools/call" {
			return next(ctx, method, req)
		}
		id, err := l.newRequestID()
		if err != nil {
			return nil, err
		}
		raw, err := l.sendRequestWithID(ctx, id, method, req.GetParams())
		if err != nil {
			if ctx.Err() != nil {
				l.sendCancelled(id, ctx.Err())
			}
			return nil, err
		}
		return toolresult.Decode(ctx, raw)
	}
}

// cancelTime is the timeout for sending a cancellation.
const cancelTime = 5 * time.Second

// sendCancelled notifies the server in the background that a request was
// cancelled.
func (l *link) sendCancelled(id jsonrpc.ID, why error) {
	params, err := json.Marshal(&mcp.CancelledParams{RequestID: id.Raw(), Reason: why.Error()})
	if err != nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ctx.Err() != nil { // another goroutine may already be waiting for the group
		return
	}
	l.group.Go(func() {
		ctx, cancel := context.WithTimeout(l.ctx, cancelTime)
		defer cancel()
		_ = l.Write(ctx, &jsonrpc.Request{Method: "notifications/cancelled", Params: params})
	})
}

func (l *link) probeOutcome() probeOutcome {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.probed
}

// isStarted reports whether the connection was established.
func (l *link) isStarted() bool { return l.connection() != nil }

// isLost reports whether the server ended the connection.
func (l *link) isLost() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.readErr != nil
}

// setRefusal records the HTTP status and the challenge of a rejected request
// for error messages.
func (l *link) setRefusal(status int, challenge string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.status = status
	if status == http.StatusUnauthorized || status == http.StatusForbidden {
		l.challenge = challenge
	}
}

// nextStep returns the OAuth handler's suggestion for what the user can do
// about a rejected request. It returns "" if there is none.
func (l *link) nextStep() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.oauthHandler == nil {
		return ""
	}
	return l.oauthHandler.Next()
}

// addNoise records output from the server that is not a message.
func (l *link) addNoise(line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.noise) < maxNoise {
		l.noise = append(l.noise, "line on its standard output is not a message: "+truncate(redactFragment(l.config, line), maxNoiseLine))
		l.dialer.logger().Warn("server writes noise to standard output", "server", l.config.Name)
	}
}

func (l *link) warnings() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]string(nil), l.noise...)
}

func (l *link) stderr() string {
	l.mu.Lock()
	p := l.process
	l.mu.Unlock()
	if p == nil {
		return ""
	}
	return redactFragment(l.config, p.Stderr())
}
