package store

import (
	"context"
	"fmt"
)

// ListByUser returns a user's groups, sorted by name, and the cursor of the
// next page.
func (t Groups) ListByUser(ctx context.Context, userID string, p Page) ([]Group, string, error) {
	keys, err := p.decodeCursor(1)
	if err != nil {
		return nil, "", fmt.Errorf("list groups of user %q: %w", userID, err)
	}
	groups, err := queryAll[Group](ctx, t.c, "SELECT "+groupColumns+` FROM groups
		WHERE id IN (SELECT group_id FROM members WHERE user_id = $1) AND name > $2 ORDER BY name LIMIT $3`, userID, keys[0], p.Size()+1)
	if err != nil {
		return nil, "", fmt.Errorf("list groups of user %q: %w", userID, err)
	}
	groups, next := cutPage(p, groups, func(g Group) []string { return []string{g.Name} })
	return groups, next, nil
}

// GetMany returns the users with the given ids, keyed by id. It accepts up to
// [MaxPage] ids and omits missing users.
func (t Users) GetMany(ctx context.Context, ids []string) (map[string]User, error) {
	if len(ids) > MaxPage {
		return nil, fmt.Errorf("get users: %w: %d ids, limit %d", ErrInvalid, len(ids), MaxPage)
	}
	if len(ids) == 0 {
		return nil, nil
	}
	users, err := queryAll[User](ctx, t.c, "SELECT "+userColumns+" FROM users WHERE id IN ("+placeholders(1, len(ids))+")", toArgs(ids)...)
	if err != nil {
		return nil, fmt.Errorf("get users: %w", err)
	}
	found := make(map[string]User, len(users))
	for _, u := range users {
		found[u.ID] = u
	}
	return found, nil
}
