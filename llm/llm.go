// Package llm is how a conversation reaches a language model: one request in neutral
// form, and a stream of what comes back. Each vendor has a package below this one;
// the agent knows none of them.
//
// A conversation is sent whole each time, and only ever added to: what was sent
// before is the beginning of what is sent next, byte for byte, so that vendors find
// it in their cache. What changes in the middle of a conversation is said in a
// message of its own ([Notice]), and each vendor puts it where it costs least.
//
// The package reads no environment, keeps no conversation, calls no tool and
// repeats nothing of which something was shown.
package llm

import (
	"context"
	"encoding/json"
	"iter"
)

// Model is a language model. It is safe for concurrent use.
type Model interface {
	// Name is the vendor and the vendor's name of the model, as "anthropic:NAME".
	Name() string
	// Stream sends a request, and yields what comes back as it comes. The last value
	// is a [Done], or an error: [*CutError] where an event was yielded before,
	// [*StatusError] where the vendor refused, else what kept it from being reached.
	// After ctx has ended the error is or wraps its cause. It ends early where its
	// consumer stops. The request must not be changed before it has ended; it may be
	// streamed again.
	Stream(ctx context.Context, r *Request) iter.Seq2[Event, error]
}

// Request is a conversation, and what is wanted of its next message.
type Request struct {
	// Instructions are what the model is told first, for the whole conversation.
	Instructions string
	// Tools are those it may call. They do not change in a conversation.
	Tools    []Tool
	Messages []Message
	// MaxTokens bounds the answer; 0 is what the vendor's package says.
	MaxTokens int
	// Thinking is how many tokens the model may think before it answers, where it
	// can; 0 is none.
	Thinking int
}

// Tool is a tool that a model may call.
type Tool struct {
	Name        string
	Description string
	InputSchema json.RawMessage // a JSON schema of an object, sent as it is
}

// Role says whose message it is.
type Role string

// The roles of messages.
const (
	User      Role = "user"
	Assistant Role = "assistant"
	// Notice is of the program: from here on, what it says is so. It is no person's
	// and no answer is expected to it alone.
	Notice Role = "notice"
)

// Message is one step of a conversation. Results of tools are parts of the user's
// message after the calls.
type Message struct {
	Role  Role
	Parts []Part
}

// Part is a part of a message: [Text], [Image], [Thinking], [Call] or [Result].
type Part interface{ part() }

// Text is words.
type Text string

// Image is a picture, of a user or of a tool's result.
type Image struct {
	MIMEType string
	Data     []byte
}

// Thinking is what a model thought before it answered. It goes back to the vendor
// that it came from, as it was; another one never sees it.
type Thinking struct {
	Vendor    string // the part of [Model.Name] before the colon
	Text      string
	Signature string // of the vendor
	Redacted  string // what the vendor keeps from us, opaque
}

// Call asks for a tool to be called.
type Call struct {
	ID        string
	Name      string
	Arguments string // JSON as the model wrote it, which may be none
}

// Result is what came of a call.
type Result struct {
	Call  string // the ID of the call
	Parts []Part // texts and images
	Error bool   // it failed
}

func (Text) part()     {}
func (Image) part()    {}
func (Thinking) part() {}
func (Call) part()     {}
func (Result) part()   {}

// Event is something that comes back: [TextDelta], [ThinkingDelta], [CallDelta], and
// in the end [Done].
type Event interface{ event() }

// TextDelta is more of the answer.
type TextDelta string

// ThinkingDelta is more of what the model thinks.
type ThinkingDelta string

// CallDelta is more of a call: the first one of each has its ID and name.
type CallDelta struct {
	Index     int // among the calls of the answer
	ID, Name  string
	Arguments string // the next piece of them
}

// Done is the whole answer.
type Done struct{ Answer }

func (TextDelta) event()     {}
func (ThinkingDelta) event() {}
func (CallDelta) event()     {}
func (Done) event()          {}

// Answer is a message of a model, and what it cost.
type Answer struct {
	Message Message
	Stop    Stop
	Usage   Usage
	// Model is what the vendor says has answered; "" says nothing.
	Model string
}

// Stop is why an answer ended.
type Stop string

// Why answers end.
const (
	StopEnd    Stop = "end"    // the model is done
	StopTools  Stop = "tools"  // it waits for results of its calls
	StopLength Stop = "length" // it was cut by a limit of tokens: its last call may be cut too, and must not be made
	StopRefuse Stop = "refuse" // the vendor or the model refuses
	StopPause  Stop = "pause"  // the vendor wants to be asked to go on with the same conversation
)

// Calls are the calls of an answer that may be made: none where it did not come to
// its end, as what looks whole may not be.
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

// Words are the texts of a message as one.
func (m *Message) Words() string {
	var out string
	for _, p := range m.Parts {
		if t, ok := p.(Text); ok {
			out += string(t)
		}
	}
	return out
}

// Ask streams a request to its end, giving each event before the last to tell,
// which may be nil.
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
