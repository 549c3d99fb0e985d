// Package llm sends conversations to language models. It defines a
// vendor-neutral request and the events of the answer. Each vendor has a
// subpackage; the agent depends on none of them.
//
// Every request contains the whole conversation, and a conversation only grows
// at its end. Each request therefore begins with the same bytes as the one
// before, so that vendors find them in their caches. Changes during a
// conversation are sent as a separate message ([Notice]), which each vendor's
// package puts where it costs least.
//
// The package reads no environment variables, stores no conversation and calls
// no tools. It never repeats a request after part of its answer was shown.
package llm

import (
	"context"
	"encoding/json"
	"iter"
)

// Model is a language model. It is safe for concurrent use.
type Model interface {
	// Name returns the vendor and the vendor's name for the model, such as
	// "anthropic:NAME".
	Name() string
	// Stream sends a request and yields the events of the answer as they
	// arrive. The last value is a [Done] or an error: a [*CutError] if an event
	// was yielded before, a [*StatusError] if the vendor refused, otherwise the
	// reason why the vendor could not be reached. After ctx ends, the error is
	// or wraps its cause. The stream ends early if its consumer stops. The
	// caller must not change the request until the stream has ended, and may
	// stream it again.
	Stream(ctx context.Context, r *Request) iter.Seq2[Event, error]
}

// Request is a conversation with the options for its next message.
type Request struct {
	// Instructions is the system prompt of the whole conversation.
	Instructions string
	// Tools lists the tools that the model may call. It must not change during
	// a conversation.
	Tools    []Tool
	Messages []Message
	// MaxTokens limits the answer; 0 means the default of the vendor's package.
	MaxTokens int
	// Thinking is the number of tokens that the model may think before it
	// answers, if it can think; 0 disables thinking.
	Thinking int
}

// Tool is a tool that a model may call.
type Tool struct {
	Name        string
	Description string
	InputSchema json.RawMessage // a JSON schema of an object, sent unchanged
}

// Role is the author of a message.
type Role string

// The roles of messages.
const (
	User      Role = "user"
	Assistant Role = "assistant"
	// Notice is a message of the program. Its content applies from here on. It
	// does not come from the user and needs no answer of its own.
	Notice Role = "notice"
)

// Message is one step of a conversation. Tool results are parts of the user
// message that follows the calls.
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

// Thinking is what a model thought before it answered. It is returned unchanged
// to the vendor that produced it and never sent to another.
type Thinking struct {
	Vendor    string // the part of [Model.Name] before the colon
	Text      string
	Signature string // the vendor's signature of Text
	Redacted  string // thinking that the vendor encrypted; opaque
}

// Call is a model's request to call a tool.
type Call struct {
	ID        string
	Name      string
	Arguments string // JSON as the model wrote it; may be invalid
}

// Result is the result of a tool call.
type Result struct {
	Call  string // the ID of the call
	Parts []Part // texts and images
	Error bool   // the call failed
}

func (Text) part()     {}
func (Image) part()    {}
func (Thinking) part() {}
func (Call) part()     {}
func (Result) part()   {}

// Event is an event of a streamed answer: [TextDelta], [ThinkingDelta] or
// [CallDelta], and finally [Done].
type Event interface{ event() }

// TextDelta is the next piece of the answer's text.
type TextDelta string

// ThinkingDelta is the next piece of the model's thinking.
type ThinkingDelta string

// CallDelta is the next piece of a tool call. The first piece of each call has
// its ID and name.
type CallDelta struct {
	Index     int // position among the calls of the answer
	ID, Name  string
	Arguments string // the next piece of the arguments
}

// Done is the last event and holds the whole answer.
type Done struct{ Answer }

func (TextDelta) event()     {}
func (ThinkingDelta) event() {}
func (CallDelta) event()     {}
func (Done) event()          {}

// Answer is a message of a model with its token usage.
type Answer struct {
	Message Message
	Stop    Stop
	Usage   Usage
	// Model is the model that answered, as the vendor reports it; "" if it does
	// not.
	Model string
}

// Stop is the reason why an answer ended.
type Stop string

// The reasons why answers end.
const (
	StopEnd    Stop = "end"    // the model is done
	StopTools  Stop = "tools"  // the model waits for the results of its calls
	StopLength Stop = "length" // a token limit was reached; the last call may be truncated and must not be made
	StopRefuse Stop = "refuse" // the vendor or the model refused
	StopPause  Stop = "pause"  // the vendor wants the same conversation again to continue
)

// Calls returns the calls of the answer that may be made. It returns none if
// the answer is incomplete, because a call that looks whole may be truncated.
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

// Words returns the concatenated text parts of a message.
func (m *Message) Words() string {
	var out string
	for _, p := range m.Parts {
		if t, ok := p.(Text); ok {
			out += string(t)
		}
	}
	return out
}

// Ask streams a request to its end and returns the answer. It passes every
// event except [Done] to tell, which may be nil.
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
