package loadout

import (
	"context"

	"github.com/loadout-dev/loadout/internal/execution"
)

// HeldChange is a change of a file in a user's directory that steers programs or
// agents, such as CLAUDE.md or .git/hooks. Code changes a copy of the directory.
// When it ends, its changes are applied, except held changes, which need the
// user's approval.
type HeldChange struct {
	Path   string `json:"path"`           // relative to the directory; safe to print
	Op     string `json:"op"`             // create, modify, mode or delete
	Reader string `json:"reader"`         // program that the file steers, such as Claude Code
	Diff   string `json:"diff,omitempty"` // unified, safe to print; "" for a directory or other permissions
}

func heldChanges(list []execution.HeldChange) (out []HeldChange) {
	for _, c := range list {
		out = append(out, HeldChange(c))
	}
	return out
}

// toAgree converts approve, which asks the user about held changes. It returns
// nil if approve is nil.
func toAgree(approve func(context.Context, []HeldChange) (bool, error)) execution.Agree {
	if approve == nil {
		return nil
	}
	return func(ctx context.Context, list []execution.HeldChange) (bool, error) {
		return approve(ctx, heldChanges(list))
	}
}
