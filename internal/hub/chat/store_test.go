package chat_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/loadout-dev/loadout/ask"
	"github.com/loadout-dev/loadout/internal/hub/chat"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/store/storetest"
	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/session"
	"github.com/loadout-dev/loadout/session/sessiontest"
)

// The transcript is a log as sessions want one.
func TestTranscriptIsALog(t *testing.T) {
	for name, address := range databases {
		t.Run(name, func(t *testing.T) {
			sessiontest.Log(t, func(t *testing.T) session.Log {
				e := node(t, storetest.Open(t, address(t)), kit{})
				log, err := chat.Journal(t.Context(), e, begin(t, e))
				if err != nil {
					t.Fatal(err)
				}
				return log
			})
		})
	}
}

// What a node writes that has lost the lease, and does not know it, changes nothing.
func TestTranscriptIsFenced(t *testing.T) {
	eachDatabase(t, func(t *testing.T, open func() *store.DB) {
		db := open()
		e := node(t, db, kit{})
		id := begin(t, e)
		log, err := chat.Journal(t.Context(), e, id)
		if err != nil {
			t.Fatal(err)
		}
		said := func(text string) *session.Event {
			return &session.Event{Type: session.TypeMessage, Message: &session.Message{Role: session.RoleUser, Text: text}}
		}
		if err := log.Append(t.Context(), said("mine")); err != nil {
			t.Fatal(err)
		}
		l, err := db.Leases.Renew(t.Context(), store.Lease{Name: id, Node: chat.NodeID(e), Fence: 1}, time.Millisecond)
		if err != nil {
			t.Fatal(err)
		}
		for { // until the clock of the database says that it is over
			if _, err = db.Leases.Take(t.Context(), id, "another", time.Hour); !errors.Is(err, store.ErrHeld) {
				break
			}
		}
		if err != nil || l.Name != id {
			t.Fatal(err)
		}
		if err := log.Append(t.Context(), said("not mine")); err == nil {
			t.Error("it is written without the lease")
		}
		if got := transcript(t, e, id); got != "user: mine" {
			t.Errorf("the transcript is\n%s", got)
		}
	})
}

// question is one in a conversation.
func question(session, id string) ask.Ask {
	return ask.Ask{ID: session + "." + id, Kind: ask.Approval, Session: session, Principal: chat.Person("ada"), Message: "Delete it?", Payload: json.RawMessage(`{"tool": "rm"}`)}
}

// eachDesk runs a test with two nodes on each database, and a conversation.
func eachDesk(t *testing.T, test func(t *testing.T, here, there *ask.Desk, session string)) {
	eachDatabase(t, func(t *testing.T, open func() *store.DB) {
		a, b := node(t, open(), kit{}), node(t, open(), kit{})
		test(t, ask.New(chat.Asks(a)), ask.New(chat.Asks(b)), begin(t, a))
	})
}

func put(t *testing.T, d *ask.Desk, a ask.Ask) {
	t.Helper()
	if _, err := d.Put(t.Context(), a); err != nil {
		t.Fatal(err)
	}
}

// What package ask promises of a store: the first answer stands, and who comes later
// learns of it.
func TestAsksFirstAnswerWins(t *testing.T) {
	eachDesk(t, func(t *testing.T, here, there *ask.Desk, session string) {
		put(t, here, question(session, "q"))
		const several = 8
		errs := make([]error, several)
		var all sync.WaitGroup
		for i := range several {
			all.Go(func() {
				errs[i] = []*ask.Desk{here, there}[i%2].Answer(t.Context(), session+".q", ask.Answer{Outcome: ask.Accepted, By: chat.Person("ada"), Content: json.RawMessage(fmt.Sprint(i))})
			})
		}
		all.Wait()
		got, err := here.Wait(t.Context(), session+".q")
		if err != nil || got.Outcome != ask.Accepted || got.By != chat.Person("ada") {
			t.Fatalf("%+v, %v", got, err)
		}
		for i, err := range errs {
			settled := (*ask.SettledError)(nil)
			first := string(got.Content) == fmt.Sprint(i)
			if first != (err == nil) || !first && (!errors.As(err, &settled) || string(settled.Answer.Content) != string(got.Content)) {
				t.Errorf("%d got %v, where %s stands", i, err, got.Content)
			}
		}
		if left, err := there.Open(t.Context(), session, policy.Principal{}); err != nil || len(left) > 0 {
			t.Errorf("there wait %v, %v", left, err)
		}
	})
}

// What waits survives who asked, whole, and is asked once.
func TestAsksSurviveWhoAsked(t *testing.T) {
	eachDesk(t, func(t *testing.T, yesterday, today *ask.Desk, session string) {
		ctx, cancel := context.WithCancelCause(t.Context())
		gone := errors.New("the process ends")
		defer yesterday.Watch(func(ask.Event) { cancel(gone) })()
		if _, err := yesterday.Ask(ctx, question(session, "q")); !errors.Is(err, gone) {
			t.Fatal(err)
		}
		waiting, err := today.Open(t.Context(), session, chat.Person("ada"))
		if err != nil || len(waiting) != 1 {
			t.Fatalf("there wait %v, %v", waiting, err)
		}
		want := question(session, "q")
		want.Asked = waiting[0].Asked
		var raw json.RawMessage // JSON is kept, not its blanks
		if err := json.Unmarshal([]byte(`{"tool":"rm"}`), &raw); err != nil {
			t.Fatal(err)
		}
		want.Payload = raw
		if d := cmp.Diff(want, waiting[0]); d != "" {
			t.Error(d)
		}
		if err := today.Answer(t.Context(), session+".q", ask.Answer{Outcome: ask.Declined, By: chat.Person("bob")}); !errors.As(err, new(*ask.NotYoursError)) {
			t.Errorf("bob: %v", err)
		}
		if err := today.Answer(t.Context(), session+".q", ask.Answer{Outcome: ask.Declined, By: chat.Person("ada")}); err != nil {
			t.Fatal(err)
		}
		if got, err := yesterday.Wait(t.Context(), session+".q"); err != nil || got.Outcome != ask.Declined {
			t.Errorf("%+v, %v", got, err)
		}
	})
}

// What was answered can be forgotten, and nothing else is; what cannot be asked is
// refused.
func TestAsksForgetAndRefuse(t *testing.T) {
	eachDesk(t, func(t *testing.T, here, there *ask.Desk, session string) {
		put(t, here, question(session, "q"))
		put(t, here, question(session, "r"))
		other := question(session, "q")
		other.Message = "Another?"
		if _, err := there.Put(t.Context(), other); err == nil {
			t.Error("an ID was used for another question")
		}
		if err := there.Answer(t.Context(), session+".q", ask.Answer{Outcome: ask.Accepted, By: chat.Person("ada"), Content: json.RawMessage(`"secret"`)}); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := here.Forget(t.Context(), session+".q"); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := there.Wait(t.Context(), session+".q"); !errors.Is(err, ask.ErrUnknown) {
			t.Errorf("got %v", err)
		}
		if left, err := there.Open(t.Context(), session, chat.Person("ada")); err != nil || len(left) != 1 {
			t.Errorf("left are %v, %v", left, err)
		}
		if err := there.Answer(t.Context(), "nothing", ask.Answer{By: chat.Person("ada")}); !errors.Is(err, ask.ErrUnknown) {
			t.Errorf("an ask that is not there: %v", err)
		}
	})
}

func TestAsksAreBounded(t *testing.T) {
	e := node(t, storetest.Open(t, storetest.SQLite(t)), kit{})
	d, id := ask.New(chat.Asks(e)), begin(t, e)
	for i := range ask.MaxOpen {
		put(t, d, question(id, fmt.Sprint(i)))
	}
	if _, err := d.Put(t.Context(), question(id, "more")); !errors.Is(err, store.ErrTooMany) {
		t.Errorf("got %v", err)
	}
	if err := d.Answer(t.Context(), id+".0", ask.Answer{Outcome: ask.Accepted, By: chat.Person("ada"), Feedback: strings.Repeat("x", ask.MaxPayload)}); err != nil {
		t.Errorf("the largest answer: %v", err)
	}
}
