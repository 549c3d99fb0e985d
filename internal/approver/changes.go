package approver

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/internal/approval"
	"github.com/loadout-dev/loadout/policy"
)

// NewForChanges returns a function that asks, through a queue, whether to apply
// held changes. The request belongs to the given session and principal, and its
// message contains the whole diff. If the diff is too long to show, the
// function declines the changes and returns an error, because nobody can agree
// to what they cannot see.
func NewForChanges(queue *approval.Queue, session string, who policy.Principal) func(context.Context, []loadout.HeldChange) (bool, error) {
	return func(ctx context.Context, changes []loadout.HeldChange) (bool, error) {
		msg, err := ChangesMessage(changes)
		if err != nil {
			return false, err
		}
		payload, err := json.Marshal(map[string]any{"changes": changes})
		if err != nil {
			return false, err
		}
		answer, err := queue.Ask(ctx, approval.Request{Kind: approval.KindApproval, Session: session, Principal: who, Payload: payload, Message: msg})
		return err == nil && answer.Outcome == approval.Accepted, err
	}
}

// ChangesMessage returns a question that asks whether to apply held changes and
// shows their whole diff. It returns an error if the diff is too long to show.
func ChangesMessage(changes []loadout.HeldChange) (string, error) {
	var b strings.Builder
	b.WriteString("Apply changes to files that configure programs or agents?\n")
	for _, c := range changes {
		fmt.Fprintf(&b, "\n%s %s (read by %s)\n%s", c.Op, c.Path, c.Reader, c.Diff)
	}
	if b.Len() > approval.MaxMessage {
		return "", fmt.Errorf("diff too long to show (%d bytes, limit %d)", b.Len(), approval.MaxMessage)
	}
	return b.String(), nil
}
