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

// errEnded is what reading and writing give after the connection was ended by us.
var errEnded = errors.New("the connection has been closed")

// A link is the transport that the SDK is given, around the real one. It knows
// what the SDK does not tell: whether a request was sent and answered, how the
// probe ended; it makes requests of its own (discover as a health check, listen),
// and it can end a connection whose calls are still on their way.
type link struct {
	config    *Config
	url       string
	transport string
	dialer    *Dialer
	inner     mcp.Transport
	bound     time.Duration // for the answer to server/discover; 0 is none
	changed   func(what string)

	ctx     context.Context // ends with the connection
	stop    context.CancelCauseFunc
	group   sync.WaitGroup // every goroutine of the connection
	own     atomic.Int64   // numbers of our own requests
	notices atomic.Int64   // notifications that were read

	// mu guards what follows. It is held for memory only.
	mu        sync.Mutex
	conn      mcp.Connection // nil until connected
	pending   map[jsonrpc.ID]*request
	asked     jsonrpc.ID // of server/discover
	probed    probeEnd
	timer     *time.Timer
	broken    error // why reading ended, if not by us
	proc      Process
	http      *http.Transport // of this connection alone; may be nil
	noise     []string
	status    int // of the last HTTP answer that was a refusal
	challenge string
	elsewhere error // the server wanted messages at another host
	guide     Guide // of the OAuth handler; may be nil
}

// request is one that has been written, or is being.
type request struct {
	cancel context.CancelFunc
	keep   func() bool            // stops the watch over its context
	track  *track                 // of a tool call; may be nil
	answer chan *jsonrpc.Response // of a request of our own; else nil
}

// track is what became of one tool call. It travels in the context of the call.
type track struct {
	sent     atomic.Bool // the server may have it
	answered atomic.Bool
	status   atomic.Int32 // of HTTP, where it was a refusal
	session  atomic.Bool  // the request was in a session of HTTP
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

// Read implements [mcp.Connection]. Answers to our own requests stay here.
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
		if !l.answer(res) {
			return msg, nil
		}
	}
}

// answer notes a response, and says whether it was for us.
func (l *link) answer(res *jsonrpc.Response) bool {
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
	// Its context stays: the write may not have returned yet, and of HTTP a stream
	// may still be read to its end.
	r.keep()
	// An error that is none of the protocol is the SDK's, for a stream that ended.
	if r.track != nil && (res.Error == nil || errors.As(res.Error, new(*jsonrpc.Error))) {
		r.track.answered.Store(true)
	}
	if r.answer == nil {
		return false
	}
	r.answer <- res // buffered, and only ever one
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

// send writes a request whose answer is expected. The request is forgotten when
// it is answered, and when ctx ends.
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

	// The transports of HTTP tell the track more exactly, in their round trip.
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
			l.probed = answered // with a refusal
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
		l.begin(fmt.Errorf("no answer to server/discover within %v", l.bound))
	}
}

// Close implements [mcp.Connection]. The SDK calls it with a lock held: it only
// begins the end.
func (l *link) Close() error {
	l.begin(nil)
	return nil
}

// begin starts to end the connection; group is done when it has ended.
func (l *link) begin(cause error) {
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
	l.group.Go(func() { // before anybody can see that it has begun, and wait
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

// end ends the connection and waits.
func (l *link) end(cause error) {
	l.begin(cause)
	l.group.Wait()
}

// ask makes a request of our own and waits for its answer.
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

// calls is a middleware of what is sent: calls of tools are requests of our own,
// whose results are decoded once where the SDK would do it twice.
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
				l.cancelled(id, ctx.Err())
			}
			return nil, err
		}
		res := &mcp.CallToolResult{}
		return res, res.UnmarshalJSON(raw)
	}
}

// cancelTime bounds how long a server is told that a call was given up.
const cancelTime = 5 * time.Second

// cancelled tells the server that nobody waits for an answer any more. It does not
// wait for that to be read.
func (l *link) cancelled(id jsonrpc.ID, why error) {
	params, err := json.Marshal(&mcp.CancelledParams{RequestID: id.Raw(), Reason: why.Error()})
	if err != nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ctx.Err() != nil { // as group may be waited for by now
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

// started says whether there was a connection at all.
func (l *link) started() bool { return l.connection() != nil }

// lost says whether it ended by the other side.
func (l *link) lost() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.broken != nil
}

// refusal notes a status of HTTP, for the report of a failure.
func (l *link) refusal(status int, challenge string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.status = status
	if status == http.StatusUnauthorized || status == http.StatusForbidden {
		l.challenge = challenge
	}
}

// next is what a person can do where the server refuses us, as far as the OAuth
// handler says.
func (l *link) next() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.guide == nil {
		return ""
	}
	return l.guide.Next()
}

// spoke notes a line of standard output that is no message.
func (l *link) spoke(line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.noise) < maxNoise {
		l.noise = append(l.noise, "its standard output has a line that is no message: "+clip(concealCut(l.config, line), maxNoiseLine))
		l.dialer.logger().Warn("noise on the standard output of a server", "server", l.config.Name)
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
