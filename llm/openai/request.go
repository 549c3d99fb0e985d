package openai

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/loadout-dev/loadout/internal/plainjson"
	"github.com/loadout-dev/loadout/llm"
)

// request is the JSON body of a request. Fields that stay the same during a
// conversation precede the messages.
type request struct {
	Model               string         `json:"model"`
	Stream              bool           `json:"stream"`
	StreamOptions       *streamOptions `json:"stream_options,omitempty"`
	MaxTokens           int            `json:"max_tokens,omitempty"`
	MaxCompletionTokens int            `json:"max_completion_tokens,omitempty"`
	ReasoningEffort     string         `json:"reasoning_effort,omitempty"`
	Thinking            *thinking      `json:"thinking,omitempty"`
	Tools               []tool         `json:"tools,omitempty"`
	Messages            []message      `json:"messages"`
}

type streamOptions struct {
	IncludeUsage bool `json:"include_usage"`
}

type thinking struct {
	Type string `json:"type"`
}

type tool struct {
	Type     string   `json:"type"`
	Function function `json:"function"`
}

type function struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters"`
}

type message struct {
	Role             string  `json:"role"`
	Content          any     `json:"content"` // a string, parts, or null if the message has only calls
	ReasoningContent *string `json:"reasoning_content,omitempty"`
	ToolCalls        []call  `json:"tool_calls,omitempty"`
	ToolCallID       string  `json:"tool_call_id,omitempty"`
}

type call struct {
	ID       string         `json:"id"`
	Type     string         `json:"type"`
	Function calledFunction `json:"function"`
}

type calledFunction struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

type part struct {
	Type     string    `json:"type"`
	Text     string    `json:"text,omitempty"`
	ImageURL *imageURL `json:"image_url,omitempty"`
}

type imageURL struct {
	URL string `json:"url"`
}

// render encodes the JSON body of a request. The encoding of a message depends
// only on that message and earlier ones, so that a longer conversation starts
// with the bytes of a shorter one.
func (m *model) render(r *llm.Request) ([]byte, error) {
	out := request{Model: m.name, Stream: true}
	if !m.quirks.NoUsage {
		out.StreamOptions = &streamOptions{IncludeUsage: true}
	}
	m.setLimits(&out, r)
	for _, t := range r.Tools {
		if !json.Valid(t.InputSchema) && len(t.InputSchema) > 0 {
			return nil, fmt.Errorf("input schema of tool %s is not JSON", t.Name)
		}
		f := function{t.Name, t.Description, t.InputSchema}
		if len(f.Parameters) == 0 {
			f.Parameters = json.RawMessage(`{"type":"object","properties":{}}`)
		}
		out.Tools = append(out.Tools, tool{"function", f})
	}
	out.Messages = m.messages(r)
	return plainjson.Line(out)
}

// setLimits sets the token limits for the response and for thinking.
func (m *model) setLimits(out *request, r *llm.Request) {
	limit := r.MaxTokens
	if limit == 0 {
		limit = m.maxTokens
	}
	if m.quirks.MaxTokens == maxCompletionTokens {
		out.MaxCompletionTokens = limit
	} else {
		out.MaxTokens = limit
	}
	if m.quirks.Effort && r.Thinking > 0 {
		out.ReasoningEffort = effortFor(r.Thinking)
	}
	if m.quirks.Switch {
		out.Thinking = &thinking{"disabled"}
		if r.Thinking > 0 {
			out.Thinking.Type = "enabled"
		}
	}
}

// effortFor converts a token budget to one of the three effort levels that
// servers support.
func effortFor(tokens int) string {
	switch {
	case tokens <= 2048:
		return "low"
	case tokens <= 16384:
		return "medium"
	}
	return "high"
}

func (m *model) messages(r *llm.Request) []message {
	w := &writer{quirks: m.quirks}
	w.system(r.Instructions)
	for i := range r.Messages {
		w.add(&r.Messages[i])
	}
	w.completeCalls() // servers reject calls without a result
	if w.out == nil {
		return []message{}
	}
	return w.out
}

// writer converts the messages of a conversation to the server's format.
type writer struct {
	quirks Quirks
	out    []message
	// open lists the IDs of calls without a result. Servers reject messages
	// between calls and their results, so notices are deferred until all
	// results are written.
	open    []string
	waiting []string
}

func (w *writer) add(m *llm.Message) {
	switch m.Role {
	case llm.Notice:
		if len(w.open) > 0 {
			w.waiting = append(w.waiting, m.Text())
		} else {
			w.system(m.Text())
		}
	case llm.Assistant:
		w.completeCalls()
		w.assistant(m)
	default:
		w.user(m)
	}
}

func (w *writer) system(text string) {
	switch {
	case text == "":
	case !w.quirks.SystemFirst:
		w.out = append(w.out, message{Role: "system", Content: text})
	case len(w.out) > 0 && w.out[0].Role == "system":
		w.out[0].Content = w.out[0].Content.(string) + "\n\n" + text
	default:
		w.out = append([]message{{Role: "system", Content: text}}, w.out...)
	}
}

func (w *writer) assistant(m *llm.Message) {
	out := message{Role: "assistant", Content: m.Text()}
	var thinking string
	for _, p := range m.Parts {
		switch p := p.(type) {
		case llm.Thinking:
			if p.Vendor == w.quirks.Vendor {
				thinking += p.Text
			}
		case llm.Call:
			out.ToolCalls = append(out.ToolCalls, call{p.ID, "function", calledFunction{p.Name, objectArguments(p.Arguments)}})
			w.open = append(w.open, p.ID)
		}
	}
	if len(out.ToolCalls) > 0 && out.Content == "" {
		out.Content = nil
	}
	if w.quirks.Replay {
		out.ReasoningContent = &thinking
	}
	w.out = append(w.out, out)
}

// objectArguments returns a call's arguments, or an empty object if they are
// not a JSON object, because some servers parse earlier arguments and fail. The
// result of the call already reports the mistake.
func objectArguments(arguments string) string {
	var any map[string]json.RawMessage
	if json.Unmarshal([]byte(arguments), &any) != nil || any == nil {
		return "{}"
	}
	return arguments
}

// user writes the results and then the rest of a user message. Images in
// results are moved to the user message, because a tool message can contain
// only text (openai/openai-openapi#523, vllm-project/vllm#43203).
func (w *writer) user(m *llm.Message) {
	var parts []part
	for _, p := range m.Parts {
		if r, ok := p.(llm.Result); ok {
			parts = append(parts, w.result(r)...)
		}
	}
	w.completeCalls()
	for _, p := range m.Parts {
		switch p := p.(type) {
		case llm.Text:
			parts = append(parts, part{Type: "text", Text: string(p)})
		case llm.Image:
			parts = append(parts, image(p))
		}
	}
	if len(parts) > 0 {
		w.out = append(w.out, message{Role: "user", Content: content(parts)})
	}
}

// result writes the message for a result and returns the images in it.
func (w *writer) result(r llm.Result) (images []part) {
	var text strings.Builder
	if r.Error {
		text.WriteString("Error: ")
	}
	for _, p := range r.Parts {
		switch p := p.(type) {
		case llm.Text:
			text.WriteString(string(p))
		case llm.Image:
			if images == nil {
				images = append(images, part{Type: "text", Text: "Images of the result of call " + r.Call + ":"})
				text.WriteString("\n(Its images follow in the next message.)")
			}
			images = append(images, image(p))
		}
	}
	w.out = append(w.out, message{Role: "tool", Content: text.String(), ToolCallID: r.Call})
	for i, id := range w.open {
		if id == r.Call {
			w.open = append(w.open[:i:i], w.open[i+1:]...)
			break
		}
	}
	return images
}

// completeCalls adds an error result for each call without a result, because
// servers reject such calls. It then writes the deferred notices.
func (w *writer) completeCalls() {
	for _, id := range w.open {
		w.out = append(w.out, message{Role: "tool", Content: "Error: this call was not made.", ToolCallID: id})
	}
	w.open = nil
	for _, text := range w.waiting {
		w.system(text)
	}
	w.waiting = nil
}

func image(i llm.Image) part {
	return part{Type: "image_url", ImageURL: &imageURL{"data:" + i.MIMEType + ";base64," + base64.StdEncoding.EncodeToString(i.Data)}}
}

// content returns the parts as a single string if all of them are text, because
// every server accepts a string.
func content(parts []part) any {
	var text strings.Builder
	for _, p := range parts {
		if p.Type != "text" {
			return parts
		}
		text.WriteString(p.Text)
	}
	return text.String()
}
