package accountapi

import (
	"context"
	"time"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/api"
	"github.com/loadout-dev/loadout/internal/hub/users"
)

// GroupPath is the path parameter for a group.
type GroupPath struct {
	Group string `path:"group" maxLength:"64" doc:"ID of a group"`
}

func (o GroupPath) id() account.GroupID { return account.GroupID(o.Group) }

type newGroup struct {
	Name              string  `json:"name" maxLength:"64" doc:"Cannot be changed"`
	Display           *string `json:"display,omitempty" maxLength:"200"`
	Description       *string `json:"description,omitempty" maxLength:"4000"`
	RequiredApprovers *int64  `json:"requiredApprovers,omitempty" minimum:"1" maximum:"10" doc:"Default 1; see change-group"`
}

type groupChange struct {
	Display           *string `json:"display,omitempty" maxLength:"200"`
	Description       *string `json:"description,omitempty" maxLength:"4000"`
	RequiredApprovers *int64  `json:"requiredApprovers,omitempty" minimum:"1" maximum:"10" doc:"How many reviewers must approve a version of its skills before it becomes current; over 1, the uploader does not count"`
	ApproverGroup     *string `json:"approverGroup,omitempty" maxLength:"64" doc:"ID of a group of yours whose members must give the approvals; they must also be reviewers of this group. Empty for this group"`
	ApproverRole      *string `json:"approverRole,omitempty" enum:"reporter,developer,maintainer,owner" doc:"Lowest role of those members; in this group, maintainer or owner"`
}

func (h *Handlers) groupsAPI() {
	api.Add(h.Server, api.Operation("list-groups", "GET", "/groups", "List your groups by name; administrators see all"), h.listGroups)
	api.Add(h.Server, api.WithCreated(api.Operation("make-group", "POST", "/groups", "Create a group that you own; for administrators")), h.createGroup)
	api.Add(h.Server, api.Operation("get-group", "GET", "/groups/{group}", "Get a group"), h.getGroup)
	api.Add(h.Server, api.Operation("change-group", "PATCH", "/groups/{group}", "Change the display name, the description or the required approvers of a group"), h.changeGroup)
	api.Add(h.Server, api.Operation("delete-group", "DELETE", "/groups/{group}", "Delete a group without skills and agents"), h.deleteGroup)
}

func (h *Handlers) listGroups(ctx context.Context, in *api.Paging) (*api.Body[api.ListBody[users.Group]], error) {
	groups, next, err := h.Directory.Groups.List(ctx, account.FromContext(ctx), in.Page())
	return api.ListOf(groups, next, err)
}

func (h *Handlers) createGroup(ctx context.Context, in *struct{ Body newGroup }) (*api.CreatedBody[users.Group], error) {
	c := users.GroupChange{Display: in.Body.Display, Description: in.Body.Description, RequiredApprovers: in.Body.RequiredApprovers}
	group, err := h.Directory.Groups.Create(ctx, account.FromContext(ctx), in.Body.Name, c)
	return api.CreatedAt(string(group.ID), "groups", group, err)
}

func (h *Handlers) getGroup(ctx context.Context, in *GroupPath) (*api.Body[users.Group], error) {
	group, err := h.Directory.Groups.Get(ctx, account.FromContext(ctx), in.id())
	return api.BodyOf(group, err)
}

func (h *Handlers) changeGroup(ctx context.Context, in *struct {
	GroupPath
	Body groupChange
}) (*api.Body[users.Group], error) {
	group, err := h.Directory.Groups.Change(ctx, account.FromContext(ctx), in.id(), users.GroupChange(in.Body))
	return api.BodyOf(group, err)
}

func (h *Handlers) deleteGroup(ctx context.Context, in *GroupPath) (*api.NoBody, error) {
	return nil, h.Directory.Groups.Delete(ctx, account.FromContext(ctx), in.id())
}

// memberJSON is a group member.
type memberJSON struct {
	User  userJSON     `json:"user"`
	Role  account.Role `json:"role" enum:"reporter,developer,maintainer,owner"`
	Since time.Time    `json:"since"`
}

type memberRole struct {
	Role account.Role `json:"role" enum:"reporter,developer,maintainer,owner"`
}

func newMemberJSON(m users.Member) memberJSON {
	return memberJSON{User: newUserJSON(m.User), Role: m.Role, Since: m.Since}
}

func (h *Handlers) membersAPI() {
	api.Add(h.Server, api.Operation("list-members", "GET", "/groups/{group}/members", "List the members of a group"), h.listMembers)
	api.Add(h.Server, api.Operation("set-member", "PUT", "/groups/{group}/members/{user}", "Add a member, or change the role of one"), h.setMember)
	api.Add(h.Server, api.Operation("remove-member", "DELETE", "/groups/{group}/members/{user}", "Remove a member from a group, or leave it"), h.removeMember)
}

func (h *Handlers) listMembers(ctx context.Context, in *struct {
	GroupPath
	api.Paging
}) (*api.Body[api.ListBody[memberJSON]], error) {
	members, next, err := h.Directory.Groups.Members(ctx, account.FromContext(ctx), in.id(), in.Page())
	return api.PageOf(members, next, err, newMemberJSON)
}

func (h *Handlers) setMember(ctx context.Context, in *struct {
	GroupPath
	UserPath
	Body memberRole
}) (*api.NoBody, error) {
	p := account.FromContext(ctx)
	return nil, h.Directory.Groups.SetRole(ctx, p, in.GroupPath.id(), in.UserPath.id(p), in.Body.Role)
}

func (h *Handlers) removeMember(ctx context.Context, in *struct {
	GroupPath
	UserPath
}) (*api.NoBody, error) {
	p := account.FromContext(ctx)
	return nil, h.Directory.Groups.SetRole(ctx, p, in.GroupPath.id(), in.UserPath.id(p), account.Outsider)
}
