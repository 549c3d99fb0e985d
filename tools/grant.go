package tools

import (
	"context"
	"errors"
	"fmt"

	"github.com/loadout-dev/loadout/policy"
)

// ErrKeepsNothing says that a set has no place for what a person allows.
var ErrKeepsNothing = errors.New("nothing is kept of what was approved")

// Keeps reports whether [Set.Grant] has a place for grants.
func (s *Set) Keeps() bool { return s.opts.Grants != nil }

// Grant keeps leave that a person, by, gives for calls like c: of its tool by its
// principal, once, in its session, or always, and with exact only with these
// arguments. It is for the tool as it is defined and its server as it is
// configured: another is asked about again. A grant for one call is used up by the
// next one that needs it, so that a call in hand is better [Call.Approved]. It
// fails with [ErrKeepsNothing] where there is no store, with an
// [*UnknownToolError], or with a [*RefusedError] where a rule denies the call or the
// tool is not that of [Call.Subject].
func (s *Set) Grant(ctx context.Context, c *Call, scope policy.Scope, exact bool, by policy.Principal) error {
	if s.opts.Grants == nil {
		return ErrKeepsNothing
	}
	t, err := s.resolve(ctx, c)
	if err != nil {
		return err
	}
	c = t.fitted(c)
	switch d := s.decide(t, c); {
	case d.Effect == policy.Deny:
		return &RefusedError{Tool: *t, Reason: d.Reason, Next: d.Next}
	case c.Subject != "" && t.Subject() != c.Subject:
		return &RefusedError{Tool: *t, Ask: true, Reason: "it changed since the person was asked", Next: d.Next}
	}
	call := s.call(t, nil)
	g := policy.Grant{Principal: c.Principal, By: by, Subject: t.Subject(), Name: t.Name, Origin: t.Owner(),
		Allows: policy.Allows{Call: true}, Scope: scope}
	if exact {
		g.Subject = g.Subject.With(c.Arguments)
		g.Origin += ", with the arguments " + policy.ArgumentsDigest(c.Arguments).Short()
	}
	if scope != policy.Always {
		g.Session = c.Session
	}
	kept, err := s.opts.Grants.Put(ctx, g)
	if err != nil {
		return fmt.Errorf("keep leave for %s: %w", t.Name, err)
	}
	if s.opts.Audit == nil {
		return nil
	}
	err = s.opts.Audit(ctx, policy.Record{Principal: by, Action: "approve", Subject: kept.Subject, Name: call.Permission(), Decision: policy.Allowed,
		Details: map[string]string{"grant": kept.ID, "scope": string(kept.Scope), "for": kept.Principal.String()}})
	if err != nil { // leave that is in no log is none
		_, undone := s.opts.Grants.Revoke(ctx, kept.ID)
		return errors.Join(fmt.Errorf("record leave for %s: %w", t.Name, err), undone)
	}
	return nil
}

// GrantBrought is [Set.Grant] for a tool that a skill brings, as a part of what a person
// allows the skill. It does nothing, and the tool is asked about as before, where its
// server is the person's own, which the skill only names, where a rule or a mark of the
// person wants to be asked, and where the tool says that it may destroy something.
func (s *Set) GrantBrought(ctx context.Context, c *Call, scope policy.Scope, by policy.Principal) error {
	t, err := s.resolve(ctx, c)
	if err != nil {
		return err
	}
	a := t.Definition.Annotations
	destroys := a != nil && a.DestructiveHint != nil && *a.DestructiveHint
	switch d := s.decide(t, c); {
	case t.server.bundle == nil || destroys, d.Code == policy.ByRule, d.Code == policy.MarkedAsk, d.Code == policy.NotSaid:
		return nil
	}
	return s.Grant(ctx, c, scope, false, by)
}

// Declined records that a person was asked about a call and said no.
func (s *Set) Declined(ctx context.Context, c *Call) error {
	call := policy.ToolCall{Tool: c.Name, Arguments: c.Arguments}
	for _, sv := range s.all() {
		if t := s.known(sv, c.Name); t != nil {
			call = s.call(t, c.Arguments)
			break
		}
	}
	return s.record(ctx, policy.ToolDecision{Effect: policy.Deny, Code: policy.Declined, Reason: "the person who was asked said no"}, call, c, false)
}

// Plan says of each tool whether a person would be asked before a call as c is,
// with its arguments left out: by the rules, those of skills in force, and what was
// allowed before. It sets [Tool.NeedsPerson], and uses nothing up. A call is decided
// again, by its arguments too.
func (s *Set) Plan(ctx context.Context, all []Tool, c *Call) {
	for i := range all {
		t := &all[i]
		d := s.rules.Load().DecideWith(c.Allow, s.call(t, nil))
		if s.opts.Grants != nil {
			d = d.WithGrants(ctx, s.opts.Grants, s.call(t, nil), c.Principal, c.Session)
		}
		t.NeedsPerson = d.NeedsPerson()
	}
}
