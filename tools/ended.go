package tools

import (
	"context"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Ended is how a call ended, for who counts calls: names of what there is, and nothing
// of what was said.
type Ended struct {
	// Tool is its name here, "" where there is none of the name that was given. Skill
	// brings it, with the key of [catalog.Entry.Key]; "" is the person's own.
	Tool, Skill, SkillKey string
	Refused               bool          // by policy; the server was not reached
	Failed                bool          // it was not made, gave no answer, or the tool says so
	Took                  time.Duration // with the server; 0 where that was not reached
}

// ended tells of a call. One that a person has to approve has not ended, and one that
// asks something has not either.
func (s *Set) ended(ctx context.Context, t *Tool, began time.Time, res *mcp.CallToolResult, err error) {
	if s.opts.Ended == nil || ctx.Err() != nil || err == nil && res.NeedsInput() {
		return
	}
	e := Ended{Failed: err != nil || res.IsError}
	if !began.IsZero() {
		e.Took = time.Since(began)
	}
	switch err := err.(type) {
	case *RefusedError:
		if err.Ask {
			return
		}
		e.Refused, e.Failed, t = true, false, &err.Tool
	case *FailedError:
		t = &err.Tool
	case *ArgumentsError:
		e.Took = 0
	}
	if t != nil {
		e.Tool, e.Skill, e.SkillKey = t.Name, t.Skill, t.SkillKey()
	}
	s.opts.Ended(e)
}
