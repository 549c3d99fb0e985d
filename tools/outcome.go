package tools

import (
	"context"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout"
)

// CallOutcome describes how a call ended, for statistics. It holds names and no
// content.
type CallOutcome struct {
	// Tool is its name in the set, "" for an unknown tool. Skill provides the
	// tool, SkillKey is its [catalog.Entry.Key]; both are "" for the user's own
	// tools.
	Tool, Skill, SkillKey string
	Refused               bool          // by policy; the server was not reached
	Failed                bool          // not sent, not answered, or an error result
	Duration              time.Duration // of the server's answer; 0 if not reached
}

// reportOutcome reports the outcome of a call. A call that waits for approval
// or for input has not ended.
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
		e.Tool, e.Skill, e.SkillKey = t.Name, t.Skill, t.SkillKey()
	}
	s.opts.OnCallEnd(e)
}
