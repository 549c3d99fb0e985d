package users

import (
	"context"
	"errors"
	"time"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/store"
)

// Member describes a user's membership in a group.
type Member struct {
	User  User
	Role  account.Role
	Since time.Time
}

// Members returns the members of a group, in no particular order, and the cursor
// of the next page. The principal must be a member.
func (g Groups) Members(ctx context.Context, p account.Principal, id account.GroupID, page store.Page) ([]Member, string, error) {
	if err := account.Check(p, account.GroupRead, account.OwnedByGroup(id, "")); err != nil {
		return nil, "", err
	}
	if _, err := g.b.db.Groups.Get(ctx, string(id)); err != nil {
		return nil, "", err
	}
	rows, next, err := g.b.db.Groups.Members(ctx, string(id), page)
	if err != nil {
		return nil, "", err
	}
	ids := make([]string, len(rows))
	for i, row := range rows {
		ids[i] = row.UserID
	}
	users, err := g.b.db.Users.GetMany(ctx, ids)
	if err != nil {
		return nil, "", err
	}
	out := make([]Member, 0, len(rows))
	for _, row := range rows {
		if u, ok := users[row.UserID]; ok { // the user may have been deleted
			out = append(out, Member{User: userFor(p, u), Role: accountRole(row.Role), Since: row.Since})
		}
	}
	return out, next, nil
}

// accountRole converts a stored role to an [account.Role]. It returns
// [account.Outsider] for a role that only a newer version of the program
// supports.
func accountRole(r store.Role) account.Role {
	role, err := account.ParseRole(string(r))
	if err != nil {
		return account.Outsider
	}
	return role
}

// SetRole adds a member, changes a member's role, or removes a member if the role
// is [account.Outsider]. It fails with [ErrLastOwner] if the group would lose its
// last owner.
func (g Groups) SetRole(ctx context.Context, p account.Principal, id account.GroupID, user account.UserID, role account.Role) error {
	a := g.newAction(p, account.GroupMembers, id, map[string]any{"user": user, "role": role.String()})
	if err := g.authorizeChange(ctx, a, id, user, role); err != nil {
		return err
	}
	err := g.b.commit(ctx, &a, func(tx *store.Tx) error {
		from, err := memberRole(ctx, tx, id, user)
		switch {
		case err != nil:
			return err
		case !account.CanSetRole(p, id, user, from, role):
			return &account.DeniedError{Action: account.GroupMembers}
		}
		if err := setRole(ctx, tx, id, user, from, role); err != nil {
			return err
		}
		return checkOwnerRemains(ctx, tx, string(id), storeRole(from))
	})
	if _, denied := errors.AsType[*account.DeniedError](err); denied {
		return errors.Join(err, appendAudit(ctx, g.b.db.Audit, a, "denied"))
	}
	return err
}

// authorizeChange returns an error if the principal may not change a membership. A
// user who may manage the members may change any membership. Every member may
// leave.
func (g Groups) authorizeChange(ctx context.Context, a auditedAction, id account.GroupID, user account.UserID, role account.Role) error {
	if user == a.by.User && role == account.Outsider && a.by.Groups[id] != account.Outsider {
		return nil
	}
	return g.b.authorize(ctx, a, account.OwnedByGroup(id, ""))
}

// memberRole returns a user's current role in a group, or [account.Outsider] if the
// user is not a member.
func memberRole(ctx context.Context, tx *store.Tx, id account.GroupID, user account.UserID) (account.Role, error) {
	memberships, err := tx.Groups.ListMemberships(ctx, string(user))
	if err != nil {
		return account.Outsider, err
	}
	for _, m := range memberships {
		if m.GroupID == string(id) {
			return accountRole(m.Role), nil
		}
	}
	return account.Outsider, nil
}

// setRole changes a user's role in a group. It fails with [store.ErrNotFound] if it
// must remove a user who is not a member.
func setRole(ctx context.Context, tx *store.Tx, id account.GroupID, user account.UserID, oldRole, newRole account.Role) error {
	if newRole == account.Outsider {
		return tx.Groups.RemoveMember(ctx, string(id), string(user))
	}
	if oldRole == newRole {
		return nil
	}
	return tx.Groups.SetMember(ctx, store.Member{GroupID: string(id), UserID: string(user), Role: storeRole(newRole)})
}

func storeRole(r account.Role) store.Role { return store.Role(r.String()) }

// checkOwnerRemains fails with [ErrLastOwner] if a group has no owner after a change.
// oldRole is the previous role of the changed member.
func checkOwnerRemains(ctx context.Context, tx *store.Tx, group string, oldRole store.Role) error {
	if oldRole != store.Owner {
		return nil
	}
	n, err := tx.Groups.CountWithRole(ctx, group, store.Owner)
	if err == nil && n == 0 {
		err = ErrLastOwner
	}
	return err
}
