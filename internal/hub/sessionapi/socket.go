package sessionapi

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

	"github.com/loadout-dev/loadout/internal/clientaction"
	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/api"
	"github.com/loadout-dev/loadout/internal/hub/auth"
	"github.com/loadout-dev/loadout/internal/hub/chat"
)

// WebSocket limits.
const (
	socketsEach       = 50
	socketsAll        = 5000
	socketBeat        = 30 * time.Second
	maxAttached       = 50      // conversations per socket
	maxMessage        = 1 << 20 // bytes per message
	closeFrameTimeout = 2 * time.Second
)

// socketProtocol is the WebSocket subprotocol.
const socketProtocol = "loadout"

const socketSummary = `Conversations in both directions, as JSON objects in text messages.

A client sends {type: attach, session, after}, {type: detach, session}, {type: message, session, text, skill, images, key, after_step}, {type: cancel, session}, {type: answer, ask, outcome, content, feedback, scope} and {type: skill:response, request_id, skill_name, action, success, result, error}. The server answers each with {type: ok} or {type: error, code, detail, next}, and repeats its id as to. A message with the key of an earlier one is not sent twice. Its after_step is after, and its images those, in POST /sessions/{id}/messages. To return to another version of a message, use POST /sessions/{id}/branch.

The server sends {type: event, session, event} for events of attached conversations, as in the schema ChatEvent, {type: skill:request, session, request_id, skill_name, action, data} for actions of the client, {type: error, session, …} if an attached conversation ends early, and {type: bye} when the node shuts down.

A browser authenticates with its cookie, or with the subprotocols loadout and loadout.token.TOKEN.`

func socketOperation() huma.Operation {
	op := api.Operation("open-socket", "GET", "/ws", "Open a WebSocket for conversations")
	op.Path, op.Description = "/ws", socketSummary
	op.DefaultStatus = http.StatusSwitchingProtocols
	return op
}

func (h *Handlers) openSocket(ctx context.Context, _ *api.NoBody) (*huma.StreamResponse, error) {
	p := account.FromContext(ctx)
	if err := account.Check(p, account.SessionRead, account.OwnedBy(p.User)); err != nil {
		return nil, err
	}
	return &huma.StreamResponse{Body: func(ctx huma.Context) {
		r, w := humago.Unwrap(ctx)
		if !strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
			h.Server.WriteProblem(w, r, &api.Problem{Status: 426, Code: "upgrade", Detail: "a WebSocket is required", Next: "open a WebSocket", Header: http.Header{"Upgrade": {"websocket"}, "Connection": {"Upgrade"}}})
			return
		}
		release, err := h.Sockets.Enter(p.User)
		if err != nil {
			h.Server.WriteProblem(w, r, err)
			return
		}
		defer release()
		// The origin has already been checked.
		conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{InsecureSkipVerify: true, Subprotocols: []string{socketProtocol}})
		if err != nil {
			return // Accept has sent the response
		}
		serveSocket(h, conn, context.WithoutCancel(r.Context()), p)
	}}, nil
}

// socket is the connection to a client. One goroutine reads messages, one per
// attached conversation sends its events, and one monitors the connection. Senders
// wait for the client, so nothing is queued.
type socket struct {
	h    *Handlers
	conn *websocket.Conn
	open context.Context // done when the connection ends
	ctx  context.Context // context for work on behalf of the client; cancelled by end
	end  context.CancelCauseFunc
	turn chan struct{} // held while sending

	work sync.WaitGroup

	mu       sync.Mutex        // guards the fields below
	p        account.Principal // principal at the last check
	attached map[string]*attachment
}

// attachment is a client's subscription to the events of a conversation.
type attachment struct {
	stop context.CancelFunc
	done chan struct{} // closed after the last event was sent
}

// closeError is the reason why the hub closes a socket.
type closeError struct {
	code   websocket.StatusCode
	reason string
}

func (e *closeError) Error() string { return e.reason }

var errGone = errors.New("client disconnected")

// serveSocket serves a connection until it ends, then waits for its goroutines.
func serveSocket(h *Handlers, conn *websocket.Conn, open context.Context, p account.Principal) {
	s := &socket{h: h, conn: conn, p: p, open: open, turn: make(chan struct{}, 1), attached: map[string]*attachment{}}
	s.ctx, s.end = context.WithCancelCause(open)
	conn.SetReadLimit(maxMessage)
	s.work.Go(s.read)
	s.work.Go(s.ping)
	select {
	case <-s.ctx.Done():
	case <-h.Draining:
		s.sendBye()
		s.end(&closeError{websocket.StatusGoingAway, "node is shutting down"})
	}
	if why, ok := errors.AsType[*closeError](context.Cause(s.ctx)); ok {
		conn.Close(why.code, why.reason)
	}
	conn.CloseNow()
	s.work.Wait()
}

func (s *socket) sendBye() {
	ctx, stop := context.WithTimeout(s.open, closeFrameTimeout)
	defer stop()
	s.write(ctx, reply{Type: "bye"})
}

// ping detects when the client has disconnected or its access was revoked.
func (s *socket) ping() {
	beat := time.NewTicker(s.h.Sockets.Beat)
	defer beat.Stop()
	ended, forget := s.h.Credentials.Watch(api.RequestFrom(s.ctx))
	defer forget()
	for {
		p, err := s.principal(), error(nil)
		select {
		case <-s.ctx.Done():
			return
		case <-ended:
			err = auth.EndedError(api.RequestFrom(s.ctx))
		case <-beat.C:
			p, err = s.h.Gate.CurrentPrincipal(s.ctx, api.RequestFrom(s.ctx))
		}
		if err != nil {
			s.send(s.refusal("", err))
			s.end(&closeError{websocket.StatusPolicyViolation, "signed out"})
			return
		}
		s.mu.Lock()
		s.p = p
		s.mu.Unlock()
		// Messages may arrive before the pong.
		ctx, stop := context.WithTimeout(s.ctx, api.OperationTimeout+auth.SlowClientTimeout)
		err = s.conn.Ping(ctx)
		stop()
		if err != nil {
			s.end(errGone)
			return
		}
	}
}

// principal returns the client's current principal.
func (s *socket) principal() account.Principal {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.p
}

// read handles the client's messages in order.
func (s *socket) read() {
	for {
		kind, data, err := s.conn.Read(s.open)
		switch {
		case err != nil:
			s.end(errGone)
			return
		case kind != websocket.MessageText:
			s.end(&closeError{websocket.StatusUnsupportedData, "messages must be text"})
			return
		}
		answer, then := s.handleMessage(data)
		s.send(answer)
		if s.ctx.Err() != nil {
			return
		}
		if then != nil {
			then()
		}
	}
}

// send sends a message unless the socket is closing.
func (s *socket) send(v any) { s.write(s.open, v) }

// write sends a message once other writes have finished. It closes the socket
// if the client is too slow.
func (s *socket) write(ctx context.Context, v any) {
	data, err := json.Marshal(v)
	if err != nil {
		s.h.Log.Error("couldn't encode a message to a client", "error", err)
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
	slow := time.AfterFunc(s.h.Sockets.Slow, func() { s.end(&closeError{websocket.StatusPolicyViolation, "client is too slow"}) })
	defer slow.Stop()
	if s.conn.Write(ctx, websocket.MessageText, data) != nil {
		s.end(errGone)
	}
}

// attach attaches the client to a conversation. It returns a function that starts
// sending the events whose numbers are greater than after.
func (s *socket) attach(ctx context.Context, id string, after int64) (begin func(), err error) {
	if _, err := s.h.Chat.Get(ctx, s.principal(), id); err != nil {
		return nil, err
	}
	s.detach(id)
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.attached) >= maxAttached {
		return nil, &api.Problem{Status: 409, Code: "too_many", Detail: "too many conversations attached", Next: "detach some"}
	}
	return func() { s.begin(id, after) }, nil
}

// begin starts sending a conversation's events. It must be called by the reading
// goroutine.
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

// detach stops sending a conversation's events and waits for the last one.
func (s *socket) detach(id string) {
	s.mu.Lock()
	a := s.attached[id]
	s.mu.Unlock()
	if a != nil {
		a.stop()
		<-a.done
	}
}

// watch sends a conversation's events and requests to the client.
func (s *socket) watch(ctx context.Context, id string, after int64) {
	p, watch := s.principal(), s.h.Chat.WatchAsClient
	if !account.Can(p, account.ApprovalAnswer, account.OwnedBy(p.User)) {
		watch = s.h.Chat.Watch
	}
	for event, err := range watch(ctx, p, id, after) {
		switch {
		case ctx.Err() != nil, errors.Is(err, chat.ErrClosed): // a node's shutdown is reported elsewhere
			return
		case err != nil:
			refused := s.refusal("", err)
			refused.Session = id
			s.send(refused)
			return
		}
		s.send(eventMessage{"event", id, event})
		if event.NeedsResponse {
			s.request(id, event)
		}
	}
}

// forget removes an attachment, unless the conversation was attached again.
func (s *socket) forget(id string, a *attachment) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.attached[id] == a {
		delete(s.attached, id)
	}
}

// request sends a skill:request message to the client.
func (s *socket) request(id string, event chat.Event) {
	r := requestMessage{Type: "skill:request", Session: id}
	if err := json.Unmarshal(event.ApprovalRequest.Payload, &r.Action); err != nil {
		s.h.Log.Warn("couldn't read a request to clients", "ask", event.ApprovalRequest.ID, "error", err)
		return
	}
	r.Request = cmp.Or(r.Request, event.ApprovalRequest.ID)
	s.send(r)
}

// Messages from the hub.
type (
	eventMessage struct {
		Type    string     `json:"type"`
		Session string     `json:"session"`
		Event   chat.Event `json:"event"`
	}
	requestMessage struct {
		Type    string `json:"type"`
		Session string `json:"session"`
		clientaction.Action
	}
	reply struct {
		Type    string `json:"type"`
		To      string `json:"to,omitempty"` // ID of the client's message
		Session string `json:"session,omitempty"`
		Input   int64  `json:"input,omitempty"`
		Success bool   `json:"success,omitempty"`
		Code    string `json:"code,omitempty"`
		Detail  string `json:"detail,omitempty"`
		Next    string `json:"next,omitempty"`
	}
)

// refusal returns the error reply to a message.
func (s *socket) refusal(to string, err error) reply {
	p := s.h.Server.Problem(s.ctx, err)
	return reply{Type: "error", To: to, Code: p.Code, Detail: p.Detail, Next: p.Next}
}
