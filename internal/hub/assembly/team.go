package assembly

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/loadout-dev/loadout/agent"
	"github.com/loadout-dev/loadout/internal/approval"
	"github.com/loadout-dev/loadout/internal/callid"
	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/agents"
	"github.com/loadout-dev/loadout/internal/hub/chat"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/llm"
	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/session"
)

// memberSteps is the maximum number of model calls a member may make per task.
const memberSteps = 30

// handOffTool returns the leader's tool for handing a task to a member. The
// member works in its own conversation, during the same turn and in the same
// working directory. It cannot hand tasks to others. While the leader's conversation has
// a skill that blocks code, no task is handed over.
func (t *conversation) handOffTool(c *chat.ToolContext) agent.Tool {
	return agent.Tool{Tool: *t.setup.Profile.HandOff, ReportsStart: true, Call: func(ctx context.Context, args json.RawMessage) (*agent.Outcome, error) {
		var in struct{ Member, Task string }
		if err := json.Unmarshal(args, &in); err != nil || strings.TrimSpace(in.Task) == "" {
			return &agent.Outcome{Text: "Invalid arguments: want the name of a member and the task as text.", Error: true}, nil
		}
		members := t.setup.Profile.Members
		i := slices.IndexFunc(members, func(m agents.TeamMember) bool { return m.Name == in.Member })
		if i < 0 {
			return &agent.Outcome{Text: fmt.Sprintf("Unknown member %.100q. Members: %s.", in.Member, strings.Join(memberNames(members), ", ")), Error: true}, nil
		}
		// The text of a skill of a server may direct the leader, and a member's
		// conversation does not have that skill.
		if err := t.setup.Runtime.CheckCode(ctx, c.Session.SkillsInContext(), policy.Principal{}, c.Session.ID()); err != nil {
			return &agent.Outcome{Text: fmt.Sprintf("Task not handed to %s: %v", in.Member, firstLine(err)), Error: true, Denied: true}, nil
		}
		if members[i].Confirm {
			if denied, err := t.confirmTask(ctx, c, members[i], in.Task); denied != nil || err != nil {
				return denied, err
			}
		}
		if err := agent.ReportStart(ctx); err != nil {
			return nil, err
		}
		return t.delegateTask(ctx, c, members[i], in.Task)
	}}
}

func memberNames(members []agents.TeamMember) []string {
	var out []string
	for _, m := range members {
		out = append(out, m.Name)
	}
	return out
}

// confirmTask asks the user to approve a task for a member. If the user declines,
// it returns a result for the leader's tool call; otherwise, it returns nil.
func (t *conversation) confirmTask(ctx context.Context, c *chat.ToolContext, m agents.TeamMember, task string) (*agent.Outcome, error) {
	payload, err := json.Marshal(map[string]string{"tool": agents.HandOffTool, "member": m.Name, "task": task})
	if err != nil {
		return nil, err
	}
	a := approval.Request{ID: c.ID + "." + callid.From(ctx), Kind: approval.KindApproval, Session: c.ID, Principal: c.User, Payload: payload,
		Message: truncate(fmt.Sprintf("Hand this task to %s?\n%s", m.Name, task), approval.MaxMessage)}
	id, err := c.Approvals.Submit(ctx, a)
	if err != nil {
		return nil, err
	}
	answer, err := c.Approvals.Wait(ctx, id)
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, errors.Join(context.Cause(ctx), c.Approvals.Cancel(context.WithoutCancel(ctx), id))
	case err != nil:
		return nil, err
	case answer.Outcome == approval.Accepted:
		return nil, nil
	}
	text := fmt.Sprintf("The user declined to hand the task to %s.", m.Name)
	if answer.Feedback != "" {
		text += " Feedback: " + answer.Feedback
	}
	return &agent.Outcome{Text: text, Error: true, Denied: true}, nil
}

// delegateTask has a member perform a task and returns the result of the
// leader's tool call.
func (t *conversation) delegateTask(ctx context.Context, c *chat.ToolContext, m agents.TeamMember, task string) (*agent.Outcome, error) {
	text, err := t.runMember(ctx, c, m, task)
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil && text == "":
		return &agent.Outcome{Text: fmt.Sprintf("%s failed: %v.", m.Name, err), Error: true}, nil
	case err != nil:
		return &agent.Outcome{Text: fmt.Sprintf("%s did not finish: %v. Output so far:\n%s", m.Name, err, text), Error: true}, nil
	}
	return &agent.Outcome{Text: fmt.Sprintf("%s answers:\n%s", m.Name, text)}, nil
}

// runMember runs a member's conversation for a task and returns its last answer.
func (t *conversation) runMember(ctx context.Context, c *chat.ToolContext, m agents.TeamMember, task string) (string, error) {
	profile, err := t.assembler.o.Agents.MemberProfile(ctx, t.principal, t.setup.Profile, m.Name)
	if err != nil {
		return "", hideNotFound(err)
	}
	sub, err := t.assembler.openConversation(ctx, Request{Principal: t.principal, Session: t.id, Draft: t.setup.base.plan.draft != nil, profile: profile})
	if err != nil {
		return "", err
	}
	defer sub.close()
	if err := sub.stopWhenDisabled(ctx); err != nil {
		return "", err
	}
	s, err := sub.setup.Runtime.NewSession(ctx, &session.Options{ID: t.id, Tools: sub.setup.Tools.ForSessionOf(sub.setup.Principal, t.id)})
	if err != nil {
		return "", err
	}
	defer s.Close()
	o := sub.agentOptions(ctx)
	o.MaxSteps = memberSteps
	if o.Tools, err = sub.baseTools(ctx, c, s); err != nil {
		return "", err
	}
	a := agent.New(chat.LimitImages(sub.model, sub.readsImages), s, &o)
	for _, name := range sub.setup.Preload {
		if _, err := s.Load(ctx, name, &session.LoadOptions{Retention: session.RetainPinned, Direct: true, By: session.ByPreload, Why: sub.setup.PreloadReason(name)}); err != nil {
			return "", err
		}
	}
	err = a.RunTurn(ctx, task, func(e agent.Event) { reportProgress(ctx, m.Name, e) })
	return lastAnswer(s), err
}

// reportProgress reports an event in a member's conversation as progress of the
// leader's tool call.
func reportProgress(ctx context.Context, name string, e agent.Event) {
	switch e.Type {
	case agent.ToolCall:
		agent.ReportProgress(ctx, name+" calls "+e.Call.Name)
	case agent.SkillLoaded:
		agent.ReportProgress(ctx, name+" loads the skill "+e.Skill)
	}
}

// lastAnswer returns the model's last text in a session.
func lastAnswer(s *session.Session) string {
	for _, e := range slices.Backward(s.Events(0)) {
		if e.Message != nil && e.Message.Role == llm.Assistant && e.Message.Text != "" {
			return e.Message.Text
		}
	}
	return ""
}

// hideNotFound replaces not-found and permission errors with a single error, so
// that the model cannot tell them apart.
func hideNotFound(err error) error {
	if _, denied := errors.AsType[*account.DeniedError](err); denied || errors.Is(err, store.ErrNotFound) {
		return errors.New("member not found or not permitted")
	}
	return err
}
