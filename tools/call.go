package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout/internal/near"
	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/upstream"
)

// Call is one call of a tool.
type Call struct {
	Name      string
	Arguments json.RawMessage // a JSON object; nil is an empty one
	// Approved says that a person approved this very call, and Subject which tool
	// they were asked about, of [Tool.Subject]: where it is another by now they are
	// asked again. "" is whatever the tool is.
	Approved bool
	Subject  policy.Digest
	// Principal is who calls, and Session the conversation it is in, "" for none:
	// what a person allowed before is for these.
	Principal policy.Principal
	Session   string
	// Allow are the rules of skills in force: they allow only what the rules of the
	// set say nothing about, see [policy.Rules.DecideWith].
	Allow policy.Rules
	// What follows goes to the server as it is, and what comes back does too.
	Meta           mcp.Meta
	InputResponses mcp.InputResponseMap
	RequestState   string
	Progress       func(*mcp.ProgressNotificationParams) // may be nil; it must not wait
	// Begin is called right before the call reaches its server, which it does not
	// where Begin fails; nil does nothing.
	Begin func() error
	// Elicit answers what a server of the older era asks the person; nil cancels.
	Elicit func(context.Context, *mcp.ElicitParams) (*mcp.ElicitResult, error)
}

// UnknownToolError says that no tool answers to a name.
type UnknownToolError struct {
	Name     string
	Near     []string
	Problems []string // with servers that may have it
}

func (e *UnknownToolError) Error() string {
	msg := fmt.Sprintf("there is no tool %q", e.Name)
	if len(e.Near) > 0 {
		msg += "; did you mean " + strings.Join(e.Near, " or ") + "?"
	}
	if len(e.Problems) > 0 {
		msg += " (" + strings.Join(e.Problems, "; ") + ")"
	}
	return msg
}

// ArgumentsError says everything that is wrong with the arguments of a call.
type ArgumentsError struct {
	Tool     string
	Problems []string
}

func (e *ArgumentsError) Error() string {
	return fmt.Sprintf("the arguments of %s do not fit its schema: %s", e.Tool, strings.Join(e.Problems, "; "))
}

// RefusedError says that policy does not let a tool be called, or not without a
// person: then Ask is true.
type RefusedError struct {
	Tool   Tool
	Ask    bool
	Reason string
	Next   string // what a person can do about it
}

func (e *RefusedError) Error() string {
	if e.Ask {
		return fmt.Sprintf("a person has to approve calls of %s: %s", e.Tool.Name, e.Reason)
	}
	return fmt.Sprintf("%s may not be called: %s", e.Tool.Name, e.Reason)
}

// FailedError says that a call did not come to a result of the tool: its server
// is dead, took too long, or broke off.
type FailedError struct {
	Tool Tool
	Err  error
}

func (e *FailedError) Error() string { return fmt.Sprintf("%s failed: %v", e.Tool.Name, e.Err) }
func (e *FailedError) Unwrap() error { return e.Err }

// Call calls a tool. What its server answers is passed through whole, an error
// of the protocol as a [*jsonrpc.Error] with its code and data. The error is an
// [*UnknownToolError], [*ArgumentsError], [*RefusedError] or [*FailedError]
// otherwise; then nothing but a FailedError has reached the server.
func (s *Set) Call(ctx context.Context, c *Call) (res *mcp.CallToolResult, err error) {
	var t *Tool
	var began time.Time // with the server
	defer func() { s.ended(ctx, t, began, res, err) }()
	t, err = s.resolve(ctx, c)
	if err != nil {
		return nil, err
	}
	c = t.fitted(c)
	if problems := t.definition.schema().check(c.Arguments); len(problems) > 0 {
		return nil, &ArgumentsError{Tool: c.Name, Problems: problems}
	}
	if err := s.permit(ctx, t, c); err != nil {
		return nil, err
	}
	if c.Begin != nil {
		if err := c.Begin(); err != nil {
			return nil, err
		}
	}
	params := &mcp.CallToolParams{Meta: t.server.settingsFor(t.Definition.Name, c.Meta), Name: t.Definition.Name, InputResponses: c.InputResponses, RequestState: c.RequestState}
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

// fitted is a call with arguments of the kinds that the tool wants. What is decided and
// recorded is about these.
func (t *Tool) fitted(c *Call) *Call {
	out := *c
	out.Arguments = t.definition.schema().fit(c.Arguments)
	return &out
}

// resolve finds the tool of a call, as it is now. That there is none, or none any
// more, is a decision too, and recorded.
func (s *Set) resolve(ctx context.Context, c *Call) (*Tool, error) {
	t, problems := s.find(ctx, c.Name)
	if t == nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, s.unknown(ctx, c, &UnknownToolError{Name: c.Name, Near: s.near(c.Name), Problems: problems})
	}
	now, err := s.fresh(ctx, t)
	switch e := err.(type) {
	case nil:
	case *UnknownToolError:
		return nil, s.unknown(ctx, c, e)
	case *RefusedError:
		d := policy.ToolDecision{Effect: policy.Deny, Code: policy.Withdrawn, Reason: e.Reason}
		s.refused(ctx, d, s.call(t, c.Arguments), c)
	}
	return now, err
}

// unknown records that a tool is none, and returns the error of its call.
func (s *Set) unknown(ctx context.Context, c *Call, e *UnknownToolError) error {
	d := policy.ToolDecision{Effect: policy.Deny, Code: policy.NoTool, Reason: "there is no such tool"}
	s.refused(ctx, d, policy.ToolCall{Tool: c.Name, Arguments: c.Arguments}, c)
	return e
}

// fresh makes sure, of a tool that is not of the person's own server or of one that
// is held to what it said, that leave stands and that the tool is defined as it
// was accepted, by what its server says now and not by what it said once.
func (s *Set) fresh(ctx context.Context, t *Tool) (*Tool, error) {
	sv := t.server
	if b := sv.bundle; b != nil {
		if err := b.check(ctx); err != nil {
			s.drop(b.key, b)
			return nil, &RefusedError{Tool: *t, Reason: err.Error(), Next: "load the skill " + sv.skill + " again, which says what is missing"}
		}
	}
	if !s.strict(sv) {
		return t, nil
	}
	l, err := sv.Tools(ctx)
	if err != nil {
		return nil, &FailedError{Tool: *t, Err: err}
	}
	now := s.known(sv, t.Name)
	if now == nil {
		return nil, &UnknownToolError{Name: t.Name, Problems: []string{problems(s.screen(sv, l).problem)}}
	}
	return now, nil
}

// check asks whether all leaves of a bundle stand.
func (b *bundle) check(ctx context.Context) error {
	for _, l := range b.leaves {
		if l.Check != nil {
			if err := l.Check(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// near are names of tools like one that is not there: at most three.
func (s *Set) near(name string) []string {
	var all, same []string
	for _, sv := range s.all() {
		for _, t := range s.tools(sv) {
			if t.Definition.Name == name { // said without its server
				same = append(same, t.Name)
			}
			all = append(all, t.Name)
		}
	}
	if len(same) > 0 {
		return same[:min(len(same), 3)]
	}
	word, best, distance := near.Letters(name), "", 4
	for _, other := range all {
		if d := near.Distance(word, near.Letters(other), distance-1); d < distance {
			best, distance = other, d
		}
	}
	if best == "" {
		return nil
	}
	return []string{best}
}
