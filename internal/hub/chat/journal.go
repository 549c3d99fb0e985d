package chat

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/loadout-dev/loadout/agent"
	"github.com/loadout-dev/loadout/internal/hub/usage"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/llm"
	"github.com/loadout-dev/loadout/session"
)

// step is a stored transcript event.
type step struct {
	session.Event
	// Input is the number of the message in a user step. It prevents a message
	// from being stored twice.
	Input int64 `json:"input,omitempty"`
	// Skill is the skill that the user named for the message.
	Skill string `json:"skill,omitempty"`
	// SkillID is the store ID of a loaded skill.
	SkillID string `json:"skill_id,omitempty"`
	// Turn is the number of the input for which the step was added; 0 if unknown.
	Turn int64 `json:"turn,omitempty"`
}

func (s *step) isUserMessage() bool { return s.Message != nil && s.Message.Role == llm.User }

func readStep(r store.Event) (step, error) {
	var s step
	if err := json.Unmarshal(r.Data, &s); err != nil || s.Seq != r.Seq {
		return step{}, fmt.Errorf("read step %d of transcript: %w", r.Seq, store.ErrCorrupt)
	}
	return s, nil
}

// readSteps returns the steps in a transcript after the given number.
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

// writeTimeout is the timeout for a single write in a turn. A write continues if
// the turn is cancelled, because its outcome would otherwise be unknown.
const writeTimeout = 20 * time.Second

// journal writes the transcript and the events of a conversation while this node
// holds the lease. It batches partial answers to save transactions, and preserves
// the order of events.
type journal struct {
	e     *Engine
	id    string
	lease func() store.Lease
	// beforeResults is called before the results of calls are appended. It may be
	// nil.
	beforeResults func(ctx context.Context) error
	uses          *usage.SkillCounter // counts the use of skills; may be nil
	meter         *usage.Meter        // counts turns, calls and tokens; may be nil

	mu             sync.Mutex // held while writing; guards the fields below
	read           bool       // whether last and lastMessage are known
	last           int64      // number of the transcript's last step
	lastMessage    int64      // number of the last message in the transcript
	lastBranch     int64      // number of the last input that continued after an earlier step
	pendingMessage int64      // number of the message in the next user step; 0 means none
	pendingSkill   string     // skill that this message names
	broken         error      // first fatal write error; stops all writes
	trace          Trace      // trace of the turn; nil if the turn is not traced

	pendingMu sync.Mutex // locked after mu; guards the fields below
	input     int64      // number of the turn's input; changed only while mu is held
	pending   []eventRow
	size      int // bytes of the text in pending
	wakeup    chan struct{}
}

var _ session.Log = (*journal)(nil)

// readSnapshot returns the state of the conversation at the end of its transcript.
func (j *journal) readSnapshot(ctx context.Context) (*snapshot, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	s, err := j.e.readSnapshot(ctx, j.id)
	if err != nil {
		return nil, fmt.Errorf("read transcript: %w", err)
	}
	j.read, j.last, j.lastMessage, j.lastBranch = true, s.seq(), max(j.lastMessage, s.LastMessage), s.LastBranch
	if j.lastMessage >= j.pendingMessage {
		j.pendingMessage = 0
	}
	return s, nil
}

// Read implements [session.Log]. It does not query the database for steps after
// the last one, because only this node appends while it holds the lease.
func (j *journal) Read(ctx context.Context, after int64) ([]session.Event, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.read && after >= j.last {
		return nil, nil
	}
	steps, err := readSteps(ctx, j.e.db.Events, j.id, after)
	if err != nil {
		return nil, fmt.Errorf("read transcript: %w", err)
	}
	var out []session.Event
	for _, s := range steps {
		out = append(out, s.Event)
	}
	return out, nil
}

// Append implements [session.Log].
func (j *journal) Append(ctx context.Context, events ...*session.Event) error {
	return j.appendWith(ctx, nil, events...)
}

// appendWith appends events in a transaction that calls f first. f may be nil.
func (j *journal) appendWith(ctx context.Context, f func(c *conversationTx) error, events ...*session.Event) error {
	if len(events) == 0 {
		return nil
	}
	if j.beforeResults != nil && hasResult(events) {
		if err := j.beforeResults(ctx); err != nil {
			return err
		}
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	rows, told := make([]store.Event, len(events)), make([]eventRow, len(events))
	said, saying, branch := j.lastMessage, j.pendingMessage, j.lastBranch
	for i, ev := range events {
		ev.Seq = j.last + int64(i) + 1
		ev.SetType()
		s := step{Event: *ev, SkillID: j.uses.StoreID(ev.Loaded), Turn: j.input}
		if s.isUserMessage() && saying > 0 {
			s.Skill, s.Input, said, saying = j.pendingSkill, saying, saying, 0
		}
		if s.Branched != nil {
			branch = j.input
		}
		data, err := json.Marshal(s)
		if err != nil {
			return fmt.Errorf("append to transcript: %w", err)
		}
		rows[i] = store.Event{Kind: ev.Type, Data: data, Created: ev.Time}
		told[i] = eventRow{Event: Event{Type: Step, Input: j.input}, TranscriptSeq: ev.Seq}
	}
	count, spent := j.uses.Count(events), j.meter.Count(events)
	err := j.write(ctx, func(c *conversationTx) error {
		if f != nil {
			if err := f(c); err != nil {
				return err
			}
		}
		c.queueEvents(j.id, j.last, rows)
		if err := errors.Join(c.Usage.Add(ctx, count...), c.Meter.Add(ctx, spent...)); err != nil {
			return err
		}
		return c.publish(ctx, told...)
	})
	if err != nil {
		return fmt.Errorf("append to transcript: %w", err)
	}
	j.last += int64(len(events))
	j.lastMessage, j.pendingMessage, j.lastBranch = said, saying, branch
	j.uses.Apply(events)
	j.meter.Apply(events)
	if slices.ContainsFunc(events, func(e *session.Event) bool { return e.Compacted != nil || e.Branched != nil }) {
		j.e.rejections.forget(j.id)
	}
	if j.trace != nil {
		for _, e := range events {
			j.trace.Step(e)
		}
	}
	return nil
}

// setTrace sets the trace that observes further steps; nil ends tracing.
func (j *journal) setTrace(t Trace) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.trace = t
}

func hasResult(events []*session.Event) bool {
	for _, e := range events {
		if e.Result != nil {
			return true
		}
	}
	return false
}

// write publishes the pending events and then calls f, in a transaction that
// checks the lease. f may be nil. The caller must hold j.mu.
func (j *journal) write(ctx context.Context, f func(c *conversationTx) error) error {
	if j.broken != nil {
		return j.broken
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), writeTimeout)
	defer stop()
	events := j.takePending()
	err := j.e.update(ctx, j.id, func(c *conversationTx) error {
		if err := c.Leases.Check(ctx, j.lease()); errors.Is(err, store.ErrLeaseHeld) {
			return errLeaseLost
		} else if err != nil {
			return err
		}
		if err := c.publish(ctx, events...); err != nil || f == nil {
			return err
		}
		return f(c)
	})
	if err != nil {
		j.restorePending(events)
		if mustHandOver(err) {
			j.broken = err
		}
	}
	return err
}

// mustHandOver reports whether another node must continue the turn, because err
// is a failure of the database or the lease.
func mustHandOver(err error) bool {
	for _, e := range []error{errLeaseLost, store.ErrConflict, store.ErrBusy, store.ErrFull, store.ErrUnavailable, store.ErrNotFound, context.DeadlineExceeded} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// writeError returns the error that stopped all writes, or nil if there is none.
func (j *journal) writeError() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.broken
}

// setInput sets the input that further events belong to.
func (j *journal) setInput(in input) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.pendingMessage, j.pendingSkill = in.seq, in.Skill
	if j.lastMessage >= in.seq {
		j.pendingMessage = 0
	}
	j.pendingMu.Lock()
	defer j.pendingMu.Unlock()
	j.input = in.seq
}

// hasMessage reports whether the transcript contains the message of the given
// input.
func (j *journal) hasMessage(in int64) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.lastMessage >= in
}

// Limits for pending events.
const (
	maxEventText  = 32 << 10 // bytes in one event
	maxPending    = 1 << 20  // bytes; further text is published only with the step
	flushInterval = 50 * time.Millisecond
)

// queueAgentEvent queues an agent event for publishing. It skips events that are
// published as transcript steps.
func (j *journal) queueAgentEvent(a agent.Event) {
	r := eventRow{Event: Event{Text: a.Text}}
	switch a.Type {
	case agent.Text:
		r.Type = Text
	case agent.Thinking:
		r.Type = Thinking
	case agent.ToolCall:
		r.Type, r.Call = ToolCall, a.Call
	case agent.ToolProgress:
		r.Type, r.Call = ToolProgress, a.Call
	case agent.Notice:
		r.Type = Notice
	default:
		return
	}
	j.queueEvent(r)
}

// queueEvent queues an event for the next flush.
func (j *journal) queueEvent(r eventRow) {
	j.pendingMu.Lock()
	defer j.pendingMu.Unlock()
	isText := r.Type == Text || r.Type == Thinking || r.Type == ToolProgress
	if isText && j.size+len(r.Text) > maxPending {
		return
	}
	r.Input = j.input
	j.size += len(r.Text)
	if last := len(j.pending) - 1; isText && r.Type != ToolProgress && last >= 0 && j.pending[last].Type == r.Type && len(j.pending[last].Text)+len(r.Text) <= maxEventText {
		j.pending[last].Text += r.Text
	} else {
		j.pending = append(j.pending, r)
	}
	select {
	case j.wakeup <- struct{}{}:
	default:
	}
}

func (j *journal) takePending() []eventRow {
	j.pendingMu.Lock()
	defer j.pendingMu.Unlock()
	events := j.pending
	j.pending, j.size = nil, 0
	return events
}

func (j *journal) hasPending() bool {
	j.pendingMu.Lock()
	defer j.pendingMu.Unlock()
	return len(j.pending) > 0
}

func (j *journal) restorePending(events []eventRow) {
	j.pendingMu.Lock()
	defer j.pendingMu.Unlock()
	j.pending = append(events, j.pending...)
	for _, w := range events {
		j.size += len(w.Text)
	}
}

// flush publishes pending events until ctx is done: the first one immediately,
// further ones in batches.
func (j *journal) flush(ctx context.Context) {
	wait := time.NewTimer(0)
	defer wait.Stop()
	for {
		select {
		case <-j.wakeup:
		case <-ctx.Done():
			return
		}
		select {
		case <-wait.C:
		case <-ctx.Done():
			return
		}
		j.mu.Lock()
		if j.hasPending() {
			_ = j.write(ctx, nil) // after a failure, the next write publishes them
		}
		j.mu.Unlock()
		wait.Reset(flushInterval)
	}
}
