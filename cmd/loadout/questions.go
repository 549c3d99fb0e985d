package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/loadout-dev/loadout/ask"
	"github.com/loadout-dev/loadout/internal/terminal"
	"github.com/loadout-dev/loadout/policy"
)

// questions puts what is asked at a desk to the person at the terminal, one after
// the other, until stop is called, which waits. Without an input something else asks.
func (a *app) questions(ctx context.Context, desk *ask.Desk, input *typed) (stop func()) {
	if input == nil {
		return func() {}
	}
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

// put asks the person one question. Only what they said is an answer: an empty line
// for what has to be known, and the end of the input, leave it.
func (a *app) put(ctx context.Context, q ask.Ask, input *typed) ask.Answer {
	if q.Kind == ask.Approval {
		return a.putApproval(ctx, q, input)
	}
	fmt.Fprintf(a.stderr, "\n%s\n", safe(q.Message))
	fields, err := terminal.Fields(q.Schema)
	if err != nil {
		a.note("%v", err)
		return ask.Answer{Outcome: ask.Cancelled}
	}
	if len(fields) == 0 {
		fields = []terminal.Field{terminal.Pick("Yes or no?", "yes", "no")}
	}
	content := map[string]any{}
	for _, f := range fields {
		value, said := a.putField(ctx, f, input)
		switch {
		case said:
			content[f.Name] = value
		case f.Required || f.Name == "decision":
			return ask.Answer{Outcome: ask.Cancelled}
		}
	}
	if said, ok := content[""].(string); ok {
		content[""] = said == "yes"
	}
	return *terminal.Answered(content)
}

// putApproval asks for leave: for a call, whose arguments it shows, or for what the
// message says.
func (a *app) putApproval(ctx context.Context, q ask.Ask, input *typed) ask.Answer {
	choices := []string{"yes", "no", "always"}
	if r, ok := terminal.RequestOf(&q); ok {
		choices = []string{"yes", "no", "session", "always"}
		owner := r.Server
		if r.Skill != "" {
			owner = "the skill " + r.Skill
		}
		fmt.Fprintf(a.stderr, "\nCall %s of %s? You are asked because %s.\n%s", plain(r.Tool), plain(owner), plain(r.Reason), terminal.Arguments(r.Tool, r.Arguments, nil))
	} else {
		fmt.Fprintf(a.stderr, "\n%s\n", safe(q.Message))
	}
	said, _ := a.putField(ctx, terminal.Pick("Allow it?", choices...), input)
	scopes := map[any]policy.Scope{"yes": "", "session": policy.ForSession, "always": policy.Always}
	scope, allowed := scopes[said]
	switch {
	case allowed:
		return ask.Answer{Outcome: ask.Accepted, Scope: scope}
	case said == nil:
		return ask.Answer{Outcome: ask.Cancelled}
	}
	return ask.Answer{Outcome: ask.Declined}
}

// putField asks for the value of one field until it fits; false is that nothing was
// said.
func (a *app) putField(ctx context.Context, f terminal.Field, input *typed) (any, bool) {
	prompt := plain(f.Title)
	if len(f.Choices) > 0 {
		prompt += " [" + strings.Join(f.Choices, "/") + "]"
	}
	if f.Default != "" {
		prompt += " (" + f.Default + ")"
	}
	if f.Help != "" {
		fmt.Fprintf(a.stderr, "(%s)\n", f.Help)
	}
	for {
		fmt.Fprintf(a.stderr, "%s: ", a.style(a.stderr, "1", prompt))
		line, err := input.next(ctx)
		if err != nil {
			return nil, false
		}
		if line = cmp.Or(strings.TrimSpace(line), f.Default); line == "" {
			return nil, false
		}
		if value, ok := f.Value(line); ok {
			return value, true
		}
	}
}
