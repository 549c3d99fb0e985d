package tools

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/internal/decision"
	"github.com/loadout-dev/loadout/policy"
)

// refusal returns a [*loadout.RefusedError] for a call with the given
// arguments.
func (t *Tool) refusal(args json.RawMessage, d policy.Decision) *loadout.RefusedError {
	return &loadout.RefusedError{
		Skill: t.Skill, NeedsApproval: d.Effect == policy.Ask, Decision: d,
		Call: &loadout.CallRequest{Tool: t.Name, Server: t.Server, Skill: t.Skill, Arguments: args, Reason: d.Reason, SameArguments: t.needsSameArguments(), ReadOnly: t.declaresReadOnly(),
			Description: t.Definition.Description, Owner: t.owner(), Subject: t.subject()},
	}
}

// isDestructive reports whether the tool declares that it may destroy data.
func (t *Tool) isDestructive() bool {
	a := t.Definition.Annotations
	return a != nil && a.DestructiveHint != nil && *a.DestructiveHint
}

// needsSameArguments reports whether an approval for more than one call covers
// only calls with the same arguments. It returns true if the tool declares that
// it may destroy data. It also returns true for a tool that acts outside of the
// sandbox, unless it declares that it destroys no data, only reads, or interacts
// only with a closed domain, such as a directory.
func (t *Tool) needsSameArguments() bool {
	a := t.Definition.Annotations
	if a != nil && (a.DestructiveHint != nil || a.ReadOnlyHint || a.OpenWorldHint != nil && !*a.OpenWorldHint) {
		return t.isDestructive()
	}
	return !t.server.isolated
}

// approver returns the function that asks the user to approve a call, or nil.
func (s *Set) approver(c *Call) loadout.Approver {
	if c.Approve == nil {
		return s.rt.Approver()
	}
	return c.Approve
}

// callApproved asks the user to approve a refused call and makes the call if
// they do. It stores an approval that covers more than this call. For a tool
// that may destroy data, the stored approval covers only the same arguments.
func (s *Set) callApproved(ctx context.Context, c *Call, refused *loadout.RefusedError, ask loadout.Approver) (*mcp.CallToolResult, error) {
	about := *refused.Call
	about.Arguments = c.Arguments
	a, err := ask.Ask(ctx, &loadout.ApprovalRequest{Reason: about.Reason, Call: &about}, refused)
	if err != nil {
		if no, ok := errors.AsType[*loadout.RefusedError](err); ok && no.Declined() {
			if err := s.RecordDecline(ctx, c); err != nil {
				c.notify("that the call was not approved could not be recorded: " + err.Error())
			}
		}
		return nil, err
	}
	next := *c
	if len(a.Arguments) > 0 {
		next.Arguments = a.Arguments
	}
	next.Approved, next.Subject, next.ReadOnlyShown = true, about.Subject, c.ReadOnlyShown || a.ReadOnlyShown
	switch {
	case a.Scope == "" || a.Scope == policy.Once:
	case refused.Decision.Code == decision.ServedSkill:
		c.notify("the approval holds for this call only, until the skill is approved")
	default:
		if err := s.Grant(ctx, &next, a.Scope, about.SameArguments, c.Principal); err != nil {
			c.notify("the approval holds for this call only: " + err.Error())
		}
	}
	return s.call(ctx, &next)
}

func (c *Call) notify(text string) {
	if c.Notify != nil {
		c.Notify(text)
	}
}
