package approval_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loadout-dev/loadout/internal/approval"
)

var errDisk = errors.New("disk on fire")

// failing is a store whose operations fail by name.
type failing struct {
	approval.Store
	fail map[string]bool
}

func (f *failing) err(name string) error {
	if f.fail[name] {
		return errDisk
	}
	return nil
}

func (f *failing) Put(ctx context.Context, a approval.Request) error {
	if err := f.err("Put"); err != nil {
		return err
	}
	return f.Store.Put(ctx, a)
}

func (f *failing) Get(ctx context.Context, id string) (approval.Request, *approval.Answer, error) {
	if err := f.err("Get"); err != nil {
		return approval.Request{}, nil, err
	}
	return f.Store.Get(ctx, id)
}

func (f *failing) Resolve(ctx context.Context, id string, a approval.Answer) (*approval.Answer, error) {
	if err := f.err("Resolve"); err != nil {
		return nil, err
	}
	return f.Store.Resolve(ctx, id, a)
}

func (f *failing) Delete(ctx context.Context, id string) error {
	if err := f.err("Delete"); err != nil {
		return err
	}
	return f.Store.Delete(ctx, id)
}

// A store that fails approves nothing, and each error says what was tried.
func TestFailingStore(t *testing.T) {
	for name, tt := range map[string]struct {
		fail string
		do   func(d *approval.Queue) error
		want string
	}{
		"submit, unreadable":  {"Get", func(d *approval.Queue) error { _, err := d.Submit(t.Context(), question("s1.new")); return err }, "submit approval request: "},
		"submit, unwritable":  {"Put", func(d *approval.Queue) error { _, err := d.Submit(t.Context(), question("s1.new")); return err }, "submit approval request: "},
		"ask":                 {"Put", func(d *approval.Queue) error { _, err := d.Ask(t.Context(), question("s1.new")); return err }, "submit approval request: "},
		"wait":                {"Get", func(d *approval.Queue) error { _, err := d.Wait(t.Context(), "s1.q"); return err }, "wait for approval request s1.q: "},
		"resolve, unreadable": {"Get", func(d *approval.Queue) error { return d.Resolve(t.Context(), "s1.q", approval.Answer{By: ada}) }, "resolve approval request s1.q: "},
		"resolve, unwritable": {"Resolve", func(d *approval.Queue) error {
			return d.Resolve(t.Context(), "s1.q", approval.Answer{Outcome: approval.Accepted, By: ada})
		}, "resolve approval request s1.q: "},
		"cancel, unreadable": {"Get", func(d *approval.Queue) error { return d.Cancel(t.Context(), "s1.q") }, ""},
		"cancel, unwritable": {"Resolve", func(d *approval.Queue) error { return d.Cancel(t.Context(), "s1.q") }, "resolve approval request s1.q: "},
		"delete":             {"Delete", func(d *approval.Queue) error { return d.Delete(t.Context(), "s1.q") }, "delete approval request s1.q: "},
	} {
		s := &failing{&approval.MemoryStore{}, map[string]bool{}}
		d := approval.NewQueue(s)
		addRequest(t, d, question("s1.q"))
		notified := 0
		d.Subscribe(func(approval.Event) { notified++ })
		s.fail[tt.fail] = true
		if err := tt.do(d); !errors.Is(err, errDisk) || !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
		if notified > 0 {
			t.Errorf("%s: subscribers are notified", name)
		}
		s.fail = nil
		if pending, err := d.Pending(t.Context(), "s1", ada); err != nil || len(pending) != 1 {
			t.Errorf("%s: pending are %v, %v", name, pending, err)
		}
	}
}

// A request whose caller gives up is withdrawn, and a waiter that gives up leaves the
// others.
func TestAskGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := approval.NewQueue(&approval.MemoryStore{})
		enough := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		asked := make(chan error)
		go func() { _, err := d.Ask(ctx, question("s1.a")); asked <- err }()
		synctest.Wait()
		cancel(enough)
		if err := <-asked; !errors.Is(err, enough) {
			t.Errorf("asking ended with %v", err)
		}
		if a, err := d.Wait(t.Context(), "s1.a"); err != nil || a.Outcome != approval.Cancelled {
			t.Errorf("the request is %+v, %v", a, err)
		}
		addRequest(t, d, question("s1.b"))
		short, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		go d.Wait(short, "s1.b")
		answers := make(chan approval.Answer, 2)
		for range 2 {
			go func() { a, _ := d.Wait(t.Context(), "s1.b"); answers <- a }()
		}
		time.Sleep(2 * time.Second)
		if err := d.Resolve(t.Context(), "s1.b", approval.Answer{Outcome: approval.Accepted, By: ada}); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if a := <-answers; a.Outcome != approval.Accepted {
				t.Errorf("a waiter got %+v", a)
			}
		}
	})
}

// The answer to an elicitation may be a secret, so it is not kept.
func TestElicitationIsDeleted(t *testing.T) {
	for kind, kept := range map[approval.Kind]bool{approval.KindElicitation: false, approval.KindApproval: true} {
		s := &approval.MemoryStore{}
		d := approval.NewQueue(s)
		a := question("s1.q")
		a.Kind = kind
		d.Subscribe(func(e approval.Event) {
			if e.Answer == nil {
				if err := d.Resolve(t.Context(), "s1.q", approval.Answer{Outcome: approval.Accepted, By: ada, Content: json.RawMessage(`{"x":1}`)}); err != nil {
					t.Error(err)
				}
			}
		})
		answer, err := d.Ask(t.Context(), a)
		if err != nil || answer.Outcome != approval.Accepted || string(answer.Content) != `{"x":1}` {
			t.Errorf("%s: %+v, %v", kind, answer, err)
		}
		if _, _, err := s.Get(t.Context(), "s1.q"); (err == nil) != kept {
			t.Errorf("%s: afterwards, %v", kind, err)
		}
	}
}

// Requests and answers of exactly the limits are stored, and no larger ones.
func TestSizeLimits(t *testing.T) {
	text := func(n int) json.RawMessage { return json.RawMessage(`"` + strings.Repeat("x", n-2) + `"`) }
	for name, tt := range map[string]struct {
		change func(*approval.Request)
		want   string
	}{
		"longest message":    {func(a *approval.Request) { a.Message = strings.Repeat("x", approval.MaxMessage) }, ""},
		"longer message":     {func(a *approval.Request) { a.Message = strings.Repeat("x", approval.MaxMessage+1) }, "message too long"},
		"largest payload":    {func(a *approval.Request) { a.Payload = text(approval.MaxPayload) }, ""},
		"larger payload":     {func(a *approval.Request) { a.Payload = text(approval.MaxPayload + 1) }, "payload and schema too large"},
		"payload and schema": {func(a *approval.Request) { a.Payload, a.Schema = text(approval.MaxPayload), text(2) }, "payload and schema too large"},
	} {
		d := approval.NewQueue(&approval.MemoryStore{})
		a := question("s1.q")
		tt.change(&a)
		if _, err := d.Submit(t.Context(), a); tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
	}
	d := approval.NewQueue(&approval.MemoryStore{})
	addRequest(t, d, question("s1.q"))
	answer := approval.Answer{Outcome: approval.Accepted, By: ada, Content: text(approval.MaxPayload - 1), Feedback: "xx"}
	if err := d.Resolve(t.Context(), "s1.q", answer); err == nil || !strings.Contains(err.Error(), "answer too large") {
		t.Errorf("a larger answer: %v", err)
	}
	answer.Feedback = "x"
	if err := d.Resolve(t.Context(), "s1.q", answer); err != nil {
		t.Errorf("the largest answer: %v", err)
	}
}
