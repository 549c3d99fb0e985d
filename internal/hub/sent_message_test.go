package hub_test

import (
	"strings"
	"sync"
	"testing"

	"github.com/loadout-dev/loadout/internal/encryption"
	"github.com/loadout-dev/loadout/internal/hub"
	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/chat"
)

// saidIn is how many messages there are in a conversation, as its events say.
func (c caller) saidIn(t *testing.T, session string) (n int) {
	t.Helper()
	return strings.Count(c.open(t, session+"/events?follow=false").all(), "event: said\n")
}

func (s *stream) all() string {
	s.t.Helper()
	var b strings.Builder
	for {
		e, ok := s.next()
		if !ok {
			return b.String()
		}
		b.WriteString("event: " + e.name + "\n")
	}
}

// A message that is sent again with its key, concurrently or later, to any node, is
// stored once and answered the same. Without a key it is another message.
func TestMessageSentTwice(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, database string) {
		o := hub.Options{Database: database, FirstAdmin: &hub.FirstAdmin{Name: "root", Password: secret}, Accounts: true, Keys: []encryption.Key{encryption.NewKey()}}
		a, b := start(t, o), start(t, o)
		talker(t, a)
		talker(t, b)
		_, token := a.newcomer(t, "ada", account.AllScopes)
		ada, there := caller{node: a, token: token}, caller{node: b, token: token}
		session := ada.begin(t)
		send := func(c caller, key, text string) reply {
			return c.with("Idempotency-Key", key).send(t, "POST", session+"/messages", map[string]string{"text": text})
		}
		first := send(ada, "one", "hello").want(t, 202).body
		for _, r := range []reply{send(ada, "one", "hello"), send(there, "one", "hello"), send(there, `"one"`, "hello")} {
			if r.want(t, 202).body != first {
				t.Errorf("again it is %s, and was %s", r.body, first)
			}
		}
		send(there, "one", "hello there").wantProblem(t, 422, "key_used")
		if n := ada.saidIn(t, session); n != 1 {
			t.Errorf("%d messages were said", n)
		}

		var sending sync.WaitGroup
		answers := make([]reply, 20)
		for i := range answers {
			sending.Go(func() {
				answers[i], _ = [...]*node{a, b}[i%2].send(caller{token: token}.with("Idempotency-Key", "two"), "POST", session+"/messages", map[string]string{"text": "at once"})
			})
		}
		sending.Wait()
		for _, r := range answers {
			if r.status != 202 || r.body != answers[0].body || r.body == first {
				t.Errorf("at once: %d %s", r.status, r.body)
			}
		}
		send(ada, "", "hello").want(t, 202)
		send(ada, strings.Repeat("k", 200), "hello").want(t, 202)
		if n := ada.saidIn(t, session); n != 4 {
			t.Errorf("%d messages were said", n)
		}
		for _, bad := range []string{strings.Repeat("k", 201), `"`, `""`, `"a`, `"a"b"`, `"a\b"`} {
			send(ada, bad, "hello").wantProblem(t, 422, "invalid")
		}

		// A key belongs to one user in one conversation.
		session = ada.begin(t)
		send(ada, "one", "something else").want(t, 202)
		_, other := a.newcomer(t, "bob", account.AllScopes)
		send(caller{node: a, token: other}, "one", "something else").want(t, 404)
		ada.send(t, "DELETE", session, nil).want(t, 204)
		send(ada, "one", "something else").want(t, 404)
	})
}

// The same over a socket.
func TestMessageSentTwiceOverSocket(t *testing.T) {
	_, ada, _ := hall(t)
	session := ada.begin(t)
	say := map[string]any{"type": "message", "session": id(session), "text": "hello", "key": "one"}
	first := ada.socket(t).answered(say)
	if again := ada.socket(t).answered(say); first.Type != "ok" || again.Input != first.Input {
		t.Errorf("it is answered %+v, and again %+v", first, again)
	}
	ada.until(t, session+"/events", func(e chat.Event) bool { return e.Type == chat.TurnEnded })
	if n := ada.saidIn(t, session); n != 1 {
		t.Errorf("%d messages were said", n)
	}
}
