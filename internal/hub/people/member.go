package people

import (
	"context"
	"errors"
	"time"

	"github.com/loadout-dev/loadout/internal/account"
	"github.com/loadout-dev/loadout/internal/store"
)

// Member is a user in a group.
type Member struct {
	User  User
	Role  account.Role
	Since time.Time
}

// Members returns the members of a group to each of them, in no order that means
// anything, and how to ask for more.
func (g Groups) Members(ctx context.Context, p account.Principal, id account.GroupID, page store.Page) ([]Member, string, error) {
	if err := account.Check(p, account.GroupRead, account.In(id, "")); err != nil {
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
	users, err := g.b.db.Users.Some(ctx, ids)
	if err != nil {
		return nil, "", err
	}
	out := make([]Member, 0, len(rows))
	for _, row := range rows {
		if u, ok := users[row.UserID]; ok { // who was deleted since is none
			out = append(out, Member{User: seen(p, u), Role: roleOf(row.Role), Since: row.Since})
		}
	}
	return out, next, nil
}

// roleOf is a role as package account has it. One that a newer program knows is none.
func roleOf(r store.Role) account.Role {
	role, err := account.ParseRole(string(r))
	if err != nil {
		return account.Outsider
	}
	return role
}

// SetRole makes a user a member of a group, or gives him another role, where
// [account.Outsider] takes him out. It fails with [ErrLastOwner] where nobody would be
// left to look after it.
func (g Groups) SetRole(ctx context.Context, p account.Principal, id account.GroupID, who account.UserID, to account.Role) error {
	a := g.act(p, account.GroupMembers, id, map[string]any{"user": who, "role": to.String()})
	if err := g.mayAsk(ctx, a, id, who, to); err != nil {
		return err
	}
	err := g.b.change(ctx, &a, func(tx *store.Tx) error {
		from, err := roleIn(ctx, tx, id, who)
		switch {
		case err != nil:
			return err
		case !account.CanSetRole(p, id, who, from, to):
			return &account.DeniedError{Action: account.GroupMembers}
		}
		if err := setRole(ctx, tx, id, who, from, to); err != nil {
			return err
		}
		return keepsOwner(ctx, tx, string(id), storeRole(from))
	})
	if _, denied := errors.AsType[*account.DeniedError](err); denied {
		return errors.Join(err, record(ctx, g.b.db.Audit, a, "denied"))
	}
	return err
}

// mayAsk decides whether a principal has anything to do with the members of a group:
// who manages them, and whoever leaves.
func (g Groups) mayAsk(ctx context.Context, a act, id account.GroupID, who account.UserID, to account.Role) error {
	if who == a.by.User && to == account.Outsider && a.by.Groups[id] != account.Outsider {
		return nil
	}
	return g.b.may(ctx, a, account.In(id, ""))
}

// roleIn is what somebody is in a group now.
func roleIn(ctx context.Context, tx *store.Tx, id account.GroupID, who account.UserID) (account.Role, error) {
	memberships, err := tx.Groups.Of(ctx, string(who))
	if err != nil {
		return account.Outsider, err
	}
	for _, m := range memberships {
		if m.GroupID == string(id) {
			return roleOf(m.Role), nil
		}
	}
	return account.Outsider, nil
}

// setRole makes somebody what he is to be in a group. Whom there is nothing to take out
// of is not there.
func setRole(ctx context.Context, tx *store.Tx, id account.GroupID, who account.UserID, from, to account.Role) error {
	if to == account.Outsider {
		return tx.Groups.RemoveMember(ctx, string(id), string(who))
	}
	if from == to {
		return nil
	}
	return tx.Groups.SetMember(ctx, store.Member{GroupID: string(id), UserID: string(who), Role: storeRole(to)})
}

func storeRole(r account.Role) store.Role { return store.Role(r.String()) }

// keepsOwner fails where a change of somebody who was something in a group has left
// nobody to look after it.
func keepsOwner(ctx context.Context, tx *store.Tx, group string, was store.Role) error {
	if was != store.Owner {
		return nil
	}
	n, err := tx.Groups.WithRole(ctx, group, store.Owner)
	if err == nil && n == 0 {
		err = ErrLastOwner
	}
	return err
}
