package openai

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/loadout-dev/loadout/llm"
)

// chunk is an event of a streamed response. The package ignores its ID, because
// some servers change it during a response.
type chunk struct {
	Model   string   `json:"model"`
	Choices []choice `json:"choices"`
	Usage   *usage   `json:"usage"`
}

type choice struct {
	Index        int    `json:"index"`
	Delta        delta  `json:"delta"`
	FinishReason string `json:"finish_reason"`
}

type delta struct {
	Content          string         `json:"content"`
	ReasoningContent string         `json:"reasoning_content"`
	Reasoning        string         `json:"reasoning"`
	Refusal          string         `json:"refusal"`
	ToolCalls        []callFragment `json:"tool_calls"`
}

type callFragment struct {
	Index    *int           `json:"index"`
	ID       string         `json:"id"`
	Function calledFunction `json:"function"`
}

type usage struct {
	Prompt     int `json:"prompt_tokens"`
	Completion int `json:"completion_tokens"`
	Details    struct {
		Cached  int `json:"cached_tokens"`
		Written int `json:"cache_write_tokens"`
	} `json:"prompt_tokens_details"`
	CacheHit int `json:"prompt_cache_hit_tokens"` // sent by DeepSeek
}

// answer accumulates a response as it is streamed.
type answer struct {
	vendor string
	at     int // number of messages before the response

	text, thinking strings.Builder
	refusal        bool
	calls          []*partialCall
	reason         string
	usage          llm.Usage
	model          string
	size           int
}

type partialCall struct {
	index     *int
	id, name  string
	made      bool // whether the ID was generated here
	arguments strings.Builder
	nesting   nesting // nesting state of the arguments received so far
}

// Limits on a response.
const (
	maxAnswer = 32 << 20
	maxCalls  = 1000
)

var errTooLong = errors.New("answer too long: too many bytes or tool calls")

// add adds a chunk to the response and returns the events to yield.
func (a *answer) add(data []byte) ([]llm.Event, error) {
	if bytes.Contains(data, []byte(`"error"`)) {
		if e := statusError(data); e != nil {
			return nil, e
		}
	}
	var c chunk
	if err := json.Unmarshal(data, &c); err != nil {
		return nil, fmt.Errorf("parse response chunk: %w", err)
	}
	if c.Model != "" {
		a.model = c.Model
	}
	if c.Usage != nil {
		a.usage = c.Usage.neutral() // the count in the last chunk covers the whole response
	}
	var events []llm.Event
	for i := range c.Choices {
		if c.Choices[i].Index == 0 {
			events = append(events, a.addChoice(&c.Choices[i])...)
		}
	}
	if a.size > maxAnswer || len(a.calls) > maxCalls {
		return nil, errTooLong
	}
	return events, nil
}

func (a *answer) addChoice(c *choice) []llm.Event {
	var events []llm.Event
	d := &c.Delta
	thinking := d.ReasoningContent
	if thinking == "" {
		thinking = d.Reasoning // some servers send the same text in both fields
	}
	a.size += len(thinking) + len(d.Content) + len(d.Refusal)
	if thinking != "" {
		a.thinking.WriteString(thinking)
		events = append(events, llm.ThinkingDelta(thinking))
	}
	if d.Refusal != "" {
		a.refusal = true
	}
	if said := d.Content + d.Refusal; said != "" {
		a.text.WriteString(said)
		events = append(events, llm.TextDelta(said))
	}
	for i := range d.ToolCalls {
		events = append(events, a.addCall(&d.ToolCalls[i])...)
	}
	if c.FinishReason != "" {
		a.reason = c.FinishReason
	}
	return events
}

// addCall adds a fragment of a tool call. It returns no events until the tool's
// name is known.
func (a *answer) addCall(f *callFragment) []llm.Event {
	at := a.continuedCall(f)
	if at < 0 {
		at = len(a.calls)
		a.calls = append(a.calls, &partialCall{index: f.Index})
	}
	c := a.calls[at]
	first := c.name == ""
	if c.name == "" {
		c.name = f.Function.Name
	}
	if c.id == "" {
		c.id = f.ID
	}
	c.arguments.WriteString(f.Function.Arguments)
	c.nesting.read(f.Function.Arguments)
	a.size += len(f.Function.Arguments)
	if c.name == "" {
		return nil
	}
	if !first {
		if f.Function.Arguments == "" {
			return nil
		}
		return []llm.Event{llm.CallDelta{Index: at, Arguments: f.Function.Arguments}}
	}
	if c.id == "" || a.isDuplicateID(c) { // missing or repeated ID: generate a reproducible one that is unique in the conversation
		c.id, c.made = fmt.Sprintf("call_%d_%d", a.at, at), true
	}
	return []llm.Event{llm.CallDelta{Index: at, ID: c.id, Name: c.name, Arguments: c.arguments.String()}}
}

// isDuplicateID reports whether another call in the response has the same ID as
// c.
func (a *answer) isDuplicateID(c *partialCall) bool {
	return slices.ContainsFunc(a.calls, func(o *partialCall) bool { return o != c && o.id == c.id })
}

// continuedCall returns the index of the call that a fragment continues, or -1
// if the fragment starts a new call. The fragment's own index is not
// sufficient: some servers omit it, and others send 0 for all calls.
func (a *answer) continuedCall(f *callFragment) int {
	latest := -1
	for at := len(a.calls) - 1; at >= 0; at-- {
		c := a.calls[at]
		if f.Index != nil && c.index != nil && *f.Index != *c.index {
			continue
		}
		if latest < 0 {
			latest = at
		}
		if f.ID != "" && f.ID == c.id {
			latest = at
			break
		}
	}
	if latest >= 0 && a.calls[latest].isDifferentCall(f) {
		return -1
	}
	return latest
}

// isDifferentCall reports whether a fragment belongs to a different call than c.
func (c *partialCall) isDifferentCall(f *callFragment) bool {
	switch name := f.Function.Name; {
	case name == "" || c.name == "": // a new call always has a name
		return false
	case name != c.name:
		return true
	case f.ID != "" && c.id != "" && !c.made:
		return f.ID != c.id
	}
	// The same name is either repeated in each fragment or starts a second
	// call.
	return f.Function.Arguments != "" && c.nesting.closed
}

// nesting tracks whether a JSON object is complete.
type nesting struct {
	depth           int
	quoted, escaped bool
	closed          bool
}

func (n *nesting) read(text string) {
	for i := range len(text) {
		switch b := text[i]; {
		case n.escaped:
			n.escaped = false
		case n.quoted:
			n.escaped, n.quoted = b == '\\', b != '"'
		case b == '"':
			n.quoted = true
		case b == '{':
			n.depth++
		case b == '}':
			n.depth--
			n.closed = n.depth == 0
		}
	}
}

func (a *answer) hasStarted() bool {
	return a.text.Len() > 0 || a.thinking.Len() > 0 || len(a.calls) > 0
}

// endError returns an error if the stream ended before the response was
// complete.
func (a *answer) endError() error {
	switch a.reason {
	case "":
		return errors.New("stream ended without finish_reason")
	case "stop", "tool_calls", "function_call", "length", "max_tokens", "content_filter":
	default:
		if len(a.calls) > 0 || a.reason == "error" { // the calls may be incomplete
			return fmt.Errorf("unexpected finish_reason %q", a.reason)
		}
	}
	for _, c := range a.calls {
		if c.name == "" {
			return errors.New("tool call has no name")
		}
	}
	return nil
}

// whole returns the response received so far.
func (a *answer) whole() llm.Answer {
	out := llm.Answer{Message: llm.Message{Role: llm.Assistant}, Stop: a.stop(), Usage: a.usage, Model: a.model}
	var parts []llm.Part
	if a.thinking.Len() > 0 {
		parts = append(parts, llm.Thinking{Vendor: a.vendor, Text: a.thinking.String()})
	}
	if a.text.Len() > 0 {
		parts = append(parts, llm.Text(a.text.String()))
	}
	for _, c := range a.calls {
		if c.name != "" {
			parts = append(parts, llm.Call{ID: c.id, Name: c.name, Arguments: c.arguments.String()})
		}
	}
	out.Message.Parts = parts
	return out
}

func (a *answer) stop() llm.Stop {
	switch {
	case a.reason == "": // the response is incomplete
		return ""
	case a.reason == "length" || a.reason == "max_tokens":
		return llm.StopLength
	case a.reason == "content_filter" || a.refusal:
		return llm.StopRefuse
	case len(a.calls) > 0: // some servers send "stop" in this case too
		return llm.StopTools
	}
	return llm.StopEnd
}

// neutral converts the usage to the vendor-neutral form. It adjusts counts that
// contradict each other.
func (u *usage) neutral() llm.Usage {
	prompt := max(u.Prompt, 0)
	read := min(max(u.Details.Cached, u.CacheHit, 0), prompt)
	written := min(max(u.Details.Written, 0), prompt-read)
	return llm.Usage{Input: prompt - read - written, CacheRead: read, CacheWrite: written, Output: max(u.Completion, 0)}
}
