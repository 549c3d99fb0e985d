package approval_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/loadout-dev/loadout/internal/approval"
	"github.com/loadout-dev/loadout/internal/untrusted"
	"github.com/loadout-dev/loadout/internal/untrusted/untrustedtest"
	"github.com/loadout-dev/loadout/policy"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var ada, bob = policy.Principal{ID: "ada", Kind: policy.UserPrincipal}, policy.Principal{ID: "bob", Kind: policy.UserPrincipal}

// eachStore runs a test on every store: open returns it as another process would
// have it, too.
func eachStore(t *testing.T, test func(t *testing.T, open func() approval.Store)) {
	t.Run("memory", func(t *testing.T) {
		m := &approval.MemoryStore{}
		test(t, func() approval.Store { return m })
	})
	t.Run("files", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "asks")
		test(t, func() approval.Store { return approval.NewFileStore(dir) })
	})
}

func question(id string) approval.Request {
	return approval.Request{ID: id, Kind: approval.KindApproval, Session: "s1", Principal: ada, Message: "Delete it?", Payload: json.RawMessage(`{"tool":"rm"}`)}
}

func addRequest(t *testing.T, d *approval.Queue, a approval.Request) {
	t.Helper()
	if _, err := d.Submit(t.Context(), a); err != nil {
		t.Fatal(err)
	}
}

// The first answer stands; who comes later learns of it, and it is there for another
// process.
func TestFirstAnswerWins(t *testing.T) {
	eachStore(t, func(t *testing.T, open func() approval.Store) {
		d := approval.NewQueue(open())
		addRequest(t, d, question("s1.q"))
		const several = 8
		errs := make([]error, several)
		var all sync.WaitGroup
		for i := range several {
			all.Go(func() {
				errs[i] = approval.NewQueue(open()).Resolve(t.Context(), "s1.q", approval.Answer{Outcome: approval.Accepted, By: ada, Content: json.RawMessage(fmt.Sprint(i))})
			})
		}
		all.Wait()
		first := -1
		for i, err := range errs {
			if err == nil {
				if first >= 0 {
					t.Fatalf("both %d and %d were first", first, i)
				}
				first = i
			}
		}
		for i, err := range errs {
			resolved := (*approval.ResolvedError)(nil)
			if i != first && (!errors.As(err, &resolved) || string(resolved.Answer.Content) != fmt.Sprint(first)) {
				t.Errorf("%d got %v, want that %d was first", i, err, first)
			}
		}
		got, err := d.Wait(t.Context(), "s1.q")
		if err != nil || got.Outcome != approval.Accepted || got.By != ada || string(got.Content) != fmt.Sprint(first) {
			t.Errorf("%+v, %v", got, err)
		}
		if left, err := d.Pending(t.Context(), "s1", approval.Request{}.Principal); err != nil || len(left) > 0 {
			t.Errorf("there wait %v, %v", left, err)
		}
	})
}

// Who waits is answered; what waits survives who asked.
func TestRequestOutlivesCaller(t *testing.T) {
	eachStore(t, func(t *testing.T, open func() approval.Store) {
		yesterday := approval.NewQueue(open())
		ctx, cancel := context.WithCancelCause(t.Context())
		errGone := errors.New("the process ends")
		defer yesterday.Subscribe(func(approval.Event) { cancel(errGone) })()
		if _, err := submitAndWait(ctx, yesterday, question("s1.q")); !errors.Is(err, errGone) {
			t.Fatal(err)
		}
		today := approval.NewQueue(open())
		waiting, err := today.Pending(t.Context(), "s1", ada)
		if err != nil || len(waiting) != 1 {
			t.Fatalf("there wait %v, %v", waiting, err)
		}
		want := question("s1.q")
		want.Created = waiting[0].Created
		if d := cmp.Diff(want, waiting[0]); d != "" {
			t.Error(d)
		}
		if err := today.Resolve(t.Context(), "s1.q", approval.Answer{Outcome: approval.Declined, By: ada}); err != nil {
			t.Fatal(err)
		}
		if got, err := today.Wait(t.Context(), "s1.q"); err != nil || got.Outcome != approval.Declined {
			t.Errorf("%+v, %v", got, err)
		}
	})
}

func TestOnlyThePrincipalAnswers(t *testing.T) {
	eachStore(t, func(t *testing.T, open func() approval.Store) {
		d := approval.NewQueue(open())
		addRequest(t, d, question("s1.q"))
		if err := d.Resolve(t.Context(), "s1.q", approval.Answer{Outcome: approval.Accepted, By: bob}); !errors.As(err, new(*approval.NotAllowedError)) {
			t.Errorf("bob: %v", err)
		}
		if all, _ := d.Pending(t.Context(), "s1", bob); len(all) > 0 {
			t.Errorf("bob sees %v", all)
		}
		if err := d.Resolve(t.Context(), "nothing", approval.Answer{By: ada}); !errors.Is(err, approval.ErrNotFound) {
			t.Errorf("an unknown request: %v", err)
		}
	})
}

// A deadline that passes is an answer, and so is taking the question back.
func TestDeadlineAndCancelAreAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := approval.NewQueue(&approval.MemoryStore{})
		var reported []approval.Outcome
		defer d.Subscribe(func(e approval.Event) {
			if e.Answer != nil {
				reported = append(reported, e.Answer.Outcome)
			}
		})()
		a := question("s1.late")
		a.Deadline = time.Now().Add(time.Minute)
		if got, err := submitAndWait(t.Context(), d, a); err != nil || got.Outcome != approval.Expired {
			t.Errorf("%+v, %v", got, err)
		}
		a = question("s1.missed") // not awaited
		a.Deadline = time.Now().Add(time.Minute)
		addRequest(t, d, a)
		time.Sleep(2 * time.Minute)
		resolved := (*approval.ResolvedError)(nil)
		if err := d.Resolve(t.Context(), "s1.missed", approval.Answer{Outcome: approval.Accepted, By: ada}); !errors.As(err, &resolved) || resolved.Answer.Outcome != approval.Expired {
			t.Errorf("too late: %v", err)
		}
		done := make(chan approval.Answer)
		addRequest(t, d, question("s1.back"))
		go func() {
			got, _ := d.Wait(t.Context(), "s1.back")
			done <- got
		}()
		synctest.Wait()
		for range 2 { // the second changes nothing
			if err := d.Cancel(t.Context(), "s1.back"); err != nil {
				t.Error(err)
			}
		}
		if got := <-done; got.Outcome != approval.Cancelled {
			t.Errorf("%+v", got)
		}
		if want := []approval.Outcome{approval.Expired, approval.Expired, approval.Cancelled}; !cmp.Equal(reported, want) {
			t.Errorf("got %v, want %v", reported, want)
		}
	})
}

func TestRecheckFindsForeignAnswers(t *testing.T) {
	dir := t.TempDir()
	here, there := approval.NewQueue(approval.NewFileStore(dir)), approval.NewQueue(approval.NewFileStore(dir))
	addRequest(t, here, question("s1.q"))
	got := make(chan approval.Answer, 1)
	started := make(chan struct{})
	go func() {
		close(started)
		a, _ := here.Wait(t.Context(), "s1.q")
		got <- a
	}()
	<-started
	if err := there.Resolve(t.Context(), "s1.q", approval.Answer{Outcome: approval.Accepted, By: ada}); err != nil {
		t.Fatal(err)
	}
	here.WakeWaiters("s1.q") // before it waits, the answer is there when it looks
	if a := <-got; a.Outcome != approval.Accepted {
		t.Errorf("%+v", a)
	}
}

// What cannot be asked is refused with all that is wrong with it.
func TestBadRequests(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*approval.Request)
		want   []string
	}{
		{"nothing in it", func(a *approval.Request) { *a = approval.Request{} }, []string{`unknown kind ""`, "missing session", "missing principal"}},
		{"a long message", func(a *approval.Request) { a.Message = strings.Repeat("x", approval.MaxMessage+1) }, []string{"16385 bytes"}},
		{"no JSON", func(a *approval.Request) { a.Payload = json.RawMessage("{") }, []string{"payload is not valid JSON"}},
		{"the same ID", func(a *approval.Request) { a.ID, a.Message = "s1.there", "Another?" }, []string{"already exists"}},
		{"the ID of another session", func(a *approval.Request) { a.ID = "s2.q" }, []string{"want prefix"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := approval.NewQueue(&approval.MemoryStore{})
			addRequest(t, d, question("s1.there"))
			a := question("s1.q")
			tt.change(&a)
			_, err := d.Submit(t.Context(), a)
			for _, part := range tt.want {
				if err == nil || !strings.Contains(err.Error(), part) {
					t.Errorf("got %v, want %q in it", err, part)
				}
			}
		})
	}
	if _, err := approval.NewQueue(approval.NewFileStore(t.TempDir())).Submit(t.Context(), approval.Request{Kind: approval.KindForm, Session: "../s", Principal: ada}); err == nil {
		t.Error("a session by a path was accepted")
	}
}

// A repeated request for the same subject is the pending one, so that a process can
// continue for another.
func TestRepeatedRequest(t *testing.T) {
	eachStore(t, func(t *testing.T, open func() approval.Store) {
		yesterday, today := approval.NewQueue(open()), approval.NewQueue(open())
		addRequest(t, yesterday, question("s1.q"))
		reported := 0
		defer today.Subscribe(func(approval.Event) { reported++ })()
		addRequest(t, today, question("s1.q"))
		if err := yesterday.Resolve(t.Context(), "s1.q", approval.Answer{Outcome: approval.Declined, By: ada}); err != nil || reported != 1 {
			t.Fatal(err, reported)
		}
		answer, err := submitAndWait(t.Context(), today, question("s1.q"))
		if err != nil || answer.Outcome != approval.Declined || reported != 1 {
			t.Errorf("%+v, %v, notified %d times", answer, err, reported)
		}
	})
}

// What was answered can be forgotten, also by another process, and nothing else is.
func TestForget(t *testing.T) {
	eachStore(t, func(t *testing.T, open func() approval.Store) {
		here, there := approval.NewQueue(open()), approval.NewQueue(open())
		addRequest(t, here, question("s1.q"))
		addRequest(t, here, question("s1.r"))
		if err := there.Resolve(t.Context(), "s1.q", approval.Answer{Outcome: approval.Accepted, By: ada, Content: json.RawMessage(`"secret"`)}); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := here.Delete(t.Context(), "s1.q"); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := there.Wait(t.Context(), "s1.q"); !errors.Is(err, approval.ErrNotFound) {
			t.Errorf("got %v", err)
		}
		if left, err := there.Pending(t.Context(), "s1", ada); err != nil || len(left) != 1 {
			t.Errorf("left are %v, %v", left, err)
		}
	})
}

func TestPendingRequestLimit(t *testing.T) {
	d := approval.NewQueue(&approval.MemoryStore{})
	for range approval.MaxOpen {
		addRequest(t, d, question(""))
	}
	if _, err := d.Submit(t.Context(), question("")); err == nil || !strings.Contains(err.Error(), "too many pending") {
		t.Errorf("got %v", err)
	}
}

func ExampleQueue() {
	person := policy.Principal{ID: "ada", Kind: policy.UserPrincipal}
	desk := approval.NewQueue(&approval.MemoryStore{})
	// Whoever displays requests to the user resolves them.
	defer desk.Subscribe(func(e approval.Event) {
		if e.Answer == nil {
			fmt.Println(e.Request.Message)
			go desk.Resolve(context.Background(), e.Request.ID, approval.Answer{Outcome: approval.Accepted, Scope: policy.Once, By: person})
		}
	})()
	answer, err := submitAndWait(context.Background(), desk, approval.Request{Kind: approval.KindApproval, Session: "42", Principal: person, Message: "Send the report?"})
	if err != nil {
		fmt.Println(err)
	}
	fmt.Println(answer.Outcome, answer.Scope)
	// Output:
	// Send the report?
	// accepted once
}

// submitAndWait submits a request and waits for its answer.
func submitAndWait(ctx context.Context, q *approval.Queue, a approval.Request) (approval.Answer, error) {
	id, err := q.Submit(ctx, a)
	if err != nil {
		return approval.Answer{}, err
	}
	return q.Wait(ctx, id)
}

func TestMessagesAreCleaned(t *testing.T) {
	q := approval.NewQueue(&approval.MemoryStore{})
	for i, text := range untrustedtest.Hostile() {
		a := question(fmt.Sprintf("s1.%d", i))
		a.Message = "Run " + text + "?"
		for range 2 { // the second request is the same
			if _, err := q.Submit(t.Context(), a); err != nil {
				t.Fatalf("%+q: %v", text, err)
			}
		}
	}
	pending, err := q.Pending(t.Context(), "s1", ada)
	if err != nil || len(pending) != len(untrustedtest.Hostile()) {
		t.Fatalf("%d pending, %v", len(pending), err)
	}
	for _, a := range pending {
		if report := untrusted.Inspect(a.Message); !report.Clean() {
			t.Errorf("%s in %+q", report, a.Message)
		}
	}
}

// A turn that asked before the program was updated continues after it: the request
// then lacked read_only. Any other difference is another request.
func TestRequestOfEarlierVersionIsFound(t *testing.T) {
	eachStore(t, func(t *testing.T, open func() approval.Store) {
		with := func(payload string) approval.Request {
			a := question("s1.q")
			a.Payload = json.RawMessage(payload)
			return a
		}
		addRequest(t, approval.NewQueue(open()), with(`{"tool":"look","arguments":{"n":0}}`))
		d := approval.NewQueue(open())
		addRequest(t, d, with(`{"tool":"look","arguments":{"n":0},"read_only":true}`))
		for _, other := range []string{`{"tool":"look","read_only":true}`, `{"tool":"look","arguments":{},"read_only":true}`, `{"tool":"rm","arguments":{"n":0}}`, `{"tool":"look","arguments":{"n":0},"exact":true}`} {
			if _, err := d.Submit(t.Context(), with(other)); err == nil {
				t.Errorf("%s is taken for the stored request", other)
			}
		}
		if waiting, err := d.Pending(t.Context(), "s1", ada); err != nil || len(waiting) != 1 || string(waiting[0].Payload) != `{"tool":"look","arguments":{"n":0}}` {
			t.Errorf("there wait %+v, %v", waiting, err)
		}
	})
}
