package tools

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/upstream"
)

// Permit decides on a call of a tool by its own name, without calling it. The
// error is a [*RefusedError] or a [*NoServerError].
func (s *Set) Permit(ctx context.Context, server string, c *Call) error {
	sv := s.byName(server)
	if sv == nil || sv.Server == nil {
		return &NoServerError{Name: server, Near: s.names()}
	}
	t := s.known(sv, upstream.ToolName(server, c.Name))
	if t == nil { // listed by a connection of its own, and not by ours yet
		t = &Tool{Name: upstream.ToolName(server, c.Name), Server: server, Skill: sv.skill, Definition: &mcp.Tool{Name: c.Name}, server: sv}
	}
	return s.permit(ctx, t, c)
}

// PermitPart decides on what a server has besides tools: a resource or a prompt of
// it, as the kind says. A rule for mcp.SERVER.resource or mcp.SERVER.prompt is about
// all of them; nobody is asked, so that a rule that asks refuses.
func (s *Set) PermitPart(server, kind, name string) error {
	sv := s.byName(server)
	if sv == nil || sv.Server == nil {
		return &NoServerError{Name: server, Near: s.names()}
	}
	d := s.rules.Load().Decide(policy.ToolCall{Server: server, Tool: kind, ReadOnly: true, Own: sv.config.Owner == "", Safety: policy.Low})
	if !d.Allow() {
		return fmt.Errorf("%s %s of server %s is refused: %s", kind, name, server, d.Reason)
	}
	return nil
}

// permit is nil where policy lets the tool be called, or a person did: now, or
// before and for this tool as it is. t becomes the tool that the decision is about.
func (s *Set) permit(ctx context.Context, t *Tool, c *Call) error {
	d, approved := s.decide(t, c), false
	if d.NeedsPerson() {
		var err error
		if d, approved, err = s.leave(ctx, t, c, d); err != nil {
			return err
		}
	}
	if err := s.record(ctx, d, s.call(t, c.Arguments), c, approved); err != nil {
		return &RefusedError{Tool: *t, Reason: "the decision cannot be recorded: " + err.Error()}
	}
	if d.Allow() || approved {
		return nil
	}
	return &RefusedError{Tool: *t, Ask: d.NeedsPerson(), Reason: d.Reason, Next: d.Next}
}

// leave answers again for a call that a person has to allow: they approved it, or
// its like before. What they are asked about, and what counts as the same, is the tool
// as its server defines it now, which is not always what was listed last.
func (s *Set) leave(ctx context.Context, t *Tool, c *Call, d policy.ToolDecision) (policy.ToolDecision, bool, error) {
	if s.opts.Grants == nil && c.Subject == "" {
		return d, c.Approved, nil
	}
	now, err := s.current(ctx, t)
	switch {
	case err != nil && c.Subject != "":
		return d, false, &FailedError{Tool: *t, Err: err}
	case err != nil:
		d.Reason += "; whether it is as it was before cannot be told: " + err.Error()
		return d, c.Approved, nil
	case now != nil:
		*t = *now
		d = s.decide(t, c)
	case t.definition != nil:
		return d, false, s.unknown(ctx, c, &UnknownToolError{Name: t.Name, Near: s.near(t.Name)})
	}
	switch {
	case !d.NeedsPerson():
		return d, false, nil
	case c.Approved && (c.Subject == "" || c.Subject == t.Subject()):
		return d, true, nil
	}
	return s.granted(ctx, t, c, d), false, nil
}

// granted answers again by what a person allowed before. Leave for a single call is
// used up.
func (s *Set) granted(ctx context.Context, t *Tool, c *Call, d policy.ToolDecision) policy.ToolDecision {
	if s.opts.Grants == nil {
		return d
	}
	call := s.call(t, c.Arguments)
	if len(call.Arguments) == 0 {
		call.Arguments = json.RawMessage("{}")
	}
	g := d.WithGrants(ctx, s.opts.Grants, call, c.Principal, c.Session)
	switch {
	case g.Grant != nil && g.Grant.Scope == policy.Once && policy.Use(ctx, s.opts.Grants, *g.Grant) != nil:
		return d
	case g.Grant == nil && s.grantedAnother(ctx, t, c):
		g.Reason += "; it changed since it was approved"
	}
	return g
}

// grantedAnother reports whether there is leave for the tool, or its server, as it
// was.
func (s *Set) grantedAnother(ctx context.Context, t *Tool, c *Call) bool {
	all, _, err := s.opts.Grants.List(ctx)
	return err == nil && slices.ContainsFunc(all, func(g policy.Grant) bool {
		return g.Allows.Call && g.Scope == policy.Always && g.Principal == c.Principal && g.Name == t.Name && g.Origin == t.Owner() &&
			g.Subject != t.Subject() && !g.Expired(time.Now())
	})
}

// current is the tool as its server says now, nil where it has none of that name.
func (s *Set) current(ctx context.Context, t *Tool) (*Tool, error) {
	ctx, cancel := context.WithTimeout(ctx, s.opts.Deadline)
	defer cancel()
	if _, err := t.server.Tools(ctx); err != nil {
		return nil, err
	}
	return s.known(t.server, t.Name), nil
}

// decide is the answer of the rules to a call of any arguments, or of those of c.
func (s *Set) decide(t *Tool, c *Call) policy.ToolDecision {
	return s.rules.Load().DecideWith(c.Allow, s.call(t, c.Arguments))
}

// record keeps a decision in the log.
func (s *Set) record(ctx context.Context, d policy.ToolDecision, call policy.ToolCall, c *Call, approved bool) error {
	if s.opts.Audit == nil {
		return nil
	}
	r := d.Record(call, c.Principal, approved)
	if c.Session != "" {
		r.Details["session"] = c.Session
	}
	return s.opts.Audit(ctx, r)
}

// refused records that a call is not made. It is not made either where that fails.
func (s *Set) refused(ctx context.Context, d policy.ToolDecision, call policy.ToolCall, c *Call) {
	if err := s.record(ctx, d, call, c, false); err != nil {
		s.log().Error("a refusal could not be recorded", "tool", call.Permission(), "error", err)
	}
}

// call is what policy is asked about a tool.
func (s *Set) call(t *Tool, args json.RawMessage) policy.ToolCall {
	level := s.opts.DefaultSafety
	if stated := t.server.config.Safety; stated != "" {
		own, _ := policy.ParseLevel(stated) // unknown where it is none: then a person is asked
		if level = max(level, own); t.server.config.Owner == "" || own == policy.Unknown {
			level = own // only the person can say that less care is needed
		}
	}
	a := t.Definition.Annotations
	own := t.server.config.Owner == "" && t.server.settings == nil // which a skill chose
	return policy.ToolCall{
		Server: t.Server, Tool: t.Definition.Name, Name: t.Name, Arguments: args, Subject: t.Subject(), ReadOnly: a != nil && a.ReadOnlyHint,
		Own: own, Ask: t.server.config.Ask, Safety: level,
	}
}
