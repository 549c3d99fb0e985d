package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/internal/decision"
	"github.com/loadout-dev/loadout/internal/editdistance"
	"github.com/loadout-dev/loadout/internal/upstream"
	"github.com/loadout-dev/loadout/policy"
)

// leaseRevoked is the decision code for calls that are refused because the
// server's lease was revoked.
const leaseRevoked = "withdrawn"

// Call is a tool call. The methods of [Set] do not modify it.
type Call struct {
	Name string // a [Tool.Name]
	// Arguments is a JSON object; nil means empty. Numbers, booleans, arrays
	// and objects that a model wrote as strings are converted to the type in
	// the tool's schema.
	Arguments json.RawMessage
	// Approved means that the user approved this call. Subject is the Subject
	// of the [loadout.CallRequest] shown in the prompt. If the tool has changed
	// since, the call needs approval again. With an empty Subject, the approval
	// covers any definition.
	Approved bool
	Subject  policy.Digest
	// Approve asks the user if the call needs approval. If it is nil, the
	// Approve function of [loadout.Options] is called. Notify, if not nil,
	// receives notices about the approval for the user.
	Approve loadout.Approver
	Notify  func(text string)
	// Principal and Session select the stored grants. Session is "" outside a
	// conversation.
	Principal policy.Principal
	Session   string
	// ReadOnly restricts the call to tools that are known to be read-only: the
	// current definition must declare it, and either the tool must belong to
	// one of the user's own servers, or a permanent grant of the principal must
	// say that the user was shown the declaration. Otherwise, the call is not
	// sent, and [Set.Call] returns a [*NotReadOnlyError].
	ReadOnly bool
	// ReadOnlyShown is set if the user who approves was shown the tool's
	// declaration that it only reads. It sets [policy.Grant.ReadOnly] in a
	// grant that is stored for the call.
	ReadOnlyShown bool
	// Presence is the [policy.Grant.Presence] of a grant that is stored for the
	// call. It says how the program knows that the user approved. "" means that
	// the user answered an approval request.
	Presence string
	// Allow holds the rules of active skills. They can allow only calls that
	// the rules of the set do not decide, and never calls of tools that are
	// marked to need approval, unrated or CRITICAL.
	Allow policy.Rules
	// Confirm, if not empty, is why each call needs the user's approval, whatever
	// the rules and the stored grants allow, unless the tool of one of the user's
	// own servers declares that it only reads. An agent sets it while the
	// conversation has the text of a skill that the user did not approve.
	Confirm string
	// Meta, InputResponses and RequestState are those of [mcp.CallToolParams].
	// Of Meta, the server gets only the progress token, the trace context
	// (traceparent and tracestate) and whether the client supports elicitation;
	// a provider also gets the [SettingsKey]. The server does not get the _meta
	// of InputResponses. Progress receives the server's progress notifications.
	Meta           mcp.Meta
	InputResponses mcp.InputResponseMap
	RequestState   string
	Progress       func(*mcp.ProgressNotificationParams) // may be nil; must not block
	// Begin, if set, is called right before the call is sent. If it returns an
	// error, the call is not sent, and [Set.Call] returns that error.
	Begin func() error
	// Elicit answers the server's requests for user input, at most ten times in
	// a call. If it is nil, such a request is the result; see
	// [mcp.CallToolResult.NeedsInput]. In protocol versions before 2026-07-28,
	// a request does not identify its call. Such a request is cancelled if
	// Elicit is nil or the server has several calls in progress.
	Elicit func(context.Context, *mcp.ElicitParams) (*mcp.ElicitResult, error)
}

// UnknownToolError reports that there is no tool with the given name.
type UnknownToolError struct {
	Name     string
	Similar  []string // up to three names of tools in the set
	Problems []string // problems with servers that may have the tool
}

// Error returns a message with the name, the similar names and the problems. If
// the user can approve the skill that has the tool, the message begins with how
// to do so.
func (e *UnknownToolError) Error() string {
	if i := slices.IndexFunc(e.Problems, func(p string) bool { return strings.HasPrefix(p, "the user can ") }); i >= 0 {
		return fmt.Sprintf("%s (tool %q not found)", e.Problems[i], e.Name)
	}
	msg := fmt.Sprintf("tool %q not found", e.Name)
	if len(e.Similar) > 0 {
		msg += "; did you mean " + strings.Join(e.Similar, " or ") + "?"
	}
	if len(e.Problems) > 0 {
		msg += " (" + strings.Join(e.Problems, "; ") + ")"
	}
	return msg
}

// ArgumentsError reports that the arguments of a call do not match the tool's
// input schema. The call was not sent.
type ArgumentsError struct {
	Tool     string   // a [Tool.Name]
	Problems []string // at least one; for the model to correct its call
}

// Error returns a message with the tool and all problems.
func (e *ArgumentsError) Error() string {
	return fmt.Sprintf("invalid arguments for %s: %s", e.Tool, strings.Join(e.Problems, "; "))
}

// FailedError reports that a call returned no result: the server is dead, timed
// out or disconnected. The call may have had an effect.
type FailedError struct {
	Tool Tool
	Err  error // never nil
}

// Error returns a message with the tool's name and the cause.
func (e *FailedError) Error() string { return fmt.Sprintf("%s failed: %v", e.Tool.Name, e.Err) }

// Unwrap returns the cause.
func (e *FailedError) Unwrap() error { return e.Err }

// Call calls a tool and returns the server's result unchanged, even if it
// reports an error of the tool. If the skill that may have the tool is not
// loaded, Call connects its servers. If the call needs approval, Call asks the
// user with [Call.Approve].
//
// A protocol error is a [*jsonrpc.Error] with the server's code and data. A call
// that was not sent fails with an [*UnknownToolError], [*ArgumentsError],
// [*NotReadOnlyError] or [*loadout.RefusedError], or with the error of
// [Call.Begin]. A [*FailedError] means that the call may have reached the
// server. If ctx is done, Call returns the cause of ctx, which means the same. A
// call fails after the call timeout in its server's configuration, by default
// 180 seconds.
func (s *Set) Call(ctx context.Context, c *Call) (*mcp.CallToolResult, error) {
	res, err := s.call(ctx, c)
	refused, ok := errors.AsType[*loadout.RefusedError](err)
	if ask := s.approver(c); ok && refused.NeedsApproval && ask != nil {
		return s.callApproved(ctx, c, refused, ask)
	}
	return res, err
}

// call calls a tool if policy allows the call or the user approved it.
func (s *Set) call(ctx context.Context, c *Call) (res *mcp.CallToolResult, err error) {
	var t *Tool
	var began time.Time // time when the call was sent
	defer func() { s.reportOutcome(ctx, t, began, res, err) }()
	t, err = s.resolveTool(ctx, c)
	if err != nil {
		return nil, err
	}
	if c.ReadOnly {
		if t, err = s.resolveReadOnly(ctx, t, c); err != nil {
			return nil, err
		}
	}
	c = t.fitArguments(c)
	if problems := t.definition.schema().check(c.Arguments); len(problems) > 0 {
		return nil, &ArgumentsError{Tool: c.Name, Problems: problems}
	}
	if err := s.authorize(ctx, t, c); err != nil {
		return nil, err
	}
	if c.ReadOnly { // authorize may have found a new definition
		if err := s.checkReadOnly(ctx, t, c); err != nil {
			return nil, err
		}
	}
	if c.Begin != nil {
		if err := c.Begin(); err != nil {
			return nil, err
		}
	}
	params := &mcp.CallToolParams{Meta: t.server.callMeta(t.Definition.Name, c.Meta), Name: t.Definition.Name, InputResponses: upstream.ForwardedResponses(c.InputResponses), RequestState: c.RequestState}
	if len(c.Arguments) > 0 {
		params.Arguments = c.Arguments
	}
	began = time.Now()
	res, err = t.server.Call(ctx, params, &upstream.CallOptions{Progress: c.Progress, Elicit: c.Elicit})
	if err == nil {
		return res, nil
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if wire, ok := errors.AsType[*jsonrpc.Error](err); ok {
		return nil, wire
	}
	return nil, &FailedError{Tool: *t, Err: err}
}

// fitArguments returns a copy of c with the arguments converted to the types in
// the tool's schema. Decisions and audit records use these arguments.
func (t *Tool) fitArguments(c *Call) *Call {
	out := *c
	out.Arguments = t.definition.schema().convert(c.Arguments)
	return &out
}

// resolveTool returns the current definition of the called tool. If there is no
// such tool, resolveTool records a refusal.
func (s *Set) resolveTool(ctx context.Context, c *Call) (*Tool, error) {
	t, problems := s.findTool(ctx, c.Name)
	if t == nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, s.recordUnknownTool(ctx, c, &UnknownToolError{Name: c.Name, Similar: s.SimilarNames(c.Name), Problems: problems})
	}
	now, err := s.recheckTool(ctx, t)
	switch e := err.(type) {
	case nil:
	case *UnknownToolError:
		return nil, s.recordUnknownTool(ctx, c, e)
	case *loadout.RefusedError:
		d := policy.Decision{Effect: policy.Deny, Code: leaseRevoked, Reason: e.Decision.Reason}
		s.recordRefusal(ctx, d, s.policyCall(t, c.Arguments), c)
	}
	return now, err
}

// recordUnknownTool records a call to an unknown tool and returns e.
func (s *Set) recordUnknownTool(ctx context.Context, c *Call, e *UnknownToolError) error {
	d := policy.Decision{Effect: policy.Deny, Code: decision.UnknownTool, Reason: "no such tool"}
	s.recordRefusal(ctx, d, policy.ToolCall{Tool: c.Name, Arguments: c.Arguments}, c)
	return e
}

// recheckTool checks before a call that the skill's permission is still valid.
// For tools with pinned definitions, it also requests the current definition
// from the server.
func (s *Set) recheckTool(ctx context.Context, t *Tool) (*Tool, error) {
	sv := t.server
	if b := sv.group; b != nil {
		if err := b.checkPermissions(ctx); err != nil {
			s.removeGroup(b.key, b)
			return t, t.refusal(nil, policy.Decision{Effect: policy.Deny, Code: leaseRevoked, Reason: err.Error(), Hint: "load the skill " + sv.skill + " again to see what is missing"})
		}
	}
	if !s.isStrict(sv) {
		return t, nil
	}
	l, err := sv.Tools(ctx)
	if err != nil {
		return nil, &FailedError{Tool: *t, Err: err}
	}
	now := s.knownTool(sv, t.Name)
	if now == nil {
		return nil, &UnknownToolError{Name: t.Name, Problems: []string{joinProblems(s.screenListing(sv, l).problem)}}
	}
	return now, nil
}

// checkPermissions returns an error if any permission of the group has ended.
func (b *serverGroup) checkPermissions(ctx context.Context) error {
	for _, l := range b.permissions {
		if l.check != nil {
			if err := l.check(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// SimilarNames returns the full names of up to three known tools that a model
// may mean by a misspelled name: the tools with this name on their servers, or
// else the tool whose full name differs in at most a quarter of the letters and
// in at most three. It does not connect.
func (s *Set) SimilarNames(name string) []string {
	var all, same []string
	for _, sv := range s.allServers() {
		for _, t := range s.knownTools(sv) {
			if t.Definition.Name == name { // the name lacks its server
				same = append(same, t.Name)
			}
			all = append(all, t.Name)
		}
	}
	if len(same) > 0 {
		return same[:min(len(same), 3)]
	}
	word, best := editdistance.Normalize(name), ""
	distance := min(max(len(word)/4, 1), 3) + 1
	for _, other := range all {
		if d := editdistance.Distance(word, editdistance.Normalize(other), distance-1); d < distance {
			best, distance = other, d
		}
	}
	if best == "" {
		return nil
	}
	return []string{best}
}
