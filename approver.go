package loadout

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/loadout-dev/loadout/internal/decision"
	"github.com/loadout-dev/loadout/internal/execution"
	"github.com/loadout-dev/loadout/policy"
)

// Approver asks the user to approve a request and waits for the answer, or
// until ctx is done. It must be safe for concurrent use. If the user cannot be
// asked, it returns an error and nothing is approved.
type Approver func(ctx context.Context, r *ApprovalRequest) (Approval, error)

// Approval is the user's answer to an [ApprovalRequest]. The zero value
// declines.
type Approval struct {
	Approved bool
	// Scope is the scope of the approval. "" approves one script run, one tool
	// call, or a skill's servers for the conversation, but for at most one
	// day. Outside a session, [policy.ForSession] approves a skill's code for
	// one day.
	Scope policy.Scope
	// By is the user who approved the skill's code. The zero value is the user
	// who runs this program.
	By policy.Principal
	// Presence is the [policy.Grant.Presence] of the grant. It says how the
	// program knows that the user answered. "" means that the user answered an
	// approval request.
	Presence string
	// Arguments, if not empty, replace the arguments of the tool call.
	Arguments json.RawMessage
	// Feedback is the user's message to the model if they declined.
	Feedback string
	// ReadOnlyShown is set if the user was shown [CallRequest.ReadOnly]. An
	// approval with scope [policy.Always] then also permits calls through
	// read_tool.
	ReadOnlyShown bool
}

// CallRequest describes a tool call that needs approval.
type CallRequest struct {
	Tool      string          `json:"tool"`            // model's name for the tool
	Server    string          `json:"server"`          // name of the tool's server
	Skill     string          `json:"skill,omitempty"` // skill that provides the tool
	Arguments json.RawMessage `json:"arguments,omitempty"`
	Reason    string          `json:"reason"` // why approval is needed
	// SameArguments is set if an approval for more than this call covers only
	// calls with these arguments.
	SameArguments bool `json:"exact,omitempty"`
	// Description is the tool's own description. ReadOnly is set if the tool
	// declares that it only reads. Owner describes who provides its server.
	// Subject identifies the current definition of the tool.
	Description string        `json:"-"`
	ReadOnly    bool          `json:"read_only,omitempty"`
	Owner       string        `json:"-"`
	Subject     policy.Digest `json:"-"`
}

// RefusedError reports that a skill's code is not allowed to run, that a tool
// call is not allowed, or that text in a skill has hidden characters. Nothing
// ran.
type RefusedError struct {
	Skill    string          // the skill to run or read, or the one that provides the tool; may be ""
	Decision policy.Decision // its effect is not [policy.Allow]
	// NeedsApproval is set if the user can approve the operation.
	NeedsApproval bool
	Call          *CallRequest // the refused tool call; nil for a skill's code
	Feedback      string       // the user's message to the model, if they declined
	Err           error        // why the user could not be asked; may be nil
}

// Error returns a message with the reason, but without the hint of Decision.
func (e *RefusedError) Error() string {
	switch {
	case e.Call == nil && (e.Decision.Code == decision.HiddenText || e.Decision.Code == decision.ServedSkill):
		return fmt.Sprintf("skill %s needs approval: %s", e.Skill, e.Decision.Reason)
	case e.Call == nil:
		return fmt.Sprintf("skill %s may not run scripts: %s", e.Skill, e.Decision.Reason)
	case e.NeedsApproval:
		return fmt.Sprintf("%s needs approval: %s", e.Call.Tool, e.Decision.Reason)
	}
	return fmt.Sprintf("%s is not allowed: %s", e.Call.Tool, e.Decision.Reason)
}

// Unwrap returns Err, which may be nil.
func (e *RefusedError) Unwrap() error { return e.Err }

// Declined reports whether the user was asked and declined.
func (e *RefusedError) Declined() bool { return e.Decision.Code == decision.Declined }

// newRefusedError converts a policy refusal to a [*RefusedError].
func newRefusedError(r *execution.RefusedError) *RefusedError {
	code := r.Decision.Code
	return &RefusedError{Skill: r.Skill, Decision: r.Decision, NeedsApproval: code == decision.NotApproved || code == decision.Changed || code == decision.Expired}
}

// Ask asks the user to approve r. If the request is not approved, Ask returns a
// [*RefusedError] that adds the user's answer to e. It does not modify e. If
// ctx is done, Ask may return the cause of ctx instead. The approver must not
// be nil.
func (a Approver) Ask(ctx context.Context, r *ApprovalRequest, e *RefusedError) (Approval, error) {
	answer, err := a(ctx, r)
	switch {
	case err != nil && ctx.Err() != nil:
		return Approval{}, context.Cause(ctx)
	case err != nil:
		out := *e
		out.Err = err
		out.Decision.Reason += "; cannot ask the user: " + err.Error()
		return Approval{}, &out
	case !answer.Approved:
		out := *e
		out.NeedsApproval, out.Feedback = false, answer.Feedback
		out.Decision = policy.Decision{Effect: policy.Deny, Code: decision.Declined, Reason: "declined by the user"}
		return answer, &out
	}
	return answer, nil
}

// Approver returns the runtime's [Options.Approve], which may be nil.
func (r *Runtime) Approver() Approver { return r.approve }

// answeredRequest is the value of [policy.Grant.Presence] if the user answered
// an approval request.
const answeredRequest = "answered an approval request"

// requestApproval asks the user to approve a skill after an attempt to use it
// was refused with e, and stores the grant. The grant covers exactly the files
// listed in the request. If the user cannot approve the skill, requestApproval
// returns e.
func (r *Runtime) requestApproval(ctx context.Context, e *RefusedError, attempt execution.Attempt) error {
	if !e.NeedsApproval {
		return e
	}
	req, err := r.ReadApprovalRequest(ctx, attempt.Skill)
	if err != nil {
		return err
	}
	script, c := attempt.Script, attempt.Caller
	req.Script, req.Reason = script, e.Decision.Reason
	a, err := r.approve.Ask(ctx, req, e)
	if err != nil {
		return err
	}
	g := policy.Grant{Principal: c.Principal, By: a.By, Subject: req.Digest, Needs: req.Needs, Name: req.Entry.Name, Origin: req.Entry.Origin,
		Permissions: req.Permissions(), Scope: cmp.Or(a.Scope, policy.Once), Session: c.Session, Presence: cmp.Or(a.Presence, answeredRequest)}
	if g.By == (policy.Principal{}) {
		g.By = policy.LocalUser()
	}
	if script == "" && g.Scope == policy.Once { // a server is checked before each call
		g.Scope, g.Expires = policy.ForSession, time.Now().Add(24*time.Hour)
	}
	if g.Scope == policy.ForSession && g.Session == "" {
		g.Scope, g.Expires = policy.Always, time.Now().Add(24*time.Hour)
	}
	if g.Scope == policy.Always {
		g.Session = ""
	}
	if g, err = r.scripts.Grants.Put(ctx, g); err != nil {
		return fmt.Errorf("store approval of skill %s: %w", req.Entry.Name, err)
	}
	return r.recordApproval(ctx, &g)
}

// recordApproval adds a new grant to the audit log. If that fails, it revokes
// the grant.
func (r *Runtime) recordApproval(ctx context.Context, g *policy.Grant) error {
	if r.scripts.Audit == nil {
		return nil
	}
	err := r.scripts.Audit(ctx, policy.Record{Principal: g.By, Action: "approve", Subject: g.Subject, Name: g.Name, Decision: policy.Allow,
		Details: map[string]string{"grant": g.ID, "scope": string(g.Scope), "for": g.Principal.String(), "presence": g.Presence}})
	if err == nil {
		return nil
	}
	_, undone := r.scripts.Grants.Revoke(ctx, g.ID)
	return errors.Join(fmt.Errorf("record approval of skill %s: %w", g.Name, err), undone)
}
