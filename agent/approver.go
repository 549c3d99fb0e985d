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

	"github.com/loadout-dev/loadout/internal/approval"
	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/tools"
)

// Approval is the user's decision about a call.
type Approval struct {
	Approved bool
	// Arguments replace the arguments of the call; nil keeps them.
	Arguments json.RawMessage
	// Scope says how long the approval is valid; "" means for this call.
	Scope policy.Scope
	// Feedback is the user's message to the model.
	Feedback string
}

// Approver requests approval for one call.
type Approver func(ctx context.Context, refused *tools.RefusedError, args json.RawMessage) (Approval, error)

// CallRequest is the payload of an approval request for a call.
type CallRequest struct {
	Tool      string          `json:"tool"`
	Server    string          `json:"server"`
	Skill     string          `json:"skill,omitempty"` // skill that provides the tool
	Arguments json.RawMessage `json:"arguments,omitempty"`
	Reason    string          `json:"reason"` // why approval is needed
	// SameArguments is set if an approval for more than this call applies to
	// these arguments only.
	SameArguments bool `json:"exact,omitempty"`
}

// NewApprover returns an Approver that submits requests to a queue, for the
// given session and principal. If an earlier process submitted a request for
// the same call, that request is reused.
func NewApprover(desk *approval.Queue, session string, who policy.Principal) Approver {
	return func(ctx context.Context, r *tools.RefusedError, args json.RawMessage) (Approval, error) {
		payload, err := json.Marshal(CallRequest{Tool: r.Tool.Name, Server: r.Tool.Server, Skill: r.Tool.Skill, Arguments: args, Reason: r.Reason, SameArguments: NeedsSameArguments(&r.Tool)})
		if err != nil {
			return Approval{}, err
		}
		a := approval.Request{Kind: approval.KindApproval, Session: session, Principal: who, Payload: payload,
			Message: fmt.Sprintf("Run %s of %s?\n%s\nReason: %s.", r.Tool.Name, r.Tool.Owner(), displayArguments(args), r.Reason)}
		if id := CallID(ctx); id != "" {
			a.ID = session + "." + id
		}
		answer, err := submitAndWait(ctx, desk, a)
		if err != nil {
			return Approval{}, err
		}
		out := Approval{Approved: answer.Outcome == approval.Accepted, Scope: answer.Scope, Feedback: answer.Feedback}
		if len(answer.Content) > 0 && !bytes.Equal(answer.Content, []byte("null")) {
			out.Arguments = answer.Content
		}
		return out, nil
	}
}

// displayArguments returns the arguments of a call for an approval request,
// with invisible characters escaped. It truncates long arguments in the middle,
// because dangerous parts may be at the end.
func displayArguments(args json.RawMessage) string {
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

// submitAndWait submits a request and waits for the answer. It cancels the
// request if waiting fails.
func submitAndWait(ctx context.Context, desk *approval.Queue, a approval.Request) (approval.Answer, error) {
	id, err := desk.Submit(ctx, a)
	if err != nil {
		return approval.Answer{}, err
	}
	answer, err := desk.Wait(ctx, id)
	switch {
	case err != nil:
		err = errors.Join(err, desk.Cancel(context.WithoutCancel(ctx), id))
	case a.Kind == approval.KindElicitation: // the answer may contain a secret
		err = desk.Delete(ctx, id)
	}
	return answer, err
}

// NewElicitationHandler returns an elicitation handler for [Connect] and
// [ToolCaller] that submits the questions of servers to a queue. patience
// limits the time for an answer; 0 means no limit.
func NewElicitationHandler(desk *approval.Queue, session string, who policy.Principal, patience time.Duration) func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
	return func(ctx context.Context, req *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		schema, err := json.Marshal(req.Params.RequestedSchema)
		if err != nil {
			return nil, err
		}
		a := approval.Request{Kind: approval.KindElicitation, Session: session, Principal: who, Message: req.Params.Message, Schema: schema}
		if len(a.Message) > approval.MaxMessage {
			a.Message = strings.ToValidUTF8(a.Message[:approval.MaxMessage-len("…")], "") + "…"
		}
		if patience > 0 {
			a.Deadline = time.Now().Add(patience)
		}
		answer, err := submitAndWait(ctx, desk, a)
		if err != nil {
			return nil, err
		}
		res := &mcp.ElicitResult{Action: "cancel"}
		switch answer.Outcome {
		case approval.Declined:
			res.Action = "decline"
		case approval.Accepted:
			res.Action = "accept"
			if len(answer.Content) > 0 {
				if err := json.Unmarshal(answer.Content, &res.Content); err != nil {
					return nil, fmt.Errorf("answer is not an object: %w", err)
				}
			}
		}
		return res, nil
	}
}
