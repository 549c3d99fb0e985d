package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/loadout-dev/loadout/ask"
	"github.com/loadout-dev/loadout/llm"
	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/tools"
	"github.com/loadout-dev/loadout/upstream"
)

// Approver asks for leave for one call; nil denies what a person would have to
// approve.
type Approver func(ctx context.Context, refused *tools.RefusedError, args json.RawMessage) (bool, error)

// Approve asks a principal at a desk.
func Approve(desk *ask.Desk, session string, who policy.Principal) Approver {
	return func(ctx context.Context, r *tools.RefusedError, args json.RawMessage) (bool, error) {
		payload, err := json.Marshal(map[string]any{"tool": r.Tool.Name, "arguments": args})
		if err != nil {
			return false, err
		}
		answer, err := askIn(ctx, desk, ask.Ask{Kind: ask.Approval, Session: session, Principal: who, Payload: payload,
			Message: fmt.Sprintf("Call %s of %s?\n%s\nYou are asked because: %s.", r.Tool.Name, r.Tool.Owner(), shown(args), r.Reason)})
		return answer.Outcome == ask.Accepted, err
	}
}

// shown are the arguments of a call for who decides about it: what is dangerous may be
// at the end.
func shown(args json.RawMessage) string {
	const most = 4000
	runes := []rune(string(args))
	if len(runes) <= most {
		return string(args)
	}
	return fmt.Sprintf("%s … (%d bytes in all) … %s", string(runes[:most/2]), len(args), string(runes[len(runes)-most/2:]))
}

// FromSet returns the tools of one server of a set by their own names, for a model
// that has them at hand all the time. Their calls are decided as all calls of the set
// are, for a principal. The server is connected; the error says why it is not.
func FromSet(ctx context.Context, set *tools.Set, server string, who policy.Principal, approve Approver) ([]Tool, error) {
	if wrong := set.Connect(ctx, server); wrong[server] != "" {
		return nil, errors.New(wrong[server])
	}
	var out []Tool
	for _, s := range set.Servers() {
		if s.Name != server || s.Known == nil {
			continue
		}
		for _, t := range s.Known.Tools {
			schema, err := json.Marshal(t.InputSchema)
			if err != nil {
				return nil, fmt.Errorf("tool %s: %w", t.Name, err)
			}
			a := t.Annotations
			name := upstream.ToolName(server, t.Name)
			out = append(out, Tool{
				Tool:       llm.Tool{Name: t.Name, Description: t.Description, InputSchema: schema},
				Repeatable: a != nil && (a.ReadOnlyHint || a.IdempotentHint), Reads: a != nil && a.ReadOnlyHint,
				Call: func(ctx context.Context, args json.RawMessage) (*Outcome, error) {
					return callIn(ctx, set, &tools.Call{Name: name, Arguments: args, Principal: who}, approve)
				},
			})
		}
	}
	return out, nil
}

// callIn calls a tool of a set, asking where a person is needed.
func callIn(ctx context.Context, set *tools.Set, c *tools.Call, approve Approver) (*Outcome, error) {
	res, err := set.Call(ctx, c)
	if refused, ok := errors.AsType[*tools.RefusedError](err); ok && refused.Ask && approve != nil {
		approved, asked := approve(ctx, refused, c.Arguments)
		switch {
		case asked != nil && ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case asked != nil:
			return &Outcome{Text: "Nobody could be asked about the call: " + asked.Error() + ".", Error: true}, nil
		case !approved:
			return &Outcome{Text: "The person did not approve the call of " + c.Name + ". Do not try it again unless they ask for it.", Error: true}, nil
		}
		c.Approved = true
		res, err = set.Call(ctx, c)
	}
	if err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return &Outcome{Text: strings.TrimSuffix(err.Error(), ".") + ".", Error: true}, nil
	}
	return outcome(res), nil
}
