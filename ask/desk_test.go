package ask_test

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

	"github.com/loadout-dev/loadout/ask"
	"github.com/loadout-dev/loadout/policy"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var ada, bob = policy.Principal{ID: "ada", Kind: policy.Person}, policy.Principal{ID: "bob", Kind: policy.Person}

// eachStore runs a test on every store: open returns it as another process would
// have it, too.
func eachStore(t *testing.T, test func(t *testing.T, open func() ask.Store)) {
	t.Run("memory", func(t *testing.T) {
		m := &ask.Memory{}
		test(t, func() ask.Store { return m })
	})
	t.Run("files", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "asks")
		test(t, func() ask.Store { return ask.NewFiles(dir) })
	})
}

func question(id string) ask.Ask {
	return ask.Ask{ID: id, Kind: ask.Approval, Session: "s1", Principal: ada, Message: "Delete it?", Payload: json.RawMessage(`{"tool":"rm"}`)}
}

func put(t *testing.T, d *ask.Desk, a ask.Ask) {
	t.Helper()
	if _, err := d.Put(t.Context(), a); err != nil {
		t.Fatal(err)
	}
}

// The first answer stands; who comes later learns of it, and it is there for another
// process.
func TestFirstAnswerWins(t *testing.T) {
	eachStore(t, func(t *testing.T, open func() ask.Store) {
		d := ask.New(open())
		put(t, d, question("s1.q"))
		const several = 8
		errs := make([]error, several)
		var all sync.WaitGroup
		for i := range several {
			all.Go(func() {
				errs[i] = ask.New(open()).Answer(t.Context(), "s1.q", ask.Answer{Outcome: ask.Accepted, By: ada, Content: json.RawMessage(fmt.Sprint(i))})
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
			settled := (*ask.SettledError)(nil)
			if i != first && (!errors.As(err, &settled) || string(settled.Answer.Content) != fmt.Sprint(first)) {
				t.Errorf("%d got %v, want that %d was first", i, err, first)
			}
		}
		got, err := d.Wait(t.Context(), "s1.q")
		if err != nil || got.Outcome != ask.Accepted || got.By != ada || string(got.Content) != fmt.Sprint(first) {
			t.Errorf("%+v, %v", got, err)
		}
		if left, err := d.Open(t.Context(), "s1", ask.Ask{}.Principal); err != nil || len(left) > 0 {
			t.Errorf("there wait %v, %v", left, err)
		}
	})
}

// Who waits is answered; what waits survives who asked.
func TestAskSurvivesWhoAsked(t *testing.T) {
	eachStore(t, func(t *testing.T, open func() ask.Store) {
		yesterday := ask.New(open())
		ctx, cancel := context.WithCancelCause(t.Context())
		gone := errors.New("the process ends")
		defer yesterday.Watch(func(ask.Event) { cancel(gone) })()
		if _, err := yesterday.Ask(ctx, question("s1.q")); !errors.Is(err, gone) {
			t.Fatal(err)
		}
		today := ask.New(open())
		waiting, err := today.Open(t.Context(), "s1", ada)
		if err != nil || len(waiting) != 1 {
			t.Fatalf("there wait %v, %v", waiting, err)
		}
		want := question("s1.q")
		want.Asked = waiting[0].Asked
		if d := cmp.Diff(want, waiting[0]); d != "" {
			t.Error(d)
		}
		if err := today.Answer(t.Context(), "s1.q", ask.Answer{Outcome: ask.Declined, By: ada}); err != nil {
			t.Fatal(err)
		}
		if got, err := today.Wait(t.Context(), "s1.q"); err != nil || got.Outcome != ask.Declined {
			t.Errorf("%+v, %v", got, err)
		}
	})
}

// Only whom it is for may answer, and sees it.
func TestOnlyThePrincipalAnswers(t *testing.T) {
	eachStore(t, func(t *testing.T, open func() ask.Store) {
		d := ask.New(open())
		put(t, d, question("s1.q"))
		if err := d.Answer(t.Context(), "s1.q", ask.Answer{Outcome: ask.Accepted, By: bob}); !errors.As(err, new(*ask.NotYoursError)) {
			t.Errorf("bob: %v", err)
		}
		if all, _ := d.Open(t.Context(), "s1", bob); len(all) > 0 {
			t.Errorf("bob sees %v", all)
		}
		if err := d.Answer(t.Context(), "nothing", ask.Answer{By: ada}); !errors.Is(err, ask.ErrUnknown) {
			t.Errorf("an ask that is not there: %v", err)
		}
	})
}

// A deadline that passes is an answer, and so is taking the question back.
func TestDeadlineAndCancelAreAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := ask.New(&ask.Memory{})
		var told []ask.Outcome
		defer d.Watch(func(e ask.Event) {
			if e.Answer != nil {
				told = append(told, e.Answer.Outcome)
			}
		})()
		a := question("s1.late")
		a.Deadline = time.Now().Add(time.Minute)
		if got, err := d.Ask(t.Context(), a); err != nil || got.Outcome != ask.Expired {
			t.Errorf("%+v, %v", got, err)
		}
		a = question("s1.missed") // nobody waits for this one
		a.Deadline = time.Now().Add(time.Minute)
		put(t, d, a)
		time.Sleep(2 * time.Minute)
		settled := (*ask.SettledError)(nil)
		if err := d.Answer(t.Context(), "s1.missed", ask.Answer{Outcome: ask.Accepted, By: ada}); !errors.As(err, &settled) || settled.Answer.Outcome != ask.Expired {
			t.Errorf("too late: %v", err)
		}
		done := make(chan ask.Answer)
		put(t, d, question("s1.back"))
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
		if got := <-done; got.Outcome != ask.Cancelled {
			t.Errorf("%+v", got)
		}
		if want := []ask.Outcome{ask.Expired, ask.Expired, ask.Cancelled}; !cmp.Equal(told, want) {
			t.Errorf("told %v, want %v", told, want)
		}
	})
}

// An answer of another process is found when it is said that there may be one.
func TestRecheckFindsAnswersOfOthers(t *testing.T) {
	dir := t.TempDir()
	here, there := ask.New(ask.NewFiles(dir)), ask.New(ask.NewFiles(dir))
	put(t, here, question("s1.q"))
	got := make(chan ask.Answer, 1)
	begun := make(chan struct{})
	go func() {
		close(begun)
		a, _ := here.Wait(t.Context(), "s1.q")
		got <- a
	}()
	<-begun
	if err := there.Answer(t.Context(), "s1.q", ask.Answer{Outcome: ask.Accepted, By: ada}); err != nil {
		t.Fatal(err)
	}
	here.Recheck("s1.q") // before it waits, the answer is there when it looks
	if a := <-got; a.Outcome != ask.Accepted {
		t.Errorf("%+v", a)
	}
}

// What cannot be asked is refused with all that is wrong with it.
func TestBadAsks(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*ask.Ask)
		want   []string
	}{
		{"nothing in it", func(a *ask.Ask) { *a = ask.Ask{} }, []string{`kind "" is none`, "names no session", "who may answer"}},
		{"a long message", func(a *ask.Ask) { a.Message = strings.Repeat("x", ask.MaxMessage+1) }, []string{"message has 16385 bytes"}},
		{"no JSON", func(a *ask.Ask) { a.Payload = json.RawMessage("{") }, []string{"payload is no JSON"}},
		{"the same ID", func(a *ask.Ask) { a.ID, a.Message = "s1.there", "Another?" }, []string{"was asked already"}},
		{"the ID of another session", func(a *ask.Ask) { a.ID = "s2.q" }, []string{"does not begin with the session"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := ask.New(&ask.Memory{})
			put(t, d, question("s1.there"))
			a := question("s1.q")
			tt.change(&a)
			_, err := d.Put(t.Context(), a)
			for _, part := range tt.want {
				if err == nil || !strings.Contains(err.Error(), part) {
					t.Errorf("got %v, want %q in it", err, part)
				}
			}
		})
	}
	if _, err := ask.New(ask.NewFiles(t.TempDir())).Put(t.Context(), ask.Ask{Kind: ask.Form, Session: "../s", Principal: ada}); err == nil {
		t.Error("a session by a path was accepted")
	}
}

// A question that is asked again, about the same, is the one that was asked before: by
// a process that goes on where another ended.
func TestAskedAgain(t *testing.T) {
	eachStore(t, func(t *testing.T, open func() ask.Store) {
		yesterday, today := ask.New(open()), ask.New(open())
		put(t, yesterday, question("s1.q"))
		told := 0
		defer today.Watch(func(ask.Event) { told++ })()
		put(t, today, question("s1.q"))
		if err := yesterday.Answer(t.Context(), "s1.q", ask.Answer{Outcome: ask.Declined, By: ada}); err != nil || told != 1 {
			t.Fatal(err, told)
		}
		answer, err := today.Ask(t.Context(), question("s1.q"))
		if err != nil || answer.Outcome != ask.Declined || told != 1 {
			t.Errorf("%+v, %v, told %d times", answer, err, told)
		}
	})
}

// What was answered can be forgotten, also by another process, and nothing else is.
func TestForget(t *testing.T) {
	eachStore(t, func(t *testing.T, open func() ask.Store) {
		here, there := ask.New(open()), ask.New(open())
		put(t, here, question("s1.q"))
		put(t, here, question("s1.r"))
		if err := there.Answer(t.Context(), "s1.q", ask.Answer{Outcome: ask.Accepted, By: ada, Content: json.RawMessage(`"secret"`)}); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := here.Forget(t.Context(), "s1.q"); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := there.Wait(t.Context(), "s1.q"); !errors.Is(err, ask.ErrUnknown) {
			t.Errorf("got %v", err)
		}
		if left, err := there.Open(t.Context(), "s1", ada); err != nil || len(left) != 1 {
			t.Errorf("left are %v, %v", left, err)
		}
	})
}

// A session has no more than so many questions at a time.
func TestOpenAsksAreBounded(t *testing.T) {
	d := ask.New(&ask.Memory{})
	for range ask.MaxOpen {
		put(t, d, question(""))
	}
	if _, err := d.Put(t.Context(), question("")); err == nil || !strings.Contains(err.Error(), "answer some of them first") {
		t.Errorf("got %v", err)
	}
}

func ExampleDesk() {
	person := policy.Principal{ID: "ada", Kind: policy.Person}
	desk := ask.New(&ask.Memory{})
	// Whoever shows questions to the person answers them.
	defer desk.Watch(func(e ask.Event) {
		if e.Answer == nil {
			fmt.Println(e.Ask.Message)
			go desk.Answer(context.Background(), e.Ask.ID, ask.Answer{Outcome: ask.Accepted, Scope: policy.Once, By: person})
		}
	})()
	answer, err := desk.Ask(context.Background(), ask.Ask{Kind: ask.Approval, Session: "42", Principal: person, Message: "Send the report?"})
	if err != nil {
		fmt.Println(err)
	}
	fmt.Println(answer.Outcome, answer.Scope)
	// Output:
	// Send the report?
	// accepted once
}
