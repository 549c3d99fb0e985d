// Package demo is a model that is none: a few fixed rules that find a skill, load
// it, and call a script or tool of it that the person names. It needs no key and no
// network, and the same conversation always gets the same answer, so that a first
// try and a test are real in all but the words.
//
// Every answer says that no language model wrote it. A turn makes each kind of
// call at most once.
package demo

import (
	"context"
	"fmt"
	"iter"
	"unicode/utf8"

	"github.com/loadout-dev/loadout/llm"
)

// Options adjust the model. The zero value is fine.
type Options struct {
	// Next says how to get a real model, as a whole sentence; "" says it in general.
	Next string
}

// Model is the demonstration. It is safe for concurrent use.
type Model struct{ next string }

var _ llm.Model = (*Model)(nil)

// New returns the model.
func New(opts *Options) *Model {
	if opts == nil {
		opts = &Options{}
	}
	return &Model{next: opts.Next}
}

// Name is always the same.
func (m *Model) Name() string { return "demo:rules" }

// Stream implements [llm.Model]. It fails only where ctx ends. Usage is estimated.
func (m *Model) Stream(ctx context.Context, r *llm.Request) iter.Seq2[llm.Event, error] {
	return func(yield func(llm.Event, error) bool) {
		whole := m.answer(r)
		told := llm.Answer{Message: llm.Message{Role: llm.Assistant}}
		for _, e := range pieces(&whole) {
			if ctx.Err() != nil {
				yield(nil, ended(ctx, told))
				return
			}
			if !yield(e, nil) {
				return
			}
			if words, ok := e.(llm.TextDelta); ok {
				told.Message.Parts = []llm.Part{llm.Text(told.Message.Words() + string(words))}
			}
		}
		if ctx.Err() != nil {
			yield(nil, ended(ctx, told))
			return
		}
		yield(llm.Done{Answer: whole}, nil)
	}
}

// ended is the error of a conversation whose context ended on the way.
func ended(ctx context.Context, told llm.Answer) error {
	if len(told.Message.Parts) == 0 {
		return context.Cause(ctx)
	}
	return &llm.CutError{Answer: told, Err: context.Cause(ctx)}
}

func (m *Model) answer(r *llm.Request) llm.Answer {
	t := read(r)
	out := llm.Answer{Message: llm.Message{Role: llm.Assistant}, Stop: llm.StopEnd, Model: "rules", Usage: llm.Usage{Input: size(r)}}
	if name, args, ok := t.next(); ok {
		call := llm.Call{ID: fmt.Sprintf("demo_%d", len(r.Messages)), Name: name, Arguments: asJSON(args)}
		out.Message.Parts = []llm.Part{call}
		out.Stop = llm.StopTools
		out.Usage.Output = tokens(name) + tokens(call.Arguments)
		return out
	}
	text := t.say(m.next)
	if short, cut := within(text, r.MaxTokens); cut {
		text, out.Stop = short, llm.StopLength
	}
	out.Message.Parts = []llm.Part{llm.Text(text)}
	out.Usage.Output = tokens(text)
	return out
}

// within is a text of at most so many tokens; 0 is any number.
func within(text string, limit int) (short string, cut bool) {
	if limit <= 0 {
		return text, false
	}
	have := 0.0
	for i, r := range text {
		if have += weight(r); have > float64(limit) {
			return text[:i], true
		}
	}
	return text, false
}

// pieces are an answer as it would come from far away.
func pieces(a *llm.Answer) []llm.Event {
	var out []llm.Event
	for _, p := range a.Message.Parts {
		switch p := p.(type) {
		case llm.Text:
			for _, w := range split(string(p)) {
				out = append(out, llm.TextDelta(w))
			}
		case llm.Call:
			out = append(out, llm.CallDelta{ID: p.ID, Name: p.Name})
			for _, w := range split(p.Arguments) {
				out = append(out, llm.CallDelta{Arguments: w})
			}
		}
	}
	return out
}

// split cuts a text after each word, and where there are no blanks after a few
// letters.
func split(text string) []string {
	var out []string
	start := 0
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRuneInString(text[i:])
		i += n
		if r == ' ' || r == '\n' || i-start >= 12 {
			out, start = append(out, text[start:i]), i
		}
	}
	if start < len(text) {
		out = append(out, text[start:])
	}
	return out
}

// size is about how many tokens a request has.
func size(r *llm.Request) int {
	n := tokens(r.Instructions)
	for _, t := range r.Tools {
		n += tokens(t.Name) + tokens(t.Description) + tokens(string(t.InputSchema))
	}
	for _, m := range r.Messages {
		n += sizeOf(m.Parts)
	}
	return n
}

const imageTokens = 1000 // about what vendors count for one

func sizeOf(parts []llm.Part) int {
	n := 0
	for _, p := range parts {
		switch p := p.(type) {
		case llm.Text:
			n += tokens(string(p))
		case llm.Call:
			n += tokens(p.Name) + tokens(p.Arguments)
		case llm.Result:
			n += sizeOf(p.Parts)
		case llm.Image:
			n += imageTokens
		}
	}
	return n
}

func tokens(text string) int {
	n := 0.0
	for _, r := range text {
		n += weight(r)
	}
	return int(n + 0.999)
}

// weight is about how many tokens a letter is.
func weight(r rune) float64 {
	if wide(r) {
		return 0.67
	}
	return 0.25
}

// wide reports whether a letter is of a writing without blanks between words.
func wide(r rune) bool {
	return r >= 0x2e80 && r <= 0x9fff || r >= 0xac00 && r <= 0xd7ff || r >= 0xf900 && r <= 0xfaff
}
