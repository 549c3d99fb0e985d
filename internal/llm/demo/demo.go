// Package demo implements [llm.Model] with fixed rules instead of a language
// model. The rules find a skill, load it, and call a script or tool that the
// user names. The model needs no key and no network. It always gives the same
// response to the same conversation, so that first steps and tests can use all
// of Loadout without a real model.
//
// Every response says that the demo wrote it. Within a turn, the model makes each
// kind of call at most once.
package demo

import (
	"context"
	"fmt"
	"iter"
	"unicode/utf8"

	"github.com/loadout-dev/loadout/llm"
)

// Options configures the model. The zero value is valid.
type Options struct {
	// Next is a sentence that tells the user how to configure a real model. The
	// default is a general sentence.
	Next string
}

// Model responds according to fixed rules. It is safe for concurrent use.
type Model struct{ next string }

var _ llm.Model = (*Model)(nil)

// New returns a demo model with the given options, which may be nil.
func New(opts *Options) *Model {
	if opts == nil {
		opts = &Options{}
	}
	return &Model{next: opts.Next}
}

// Name returns "demo:rules".
func (m *Model) Name() string { return "demo:rules" }

// Stream implements [llm.Model]. It fails only if ctx is done. The token usage
// is an estimate.
func (m *Model) Stream(ctx context.Context, r *llm.Request) iter.Seq2[llm.Event, error] {
	return func(yield func(llm.Event, error) bool) {
		whole := m.answer(r)
		answer := llm.Answer{Message: llm.Message{Role: llm.Assistant}}
		for _, e := range answerEvents(&whole) {
			if ctx.Err() != nil {
				yield(nil, contextError(ctx, answer))
				return
			}
			if !yield(e, nil) {
				return
			}
			if words, ok := e.(llm.TextDelta); ok {
				answer.Message.Parts = []llm.Part{llm.Text(answer.Message.Text() + string(words))}
			}
		}
		if ctx.Err() != nil {
			yield(nil, contextError(ctx, answer))
			return
		}
		yield(llm.Done{Answer: whole}, nil)
	}
}

// contextError returns the error of a stream whose context is done.
func contextError(ctx context.Context, answer llm.Answer) error {
	if len(answer.Message.Parts) == 0 {
		return context.Cause(ctx)
	}
	return &llm.CutError{Answer: answer, Err: context.Cause(ctx)}
}

func (m *Model) answer(r *llm.Request) llm.Answer {
	t := readTurn(r)
	out := llm.Answer{Message: llm.Message{Role: llm.Assistant}, Stop: llm.StopEnd, Model: "rules", Usage: llm.Usage{Input: requestTokens(r)}}
	if name, args, ok := t.next(); ok {
		call := llm.Call{ID: fmt.Sprintf("demo_%d", len(r.Messages)), Name: name, Arguments: asJSON(args)}
		out.Message.Parts = []llm.Part{call}
		out.Stop = llm.StopTools
		out.Usage.Output = textTokens(name) + textTokens(call.Arguments)
		return out
	}
	text := t.finalAnswer(m.next)
	if short, cut := limitTokens(text, r.MaxTokens); cut {
		text, out.Stop = short, llm.StopLength
	}
	out.Message.Parts = []llm.Part{llm.Text(text)}
	out.Usage.Output = textTokens(text)
	return out
}

// limitTokens truncates text to at most limit tokens. A limit of 0 means no
// limit. cut reports whether the text was truncated.
func limitTokens(text string, limit int) (short string, cut bool) {
	if limit <= 0 {
		return text, false
	}
	for i, r := range text {
		if i+utf8.RuneLen(r) > limit*tokenBytes {
			return text[:i], true
		}
	}
	return text, false
}

// answerEvents splits a response into events, as a remote model would send
// them.
func answerEvents(a *llm.Answer) []llm.Event {
	var out []llm.Event
	for _, p := range a.Message.Parts {
		switch p := p.(type) {
		case llm.Text:
			for _, w := range splitWords(string(p)) {
				out = append(out, llm.TextDelta(w))
			}
		case llm.Call:
			out = append(out, llm.CallDelta{ID: p.ID, Name: p.Name})
			for _, w := range splitWords(p.Arguments) {
				out = append(out, llm.CallDelta{Arguments: w})
			}
		}
	}
	return out
}

// splitWords splits text after each word, or after a few letters in scripts
// without spaces.
func splitWords(text string) []string {
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

// requestTokens estimates the number of tokens in a request.
func requestTokens(r *llm.Request) int {
	n := textTokens(r.Instructions)
	for _, t := range r.Tools {
		n += textTokens(t.Name) + textTokens(t.Description) + textTokens(string(t.InputSchema))
	}
	for _, m := range r.Messages {
		n += partTokens(m.Parts)
	}
	return n
}

const imageTokens = 1000 // approximately what vendors count for an image

func partTokens(parts []llm.Part) int {
	n := 0
	for _, p := range parts {
		switch p := p.(type) {
		case llm.Text:
			n += textTokens(string(p))
		case llm.Call:
			n += textTokens(p.Name) + textTokens(p.Arguments)
		case llm.Result:
			n += partTokens(p.Parts)
		case llm.Image:
			n += imageTokens
		}
	}
	return n
}

// textTokens estimates the number of tokens in text.
func textTokens(text string) int { return (len(text) + tokenBytes - 1) / tokenBytes }

// tokenBytes is the estimated number of UTF-8 bytes per token. Counting
// characters would be more accurate in some languages, but in a long
// conversation a hub would spend most of its time counting.
const tokenBytes = 4

// isWide reports whether a character belongs to a script without spaces between
// words.
func isWide(r rune) bool {
	return r >= 0x2e80 && r <= 0x9fff || r >= 0xac00 && r <= 0xd7ff || r >= 0xf900 && r <= 0xfaff
}
