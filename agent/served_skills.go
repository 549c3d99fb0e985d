package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/internal/decision"
	"github.com/loadout-dev/loadout/internal/skillname"
	"github.com/loadout-dev/loadout/internal/toolname"
	"github.com/loadout-dev/loadout/internal/untrusted"
	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/session"
)

// confirmation returns why each call of a tool needs the user's approval: the
// conversation has the text of a skill of an MCP server that the user did not
// approve, and that may direct the model. It returns "" if there is none.
func (c *toolCaller) confirmation(ctx context.Context) string {
	err := c.rt.CheckCode(ctx, c.session.SkillsInContext(), policy.Principal{}, c.session.ID())
	refused, ok := errors.AsType[*loadout.RefusedError](err)
	switch {
	case err == nil:
		return ""
	case !ok:
		return err.Error()
	}
	return fmt.Sprintf("skill %s: %s", untrusted.New(refused.Skill).ForTerminal(), refused.Decision.Reason)
}

// guardReads makes a tool that reads files of a skill check their origin.
func (c *toolCaller) guardReads(t Tool) Tool {
	if t.Name != toolname.ReadSkillFile && t.Name != toolname.RunSkillScript {
		return t
	}
	call := t.Call
	t.Call = func(ctx context.Context, args json.RawMessage) (*Outcome, error) {
		var in struct {
			Skill string `json:"skill"`
		}
		if json.Unmarshal(args, &in) == nil {
			if out, err := c.checkOrigin(ctx, t.Name, in.Skill, args); out != nil || err != nil {
				return out, err
			}
		}
		return call(ctx, args)
	}
	return t
}

// checkLoad checks the origin of a skill that the model loads.
func (c *toolCaller) checkLoad(ctx context.Context, skill string, args json.RawMessage) (*Outcome, error) {
	return c.checkOrigin(ctx, toolname.LoadSkill, skill, args)
}

// isServed reports whether an MCP server publishes the skill.
func isServed(a session.ActiveSkill) bool { return skillname.IsServed(a.Skill.Name, a.Skill.Origin) }

// checkOrigin asks the user about a call that reads a skill of an MCP server while
// the conversation has the text of a skill of another server, because that text may
// have directed the model to make the call. The answer applies to this call only. If
// the call must not be made, checkOrigin returns its outcome.
func (c *toolCaller) checkOrigin(ctx context.Context, tool, ref string, args json.RawMessage) (*Outcome, error) {
	acting := ""
	to := skillname.ServerLabel(ref)
	for _, a := range c.session.SkillsInContext() {
		from := skillname.ServerLabel(a.Skill.Name)
		if !isServed(a) {
			continue
		}
		if to == "" { // another form of reference, such as a digest
			if e, err := c.rt.Catalog().Resolve(ctx, ref); err == nil {
				to = e.Server
			}
		}
		if to != "" && to != from {
			acting = a.Skill.Name
		}
	}
	if acting == "" {
		return nil, nil
	}
	about := loadout.CallRequest{Tool: tool, Server: to, Arguments: args, SameArguments: true, ReadOnly: true, Owner: "MCP server " + to,
		Reason: fmt.Sprintf("the conversation has the text of skill %s of the MCP server %s, and this call reads from the MCP server %s",
			untrusted.New(acting).ForTerminal(), skillname.ServerLabel(acting), untrusted.New(to).ForTerminal())}
	refused := &loadout.RefusedError{NeedsApproval: true, Call: &about, Decision: policy.Decision{Effect: policy.Ask, Code: decision.ServedSkill, Reason: about.Reason}}
	ask := c.approve
	if ask == nil {
		ask = c.rt.Approver()
	}
	if ask == nil {
		return newErrorOutcome(refused.Error()+".", true), nil
	}
	answer, err := ask.Ask(ctx, &loadout.ApprovalRequest{Reason: about.Reason, Call: &about}, refused)
	declined, ok := errors.AsType[*loadout.RefusedError](err)
	switch {
	case ok:
		text := declined.Error() + "."
		if declined.Feedback != "" {
			text += " They say: " + declined.Feedback
		}
		return newErrorOutcome(text, true), nil
	case err != nil:
		return nil, err
	case len(answer.Arguments) > 0 && decision.ArgumentsDigest(answer.Arguments) != decision.ArgumentsDigest(args):
		return newErrorOutcome("The user changed the arguments. Make the call again with: "+string(answer.Arguments), true), nil
	}
	return nil, nil
}
