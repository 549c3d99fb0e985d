package users

import (
	"context"
	"errors"
	"time"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/untrusted"
)

// OpenedInvitation describes an invitation to anyone who has its link.
type OpenedInvitation struct {
	Inviter string       `json:"inviter" doc:"Name of the user who invites"`
	Group   *InvitedTo   `json:"group,omitempty" doc:"Absent if it invites to the hub without a group"`
	Role    account.Role `json:"role,omitempty" enum:"reporter,developer,maintainer,owner" doc:"Role in the group"`
	Expires time.Time    `json:"expires"`
	Member  account.Role `json:"member,omitempty" enum:"reporter,developer,maintainer,owner" doc:"Your role in the group, if you are a member"`
}

// InvitedTo is the group of an invitation.
type InvitedTo struct {
	ID      account.GroupID `json:"id"`
	Name    string          `json:"name"`
	Display string          `json:"display"`
}

// find returns the invitation with the given link, even if it has ended. It fails with
// [ErrInvitation] if there is none.
func (i Invitations) find(ctx context.Context, link string) (store.Invitation, error) {
	prefix, ok := account.InvitationPrefix(link)
	if !ok {
		return store.Invitation{}, ErrInvitation
	}
	row, err := i.b.db.Invitations.ByPrefix(ctx, prefix)
	if errors.Is(err, store.ErrNotFound) || err == nil && !account.MatchesInvitation(link, row.Hash) {
		return store.Invitation{}, ErrInvitation
	}
	return row, err
}

// findOpen is like [Invitations.find], but returns only an invitation that can be
// used.
func (i Invitations) findOpen(ctx context.Context, link string) (store.Invitation, error) {
	row, err := i.find(ctx, link)
	if err != nil {
		return row, err
	}
	inviter, err := readPrincipal(ctx, &i.b.db.Tables, account.UserID(row.Inviter))
	if err == nil && i.state(row, inviter) != InvitationOpen {
		err = ErrInvitation
	}
	return row, err
}

// Open describes the invitation with the given link. It fails with [ErrInvitation] if
// it cannot be used, unless the principal is a member of its group already.
func (i Invitations) Open(ctx context.Context, p account.Principal, link string) (OpenedInvitation, error) {
	row, err := i.find(ctx, link)
	if err != nil {
		return OpenedInvitation{}, err
	}
	member := p.Groups[account.GroupID(row.GroupID)]
	if row.GroupID == "" || member < roleOf(row) {
		if row, err = i.findOpen(ctx, link); err != nil {
			return OpenedInvitation{}, err
		}
	}
	inviter, err := i.b.db.Users.Get(ctx, row.Inviter)
	if err != nil {
		return OpenedInvitation{}, err
	}
	out := OpenedInvitation{Inviter: untrusted.New(inviter.Display).ForPage(), Role: roleOf(row), Expires: row.Expires, Member: member}
	if out.Inviter == "" {
		out.Inviter = inviter.Name
	}
	if row.GroupID == "" {
		return out, nil
	}
	group, err := i.b.db.Groups.Get(ctx, row.GroupID)
	if err != nil {
		return OpenedInvitation{}, err
	}
	out.Group = &InvitedTo{account.GroupID(group.ID), group.Name, untrusted.New(group.Display).ForPage()}
	return out, nil
}

// Accept creates a user with the given name and password, who joins the group of an
// invitation, and stores login for this user. It fails with [ErrInvitation], and with
// the errors of [Users.Create]. A failure does not count as a use. Accept checks last
// whether the name is taken, so that a link for one user cannot be used to find out
// names: the first free name uses it up.
func (i Invitations) Accept(ctx context.Context, client account.Client, link, name, password string, login account.Login) (account.UserID, error) {
	row, err := i.findOpen(ctx, link)
	if err != nil {
		return "", err
	}
	if err := checkName(name); err != nil {
		return "", err
	}
	hash, err := i.b.passwords.Hash(ctx, client, name, password)
	if err != nil {
		return "", err
	}
	user := store.User{ID: store.NewID(), Name: name, Password: hash}
	login.User = account.UserID(user.ID)
	a := newAccountAction(login.User, name, row.ID)
	err = i.b.commit(ctx, &a, func(tx *store.Tx) error {
		if _, err := tx.Users.Create(ctx, user); err != nil {
			return err
		}
		if err := i.b.useInvitation(ctx, tx, row.ID, login.User); err != nil {
			return err
		}
		return addLogin(ctx, tx.Logins, login)
	})
	if err != nil {
		return "", err
	}
	return login.User, nil
}

// newAccountAction describes for the audit log that a user creates their own account
// with an invitation.
func newAccountAction(user account.UserID, name, invitation string) auditedAction {
	return auditedAction{by: account.Principal{User: user}, action: account.UserManage, in: store.UserNamespace(string(user)), subject: string(user),
		details: map[string]any{"change": "create", "name": name, "invitation": invitation}}
}

// Join adds a signed-in user to the group of an invitation, and returns the group, or ""
// for an invitation to the hub without a group, for which there is nothing to do. If the
// user already has the role or a higher one, it does not count as a use. It fails with
// [ErrInvitation].
func (i Invitations) Join(ctx context.Context, p account.Principal, link string) (account.GroupID, error) {
	a := auditedAction{by: p, action: account.InvitationAccept, in: store.UserNamespace(string(p.User)), subject: string(p.User)}
	if err := i.b.authorize(ctx, a, account.OwnedBy(p.User)); err != nil {
		return "", err
	}
	row, err := i.find(ctx, link)
	if err != nil {
		return "", err
	}
	group := account.GroupID(row.GroupID)
	if group == "" {
		return "", nil
	}
	err = i.b.db.Tx(ctx, func(tx *store.Tx) error {
		from, err := memberRole(ctx, tx, group, p.User)
		if err != nil || from >= roleOf(row) {
			return err
		}
		return i.b.useInvitation(ctx, tx, row.ID, p.User)
	})
	if err != nil {
		return "", err
	}
	return group, nil
}

// useInvitation uses an invitation for a user and adds the user to its group, with an
// audit record. It fails with [ErrInvitation] if the invitation is not open, if the user
// has used it before, or if its inviter may no longer give the role.
func (b *core) useInvitation(ctx context.Context, tx *store.Tx, id string, user account.UserID) error {
	row, err := tx.Invitations.Get(ctx, id)
	if errors.Is(err, store.ErrNotFound) {
		return ErrInvitation
	}
	if err != nil {
		return err
	}
	inviter, err := readPrincipal(ctx, &tx.Tables, account.UserID(row.Inviter))
	if err != nil {
		return err
	}
	group, role := account.GroupID(row.GroupID), roleOf(row)
	from := account.Outsider
	if group != "" {
		if from, err = memberRole(ctx, tx, group, user); err != nil {
			return err
		}
	}
	if b.mayInvite(inviter, group, user, from, role) != nil {
		return ErrInvitation
	}
	err = tx.Invitations.Use(ctx, id, string(user))
	if errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrExists) {
		return ErrInvitation
	}
	if err != nil {
		return err
	}
	details := map[string]any{"inviter": row.Inviter}
	if group != "" {
		details["role"] = role
		if err := setRole(ctx, tx, group, user, from, role); err != nil {
			return err
		}
	}
	_, in := invitationTo(group)
	return appendAudit(ctx, tx.Audit, auditedAction{by: account.Principal{User: user}, action: account.InvitationAccept, in: in, subject: id, details: details}, "allowed")
}

// joinNew uses an invitation for a new user who signs in through a provider, with an
// audit record for the account. id is "" if there is no such invitation.
func (b *core) joinNew(ctx context.Context, tx *store.Tx, user store.User, id string) error {
	if err := b.useInvitation(ctx, tx, id, account.UserID(user.ID)); err != nil {
		return err
	}
	return appendAudit(ctx, tx.Audit, newAccountAction(account.UserID(user.ID), user.Name, id), "allowed")
}
