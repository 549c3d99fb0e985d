package replay

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/loadout-dev/loadout/llm"
)

// The types below define the file format. Each part and each event has exactly
// one field.

type request struct {
	Instructions string    `json:"instructions,omitempty"`
	Tools        []tool    `json:"tools,omitempty"`
	Messages     []message `json:"messages,omitempty"`
	MaxTokens    int       `json:"max_tokens,omitempty"`
	Thinking     int       `json:"thinking,omitempty"`
}

type tool struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	InputSchema json.RawMessage `json:"input_schema,omitempty"`
}

type message struct {
	Role  llm.Role `json:"role"`
	Parts []part   `json:"parts,omitempty"`
}

type part struct {
	Text     *string   `json:"text,omitempty"`
	Image    *image    `json:"image,omitempty"`
	Thinking *thinking `json:"thinking,omitempty"`
	Call     *call     `json:"call,omitempty"`
	Result   *result   `json:"result,omitempty"`
}

type image struct {
	MIMEType string `json:"mime_type"`
	Data     []byte `json:"data"`
}

type thinking struct {
	Vendor    string `json:"vendor"`
	Text      string `json:"text,omitempty"`
	Signature string `json:"signature,omitempty"`
	Redacted  string `json:"redacted,omitempty"`
}

type call struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

type result struct {
	Call  string `json:"call"`
	Parts []part `json:"parts,omitempty"`
	Error bool   `json:"error,omitempty"`
}

type event struct {
	Text     *string    `json:"text,omitempty"`
	Thinking *string    `json:"thinking,omitempty"`
	Call     *callDelta `json:"call,omitempty"`
}

type callDelta struct {
	Index     int    `json:"index"`
	ID        string `json:"id,omitempty"`
	Name      string `json:"name,omitempty"`
	Arguments string `json:"arguments,omitempty"`
}

type answer struct {
	Message message   `json:"message"`
	Stop    llm.Stop  `json:"stop,omitempty"`
	Usage   llm.Usage `json:"usage"`
	Model   string    `json:"model,omitempty"`
}

// failure is the error of a stream: a refusal, or the reason why the response
// was cut off.
type failure struct {
	Refused *refusal `json:"refused,omitempty"`
	Cut     string   `json:"cut,omitempty"`
}

type refusal struct {
	Vendor  string        `json:"vendor"`
	Code    int           `json:"code"`
	Kind    string        `json:"kind,omitempty"`
	Message string        `json:"message"`
	After   time.Duration `json:"after_ns,omitempty"`
}

// newRequest converts a request to the file format. It returns an error if a
// tool's schema is not valid JSON.
func newRequest(r *llm.Request) (*request, error) {
	q := &request{Instructions: validText(r.Instructions), MaxTokens: r.MaxTokens, Thinking: r.Thinking}
	for _, t := range r.Tools {
		schema, err := compactSchema(t.InputSchema)
		if err != nil {
			return nil, fmt.Errorf("input schema of tool %.100q is not JSON: %w", t.Name, err)
		}
		q.Tools = append(q.Tools, tool{validText(t.Name), validText(t.Description), schema})
	}
	for _, m := range r.Messages {
		q.Messages = append(q.Messages, newMessage(&m))
	}
	return q, nil
}

func compactSchema(schema json.RawMessage) (json.RawMessage, error) {
	if len(schema) == 0 {
		return nil, nil
	}
	var b bytes.Buffer
	err := json.Compact(&b, schema)
	return b.Bytes(), err
}

func newMessage(m *llm.Message) message { return message{m.Role, newParts(m.Parts)} }

func newParts(parts []llm.Part) []part {
	var out []part
	for _, p := range parts {
		switch p := p.(type) {
		case llm.Text:
			out = append(out, part{Text: text(string(p))})
		case llm.Image:
			out = append(out, part{Image: &image{validText(p.MIMEType), p.Data}})
		case llm.Thinking:
			out = append(out, part{Thinking: &thinking{validText(p.Vendor), validText(p.Text), validText(p.Signature), validText(p.Redacted)}})
		case llm.Call:
			out = append(out, part{Call: &call{validText(p.ID), validText(p.Name), validText(p.Arguments)}})
		case llm.Result:
			out = append(out, part{Result: &result{validText(p.Call), newParts(p.Parts), p.Error}})
		}
	}
	return out
}

func newEvent(e llm.Event) event {
	switch e := e.(type) {
	case llm.TextDelta:
		return event{Text: text(string(e))}
	case llm.ThinkingDelta:
		return event{Thinking: text(string(e))}
	case llm.CallDelta:
		return event{Call: &callDelta{e.Index, validText(e.ID), validText(e.Name), validText(e.Arguments)}}
	}
	panic(fmt.Sprintf("replay: unknown event type %T", e))
}

func newAnswer(a *llm.Answer) *answer {
	return &answer{newMessage(&a.Message), a.Stop, a.Usage, validText(a.Model)}
}

// fail records the error of a stream. It returns false for a kind of error that
// is not recorded.
func (r *recording) fail(err error) bool {
	if cut, ok := errors.AsType[*llm.CutError](err); ok {
		r.Answer, r.Failed = newAnswer(&cut.Answer), &failure{}
		if cut.Err != nil {
			r.Failed.Cut = validText(cut.Err.Error())
		}
		return true
	}
	if s, ok := errors.AsType[*llm.StatusError](err); ok && len(r.Events) == 0 {
		r.Failed = &failure{Refused: &refusal{validText(s.Vendor), s.Code, validText(s.Kind), validText(s.Message), s.After}}
		return true
	}
	return false
}

func (f *failure) err(a *answer) error {
	if s := f.Refused; s != nil {
		return &llm.StatusError{Vendor: s.Vendor, Code: s.Code, Kind: s.Kind, Message: s.Message, After: s.After}
	}
	cut := &llm.CutError{Answer: a.answer()}
	if f.Cut != "" {
		cut.Err = errors.New(f.Cut)
	}
	return cut
}

func (a *answer) answer() llm.Answer {
	return llm.Answer{Message: llm.Message{Role: a.Message.Role, Parts: parts(a.Message.Parts)}, Stop: a.Stop, Usage: a.Usage, Model: a.Model}
}

func parts(all []part) []llm.Part {
	var out []llm.Part
	for _, p := range all {
		switch {
		case p.Text != nil:
			out = append(out, llm.Text(*p.Text))
		case p.Image != nil:
			out = append(out, llm.Image{MIMEType: p.Image.MIMEType, Data: p.Image.Data})
		case p.Thinking != nil:
			out = append(out, llm.Thinking{Vendor: p.Thinking.Vendor, Text: p.Thinking.Text, Signature: p.Thinking.Signature, Redacted: p.Thinking.Redacted})
		case p.Call != nil:
			out = append(out, llm.Call{ID: p.Call.ID, Name: p.Call.Name, Arguments: p.Call.Arguments})
		case p.Result != nil:
			out = append(out, llm.Result{Call: p.Result.Call, Parts: parts(p.Result.Parts), Error: p.Result.Error})
		}
	}
	return out
}

func (e *event) event() llm.Event {
	switch {
	case e.Text != nil:
		return llm.TextDelta(*e.Text)
	case e.Thinking != nil:
		return llm.ThinkingDelta(*e.Thinking)
	}
	return llm.CallDelta{Index: e.Call.Index, ID: e.Call.ID, Name: e.Call.Name, Arguments: e.Call.Arguments}
}
