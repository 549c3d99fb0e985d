package users

import (
	"context"
	"errors"
	"time"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/store"
)

// Group is a set of users who share a namespace.
type Group struct {
	ID          account.GroupID `json:"id"`
	Name        string          `json:"name"` // unique, never changes
	Display     string          `json:"display"`
	Description string          `json:"description"`
	Created     time.Time       `json:"created"`
	Role        account.Role    `json:"role" enum:"outsider,reporter,developer,maintainer,owner" doc:"Your role"`
}

func newGroup(p account.Principal, g store.Group) Group {
	id := account.GroupID(g.ID)
	return Group{ID: id, Name: g.Name, Display: g.Display, Description: g.Description, Created: g.Created, Role: p.Groups[id]}
}

// Groups manages a hub's groups and their members.
type Groups struct{ b *core }

// List returns the groups sorted by name, and the cursor of the next page.
// Administrators see all groups, other users only their own.
func (g Groups) List(ctx context.Context, p account.Principal, page store.Page) ([]Group, string, error) {
	if err := account.Check(p, account.UserList, account.Resource{Shared: true}); err != nil {
		return nil, "", err
	}
	list := func() ([]store.Group, string, error) { return g.b.db.Groups.ListByUser(ctx, string(p.User), page) }
	if account.Can(p, account.GroupRead, account.Resource{}) {
		list = func() ([]store.Group, string, error) { return g.b.db.Groups.List(ctx, page) }
	}
	rows, next, err := list()
	out := make([]Group, len(rows))
	for i, row := range rows {
		out[i] = newGroup(p, row)
	}
	return out, next, err
}

// Get returns a group. The principal must be a member.
func (g Groups) Get(ctx context.Context, p account.Principal, id account.GroupID) (Group, error) {
	if err := account.Check(p, account.GroupRead, account.OwnedByGroup(id, "")); err != nil {
		return Group{}, err
	}
	row, err := g.b.db.Groups.Get(ctx, string(id))
	if err != nil {
		return Group{}, err
	}
	return newGroup(p, row), nil
}

// GroupText holds a group's display name and description. Nil fields remain
// unchanged.
type GroupText struct{ Display, Description *string }

func (c GroupText) check() error {
	return errors.Join(checkText("display", valueOr(c.Display, ""), MaxDisplay), checkText("description", valueOr(c.Description, ""), MaxDescription))
}

// Create creates a group with the principal as owner. It fails with an
// [*InvalidError], or with [store.ErrExists] if the name is taken.
func (g Groups) Create(ctx context.Context, p account.Principal, name string, text GroupText) (Group, error) {
	row := store.Group{ID: store.NewID(), Name: name, Display: valueOr(text.Display, ""), Description: valueOr(text.Description, "")}
	a := auditedAction{by: p, action: account.GroupCreate, in: store.GroupNamespace(row.ID), subject: row.ID, details: map[string]any{"name": name}}
	if err := g.b.authorize(ctx, a, account.OwnedBy(p.User)); err != nil {
		return Group{}, err
	}
	if err := errors.Join(checkName(name), text.check()); err != nil {
		return Group{}, err
	}
	err := g.b.commit(ctx, &a, func(tx *store.Tx) (err error) {
		if row, err = tx.Groups.Create(ctx, row); err != nil {
			return err
		}
		return tx.Groups.SetMember(ctx, store.Member{GroupID: row.ID, UserID: string(p.User), Role: store.Owner})
	})
	if err != nil {
		return Group{}, err
	}
	out := newGroup(p, row)
	out.Role = account.Owner
	return out, nil
}

// Change updates the display name and the description of a group.
func (g Groups) Change(ctx context.Context, p account.Principal, id account.GroupID, text GroupText) (Group, error) {
	a := g.newAction(p, account.GroupManage, id, map[string]any{"change": "update"})
	if err := g.b.authorize(ctx, a, account.OwnedByGroup(id, "")); err != nil {
		return Group{}, err
	}
	if err := text.check(); err != nil {
		return Group{}, err
	}
	var row store.Group
	err := g.b.commit(ctx, &a, func(tx *store.Tx) (err error) {
		if row, err = tx.Groups.Get(ctx, string(id)); err != nil {
			return err
		}
		row.Display, row.Description = valueOr(text.Display, row.Display), valueOr(text.Description, row.Description)
		return tx.Groups.Update(ctx, row)
	})
	if err != nil {
		return Group{}, err
	}
	return newGroup(p, row), nil
}

// Delete deletes a group. It fails with [store.ErrReferenced] while the group owns
// resources or skills are published to it.
func (g Groups) Delete(ctx context.Context, p account.Principal, id account.GroupID) error {
	a := g.newAction(p, account.GroupDelete, id, nil)
	if err := g.b.authorize(ctx, a, account.OwnedByGroup(id, "")); err != nil {
		return err
	}
	return g.b.commit(ctx, &a, func(tx *store.Tx) error { return tx.Groups.Delete(ctx, string(id)) })
}

func (g Groups) newAction(p account.Principal, action account.Action, id account.GroupID, details any) auditedAction {
	return auditedAction{by: p, action: action, in: store.GroupNamespace(string(id)), subject: string(id), details: details}
}
