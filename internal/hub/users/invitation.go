package users

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/untrusted"
)

// InvitationPath is the path of the page of an invitation, without its link.
const InvitationPath = "/invite/"

// Limits of invitations.
const (
	MaxInvitationUses     = 50
	MaxInvitationDays     = 30
	DefaultInvitationDays = 7
	MaxOpenInvitations    = 100 // to a group, or to the hub without a group
	MaxInvitationNote     = 200 // characters

	maxEndedInvitations = 100                 // that are listed, as MaxOpenInvitations
	invitationRetention = 30 * 24 * time.Hour // after the end of an invitation
)

// Errors of invitations.
var (
	// ErrInvitation is returned if an invitation cannot be used. It does not say why,
	// because whoever has the link may be someone else than the invited user.
	ErrInvitation = errors.New("this invitation is not valid: it has expired, was used or was revoked")
	// ErrInvitationsOff is returned if the hub does not permit the user to invite.
	ErrInvitationsOff = errors.New("this hub does not permit you to invite users")
)

// Inviters specifies who may invite users to a hub.
type Inviters string

// The values of [Inviters].
const (
	Owners Inviters = "owners" // administrators, and owners of groups to their groups; the default
	Admins Inviters = "admins" // administrators
	Nobody Inviters = "off"
)

// InvitationState is the state of an invitation, which determines whether it can be
// used.
type InvitationState string

// The states of invitations.
const (
	InvitationOpen      InvitationState = "open"
	InvitationUsed      InvitationState = "used"
	InvitationExpired   InvitationState = "expired"
	InvitationRevoked   InvitationState = "revoked"
	InvitationSuspended InvitationState = "suspended" // its inviter may no longer invite
)

// Invitation describes a link with which users can join a group, or the hub without a
// group.
type Invitation struct {
	ID          string          `json:"id"`
	Group       account.GroupID `json:"group,omitempty" doc:"ID of a group; absent for the hub without a group"`
	Role        account.Role    `json:"role,omitempty" enum:"reporter,developer,maintainer,owner" doc:"Role in the group"`
	Note        string          `json:"note" doc:"Invited user, such as a name; not shown to those who open the link"`
	Inviter     account.UserID  `json:"inviter" doc:"ID of a user"`
	InviterName string          `json:"inviterName"`
	State       InvitationState `json:"state" enum:"open,used,expired,revoked,suspended" doc:"suspended: the inviter may no longer invite with this role"`
	Uses        int64           `json:"uses" doc:"Maximum number of users"`
	Used        int64           `json:"used" doc:"Number of users so far"`
	Created     time.Time       `json:"created"`
	Expires     time.Time       `json:"expires"`
	Users       []InvitedUser   `json:"users" nullable:"false" doc:"Users who joined, except deleted ones"`
}

// InvitedUser is a user who used an invitation.
type InvitedUser struct {
	ID   account.UserID `json:"id"`
	Name string         `json:"name"`
	Used time.Time      `json:"used"`
}

// Invitations manages invitations. Before an invitation is used, they check again
// whether its inviter may invite.
type Invitations struct{ b *core }

// NewInvitation describes an invitation to create.
type NewInvitation struct {
	Group account.GroupID // "" for the hub without a group; for administrators
	Role  account.Role    // Reporter if it is missing
	Note  string
	Uses  int // 1 if it is 0
	Days  int // lifetime; DefaultInvitationDays if it is 0
}

// complete sets the defaults, and returns an error if a field is invalid.
func (n *NewInvitation) complete() error {
	if n.Group == "" && n.Role != account.Outsider {
		return &InvalidError{"role", "needs a group"}
	}
	if n.Group != "" && n.Role == account.Outsider {
		n.Role = account.Reporter
	}
	if n.Uses == 0 {
		n.Uses = 1
	}
	if n.Days == 0 {
		n.Days = DefaultInvitationDays
	}
	errs := []error{checkText("note", n.Note, utf8.UTFMax*MaxInvitationNote)}
	if utf8.RuneCountInString(n.Note) > MaxInvitationNote {
		errs = append(errs, &InvalidError{"note", fmt.Sprintf("must have at most %d characters", MaxInvitationNote)})
	}
	if n.Uses < 1 || n.Uses > MaxInvitationUses {
		errs = append(errs, &InvalidError{"uses", fmt.Sprintf("must be from 1 to %d", MaxInvitationUses)})
	}
	if n.Days < 1 || n.Days > MaxInvitationDays {
		errs = append(errs, &InvalidError{"days", fmt.Sprintf("must be from 1 to %d", MaxInvitationDays)})
	}
	return errors.Join(errs...)
}

// invitationTo returns the resource and the namespace of invitations to a group, or to
// the hub if the group is "".
func invitationTo(group account.GroupID) (account.Resource, store.Namespace) {
	if group == "" {
		return account.Resource{}, ""
	}
	return account.OwnedByGroup(group, ""), store.GroupNamespace(string(group))
}

// mayInvite returns an error unless the principal may invite a user to a group with
// the given role. from is the role that the user already has.
func (b *core) mayInvite(p account.Principal, group account.GroupID, user account.UserID, from, role account.Role) error {
	r, _ := invitationTo(group)
	if err := account.Check(p, account.InvitationManage, r); err != nil {
		return err
	}
	switch {
	case b.inviters == Nobody, b.inviters == Admins && !p.Admin:
		return ErrInvitationsOff
	case group != "" && !account.CanSetRole(p, group, user, from, role):
		return &account.DeniedError{Action: account.InvitationManage}
	}
	return nil
}

// MayInvite reports whether a principal may create invitations to a group, or to the
// hub if the group is "".
func (i Invitations) MayInvite(p account.Principal, group account.GroupID) bool {
	return i.b.mayInvite(p, group, "", account.Outsider, account.Outsider) == nil
}

// Create creates an invitation and returns the secret part of its link, which is not
// stored. It fails with an [*InvalidError], with [ErrInvitationsOff], and with
// [store.ErrTooMany] if too many invitations to the group are open.
func (i Invitations) Create(ctx context.Context, p account.Principal, n NewInvitation) (link string, _ Invitation, err error) {
	r, in := invitationTo(n.Group)
	a := auditedAction{by: p, action: account.InvitationManage, in: in}
	if err := i.b.authorize(ctx, a, r); err != nil {
		return "", Invitation{}, err
	}
	if err := n.complete(); err != nil {
		return "", Invitation{}, err
	}
	details := map[string]any{"change": "create", "uses": n.Uses, "days": n.Days}
	if n.Group != "" {
		details["role"] = n.Role
	}
	a.details = details
	if err := i.b.mayInvite(p, n.Group, "", account.Outsider, n.Role); err != nil {
		return "", Invitation{}, errors.Join(err, appendAudit(ctx, i.b.db.Audit, a, "denied"))
	}
	row := store.Invitation{ID: store.NewID(), GroupID: string(n.Group), Inviter: string(p.User), Note: n.Note, Uses: int64(n.Uses), Expires: time.Now().AddDate(0, 0, n.Days)}
	if n.Group != "" {
		row.Role = storeRole(n.Role)
	}
	a.subject = row.ID
	link, row.Prefix, row.Hash = account.NewInvitation()
	err = i.b.commit(ctx, &a, func(tx *store.Tx) error {
		if row.GroupID != "" {
			if _, err := tx.Groups.Get(ctx, row.GroupID); err != nil {
				return err
			}
		}
		open, err := tx.Invitations.CountOpen(ctx, row.GroupID)
		switch {
		case err != nil:
			return err
		case open >= MaxOpenInvitations:
			return fmt.Errorf("%w invitations that have not ended (%d, limit %d): revoke some", store.ErrTooMany, open, MaxOpenInvitations)
		}
		if err := tx.Invitations.TrimEnded(ctx, row.GroupID, maxEndedInvitations); err != nil {
			return err
		}
		row, err = tx.Invitations.Create(ctx, row)
		return err
	})
	if err != nil {
		return "", Invitation{}, fmt.Errorf("create invitation: %w", err)
	}
	out, err := i.describe(ctx, []store.Invitation{row})
	if err != nil {
		return "", Invitation{}, err
	}
	return link, out[0], nil
}

// List returns the invitations to a group, or all of the hub if the group is "",
// newest first, and the cursor of the next page. They contain no links.
func (i Invitations) List(ctx context.Context, p account.Principal, group account.GroupID, page store.Page) ([]Invitation, string, error) {
	r, _ := invitationTo(group)
	if err := account.Check(p, account.InvitationManage, r); err != nil {
		return nil, "", err
	}
	if group != "" {
		if _, err := i.b.db.Groups.Get(ctx, string(group)); err != nil {
			return nil, "", err
		}
	}
	rows, next, err := i.b.db.Invitations.List(ctx, string(group), page)
	if err != nil {
		return nil, "", err
	}
	out, err := i.describe(ctx, rows)
	return out, next, err
}

// describe returns invitations with their states and the users who used them.
func (i Invitations) describe(ctx context.Context, rows []store.Invitation) ([]Invitation, error) {
	ids := make([]string, len(rows))
	for n, row := range rows {
		ids[n] = row.ID
	}
	uses, err := i.b.db.Invitations.Users(ctx, ids)
	if err != nil {
		return nil, err
	}
	names, err := i.names(ctx, rows, uses)
	if err != nil {
		return nil, err
	}
	out, inviters := make([]Invitation, len(rows)), map[string]account.Principal{}
	for n, row := range rows {
		inviter, known := inviters[row.Inviter]
		if !known {
			if inviter, err = readPrincipal(ctx, &i.b.db.Tables, account.UserID(row.Inviter)); err != nil {
				return nil, err
			}
			inviters[row.Inviter] = inviter
		}
		out[n] = Invitation{ID: row.ID, Group: account.GroupID(row.GroupID), Role: roleOf(row), Note: untrusted.New(row.Note).ForPage(), Inviter: account.UserID(row.Inviter), InviterName: names[row.Inviter],
			State: i.state(row, inviter), Uses: row.Uses, Used: row.Used, Created: row.Created, Expires: row.Expires, Users: []InvitedUser{}}
		for _, u := range uses {
			if u.Invitation == row.ID {
				out[n].Users = append(out[n].Users, InvitedUser{account.UserID(u.UserID), names[u.UserID], u.Used})
			}
		}
	}
	return out, nil
}

// names returns the names of the inviters and of the users who used the invitations.
func (i Invitations) names(ctx context.Context, rows []store.Invitation, uses []store.InvitationUse) (map[string]string, error) {
	var ids []string
	for _, row := range rows {
		ids = append(ids, row.Inviter)
	}
	for _, u := range uses {
		ids = append(ids, u.UserID)
	}
	slices.Sort(ids)
	names := map[string]string{}
	for part := range slices.Chunk(slices.Compact(ids), store.MaxPage) {
		found, err := i.b.db.Users.GetMany(ctx, part)
		if err != nil {
			return nil, err
		}
		for id, u := range found {
			names[id] = u.Name
		}
	}
	return names, nil
}

func roleOf(row store.Invitation) account.Role {
	if row.GroupID == "" {
		return account.Outsider
	}
	return accountRole(row.Role)
}

// state returns the state of an invitation, given the current permissions of its
// inviter.
func (i Invitations) state(row store.Invitation, inviter account.Principal) InvitationState {
	switch {
	case !row.Revoked.IsZero():
		return InvitationRevoked
	case row.Used >= row.Uses:
		return InvitationUsed
	case !time.Now().Before(row.Expires):
		return InvitationExpired
	case i.b.mayInvite(inviter, account.GroupID(row.GroupID), "", account.Outsider, roleOf(row)) != nil:
		return InvitationSuspended
	}
	return InvitationOpen
}

// readPrincipal returns the current principal of a user with all scopes. The
// principal of a user who was deleted or is disabled is anonymous.
func readPrincipal(ctx context.Context, t *store.Tables, id account.UserID) (account.Principal, error) {
	row, err := t.Users.Get(ctx, string(id))
	if errors.Is(err, store.ErrNotFound) || err == nil && row.Disabled {
		return account.Principal{}, nil
	}
	if err != nil {
		return account.Principal{}, err
	}
	groups, err := readGroups(ctx, t.Groups, id)
	return account.Principal{User: id, Name: row.Name, Admin: row.Admin, Groups: groups, Scopes: account.AllScopes}, err
}

// Revoke revokes an invitation. Nobody can use it from then on.
func (i Invitations) Revoke(ctx context.Context, p account.Principal, id string) error {
	if p.Anonymous() { // anonymous callers must not learn whether it exists
		return account.Check(p, account.InvitationManage, account.Resource{})
	}
	row, err := i.b.db.Invitations.Get(ctx, id)
	if err != nil {
		return err
	}
	r, in := invitationTo(account.GroupID(row.GroupID))
	a := auditedAction{by: p, action: account.InvitationManage, in: in, subject: id, details: map[string]any{"change": "revoke"}}
	err = i.b.authorize(ctx, a, r)
	if denied, ok := errors.AsType[*account.DeniedError](err); ok && (denied.Hidden || row.GroupID == "" && denied.Scopes == 0) {
		return fmt.Errorf("invitation %q: %w", id, store.ErrNotFound)
	}
	if err != nil {
		return err
	}
	return i.b.commit(ctx, &a, func(tx *store.Tx) error { return tx.Invitations.Revoke(ctx, id) })
}

// Prune deletes invitations that ended more than a month ago. It checks no
// permissions, because only the hub itself calls it.
func (i Invitations) Prune(ctx context.Context) error {
	_, err := i.b.db.Invitations.Prune(ctx, time.Now().Add(-invitationRetention))
	return err
}

// linkIn returns the link in the path of the page of an invitation, or "".
func linkIn(path string) string {
	if link, ok := strings.CutPrefix(path, InvitationPath); ok {
		return link
	}
	return ""
}
