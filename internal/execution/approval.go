package execution

import (
	"context"
	"errors"
	"fmt"
)

// An Attempt is an operation that the policy refused.
type Attempt struct {
	Skill  string // name or reference of the skill
	Script string // script to run; "" for the skill's servers
	Caller Caller
}

// withApproval calls fn. If the policy refuses the operation and the user then
// approves the skill, withApproval calls fn again.
func withApproval[T any](ctx context.Context, r *Runner, a Attempt, fn func() (T, error)) (T, error) {
	out, err := fn()
	e, ok := errors.AsType[*RefusedError](err)
	if ok && r.opts.Approve != nil && a.Skill != "" {
		if err := r.opts.Approve(ctx, e, a); err != nil {
			return out, err
		}
		out, err = fn()
	}
	return out, r.convertRefusal(err)
}

// convertRefusal converts a [*RefusedError] to the host program's error. It
// returns other errors unchanged.
func (r *Runner) convertRefusal(err error) error {
	if e, ok := errors.AsType[*RefusedError](err); ok && r.opts.Refused != nil {
		return r.opts.Refused(e)
	}
	return err
}

// ServersError is returned if the definitions of a skill's servers cannot be read.
// The servers are not started, and the skill cannot be approved.
type ServersError struct {
	Skill  string // name of the skill
	Reason string // why the servers cannot be read, or that there are too many
}

// Error returns a message with the skill and the reason.
func (e *ServersError) Error() string {
	return fmt.Sprintf("skill %s: invalid MCP servers: %s", e.Skill, e.Reason)
}
