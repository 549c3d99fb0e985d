package chat

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/loadout-dev/loadout/internal/approval"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/session"
)

// Type is the type of an event.
type Type string

// The types of events.
const (
	MessageReceived   Type = "said"     // a message or command arrived and waits for its turn
	TurnStarted       Type = "begun"    // its turn started
	TurnResumed       Type = "resumed"  // another node continues the turn; partial answers since the last step are void
	TurnEnded         Type = "ended"    // its turn ended
	Step              Type = "step"     // the transcript has one more step
	Text              Type = "text"     // part of an answer; the step has the whole
	Thinking          Type = "thinking" // part of the model's thinking
	ToolCall          Type = "tool_call"
	ToolProgress      Type = "tool_progress"
	Notice            Type = "notice" // a notice for the user
	ApprovalRequested Type = "ask"    // a user or a client is asked
	ApprovalResolved  Type = "answered"
)

// Event is an event of a conversation. The fields of its type are set. Its JSON
// form is stable: fields are added and never renamed.
type Event struct {
	Seq  int64     `json:"seq"` // from 1, without gaps
	Time time.Time `json:"time"`
	Type Type      `json:"type"`
	// Input is the number of the message or command that the event is about.
	Input int64 `json:"input,omitempty"`
	// Kind is the kind of the input, set on [MessageReceived].
	Kind InputKind `json:"kind,omitempty"`
	Text string    `json:"text,omitempty"`
	// Skill is the skill that a message invokes or a command loads or unloads.
	Skill           string            `json:"skill,omitempty"`
	Step            *session.Event    `json:"step,omitempty"`
	Call            *session.Call     `json:"call,omitempty"`
	ApprovalRequest *approval.Request `json:"ask,omitempty"`
	// Answer is how an approval request was resolved, without the content of
	// the answer.
	Answer *Settled `json:"answer,omitempty"`
	// Reason is why a turn ended: see [Reason]. Text then describes the
	// failure.
	Reason Reason `json:"reason,omitempty"`
	// Loaded is the result of a load command, and Unloaded the skills that an
	// unload command removed.
	Loaded   *Loaded  `json:"loaded,omitempty"`
	Unloaded []string `json:"unloaded,omitempty"`
	// NeedsResponse reports that the event is a request that the watching
	// client must answer.
	NeedsResponse bool `json:"-"`
}

// Reason is why a turn ended.
type Reason string

// The reasons why turns end.
const (
	Done            Reason = "done"      // the model or the command finished
	WaitingForInput Reason = "wait"      // the turn needs input from the next message
	Cancelled       Reason = "cancelled" // a user cancelled it
	Failed          Reason = "failed"    // it failed
)

// Settled is the resolution of an approval request.
type Settled struct {
	ID      string           `json:"id"`
	Outcome approval.Outcome `json:"outcome"`
}

// eventRow is a stored event. A step holds only its number in the transcript,
// so that it is stored once.
type eventRow struct {
	Event
	TranscriptSeq int64 `json:"of,omitempty"`
}

// The streams of a conversation. The transcript is the stream named by its ID.
func inboxStream(id string) string { return id + "/in" }
func eventStream(id string) string { return id + "/out" }

// conversationTx is a transaction in a conversation.
type conversationTx struct {
	*store.Tx
	id       string
	appended map[string]int64 // streams that it appended to, with their last numbers
}

// errLeaseLost reports that this node no longer has the conversation.
var errLeaseLost = errors.New("another node continues the conversation")

// maxCommitAttempts limits retries after conflicting appends to a stream.
const maxCommitAttempts = 20

// update runs f in a transaction and then wakes the listeners of the streams
// that it appended to. It retries if another writer appended to a stream at the
// same time, so f must have no effects outside the transaction.
func (e *Engine) update(ctx context.Context, id string, f func(c *conversationTx) error) error {
	for try := 1; ; try++ {
		c := &conversationTx{id: id}
		err := e.db.Tx(ctx, func(tx *store.Tx) error {
			c.Tx, c.appended = tx, map[string]int64{}
			return f(c)
		})
		if errors.Is(err, store.ErrConflict) && try < maxCommitAttempts {
			continue
		}
		if err != nil {
			return err
		}
		for stream, seq := range c.appended {
			e.opts.Bus.Publish(stream, seq)
		}
		return nil
	}
}

// appendEvents appends to a stream with concurrent writers and returns the last
// number.
func (c *conversationTx) appendEvents(ctx context.Context, stream string, rows ...store.Event) (int64, error) {
	last, ok := c.appended[stream]
	if !ok {
		var err error
		if last, err = c.Events.Last(ctx, stream); err != nil {
			return 0, err
		}
	}
	for len(rows) > 0 {
		n := min(len(rows), store.MaxAppend)
		var err error
		if last, err = c.Events.Append(ctx, stream, last, rows[:n]...); err != nil {
			return 0, err
		}
		rows = rows[n:]
	}
	c.appended[stream] = last
	return last, nil
}

// publish appends events to the event stream of the conversation.
func (c *conversationTx) publish(ctx context.Context, told ...eventRow) error {
	if len(told) == 0 {
		return nil
	}
	rows := make([]store.Event, len(told))
	for i, r := range told {
		data, err := json.Marshal(r)
		if err != nil {
			return fmt.Errorf("publish events: %w", err)
		}
		rows[i] = store.Event{Kind: string(r.Type), Data: data}
	}
	_, err := c.appendEvents(ctx, eventStream(c.id), rows...)
	return err
}

// readEventPage returns a page of events after a number, including their steps.
func (e *Engine) readEventPage(ctx context.Context, id string, after int64) ([]Event, error) {
	const page = 32 // a step may contain images
	rows, err := e.db.Events.Read(ctx, eventStream(id), after, page)
	if err != nil {
		return nil, err
	}
	out := make([]Event, len(rows))
	first, last := int64(0), int64(0) // range of the steps
	of := make([]int64, len(rows))
	for i, r := range rows {
		var kept eventRow
		if err := json.Unmarshal(r.Data, &kept); err != nil {
			return nil, fmt.Errorf("event %d of conversation %q: %w", r.Seq, id, store.ErrCorrupt)
		}
		out[i], of[i] = kept.Event, kept.TranscriptSeq
		out[i].Seq, out[i].Time, out[i].Type = r.Seq, r.Created, Type(r.Kind)
		if kept.TranscriptSeq > 0 {
			if first == 0 {
				first = kept.TranscriptSeq
			}
			last = kept.TranscriptSeq
		}
	}
	if first == 0 {
		return out, nil
	}
	steps, err := e.db.Events.Read(ctx, id, first-1, int(last-first+1))
	if err != nil {
		return nil, err
	}
	for i := range out {
		if of[i] == 0 {
			continue
		}
		at := int(of[i] - first)
		if at < 0 || at >= len(steps) {
			return nil, fmt.Errorf("step %d of conversation %q: %w", of[i], id, store.ErrNotFound)
		}
		step, err := readStep(steps[at])
		if err != nil {
			return nil, err
		}
		out[i].Step = redactStart(&step.Event)
	}
	return out, nil
}

// redactStart removes the instructions and the folder from a start event. They
// belong to the author of the agent.
func redactStart(e *session.Event) *session.Event {
	if e.Start != nil {
		begun := *e.Start
		begun.Instructions, begun.Folder = "", ""
		e.Start = &begun
	}
	return e
}
