package chat

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/loadout-dev/loadout/internal/approval"
	"github.com/loadout-dev/loadout/internal/terminal"
	"github.com/loadout-dev/loadout/policy"
)

// answerPrompts shows approval requests and other prompts to the user at the
// terminal, one at a time, until stop is called. stop waits for the prompt to
// finish. If input is nil, answerPrompts does nothing.
func (h *Host) answerPrompts(ctx context.Context, queue *approval.Queue, input *terminal.LineReader) (stop func()) {
	if input == nil {
		return func() {}
	}
	ctx, end := context.WithCancel(ctx)
	waiting := make(chan approval.Request, approval.MaxOpen)
	var mu sync.Mutex
	settled := map[string]func(){} // cancel functions of the shown prompts, by request ID
	unwatch := queue.Subscribe(func(e approval.Event) {
		mu.Lock()
		defer mu.Unlock()
		if e.Answer != nil {
			if over := settled[e.Request.ID]; over != nil {
				over()
			}
			return
		}
		select {
		case waiting <- e.Request:
		default: // too many pending prompts
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
				h.answerPrompt(shown, queue, q, input)
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

// answerPrompt shows the user one request and records the answer, unless it was
// answered elsewhere.
func (h *Host) answerPrompt(ctx context.Context, queue *approval.Queue, q approval.Request, input *terminal.LineReader) {
	if open, err := queue.Pending(ctx, q.Session, policy.Principal{}); err != nil || !slices.ContainsFunc(open, func(o approval.Request) bool { return o.ID == q.ID }) {
		return
	}
	answer := h.promptUser(ctx, q, input)
	if ctx.Err() != nil {
		return
	}
	answer.By = policy.LocalUser()
	if err := queue.Resolve(ctx, q.ID, answer); err != nil && ctx.Err() == nil {
		h.Note("%v", err)
	}
}

// promptUser shows the user one request and returns the answer. An empty line
// for a required field, or the end of the input, cancels it.
func (h *Host) promptUser(ctx context.Context, q approval.Request, input *terminal.LineReader) approval.Answer {
	if q.Kind == approval.KindApproval {
		return h.promptApproval(ctx, q, input)
	}
	fmt.Fprintf(h.Stderr, "\n%s\n", terminal.Safe(q.Message))
	fields, err := terminal.Fields(q.Schema)
	if err != nil {
		h.Note("%v", err)
		return approval.Answer{Outcome: approval.Cancelled}
	}
	if len(fields) == 0 {
		fields = []terminal.Field{terminal.Pick("Yes or no?", "yes", "no")}
	}
	content := map[string]any{}
	for _, f := range fields {
		value, said := h.promptField(ctx, f, input)
		switch {
		case said:
			content[f.Name] = value
		case f.Required || f.Name == "decision":
			return approval.Answer{Outcome: approval.Cancelled}
		}
	}
	if said, ok := content[""].(string); ok {
		content[""] = said == "yes"
	}
	return *terminal.AnswerOf(content)
}

// promptApproval asks the user to approve a tool call and shows its arguments.
// A request without a call shows its message instead.
func (h *Host) promptApproval(ctx context.Context, q approval.Request, input *terminal.LineReader) approval.Answer {
	choices := []string{"yes", "no", "always"}
	if r, ok := terminal.RequestOf(&q); ok {
		choices = []string{"yes", "no", "session", "always"}
		owner := r.Server
		if r.Skill != "" {
			owner = "the skill " + r.Skill
		}
		fmt.Fprintf(h.Stderr, "\nRun %s of %s? Reason: %s.\n%s", terminal.Plain(r.Tool), terminal.Plain(owner), terminal.Plain(r.Reason), terminal.Arguments(r.Tool, r.Arguments, nil))
	} else {
		fmt.Fprintf(h.Stderr, "\n%s\n", terminal.Safe(q.Message))
	}
	said, _ := h.promptField(ctx, terminal.Pick("Allow?", choices...), input)
	scopes := map[any]policy.Scope{"yes": "", "session": policy.ForSession, "always": policy.Always}
	scope, allowed := scopes[said]
	if scope == policy.Always {
		if c := h.Caller(); !c.IsUser() { // a program may answer
			h.Note("approved for this conversation only: %s", c.Reason())
			scope = policy.ForSession
		}
	}
	switch {
	case allowed:
		return approval.Answer{Outcome: approval.Accepted, Scope: scope}
	case said == nil:
		return approval.Answer{Outcome: approval.Cancelled}
	}
	return approval.Answer{Outcome: approval.Declined}
}

// promptField prompts for the value of a field until it is valid. It returns
// false if the user gave no value.
func (h *Host) promptField(ctx context.Context, f terminal.Field, input *terminal.LineReader) (any, bool) {
	prompt := terminal.Plain(f.Title)
	if len(f.Choices) > 0 {
		prompt += " [" + strings.Join(f.Choices, "/") + "]"
	}
	if f.Default != "" {
		prompt += " (" + f.Default + ")"
	}
	if f.Help != "" {
		fmt.Fprintf(h.Stderr, "(%s)\n", f.Help)
	}
	for {
		fmt.Fprintf(h.Stderr, "%s: ", h.Colorize(h.Stderr, "1", prompt))
		line, err := input.ReadLine(ctx)
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
