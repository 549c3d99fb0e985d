//go:build unix

package hub_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/coder/websocket"

	"github.com/loadout-dev/loadout/internal/hub/chat"
)

// A thousand clients of twenty users watch a turn over WebSockets and disconnect without
// a close message. Their resources are freed, and the turn continues.
func TestThousandClientsDisconnect(t *testing.T) {
	const users, each = 20, 50
	h, m, l := onPostgres(t), newModel(t, 0), newLedger(t)
	n := h.start()
	n.hire(m, l)
	session := n.begin()
	w := n.watch(session, "")
	n.say(session, calls("hold", "long"), calls("write", "behind"))
	<-l.begun

	tokens, sessions := make([]string, users), make([]string, users)
	for i := range users {
		name := fmt.Sprint("user", i)
		n.send("POST", "/api/v1/users", map[string]string{"name": name, "password": secret}).want(t, 201)
		tokens[i] = n.tokenOf(name, secret, "read", "chat")
		sessions[i] = must(n.ask(tokens[i], "POST", "/api/v1/sessions", map[string]string{}))(t).want(t, 201).text(t, "id")
	}
	conns, errs := make([][]net.Conn, users), make([]error, users)
	var opening sync.WaitGroup
	for i := range users {
		opening.Go(func() {
			for range each {
				conn, err := n.attach(tokens[i], sessions[i])
				if errs[i] = err; err != nil {
					return
				}
				conns[i] = append(conns[i], conn)
			}
		})
	}
	opening.Wait()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
	open := func() string {
		for line := range strings.Lines(n.send("GET", "/metrics", nil).want(t, 200).body) {
			if rest, ok := strings.CutPrefix(line, `loadout_http_streams{route="GET /ws"} `); ok {
				return strings.TrimSpace(rest)
			}
		}
		return ""
	}
	if got := open(); got != fmt.Sprint(users*each) {
		t.Errorf("%s sockets are open", got)
	}
	for _, all := range conns {
		for _, conn := range all {
			conn.(*net.TCPConn).SetLinger(0) // a reset
			conn.Close()
		}
	}
	n.eventually("all sockets have ended", func() bool { return open() == "0" })
	l.letGo()
	if end := n.until(w, isType(chat.TurnEnded)); end.Reason != chat.Done {
		t.Errorf("the turn ended as %+v", end)
	}
	n.stop()
}

// attach opens a WebSocket that watches a conversation and returns its network
// connection.
func (n *node) attach(token, session string) (net.Conn, error) {
	ctx, stop := context.WithTimeout(context.Background(), patience)
	defer stop()
	var below net.Conn
	dial := func(ctx context.Context, network, addr string) (_ net.Conn, err error) {
		below, err = (&net.Dialer{}).DialContext(ctx, network, addr)
		return below, err
	}
	ws, _, err := websocket.Dial(ctx, n.url+"/ws", &websocket.DialOptions{HTTPClient: &http.Client{Transport: &http.Transport{DialContext: dial}},
		HTTPHeader: http.Header{"Authorization": {"Bearer " + token}}})
	if err != nil {
		return nil, err
	}
	err = ws.Write(ctx, websocket.MessageText, fmt.Appendf(nil, `{"type":"attach","session":%q}`, session))
	if err != nil {
		return nil, err
	}
	_, data, err := ws.Read(ctx)
	if err != nil || !strings.Contains(string(data), `"ok"`) {
		return nil, errors.Join(fmt.Errorf("a socket says %q", data), err)
	}
	return below, nil
}
