package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/internal/toolname"
	"github.com/loadout-dev/loadout/internal/untrusted"
	"github.com/loadout-dev/loadout/internal/upstream"
	"github.com/loadout-dev/loadout/llm"
	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/session"
	"github.com/loadout-dev/loadout/tools"
)

// toolCaller calls the tools of a set for a conversation and requests approval
// if a call needs it. It is safe for concurrent use.
type toolCaller struct {
	set       *tools.Set
	rt        *loadout.Runtime
	session   *session.Session
	principal policy.Principal
	approve   loadout.Approver
	elicit    func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error)
	direct    bool // whether the model calls the tools under their own names
}

// ServerTools returns the tools of a server in [SkillToolOptions.Tools] under
// their own names. If they are in [Options.Tools], they are always available to
// the model. o and its Tools must not be nil. The tools may be called
// concurrently, until the set is closed. A result contains up to 8 images, 5
// MiB in total.
//
// ServerTools connects to the server. It returns an error if that fails, if the
// set has no such server, or if tools are quarantined or missing. Tools that the
// server adds later are not included.
func ServerTools(ctx context.Context, rt *loadout.Runtime, s *session.Session, server string, o *SkillToolOptions) ([]Tool, error) {
	c := o.caller(rt, s)
	c.direct = true
	if wrong := c.set.Connect(ctx, server); wrong[server] != "" {
		return nil, errors.New(wrong[server])
	}
	all := c.set.Servers()
	at := slices.IndexFunc(all, func(sv tools.Server) bool { return sv.Name == server })
	if at < 0 {
		return nil, fmt.Errorf("no server %q: add it to the servers of the tool set", server)
	}
	if all[at].Listing == nil {
		return nil, nil
	}
	var out []Tool
	for _, t := range all[at].Listing.Tools {
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
	return out, nil
}

// callTool returns the tool through which a model calls all other tools of the
// set. The model learns their names when it loads a skill or searches for
// tools.
func (c *toolCaller) callTool() Tool {
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
func (c *toolCaller) call(ctx context.Context, name string, args json.RawMessage) (*Outcome, error) {
	call := &tools.Call{Name: name, Arguments: args, Principal: c.principal, Session: c.session.ID(), Allow: c.skillRules(ctx), Approve: c.approve, Confirm: c.confirmation(ctx),
		Notify:   func(text string) { emitNotice(ctx, text) },
		Begin:    func() error { return ReportStart(ctx) },
		Progress: func(p *mcp.ProgressNotificationParams) { ReportProgress(ctx, progressText(p)) }}
	if c.elicit != nil {
		call.Elicit = func(ctx context.Context, p *mcp.ElicitParams) (*mcp.ElicitResult, error) {
			return c.elicit(ctx, &mcp.ElicitRequest{Params: p})
		}
	}
	res, err := c.set.Call(ctx, call)
	if err != nil && ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	refused, denied := errors.AsType[*loadout.RefusedError](err)
	switch {
	case err == nil:
		out := resultOutcome(res)
		if out.Error && !c.direct {
			out.Text += c.set.DescribeAlternatives(ctx, nil, call)
		}
		return out, nil
	case denied && refused.Declined():
		text := "The user declined the call of " + name + ". Do not try it again unless they ask for it."
		if refused.Feedback != "" {
			text += " They say: " + refused.Feedback
		}
		return newErrorOutcome(text, true), nil
	case denied && refused.Err != nil:
		return newErrorOutcome("The call needs approval, but the request failed: "+refused.Err.Error()+".", true), nil
	}
	return newErrorOutcome(strings.TrimSuffix(err.Error(), ".")+"."+c.set.DescribeAlternatives(ctx, err, call), denied), nil
}

// newErrorOutcome returns the outcome of a failed call. It cleans text, which
// may contain arguments or text of a skill or server.
func newErrorOutcome(text string, denied bool) *Outcome {
	return &Outcome{Text: untrusted.New(text).ForModelLines(), Error: true, Denied: denied}
}

// skillRules returns rules that allow the tools listed in the allowed-tools of
// active skills. The list of a skill counts only while the loaded version is
// current and approved.
func (c *toolCaller) skillRules(ctx context.Context) policy.Rules {
	var texts []string
	for _, a := range c.session.Active() {
		if len(a.AllowedTools) > 0 && c.rt.AllowsTools(ctx, a, c.session.ID()) {
			texts = append(texts, a.AllowedTools...)
		}
	}
	rules, _ := policy.AllowTools(texts) // invalid rules allow nothing
	return rules
}

func progressText(p *mcp.ProgressNotificationParams) string {
	switch {
	case p.Message != "":
		return p.Message
	case p.Total > 0:
		return fmt.Sprintf("%.0f of %.0f", p.Progress, p.Total)
	}
	return fmt.Sprintf("%.0f", p.Progress)
}
