package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout/llm"
	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/session"
	"github.com/loadout-dev/loadout/tools"
	"github.com/loadout-dev/loadout/upstream"
)

// Caller calls tools of a set for a conversation, and asks for leave where a person
// has to give it. It is not changed once it is in use, and safe for concurrent use.
type Caller struct {
	Set *tools.Set
	// Session is the conversation: what its skills in force want to be allowed is, and
	// what a person allows for it.
	Session   *session.Session
	Principal policy.Principal
	// Standing says whether a skill is approved as it is now, without which it allows
	// nothing; nil believes what was so when it was loaded.
	Standing func(ctx context.Context, skill session.ID) bool
	// Approve asks for leave; nil denies what a person would have to approve.
	Approve Approver
	// Elicit answers what servers ask during a call; nil cancels.
	Elicit func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error)
}

// Server returns the tools of one server by their own names, for a model that has them
// at hand all the time. The server is connected; the error says why it is not.
func (c *Caller) Server(ctx context.Context, server string) ([]Tool, error) {
	if wrong := c.Set.Connect(ctx, server); wrong[server] != "" {
		return nil, errors.New(wrong[server])
	}
	var out []Tool
	for _, s := range c.Set.Servers() {
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
				Repeatable: a != nil && (a.ReadOnlyHint || a.IdempotentHint), Reads: a != nil && a.ReadOnlyHint, Begins: true,
				Call: func(ctx context.Context, args json.RawMessage) (*Outcome, error) {
					return c.call(ctx, name, args)
				},
			})
		}
	}
	return out, nil
}

// CallTool is the tool by which a model calls all others of the set, which a load or a
// search told it of.
func (c *Caller) CallTool() Tool {
	return Tool{Begins: true, Tool: llm.Tool{
		Name: "call_tool", Description: "Call a tool that load_skill or find_tools told you of, with the arguments of its schema.",
		InputSchema: json.RawMessage(`{"type":"object","properties":{"name":{"type":"string","description":"of the tool"},"arguments":{"type":"object"}},"required":["name"]}`),
	}, Call: func(ctx context.Context, args json.RawMessage) (*Outcome, error) {
		var in struct {
			Name      string          `json:"name"`
			Arguments json.RawMessage `json:"arguments"`
		}
		if err := json.Unmarshal(args, &in); err != nil || in.Name == "" {
			return &Outcome{Text: "Give the name of a tool, and its arguments as an object.", Error: true}, nil
		}
		var text string // some models write the object as a text
		if json.Unmarshal(in.Arguments, &text) == nil && json.Valid([]byte(text)) {
			in.Arguments = json.RawMessage(text)
		}
		return c.call(ctx, in.Name, in.Arguments)
	}}
}

// call calls a tool, asking where a person is needed.
func (c *Caller) call(ctx context.Context, name string, args json.RawMessage) (*Outcome, error) {
	call := &tools.Call{Name: name, Arguments: args, Principal: c.Principal, Session: c.Session.ID(), Allow: c.allowed(ctx),
		Begin:    func() error { return Begin(ctx) },
		Progress: func(p *mcp.ProgressNotificationParams) { Progress(ctx, progress(p)) }}
	if c.Elicit != nil {
		call.Elicit = func(ctx context.Context, p *mcp.ElicitParams) (*mcp.ElicitResult, error) {
			return c.Elicit(ctx, &mcp.ElicitRequest{Params: p})
		}
	}
	res, err := c.Set.Call(ctx, call)
	if refused, ok := errors.AsType[*tools.RefusedError](err); ok && refused.Ask && c.Approve != nil {
		approval, asked := c.Approve(ctx, refused, args)
		switch {
		case asked != nil && ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case asked != nil:
			return &Outcome{Text: "Nobody could be asked about the call: " + asked.Error() + ".", Error: true, Denied: true}, nil
		case !approval.Approved:
			if err := c.Set.Declined(ctx, call); err != nil {
				note(ctx, "that the call was not approved could not be recorded: "+err.Error())
			}
			text := "The person did not approve the call of " + name + ". Do not try it again unless they ask for it."
			if approval.Feedback != "" {
				text += " They say: " + approval.Feedback
			}
			return &Outcome{Text: text, Error: true, Denied: true}, nil
		}
		res, err = c.approved(ctx, call, refused, approval)
	}
	if err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		_, denied := errors.AsType[*tools.RefusedError](err)
		return &Outcome{Text: strings.TrimSuffix(err.Error(), ".") + ".", Error: true, Denied: denied}, nil
	}
	return outcome(res), nil
}

// approved makes a call as a person approved it, and keeps that where they meant it for
// more than this call: for these arguments only, where another call could destroy
// something.
func (c *Caller) approved(ctx context.Context, call *tools.Call, about *tools.RefusedError, a Approval) (*mcp.CallToolResult, error) {
	if len(a.Arguments) > 0 {
		call.Arguments = a.Arguments
	}
	call.Approved, call.Subject = true, about.Tool.Subject()
	if a.Scope != "" && a.Scope != policy.Once {
		if err := c.Set.Grant(ctx, call, a.Scope, Exact(&about.Tool), c.Principal); err != nil {
			note(ctx, "the approval holds for this call only: "+err.Error())
		}
	}
	return c.Set.Call(ctx, call)
}

// Exact reports whether leave for more than one call of a tool is for the same
// arguments only: it may destroy something, which a tool of the person's own server
// has to say, and one of a skill to deny.
func Exact(t *tools.Tool) bool {
	a := t.Definition.Annotations
	switch {
	case a != nil && a.DestructiveHint != nil:
		return *a.DestructiveHint
	case a != nil && a.ReadOnlyHint:
		return false
	}
	return t.Skill != ""
}

// allowed are the rules of the skills in force.
func (c *Caller) allowed(ctx context.Context) policy.Rules {
	var texts []string
	for _, a := range c.Session.Active() {
		if len(a.AllowedTools) > 0 && (c.Standing == nil || c.Standing(ctx, a.Skill)) {
			texts = append(texts, a.AllowedTools...)
		}
	}
	rules, _ := policy.AllowTools(texts) // what cannot be read allows nothing
	return rules
}

// progress is what a server tells of a call.
func progress(p *mcp.ProgressNotificationParams) string {
	switch {
	case p.Message != "":
		return p.Message
	case p.Total > 0:
		return fmt.Sprintf("%.0f of %.0f", p.Progress, p.Total)
	}
	return fmt.Sprintf("%.0f", p.Progress)
}
