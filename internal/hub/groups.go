package hub

import (
	"context"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/loadout-dev/loadout/internal/account"
	"github.com/loadout-dev/loadout/internal/hub/people"
)

// groupJSON is a group.
type groupJSON struct {
	ID          string    `json:"id"`
	Name        string    `json:"name"`
	Display     string    `json:"display"`
	Description string    `json:"description"`
	Created     time.Time `json:"created"`
	Role        string    `json:"role" enum:"outsider,reporter,developer,maintainer,owner" doc:"What you are in it"`
}

func groupOf(g people.Group) groupJSON {
	return groupJSON{ID: string(g.ID), Name: g.Name, Display: g.Display, Description: g.Description, Created: g.Created, Role: g.Role.String()}
}

// GroupPath names a group in a path.
type GroupPath struct {
	Group string `path:"group" maxLength:"64" doc:"The id of a group"`
}

func (o GroupPath) id() account.GroupID { return account.GroupID(o.Group) }

type newGroup struct {
	Name        string  `json:"name" maxLength:"64" doc:"It never changes"`
	Display     *string `json:"display,omitempty" maxLength:"200"`
	Description *string `json:"description,omitempty" maxLength:"4000"`
}

type groupChange struct {
	Display     *string `json:"display,omitempty" maxLength:"200"`
	Description *string `json:"description,omitempty" maxLength:"4000"`
}

func (h *Hub) groups(api huma.API) {
	add(h, api, operation("list-groups", "GET", "/groups", "Your groups by name; to administrators all"), h.listGroups)
	add(h, api, created(operation("make-group", "POST", "/groups", "Make a group, of which you are the owner; administrators do")), h.makeGroup)
	add(h, api, operation("get-group", "GET", "/groups/{group}", "A group"), h.getGroup)
	add(h, api, operation("change-group", "PATCH", "/groups/{group}", "Change what a group is called"), h.changeGroup)
	add(h, api, operation("delete-group", "DELETE", "/groups/{group}", "Delete a group that has no skills and agents"), h.deleteGroup)
}

func (h *Hub) listGroups(ctx context.Context, in *Paging) (*body[listed[groupJSON]], error) {
	groups, next, err := h.people.Groups.List(ctx, account.FromContext(ctx), in.page())
	return page(groups, next, err, groupOf)
}

func (h *Hub) makeGroup(ctx context.Context, in *struct{ Body newGroup }) (*made[groupJSON], error) {
	text := people.GroupText{Display: in.Body.Display, Description: in.Body.Description}
	group, err := h.people.Groups.Create(ctx, account.FromContext(ctx), in.Body.Name, text)
	return madeAt(string(group.ID), "groups", groupOf(group), err)
}

func (h *Hub) getGroup(ctx context.Context, in *GroupPath) (*body[groupJSON], error) {
	group, err := h.people.Groups.Get(ctx, account.FromContext(ctx), in.id())
	return answered(groupOf(group), err)
}

func (h *Hub) changeGroup(ctx context.Context, in *struct {
	GroupPath
	Body groupChange
}) (*body[groupJSON], error) {
	group, err := h.people.Groups.Change(ctx, account.FromContext(ctx), in.id(), people.GroupText(in.Body))
	return answered(groupOf(group), err)
}

func (h *Hub) deleteGroup(ctx context.Context, in *GroupPath) (*nothing, error) {
	return nil, h.people.Groups.Delete(ctx, account.FromContext(ctx), in.id())
}

// memberJSON is a user in a group.
type memberJSON struct {
	User  userJSON  `json:"user"`
	Role  string    `json:"role" enum:"reporter,developer,maintainer,owner"`
	Since time.Time `json:"since"`
}

type memberRole struct {
	Role string `json:"role" enum:"reporter,developer,maintainer,owner"`
}

func memberOf(m people.Member) memberJSON {
	return memberJSON{User: userOf(m.User), Role: m.Role.String(), Since: m.Since}
}

func (h *Hub) members(api huma.API) {
	add(h, api, operation("list-members", "GET", "/groups/{group}/members", "Who is in a group"), h.listMembers)
	add(h, api, operation("set-member", "PUT", "/groups/{group}/members/{user}", "Make a user a member, or give a member another role"), h.setMember)
	add(h, api, operation("remove-member", "DELETE", "/groups/{group}/members/{user}", "Take a user out of a group, or leave it"), h.removeMember)
}

func (h *Hub) listMembers(ctx context.Context, in *struct {
	GroupPath
	Paging
}) (*body[listed[memberJSON]], error) {
	members, next, err := h.people.Groups.Members(ctx, account.FromContext(ctx), in.id(), in.page())
	return page(members, next, err, memberOf)
}

func (h *Hub) setMember(ctx context.Context, in *struct {
	GroupPath
	UserPath
	Body memberRole
}) (*nothing, error) {
	role, err := account.ParseRole(in.Body.Role)
	if err != nil {
		return nil, &people.InvalidError{Field: "role", Why: err.Error()}
	}
	p := account.FromContext(ctx)
	return nil, h.people.Groups.SetRole(ctx, p, in.GroupPath.id(), in.UserPath.id(p), role)
}

func (h *Hub) removeMember(ctx context.Context, in *struct {
	GroupPath
	UserPath
}) (*nothing, error) {
	p := account.FromContext(ctx)
	return nil, h.people.Groups.SetRole(ctx, p, in.GroupPath.id(), in.UserPath.id(p), account.Outsider)
}
