package store

import (
	"context"
	"fmt"
	"time"
)

// Role determines what a member is allowed to do in a group.
type Role string

// The roles, most powerful first.
const (
	Owner      Role = "owner"
	Maintainer Role = "maintainer"
	Developer  Role = "developer"
	Reporter   Role = "reporter"
)

// Group is a set of users who share a namespace.
type Group struct {
	ID          string // set by Create if ""
	Name        string // unique
	Display     string
	Description string
	Created     time.Time // set by Create if zero
	// RequiredApprovers is how many reviewers must approve a version of the group's
	// skills, from 1 to [MaxRequiredApprovers]. Create sets it to 1 if it is 0.
	RequiredApprovers int64
	// ApproverGroup is the ID of the group whose members must approve, or "" for this
	// group. ApproverRole is their lowest role; Create sets it to Maintainer if it is "".
	ApproverGroup string
	ApproverRole  Role
}

// MaxRequiredApprovers is the maximum of [Group.RequiredApprovers].
const MaxRequiredApprovers = 10

const groupColumns = "id, name, display, description, created, required_approvers, approver_group, approver_role"

func (g *Group) fields() []any {
	return []any{&g.ID, &g.Name, &g.Display, &g.Description, (*timestamp)(&g.Created), &g.RequiredApprovers, &g.ApproverGroup, (*string)(&g.ApproverRole)}
}

// Member is a user's membership in a group.
type Member struct {
	GroupID string
	UserID  string
	Role    Role
	Since   time.Time // set by SetMember if zero
}

const memberColumns = "group_id, user_id, role, since"

func (m *Member) fields() []any {
	return []any{&m.GroupID, &m.UserID, (*string)(&m.Role), (*timestamp)(&m.Since)}
}

// Groups stores groups and their memberships.
type Groups struct{ c conn }

// Create adds a group and returns it as stored. It fails with [ErrExists] if
// the name or the id is taken.
func (t Groups) Create(ctx context.Context, g Group) (Group, error) {
	setDefaultID(&g.ID)
	setDefaultTime(&g.Created)
	if g.RequiredApprovers == 0 {
		g.RequiredApprovers = 1
	}
	if g.ApproverRole == "" {
		g.ApproverRole = Maintainer
	}
	if err := t.c.insert(ctx, "groups", groupColumns, g.fields()); err != nil {
		return Group{}, fmt.Errorf("add group %q: %w", g.Name, err)
	}
	return g, nil
}

// Get returns the group with the given id.
func (t Groups) Get(ctx context.Context, id string) (Group, error) {
	g, err := queryOne[Group](ctx, t.c, "SELECT "+groupColumns+" FROM groups WHERE id = $1", id)
	if err != nil {
		return Group{}, fmt.Errorf("get group %q: %w", id, err)
	}
	return g, nil
}

// ByName returns the group with the given name.
func (t Groups) ByName(ctx context.Context, name string) (Group, error) {
	g, err := queryOne[Group](ctx, t.c, "SELECT "+groupColumns+" FROM groups WHERE name = $1", name)
	if err != nil {
		return Group{}, fmt.Errorf("get group %q: %w", name, err)
	}
	return g, nil
}

// Update replaces a group's display name, description and rules about approvers.
func (t Groups) Update(ctx context.Context, g Group) error {
	err := t.c.execAffecting(ctx, "UPDATE groups SET display = $2, description = $3, required_approvers = $4, approver_group = $5, approver_role = $6 WHERE id = $1", g.ID, g.Display, g.Description, g.RequiredApprovers, g.ApproverGroup, string(g.ApproverRole))
	if err != nil {
		return fmt.Errorf("change group %q: %w", g.ID, err)
	}
	return nil
}

// Delete deletes a group, its memberships, and the defaults, settings and
// secrets of its namespace. It fails with [ErrReferenced] while the namespace
// holds resources or lists skills, or another group has it as ApproverGroup.
func (t Groups) Delete(ctx context.Context, id string) error {
	err := t.c.inTransaction(ctx, func(c conn) error {
		n, err := queryScalar[int64](ctx, c, "SELECT count(*) FROM groups WHERE approver_group = $1 AND id <> $1", id)
		if err != nil || n > 0 {
			return referencedError(err, "%d groups require approvals of its members", n)
		}
		if err := c.clearNamespace(ctx, GroupNamespace(id)); err != nil {
			return err
		}
		return c.execAffecting(ctx, "DELETE FROM groups WHERE id = $1", id)
	})
	if err != nil {
		return fmt.Errorf("delete group %q: %w", id, err)
	}
	return nil
}

// List returns the groups sorted by name, and the cursor of the next page.
func (t Groups) List(ctx context.Context, p Page) ([]Group, string, error) {
	keys, err := p.decodeCursor(1)
	if err != nil {
		return nil, "", fmt.Errorf("list groups: %w", err)
	}
	groups, err := queryAll[Group](ctx, t.c, "SELECT "+groupColumns+" FROM groups WHERE name > $1 ORDER BY name LIMIT $2", keys[0], p.Size()+1)
	if err != nil {
		return nil, "", fmt.Errorf("list groups: %w", err)
	}
	groups, next := cutPage(p, groups, func(g Group) []string { return []string{g.Name} })
	return groups, next, nil
}

// SetMember adds a member or changes a member's role. It fails with
// [ErrNotFound] if the group or the user does not exist.
func (t Groups) SetMember(ctx context.Context, m Member) error {
	setDefaultTime(&m.Since)
	_, err := t.c.exec(ctx, "INSERT INTO members ("+memberColumns+`) VALUES ($1, $2, $3, $4)
		ON CONFLICT (group_id, user_id) DO UPDATE SET role = excluded.role`, m.fields()...)
	if err != nil {
		return fmt.Errorf("make user %q %s of group %q: %w", m.UserID, m.Role, m.GroupID, toNotFound(err))
	}
	return nil
}

// RemoveMember removes a user from a group. The caller must check in the same
// transaction that an owner remains.
func (t Groups) RemoveMember(ctx context.Context, groupID, userID string) error {
	if err := t.c.execAffecting(ctx, "DELETE FROM members WHERE group_id = $1 AND user_id = $2", groupID, userID); err != nil {
		return fmt.Errorf("remove user %q from group %q: %w", userID, groupID, err)
	}
	return nil
}

// Members returns the members of a group, sorted by user id, and the cursor of
// the next page.
func (t Groups) Members(ctx context.Context, groupID string, p Page) ([]Member, string, error) {
	keys, err := p.decodeCursor(1)
	if err != nil {
		return nil, "", fmt.Errorf("list members of group %q: %w", groupID, err)
	}
	members, err := queryAll[Member](ctx, t.c, "SELECT "+memberColumns+` FROM members
		WHERE group_id = $1 AND user_id > $2 ORDER BY user_id LIMIT $3`, groupID, keys[0], p.Size()+1)
	if err != nil {
		return nil, "", fmt.Errorf("list members of group %q: %w", groupID, err)
	}
	members, next := cutPage(p, members, func(m Member) []string { return []string{m.UserID} })
	return members, next, nil
}

// CountWithRole returns the number of members that have a role in a group.
func (t Groups) CountWithRole(ctx context.Context, groupID string, role Role) (int64, error) {
	n, err := queryScalar[int64](ctx, t.c, "SELECT count(*) FROM members WHERE group_id = $1 AND role = $2", groupID, string(role))
	if err != nil {
		return 0, fmt.Errorf("count members of group %q: %w", groupID, err)
	}
	return n, nil
}

// CountApprovers returns the number of active users whose approvals count for a group
// with an ApproverGroup: members of that group with the ApproverRole or a higher one, who
// are maintainers or owners of g, or administrators.
func (t Groups) CountApprovers(ctx context.Context, g Group) (int64, error) {
	n, err := queryScalar[int64](ctx, t.c, `SELECT count(*) FROM members a JOIN users u ON u.id = a.user_id
		LEFT JOIN members m ON m.group_id = $2 AND m.user_id = a.user_id AND m.role IN ('maintainer', 'owner')
		WHERE a.group_id = $1 AND NOT u.disabled AND (u.admin OR m.user_id IS NOT NULL)
			AND (a.role = $3 OR a.role = 'owner' OR a.role = 'maintainer' AND $3 IN ('developer', 'reporter') OR a.role = 'developer' AND $3 = 'reporter')`,
		g.ApproverGroup, g.ID, string(g.ApproverRole))
	if err != nil {
		return 0, fmt.Errorf("count approvers of group %q: %w", g.ID, err)
	}
	return n, nil
}

// ListMemberships returns a user's memberships, sorted by group id.
func (t Groups) ListMemberships(ctx context.Context, userID string) ([]Member, error) {
	members, err := queryAll[Member](ctx, t.c, "SELECT "+memberColumns+" FROM members WHERE user_id = $1 ORDER BY group_id", userID)
	if err != nil {
		return nil, fmt.Errorf("list groups of user %q: %w", userID, err)
	}
	return members, nil
}
