package library

import (
	"context"
	"errors"
	"fmt"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/store"
)

// ListPendingTools returns the changed tool definitions of a skill's servers that
// are not accepted yet, with the previous definitions. See
// [store.ToolDefinitions.ListChanges].
func (l *Library) ListPendingTools(ctx context.Context, p account.Principal, id string) ([]store.ToolDefinition, error) {
	if _, err := l.authorize(ctx, p, account.SkillRead, id); err != nil {
		return nil, err
	}
	return l.db.ToolDefinitions.ListChangesByOwner(ctx, id)
}

// AcceptTools accepts the tool definitions with the given digests and returns the
// names of the tools. The tools belong to the skill's servers. The principal must
// be allowed to review the skill. If any of the definitions has changed or is
// already accepted, AcceptTools accepts none and returns [ErrConflict].
func (l *Library) AcceptTools(ctx context.Context, p account.Principal, id string, digests []string) (names []string, err error) {
	err = l.update(ctx, p, account.SkillReview, id, func(tx *store.Tx, _ *skillRecord) (any, error) {
		names, err = tx.ToolDefinitions.AcceptByOwner(ctx, id, digests, string(p.User))
		if errors.Is(err, store.ErrNotFound) {
			err = fmt.Errorf("accept tools of skill %q: %w: definitions changed or already accepted; review them again", id, ErrConflict)
		}
		return map[string]any{"accepted_tools": names, "definitions": digests}, err
	})
	return names, err
}
