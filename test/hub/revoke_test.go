//go:build unix

package hub_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout/internal/hub/chat"
)

// A token that is revoked and a user who is disabled on one node lose what runs on
// another one: turns, streams, and MCP sessions with the calls that they wait for.
func TestRevokedOnAnotherNode(t *testing.T) {
	for _, tt := range []struct {
		name   string
		revoke func(*node, string)
	}{
		{"token", func(n *node, user string) {
			var tokens struct{ Items []struct{ ID, Name string } }
			n.send("GET", "/api/v1/tokens?user="+user, nil).want(n.t, 200).into(n.t, &tokens)
			if len(tokens.Items) != 1 {
				n.t.Fatalf("the tokens are %v", tokens)
			}
			n.send("DELETE", "/api/v1/tokens/"+tokens.Items[0].ID+"?user="+user, nil).want(n.t, 204)
		}},
		{"user", func(n *node, user string) {
			n.send("PATCH", "/api/v1/users/"+user, map[string]any{"disabled": true}).want(n.t, 200)
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h, m, l := onPostgres(t), newModel(t, 0), newLedger(t)
			one, two := h.start(), h.start()
			user := one.send("POST", "/api/v1/users", map[string]any{"name": "ada", "password": secret, "admin": true}).want(t, 201).text(t, "id")
			hers := *h
			hers.token = two.tokenOf("ada", secret)
			ada := *two
			ada.hub = &hers
			ada.hire(m, l)
			session := ada.begin()
			w := ada.watch(session, "")
			ada.say(session, calls("hold", "turn"), calls("write", "behind"))
			<-l.begun

			b := &balancer{nodes: []*node{two}, token: hers.token, next: h.client.Transport}
			c := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
			connect := func() (*mcp.ClientSession, error) {
				return c.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: two.url + "/mcp/p/keeper", HTTPClient: &http.Client{Transport: b}, MaxRetries: -1},
					&mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
			}
			s := must(connect())(t)
			t.Cleanup(func() { s.Close() })
			called := make(chan string)
			go func() {
				res, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: "call_tool", Arguments: map[string]any{"name": "ledger__hold", "arguments": entry{"call"}}})
				if err == nil {
					called <- textOf(res)
				} else {
					called <- err.Error()
				}
			}()
			<-l.begun

			tt.revoke(one, user)
			if end, err := w.until(isType(chat.TurnEnded)); err == nil && end.Reason == chat.Done {
				t.Errorf("the turn ended as %+v", end)
			} else {
				for err == nil {
					_, err = w.next()
				}
				t.Logf("the stream ended: %v", err)
			}
			if text := <-called; !strings.Contains(text, "revoked") {
				t.Errorf("the call returned %q", text)
			}
			if _, err := connect(); err == nil {
				t.Error("a new session is served")
			}
			for _, n := range []*node{one, two} {
				if r := must(n.ask(hers.token, "GET", session, nil))(t); r.status != 401 {
					t.Errorf("status %d: %s", r.status, r.body)
				}
			}
			if l.all()["behind"] != 0 {
				t.Error("the turn went on")
			}
		})
	}
}
