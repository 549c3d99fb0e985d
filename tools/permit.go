package tools

import (
	"context"
	"encoding/json"
	"fmt"

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
		if s.opts.Grants != nil && s.decide(t, c).NeedsPerson() { // a grant is for a definition
			if now, err := s.current(ctx, t); err == nil && now != nil {
				t = now
			}
		}
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
// before and for this tool as it is. What the skills in force allow counts last.
func (s *Set) permit(ctx context.Context, t *Tool, c *Call) error {
	call := s.call(t, c.Arguments)
	if len(call.Arguments) == 0 {
		call.Arguments = json.RawMessage("{}")
	}
	d := s.rules.Load().DecideWith(c.Allow, call)
	approved := false
	if d.NeedsPerson() {
		var err error
		if approved, err = s.approved(ctx, t, c); err != nil {
			return err
		}
		if !approved {
			d = s.granted(ctx, t, call, c, d)
		}
	}
	if err := s.record(ctx, d, call, c, approved); err != nil {
		return &RefusedError{Tool: *t, Reason: "the decision cannot be recorded: " + err.Error()}
	}
	if d.Allow() || approved {
		return nil
	}
	return &RefusedError{Tool: *t, Ask: d.NeedsPerson(), Reason: d.Reason, Next: d.Next}
}

// approved reports whether a person approved the call of this tool. t becomes the
// tool as it is now where they were asked about another.
func (s *Set) approved(ctx context.Context, t *Tool, c *Call) (bool, error) {
	if !c.Approved || c.Subject == "" {
		return c.Approved, nil
	}
	now, err := s.current(ctx, t)
	switch {
	case err != nil:
		return false, &FailedError{Tool: *t, Err: err}
	case now == nil:
		return false, s.unknown(ctx, c, &UnknownToolError{Name: t.Name, Near: s.near(t.Name)})
	}
	*t = *now
	return t.Subject() == c.Subject, nil
}

// granted answers again where a person may have allowed the call before. A grant
// counts for the tool as its server defines it now, which is not always what was
// listed last, and one for a single call is used up.
func (s *Set) granted(ctx context.Context, t *Tool, call policy.ToolCall, c *Call, d policy.ToolDecision) policy.ToolDecision {
	if s.opts.Grants == nil {
		return d
	}
	g := d.WithGrants(ctx, s.opts.Grants, call, c.Principal, c.Session)
	if g.Grant == nil {
		return g
	}
	now, err := s.current(ctx, t)
	switch {
	case err != nil:
		d.Reason += "; whether it is as it was approved cannot be told: " + err.Error()
		return d
	case now == nil || now.Subject() != t.Subject():
		if now != nil {
			*t = *now
		}
		d.Reason += "; it changed since it was approved"
		return d
	}
	if g.Grant.Scope == policy.Once {
		if err := policy.Use(ctx, s.opts.Grants, *g.Grant); err != nil {
			return d
		}
	}
	return g
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
