package anthropic

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/loadout-dev/loadout/llm"
)

// event is a server-sent event, with the fields that this package uses.
type event struct {
	Type    string `json:"type"`
	Index   int    `json:"index"`
	Message struct {
		Model string `json:"model"`
		Usage usage  `json:"usage"`
	} `json:"message"`
	Block struct {
		Type      string          `json:"type"`
		Text      string          `json:"text"`
		Thinking  string          `json:"thinking"`
		Signature string          `json:"signature"`
		Data      string          `json:"data"`
		ID        string          `json:"id"`
		Name      string          `json:"name"`
		Input     json.RawMessage `json:"input"`
	} `json:"content_block"`
	Delta struct {
		Type       string `json:"type"`
		Text       string `json:"text"`
		Thinking   string `json:"thinking"`
		Signature  string `json:"signature"`
		Partial    string `json:"partial_json"`
		StopReason string `json:"stop_reason"`
	} `json:"delta"`
	Usage usage  `json:"usage"`
	Error *fault `json:"error"`
}

type usage struct {
	Input      int `json:"input_tokens"`
	CacheRead  int `json:"cache_read_input_tokens"`
	CacheWrite int `json:"cache_creation_input_tokens"`
	Output     int `json:"output_tokens"`
}

// answer accumulates a response as it is streamed.
type answer struct {
	model  string
	usage  usage
	stop   string
	done   bool
	blocks []*block
	open   map[int]*block // incomplete blocks, by the server's index
	calls  int
}

// block accumulates a content block as it is streamed.
type block struct {
	kind      string
	text      strings.Builder // text, thinking, or arguments
	signature strings.Builder
	data      string
	id, name  string
	input     string // arguments that were received in one piece
	call      int    // position among the calls in the response
}

func (a *answer) addEvent(e *event) (llm.Event, error) {
	switch e.Type {
	case "message_start":
		a.model = e.Message.Model
		a.usage.add(e.Message.Usage)
	case "content_block_start":
		return a.startBlock(e), nil
	case "content_block_delta":
		return a.addDelta(e)
	case "message_delta":
		a.stop = e.Delta.StopReason
		a.usage.add(e.Usage)
	case "message_stop":
		a.done = true
	}
	return nil, nil
}

// add merges a newer token count into u. Each count is cumulative, but servers
// may omit fields that they sent before.
func (u *usage) add(v usage) {
	u.Input = max(u.Input, v.Input)
	u.CacheRead = max(u.CacheRead, v.CacheRead)
	u.CacheWrite = max(u.CacheWrite, v.CacheWrite)
	u.Output = max(u.Output, v.Output)
}

func (a *answer) startBlock(e *event) llm.Event {
	b := &block{kind: e.Block.Type, data: e.Block.Data, id: e.Block.ID, name: e.Block.Name, call: a.calls}
	if a.open == nil {
		a.open = map[int]*block{}
	}
	a.open[e.Index] = b
	a.blocks = append(a.blocks, b)
	switch b.kind {
	case "text":
		return b.addText(e.Block.Text)
	case "thinking":
		b.signature.WriteString(e.Block.Signature)
		return b.addThinking(e.Block.Thinking)
	case "tool_use":
		a.calls++
		// Anthropic sends {} here and then the arguments in pieces. Other
		// servers send all arguments here.
		if in := string(e.Block.Input); in != "{}" && in != "null" {
			b.input = in
		}
		return llm.CallDelta{Index: b.call, ID: b.id, Name: b.name, Arguments: b.input}
	}
	return nil
}

func (a *answer) addDelta(e *event) (llm.Event, error) {
	b := a.open[e.Index]
	if b == nil {
		return nil, fmt.Errorf("anthropic: delta for unknown block %d", e.Index)
	}
	switch d := &e.Delta; {
	case d.Type == "text_delta" && b.kind == "text":
		return b.addText(d.Text), nil
	case d.Type == "thinking_delta" && b.kind == "thinking":
		return b.addThinking(d.Thinking), nil
	case d.Type == "signature_delta" && b.kind == "thinking":
		b.signature.WriteString(d.Signature)
	case d.Type == "input_json_delta" && b.kind == "tool_use" && d.Partial != "":
		b.text.WriteString(d.Partial)
		return llm.CallDelta{Index: b.call, Arguments: d.Partial}, nil
	}
	return nil, nil
}

func (b *block) addText(s string) llm.Event {
	b.text.WriteString(s)
	if s == "" {
		return nil
	}
	return llm.TextDelta(s)
}

func (b *block) addThinking(s string) llm.Event {
	b.text.WriteString(s)
	if s == "" {
		return nil
	}
	return llm.ThinkingDelta(s)
}

// part converts the block to a message part. It returns nil for an unknown or
// empty block.
func (b *block) part() llm.Part {
	switch text := b.text.String(); b.kind {
	case "text":
		if text != "" {
			return llm.Text(text)
		}
	case "thinking":
		return llm.Thinking{Vendor: vendor, Text: text, Signature: b.signature.String()}
	case "redacted_thinking":
		return llm.Thinking{Vendor: vendor, Redacted: b.data}
	case "tool_use":
		return llm.Call{ID: b.id, Name: b.name, Arguments: b.input + text}
	}
	return nil
}

// whole returns the response received so far.
func (a *answer) whole() llm.Answer {
	out := llm.Answer{Model: a.model, Message: llm.Message{Role: llm.Assistant}, Usage: llm.Usage{
		Input: a.usage.Input, CacheRead: a.usage.CacheRead, CacheWrite: a.usage.CacheWrite, Output: a.usage.Output,
	}}
	for _, b := range a.blocks {
		if p := b.part(); p != nil {
			out.Message.Parts = append(out.Message.Parts, p)
		}
	}
	if a.done {
		out.Stop = stopReason(a.stop, a.calls > 0)
	}
	return out
}

// stopReason converts the server's stop reason. If the reason is unknown and
// there are calls, it returns the reason for a truncated response, so that no
// call is made.
func stopReason(reason string, calls bool) llm.Stop {
	switch reason {
	case "end_turn", "stop_sequence":
		return llm.StopEnd
	case "tool_use":
		return llm.StopTools
	case "max_tokens", "model_context_window_exceeded":
		return llm.StopLength
	case "refusal":
		return llm.StopRefuse
	case "pause_turn":
		return llm.StopPause
	}
	if calls {
		return llm.StopLength
	}
	return llm.StopEnd
}
