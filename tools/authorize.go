package tools

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout/internal/decision"
	"github.com/loadout-dev/loadout/internal/lease"
	"github.com/loadout-dev/loadout/internal/upstream"
	"github.com/loadout-dev/loadout/policy"
)

// Authorize decides whether a tool may be called, without calling it. It
// returns nil if the call is allowed. c.Name is the server's own name for the
// tool. Authorize applies [Call.Approved] and uses up a one-time grant, but
// does not call [Call.Approve]. The decision is recorded with [Options.Audit].
//
// A refusal is a [*loadout.RefusedError]. A [*FailedError] reports that the
// tool's current definition could not be requested. Other errors report that
// the server or the tool is unknown.
func (s *Set) Authorize(ctx context.Context, server string, c *Call) error {
	sv := s.serverByName(server)
	if sv == nil || sv.Server == nil {
		return &unknownServerError{Name: server, Names: s.serverNames()}
	}
	t := s.knownTool(sv, upstream.ToolName(server, c.Name))
	if t == nil { // listed on a connection outside the set
		t = &Tool{Name: upstream.ToolName(server, c.Name), Server: server, Skill: sv.skill, Definition: &mcp.Tool{Name: c.Name}, server: sv}
	}
	return s.authorize(ctx, t, c)
}

// AuthorizeResource decides whether a server's resource or prompt may be
// accessed; kind is "resource" or "prompt". It returns nil if access is
// allowed. A rule for mcp.SERVER.resource or mcp.SERVER.prompt applies to all
// resources or prompts of the server. The user is not asked, so an ask rule
// refuses access. The decision is not recorded.
func (s *Set) AuthorizeResource(server, kind, name string) error {
	sv := s.serverByName(server)
	if sv == nil || sv.Server == nil {
		return &unknownServerError{Name: server, Names: s.serverNames()}
	}
	d := s.rules.Load().Decide(policy.ToolCall{Server: server, Tool: kind, ReadOnly: true, OwnServer: sv.config.Owner == "", Safety: policy.Low})
	if d.Effect != policy.Allow {
		return fmt.Errorf("%s %s of server %s refused: %s", kind, name, server, d.Reason)
	}
	return nil
}

// authorize returns nil if policy allows the call, or if the user approves it
// or has approved such calls of this exact tool. It updates t to the definition
// that the decision is based on.
func (s *Set) authorize(ctx context.Context, t *Tool, c *Call) error {
	d, approved := s.decide(t, c), false
	if d.Effect == policy.Ask {
		var err error
		if d, approved, err = s.applyApproval(ctx, t, c, d); err != nil {
			return err
		}
	}
	if err := s.recordDecision(ctx, d, s.policyCall(t, c.Arguments), c, approved); err != nil {
		return t.refusal(c.Arguments, policy.Decision{Effect: policy.Deny, Reason: "cannot record the decision: " + err.Error()})
	}
	if d.Effect == policy.Allow || approved {
		return nil
	}
	return t.refusal(c.Arguments, d)
}

// applyApproval applies the approval in c, or else stored grants, to a call
// that needs approval. The approval must be for the definition of the tool on the
// current connection, which may differ from that of an earlier process.
func (s *Set) applyApproval(ctx context.Context, t *Tool, c *Call, d policy.Decision) (policy.Decision, bool, error) {
	if s.opts.Grants == nil && c.Subject == "" {
		return d, c.Approved, nil
	}
	now, err := s.currentTool(ctx, t, 0)
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
		return d, false, s.recordUnknownTool(ctx, c, &UnknownToolError{Name: t.Name, Similar: s.SimilarNames(t.Name)})
	}
	switch {
	case d.Effect != policy.Ask:
		return d, false, nil
	case c.Approved && (c.Subject == "" || c.Subject == t.subject()):
		return d, true, nil
	case d.Code == decision.ServedSkill: // grants were given for other reasons to call the tool
		return d, false, nil
	}
	return s.applyGrants(ctx, t, c, d), false, nil
}

// applyGrants applies stored grants to the decision. It uses up a one-time
// grant.
func (s *Set) applyGrants(ctx context.Context, t *Tool, c *Call, d policy.Decision) policy.Decision {
	if s.opts.Grants == nil {
		return d
	}
	call := s.policyCall(t, c.Arguments)
	if len(call.Arguments) == 0 {
		call.Arguments = json.RawMessage("{}")
	}
	g := decision.WithGrants(ctx, d, s.opts.Grants, call, c.Principal, c.Session)
	switch {
	case g.Grant != nil && g.Grant.Scope == policy.Once && lease.Consume(ctx, s.opts.Grants, *g.Grant) != nil:
		return d
	case g.Grant == nil && s.hasStaleGrant(ctx, t, c):
		g.Reason += "; it changed after it was approved"
	}
	return g
}

// hasStaleGrant reports whether an earlier definition of the tool has a
// permanent grant.
func (s *Set) hasStaleGrant(ctx context.Context, t *Tool, c *Call) bool {
	all, _, err := s.opts.Grants.List(ctx)
	return err == nil && slices.ContainsFunc(all, func(g policy.Grant) bool {
		return g.Permissions.Call && g.Scope == policy.Always && g.Principal == c.Principal && g.Name == t.Name && g.Origin == t.owner() &&
			g.Subject != t.subject() && !g.Expired(time.Now())
	})
}

// currentTool connects to the tool's server and returns its definition of the
// tool, which is at most maxAge old. With a maxAge of 0, it is the last one that
// this connection has received. It returns nil if the server no longer has a tool
// with that name.
func (s *Set) currentTool(ctx context.Context, t *Tool, maxAge time.Duration) (*Tool, error) {
	ctx, cancel := context.WithTimeout(ctx, s.opts.Deadline)
	defer cancel()
	list := t.server.Tools
	if maxAge > 0 {
		list = func(ctx context.Context) (*upstream.Listing, error) { return t.server.CurrentTools(ctx, maxAge) }
	}
	if _, err := list(ctx); err != nil {
		return nil, err
	}
	return s.knownTool(t.server, t.Name), nil
}

// decide applies the rules to a call, without asking the user. If c has no
// arguments, the decision applies to all arguments.
func (s *Set) decide(t *Tool, c *Call) policy.Decision {
	call := s.ruledCall(t, c.Arguments)
	rule := decision.ForCall
	if t.server.isolated && !t.isDestructive() {
		rule = decision.ForIsolatedCall
	}
	d := rule(*s.rules.Load(), c.Allow, call)
	if c.Confirm != "" && d.Effect != policy.Deny && !(t.isOwn() && t.declaresReadOnly()) {
		return policy.Decision{Effect: policy.Ask, Code: decision.ServedSkill, Reason: c.Confirm, Hint: "approve the skill after a review"}
	}
	return d
}

// recordDecision writes a decision to the audit log.
func (s *Set) recordDecision(ctx context.Context, d policy.Decision, call policy.ToolCall, c *Call, approved bool) error {
	if s.opts.Audit == nil {
		return nil
	}
	r := decision.CallRecord(d, call, c.Principal, approved)
	if c.Session != "" {
		r.Details["session"] = c.Session
	}
	return s.opts.Audit(ctx, r)
}

// recordRefusal records a refused call in the audit log. The call is refused
// even if that fails.
func (s *Set) recordRefusal(ctx context.Context, d policy.Decision, call policy.ToolCall, c *Call) {
	if err := s.recordDecision(ctx, d, call, c, false); err != nil {
		s.log().Error("cannot record a refusal", "tool", call.Permission(), "error", err)
	}
}

// policyCall describes a call to the tool for a policy decision.
func (s *Set) policyCall(t *Tool, args json.RawMessage) policy.ToolCall {
	call := s.ruledCall(t, args)
	call.Subject = t.subject()
	return call
}

// ruledCall is like policyCall, but omits the digest of the tool, which takes
// time to compute and which rules ignore.
func (s *Set) ruledCall(t *Tool, args json.RawMessage) policy.ToolCall {
	level := s.opts.DefaultSafety
	if stated := t.server.config.Safety; stated != "" {
		own, _ := policy.ParseLevel(stated) // an invalid level is unknown, so the call needs approval
		if level = max(level, own); t.server.config.Owner == "" || own == policy.Unknown {
			level = own // only the user may lower the level
		}
	}
	own := t.server.config.Owner == "" && t.server.settings == nil // the skill chose these settings
	return policy.ToolCall{
		Server: t.Server, Tool: t.Definition.Name, Name: t.Name, Arguments: args, ReadOnly: t.declaresReadOnly(),
		OwnServer: own, AlwaysAsk: t.server.config.RequireApproval, Safety: level,
	}
}
