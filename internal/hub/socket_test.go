package hub_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/loadout-dev/loadout/internal/bus/bustest"
	"github.com/loadout-dev/loadout/internal/encryption"
	"github.com/loadout-dev/loadout/internal/hub"
	"github.com/loadout-dev/loadout/internal/hub/chat"
	"github.com/loadout-dev/loadout/internal/store/storetest"
)

// wire is a WebSocket to a hub.
type wire struct {
	t    testing.TB
	conn *websocket.Conn
	ctx  context.Context
}

// message is any message on a socket.
type message struct {
	Type, To, Session  string
	Input              int64
	Success            bool
	Code, Detail, Next string
	Event              chat.Event
	Request            string `json:"request_id"`
	Skill              string `json:"skill_name"`
	Action             string
	Data               json.RawMessage
}

// dial tries to open a socket.
func (c caller) dial(t testing.TB, o *websocket.DialOptions) (*wire, *http.Response, error) {
	t.Helper()
	if o == nil {
		o = &websocket.DialOptions{}
	}
	o.HTTPHeader = c.header.Clone()
	if o.HTTPHeader == nil {
		o.HTTPHeader = http.Header{}
	}
	if c.cookie != nil {
		o.HTTPHeader.Set("Cookie", c.cookie.String())
	}
	if c.token != "" {
		o.HTTPHeader.Set("Authorization", "Bearer "+c.token)
	}
	ctx, stop := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
	t.Cleanup(stop)
	conn, resp, err := websocket.Dial(ctx, "ws"+strings.TrimPrefix(c.node.URL, "http")+"/ws", o)
	if err != nil {
		return nil, resp, err
	}
	t.Cleanup(func() { conn.CloseNow() })
	conn.SetReadLimit(1 << 20)
	return &wire{t, conn, ctx}, resp, nil
}

// socket opens one.
func (c caller) socket(t testing.TB) *wire {
	t.Helper()
	w, _, err := c.dial(t, nil)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *wire) say(v any) {
	w.t.Helper()
	data := must(json.Marshal(v))(w.t)
	if err := w.conn.Write(w.ctx, websocket.MessageText, data); err != nil {
		w.t.Fatal(err)
	}
}

// next is the next message.
func (w *wire) next() message {
	w.t.Helper()
	m, err := w.read()
	if err != nil {
		w.t.Fatal(err)
	}
	return m
}

func (w *wire) read() (m message, err error) {
	_, data, err := w.conn.Read(w.ctx)
	if err == nil {
		err = json.Unmarshal(data, &m)
	}
	return m, err
}

// until returns the first matching message.
func (w *wire) until(is func(m message) bool) message {
	w.t.Helper()
	for {
		if m := w.next(); is(m) {
			return m
		}
	}
}

// answered sends a message and returns the response to it.
func (w *wire) answered(v map[string]any) message {
	w.t.Helper()
	v["id"] = "mine"
	w.say(v)
	return w.until(func(m message) bool { return m.To == "mine" })
}

func ofType(kind string) func(message) bool { return func(m message) bool { return m.Type == kind } }
func event(kind chat.Type) func(message) bool {
	return func(m message) bool { return m.Type == "event" && m.Event.Type == kind }
}

func id(session string) string { return strings.TrimPrefix(session, "/api/v1/sessions/") }

// A conversation runs over a socket, and another socket resumes it after the last known
// event.
func TestSocket(t *testing.T) {
	_, ada, _ := hall(t)
	session := ada.begin(t)
	w := ada.socket(t)
	w.say(map[string]any{"type": "attach", "session": id(session), "id": "first"})
	if m := w.next(); m.Type != "ok" || m.To != "first" {
		t.Errorf("the answer is %+v", m)
	}
	w.say(map[string]any{"type": "message", "session": id(session), "text": "hello", "id": "second"})
	var seq, input int64
	var ended chat.Event
	for ended.Type == "" || input == 0 {
		switch m := w.next(); m.Type {
		case "ok":
			input = m.Input
		case "event":
			if seq++; m.Event.Seq != seq || m.Session != id(session) {
				t.Errorf("event %d is %+v", seq, m)
			}
			if m.Event.Type == chat.TurnEnded {
				ended = m.Event
			}
		}
	}
	if ended.Input != input || ended.Reason != chat.Done {
		t.Errorf("input %d ended as %+v", input, ended)
	}
	other := ada.socket(t)
	other.say(map[string]any{"type": "attach", "session": id(session), "after": seq - 1})
	if m := other.until(ofType("event")); m.Event.Seq != seq {
		t.Errorf("after %d comes %+v", seq-1, m)
	}
	for _, field := range []string{"after", "after_step"} { // only the second one concerns messages
		w.say(map[string]any{"type": "message", "session": id(session), "text": "again", field: 0})
		if m := other.until(event(chat.MessageReceived)); (m.Event.After != nil) != (field == "after_step") {
			t.Errorf("a message with %s continues after step %v", field, m.Event.After)
		}
		other.until(event(chat.TurnEnded))
	}
	if m := w.answered(map[string]any{"type": "detach", "session": id(session)}); m.Type != "ok" {
		t.Errorf("the answer is %+v", m)
	}
	w.say(map[string]any{"type": "message", "session": id(session), "text": "wait"})
	other.until(event(chat.TurnStarted))
	if m := w.answered(map[string]any{"type": "cancel", "session": id(session)}); m.Type != "ok" { // and no event before it
		t.Errorf("the answer is %+v", m)
	}
	if m := other.until(event(chat.TurnEnded)); m.Event.Reason != chat.Cancelled {
		t.Errorf("it ended as %+v", m)
	}
	ada.send(t, "DELETE", session, nil).want(t, 204)
	if m := other.next(); m.Type != "error" || m.Code != "not_found" || m.Session != id(session) {
		t.Errorf("that it is gone is reported by %+v", m)
	}
}

// What cannot be done is answered, and the socket stays.
func TestSocketProblems(t *testing.T) {
	_, ada, bob := hall(t)
	session := ada.begin(t)
	w := bob.socket(t)
	for _, tt := range []struct {
		name string
		say  map[string]any
		code string
	}{
		{"nothing", map[string]any{}, "malformed"},
		{"what there is not", map[string]any{"type": "dance"}, "malformed"},
		{"attach to another's", map[string]any{"type": "attach", "session": id(session)}, "not_found"},
		{"attach to none", map[string]any{"type": "attach", "session": "x"}, "not_found"},
		{"say in another's", map[string]any{"type": "message", "session": id(session), "text": "boo"}, "not_found"},
		{"cancel another's", map[string]any{"type": "cancel", "session": id(session)}, "not_found"},
		{"say nothing", map[string]any{"type": "message", "session": id(bob.begin(t))}, "invalid"},
		{"answer to nothing", map[string]any{"type": "answer", "ask": "x", "outcome": "accepted"}, "not_found"},
		{"answer with what is none", map[string]any{"type": "answer", "ask": "x", "outcome": "expired"}, "invalid"},
		{"no request", map[string]any{"type": "skill:response", "success": true}, "no_request_id"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if m := w.answered(tt.say); m.Type != "error" || m.Code != tt.code || m.Detail == "" {
				t.Errorf("the answer is %+v, want %s", m, tt.code)
			}
		})
	}
	if err := w.conn.Write(w.ctx, websocket.MessageText, []byte("{")); err != nil {
		t.Fatal(err)
	}
	if m := w.next(); m.Code != "malformed" {
		t.Errorf("the answer to what is no JSON is %+v", m)
	}
	if got := ada.lines(t, session); len(got) != 0 {
		t.Errorf("her conversation has %q", got)
	}
	if err := w.conn.Write(w.ctx, websocket.MessageBinary, []byte("x")); err != nil {
		t.Fatal(err)
	}
	if _, err := w.read(); websocket.CloseStatus(err) != websocket.StatusUnsupportedData {
		t.Errorf("what is not a text is answered with %v", err)
	}
	big := ada.socket(t)
	big.conn.Write(big.ctx, websocket.MessageText, make([]byte, 2<<20)) // it may be closed meanwhile
	if _, err := big.read(); websocket.CloseStatus(err) != websocket.StatusMessageTooBig {
		t.Errorf("what is too big is answered with %v", err)
	}
}

// A socket requires a sign-in and a page of the hub, or a token from any origin.
func TestSocketAuthorization(t *testing.T) {
	n, ada, _ := hall(t)
	token := func(scope string) string {
		return ada.send(t, "POST", "/api/v1/tokens", map[string]any{"name": scope, "scopes": []string{scope}}).want(t, 201).text(t, "token")
	}
	chats, writes := token("chat"), token("write")
	protocols := func(token string) []string { return []string{"loadout", "loadout.token." + token} }
	elsewhere := ada.with("Origin", "https://elsewhere.example")
	for _, tt := range []struct {
		name      string
		by        caller
		protocols []string
		status    int
	}{
		{"nobody", n.anybody(), nil, 401},
		{"a cookie", ada, nil, 101},
		{"a cookie, from a page of the hub", ada.with("Origin", n.URL), nil, 101},
		{"a cookie, from another page", elsewhere, nil, 403},
		{"a token", caller{node: n, token: chats}, nil, 101},
		{"a token that is for something else", caller{node: n, token: writes}, nil, 403},
		{"a token as a protocol", n.anybody(), protocols(chats), 101},
		{"likewise, from another page", n.anybody().with("Origin", "https://elsewhere.example"), protocols(chats), 101},
		{"no token as a protocol", n.anybody(), protocols("lo_x"), 401},
		{"the same with a cookie", elsewhere, protocols("lo_x"), 401},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w, resp, err := tt.by.dial(t, &websocket.DialOptions{Subprotocols: tt.protocols})
			if resp == nil || resp.StatusCode != tt.status {
				t.Fatalf("the answer is %v, %v, want %d", resp, err, tt.status)
			}
			if err == nil && tt.protocols != nil && w.conn.Subprotocol() != "loadout" {
				t.Errorf("the protocol is %q", w.conn.Subprotocol())
			}
		})
	}
	r := caller{node: n, token: chats}.send(t, "GET", "/api/v1/sessions", nil)
	n.anybody().with("Sec-WebSocket-Protocol", "loadout.token."+chats).send(t, "GET", "/api/v1/sessions", nil).want(t, 401) // of a socket only
	if r.status != 200 || strings.Contains(n.log.String(), chats) {
		t.Errorf("status %d, and the log is %s", r.status, n.log)
	}
}

// A read-only token can watch but changes nothing, and does not count as a client for
// actions.
func TestReadOnlySocket(t *testing.T) {
	n, ada, _ := hall(t, func(o *chat.Options, _ *chat.Setup) { o.ClientTimeout = 50 * time.Millisecond })
	token := ada.send(t, "POST", "/api/v1/tokens", map[string]any{"name": "r", "scopes": []string{"read"}}).want(t, 201).text(t, "token")
	session := ada.begin(t)
	w := caller{node: n, token: token}.socket(t)
	w.say(map[string]any{"type": "attach", "session": id(session)})
	if m := w.answered(map[string]any{"type": "message", "session": id(session), "text": "hello"}); m.Code != "scope" {
		t.Errorf("the answer is %+v", m)
	}
	ada.say(t, session, "call render")
	for {
		m := w.next()
		if m.Type == "skill:request" {
			t.Error("it is asked to do something")
		}
		if m.Event.Type == chat.TurnEnded {
			break
		}
	}
	if got := ada.lines(t, session); !strings.Contains(got[len(got)-1], "no client of the conversation is open") {
		t.Errorf("it has %q", got)
	}
}

// W27: over sockets, a request has the payload that clients know, is not sent again to who
// comes after it was answered, and the first response counts.
func TestW27OverSocket(t *testing.T) {
	_, ada, _ := hall(t)
	session := ada.begin(t)
	w := ada.socket(t)
	w.say(map[string]any{"type": "attach", "session": id(session)})
	ada.say(t, session, `call render {"code":"graph TD"}`)
	r := w.until(ofType("skill:request"))
	if r.Session != id(session) || r.Request == "" || r.Skill != "mermaid" || r.Action != "render" || string(r.Data) != `{"code":"graph TD"}` {
		t.Errorf("the request is %+v", r)
	}
	response := map[string]any{"type": "skill:response", "request_id": r.Request, "skill_name": r.Skill, "action": r.Action, "success": true, "result": "<svg/>"}
	if m := w.answered(response); m.Type != "ok" || !m.Success {
		t.Errorf("the answer is %+v", m)
	}
	if m := w.answered(response); m.Detail != "No pending request found" {
		t.Errorf("to a second one it is %+v", m)
	}
	other := ada.socket(t)
	other.say(map[string]any{"type": "attach", "session": id(session)})
	for m := other.next(); m.Event.Type != chat.TurnEnded; m = other.next() {
		if m.Type == "skill:request" {
			t.Error("what was answered is asked again")
		}
	}
	if got := ada.lines(t, session); !strings.HasSuffix(got[len(got)-1], "result: <svg/>") {
		t.Errorf("it has %q", got)
	}
}

// W27 and L14: a turn on one node, watched and answered on another.
func TestW27AcrossNodes(t *testing.T) {
	t.Parallel()
	for name, more := range map[string]func(t *testing.T, o *hub.Options){
		"SQLite": func(t *testing.T, o *hub.Options) { o.Database = storetest.SQLite(t) },
		"PostgreSQL and Redis": func(t *testing.T, o *hub.Options) {
			o.Database, o.Redis = storetest.Postgres(t), bustest.Start(t).URL()
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := hub.Options{Keys: []encryption.Key{encryption.NewKey()}}
			more(t, &o)
			one, two := pair(t, o)
			here := one.signIn(t, "root", secret)
			there := caller{node: two, cookie: here.cookie}
			session := here.begin(t)
			w := there.socket(t)
			w.say(map[string]any{"type": "attach", "session": id(session)})
			here.say(t, session, "call render")
			r := w.until(ofType("skill:request"))
			if m := w.answered(map[string]any{"type": "skill:response", "request_id": r.Request, "success": true, "result": "drawn"}); m.Type != "ok" {
				t.Errorf("the answer is %+v", m)
			}
			w.until(event(chat.TurnEnded))
			here.say(t, session, "call burn")
			q := w.until(event(chat.ApprovalRequested)).Event.ApprovalRequest
			if m := w.answered(map[string]any{"type": "answer", "ask": q.ID, "outcome": "declined", "feedback": "not today"}); m.Type != "ok" {
				t.Errorf("the answer is %+v", m)
			}
			w.until(event(chat.TurnEnded))
			if got := fmt.Sprint(there.lines(t, session)); !strings.Contains(got, "result: drawn") || !strings.Contains(got, "not burned: not today") {
				t.Errorf("it has %s", got)
			}
		})
	}
}

// A stopping node sends a closing event and closes its sockets. Sockets also close at
// sign-out and for clients that do not read.
func TestSocketsEnd(t *testing.T) {
	t.Run("with the node", func(t *testing.T) {
		n, ada, _ := hall(t)
		w := ada.socket(t)
		var all sync.WaitGroup
		all.Go(n.EndStreams)
		w.until(ofType("bye"))
		if _, err := w.read(); websocket.CloseStatus(err) != websocket.StatusGoingAway {
			t.Errorf("it ended by %v", err)
		}
		all.Wait()
		if _, resp, err := ada.dial(t, nil); err == nil || resp.StatusCode != 503 {
			t.Errorf("another is answered with %v, %v", resp, err)
		}
	})
	t.Run("with the sign-in", func(t *testing.T) {
		n, ada, _ := hall(t)
		n.BoundStreams(5, 5, 10*time.Millisecond, patience)
		w := ada.socket(t)
		ada.send(t, "POST", "/api/v1/logout", nil).want(t, 204)
		if m := w.next(); m.Code != "sign_in" {
			t.Errorf("it got %+v", m)
		}
		if _, err := w.read(); websocket.CloseStatus(err) != websocket.StatusPolicyViolation {
			t.Errorf("it ended by %v", err)
		}
	})
	t.Run("nothing taken", func(t *testing.T) {
		n, ada, _ := hall(t)
		session := ada.begin(t)
		var last int64
		for range 10 { // more than is buffered on the way
			last = ada.say(t, session, strings.Repeat("x", 250<<10))
		}
		ada.ended(t, session, last)
		n.BoundStreams(5, 5, patience, 50*time.Millisecond)
		w := ada.socket(t)
		w.say(map[string]any{"type": "attach", "session": id(session)})
		eventually(t, func() bool { _, sockets := n.Streams(); return sockets == 0 })
		for err := error(nil); err == nil; {
			_, err = w.read()
		}
		if r := ada.send(t, "GET", session, nil); r.status != 200 {
			t.Errorf("the hub answers %d", r.status)
		}
	})
}

// Clients that disconnect without a close message leave no goroutine, and no client for
// actions.
func TestVanishedClients(t *testing.T) {
	const clients = 200
	n, ada, _ := hall(t, func(o *chat.Options, _ *chat.Setup) { o.ClientTimeout = 50 * time.Millisecond })
	n.BoundStreams(clients, clients, patience, patience)
	session := ada.begin(t)
	for range clients {
		var conn net.Conn
		dial := func(ctx context.Context, network, addr string) (_ net.Conn, err error) {
			conn, err = (&net.Dialer{}).DialContext(ctx, network, addr)
			return conn, err
		}
		transport := &http.Transport{DialContext: dial}
		w, _, err := ada.dial(t, &websocket.DialOptions{HTTPClient: &http.Client{Transport: transport}})
		if err != nil {
			t.Fatal(err)
		}
		w.say(map[string]any{"type": "attach", "session": id(session)})
		if m := w.next(); m.Type != "ok" {
			t.Fatalf("the answer is %+v", m)
		}
		conn.(*net.TCPConn).SetLinger(0) // a reset
		conn.Close()
	}
	eventually(t, func() bool { _, sockets := n.Streams(); return sockets == 0 })
	ada.talk(t, session, "call render")
	if got := ada.lines(t, session); !strings.Contains(got[len(got)-1], "no client of the conversation is open") {
		t.Errorf("it has %q", got)
	}
}

// A user and a node have so many sockets open, and a socket so many conversations.
func TestSocketLimit(t *testing.T) {
	n, ada, bob := hall(t)
	n.BoundStreams(2, 3, patience, patience)
	w := ada.socket(t)
	ada.socket(t)
	bob.socket(t)
	for who, want := range map[*caller]int{&ada: 429, &bob: 503} {
		if _, resp, err := who.dial(t, nil); err == nil || resp.StatusCode != want {
			t.Errorf("the answer is %v, %v, want %d", resp, err, want)
		}
	}
	for i := range 51 {
		m := w.answered(map[string]any{"type": "attach", "session": id(ada.begin(t))})
		if full := i == 50; full != (m.Code == "too_many") {
			t.Errorf("attach %d is answered with %+v", i+1, m)
		}
	}
}
