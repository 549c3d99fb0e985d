//go:build unix

package hub_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/loadout-dev/loadout/internal/hub/chat"
)

// unknown is the text for a call with an unknown outcome.
const unknown = "It is not known whether this call was made"

// results returns the results of the calls in a conversation by subject, from the events
// seen.
func results(events []chat.Event) map[string]string {
	what, out := map[string]string{}, map[string]string{}
	for _, ev := range events {
		if ev.Step == nil {
			continue
		}
		if m := ev.Step.Message; m != nil {
			for _, c := range m.Calls {
				var args struct{ Arguments entry }
				json.Unmarshal([]byte(c.Arguments), &args)
				what[c.ID] = args.Arguments.What
			}
		}
		if r := ev.Step.Result; r != nil {
			out[what[r.Call]] = r.Text
		}
	}
	return out
}

// inOrder returns an error unless a watcher saw each event exactly once and in order.
func inOrder(events []chat.Event) error {
	steps := int64(0)
	for i, ev := range events {
		if ev.Seq != int64(i)+1 {
			return fmt.Errorf("event %d has the number %d", i+1, ev.Seq)
		}
		if ev.Step != nil {
			if steps++; ev.Step.Seq != steps {
				return fmt.Errorf("step %d is told as the %d.", ev.Step.Seq, steps)
			}
		}
	}
	return nil
}

func count(events []chat.Event, is func(chat.Event) bool) (n int) {
	for _, ev := range events {
		if is(ev) {
			n++
		}
	}
	return n
}

// sayings counts the user's messages in the events.
func sayings(events []chat.Event, text string) int {
	return count(events, func(ev chat.Event) bool {
		return ev.Step != nil && ev.Step.Message != nil && ev.Step.Message.Role == "user" && strings.Contains(ev.Step.Message.Text, text)
	})
}

// One node runs a turn that is watched on another, which answers its question. The first
// node is killed during a call, and the other resumes. Nothing is lost, shown twice or
// done twice, and the call has an unknown outcome.
func TestTurnSurvivesItsNode(t *testing.T) {
	h, m, l := onPostgres(t), newModel(t, 2*time.Millisecond), newLedger(t)
	one, two := h.start(), h.start()
	one.hire(m, l)
	session := one.begin()
	w := two.watch(session, "")
	input := one.say(session, calls("burn", "a boat"), calls("write", "first"), calls("hold", "dear"), calls("write", "last"))

	asked := two.until(w, isType(chat.ApprovalRequested)).ApprovalRequest
	if got := l.all(); len(got) > 0 {
		t.Errorf("it did not wait for the answer: %v", got)
	}
	var page struct{ Items []struct{ ID string } }
	two.send("GET", "/api/v1/asks", nil).want(t, 200).into(t, &page)
	if len(page.Items) != 1 || page.Items[0].ID != asked.ID {
		t.Errorf("the questions are %+v, want %s", page.Items, asked.ID)
	}
	two.send("POST", "/api/v1/asks/"+asked.ID, map[string]string{"outcome": "accepted"}).want(t, 204)
	if r := one.send("POST", "/api/v1/asks/"+asked.ID, map[string]string{"outcome": "declined"}); r.status != 409 || !strings.Contains(r.body, `"settled"`) {
		t.Errorf("a second answer: %d %s", r.status, r.body)
	}

	if what := <-l.begun; what != "dear" {
		t.Fatalf("it holds %q", what)
	}
	one.kill()
	if ev := two.until(w, isType(chat.TurnResumed, chat.TurnEnded)); ev.Type != chat.TurnResumed {
		t.Errorf("nobody died: %+v", ev)
	}
	end := two.until(w, isType(chat.TurnEnded))
	if end.Reason != chat.Done || end.Input != input {
		t.Errorf("it ended as %+v", end)
	}
	if err := inOrder(w.seen); err != nil {
		t.Error(err)
	}
	all := must(two.told(session))(t)
	if d := cmp.Diff(all, w.seen); d != "" {
		t.Errorf("stored events and events of the watcher differ (-,+):\n%s", d)
	}
	if n := sayings(all, "a boat"); n != 1 {
		t.Errorf("the message is there %d times", n)
	}
	got := results(all)
	for what, want := range map[string]string{"a boat": "kept a boat", "first": "kept first", "dear": unknown, "last": "kept last"} {
		if !strings.Contains(got[what], want) {
			t.Errorf("of %q came %q, want %q", what, got[what], want)
		}
	}
	if d := cmp.Diff(map[string]int{"a boat": 1, "first": 1, "dear": 1, "last": 1}, l.all()); d != "" {
		t.Errorf("what was done (-want, +got):\n%s", d)
	}
	if r := two.send("GET", session+"/messages", nil).want(t, 200); !strings.Contains(r.body, "That was all") {
		t.Errorf("the history has no answer: %s", r.body)
	}
}

// victims are how many nodes are killed, each with some conversations under way.
const (
	victims   = 10
	talksEach = 2
	writes    = 6 // of a turn
)

// The same at whatever moment a node is killed.
func TestKilledAtAnyMoment(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	h, m, l := onPostgres(t), newModel(t, 5*time.Millisecond), newLedger(t)
	rest := h.start()
	rest.hire(m, l)
	var watching sync.WaitGroup
	defer watching.Wait()
	var talks []*talk
	for v := range victims {
		one := h.start()
		after, moment := random.IntN(talksEach*writes*6), make(chan struct{}, 1000)
		for i := range talksEach {
			talk := &talk{session: one.begin(), name: fmt.Sprintf("%d.%d", v, i)}
			w, err := rest.opens(talk.session, "")
			if err != nil {
				t.Fatal(err)
			}
			talks = append(talks, talk)
			var lines []string
			for n := range writes {
				lines = append(lines, calls("write", talk.what(n)))
			}
			one.say(talk.session, lines...)
			watching.Go(func() { talk.watch(w, moment) })
		}
		for range after {
			<-moment
		}
		one.kill()
	}
	watching.Wait()
	broken, unclear := 0, 0
	for _, talk := range talks {
		all := must(rest.told(talk.session))(t)
		resumed, doubts := talk.check(t, all, l.all())
		if resumed > 0 {
			broken++
		}
		unclear += doubts
	}
	t.Logf("of %d turns %d were broken off, and of %d calls %d are not known", len(talks), broken, len(talks)*writes, unclear)
	if broken == 0 {
		t.Error("no node was killed in the middle of a turn")
	}
}

// talk is a conversation whose node is killed.
type talk struct {
	session, name string
	watched       []chat.Event
	err           error
}

// what is the text written by one call.
func (k *talk) what(n int) string { return fmt.Sprintf("%s-%d", k.name, n) }

// watch reads events until the turn ends.
func (k *talk) watch(w *watched, moment chan<- struct{}) {
	for {
		ev, err := w.next()
		if err != nil || ev.Type == chat.TurnEnded {
			k.err, k.watched = err, w.seen
			close0(moment)
			return
		}
		select {
		case moment <- struct{}{}:
		default:
		}
	}
}

// close0 releases those who wait for several moments: no more follow.
func close0(moment chan<- struct{}) {
	for {
		select {
		case moment <- struct{}{}:
		default:
			return
		}
	}
}

// check returns what is wrong with a finished conversation, how often another node
// resumed it, and the number of calls with an unknown outcome.
func (k *talk) check(t *testing.T, all []chat.Event, written map[string]int) (resumed, unclear int) {
	t.Helper()
	last := all[len(all)-1]
	err := errors.Join(k.err, inOrder(all), inOrder(k.watched))
	if err != nil || last.Type != chat.TurnEnded || last.Reason != chat.Done {
		t.Errorf("%s: %v; it ended as %+v", k.name, err, last)
		return 0, 0
	}
	if d := cmp.Diff(all, k.watched); d != "" {
		t.Errorf("%s: what was notified and what the watcher was notified (-,+):\n%s", k.name, d)
	}
	if n := sayings(all, k.what(0)); n != 1 {
		t.Errorf("%s: the message is there %d times", k.name, n)
	}
	if n := count(all, isType(chat.TurnStarted)); n != 1 {
		t.Errorf("%s: it began %d times", k.name, n)
	}
	got := results(all)
	for n := range writes {
		what := k.what(n)
		known := strings.Contains(got[what], "kept "+what)
		if !known {
			unclear++
		}
		switch {
		case !known && !strings.Contains(got[what], unknown):
			t.Errorf("%s: of a call came %q", what, got[what])
		case known && written[what] != 1, written[what] > 1:
			t.Errorf("%s: it was done %d times", what, written[what])
		}
	}
	answers := slices.ContainsFunc(all, func(ev chat.Event) bool {
		return ev.Step != nil && ev.Step.Message != nil && strings.HasPrefix(ev.Step.Message.Text, "That was all")
	})
	resumed = count(all, isType(chat.TurnResumed))
	switch {
	case !answers:
		t.Errorf("%s: no answer", k.name)
	case unclear > resumed:
		t.Errorf("%s: of %d calls it is not known whether they were made, where %d nodes died", k.name, unclear, resumed)
	}
	return resumed, unclear
}
