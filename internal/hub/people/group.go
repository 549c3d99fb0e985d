package people

import (
	"context"
	"errors"
	"time"

	"github.com/loadout-dev/loadout/internal/account"
	"github.com/loadout-dev/loadout/internal/store"
)

// Group is people who share a namespace.
type Group struct {
	ID          account.GroupID
	Name        string // that no other group has, and that never changes
	Display     string
	Description string
	Created     time.Time
	Role        account.Role // of the principal who asks
}

func groupOf(p account.Principal, g store.Group) Group {
	id := account.GroupID(g.ID)
	return Group{ID: id, Name: g.Name, Display: g.Display, Description: g.Description, Created: g.Created, Role: p.Groups[id]}
}

// Groups are those of a hub, and who is in them.
type Groups struct{ b *book }

// List returns groups by name, and how to ask for more: those that the principal is in,
// and to admins all.
func (g Groups) List(ctx context.Context, p account.Principal, page store.Page) ([]Group, string, error) {
	if err := account.Check(p, account.UserList, account.Resource{Shared: true}); err != nil {
		return nil, "", err
	}
	list := func() ([]store.Group, string, error) { return g.b.db.Groups.ListOf(ctx, string(p.User), page) }
	if account.Can(p, account.GroupRead, account.Resource{}) {
		list = func() ([]store.Group, string, error) { return g.b.db.Groups.List(ctx, page) }
	}
	rows, next, err := list()
	out := make([]Group, len(rows))
	for i, row := range rows {
		out[i] = groupOf(p, row)
	}
	return out, next, err
}

// Get returns a group to its members.
func (g Groups) Get(ctx context.Context, p account.Principal, id account.GroupID) (Group, error) {
	if err := account.Check(p, account.GroupRead, account.In(id, "")); err != nil {
		return Group{}, err
	}
	row, err := g.b.db.Groups.Get(ctx, string(id))
	if err != nil {
		return Group{}, err
	}
	return groupOf(p, row), nil
}

// GroupText is what a group is called, and what it is for.
type GroupText struct{ Display, Description *string }

func (c GroupText) check() error {
	return errors.Join(checkText("display", or(c.Display, ""), MaxDisplay), checkText("description", or(c.Description, ""), MaxDescription))
}

// Create makes a group of which the principal is the owner. It fails with an
// [*InvalidError], or [store.ErrExists] where there is one of that name.
func (g Groups) Create(ctx context.Context, p account.Principal, name string, text GroupText) (Group, error) {
	row := store.Group{ID: store.NewID(), Name: name, Display: or(text.Display, ""), Description: or(text.Description, "")}
	a := act{by: p, action: account.GroupCreate, in: store.GroupNamespace(row.ID), subject: row.ID, details: map[string]any{"name": name}}
	if err := g.b.may(ctx, a, account.Of(p.User)); err != nil {
		return Group{}, err
	}
	if err := errors.Join(checkName(name), text.check()); err != nil {
		return Group{}, err
	}
	err := g.b.change(ctx, &a, func(tx *store.Tx) (err error) {
		if row, err = tx.Groups.Create(ctx, row); err != nil {
			return err
		}
		return tx.Groups.SetMember(ctx, store.Member{GroupID: row.ID, UserID: string(p.User), Role: store.Owner})
	})
	if err != nil {
		return Group{}, err
	}
	out := groupOf(p, row)
	out.Role = account.Owner
	return out, nil
}

// Change changes what a group is called.
func (g Groups) Change(ctx context.Context, p account.Principal, id account.GroupID, text GroupText) (Group, error) {
	a := g.act(p, account.GroupManage, id, map[string]any{"change": "update"})
	if err := g.b.may(ctx, a, account.In(id, "")); err != nil {
		return Group{}, err
	}
	if err := text.check(); err != nil {
		return Group{}, err
	}
	var row store.Group
	err := g.b.change(ctx, &a, func(tx *store.Tx) (err error) {
		if row, err = tx.Groups.Get(ctx, string(id)); err != nil {
			return err
		}
		row.Display, row.Description = or(text.Display, row.Display), or(text.Description, row.Description)
		return tx.Groups.Update(ctx, row)
	})
	if err != nil {
		return Group{}, err
	}
	return groupOf(p, row), nil
}

// Delete removes a group. It fails with [store.ErrReferenced] while it has skills or
// kinds, or others are published to it.
func (g Groups) Delete(ctx context.Context, p account.Principal, id account.GroupID) error {
	a := g.act(p, account.GroupDelete, id, nil)
	if err := g.b.may(ctx, a, account.In(id, "")); err != nil {
		return err
	}
	return g.b.change(ctx, &a, func(tx *store.Tx) error { return tx.Groups.Delete(ctx, string(id)) })
}

func (g Groups) act(p account.Principal, action account.Action, id account.GroupID, details any) act {
	return act{by: p, action: action, in: store.GroupNamespace(string(id)), subject: string(id), details: details}
}
