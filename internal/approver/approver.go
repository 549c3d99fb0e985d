// Package approver asks users for approval and for answers to the questions of
// MCP servers, through a queue of approval requests. It decides nothing itself.
// Start with [New].
package approver

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/internal/approval"
	"github.com/loadout-dev/loadout/internal/callid"
	"github.com/loadout-dev/loadout/internal/toolname"
	"github.com/loadout-dev/loadout/internal/untrusted"
	"github.com/loadout-dev/loadout/policy"
)

// New returns an approver that submits requests to a queue for the
// given session and principal. If an earlier process submitted a request for
// the same call, that request is reused.
func New(queue *approval.Queue, session string, who policy.Principal) loadout.Approver {
	return func(ctx context.Context, r *loadout.ApprovalRequest) (loadout.Approval, error) {
		a, err := newRequest(r)
		if err != nil {
			return loadout.Approval{}, err
		}
		a.Kind, a.Session, a.Principal = approval.KindApproval, session, who
		if id := callid.From(ctx); id != "" {
			a.ID = session + "." + id
		}
		answer, err := queue.Ask(ctx, a)
		if err != nil {
			return loadout.Approval{}, err
		}
		out := loadout.Approval{Approved: answer.Outcome == approval.Accepted, Scope: answer.Scope, By: answer.By, Feedback: answer.Feedback, ReadOnlyShown: answer.ReadOnly}
		if len(answer.Content) > 0 && !bytes.Equal(answer.Content, []byte("null")) {
			out.Arguments = answer.Content
		}
		return out, nil
	}
}

// newRequest returns an approval request with its payload and message. For a
// skill's code, the payload is a call that runs the script or loads the skill.
func newRequest(r *loadout.ApprovalRequest) (approval.Request, error) {
	call, owner := r.Call, ""
	if call != nil {
		owner = call.Owner
	} else {
		call, owner = &loadout.CallRequest{Tool: toolname.LoadSkill, Skill: r.Entry.Name, Reason: r.Reason}, "the skill "+r.Entry.Name
		args := map[string]string{"name": r.Entry.Name}
		if r.Script != "" {
			call.Tool, args = toolname.RunSkillScript, map[string]string{"skill": r.Entry.Name, "script": r.Script}
		}
		var err error
		if call.Arguments, err = json.Marshal(args); err != nil {
			return approval.Request{}, err
		}
	}
	payload, err := json.Marshal(call)
	return approval.Request{Payload: payload,
		Message: fmt.Sprintf("Run %s of %s?\n%s\nReason: %s.", call.Tool, owner, displayArguments(call.Arguments), call.Reason)}, err
}

// displayArguments returns a call's arguments for an approval request, with
// invisible characters escaped. Long arguments are truncated in the middle,
// because dangerous parts may be at the end.
func displayArguments(args json.RawMessage) string {
	const most = 8000 // bytes
	text := untrusted.EscapeJSON(string(args))
	if len(text) <= most {
		return text
	}
	return fmt.Sprintf("%s … (%d bytes in all) … %s", strings.ToValidUTF8(text[:most/2], ""), len(args), strings.ToValidUTF8(text[len(text)-most/2:], ""))
}

// NewElicitationHandler returns an elicitation handler that submits servers'
// questions to a queue. timeout is how long it waits for an answer; 0 means no
// limit.
func NewElicitationHandler(queue *approval.Queue, session string, who policy.Principal, timeout time.Duration) func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
	return func(ctx context.Context, req *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		schema, err := json.Marshal(req.Params.RequestedSchema)
		if err != nil {
			return nil, err
		}
		a := approval.Request{Kind: approval.KindElicitation, Session: session, Principal: who, Message: req.Params.Message, Schema: schema}
		if len(a.Message) > approval.MaxMessage {
			a.Message = strings.ToValidUTF8(a.Message[:approval.MaxMessage-len("…")], "") + "…"
		}
		if timeout > 0 {
			a.Deadline = time.Now().Add(timeout)
		}
		answer, err := queue.Ask(ctx, a)
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
					return nil, fmt.Errorf("decode answer: want an object: %w", err)
				}
			}
		}
		return res, nil
	}
}
