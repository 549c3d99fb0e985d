package loadout

import (
	"context"

	"github.com/loadout-dev/loadout/internal/execution"
)

// HeldChange is a change to a file that configures programs or agents, such as
// CLAUDE.md or .git/hooks. A command or the code of a skill works on a copy of
// the user's directory. Afterwards, its changes are applied to the directory. A
// held change is applied only if the user approves it.
type HeldChange struct {
	Path   string `json:"path"`           // relative to the directory; safe to print
	Op     string `json:"op"`             // create, modify, mode or delete
	Reader string `json:"reader"`         // program that the file configures, such as Claude Code
	Diff   string `json:"diff,omitempty"` // unified diff, safe to print; "" for a directory or if only permissions changed
}

func heldChanges(list []execution.HeldChange) (out []HeldChange) {
	for _, c := range list {
		out = append(out, HeldChange(c))
	}
	return out
}

// approveChanges returns approve, which asks the user to approve held changes, as
// a callback of package execution. It returns nil if approve is nil.
func approveChanges(approve func(context.Context, []HeldChange) (bool, error)) execution.Agree {
	if approve == nil {
		return nil
	}
	return func(ctx context.Context, list []execution.HeldChange) (bool, error) {
		return approve(ctx, heldChanges(list))
	}
}
