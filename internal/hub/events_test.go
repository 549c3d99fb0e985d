package hub_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/loadout-dev/loadout/internal/bus/bustest"
	"github.com/loadout-dev/loadout/internal/encryption"
	"github.com/loadout-dev/loadout/internal/hub"
	"github.com/loadout-dev/loadout/internal/hub/chat"
	"github.com/loadout-dev/loadout/internal/store/storetest"
)

// patience is the time that a test waits for an expected event.
const patience = time.Minute

// stream is a stream of server-sent events.
type stream struct {
	t      testing.TB
	lines  *bufio.Reader
	close  func()
	silent int // comments that came
}

// sent is one event.
type sent struct{ id, name, data string }

// open opens a stream of events, which is closed at the end of the test.
func (c caller) open(t testing.TB, path string) *stream {
	t.Helper()
	ctx, stop := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
	req := must(http.NewRequestWithContext(ctx, "GET", c.node.URL+path, nil))(t)
	for name, values := range c.header {
		req.Header[name] = values
	}
	if c.cookie != nil {
		req.AddCookie(c.cookie)
	}
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	resp, err := c.node.Client().Do(req)
	if err != nil {
		stop()
		t.Fatal(err)
	}
	end := sync.OnceFunc(func() {
		stop()
		resp.Body.Close()
	})
	t.Cleanup(end)
	if resp.StatusCode != 200 || resp.Header.Get("Content-Type") != "text/event-stream" {
		data, _ := io.ReadAll(resp.Body)
		t.Fatalf("status %d with %v: %s", resp.StatusCode, resp.Header, data)
	}
	return &stream{t: t, lines: bufio.NewReader(resp.Body), close: end}
}

// next is the next event; ok is false at the end.
func (s *stream) next() (e sent, ok bool) {
	s.t.Helper()
	for {
		line, err := s.lines.ReadString('\n')
		if err == io.EOF {
			return e, false
		}
		if err != nil {
			s.t.Fatal(err)
		}
		line = strings.TrimSuffix(line, "\n")
		name, value, _ := strings.Cut(line, ": ")
		switch {
		case line == "" && e != sent{}:
			return e, true
		case strings.HasPrefix(line, ":"):
			s.silent++
		case name == "id":
			e.id = value
		case name == "event":
			e.name = value
		case name == "data":
			e.data = value
		}
	}
}

// until reads events of a stream up to a matching one.
func (c caller) until(t testing.TB, path string, is func(chat.Event) bool) []chat.Event {
	t.Helper()
	s := c.open(t, path)
	defer s.close()
	var out []chat.Event
	for {
		e, ok := s.next()
		if !ok {
			t.Fatalf("the stream ended after %d events", len(out))
		}
		ev := eventOf(t, e)
		if out = append(out, ev); is(ev) {
			return out
		}
	}
}

func eventOf(t testing.TB, e sent) (ev chat.Event) {
	t.Helper()
	if err := json.Unmarshal([]byte(e.data), &ev); err != nil || string(ev.Type) != e.name || strconv.FormatInt(ev.Seq, 10) != e.id {
		t.Fatalf("the event is %+v: %v", e, err)
	}
	return ev
}

// ended waits for the end of the item with a number.
func (c caller) ended(t testing.TB, session string, input int64) chat.Event {
	t.Helper()
	all := c.until(t, session+"/events", func(ev chat.Event) bool { return ev.Type == chat.TurnEnded && ev.Input == input })
	return all[len(all)-1]
}

// Who comes back with the number of the last event gets all others, each once.
func TestEventsResume(t *testing.T) {
	_, ada, _ := hall(t)
	session := ada.begin(t)
	for range 3 {
		ada.talk(t, session, "hello there")
	}
	ended := 0
	whole := ada.until(t, session+"/events", func(ev chat.Event) bool {
		if ev.Type == chat.TurnEnded {
			ended++
		}
		return ended == 3
	})
	for _, by := range []string{"Last-Event-ID", "after"} {
		last := int64(0)
		for last < int64(len(whole)) {
			c, path := ada, session+"/events"
			if by == "after" {
				path += fmt.Sprint("?after=", last)
			} else {
				path += "?after=1" // the header counts more
				c = ada.with(by, fmt.Sprint(last))
			}
			s := c.open(t, path)
			for range 4 {
				if last == int64(len(whole)) {
					break
				}
				e, ok := s.next()
				if ev := eventOf(t, e); !ok || ev.Seq != last+1 || ev.Type != whole[last].Type {
					t.Fatalf("by %s after %d: %+v", by, last, ev)
				}
				last++
			}
			s.close()
		}
	}
}

// A stream ends after the last event if requested, when its conversation is deleted, and
// when the node stops, with a closing event.
func TestEventsEnd(t *testing.T) {
	n, ada, _ := hall(t)
	session := ada.begin(t)
	ada.talk(t, session, "hello")
	var reported []sent
	s := ada.open(t, session+"/events?follow=false")
	for e, ok := s.next(); ok; e, ok = s.next() {
		reported = append(reported, e)
	}
	if len(reported) == 0 || reported[len(reported)-1].name != string(chat.TurnEnded) {
		t.Errorf("events: %+v", reported)
	}
	after := fmt.Sprint("/events?after=", len(reported))
	s = ada.open(t, session+after)
	ada.send(t, "DELETE", session, nil).want(t, 204)
	e, _ := s.next()
	if e.name != "problem" || !strings.Contains(e.data, `"code":"not_found"`) {
		t.Errorf("it is notified that it is gone by %+v", e)
	}
	if e, ok := s.next(); ok {
		t.Errorf("then comes %+v", e)
	}
	s = ada.open(t, ada.begin(t)+"/events")
	n.EndStreams()
	if e, _ := s.next(); e.name != "bye" {
		t.Errorf("good-bye is %+v", e)
	}
	if e, ok := s.next(); ok {
		t.Errorf("then comes %+v", e)
	}
	if events, sockets := n.Streams(); events+sockets != 0 {
		t.Errorf("%d streams and %d sockets are open", events, sockets)
	}
	ada.send(t, "GET", ada.begin(t)+"/events", nil).wantProblem(t, 503, "closing")
}

func TestEventsEndAtSignOut(t *testing.T) {
	n, ada, _ := hall(t)
	n.BoundStreams(5, 5, 10*time.Millisecond, patience)
	session := ada.begin(t)
	s := ada.open(t, session+"/events")
	for s.silent < 3 {
		if b, err := s.lines.ReadString('\n'); err != nil {
			t.Fatal(err)
		} else if strings.HasPrefix(b, ":") {
			s.silent++
		}
	}
	ada.send(t, "POST", "/api/v1/logout", nil).want(t, 204)
	if e, ok := s.next(); !ok || e.name != "problem" || !strings.Contains(e.data, `"code":"sign_in"`) {
		t.Errorf("it ended by %+v", e)
	}
}

func TestEventsFollowCurrentRights(t *testing.T) {
	n, ada, bob := hall(t)
	n.BoundStreams(5, 5, 10*time.Millisecond, patience)
	s, w, his := ada.open(t, ada.begin(t)+"/events"), ada.socket(t), bob.begin(t)
	stop := func() message { return w.answered(map[string]any{"type": "cancel", "session": id(his)}) }
	if m := stop(); m.Code != "not_found" {
		t.Errorf("what another one has is answered with %+v", m)
	}
	user := ada.send(t, "GET", "/api/v1/users/me", nil).want(t, 200).text(t, "id")
	n.signIn(t, "root", secret).send(t, "PATCH", "/api/v1/users/"+user, map[string]bool{"admin": true}).want(t, 200)
	if e, ok := s.next(); !ok || e.name != "problem" || !strings.Contains(e.data, `"code":"rights"`) {
		t.Errorf("it ended by %+v", e)
	}
	eventually(t, func() bool { return stop().Type == "ok" })
}

// The open streams of a user and a node are limited. Closing one allows another.
func TestStreamLimit(t *testing.T) {
	n, ada, bob := hall(t)
	n.BoundStreams(2, 3, time.Minute, patience)
	mine, his := ada.begin(t)+"/events", bob.begin(t)+"/events"
	first := ada.open(t, mine)
	ada.open(t, mine)
	ada.send(t, "GET", mine, nil).wantProblem(t, 429, "too_many_open")
	bob.open(t, his)
	bob.send(t, "GET", his, nil).wantProblem(t, 503, "too_many_open")
	first.close()
	eventually(t, func() bool { events, _ := n.Streams(); return events == 2 })
	bob.open(t, his)
}

// eventually polls for a condition without notifications.
func eventually(t testing.TB, is func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it does not come")
		}
	}
}

// pair is a hub with two nodes.
func pair(t *testing.T, o hub.Options) (one, two *node) {
	o.Keys, o.Accounts, o.FirstAdmin = []encryption.Key{encryption.NewKey()}, true, &hub.FirstAdmin{Name: "root", Password: secret}
	one = start(t, o)
	two = start(t, o)
	talker(t, one)
	talker(t, two)
	return one, two
}

func TestEventsFromAnotherNode(t *testing.T) {
	t.Parallel()
	for name, more := range map[string]func(t *testing.T, o *hub.Options) (gone func() error){
		"SQLite":     func(t *testing.T, o *hub.Options) func() error { o.Database = storetest.SQLite(t); return nil },
		"PostgreSQL": func(t *testing.T, o *hub.Options) func() error { o.Database = storetest.Postgres(t); return nil },
		"Redis is gone": func(t *testing.T, o *hub.Options) func() error {
			redis := bustest.Start(t)
			o.Database, o.Redis = storetest.SQLite(t), redis.URL()
			return redis.Stop
		},
	} {
		t.Run(name, func(t *testing.T) {
			var o hub.Options
			gone := more(t, &o)
			one, two := pair(t, o)
			here := one.signIn(t, "root", secret)
			there := caller{node: two, cookie: here.cookie}
			session := here.begin(t)
			s := there.open(t, session+"/events")
			if gone != nil {
				if err := gone(); err != nil {
					t.Fatal(err)
				}
			}
			here.say(t, session, "hello")
			for e, ok := s.next(); e.name != string(chat.TurnEnded); e, ok = s.next() {
				if !ok {
					t.Fatal("the stream ended")
				}
			}
			if got := there.lines(t, session); len(got) != 2 {
				t.Errorf("it has %q", got)
			}
		})
	}
}
