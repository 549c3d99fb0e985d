package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/loadout-dev/loadout/ask"
	"github.com/loadout-dev/loadout/policy"
)

// questions puts what is asked at a desk to the person at the terminal, one after
// the other, until stop is called, which waits.
func (a *app) questions(ctx context.Context, desk *ask.Desk, input *typed) (stop func()) {
	ctx, end := context.WithCancel(ctx)
	waiting := make(chan ask.Ask, ask.MaxOpen)
	var mu sync.Mutex
	settled := map[string]func(){} // of the questions that are shown
	unwatch := desk.Watch(func(e ask.Event) {
		mu.Lock()
		defer mu.Unlock()
		if e.Answer != nil {
			if over := settled[e.Ask.ID]; over != nil {
				over()
			}
			return
		}
		select {
		case waiting <- e.Ask:
		default: // nobody could answer that many
		}
	})
	over := make(chan struct{})
	go func() {
		defer close(over)
		for {
			select {
			case q := <-waiting:
				shown, done := context.WithCancel(ctx)
				mu.Lock()
				settled[q.ID] = done
				mu.Unlock()
				a.answerTo(shown, desk, q, input)
				mu.Lock()
				delete(settled, q.ID)
				mu.Unlock()
				done()
			case <-ctx.Done():
				return
			}
		}
	}()
	return func() {
		unwatch()
		end()
		<-over
	}
}

// answerTo asks the person, and settles the question unless that has happened.
func (a *app) answerTo(ctx context.Context, desk *ask.Desk, q ask.Ask, input *typed) {
	if open, err := desk.Open(ctx, q.Session, policy.Principal{}); err != nil || !slices.ContainsFunc(open, func(o ask.Ask) bool { return o.ID == q.ID }) {
		return
	}
	answer := a.put(ctx, q, input)
	if ctx.Err() != nil {
		return
	}
	answer.By = policy.Local()
	if err := desk.Answer(ctx, q.ID, answer); err != nil && ctx.Err() == nil {
		a.note("%v", err)
	}
}

// field is what a question wants to know.
type field struct {
	name        string
	required    bool
	Type        string `json:"type"`
	Title       string `json:"title"`
	Description string `json:"description"`
	Enum        []any  `json:"enum"`
}

// fieldsOf are those of the schema of a question, by name; none is a yes or no.
func fieldsOf(schema json.RawMessage) ([]field, error) {
	if len(schema) == 0 || string(schema) == "null" {
		return nil, nil
	}
	var s struct {
		Properties map[string]field `json:"properties"`
		Required   []string         `json:"required"`
	}
	if err := json.Unmarshal(schema, &s); err != nil {
		return nil, fmt.Errorf("what it asks for cannot be read: %w", err)
	}
	var out []field
	for name, f := range s.Properties {
		f.name, f.required = name, slices.Contains(s.Required, name)
		out = append(out, f)
	}
	slices.SortFunc(out, func(x, y field) int { return cmp.Compare(x.name, y.name) })
	return out, nil
}

// put asks the person one question. Only what they said is an answer: an empty line
// for what has to be known, and the end of the input, leave it.
func (a *app) put(ctx context.Context, q ask.Ask, input *typed) ask.Answer {
	fmt.Fprintf(a.stderr, "\n%s\n", safe(q.Message))
	fields, err := fieldsOf(q.Schema)
	if err != nil {
		a.note("%v", err)
		return ask.Answer{Outcome: ask.Cancelled}
	}
	if len(fields) == 0 {
		return a.putYesOrNo(ctx, input)
	}
	content := map[string]any{}
	for _, f := range fields {
		value, said := a.putField(ctx, f, input)
		if said {
			content[f.name] = value
		} else if f.required || f.name == "decision" {
			return ask.Answer{Outcome: ask.Cancelled}
		}
	}
	if content["decision"] == "no" {
		return ask.Answer{Outcome: ask.Declined}
	}
	raw, err := json.Marshal(content)
	if err != nil {
		return ask.Answer{Outcome: ask.Cancelled}
	}
	return ask.Answer{Outcome: ask.Accepted, Content: raw}
}

func (a *app) putYesOrNo(ctx context.Context, input *typed) ask.Answer {
	value, said := a.putField(ctx, field{name: "Yes or no?", Type: "boolean"}, input)
	switch {
	case !said:
		return ask.Answer{Outcome: ask.Cancelled}
	case value == true:
		return ask.Answer{Outcome: ask.Accepted}
	}
	return ask.Answer{Outcome: ask.Declined}
}

// putField asks for the value of one field until it fits; false is that nothing was
// said.
func (a *app) putField(ctx context.Context, f field, input *typed) (any, bool) {
	var choices []string
	for _, e := range f.Enum {
		choices = append(choices, plain(fmt.Sprint(e)))
	}
	if f.Type == "boolean" {
		choices = []string{"yes", "no"}
	}
	prompt := plain(cmp.Or(f.Title, f.name))
	if len(choices) > 0 {
		prompt += " [" + strings.Join(choices, "/") + "]"
	}
	if f.Description != "" {
		fmt.Fprintf(a.stderr, "(%s)\n", plain(f.Description))
	}
	for {
		fmt.Fprintf(a.stderr, "%s: ", a.style(a.stderr, "1", prompt))
		line, err := input.next(ctx)
		if line = strings.TrimSpace(line); err != nil || line == "" {
			return nil, false
		}
		if value, ok := f.value(line, choices); ok {
			return value, true
		}
	}
}

// value reads what a person typed: of choices the beginning of one is enough.
func (f *field) value(line string, choices []string) (any, bool) {
	if len(choices) > 0 {
		i := choice(line, choices)
		switch {
		case i < 0:
			return nil, false
		case f.Type == "boolean":
			return i == 0, true
		}
		return f.Enum[i], true
	}
	switch f.Type {
	case "integer":
		n, err := strconv.ParseInt(line, 10, 64)
		return n, err == nil
	case "number":
		n, err := strconv.ParseFloat(line, 64)
		return n, err == nil
	}
	return line, true
}

// choice is the one that a line names, or is the beginning of and of no other; -1 is
// none.
func choice(line string, choices []string) int {
	if i := slices.Index(choices, line); i >= 0 {
		return i
	}
	found := -1
	for i, c := range choices {
		if strings.HasPrefix(strings.ToLower(c), strings.ToLower(line)) {
			if found >= 0 {
				return -1
			}
			found = i
		}
	}
	return found
}
