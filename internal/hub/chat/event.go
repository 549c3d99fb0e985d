package chat

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/loadout-dev/loadout/ask"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/session"
)

// Type is the kind of an event.
type Type string

// The kinds of events.
const (
	Said     Type = "said"     // a message or a command came, and waits for its turn
	Begun    Type = "begun"    // its turn began
	Resumed  Type = "resumed"  // another node goes on with it; words of an answer that came since the last step are void
	Ended    Type = "ended"    // its turn is over
	Step     Type = "step"     // the transcript has one step more
	Text     Type = "text"     // words of an answer, as they come; the step has them all
	Thinking Type = "thinking" // what the model thinks, likewise
	Calling  Type = "tool_call"
	Progress Type = "tool_progress"
	Notice   Type = "notice" // something that the person should know
	Asked    Type = "ask"    // a person or a client is asked
	Answered Type = "answered"
)

// Event is something that is told of a conversation. The fields that go with its type
// are set. Its form as JSON is stable: fields are added and never renamed.
type Event struct {
	Seq  int64     `json:"seq"` // from 1, none left out
	Time time.Time `json:"time"`
	Type Type      `json:"type"`
	// Input is the number of the message or command that it is about.
	Input int64 `json:"input,omitempty"`
	// Kind is that of the input, where it was said.
	Kind InputKind `json:"kind,omitempty"`
	Text string    `json:"text,omitempty"`
	// Skill is the one that a message invokes, or a command loads or unloads.
	Skill string         `json:"skill,omitempty"`
	Step  *session.Event `json:"step,omitempty"`
	Call  *session.Call  `json:"call,omitempty"`
	Ask   *ask.Ask       `json:"ask,omitempty"`
	// Answer says how a question was settled, without what was said.
	Answer *Settled `json:"answer,omitempty"`
	// Reason is why a turn is over: see [Reason]. Text then says what went wrong.
	Reason Reason `json:"reason,omitempty"`
	// Loaded is what a load by hand came to, and Unloaded who went out of force with
	// an unload.
	Loaded   *Loaded  `json:"loaded,omitempty"`
	Unloaded []string `json:"unloaded,omitempty"`
	// Wanted says that it is a request which waits for the client that attends.
	Wanted bool `json:"-"`
}

// Reason is why a turn is over.
type Reason string

// Why turns are over.
const (
	Done      Reason = "done"      // the model, or the command, is done
	Waits     Reason = "wait"      // what is wanted comes with the next message
	Cancelled Reason = "cancelled" // somebody cancelled it
	Failed    Reason = "failed"    // it ended before its time
)

// Settled is how a question was settled.
type Settled struct {
	ID      string      `json:"id"`
	Outcome ask.Outcome `json:"outcome"`
}

// row is an event as it is kept: of a step its number in the transcript, so that it
// is kept once.
type row struct {
	Event
	Of int64 `json:"of,omitempty"`
}

// The streams of a conversation; its transcript is the one that has its id.
func inboxOf(id string) string { return id + "/in" }
func toldOf(id string) string  { return id + "/out" }

// change is a transaction in a conversation.
type change struct {
	*store.Tx
	id    string
	grown map[string]int64 // streams that it added to
}

// errLost says that the conversation is not this node's any more.
var errLost = errors.New("another node goes on with the conversation")

// commits bounds how often a change is tried where others add to the same stream.
const commits = 20

// change makes a change, again where another one added to a stream at the same moment,
// and then wakes who waits for the streams that it added to. f has no effects but those
// on its argument.
func (e *Engine) change(ctx context.Context, id string, f func(c *change) error) error {
	for try := 1; ; try++ {
		c := &change{id: id}
		err := e.db.Tx(ctx, func(tx *store.Tx) error {
			c.Tx, c.grown = tx, map[string]int64{}
			return f(c)
		})
		if errors.Is(err, store.ErrConflict) && try < commits {
			continue
		}
		if err != nil {
			return err
		}
		for stream, seq := range c.grown {
			e.opts.Bus.Publish(stream, seq)
		}
		return nil
	}
}

// add adds to a stream that others add to as well, and returns the number of the last.
func (c *change) add(ctx context.Context, stream string, rows ...store.Event) (int64, error) {
	last, ok := c.grown[stream]
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
	c.grown[stream] = last
	return last, nil
}

// tell adds to what is told of the conversation.
func (c *change) tell(ctx context.Context, told ...row) error {
	if len(told) == 0 {
		return nil
	}
	rows := make([]store.Event, len(told))
	for i, r := range told {
		data, err := json.Marshal(r)
		if err != nil {
			return fmt.Errorf("tell of a conversation: %w", err)
		}
		rows[i] = store.Event{Kind: string(r.Type), Data: data}
	}
	_, err := c.add(ctx, toldOf(c.id), rows...)
	return err
}

// readTold returns what is told of a conversation after a number, with its steps, a
// page at a time.
func (e *Engine) readTold(ctx context.Context, id string, after int64) ([]Event, error) {
	const page = 32 // a step may have pictures
	rows, err := e.db.Events.Read(ctx, toldOf(id), after, page)
	if err != nil {
		return nil, err
	}
	out := make([]Event, len(rows))
	first, last := int64(0), int64(0) // steps of the page
	of := make([]int64, len(rows))
	for i, r := range rows {
		var kept row
		if err := json.Unmarshal(r.Data, &kept); err != nil {
			return nil, fmt.Errorf("event %d of conversation %q: %w", r.Seq, id, store.ErrCorrupt)
		}
		out[i], of[i] = kept.Event, kept.Of
		out[i].Seq, out[i].Time, out[i].Type = r.Seq, r.Created, Type(r.Kind)
		if kept.Of > 0 {
			if first == 0 {
				first = kept.Of
			}
			last = kept.Of
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
		out[i].Step = public(&step.Event)
	}
	return out, nil
}

// public is a step without what a model is told first, which is its author's.
func public(e *session.Event) *session.Event {
	if e.Begun != nil {
		begun := *e.Begun
		begun.Instructions, begun.Folder = "", ""
		e.Begun = &begun
	}
	return e
}
