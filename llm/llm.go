// Package llm sends conversations to language models. It defines a
// vendor-neutral request and the events of an answer. Each vendor has a
// subpackage, on which the agent does not depend.
//
// Every request contains the whole conversation, and a conversation only grows
// at its end. So each request starts with the same bytes as the previous one,
// and vendors can cache them. Changes during a conversation are sent as
// separate messages ([Notice]) at the position where they cost least.
//
// The package reads no environment variables, stores no conversation and calls
// no tools. It never repeats a request after part of the answer was shown.
package llm

import (
	"context"
	"encoding/json"
	"iter"
)

// Model is a language model. It must be safe for concurrent use.
type Model interface {
	// Name returns the vendor and the vendor's name for the model, such as
	// "anthropic:NAME".
	Name() string
	// Stream sends a request and yields the events of the answer as they are
	// received. The last value is a [Done] or an error: a [*CutError] if an
	// event was yielded before, a [*StatusError] if the vendor rejected the
	// request, otherwise the reason why the vendor could not be reached. If ctx
	// is done, the error is or wraps the cause of ctx. The consumer may stop at
	// any time. The caller must not change the request before the stream has
	// ended, and may use it again.
	Stream(ctx context.Context, r *Request) iter.Seq2[Event, error]
}

// Request is a conversation, with options for the next answer.
type Request struct {
	// Instructions is the system prompt of the whole conversation.
	Instructions string
	// Tools lists the tools that the model may call. It must not change during
	// a conversation.
	Tools    []Tool
	Messages []Message
	// MaxTokens limits the answer; 0 means the default of the vendor's package.
	MaxTokens int
	// Thinking is the number of tokens that the model may use to think before
	// it answers; 0 disables thinking. Models that cannot think ignore it.
	Thinking int
}

// Tool is a tool that the model may call.
type Tool struct {
	Name        string
	Description string
	InputSchema json.RawMessage // JSON schema of an object, sent unchanged
}

// Role is the author of a message.
type Role string

// Roles of messages.
const (
	User      Role = "user"
	Assistant Role = "assistant"
	// Notice is the role of messages from the program. Their content applies
	// from this position on. They do not come from the user and need no answer.
	Notice Role = "notice"
)

// Message is a message of a conversation. The results of tool calls are parts
// of the user message after the calls.
type Message struct {
	Role  Role
	Parts []Part
}

// Part is a part of a message: [Text], [Image], [Thinking], [Call] or [Result].
type Part interface{ part() }

// Text is a text part.
type Text string

// Image is an image from a user or a tool result.
type Image struct {
	MIMEType string
	Data     []byte
}

// Thinking is a model's thinking before an answer. It is sent back unchanged to
// the vendor that produced it, and never to another vendor.
type Thinking struct {
	Vendor    string // part of [Model.Name] before the colon
	Text      string
	Signature string // signature of Text by the vendor
	Redacted  string // thinking that the vendor encrypted
}

// Call is a model's request to call a tool.
type Call struct {
	ID        string
	Name      string
	Arguments string // JSON as the model wrote it; may be invalid
}

// Result is the result of a tool call.
type Result struct {
	Call  string // ID of the call
	Parts []Part // texts and images
	Error bool   // whether the call failed
}

func (Text) part()     {}
func (Image) part()    {}
func (Thinking) part() {}
func (Call) part()     {}
func (Result) part()   {}

// Event is an event of a streamed answer: [TextDelta], [ThinkingDelta] or
// [CallDelta], and [Done] at the end.
type Event interface{ event() }

// TextDelta is the next piece of the answer's text.
type TextDelta string

// ThinkingDelta is the next piece of the model's thinking.
type ThinkingDelta string

// CallDelta is the next piece of a tool call. The first piece of each call
// contains its ID and name.
type CallDelta struct {
	Index     int // position among the calls of the answer
	ID, Name  string
	Arguments string // next piece of the arguments
}

// Done is the last event. It holds the complete answer.
type Done struct{ Answer }

func (TextDelta) event()     {}
func (ThinkingDelta) event() {}
func (CallDelta) event()     {}
func (Done) event()          {}

// Answer is a message from a model, with its token usage.
type Answer struct {
	Message Message
	Stop    Stop
	Usage   Usage
	// Model is the model that answered, as reported by the vendor, or "".
	Model string
}

// Stop is the reason why an answer ended.
type Stop string

// Reasons why an answer ended.
const (
	StopEnd    Stop = "end"    // the answer is complete
	StopTools  Stop = "tools"  // the model waits for the results of its calls
	StopLength Stop = "length" // a token limit was reached; the last call may be truncated and must not be made
	StopRefuse Stop = "refuse" // the vendor or the model refused to answer
	StopPause  Stop = "pause"  // the vendor continues if it receives the same conversation again
)

// Calls returns the calls that may be made. If the answer is incomplete, there
// are none, because a call that looks complete may be truncated.
func (a *Answer) Calls() []Call {
	if a.Stop != StopTools && a.Stop != StopEnd {
		return nil
	}
	var out []Call
	for _, p := range a.Message.Parts {
		if c, ok := p.(Call); ok {
			out = append(out, c)
		}
	}
	return out
}

// Words returns the text parts of a message, joined.
func (m *Message) Words() string {
	var out string
	for _, p := range m.Parts {
		if t, ok := p.(Text); ok {
			out += string(t)
		}
	}
	return out
}

// Ask sends a request and returns the answer when it is complete. It passes
// each event except [Done] to tell, which may be nil.
func Ask(ctx context.Context, m Model, r *Request, tell func(Event)) (*Answer, error) {
	for e, err := range m.Stream(ctx, r) {
		if err != nil {
			return nil, err
		}
		if done, ok := e.(Done); ok {
			return &done.Answer, nil
		}
		if tell != nil {
			tell(e)
		}
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return nil, &CutError{}
}
