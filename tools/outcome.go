package tools

import (
	"context"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout"
)

// CallOutcome describes how a call ended, for statistics. It contains names but
// no content. Calls that are awaiting approval or input, and calls whose
// context is done, have no outcome.
type CallOutcome struct {
	// Tool is the tool's name in the set, or "" for an unknown tool. Skill is
	// the skill that provides the tool, and SkillKey its [catalog.Entry.Key].
	// Both are "" for the user's own tools.
	Tool, Skill, SkillKey string
	Refused               bool          // whether policy refused the call, so that it did not reach the server
	Failed                bool          // whether the call was not sent, had no response, or had an error result
	Duration              time.Duration // response time of the server; 0 if not reached
}

// reportOutcome reports the outcome of a call, unless the call is still
// awaiting approval or input.
func (s *Set) reportOutcome(ctx context.Context, t *Tool, began time.Time, res *mcp.CallToolResult, err error) {
	if s.opts.OnCallEnd == nil || ctx.Err() != nil || err == nil && res.NeedsInput() {
		return
	}
	e := CallOutcome{Failed: err != nil || res.IsError}
	if !began.IsZero() {
		e.Duration = time.Since(began)
	}
	switch err := err.(type) {
	case *loadout.RefusedError:
		if err.NeedsApproval {
			return
		}
		e.Refused, e.Failed = true, false
	case *FailedError:
		t = &err.Tool
	case *ArgumentsError:
		e.Duration = 0
	}
	if t != nil {
		e.Tool, e.Skill, e.SkillKey = t.Name, t.Skill, t.skillKey()
	}
	s.opts.OnCallEnd(e)
}
