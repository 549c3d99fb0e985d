package users

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/untrusted"
)

// Group is a set of users who share a namespace.
type Group struct {
	ID          account.GroupID `json:"id"`
	Name        string          `json:"name"` // unique, never changes
	Display     string          `json:"display"`
	Description string          `json:"description"`
	Created     time.Time       `json:"created"`
	Role        account.Role    `json:"role" enum:"outsider,reporter,developer,maintainer,owner" doc:"Your role"`
	// RequiredApprovers is 1 unless an owner sets another number.
	RequiredApprovers int64 `json:"requiredApprovers" doc:"How many reviewers must approve a version of its skills before it becomes current"`
	// ApproverGroup and ApproverRole limit whose approvals count.
	ApproverGroup account.GroupID `json:"approverGroup,omitempty" doc:"ID of the group whose members must approve; absent for this group"`
	ApproverRole  store.Role      `json:"approverRole" enum:"reporter,developer,maintainer,owner" doc:"Lowest role of those members"`
}

func newGroup(p account.Principal, g store.Group) Group {
	id := account.GroupID(g.ID)
	return Group{ID: id, Name: g.Name, Display: untrusted.New(g.Display).ForPage(), Description: untrusted.New(g.Description).ForPage(), Created: g.Created, Role: p.Groups[id], RequiredApprovers: g.RequiredApprovers,
		ApproverGroup: account.GroupID(g.ApproverGroup), ApproverRole: g.ApproverRole}
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

// GroupChange holds new values of a group. Nil fields remain unchanged.
type GroupChange struct {
	Display, Description *string
	RequiredApprovers    *int64
	ApproverGroup        *string // ID of a group, or "" for the group itself
	ApproverRole         *string // must be Maintainer or Owner if ApproverGroup is ""
}

func (c GroupChange) check() error {
	err := errors.Join(checkText("display", valueOr(c.Display, ""), MaxDisplay), checkText("description", valueOr(c.Description, ""), MaxDescription))
	if n := valueOr(c.RequiredApprovers, 1); n < 1 || n > store.MaxRequiredApprovers {
		err = errors.Join(err, &InvalidError{"requiredApprovers", fmt.Sprintf("must be from 1 to %d", store.MaxRequiredApprovers)})
	}
	switch store.Role(valueOr(c.ApproverRole, string(store.Maintainer))) {
	case store.Reporter, store.Developer, store.Maintainer, store.Owner:
	default:
		err = errors.Join(err, &InvalidError{"approverRole", "must be reporter, developer, maintainer or owner"})
	}
	return err
}

// Create creates a group with the principal as owner. It fails with an
// [*InvalidError], or with [store.ErrExists] if the name is taken.
func (g Groups) Create(ctx context.Context, p account.Principal, name string, c GroupChange) (Group, error) {
	row := store.Group{ID: store.NewID(), Name: name, Display: valueOr(c.Display, ""), Description: valueOr(c.Description, ""), RequiredApprovers: valueOr(c.RequiredApprovers, 1)}
	a := auditedAction{by: p, action: account.GroupCreate, in: store.GroupNamespace(row.ID), subject: row.ID, details: c.auditDetails("name", name)}
	if err := g.b.authorize(ctx, a, account.OwnedBy(p.User)); err != nil {
		return Group{}, err
	}
	if err := errors.Join(checkName(name), c.check()); err != nil {
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

// auditDetails returns the details of the change for its audit record, with an
// additional entry.
func (c GroupChange) auditDetails(key, value string) map[string]any {
	details := map[string]any{key: value}
	if c.RequiredApprovers != nil {
		details["required_approvers"] = *c.RequiredApprovers
	}
	if c.ApproverGroup != nil {
		details["approver_group"] = *c.ApproverGroup
	}
	if c.ApproverRole != nil {
		details["approver_role"] = *c.ApproverRole
	}
	return details
}

// Change updates a group. The number of required approvers applies to later
// decisions about versions; versions that were already approved remain
// approved.
func (g Groups) Change(ctx context.Context, p account.Principal, id account.GroupID, c GroupChange) (Group, error) {
	a := g.newAction(p, account.GroupManage, id, c.auditDetails("change", "update"))
	if err := g.b.authorize(ctx, a, account.OwnedByGroup(id, "")); err != nil {
		return Group{}, err
	}
	if err := c.check(); err != nil {
		return Group{}, err
	}
	var row store.Group
	err := g.b.commit(ctx, &a, func(tx *store.Tx) (err error) {
		if row, err = tx.Groups.Get(ctx, string(id)); err != nil {
			return err
		}
		row.Display, row.Description = valueOr(c.Display, row.Display), valueOr(c.Description, row.Description)
		row.RequiredApprovers = valueOr(c.RequiredApprovers, row.RequiredApprovers)
		row.ApproverGroup = valueOr(c.ApproverGroup, row.ApproverGroup)
		row.ApproverRole = store.Role(valueOr(c.ApproverRole, string(row.ApproverRole)))
		if c.ApproverGroup != nil || c.ApproverRole != nil {
			if err := checkApproverGroup(ctx, tx, p, row); err != nil {
				return err
			}
		}
		if c.ApproverGroup != nil || c.ApproverRole != nil || c.RequiredApprovers != nil {
			if err := checkApproverCount(ctx, tx, row); err != nil {
				return err
			}
		}
		return tx.Groups.Update(ctx, row)
	})
	if err != nil {
		return Group{}, err
	}
	return newGroup(p, row), nil
}

// checkApproverGroup returns an error if members of g must approve with a role that
// cannot review, or if the principal cannot see the other group whose members must
// approve.
func checkApproverGroup(ctx context.Context, tx *store.Tx, p account.Principal, g store.Group) error {
	if g.ApproverGroup == "" || g.ApproverGroup == g.ID {
		if r := g.ApproverRole; r != store.Maintainer && r != store.Owner {
			return &InvalidError{"approverRole", "must be maintainer or owner, because others cannot review the group's skills"}
		}
		return nil
	}
	_, err := tx.Groups.Get(ctx, g.ApproverGroup)
	if errors.Is(err, store.ErrNotFound) || err == nil && !account.Can(p, account.GroupRead, account.OwnedByGroup(account.GroupID(g.ApproverGroup), "")) {
		return &InvalidError{"approverGroup", "must be a group of which you are a member"}
	}
	return err
}

// checkApproverCount returns an error if another group's members must approve and fewer
// of them than required may review the skills of g.
func checkApproverCount(ctx context.Context, tx *store.Tx, g store.Group) error {
	if g.ApproverGroup == "" || g.ApproverGroup == g.ID {
		return nil
	}
	n, err := tx.Groups.CountApprovers(ctx, g)
	if err == nil && n < g.RequiredApprovers {
		err = &InvalidError{"approverGroup", fmt.Sprintf("has too few members who can approve (%d, required %d): they must have at least the role %s there, and be maintainers of this group or administrators", n, g.RequiredApprovers, g.ApproverRole)}
	}
	return err
}

// Delete deletes a group. It fails with [store.ErrReferenced] while the group owns
// resources, skills are published to it, or another group requires the approvals of its
// members.
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
