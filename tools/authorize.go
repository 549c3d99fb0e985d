package tools

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout/internal/lease"
	"github.com/loadout-dev/loadout/internal/upstream"
	"github.com/loadout-dev/loadout/policy"
)

// Authorize decides on a call of a tool by the server's own name for it,
// without calling it. The error is a [*loadout.RefusedError] or an
// [*UnknownServerError].
func (s *Set) Authorize(ctx context.Context, server string, c *Call) error {
	sv := s.serverByName(server)
	if sv == nil || sv.Server == nil {
		return &UnknownServerError{Name: server, Names: s.serverNames()}
	}
	t := s.knownTool(sv, upstream.ToolName(server, c.Name))
	if t == nil { // listed by another connection than the set's
		t = &Tool{Name: upstream.ToolName(server, c.Name), Server: server, Skill: sv.skill, Definition: &mcp.Tool{Name: c.Name}, server: sv}
	}
	return s.authorize(ctx, t, c)
}

// AuthorizeResource decides on access to a resource or prompt of a server; kind
// is "resource" or "prompt". A rule for mcp.SERVER.resource or
// mcp.SERVER.prompt covers all of them. There is no prompt, so a rule that asks
// refuses.
func (s *Set) AuthorizeResource(server, kind, name string) error {
	sv := s.serverByName(server)
	if sv == nil || sv.Server == nil {
		return &UnknownServerError{Name: server, Names: s.serverNames()}
	}
	d := s.rules.Load().Decide(policy.ToolCall{Server: server, Tool: kind, ReadOnly: true, OwnServer: sv.config.Owner == "", Safety: policy.Low})
	if !d.Allowed() {
		return fmt.Errorf("%s %s of server %s refused: %s", kind, name, server, d.Reason)
	}
	return nil
}

// authorize returns nil if policy allows the call or the user approved it, now
// or earlier for this exact tool. It replaces t with the tool that the decision
// is about.
func (s *Set) authorize(ctx context.Context, t *Tool, c *Call) error {
	d, approved := s.decide(t, c), false
	if d.NeedsApproval() {
		var err error
		if d, approved, err = s.applyApproval(ctx, t, c, d); err != nil {
			return err
		}
	}
	if err := s.recordDecision(ctx, d, s.policyCall(t, c.Arguments), c, approved); err != nil {
		return t.refusal(c.Arguments, policy.ToolDecision{Effect: policy.Deny, Reason: "cannot record the decision: " + err.Error()})
	}
	if d.Allowed() || approved {
		return nil
	}
	return t.refusal(c.Arguments, d)
}

// applyApproval decides a call that needs approval by the approval in c or by
// stored grants. The approval must be for the tool as its server defines it
// now, which may differ from the last listing.
func (s *Set) applyApproval(ctx context.Context, t *Tool, c *Call, d policy.ToolDecision) (policy.ToolDecision, bool, error) {
	if s.opts.Grants == nil && c.Subject == "" {
		return d, c.Approved, nil
	}
	now, err := s.currentTool(ctx, t)
	switch {
	case err != nil && c.Subject != "":
		return d, false, &FailedError{Tool: *t, Err: err}
	case err != nil:
		d.Reason += "; cannot check whether it changed: " + err.Error()
		return d, c.Approved, nil
	case now != nil:
		*t = *now
		d = s.decide(t, c)
	case t.definition != nil:
		return d, false, s.recordUnknown(ctx, c, &UnknownToolError{Name: t.Name, Similar: s.similarNames(t.Name)})
	}
	switch {
	case !d.NeedsApproval():
		return d, false, nil
	case c.Approved && (c.Subject == "" || c.Subject == t.Subject()):
		return d, true, nil
	}
	return s.applyGrants(ctx, t, c, d), false, nil
}

// applyGrants decides by stored grants. It uses up a grant for a single call.
func (s *Set) applyGrants(ctx context.Context, t *Tool, c *Call, d policy.ToolDecision) policy.ToolDecision {
	if s.opts.Grants == nil {
		return d
	}
	call := s.policyCall(t, c.Arguments)
	if len(call.Arguments) == 0 {
		call.Arguments = json.RawMessage("{}")
	}
	g := d.WithGrants(ctx, s.opts.Grants, call, c.Principal, c.Session)
	switch {
	case g.Grant != nil && g.Grant.Scope == policy.Once && lease.Consume(ctx, s.opts.Grants, *g.Grant) != nil:
		return d
	case g.Grant == nil && s.hasStaleGrant(ctx, t, c):
		g.Reason += "; it changed after it was approved"
	}
	return g
}

// hasStaleGrant reports whether the tool was always allowed in an earlier form.
func (s *Set) hasStaleGrant(ctx context.Context, t *Tool, c *Call) bool {
	all, _, err := s.opts.Grants.List(ctx)
	return err == nil && slices.ContainsFunc(all, func(g policy.Grant) bool {
		return g.Permissions.Call && g.Scope == policy.Always && g.Principal == c.Principal && g.Name == t.Name && g.Origin == t.Owner() &&
			g.Subject != t.Subject() && !g.Expired(time.Now())
	})
}

// currentTool asks the server for the tool as it is now. It returns nil if the
// server has none of that name.
func (s *Set) currentTool(ctx context.Context, t *Tool) (*Tool, error) {
	ctx, cancel := context.WithTimeout(ctx, s.opts.Deadline)
	defer cancel()
	if _, err := t.server.Tools(ctx); err != nil {
		return nil, err
	}
	return s.knownTool(t.server, t.Name), nil
}

// decide applies the rules to a call with the arguments of c, or with any
// arguments if c has none.
func (s *Set) decide(t *Tool, c *Call) policy.ToolDecision {
	return s.rules.Load().DecideWith(c.Allow, s.policyCall(t, c.Arguments))
}

// recordDecision writes a decision to the audit log.
func (s *Set) recordDecision(ctx context.Context, d policy.ToolDecision, call policy.ToolCall, c *Call, approved bool) error {
	if s.opts.Audit == nil {
		return nil
	}
	r := d.Record(call, c.Principal, approved)
	if c.Session != "" {
		r.Details["session"] = c.Session
	}
	return s.opts.Audit(ctx, r)
}

// recordRefusal records that a call was refused. The call stays refused if
// recording fails.
func (s *Set) recordRefusal(ctx context.Context, d policy.ToolDecision, call policy.ToolCall, c *Call) {
	if err := s.recordDecision(ctx, d, call, c, false); err != nil {
		s.log().Error("cannot record a refusal", "tool", call.Permission(), "error", err)
	}
}

// policyCall describes a call of the tool for policy.
func (s *Set) policyCall(t *Tool, args json.RawMessage) policy.ToolCall {
	level := s.opts.DefaultSafety
	if stated := t.server.config.Safety; stated != "" {
		own, _ := policy.ParseLevel(stated) // unknown if invalid; then the call needs approval
		if level = max(level, own); t.server.config.Owner == "" || own == policy.Unknown {
			level = own // only the user may lower the level
		}
	}
	a := t.Definition.Annotations
	own := t.server.config.Owner == "" && t.server.settings == nil // the skill chose these settings
	return policy.ToolCall{
		Server: t.Server, Tool: t.Definition.Name, Name: t.Name, Arguments: args, Subject: t.Subject(), ReadOnly: a != nil && a.ReadOnlyHint,
		OwnServer: own, AlwaysAsk: t.server.config.RequireApproval, Safety: level,
	}
}
