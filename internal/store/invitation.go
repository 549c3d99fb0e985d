package store

import (
	"context"
	"fmt"
	"time"
)

// Invitation is a link with which users can join the hub, or a group of it. Only the
// hash of its secret is stored.
type Invitation struct {
	ID      string // set by Create if ""
	Prefix  string // identifies the link; unique
	Hash    []byte // SHA-256 of the link
	GroupID string // "" for the hub without a group
	Role    Role   // in the group; "" without a group
	Inviter string // a user id
	Note    string
	Uses    int64 // how many users may use it
	Used    int64 // how many did
	Created time.Time
	Expires time.Time
	Revoked time.Time // zero if it was not revoked
}

// Open reports whether the invitation can be used at the given time.
func (i *Invitation) Open(at time.Time) bool {
	return i.Revoked.IsZero() && i.Used < i.Uses && at.Before(i.Expires)
}

// The conditions of [Invitation.Open], where the argument is the time.
const openInvitation = "revoked = 0 AND used < uses AND expires > "

const invitationColumns = "id, prefix, hash, COALESCE(group_id, ''), role, inviter, note, uses, used, created, expires, revoked"

func (i *Invitation) fields() []any {
	return []any{&i.ID, &i.Prefix, &i.Hash, &i.GroupID, (*string)(&i.Role), &i.Inviter, &i.Note, &i.Uses, &i.Used, (*timestamp)(&i.Created), (*timestamp)(&i.Expires), (*timestamp)(&i.Revoked)}
}

// InvitationUse records who used an invitation.
type InvitationUse struct {
	Invitation string
	UserID     string
	Used       time.Time
}

func (u *InvitationUse) fields() []any {
	return []any{&u.Invitation, &u.UserID, (*timestamp)(&u.Used)}
}

// Invitations stores invitations. Deleting a group or the inviter deletes them.
type Invitations struct{ c conn }

// Create adds an invitation and returns it as stored. It fails with [ErrExists] if the
// prefix is taken, and with [ErrNotFound] if the group or the inviter does not exist.
func (t Invitations) Create(ctx context.Context, i Invitation) (Invitation, error) {
	setDefaultID(&i.ID)
	setDefaultTime(&i.Created)
	i.Used, i.Expires, i.Revoked = 0, fromMillis(toMillis(i.Expires)), time.Time{}
	_, err := t.c.exec(ctx, `INSERT INTO invitations (id, prefix, hash, group_id, role, inviter, note, uses, used, created, expires, revoked)
		VALUES ($1, $2, $3, NULLIF($4, ''), $5, $6, $7, $8, $9, $10, $11, $12)`, i.fields()...)
	if err != nil {
		return Invitation{}, fmt.Errorf("add invitation of user %q: %w", i.Inviter, toNotFound(err))
	}
	return i, nil
}

// Get returns the invitation with the given id, even if it has ended.
func (t Invitations) Get(ctx context.Context, id string) (Invitation, error) {
	i, err := queryOne[Invitation](ctx, t.c, "SELECT "+invitationColumns+" FROM invitations WHERE id = $1", id)
	if err != nil {
		return Invitation{}, fmt.Errorf("get invitation %q: %w", id, err)
	}
	return i, nil
}

// ByPrefix returns the invitation with the given prefix, even if it has ended. The
// caller must compare the hash.
func (t Invitations) ByPrefix(ctx context.Context, prefix string) (Invitation, error) {
	i, err := queryOne[Invitation](ctx, t.c, "SELECT "+invitationColumns+" FROM invitations WHERE prefix = $1", prefix)
	if err != nil {
		return Invitation{}, fmt.Errorf("get invitation: %w", err)
	}
	return i, nil
}

// Use records that a user uses an invitation. It fails with [ErrNotFound] if the
// invitation is not open, and with [ErrExists] if the user has used it before.
// Concurrent calls never exceed the number of uses.
func (t Invitations) Use(ctx context.Context, id, userID string) error {
	at := now()
	err := t.c.inTransaction(ctx, func(c conn) error {
		err := c.execAffecting(ctx, "UPDATE invitations SET used = used + 1 WHERE id = $1 AND "+openInvitation+"$2", id, timestamp(at))
		if err != nil {
			return err
		}
		return toNotFound(c.insert(ctx, "invitation_uses", "invitation, user_id, used", []any{id, userID, timestamp(at)}))
	})
	if err != nil {
		return fmt.Errorf("use invitation %q for user %q: %w", id, userID, err)
	}
	return nil
}

// Revoke revokes an invitation. Revoking it again changes nothing. It fails with
// [ErrNotFound] if the invitation does not exist.
func (t Invitations) Revoke(ctx context.Context, id string) error {
	err := t.c.execAffecting(ctx, "UPDATE invitations SET revoked = CASE WHEN revoked = 0 THEN $2 ELSE revoked END WHERE id = $1", id, timestamp(now()))
	if err != nil {
		return fmt.Errorf("revoke invitation %q: %w", id, err)
	}
	return nil
}

// List returns the invitations to a group, or all of the hub if groupID is "", newest
// first, and the cursor of the next page.
func (t Invitations) List(ctx context.Context, groupID string, p Page) ([]Invitation, string, error) {
	keys, err := p.decodeCursor(1)
	if err != nil {
		return nil, "", fmt.Errorf("list invitations: %w", err)
	}
	where, args := "", []any{keys[0], p.Size() + 1}
	if groupID != "" {
		where, args = " AND group_id = $3", append(args, groupID)
	}
	found, err := queryAll[Invitation](ctx, t.c, "SELECT "+invitationColumns+` FROM invitations
		WHERE ($1 = '' OR id < $1)`+where+" ORDER BY id DESC LIMIT $2", args...)
	if err != nil {
		return nil, "", fmt.Errorf("list invitations: %w", err)
	}
	found, next := cutPage(p, found, func(i Invitation) []string { return []string{i.ID} })
	return found, next, nil
}

// Users returns the uses of the invitations with the given ids, oldest first. It accepts
// up to [MaxPage] ids.
func (t Invitations) Users(ctx context.Context, ids []string) ([]InvitationUse, error) {
	if len(ids) > MaxPage {
		return nil, fmt.Errorf("%w: %d invitation IDs, limit %d", ErrTooMany, len(ids), MaxPage)
	}
	if len(ids) == 0 {
		return nil, nil
	}
	found, err := queryAll[InvitationUse](ctx, t.c, `SELECT invitation, user_id, used FROM invitation_uses
		WHERE invitation IN (`+placeholders(1, len(ids))+") ORDER BY used, user_id", toArgs(ids)...)
	if err != nil {
		return nil, fmt.Errorf("list uses of %d invitations: %w", len(ids), err)
	}
	return found, nil
}

// CountOpen returns the number of open invitations to a group, or of those to the hub
// without a group if groupID is "".
func (t Invitations) CountOpen(ctx context.Context, groupID string) (int64, error) {
	n, err := queryScalar[int64](ctx, t.c, "SELECT count(*) FROM invitations WHERE COALESCE(group_id, '') = $1 AND "+openInvitation+"$2", groupID, timestamp(now()))
	if err != nil {
		return 0, fmt.Errorf("count open invitations: %w", err)
	}
	return n, nil
}

// TrimEnded deletes the oldest invitations to a group that are no longer open, and
// keeps the newest ones, up to most of them. If groupID is "", it deletes those to
// the hub without a group.
func (t Invitations) TrimEnded(ctx context.Context, groupID string, most int64) error {
	const ended = "COALESCE(group_id, '') = $1 AND NOT (" + openInvitation + "$2)"
	_, err := t.c.exec(ctx, "DELETE FROM invitations WHERE "+ended+" AND id NOT IN (SELECT id FROM invitations WHERE "+ended+" ORDER BY id DESC LIMIT $3)",
		groupID, timestamp(now()), most)
	if err != nil {
		return fmt.Errorf("delete old invitations: %w", err)
	}
	return nil
}

// Prune deletes invitations that expired or were revoked before the given time, and
// returns their number.
func (t Invitations) Prune(ctx context.Context, before time.Time) (int64, error) {
	n, err := t.c.exec(ctx, "DELETE FROM invitations WHERE expires < $1 OR revoked > 0 AND revoked < $1", timestamp(before))
	if err != nil {
		return 0, fmt.Errorf("delete old invitations: %w", err)
	}
	return n, nil
}
