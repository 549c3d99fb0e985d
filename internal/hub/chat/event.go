package chat

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/loadout-dev/loadout/internal/approval"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/llm"
	"github.com/loadout-dev/loadout/session"
)

// Type identifies what an event reports.
type Type string

// The event types.
const (
	MessageReceived   Type = "said"     // a message or command was added to the inbox
	TurnStarted       Type = "begun"    // the turn of the input started
	TurnResumed       Type = "resumed"  // another node continues the turn; discard partial answers since the last step
	TurnEnded         Type = "ended"    // the turn ended
	Step              Type = "step"     // a step was added to the transcript
	Text              Type = "text"     // part of an answer; the step contains the whole answer
	Thinking          Type = "thinking" // part of the model's thinking
	ToolCall          Type = "tool_call"
	ToolProgress      Type = "tool_progress"
	Notice            Type = "notice" // a notice for the user
	ApprovalRequested Type = "ask"    // a user or client must answer a request
	ApprovalResolved  Type = "answered"
	TitleChanged      Type = "title" // the user or a model gave the conversation the title in Text
)

// Event is an entry in a conversation's event stream. Its type determines which
// fields are set. In its JSON form, fields may be added but are never renamed.
type Event struct {
	Seq  int64     `json:"seq"` // starts at 1 and has no gaps
	Time time.Time `json:"time"`
	Type Type      `json:"type"`
	// Input is the number of the message or command that the event belongs to.
	Input int64 `json:"input,omitempty"`
	// Kind is the kind of the input. It is set on [MessageReceived].
	Kind InputKind `json:"kind,omitempty"`
	Text string    `json:"text,omitempty"`
	// Code is the kind of a [Notice], if it has one.
	Code NoticeCode `json:"code,omitempty"`
	// Skill is the skill that a message names, or that a command loads or
	// unloads.
	Skill string `json:"skill,omitempty"`
	// Images are the images of a message, without their content; see
	// [Engine.ReadImage].
	Images []llm.Image `json:"images,omitempty"`
	// After is the step after which a message or command continues the
	// conversation, on another branch.
	After           *int64            `json:"after,omitempty"`
	Step            *session.Event    `json:"step,omitempty"`
	Call            *llm.Call         `json:"call,omitempty"`
	ApprovalRequest *approval.Request `json:"ask,omitempty"`
	// Answer describes how an approval request was resolved. It does not include
	// the content of the answer.
	Answer *Resolution `json:"answer,omitempty"`
	// Reason is the reason why a turn ended. If the turn failed, Text describes
	// the failure.
	Reason Reason `json:"reason,omitempty"`
	// Loaded is the result of a load command. Unloaded lists the skills that an
	// unload command removed.
	Loaded   *Loaded  `json:"loaded,omitempty"`
	Unloaded []string `json:"unloaded,omitempty"`
	// NeedsResponse is set if the watching client must answer this request.
	NeedsResponse bool `json:"-"`
}

// NoticeCode is the kind of a notice.
type NoticeCode string

// Codes of notices.
const (
	FilesMissing   NoticeCode = "files_missing"   // the version of a file on a branch was dropped
	ImagesRejected NoticeCode = "images_rejected" // the model's server rejected images
)

// Reason is the reason why a turn ended.
type Reason string

// Reasons why a turn ended.
const (
	Done            Reason = "done"      // the model or the command finished
	WaitingForInput Reason = "wait"      // the turn needs input from the next message
	Cancelled       Reason = "cancelled" // a user cancelled the turn
	Failed          Reason = "failed"    // the turn failed
)

// Resolution describes how an approval request was resolved.
type Resolution struct {
	ID      string           `json:"id"`
	Outcome approval.Outcome `json:"outcome"`
}

// eventRow is the stored form of an event. For a step, it contains only the
// step's number in the transcript, so that the step itself is stored only once.
type eventRow struct {
	Event
	TranscriptSeq int64 `json:"of,omitempty"`
}

// inboxStream and eventStream return the names of a conversation's streams. The
// name of the transcript stream is the ID of the conversation.
func inboxStream(id string) string { return id + "/in" }
func eventStream(id string) string { return id + "/out" }

// eventPage is the maximum number of events that are read at once. It is small,
// because a step may contain images.
const eventPage = 32

// readEventPage returns a page of the events after the given number, with their
// steps.
func (e *Engine) readEventPage(ctx context.Context, id string, after int64) ([]Event, error) {
	rows, err := e.db.Events.Read(ctx, eventStream(id), after, eventPage)
	if err != nil {
		return nil, err
	}
	return decodeEvents(id, rows, func(after int64, limit int) ([]store.Event, error) { return e.db.Events.Read(ctx, id, after, limit) })
}

// decodeEvents returns events with their steps. readSteps returns steps of the
// transcript as [store.Events.Read] does; decodeEvents calls it at most once.
func decodeEvents(id string, rows []store.Event, readSteps func(after int64, limit int) ([]store.Event, error)) ([]Event, error) {
	out := make([]Event, len(rows))
	first, last := int64(0), int64(0) // range of the steps
	of := make([]int64, len(rows))
	for i, r := range rows {
		var kept eventRow
		if err := json.Unmarshal(r.Data, &kept); err != nil {
			return nil, fmt.Errorf("decode event %d of conversation %q: %w", r.Seq, id, store.ErrCorrupt)
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
	steps, err := readSteps(first-1, int(last-first+1))
	if err != nil {
		return nil, err
	}
	for i := range out {
		if of[i] == 0 {
			continue
		}
		at := int(of[i] - first)
		if at < 0 || at >= len(steps) || steps[at].Seq != of[i] {
			return nil, fmt.Errorf("read step %d of conversation %q: %w", of[i], id, store.ErrNotFound)
		}
		step, err := readStep(steps[at])
		if err != nil {
			return nil, err
		}
		out[i].Step = redactStart(&step.Event)
	}
	return out, nil
}

// redactStart returns a start event without the instructions and the folder,
// which an agent's users are not allowed to see.
func redactStart(e *session.Event) *session.Event {
	if e.Start != nil {
		begun := *e.Start
		begun.Instructions, begun.Folder = "", ""
		e.Start = &begun
	}
	return e
}
