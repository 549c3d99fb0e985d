package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout/ask"
	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/tools"
)

// Approval is what a person says about a call.
type Approval struct {
	Approved bool
	// Arguments are those that the person wants instead; nil is as they were.
	Arguments json.RawMessage
	// Scope is for how long it is meant; "" is this call.
	Scope policy.Scope
	// Feedback is what the person wants the model to know.
	Feedback string
}

// Approver asks for leave for one call.
type Approver func(ctx context.Context, refused *tools.RefusedError, args json.RawMessage) (Approval, error)

// Request is the payload of an ask for leave for a call.
type Request struct {
	Tool      string          `json:"tool"`
	Server    string          `json:"server"`
	Skill     string          `json:"skill,omitempty"` // that brings it
	Arguments json.RawMessage `json:"arguments,omitempty"`
	Reason    string          `json:"reason"` // why a person is asked
	// Exact says that leave for more than this call is for these arguments only.
	Exact bool `json:"exact,omitempty"`
}

// Approve asks a principal at a desk, in the conversation of that ID. A question that
// an earlier process asked about the same call is not asked twice.
func Approve(desk *ask.Desk, session string, who policy.Principal) Approver {
	return func(ctx context.Context, r *tools.RefusedError, args json.RawMessage) (Approval, error) {
		payload, err := json.Marshal(Request{Tool: r.Tool.Name, Server: r.Tool.Server, Skill: r.Tool.Skill, Arguments: args, Reason: r.Reason, Exact: Exact(&r.Tool)})
		if err != nil {
			return Approval{}, err
		}
		a := ask.Ask{Kind: ask.Approval, Session: session, Principal: who, Payload: payload,
			Message: fmt.Sprintf("Call %s of %s?\n%s\nYou are asked because: %s.", r.Tool.Name, r.Tool.Owner(), shown(args), r.Reason)}
		if id := CallID(ctx); id != "" {
			a.ID = session + "." + id
		}
		answer, err := askIn(ctx, desk, a)
		if err != nil {
			return Approval{}, err
		}
		out := Approval{Approved: answer.Outcome == ask.Accepted, Scope: answer.Scope, Feedback: answer.Feedback}
		if len(answer.Content) > 0 && !bytes.Equal(answer.Content, []byte("null")) {
			out.Arguments = answer.Content
		}
		return out, nil
	}
}

// shown are the arguments of a call for who decides about it, with what does not show
// spelled out: what is dangerous may be at the end.
func shown(args json.RawMessage) string {
	const most = 8000 // bytes
	var b strings.Builder
	for _, r := range string(args) {
		if unicode.IsPrint(r) || r == '\n' || r == '\t' {
			b.WriteRune(r)
		} else {
			fmt.Fprintf(&b, "\\u%04x", r)
		}
	}
	text := b.String()
	if len(text) <= most {
		return text
	}
	return fmt.Sprintf("%s … (%d bytes in all) … %s", strings.ToValidUTF8(text[:most/2], ""), len(args), strings.ToValidUTF8(text[len(text)-most/2:], ""))
}

// askIn asks, and takes the question back where nobody waits for its answer any more.
func askIn(ctx context.Context, desk *ask.Desk, a ask.Ask) (ask.Answer, error) {
	id, err := desk.Put(ctx, a)
	if err != nil {
		return ask.Answer{}, err
	}
	answer, err := desk.Wait(ctx, id)
	switch {
	case err != nil:
		err = errors.Join(err, desk.Cancel(context.WithoutCancel(ctx), id))
	case a.Kind == ask.Elicitation: // what was said may be a secret
		err = desk.Forget(ctx, id)
	}
	return answer, err
}

// Elicit asks a principal, at a desk, what servers want to know: for [Connect] and
// [Caller]. patience is how long an answer may take; 0 is for ever.
func Elicit(desk *ask.Desk, session string, who policy.Principal, patience time.Duration) func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
	return func(ctx context.Context, req *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		schema, err := json.Marshal(req.Params.RequestedSchema)
		if err != nil {
			return nil, err
		}
		a := ask.Ask{Kind: ask.Elicitation, Session: session, Principal: who, Message: req.Params.Message, Schema: schema}
		if len(a.Message) > ask.MaxMessage {
			a.Message = strings.ToValidUTF8(a.Message[:ask.MaxMessage-len("…")], "") + "…"
		}
		if patience > 0 {
			a.Deadline = time.Now().Add(patience)
		}
		answer, err := askIn(ctx, desk, a)
		if err != nil {
			return nil, err
		}
		res := &mcp.ElicitResult{Action: "cancel"}
		switch answer.Outcome {
		case ask.Declined:
			res.Action = "decline"
		case ask.Accepted:
			res.Action = "accept"
			if len(answer.Content) > 0 {
				if err := json.Unmarshal(answer.Content, &res.Content); err != nil {
					return nil, fmt.Errorf("the answer is no object: %w", err)
				}
			}
		}
		return res, nil
	}
}
