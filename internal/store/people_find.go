package store

import (
	"context"
	"fmt"
)

// ListOf returns the groups that a user is in by name, and how to ask for more.
func (t Groups) ListOf(ctx context.Context, userID string, p Page) ([]Group, string, error) {
	keys, err := p.keys(1)
	if err != nil {
		return nil, "", fmt.Errorf("groups of user %q: %w", userID, err)
	}
	groups, err := all[Group](ctx, t.c, "SELECT "+groupColumns+` FROM groups
		WHERE id IN (SELECT group_id FROM members WHERE user_id = $1) AND name > $2 ORDER BY name LIMIT $3`, userID, keys[0], p.limit()+1)
	if err != nil {
		return nil, "", fmt.Errorf("groups of user %q: %w", userID, err)
	}
	groups, next := cut(p, groups, func(g Group) []string { return []string{g.Name} })
	return groups, next, nil
}

// Some returns the users with some ids, at most [MaxPage]; those that are not there are
// left out.
func (t Users) Some(ctx context.Context, ids []string) (map[string]User, error) {
	if len(ids) > MaxPage {
		return nil, fmt.Errorf("users: %w: %d ids, more than %d", ErrInvalid, len(ids), MaxPage)
	}
	if len(ids) == 0 {
		return nil, nil
	}
	users, err := all[User](ctx, t.c, "SELECT "+userColumns+" FROM users WHERE id IN ("+places(1, len(ids))+")", anys(ids)...)
	if err != nil {
		return nil, fmt.Errorf("users: %w", err)
	}
	found := make(map[string]User, len(users))
	for _, u := range users {
		found[u.ID] = u
	}
	return found, nil
}
