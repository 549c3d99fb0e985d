package tools

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/loadout-dev/loadout/internal/decision"
	"github.com/loadout-dev/loadout/policy"
)

// errNoGrantStore is returned if a set does not store grants.
var errNoGrantStore = errors.New("approvals cannot be stored: no grant store")

// StoresGrants reports whether [Set.Grant] can store grants.
func (s *Set) StoresGrants() bool { return s.opts.Grants != nil }

// Grant stores a grant for calls like c. grantor is the user who gives it. The
// grant applies to the principal of c: once, in its session, or always. If
// exact is set, it covers only the same arguments. The grant covers the current
// definition of the tool and configuration of its server; after a change, calls
// need approval again. A one-time grant is used up by the next call that needs
// it. For a call in progress, prefer [Call.Approved].
//
// Grant returns an error if the set has no store, and an [*UnknownToolError] if
// the tool is unknown. It returns a [*loadout.RefusedError] if a rule denies
// the call or the tool does not match [Call.Subject]. It also returns any error
// from [Options.Grants] or [Options.Audit]; without an audit record, the grant
// is revoked again.
func (s *Set) Grant(ctx context.Context, c *Call, scope policy.Scope, exact bool, grantor policy.Principal) error {
	if s.opts.Grants == nil {
		return errNoGrantStore
	}
	t, err := s.resolveTool(ctx, c)
	if err != nil {
		return err
	}
	c = t.fitArguments(c)
	switch d := s.decide(t, c); {
	case d.Effect == policy.Deny:
		return t.refusal(c.Arguments, d)
	case c.Subject != "" && t.subject() != c.Subject:
		return t.refusal(c.Arguments, policy.Decision{Effect: policy.Ask, Code: d.Code, Reason: "the tool changed after the prompt", Hint: d.Hint})
	}
	call := s.policyCall(t, nil)
	g := policy.Grant{Principal: c.Principal, By: grantor, Subject: t.subject(), Name: t.Name, Origin: t.owner(),
		Permissions: policy.Permissions{Call: true}, Scope: scope, Presence: cmp.Or(c.Presence, "answered an approval request"),
		ReadOnly: !exact && t.declaresReadOnly() && (c.ReadOnlyShown || scope == policy.Always && s.hasReadOnlyGrant(ctx, t, c))}
	if exact {
		g.Subject = decision.WithArguments(g.Subject, c.Arguments)
		g.Origin += ", with the arguments " + decision.ArgumentsDigest(c.Arguments).Short()
	}
	if scope != policy.Always {
		g.Session = c.Session
	}
	kept, err := s.opts.Grants.Put(ctx, g)
	if err != nil {
		return fmt.Errorf("store permission for %s: %w", t.Name, err)
	}
	if s.opts.Audit == nil {
		return nil
	}
	err = s.opts.Audit(ctx, policy.Record{Principal: grantor, Action: "approve", Subject: kept.Subject, Name: call.Permission(), Decision: policy.Allow,
		Details: map[string]string{"grant": kept.ID, "scope": string(kept.Scope), "for": kept.Principal.String(), "presence": kept.Presence}})
	if err != nil { // a grant must not exist without an audit record
		_, undone := s.opts.Grants.Revoke(ctx, kept.ID)
		return errors.Join(fmt.Errorf("record permission for %s: %w", t.Name, err), undone)
	}
	return nil
}

// RecordDecline records with [Options.Audit] that the user declined a call, and
// returns any error from it. The tool may be unknown. Do not use RecordDecline
// for a decline during [Set.Call], which records it itself.
func (s *Set) RecordDecline(ctx context.Context, c *Call) error {
	call := policy.ToolCall{Tool: c.Name, Arguments: c.Arguments}
	for _, sv := range s.allServers() {
		if t := s.knownTool(sv, c.Name); t != nil {
			call = s.policyCall(t, c.Arguments)
			break
		}
	}
	return s.recordDecision(ctx, policy.Decision{Effect: policy.Deny, Code: decision.Declined, Reason: "declined by the user"}, call, c, false)
}

// ResolveApprovals sets [Tool.NeedsApproval] and [Tool.ReadOnly] of each tool for
// a call like c with unknown arguments. It considers the rules, those of active skills, and
// stored grants, without using up any. The decision is made again for the
// actual call and its arguments. The tools must come from this set, and c must
// not be nil.
func (s *Set) ResolveApprovals(ctx context.Context, all []Tool, c *Call) {
	for i := range all {
		t := &all[i]
		d := s.decide(t, &Call{Allow: c.Allow})
		if s.opts.Grants != nil {
			d = decision.WithGrants(ctx, d, s.opts.Grants, s.policyCall(t, nil), c.Principal, c.Session)
		}
		t.NeedsApproval = d.Effect == policy.Ask
		t.ReadOnly = d.Effect != policy.Deny && s.notReadOnlyReason(ctx, t, c) == ""
	}
}
