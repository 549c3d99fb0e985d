package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/loadout-dev/loadout/ask"
	"github.com/loadout-dev/loadout/policy"
)

// questions puts what is asked at a desk to the person at the terminal, one after
// the other, until the result is called.
func (a *app) questions(ctx context.Context, desk *ask.Desk, input *bufio.Reader) (stop func()) {
	waiting := make(chan ask.Ask, ask.MaxOpen)
	cancel := desk.Watch(func(e ask.Event) {
		if e.Answer == nil {
			waiting <- e.Ask // there is room for all that may wait
		}
	})
	over := make(chan struct{})
	go func() {
		defer close(over)
		for q := range waiting {
			answer := a.put(q, input)
			answer.By = policy.Local()
			if err := desk.Answer(ctx, q.ID, answer); err != nil && ctx.Err() == nil {
				a.note("%v", err)
			}
		}
	}()
	return func() {
		cancel()
		close(waiting)
		select {
		case <-over:
		case <-ctx.Done(): // it may wait for a line that never comes
		}
	}
}

// field is what a question wants to know.
type field struct {
	name        string
	Type        string `json:"type"`
	Title       string `json:"title"`
	Description string `json:"description"`
	Enum        []any  `json:"enum"`
	Default     any    `json:"default"`
}

// fieldsOf are those of the schema of a question, by name.
func fieldsOf(schema json.RawMessage) []field {
	var s struct {
		Properties map[string]field `json:"properties"`
	}
	if json.Unmarshal(schema, &s) != nil {
		return nil
	}
	var out []field
	for name, f := range s.Properties {
		f.name = name
		out = append(out, f)
	}
	slices.SortFunc(out, func(x, y field) int { return cmp.Compare(x.name, y.name) })
	return out
}

// put asks the person one question. An empty line, or the end of the input, leaves
// it.
func (a *app) put(q ask.Ask, input *bufio.Reader) ask.Answer {
	fmt.Fprintf(a.stderr, "\n%s\n", safe(q.Message))
	content := map[string]any{}
	for _, f := range fieldsOf(q.Schema) {
		value, ok := a.putField(f, input)
		if !ok {
			return ask.Answer{Outcome: ask.Cancelled}
		}
		content[f.name] = value
	}
	if decision, ok := content["decision"].(string); ok && decision == "no" {
		return ask.Answer{Outcome: ask.Declined}
	}
	raw, err := json.Marshal(content)
	if err != nil {
		return ask.Answer{Outcome: ask.Cancelled}
	}
	return ask.Answer{Outcome: ask.Accepted, Content: raw}
}

// putField asks for the value of one field until it fits.
func (a *app) putField(f field, input *bufio.Reader) (any, bool) {
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
		line, err := input.ReadString('\n')
		if line = strings.TrimSpace(line); line == "" {
			return nil, false
		}
		if value, ok := f.value(line, choices); ok {
			return value, true
		}
		if err != nil {
			return nil, false
		}
	}
}

// value reads what a person typed: of choices the beginning is enough.
func (f *field) value(line string, choices []string) (any, bool) {
	if len(choices) > 0 {
		i := slices.IndexFunc(choices, func(c string) bool { return strings.HasPrefix(c, strings.ToLower(line)) })
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
