package library

import (
	"context"
	"errors"
	"fmt"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/store"
)

// ListPendingTools returns the tools of servers that a skill brings which changed and wait to be
// accepted, and how they were before: see [store.Definitions.ListChanges].
func (l *Library) ListPendingTools(ctx context.Context, p account.Principal, id string) ([]store.ToolDefinition, error) {
	if _, err := l.authorize(ctx, p, account.SkillRead, id); err != nil {
		return nil, err
	}
	return l.db.ToolDefinitions.ListChangesByOwner(ctx, id)
}

// AcceptTools accepts definitions of tools of servers that a skill brings, by their
// digests, and returns the names of the tools. Who may is who may review the skill. Where
// one is another by now none is accepted, and the error is [ErrConflict].
func (l *Library) AcceptTools(ctx context.Context, p account.Principal, id string, digests []string) (names []string, err error) {
	err = l.update(ctx, p, account.SkillReview, id, func(tx *store.Tx, _ *skillRecord) (any, error) {
		names, err = tx.ToolDefinitions.AcceptByOwner(ctx, id, digests, string(p.User))
		if errors.Is(err, store.ErrNotFound) {
			err = fmt.Errorf("tools of skill %q: %w: these definitions are not there any more, or accepted; look at them again", id, ErrConflict)
		}
		return map[string]any{"accepted_tools": names, "definitions": digests}, err
	})
	return names, err
}
