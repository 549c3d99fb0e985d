// Package llm sends conversations to language models. It defines a
// vendor-neutral request and the events of a streamed response. Each vendor has
// its own subpackage, on which the agent does not depend.
//
// Every request contains the whole conversation, and messages are only added at
// its end. Each request therefore starts with the same bytes as the previous
// one, and vendors can cache them. Changes during a conversation are sent as
// separate messages ([Notice]), at the position where they cost least.
//
// The package reads no environment variables, stores no conversations and calls
// no tools. It never retries a request after part of the response was yielded.
package llm

import (
	"context"
	"encoding/json"
	"iter"
)

// Model is a language model. Implementations must be safe for concurrent use.
// Package loadouttest contains tests for implementations.
type Model interface {
	// Name returns the vendor and the vendor's name for the model, such as
	// "anthropic:NAME". The vendor contains no colon.
	Name() string
	// Stream yields the events of a response as they are received. Each
	// iteration sends the request again; Stream itself sends nothing.
	//
	// The last value is a [Done] or an error. The error is a [*CutError] if an
	// event was already yielded, and a [*StatusError] if the vendor rejected
	// the request. Otherwise the request is invalid, or the vendor could not
	// be reached. If ctx is done, the error is or wraps the cause of ctx.
	//
	// The caller may stop iterating at any time. It must not modify the request
	// before the stream has ended, and may reuse it afterwards.
	Stream(ctx context.Context, r *Request) iter.Seq2[Event, error]
}

// Request is a conversation with options for the next response. A model only
// reads it, so requests may share messages and tools.
type Request struct {
	// Instructions is the conversation's system prompt; "" sends none.
	Instructions string
	// Tools lists the tools that the model may call. If it changes during a
	// conversation, vendors cannot use their cache.
	Tools []Tool
	// Messages is the whole conversation, oldest first. Each call needs a
	// result in the next user message.
	Messages []Message
	// MaxTokens is the maximum number of tokens in the response; 0 means the
	// default of the vendor's package.
	MaxTokens int
	// Thinking is the number of tokens that the model may use for thinking
	// before it responds; 0 requests no thinking. It is approximate: some
	// vendors accept only effort levels. Models without thinking ignore it.
	Thinking int
}

// Tool describes a tool to a model.
type Tool struct {
	// Name is unique in a request. All vendors accept 1 to 64 of a-z, A-Z, 0-9,
	// _ and -.
	Name        string
	Description string
	// InputSchema is the JSON Schema of an object; nil means an object without
	// declared properties. It is sent unchanged, but "type" may be added.
	InputSchema json.RawMessage
}

// Role identifies the author of a message.
type Role string

// Message roles.
const (
	// User is the role of messages from the user and of tool results.
	User Role = "user"
	// Assistant is the role of the model's own messages.
	Assistant Role = "assistant"
	// Notice is the role of messages from the program. They apply from their
	// position on. They do not come from the user and need no response. Only
	// their text is sent.
	Notice Role = "notice"
)

// Message is a message in a conversation. The results of tool calls are parts
// of the user message that follows the calls. When a response is sent back to
// the model, the parts of [Answer.Message] must be unchanged and in the same
// order.
type Message struct {
	Role  Role
	Parts []Part
}

// Part is a part of a message: [Text], [Image], [Thinking], [Call] or [Result].
// Other packages cannot implement it.
type Part interface{ part() }

// Text is the text of a message or a tool result.
type Text string

// Image is an image from a user or a tool result. This package limits neither
// its type nor its size; vendors do.
type Image struct {
	MIMEType string `json:"mime_type"`      // such as "image/png"
	Data     []byte `json:"data,omitempty"` // not base64-encoded; must not be modified
	// Name is the path of the image in the working directory of the conversation,
	// or "" if it is not a file.
	Name string `json:"name,omitempty"`
	// Ref identifies the content if a program stores it elsewhere. Data is then
	// nil, and the program's [Model] must read it before it sends a request.
	Ref string `json:"ref,omitempty"`
}

// Thinking is a model's thinking before its response. It is sent back unchanged
// to the vendor that produced it, and never to another vendor.
type Thinking struct {
	Vendor    string `json:"vendor"` // part of [Model.Name] before the colon
	Text      string `json:"text,omitempty"`
	Signature string `json:"signature,omitempty"` // the vendor's signature of Text
	Redacted  string `json:"redacted,omitempty"`  // thinking encrypted by the vendor
}

// Call is a model's request to call a tool. Its JSON form, like those of
// [Thinking], [Image] and [Usage], is part of the stored form of a conversation:
// see package session.
type Call struct {
	ID        string `json:"id"`        // identifies the call in its response; vendors may reuse it later
	Name      string `json:"name"`      // a [Tool.Name]; may be one that was not in the request
	Arguments string `json:"arguments"` // JSON as the model wrote it; may be invalid
}

// Result is the result of a [Call], which is sent back to the model.
type Result struct {
	Call  string // ID of the call
	Parts []Part // each a [Text] or an [Image]
	Error bool   // whether the call failed
}

func (Text) part()     {}
func (Image) part()    {}
func (Thinking) part() {}
func (Call) part()     {}
func (Result) part()   {}

// Event is an event of a streamed response: [TextDelta], [ThinkingDelta] or
// [CallDelta], and [Done] at the end. Other packages cannot implement it.
type Event interface{ event() }

// TextDelta is the next piece of the response text.
type TextDelta string

// ThinkingDelta is the next piece of the model's thinking.
type ThinkingDelta string

// CallDelta is the next piece of a tool call. The first piece of each call
// contains its ID and name.
type CallDelta struct {
	Index     int    // position among the calls in the response, from 0
	ID, Name  string // "" except in the first piece
	Arguments string // next piece of the arguments
}

// Done is the last event of a stream without an error. It holds the complete
// response.
type Done struct{ Answer }

func (TextDelta) event()     {}
func (ThinkingDelta) event() {}
func (CallDelta) event()     {}
func (Done) event()          {}

// Answer is a model's response, with its token usage.
type Answer struct {
	Message Message // its role is [Assistant]; it may have no parts
	Stop    Stop    // "" if the response is incomplete
	Usage   Usage   // zero if the vendor did not report it
	// Model is the model that responded, as reported by the vendor; may be "".
	Model string
}

// Stop is the reason why a response ended. The zero value means that it did not
// end normally.
type Stop string

// Stop reasons.
const (
	StopEnd    Stop = "end"    // the response is complete
	StopTools  Stop = "tools"  // the model waits for the results of its calls
	StopLength Stop = "length" // a token limit was reached; the last call may be truncated and must not be made
	StopRefuse Stop = "refuse" // the vendor or the model refused to answer
	StopPause  Stop = "pause"  // the vendor continues if the same conversation is sent again
)

// Calls returns the calls that may be made, in the model's order. It returns
// none unless Stop is [StopTools] or [StopEnd], because a call that looks
// complete may be truncated.
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

// Text returns the text parts of a message, concatenated without a separator.
// It ignores the text in thinking and results.
func (m *Message) Text() string {
	var out string
	for _, p := range m.Parts {
		if t, ok := p.(Text); ok {
			out += string(t)
		}
	}
	return out
}

// Ask sends a request and returns the complete response. It calls onEvent,
// which may be nil, with each event except [Done], one at a time. It returns
// the same errors as [Model.Stream]. A stream that ends without a [Done] is a
// [*CutError].
func Ask(ctx context.Context, m Model, r *Request, onEvent func(Event)) (*Answer, error) {
	for e, err := range m.Stream(ctx, r) {
		if err != nil {
			return nil, err
		}
		if done, ok := e.(Done); ok {
			return &done.Answer, nil
		}
		if onEvent != nil {
			onEvent(e)
		}
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return nil, &CutError{}
}
