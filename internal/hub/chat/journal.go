package chat

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/loadout-dev/loadout/agent"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/session"
)

// step is an event of the transcript as it is kept.
type step struct {
	session.Event
	// Input is the message that a person's words are, so that it is said once.
	Input int64 `json:"input,omitempty"`
	// SkillID is the id in the store of a skill that is loaded.
	SkillID string `json:"skill_id,omitempty"`
}

func readStep(r store.Event) (step, error) {
	var s step
	if err := json.Unmarshal(r.Data, &s); err != nil || s.Seq != r.Seq {
		return step{}, fmt.Errorf("step %d of a transcript: %w", r.Seq, store.ErrCorrupt)
	}
	return s, nil
}

// readSteps returns the transcript after a number, to its end.
func readSteps(ctx context.Context, from store.Events, id string, after int64) ([]step, error) {
	var out []step
	for {
		rows, err := from.Read(ctx, id, max(after, 0), 100)
		if err != nil {
			return nil, err
		}
		for _, r := range rows {
			s, err := readStep(r)
			if err != nil {
				return nil, err
			}
			out = append(out, s)
			after = r.Seq
		}
		if len(rows) < 100 {
			return out, nil
		}
	}
}

// writing bounds how long one change of a turn takes. What was begun is finished,
// whatever ends the turn: or it is not known what is kept.
const writing = 20 * time.Second

// journal is the transcript of a conversation and what is told of it, while a node has
// its lease. It keeps words of an answer back for a moment, so that not each of them is
// a transaction, and in the order of all else.
type journal struct {
	e     *Engine
	id    string
	lease func() store.Lease
	// before is done before results of calls are added; nil is nothing.
	before func(ctx context.Context) error
	uses   *uses  // nil counts nothing
	meter  *meter // likewise

	mu     sync.Mutex // held while writing; guards what follows
	last   int64      // of the transcript
	said   int64      // the last message that is in it
	saying int64      // the message that the next words of a person are; 0 is none
	broken error      // why nothing is written any more
	trace  Trace      // of the turn; nil follows none

	telling sync.Mutex // taken after mu; guards what follows
	input   int64      // of the turn; changed with mu held as well
	pending []row
	size    int // bytes of the pending words
	woken   chan struct{}
}

var _ session.Log = (*journal)(nil)

// Read implements [session.Log].
func (j *journal) Read(ctx context.Context, after int64) ([]session.Event, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	steps, err := readSteps(ctx, j.e.db.Events, j.id, after)
	if err != nil {
		return nil, fmt.Errorf("read the transcript: %w", err)
	}
	var out []session.Event
	for _, s := range steps {
		out = append(out, s.Event)
		j.last, j.said = s.Seq, max(j.said, s.Input)
	}
	if j.said >= j.saying {
		j.saying = 0
	}
	return out, nil
}

// Append implements [session.Log].
func (j *journal) Append(ctx context.Context, events ...*session.Event) error {
	if len(events) == 0 {
		return nil
	}
	if j.before != nil && anyResult(events) {
		if err := j.before(ctx); err != nil {
			return err
		}
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	rows, told := make([]store.Event, len(events)), make([]row, len(events))
	said, saying := j.said, j.saying
	for i, ev := range events {
		ev.Seq = j.last + int64(i) + 1
		s := step{Event: *ev, SkillID: j.uses.idOf(ev.Loaded)}
		if ev.Message != nil && ev.Message.Role == session.RoleUser && saying > 0 {
			s.Input, said, saying = saying, saying, 0
		}
		data, err := json.Marshal(s)
		if err != nil {
			return fmt.Errorf("append to the transcript: %w", err)
		}
		rows[i] = store.Event{Kind: string(ev.Type), Data: data, Created: ev.Time}
		told[i] = row{Event: Event{Type: Step, Input: j.input}, Of: ev.Seq}
	}
	count, spent := j.uses.of(events), j.meter.of(events)
	err := j.write(ctx, func(c *change) error {
		for at := 0; at < len(rows); at += store.MaxAppend {
			_, err := c.Events.Append(ctx, j.id, j.last+int64(at), rows[at:min(at+store.MaxAppend, len(rows))]...)
			if errors.Is(err, store.ErrConflict) { // somebody else had the lease meanwhile
				return errLost
			}
			if err != nil {
				return err
			}
		}
		if err := errors.Join(c.Usage.Add(ctx, count...), c.Meter.Add(ctx, spent...)); err != nil {
			return err
		}
		return c.tell(ctx, told...)
	})
	if err != nil {
		return fmt.Errorf("append to the transcript: %w", err)
	}
	j.last += int64(len(events))
	j.said, j.saying = said, saying
	j.uses.apply(events)
	j.meter.apply(events)
	if j.trace != nil {
		for _, e := range events {
			j.trace.Step(e)
		}
	}
	return nil
}

// traced has what follows be told to whoever follows the turn, nil to nobody.
func (j *journal) traced(t Trace) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.trace = t
}

func anyResult(events []*session.Event) bool {
	for _, e := range events {
		if e.Result != nil {
			return true
		}
	}
	return false
}

// write makes a change of the turn under the lease: what is pending is told before what
// f does, where there is an f. j.mu is held.
func (j *journal) write(ctx context.Context, f func(c *change) error) error {
	if j.broken != nil {
		return j.broken
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), writing)
	defer stop()
	words := j.take()
	err := j.e.change(ctx, j.id, func(c *change) error {
		if err := c.Leases.Check(ctx, j.lease()); errors.Is(err, store.ErrHeld) {
			return errLost
		} else if err != nil {
			return err
		}
		if err := c.tell(ctx, words...); err != nil || f == nil {
			return err
		}
		return f(c)
	})
	if err != nil {
		j.putBack(words)
		if handOver(err) {
			j.broken = err
		}
	}
	return err
}

// handOver reports whether an error is one of the database, or of the lease, after which
// the turn is for whoever finds the conversation in order.
func handOver(err error) bool {
	for _, e := range []error{errLost, store.ErrConflict, store.ErrBusy, store.ErrFull, store.ErrUnavailable, store.ErrNotFound, context.DeadlineExceeded} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// failure is why nothing can be written any more, or nil.
func (j *journal) failure() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.broken
}

// begin says which input all that follows is of.
func (j *journal) begin(in int64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.saying = in
	if j.said >= in {
		j.saying = 0
	}
	j.telling.Lock()
	defer j.telling.Unlock()
	j.input = in
}

// hasSaid reports whether the words of a message are in the transcript.
func (j *journal) hasSaid(in int64) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.said >= in
}

// Bounds of words that wait to be told.
const (
	maxWords   = 32 << 10 // bytes in one event
	maxPending = 1 << 20  // bytes; what is more comes with the step alone
	pause      = 50 * time.Millisecond
)

// tell takes what an agent tells. What is also a step of the transcript is told there.
func (j *journal) tell(a agent.Event) {
	r := row{Event: Event{Text: a.Text}}
	switch a.Type {
	case agent.Text:
		r.Type = Text
	case agent.Thinking:
		r.Type = Thinking
	case agent.ToolCall:
		r.Type, r.Call = Calling, a.Call
	case agent.ToolProgress:
		r.Type, r.Call = Progress, a.Call
	case agent.Notice:
		r.Type = Notice
	default:
		return
	}
	j.note(r)
}

// note takes something to be told soon.
func (j *journal) note(r row) {
	j.telling.Lock()
	defer j.telling.Unlock()
	words := r.Type == Text || r.Type == Thinking || r.Type == Progress
	if words && j.size+len(r.Text) > maxPending {
		return
	}
	r.Input = j.input
	j.size += len(r.Text)
	if last := len(j.pending) - 1; words && r.Type != Progress && last >= 0 && j.pending[last].Type == r.Type && len(j.pending[last].Text)+len(r.Text) <= maxWords {
		j.pending[last].Text += r.Text
	} else {
		j.pending = append(j.pending, r)
	}
	select {
	case j.woken <- struct{}{}:
	default:
	}
}

func (j *journal) take() []row {
	j.telling.Lock()
	defer j.telling.Unlock()
	words := j.pending
	j.pending, j.size = nil, 0
	return words
}

// waits reports whether something is pending.
func (j *journal) waits() bool {
	j.telling.Lock()
	defer j.telling.Unlock()
	return len(j.pending) > 0
}

func (j *journal) putBack(words []row) {
	j.telling.Lock()
	defer j.telling.Unlock()
	j.pending = append(words, j.pending...)
	for _, w := range words {
		j.size += len(w.Text)
	}
}

// flush tells what is pending: the first words at once, and more of them a moment
// later, until ctx ends.
func (j *journal) flush(ctx context.Context) {
	wait := time.NewTimer(0)
	defer wait.Stop()
	for {
		select {
		case <-j.woken:
		case <-ctx.Done():
			return
		}
		select {
		case <-wait.C:
		case <-ctx.Done():
			return
		}
		j.mu.Lock()
		if j.waits() {
			_ = j.write(ctx, nil) // then it is told with what comes next, or nothing is
		}
		j.mu.Unlock()
		wait.Reset(pause)
	}
}
