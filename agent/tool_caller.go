package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/internal/toolname"
	"github.com/loadout-dev/loadout/internal/upstream"
	"github.com/loadout-dev/loadout/llm"
	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/session"
	"github.com/loadout-dev/loadout/tools"
)

// ToolCaller calls the tools of a set for a conversation and requests approval
// if a call needs it. It is safe for concurrent use. Its fields must not be
// changed after first use.
type ToolCaller struct {
	Set *tools.Set
	// Session is the conversation. Its approvals and the allowed tools of its
	// active skills apply to the calls.
	Session   *session.Session
	Principal policy.Principal
	// IsApproved reports whether the current version of a skill is approved.
	// If it is not, the skill's allowed tools do not apply. If IsApproved is
	// nil, the approval at the time of the load is used.
	IsApproved func(ctx context.Context, skill session.ID) bool
	// Approve asks the user about calls that need approval. If it is nil, the
	// Approve function of [loadout.Options] is called.
	Approve loadout.Approver
	// Elicit handles servers' elicitations during a call; nil cancels them.
	Elicit func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error)
}

// ServerTools returns a server's tools under their own names, for a model that
// has them available all the time. It connects to the server and returns an
// error if that fails.
func (c *ToolCaller) ServerTools(ctx context.Context, server string) ([]Tool, error) {
	if wrong := c.Set.Connect(ctx, server); wrong[server] != "" {
		return nil, errors.New(wrong[server])
	}
	var out []Tool
	for _, s := range c.Set.Servers() {
		if s.Name != server || s.Listing == nil {
			continue
		}
		for _, t := range s.Listing.Tools {
			schema, err := json.Marshal(t.InputSchema)
			if err != nil {
				return nil, fmt.Errorf("tool %s: %w", t.Name, err)
			}
			a := t.Annotations
			name := upstream.ToolName(server, t.Name)
			out = append(out, Tool{
				Tool:       llm.Tool{Name: t.Name, Description: t.Description, InputSchema: schema},
				Repeatable: a != nil && (a.ReadOnlyHint || a.IdempotentHint), ReadOnly: a != nil && a.ReadOnlyHint, ReportsStart: true,
				Call: func(ctx context.Context, args json.RawMessage) (*Outcome, error) {
					return c.call(ctx, name, args)
				},
			})
		}
	}
	return out, nil
}

// CallTool returns the tool with which a model calls all other tools of the
// set. The model learns their names from a load or a search.
func (c *ToolCaller) CallTool() Tool {
	return Tool{ReportsStart: true, Tool: llm.Tool{
		Name: toolname.CallTool, Description: "Call a tool that load_skill or find_tools told you of, with the arguments of its schema.",
		InputSchema: json.RawMessage(`{"type":"object","properties":{"name":{"type":"string","description":"of the tool"},"arguments":{"type":"object"}},"required":["name"]}`),
	}, Call: func(ctx context.Context, args json.RawMessage) (*Outcome, error) {
		var in struct {
			Name      string          `json:"name"`
			Arguments json.RawMessage `json:"arguments"`
		}
		if err := json.Unmarshal(args, &in); err != nil || in.Name == "" {
			return &Outcome{Text: "Give the name of a tool, and its arguments as an object.", Error: true}, nil
		}
		var text string // some models encode the object as a string
		if json.Unmarshal(in.Arguments, &text) == nil && json.Valid([]byte(text)) {
			in.Arguments = json.RawMessage(text)
		}
		return c.call(ctx, in.Name, in.Arguments)
	}}
}

// call calls a tool and requests approval if necessary.
func (c *ToolCaller) call(ctx context.Context, name string, args json.RawMessage) (*Outcome, error) {
	call := &tools.Call{Name: name, Arguments: args, Principal: c.Principal, Session: c.Session.ID(), Allow: c.skillRules(ctx), Approve: c.Approve,
		Notify:   func(text string) { emitNotice(ctx, text) },
		Begin:    func() error { return ReportStart(ctx) },
		Progress: func(p *mcp.ProgressNotificationParams) { ReportProgress(ctx, progressText(p)) }}
	if c.Elicit != nil {
		call.Elicit = func(ctx context.Context, p *mcp.ElicitParams) (*mcp.ElicitResult, error) {
			return c.Elicit(ctx, &mcp.ElicitRequest{Params: p})
		}
	}
	res, err := c.Set.Call(ctx, call)
	if err != nil && ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	refused, denied := errors.AsType[*loadout.RefusedError](err)
	switch {
	case err == nil:
		return resultOutcome(res), nil
	case denied && refused.Declined():
		text := "The user declined the call of " + name + ". Do not try it again unless they ask for it."
		if refused.Feedback != "" {
			text += " They say: " + refused.Feedback
		}
		return &Outcome{Text: text, Error: true, Denied: true}, nil
	case denied && refused.Err != nil:
		return &Outcome{Text: "The call needs approval, but the request failed: " + refused.Err.Error() + ".", Error: true, Denied: true}, nil
	}
	return &Outcome{Text: strings.TrimSuffix(err.Error(), ".") + ".", Error: true, Denied: denied}, nil
}

// skillRules returns the rules that allow the tools of active skills.
func (c *ToolCaller) skillRules(ctx context.Context) policy.Rules {
	var texts []string
	for _, a := range c.Session.Active() {
		if len(a.AllowedTools) > 0 && (c.IsApproved == nil || c.IsApproved(ctx, a.Skill)) {
			texts = append(texts, a.AllowedTools...)
		}
	}
	rules, _ := policy.AllowTools(texts) // invalid rules allow nothing
	return rules
}

// progressText returns the text of a progress notification.
func progressText(p *mcp.ProgressNotificationParams) string {
	switch {
	case p.Message != "":
		return p.Message
	case p.Total > 0:
		return fmt.Sprintf("%.0f of %.0f", p.Progress, p.Total)
	}
	return fmt.Sprintf("%.0f", p.Progress)
}
