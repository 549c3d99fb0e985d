package chat

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/loadout-dev/loadout/ask"
	"github.com/loadout-dev/loadout/internal/account"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/policy"
)

// encode writes JSON as it was: what is in an answer is for a model to read, which would
// take \u003csvg for what it says.
func encode(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// keepAnswers is for how long it can be said what became of a question.
const keepAnswers = 24 * time.Hour

// asks keeps questions in the database. What is asked, and that it is settled, is told
// in the conversation in the same transaction, and noted in its inbox for the node
// whose turn waits.
type asks struct {
	e *Engine
	// leaves reports that the turn which asked goes on elsewhere, so that nobody may
	// take its questions back; nil is of no turn.
	leaves func() bool
}

var _ ask.Store = asks{}

// principalText is a principal as the store has it.
func principalText(p policy.Principal) string { return p.Kind + ":" + p.ID }

// Put implements [ask.Store].
func (k asks) Put(ctx context.Context, a ask.Ask) error {
	data, err := encode(a)
	if err != nil {
		return err
	}
	return k.e.change(ctx, a.Session, func(c *change) error {
		if err := c.Asks.Put(ctx, store.Ask{ID: a.ID, Session: a.Session, Principal: principalText(a.Principal), Data: data, Created: a.Asked, Deadline: a.Deadline}); err != nil {
			return err
		}
		return c.tell(ctx, row{Event: Event{Type: Asked, Ask: &a}})
	})
}

// Get implements [ask.Store].
func (k asks) Get(ctx context.Context, id string) (ask.Ask, *ask.Answer, error) {
	kept, err := k.e.db.Asks.Get(ctx, id)
	if errors.Is(err, store.ErrNotFound) {
		return ask.Ask{}, nil, ask.ErrUnknown
	}
	if err != nil {
		return ask.Ask{}, nil, err
	}
	return decodeAsk(kept)
}

func decodeAsk(kept store.Ask) (ask.Ask, *ask.Answer, error) {
	var a ask.Ask
	if err := json.Unmarshal(kept.Data, &a); err != nil {
		return ask.Ask{}, nil, fmt.Errorf("question %q: %w", kept.ID, store.ErrCorrupt)
	}
	if kept.Settled.IsZero() {
		return a, nil, nil
	}
	answer := &ask.Answer{}
	if err := json.Unmarshal(kept.Answer, answer); err != nil {
		return ask.Ask{}, nil, fmt.Errorf("answer to %q: %w", kept.ID, store.ErrCorrupt)
	}
	return a, answer, nil
}

// Settle implements [ask.Store].
func (k asks) Settle(ctx context.Context, id string, answer ask.Answer) (*ask.Answer, error) {
	if answer.Outcome == ask.Cancelled && answer.By == (policy.Principal{}) && k.leaves != nil && k.leaves() {
		return nil, errLost
	}
	data, err := encode(answer)
	if err != nil {
		return nil, err
	}
	kept, err := k.e.db.Asks.Get(ctx, id)
	if errors.Is(err, store.ErrNotFound) {
		return nil, ask.ErrUnknown
	}
	if err != nil {
		return nil, err
	}
	var stands *ask.Answer
	err = k.e.change(ctx, kept.Session, func(c *change) error {
		stands = nil
		settled, first, err := c.Asks.Settle(ctx, id, data)
		if err != nil {
			return err
		}
		if !first {
			_, stands, err = decodeAsk(settled)
			return err
		}
		if err := c.noteTo(ctx, answerNote, id); err != nil {
			return err
		}
		if by := answer.By; by.ID != "" {
			err = c.Audit.Append(ctx, record(account.UserID(by.ID), "ask.answer", kept.Session, Settled{id, answer.Outcome}))
		}
		if err != nil {
			return err
		}
		return c.tell(ctx, row{Event: Event{Type: Answered, Answer: &Settled{id, answer.Outcome}}})
	})
	if errors.Is(err, store.ErrNotFound) {
		err = ask.ErrUnknown
	}
	return stands, err
}

// Open implements [ask.Store].
func (k asks) Open(ctx context.Context, session string) ([]ask.Ask, error) {
	kept, err := k.e.db.Asks.Open(ctx, session)
	return decodeAsks(kept, err)
}

func decodeAsks(kept []store.Ask, err error) ([]ask.Ask, error) {
	if err != nil {
		return nil, err
	}
	var out []ask.Ask
	for _, one := range kept {
		a, _, err := decodeAsk(one)
		if err != nil {
			return nil, err
		}
		out = append(out, a)
	}
	return out, nil
}

// Delete implements [ask.Store].
func (k asks) Delete(ctx context.Context, id string) error { return k.e.db.Asks.Delete(ctx, id) }

// Asks returns the questions that wait for somebody, of all conversations, those asked
// first first: at most [store.MaxPage].
func (e *Engine) Asks(ctx context.Context, p account.Principal) ([]ask.Ask, error) {
	if err := account.Check(p, account.AskAnswer, account.Of(p.User)); err != nil {
		return nil, err
	}
	kept, err := e.db.Asks.OpenFor(ctx, principalText(person(p.User)))
	return decodeAsks(kept, err)
}

// Answer settles a question, on whatever node its turn waits. The error is an
// [*ask.SettledError] where somebody was first or it is too late, and
// [ask.ErrUnknown] where there is none that the principal may know of.
func (e *Engine) Answer(ctx context.Context, p account.Principal, id string, answer ask.Answer) error {
	switch answer.Outcome {
	case ask.Accepted, ask.Declined, ask.Cancelled:
	default:
		return fmt.Errorf("answer %.100q: %w: nobody answers with %.40q", id, ErrInvalid, answer.Outcome)
	}
	switch answer.Scope {
	case "", policy.Once, policy.ForSession, policy.Always:
	default:
		return fmt.Errorf("answer %.100q: %w: there is no scope %.40q", id, ErrInvalid, answer.Scope)
	}
	kept, err := e.db.Asks.Get(ctx, id)
	switch {
	case p.Anonymous():
		return account.Check(p, account.AskAnswer, account.Of(p.User))
	case errors.Is(err, store.ErrNotFound):
		return fmt.Errorf("answer %.100q: %w", id, ask.ErrUnknown)
	case err != nil:
		return err
	}
	if _, err := e.may(ctx, p, account.AskAnswer, kept.Session); err != nil {
		if errors.Is(err, store.ErrNotFound) {
			err = fmt.Errorf("answer %.100q: %w", id, ask.ErrUnknown)
		}
		return err
	}
	answer.By = person(p.User)
	return ask.New(asks{e: e}).Answer(ctx, id, answer)
}

// expire settles questions whose turn did not see the deadline, and forgets old ones.
func (e *Engine) expire(ctx context.Context) error {
	overdue, err := e.db.Asks.Overdue(ctx, time.Now().Add(-e.opts.Poll)) // who waits does it first
	if err != nil {
		return err
	}
	for _, one := range overdue {
		if _, err := (asks{e: e}).Settle(ctx, one.ID, ask.Answer{Outcome: ask.Expired, At: time.Now().UTC()}); err != nil && !errors.Is(err, ask.ErrUnknown) {
			return err
		}
	}
	_, err = e.db.Asks.Prune(ctx, time.Now().Add(-keepAnswers))
	return err
}

// desk is where the questions of a conversation are asked while its turn is on this
// node.
type desk struct {
	*ask.Desk
	w *worker

	mu   sync.Mutex // guards what follows
	seen map[string]chan struct{}
}

func newDesk(w *worker) *desk {
	d := &desk{w: w, seen: map[string]chan struct{}{}}
	d.Desk = ask.New(asks{e: w.e, leaves: func() bool { return w.lost.Load() || w.e.ctx.Err() != nil }})
	d.Watch(func(ev ask.Event) {
		if ev.Answer == nil && ev.Ask.Kind == ask.Action {
			w.e.running.Go(func() { d.attend(ev.Ask.ID) })
		}
	})
	return d
}

// request is a channel that is closed when a client has it.
func (d *desk) request(id string) chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.seen[id] == nil {
		d.seen[id] = make(chan struct{})
	}
	return d.seen[id]
}

// saw notes that a client has a request.
func (d *desk) saw(id string) {
	c := d.request(id)
	d.mu.Lock()
	defer d.mu.Unlock()
	select {
	case <-c:
	default:
		close(c)
	}
}

// nobody is the answer to a request that no client has: one of a client that failed.
var nobody = json.RawMessage(`{"success":false,"error":"no client of the conversation is open"}`)

// attend answers a request that no client has seen in time.
func (d *desk) attend(id string) {
	patience := time.NewTimer(d.w.e.opts.Patience)
	defer patience.Stop()
	select {
	case <-d.request(id):
		return
	case <-d.w.e.ctx.Done():
		return
	case <-patience.C:
	}
	_, err := asks{e: d.w.e}.Settle(d.w.e.ctx, id, ask.Answer{Outcome: ask.Accepted, Content: nobody, At: time.Now().UTC()})
	if err != nil {
		return // it is settled, or times out
	}
	d.Recheck(id)
}

// Response is what a client says to a request: the skill:response to a skill:request,
// which is an ask of the kind [ask.Action].
type Response struct {
	Request string          `json:"request_id"`
	Skill   string          `json:"skill_name"`
	Action  string          `json:"action"`
	Success bool            `json:"success"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   json.RawMessage `json:"error,omitempty"`
}

// Errors of responses. Clients of older systems know them as "Missing request_id" and
// "No pending request found".
var (
	ErrNoRequestID = errors.New("missing request_id")
	ErrNoRequest   = errors.New("no pending request found")
)

// Respond answers a request to a client. The first response wins; one to a request that
// is settled, or that the principal may not know of, is [ErrNoRequest].
func (e *Engine) Respond(ctx context.Context, p account.Principal, r Response) error {
	if r.Request == "" {
		return ErrNoRequestID
	}
	content, err := encode(map[string]any{"success": r.Success, "result": r.Result, "error": r.Error})
	if err != nil {
		return fmt.Errorf("response to %.100q: %w: %w", r.Request, ErrInvalid, err)
	}
	a, _, err := asks{e: e}.Get(ctx, r.Request)
	if err == nil && a.Kind != ask.Action {
		return ErrNoRequest
	}
	err = e.Answer(ctx, p, r.Request, ask.Answer{Outcome: ask.Accepted, Content: content})
	if settled := (*ask.SettledError)(nil); errors.Is(err, ask.ErrUnknown) || errors.As(err, &settled) {
		return ErrNoRequest
	}
	return err
}
