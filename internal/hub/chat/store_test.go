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

	"github.com/loadout-dev/loadout/internal/approval"
	"github.com/loadout-dev/loadout/internal/hub/chat"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/store/storetest"
	"github.com/loadout-dev/loadout/llm"
	"github.com/loadout-dev/loadout/loadouttest"
	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/session"
)

// The transcript is a log as sessions want one.
func TestTranscriptImplementsSessionLog(t *testing.T) {
	for name, address := range databases {
		t.Run(name, func(t *testing.T) {
			loadouttest.SessionLog(t, func(t *testing.T) session.Log {
				e := node(t, storetest.Open(t, address(t)), setupFixture{})
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
		e := node(t, db, setupFixture{})
		id := begin(t, e)
		log, err := chat.Journal(t.Context(), e, id)
		if err != nil {
			t.Fatal(err)
		}
		said := func(text string) *session.Event {
			return &session.Event{Message: &session.Message{Role: llm.User, Text: text}}
		}
		if err := log.Append(t.Context(), said("mine")); err != nil {
			t.Fatal(err)
		}
		l, err := db.Leases.Renew(t.Context(), store.Lease{Name: id, Node: chat.NodeID(e), Fence: 1}, time.Millisecond)
		if err != nil {
			t.Fatal(err)
		}
		for { // until it expires by the clock of the database
			if _, err = db.Leases.Acquire(t.Context(), id, "another", time.Hour); !errors.Is(err, store.ErrLeaseHeld) {
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
func question(session, id string) approval.Request {
	return approval.Request{ID: session + "." + id, Kind: approval.KindApproval, Session: session, Principal: chat.Person("ada"), Message: "Delete it?", Payload: json.RawMessage(`{"tool": "rm"}`)}
}

// eachDesk runs a test with two nodes on each database, and a conversation.
func eachDesk(t *testing.T, test func(t *testing.T, here, there *approval.Queue, session string)) {
	eachDatabase(t, func(t *testing.T, open func() *store.DB) {
		a, b := node(t, open(), setupFixture{}), node(t, open(), setupFixture{})
		test(t, approval.NewQueue(chat.Asks(a)), approval.NewQueue(chat.Asks(b)), begin(t, a))
	})
}

func put(t *testing.T, d *approval.Queue, a approval.Request) {
	t.Helper()
	if _, err := d.Submit(t.Context(), a); err != nil {
		t.Fatal(err)
	}
}

// What package ask promises of a store: the first answer stands, and who comes later
// learns of it.
func TestFirstAnswerWins(t *testing.T) {
	eachDesk(t, func(t *testing.T, here, there *approval.Queue, session string) {
		put(t, here, question(session, "q"))
		const several = 8
		errs := make([]error, several)
		var all sync.WaitGroup
		for i := range several {
			all.Go(func() {
				errs[i] = []*approval.Queue{here, there}[i%2].Resolve(t.Context(), session+".q", approval.Answer{Outcome: approval.Accepted, By: chat.Person("ada"), Content: json.RawMessage(fmt.Sprint(i))})
			})
		}
		all.Wait()
		got, err := here.Wait(t.Context(), session+".q")
		if err != nil || got.Outcome != approval.Accepted || got.By != chat.Person("ada") {
			t.Fatalf("%+v, %v", got, err)
		}
		for i, err := range errs {
			resolved := (*approval.ResolvedError)(nil)
			first := string(got.Content) == fmt.Sprint(i)
			if first != (err == nil) || !first && (!errors.As(err, &resolved) || string(resolved.Answer.Content) != string(got.Content)) {
				t.Errorf("%d got %v, where %s stands", i, err, got.Content)
			}
		}
		if left, err := there.Pending(t.Context(), session, policy.Principal{}); err != nil || len(left) > 0 {
			t.Errorf("there wait %v, %v", left, err)
		}
	})
}

// What waits survives who asked, whole, and is asked once.
func TestRequestOutlivesItsNode(t *testing.T) {
	eachDesk(t, func(t *testing.T, yesterday, today *approval.Queue, session string) {
		ctx, cancel := context.WithCancelCause(t.Context())
		errGone := errors.New("the process ends")
		defer yesterday.Subscribe(func(approval.Event) { cancel(errGone) })()
		if _, err := submitAndWait(ctx, yesterday, question(session, "q")); !errors.Is(err, errGone) {
			t.Fatal(err)
		}
		waiting, err := today.Pending(t.Context(), session, chat.Person("ada"))
		if err != nil || len(waiting) != 1 {
			t.Fatalf("there wait %v, %v", waiting, err)
		}
		want := question(session, "q")
		want.Created = waiting[0].Created
		var raw json.RawMessage // JSON is kept, not its blanks
		if err := json.Unmarshal([]byte(`{"tool":"rm"}`), &raw); err != nil {
			t.Fatal(err)
		}
		want.Payload = raw
		if d := cmp.Diff(want, waiting[0]); d != "" {
			t.Error(d)
		}
		if err := today.Resolve(t.Context(), session+".q", approval.Answer{Outcome: approval.Declined, By: chat.Person("bob")}); !errors.As(err, new(*approval.NotAllowedError)) {
			t.Errorf("bob: %v", err)
		}
		if err := today.Resolve(t.Context(), session+".q", approval.Answer{Outcome: approval.Declined, By: chat.Person("ada")}); err != nil {
			t.Fatal(err)
		}
		if got, err := yesterday.Wait(t.Context(), session+".q"); err != nil || got.Outcome != approval.Declined {
			t.Errorf("%+v, %v", got, err)
		}
	})
}

func TestRequestsAreForgottenAndRefused(t *testing.T) {
	eachDesk(t, func(t *testing.T, here, there *approval.Queue, session string) {
		put(t, here, question(session, "q"))
		put(t, here, question(session, "r"))
		other := question(session, "q")
		other.Message = "Another?"
		if _, err := there.Submit(t.Context(), other); err == nil {
			t.Error("an ID was used for another question")
		}
		if err := there.Resolve(t.Context(), session+".q", approval.Answer{Outcome: approval.Accepted, By: chat.Person("ada"), Content: json.RawMessage(`"secret"`)}); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := here.Delete(t.Context(), session+".q"); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := there.Wait(t.Context(), session+".q"); !errors.Is(err, approval.ErrNotFound) {
			t.Errorf("got %v", err)
		}
		if left, err := there.Pending(t.Context(), session, chat.Person("ada")); err != nil || len(left) != 1 {
			t.Errorf("left are %v, %v", left, err)
		}
		if err := there.Resolve(t.Context(), "nothing", approval.Answer{By: chat.Person("ada")}); !errors.Is(err, approval.ErrNotFound) {
			t.Errorf("an unknown request: %v", err)
		}
	})
}

func TestRequestLimits(t *testing.T) {
	e := node(t, storetest.Open(t, storetest.SQLite(t)), setupFixture{})
	d, id := approval.NewQueue(chat.Asks(e)), begin(t, e)
	for i := range approval.MaxOpen {
		put(t, d, question(id, fmt.Sprint(i)))
	}
	if _, err := d.Submit(t.Context(), question(id, "more")); !errors.Is(err, store.ErrTooMany) {
		t.Errorf("got %v", err)
	}
	if err := d.Resolve(t.Context(), id+".0", approval.Answer{Outcome: approval.Accepted, By: chat.Person("ada"), Feedback: strings.Repeat("x", approval.MaxPayload)}); err != nil {
		t.Errorf("the largest answer: %v", err)
	}
}

// submitAndWait submits a request and waits for its answer.
func submitAndWait(ctx context.Context, q *approval.Queue, a approval.Request) (approval.Answer, error) {
	id, err := q.Submit(ctx, a)
	if err != nil {
		return approval.Answer{}, err
	}
	return q.Wait(ctx, id)
}
