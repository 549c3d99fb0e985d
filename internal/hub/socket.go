package hub

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"
	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/loadout-dev/loadout/agent"
	"github.com/loadout-dev/loadout/internal/account"
	"github.com/loadout-dev/loadout/internal/hub/chat"
)

// Bounds of WebSockets.
const (
	socketsEach = 50
	socketsAll  = 5000
	socketBeat  = 30 * time.Second
	maxAttached = 50      // conversations of one
	maxHeard    = 1 << 20 // bytes of one message
	byeTime     = 2 * time.Second
)

// The subprotocols of a socket. A page that has a token and no cookie offers the first
// and, as it can set no header, its token after the second. A token is never in an
// address, which is logged on the way.
const (
	socketProtocol = "loadout"
	tokenProtocol  = "loadout.token."
)

const socketSummary = `Conversations both ways, as JSON objects in text messages.

A client sends {type: attach, session, after}, {type: detach, session}, {type: message, session, text, skill, key}, {type: cancel, session}, {type: answer, ask, outcome, content, feedback, scope} and {type: skill:response, request_id, skill_name, action, success, result, error}. Each is answered with {type: ok} or {type: error, code, detail, next}; one that has an id, with that as to. A message that is sent again with the same key is not said twice.

The server sends {type: event, session, event} for what is told of conversations that are attached, as in the schema ChatEvent, {type: skill:request, session, request_id, skill_name, action, data} for what the client is to do, {type: error, session, …} where an attached conversation is no longer told of, and {type: bye} when the node ends.

A browser signs in by its cookie, or, with the subprotocol loadout, by the subprotocol loadout.token.TOKEN beside it.`

func socketOperation() huma.Operation {
	op := operation("open-socket", "GET", "/ws", "Conversations both ways over a WebSocket")
	op.Path, op.Description = "/ws", socketSummary
	op.DefaultStatus = http.StatusSwitchingProtocols
	return op
}

// socketToken is the token that a request to open a socket offers as a subprotocol, ""
// where it does not.
func socketToken(r *http.Request) string {
	if r.URL.Path != "/ws" {
		return ""
	}
	for _, line := range r.Header.Values("Sec-Websocket-Protocol") {
		for protocol := range strings.SplitSeq(line, ",") {
			if token, ok := strings.CutPrefix(strings.TrimSpace(protocol), tokenProtocol); ok {
				return token
			}
		}
	}
	return ""
}

func (h *Hub) openSocket(ctx context.Context, _ *nothing) (*huma.StreamResponse, error) {
	p := account.FromContext(ctx)
	if err := account.Check(p, account.SessionRead, account.Of(p.User)); err != nil {
		return nil, err
	}
	return &huma.StreamResponse{Body: func(ctx huma.Context) {
		r, w := humago.Unwrap(ctx)
		if !strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
			h.refuse(w, r, &Problem{Status: 426, Code: "upgrade", Detail: "this is a WebSocket", Next: "open it as one", header: http.Header{"Upgrade": {"websocket"}, "Connection": {"Upgrade"}}})
			return
		}
		leave, err := h.sockets.enter(p.User)
		if err != nil {
			h.refuse(w, r, err)
			return
		}
		defer leave()
		// Of which page it is was looked at when the request came in.
		conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{InsecureSkipVerify: true, Subprotocols: []string{socketProtocol}})
		if err != nil {
			return // it is answered
		}
		serveSocket(h, conn, context.WithoutCancel(r.Context()), p)
	}}, nil
}

// socket is a client that is connected. One goroutine reads, one for each conversation
// that is attached waits for what is told of it and sends that, and one sees to the end.
// Who sends waits for the client, so that nothing is queued here; nobody else waits for
// who sends.
type socket struct {
	h    *Hub
	conn *websocket.Conn
	open context.Context // of the connection; it does not end
	ctx  context.Context // of what is done for it, until it ends
	end  context.CancelCauseFunc
	turn chan struct{} // holds who sends

	work sync.WaitGroup

	mu       sync.Mutex        // guards what follows
	p        account.Principal // as it was at the last beat
	attached map[string]*attachment
}

// attachment is a conversation that a client watches.
type attachment struct {
	stop context.CancelFunc
	done chan struct{} // closed when nothing more of it is sent
}

// ending is why a socket is closed by the hub.
type ending struct {
	code   websocket.StatusCode
	reason string
}

func (e *ending) Error() string { return e.reason }

var errGone = errors.New("the client is gone")

// serveSocket serves a connection until it ends. What it began has ended then.
func serveSocket(h *Hub, conn *websocket.Conn, open context.Context, p account.Principal) {
	s := &socket{h: h, conn: conn, p: p, open: open, turn: make(chan struct{}, 1), attached: map[string]*attachment{}}
	s.ctx, s.end = context.WithCancelCause(open)
	conn.SetReadLimit(maxHeard)
	s.work.Go(s.read)
	s.work.Go(s.stayAlive)
	select {
	case <-s.ctx.Done():
	case <-h.Draining():
		s.bye()
		s.end(&ending{websocket.StatusGoingAway, "the node ends"})
	}
	if why, ok := errors.AsType[*ending](context.Cause(s.ctx)); ok {
		conn.Close(why.code, why.reason)
	}
	conn.CloseNow()
	s.work.Wait()
}

func (s *socket) bye() {
	ctx, stop := context.WithTimeout(s.open, byeTime)
	defer stop()
	s.write(ctx, reply{Type: "bye"})
}

// stayAlive finds out that the client is gone, or may be here no longer.
func (s *socket) stayAlive() {
	beat := time.NewTicker(s.h.sockets.beat)
	defer beat.Stop()
	ended, forget := s.h.inUse.hold(s.principal())
	defer forget()
	for {
		p, err := s.principal(), error(nil)
		select {
		case <-s.ctx.Done():
			return
		case <-ended:
			err = errTokenEnded
		case <-beat.C:
			p, err = s.h.now(s.ctx, visitOf(s.ctx))
		}
		if err != nil {
			s.send(s.refusal("", err))
			s.end(&ending{websocket.StatusPolicyViolation, "you are signed in no longer"})
			return
		}
		s.mu.Lock()
		s.p = p
		s.mu.Unlock()
		// What is read before the answer may take its time.
		ctx, stop := context.WithTimeout(s.ctx, operationTime+slowTime)
		err = s.conn.Ping(ctx)
		stop()
		if err != nil {
			s.end(errGone)
			return
		}
	}
}

// principal is who the client is now.
func (s *socket) principal() account.Principal {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.p
}

// read does what the client says, one thing after the other.
func (s *socket) read() {
	for {
		kind, data, err := s.conn.Read(s.open)
		switch {
		case err != nil:
			s.end(errGone)
			return
		case kind != websocket.MessageText:
			s.end(&ending{websocket.StatusUnsupportedData, "messages are text"})
			return
		}
		answer, then := s.heed(data)
		s.send(answer)
		if s.ctx.Err() != nil {
			return
		}
		if then != nil {
			then()
		}
	}
}

// send sends a message, unless the socket ends.
func (s *socket) send(v any) { s.write(s.open, v) }

// write sends a message when its turn comes. A client that takes too long to take it is
// closed.
func (s *socket) write(ctx context.Context, v any) {
	data, err := json.Marshal(v)
	if err != nil {
		s.h.log.Error("a message to a client cannot be written", "error", err)
		return
	}
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-s.ctx.Done():
		return
	case <-ctx.Done():
		return
	}
	slow := time.AfterFunc(s.h.sockets.slow, func() { s.end(&ending{websocket.StatusPolicyViolation, "messages are not taken in time"}) })
	defer slow.Stop()
	if s.conn.Write(ctx, websocket.MessageText, data) != nil {
		s.end(errGone)
	}
}

// attach returns what begins to send what is told of a conversation after a number.
func (s *socket) attach(ctx context.Context, id string, after int64) (begin func(), err error) {
	if _, err := s.h.chat.Get(ctx, s.principal(), id); err != nil {
		return nil, err
	}
	s.detach(id)
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.attached) >= maxAttached {
		return nil, &Problem{Status: 409, Code: "too_many", Detail: "as many conversations are attached as may be", Next: "detach some"}
	}
	return func() { s.begin(id, after) }, nil
}

// begin is for the goroutine that reads.
func (s *socket) begin(id string, after int64) {
	ctx, stop := context.WithCancel(s.ctx)
	a := &attachment{stop, make(chan struct{})}
	s.mu.Lock()
	s.attached[id] = a
	s.mu.Unlock()
	s.work.Go(func() {
		defer close(a.done)
		defer s.forget(id, a)
		defer stop()
		s.watch(ctx, id, after)
	})
}

// detach ends that, and returns when nothing more of the conversation is sent.
func (s *socket) detach(id string) {
	s.mu.Lock()
	a := s.attached[id]
	s.mu.Unlock()
	if a != nil {
		a.stop()
		<-a.done
	}
}

// watch sends what is told of a conversation, and has the client do what it is asked to.
func (s *socket) watch(ctx context.Context, id string, after int64) {
	p, watch := s.principal(), s.h.chat.Attend
	if !account.Can(p, account.AskAnswer, account.Of(p.User)) {
		watch = s.h.chat.Watch
	}
	for event, err := range watch(ctx, p, id, after) {
		switch {
		case ctx.Err() != nil, errors.Is(err, chat.ErrClosed): // the node says so itself
			return
		case err != nil:
			refused := s.refusal("", err)
			refused.Session = id
			s.send(refused)
			return
		}
		s.send(eventMessage{"event", id, event})
		if event.Wanted {
			s.request(id, event)
		}
	}
}

// forget has a conversation be attached no longer, unless it is so anew.
func (s *socket) forget(id string, a *attachment) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.attached[id] == a {
		delete(s.attached, id)
	}
}

// request sends what the client is to do.
func (s *socket) request(id string, event chat.Event) {
	r := requestMessage{Type: "skill:request", Session: id}
	if err := json.Unmarshal(event.Ask.Payload, &r.Action); err != nil {
		s.h.log.Warn("a request to clients cannot be read", "ask", event.Ask.ID, "error", err)
		return
	}
	r.Request = cmp.Or(r.Request, event.Ask.ID)
	s.send(r)
}

// What the hub says.
type (
	eventMessage struct {
		Type    string     `json:"type"`
		Session string     `json:"session"`
		Event   chat.Event `json:"event"`
	}
	requestMessage struct {
		Type    string `json:"type"`
		Session string `json:"session"`
		agent.Action
	}
	reply struct {
		Type    string `json:"type"`
		To      string `json:"to,omitempty"` // the id of what it answers
		Session string `json:"session,omitempty"`
		Input   int64  `json:"input,omitempty"`
		Success bool   `json:"success,omitempty"`
		Code    string `json:"code,omitempty"`
		Detail  string `json:"detail,omitempty"`
		Next    string `json:"next,omitempty"`
	}
)

// refusal tells an error.
func (s *socket) refusal(to string, err error) reply {
	p := s.h.problem(s.ctx, err)
	return reply{Type: "error", To: to, Code: p.Code, Detail: p.Detail, Next: p.Next}
}
