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
)

// errEnded is the result of reads and writes after this program closed the
// connection.
var errEnded = errors.New("connection closed")

// A link is the transport passed to the SDK. It wraps the real transport to
// record what the SDK does not report: whether a request was sent and answered,
// and how the probe ended. It also sends requests of its own (health checks,
// listen, tool calls), and it can close a connection with running calls.
type link struct {
	config    *Config
	url       string
	transport string
	dialer    *Dialer
	inner     mcp.Transport
	bound     time.Duration // for the answer to server/discover; 0 means none
	changed   func(what string)

	ctx     context.Context // ends with the connection
	stop    context.CancelCauseFunc
	group   sync.WaitGroup // all goroutines of the connection
	own     atomic.Int64   // counter for IDs of own requests
	notices atomic.Int64   // notifications read

	// mu guards the fields below. It is never held during I/O.
	mu        sync.Mutex
	conn      mcp.Connection // nil until connected
	pending   map[jsonrpc.ID]*request
	asked     jsonrpc.ID // ID of server/discover
	probed    probeEnd
	timer     *time.Timer
	broken    error // why reading ended, unless closed here
	proc      Process
	http      *http.Transport // of this connection only; may be nil
	noise     []string
	status    int // of the last HTTP refusal
	challenge string
	elsewhere error       // set if the server sent messages to another host
	guide     NextStepper // the OAuth handler; may be nil
}

// request is a pending request.
type request struct {
	cancel context.CancelFunc
	keep   func() bool            // stops watching its context
	track  *track                 // of a tool call; may be nil
	answer chan *jsonrpc.Response // for an own request; else nil
}

// track records the progress of one tool call. It travels in the context of the
// call.
type track struct {
	sent     atomic.Bool // the server may have received it
	answered atomic.Bool
	status   atomic.Int32 // HTTP status of a refusal
	session  atomic.Bool  // the request had an HTTP session
}

type trackKey struct{}

func trackOf(ctx context.Context) *track {
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

// Read implements [mcp.Connection]. It keeps answers to own requests.
func (l *link) Read(ctx context.Context) (jsonrpc.Message, error) {
	conn := l.connection()
	for {
		msg, err := conn.Read(ctx)
		if err != nil {
			l.readEnded(err)
			return nil, err
		}
		res, ok := msg.(*jsonrpc.Response)
		if !ok {
			if r, is := msg.(*jsonrpc.Request); is && !r.IsCall() && r.Method != "notifications/cancelled" {
				l.notices.Add(1)
			}
			return msg, nil
		}
		if !l.deliverAnswer(res) {
			return msg, nil
		}
	}
}

// deliverAnswer records a response and reports whether it answers an own
// request.
func (l *link) deliverAnswer(res *jsonrpc.Response) bool {
	l.mu.Lock()
	r := l.pending[res.ID]
	delete(l.pending, res.ID)
	if l.probed == unasked && l.asked.IsValid() && l.asked == res.ID {
		l.probed = answered
		l.timer.Stop()
	}
	l.mu.Unlock()
	if r == nil {
		return false
	}
	// Do not cancel its context: the write may not have returned, and an HTTP
	// stream may not be read to its end.
	r.keep()
	// Other errors are made up by the SDK for a stream that ended.
	if r.track != nil && (res.Error == nil || errors.As(res.Error, new(*jsonrpc.Error))) {
		r.track.answered.Store(true)
	}
	if r.answer == nil {
		return false
	}
	r.answer <- res // buffered, and sent once
	return true
}

func (l *link) readEnded(err error) {
	l.mu.Lock()
	if l.ctx.Err() == nil && l.broken == nil {
		l.broken = err
	}
	if l.probed == unasked && l.asked.IsValid() {
		l.probed = gone
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

// send writes a request. It stays pending until it is answered or ctx ends.
func (l *link) send(ctx context.Context, req *jsonrpc.Request, answer chan *jsonrpc.Response) error {
	ctx, cancel := context.WithCancel(ctx)
	r := &request{cancel: cancel, track: trackOf(ctx), answer: answer}
	l.mu.Lock()
	if l.ctx.Err() != nil || l.broken != nil {
		l.mu.Unlock()
		cancel()
		return errEnded
	}
	l.pending[req.ID] = r
	if req.Method == "server/discover" && l.bound > 0 && !l.asked.IsValid() && answer == nil {
		l.asked = req.ID
		l.timer = time.AfterFunc(l.bound, l.probeTimeout)
	}
	conn := l.conn
	r.keep = context.AfterFunc(ctx, func() { l.forget(req.ID, r) })
	l.mu.Unlock()

	// HTTP transports set this more precisely in their round trip.
	if r.track != nil && (l.transport == Stdio || l.transport == WebSocket) {
		r.track.sent.Store(true)
	}
	err := conn.Write(ctx, req)
	if err != nil {
		if errors.Is(err, errUnsent) && r.track != nil {
			r.track.sent.Store(false)
		}
		l.mu.Lock()
		if l.probed == unasked && l.asked == req.ID && l.asked.IsValid() && l.ctx.Err() == nil {
			l.probed = answered // it was refused
			l.timer.Stop()
		}
		l.mu.Unlock()
		cancel()
	}
	return err
}

func (l *link) forget(id jsonrpc.ID, r *request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.pending[id] == r {
		delete(l.pending, id)
		if r.answer != nil {
			close(r.answer)
		}
	}
}

func (l *link) probeTimeout() {
	l.mu.Lock()
	late := l.probed == unasked
	if late {
		l.probed = silent
	}
	l.mu.Unlock()
	if late {
		l.beginClose(fmt.Errorf("no answer to server/discover within %v", l.bound))
	}
}

// Close implements [mcp.Connection]. The SDK calls it with a lock held, so it
// does not wait.
func (l *link) Close() error {
	l.beginClose(nil)
	return nil
}

// beginClose starts closing the connection. The group is done when it is
// closed.
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

// closeAndWait closes the connection and waits.
func (l *link) closeAndWait(cause error) {
	l.beginClose(cause)
	l.group.Wait()
}

// ask sends an own request and waits for its answer.
func (l *link) ask(ctx context.Context, method string, params any) (json.RawMessage, error) {
	id, err := l.ownID()
	if err != nil {
		return nil, err
	}
	return l.askAs(ctx, id, method, params)
}

func (l *link) ownID() (jsonrpc.ID, error) {
	return jsonrpc.MakeID("loadout-" + strconv.FormatInt(l.own.Add(1), 10))
}

func (l *link) askAs(ctx context.Context, id jsonrpc.ID, method string, params any) (json.RawMessage, error) {
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

// calls is sending middleware that sends tool calls as own requests. This
// decodes their results once; the SDK would do it twice.
func (l *link) calls(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		if method != "tools/call" {
			return next(ctx, method, req)
		}
		id, err := l.ownID()
		if err != nil {
			return nil, err
		}
		raw, err := l.askAs(ctx, id, method, req.GetParams())
		if err != nil {
			if ctx.Err() != nil {
				l.sendCancelled(id, ctx.Err())
			}
			return nil, err
		}
		res := &mcp.CallToolResult{}
		return res, res.UnmarshalJSON(raw)
	}
}

// cancelTime limits how long sending a cancellation may take.
const cancelTime = 5 * time.Second

// sendCancelled tells the server that a request was cancelled, without waiting.
func (l *link) sendCancelled(id jsonrpc.ID, why error) {
	params, err := json.Marshal(&mcp.CancelledParams{RequestID: id.Raw(), Reason: why.Error()})
	if err != nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ctx.Err() != nil { // the group may be waited for already
		return
	}
	l.group.Go(func() {
		ctx, cancel := context.WithTimeout(l.ctx, cancelTime)
		defer cancel()
		_ = l.Write(ctx, &jsonrpc.Request{Method: "notifications/cancelled", Params: params})
	})
}

func (l *link) probe() probeEnd {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.probed
}

// isStarted reports whether a connection was established.
func (l *link) isStarted() bool { return l.connection() != nil }

// isLost reports whether the other side ended the connection.
func (l *link) isLost() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.broken != nil
}

// setRefusal records an HTTP refusal for error reports.
func (l *link) setRefusal(status int, challenge string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.status = status
	if status == http.StatusUnauthorized || status == http.StatusForbidden {
		l.challenge = challenge
	}
}

// next returns what the user can do about a refusal, from the OAuth handler.
func (l *link) next() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.guide == nil {
		return ""
	}
	return l.guide.Next()
}

// addNoise records a line of standard output that is not a message.
func (l *link) addNoise(line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.noise) < maxNoise {
		l.noise = append(l.noise, "line on its standard output is not a message: "+clip(concealCut(l.config, line), maxNoiseLine))
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
	p := l.proc
	l.mu.Unlock()
	if p == nil {
		return ""
	}
	return concealCut(l.config, p.Stderr())
}
