package accountapi

import (
	"context"
	"maps"
	"slices"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/api"
	"github.com/loadout-dev/loadout/internal/store"
)

// meJSON describes the current user.
type meJSON struct {
	User   userJSON         `json:"user"`
	Groups []membershipJSON `json:"groups" nullable:"false"`
	Scopes []string         `json:"scopes" nullable:"false" doc:"All for a browser; a token may have fewer"`
	Can    canJSON          `json:"can" doc:"Actions that a page should offer"`
	Ways   waysJSON         `json:"ways"`
}

type membershipJSON struct {
	Group string       `json:"group" doc:"ID of the group"`
	Role  account.Role `json:"role" enum:"reporter,developer,maintainer,owner"`
}

func (h *Handlers) me(ctx context.Context, _ *api.NoBody) (*api.Body[meJSON], error) {
	return api.BodyOf(h.currentUser(ctx, account.FromContext(ctx)))
}

// currentUser describes the principal. It omits the account details, such as
// the email address, if the scopes of the request do not permit reading them.
func (h *Handlers) currentUser(ctx context.Context, p account.Principal) (meJSON, error) {
	whole := p
	whole.Scopes = account.AllScopes
	user, err := h.Directory.Users.Get(ctx, whole, p.User)
	if err != nil {
		return meJSON{}, err
	}
	user.Full = account.Can(p, account.UserRead, account.OwnedBy(p.User))
	ways, err := h.signInMethods(ctx)
	return meJSON{User: newUserJSON(user), Groups: memberships(p), Scopes: p.Scopes.Names(), Can: h.canJSON(p), Ways: ways}, err
}

// memberships returns the groups that a principal belongs to.
func memberships(p account.Principal) []membershipJSON {
	out := []membershipJSON{}
	for _, g := range slices.Sorted(maps.Keys(p.Groups)) {
		if role := p.Groups[g]; role != account.Outsider {
			out = append(out, membershipJSON{string(g), role})
		}
	}
	return out
}

// canJSON lists the actions that the current user may perform, so that a page
// offers only those.
type canJSON struct {
	Admin     bool     `json:"admin" doc:"May change settings and manage users"`
	Chat      bool     `json:"chat" doc:"May chat"`
	Upload    []string `json:"upload" nullable:"false" doc:"Namespaces where the user may upload skills and create agents: default, public, and ids of groups"`
	Review    []string `json:"review" nullable:"false" doc:"Namespaces where the user may review uploads of others: public, and ids of groups; * for all"`
	Servers   []string `json:"servers" nullable:"false" doc:"Namespaces where the user may create Models and MCP servers"`
	Members   []string `json:"members" nullable:"false" doc:"Groups whose members the user may manage; * for all"`
	NewGroups bool     `json:"new_groups" doc:"May create groups"`
	Invite    []string `json:"invite" nullable:"false" doc:"Groups to which the user may invite others; * for all, and the hub without a group"`
	Share     bool     `json:"share" doc:"May share conversations with other users"`
}

// canJSON lists the actions that p may perform under the authorization rules and the
// settings of the hub.
func (h *Handlers) canJSON(p account.Principal) canJSON {
	own, public := account.OwnedBy(p.User), account.Resource{Shared: true}
	can := func(a account.Action, r account.Resource) bool { return account.Can(p, a, r) }
	in := func(a account.Action, everywhere string) []string {
		out := []string{}
		if can(a, own) && (a == account.SkillUpload || a == account.ServerApply) {
			out = append(out, api.OwnNamespace)
		}
		if can(a, public) && a != account.GroupMembers {
			out = append(out, string(store.Public))
		}
		for _, m := range memberships(p) {
			if can(a, account.OwnedByGroup(account.GroupID(m.Group), "somebody else")) {
				out = append(out, m.Group)
			}
		}
		if everywhere != "" && p.Admin && can(a, account.OwnedByGroup("another", "somebody else")) {
			out = append(out, everywhere)
		}
		return out
	}
	invite := []string{}
	for _, m := range memberships(p) {
		if !h.Single && h.Directory.Invitations.MayInvite(p, account.GroupID(m.Group)) {
			invite = append(invite, m.Group)
		}
	}
	if !h.Single && h.Directory.Invitations.MayInvite(p, "") {
		invite = append(invite, "*")
	}
	return canJSON{Invite: invite, Admin: can(account.SettingsWrite, account.Resource{}), Chat: can(account.SessionWrite, own), NewGroups: can(account.GroupCreate, account.Resource{}),
		Upload: in(account.SkillUpload, ""), Review: in(account.SkillReview, "*"), Servers: in(account.ServerApply, ""), Members: in(account.GroupMembers, "*"), Share: h.Sharing && can(account.SessionShare, own)}
}
