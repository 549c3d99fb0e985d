package accountapi

import (
	"context"
	"errors"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/api"
	"github.com/loadout-dev/loadout/internal/hub/users"
)

// maxInvitations is the maximum number of invitations on a page of a list, because
// each lists up to [users.MaxInvitationUses] users.
const maxInvitations = 100

// newInvitation is a request to create an invitation.
type newInvitation struct {
	Group string `json:"group,omitempty" maxLength:"64" doc:"ID of a group; without it, the link invites to the hub only, which administrators may do"`
	Role  string `json:"role,omitempty" enum:"reporter,developer,maintainer,owner" doc:"Role in the group, at most your own; default reporter"`
	Note  string `json:"note,omitempty" maxLength:"200" doc:"Invited user, such as a name or an email address; not shown to those who open the link"`
	Uses  int    `json:"uses,omitempty" minimum:"1" maximum:"50" doc:"Maximum number of users; default 1"`
	Days  int    `json:"days,omitempty" minimum:"1" maximum:"30" doc:"Lifetime; default 7"`
}

// madeInvitation is a new invitation. The link is shown only once.
type madeInvitation struct {
	Link string `json:"link" doc:"Secret last part of the address to send: /invite/LINK. It is not shown again"`
	users.Invitation
}

// InvitationLink is the path parameter for the link of an invitation.
type InvitationLink struct {
	Link string `path:"link" maxLength:"64" doc:"The link of an invitation"`
}

// joinedGroup is the group that a user joined.
type joinedGroup struct {
	Group account.GroupID `json:"group,omitempty" doc:"ID of the group; absent if the invitation is to the hub without a group"`
}

func (h *Handlers) invitationsAPI() {
	api.Add(h.Server, api.Operation("list-invitations", "GET", "/invitations", "List the invitations to a group, or for administrators all, newest first"), h.listInvitations)
	api.Add(h.Server, api.WithCreated(api.Operation("create-invitation", "POST", "/invitations", "Create a link with which users can join a group, or the hub without a group; for administrators and owners of the group")), h.createInvitation)
	api.Add(h.Server, api.Operation("revoke-invitation", "DELETE", "/invitations/{invitation}", "Revoke an invitation, so that nobody can use its link"), h.revokeInvitation)
	api.Add(h.Server, api.PublicOperation("get-invitation", "GET", "/invite/{link}", "Show the inviter and the group of an invitation. Needs no sign-in"), h.openInvitation)
	api.Add(h.Server, api.PublicOperation("accept-invitation", "POST", "/invite/{link}", "Create an account with an invitation, and sign the browser in. Needs no sign-in"), h.acceptInvitation)
	api.Add(h.Server, api.Operation("join-group", "POST", "/invite/{link}/join", "Join the group of an invitation with your account"), h.joinByInvitation)
}

func (h *Handlers) listInvitations(ctx context.Context, in *struct {
	api.Paging
	Group string `query:"group" maxLength:"64" doc:"ID of a group; without it, all invitations, for administrators"`
}) (*api.Body[api.ListBody[users.Invitation]], error) {
	page := in.Page()
	page.Limit = min(page.Limit, maxInvitations)
	found, next, err := h.Directory.Invitations.List(ctx, account.FromContext(ctx), account.GroupID(in.Group), page)
	return api.ListOf(found, next, err)
}

func (h *Handlers) createInvitation(ctx context.Context, in *struct{ Body newInvitation }) (*api.Body[madeInvitation], error) {
	if err := h.requireAccounts(); err != nil {
		return nil, err
	}
	n := users.NewInvitation{Group: account.GroupID(in.Body.Group), Note: in.Body.Note, Uses: in.Body.Uses, Days: in.Body.Days}
	if in.Body.Role != "" {
		role, err := account.ParseRole(in.Body.Role)
		if err != nil {
			return nil, &users.InvalidError{Field: "role", Reason: err.Error()}
		}
		n.Role = role
	}
	link, made, err := h.Directory.Invitations.Create(ctx, account.FromContext(ctx), n)
	return api.BodyOf(madeInvitation{link, made}, err)
}

func (h *Handlers) revokeInvitation(ctx context.Context, in *struct {
	Invitation string `path:"invitation" maxLength:"64" doc:"The id of an invitation"`
}) (*api.NoBody, error) {
	return nil, h.Directory.Invitations.Revoke(ctx, account.FromContext(ctx), in.Invitation)
}

// openedInvitation is an invitation with headers that keep it out of search engines.
type openedInvitation struct {
	Robots string `header:"X-Robots-Tag"`
	Body   users.OpenedInvitation
}

func (h *Handlers) openInvitation(ctx context.Context, in *InvitationLink) (*openedInvitation, error) {
	found, err := h.Directory.Invitations.Open(ctx, account.FromContext(ctx), in.Link)
	if err != nil {
		return nil, h.countGuess(ctx, err)
	}
	return &openedInvitation{"noindex, nofollow", found}, nil
}

// countGuess counts a link that is not valid as a failed sign-in. It returns err, or an
// error if there are too many.
func (h *Handlers) countGuess(ctx context.Context, err error) error {
	if !errors.Is(err, users.ErrInvitation) {
		return err
	}
	if limit := h.Gate.CountAttempt(api.RequestFrom(ctx)); limit != nil {
		return limit
	}
	return err
}

func (h *Handlers) acceptInvitation(ctx context.Context, in *struct {
	InvitationLink
	Body Credentials
}) (*withCookie[meJSON], error) {
	if err := h.requireAccounts(); err != nil {
		return nil, err
	}
	v := api.RequestFrom(ctx)
	if err := h.Gate.CountAttempt(v); err != nil {
		return nil, err
	}
	login, cookie := h.Gate.Logins.Prepare(v.HTTP.UserAgent())
	user, err := h.Directory.Invitations.Accept(ctx, account.NetworkClient(v.Client, in.Body.Name, false), in.Link, in.Body.Name, in.Body.Password, login)
	h.Metrics.CountSignIn("invitation", err)
	if err != nil {
		return nil, err
	}
	return h.finishSignIn(ctx, in.Body.Name, user, cookie)
}

func (h *Handlers) joinByInvitation(ctx context.Context, in *InvitationLink) (*api.Body[joinedGroup], error) {
	if err := h.requireAccounts(); err != nil {
		return nil, err
	}
	if err := h.Gate.CountAttempt(api.RequestFrom(ctx)); err != nil {
		return nil, err
	}
	group, err := h.Directory.Invitations.Join(ctx, account.FromContext(ctx), in.Link)
	return api.BodyOf(joinedGroup{group}, err)
}
