package account

import (
	"errors"
	"fmt"
	"strings"
)

// Action identifies an operation that needs authorization, in the form KIND.VERB.
type Action string

// The actions. Each applies to a [Resource]: an existing item, or the namespace of
// a new item.
const (
	SkillRead     Action = "skill.read"     // see a skill, its files and its versions
	SkillUse      Action = "skill.use"      // load a skill in a conversation
	SkillRun      Action = "skill.run"      // run an approved version's code
	SkillBind     Action = "skill.bind"     // name a skill in an agent or profile
	SkillRate     Action = "skill.rate"     // rate and review a skill
	SkillDownload Action = "skill.download" // download a skill's package
	SkillUpload   Action = "skill.upload"   // add a new skill, including by import
	SkillChange   Action = "skill.change"   // add a version, choose the current one, change a skill's source
	SkillReview   Action = "skill.review"   // approve or reject a version's code
	SkillComment  Action = "skill.comment"  // comment on a version in a review
	SkillDismiss  Action = "skill.dismiss"  // dismiss a reviewer's request for changes
	SkillPublish  Action = "skill.publish"  // offer a skill to others; also requires SkillUpload in their namespace
	SkillHide     Action = "skill.hide"
	SkillDelete   Action = "skill.delete"

	KindRead    Action = "kind.read"  // see an agent, a team, a model or a server
	KindUse     Action = "kind.use"   // chat with an agent, call a server's tools
	KindApply   Action = "kind.apply" // create or change a Ghost, Bot or Team
	KindDelete  Action = "kind.delete"
	ServerApply Action = "server.apply" // create, change or test a Model or MCPServer
	MCPConnect  Action = "mcp.connect"  // connect an MCP client to all tools or to a profile

	SessionRead      Action = "session.read"  // read a conversation, its events and files
	SessionWrite     Action = "session.write" // start a conversation, send messages, load and unload skills
	SessionStop      Action = "session.stop"  // cancel a turn
	SessionDelete    Action = "session.delete"
	SessionShare     Action = "session.share" // share a snapshot of a conversation
	ShareRead        Action = "share.read"    // open a share for signed-in users
	ShareList        Action = "share.list"    // list shares; only the owner sees titles and links
	ShareRevoke      Action = "share.revoke"
	ApprovalAnswer   Action = "ask.answer"    // answer approval requests
	DefaultWrite     Action = "default.write" // choose a user's default skills
	NotificationRead Action = "notice.read"

	GrantRead   Action = "grant.read"
	GrantWrite  Action = "grant.write"  // grant and revoke permissions of code
	SecretList  Action = "secret.list"  // list the names of secrets; nobody can read values
	SecretWrite Action = "secret.write" // set and delete secrets
	SecretGrant Action = "secret.grant" // let a skill or server use a secret

	GroupCreate  Action = "group.create"
	GroupRead    Action = "group.read"    // see a group's members and settings
	GroupMembers Action = "group.members" // add and remove members, within CanSetRole
	GroupManage  Action = "group.manage"  // change a group's name, description and required approvers
	GroupDelete  Action = "group.delete"

	InvitationManage Action = "invitation.manage" // create, list and revoke invitations to a group, or to the hub
	InvitationAccept Action = "invitation.accept" // join a group by an invitation

	UserList    Action = "user.list"   // see users' names, to find a user
	UserRead    Action = "user.read"   // see all details of a user
	UserWrite   Action = "user.write"  // change one's own name and password
	UserManage  Action = "user.manage" // create, disable and delete users, and make them admin
	TokenList   Action = "token.list"
	TokenCreate Action = "token.make"
	TokenRevoke Action = "token.end" // revoke tokens and sign-ins

	SettingsRead  Action = "settings.read"
	SettingsWrite Action = "settings.write" // change the kill switch, the allowlist and other settings
	UsageRead     Action = "usage.read"
	MeterRead     Action = "meter.read" // see the usage of conversations
	AuditRead     Action = "audit.read"
	HubOperate    Action = "hub.operate" // see metrics and node state, make backups
)

// Resource describes the owner and the visibility of the item to which an action
// applies. The item belongs to a user, a group or the hub. Administrators may
// perform any action on a hub item. Others may not access it unless it is shared.
type Resource struct {
	Owner  UserID  // user who owns the item, or the user that the item represents
	Group  GroupID // group that owns the item
	Author UserID  // creator within a group; for SkillReview and SkillDismiss, the uploader of the version
	Shared bool    // whether all users can see the item: in the public namespace or published to all
	// Hidden restricts the item to users who manage it. Set it to false if the
	// action uses an existing reference to the item, which remains valid.
	Hidden bool
	// ReadOnly restricts the item to actions that do not change it, even for
	// administrators.
	ReadOnly bool
}

// OwnedBy returns the [Resource] of an item owned by a user.
func OwnedBy(user UserID) Resource { return Resource{Owner: user} }

// OwnedByGroup returns the [Resource] of an item that is owned by a group and
// was created by author.
func OwnedByGroup(group GroupID, author UserID) Resource {
	return Resource{Group: group, Author: author}
}

// rule specifies who may perform an action. All other users are denied.
type rule struct {
	action Action
	scopes Scopes // the request must have at least one of these

	own       bool // allows the user who owns the item
	group     Role // minimum role of members of the owning group; Outsider allows no members
	author    bool // also allows the creator, if a developer in the group
	notAuthor bool // denies the author, because another user has to review
	everyone  bool // allows every signed-in user if the item is shared
	admin     bool // allows administrators, even if the hub does not own the item
	write     bool // denies everybody if the item is read-only
}

const (
	readScopes = ScopeRead | ScopeChat | ScopeMCP
	useScopes  = ScopeChat | ScopeMCP
)

var rules = []rule{
	{action: SkillRead, scopes: readScopes, own: true, group: Reporter, everyone: true, admin: true},
	{action: SkillUse, scopes: useScopes, own: true, group: Reporter, everyone: true, admin: true},
	{action: SkillRun, scopes: ScopeRun, own: true, group: Reporter, everyone: true, admin: true},
	{action: SkillBind, scopes: ScopeWrite, own: true, group: Developer, everyone: true, admin: true},
	{action: SkillRate, scopes: ScopeWrite, group: Reporter, everyone: true, admin: true},
	{action: SkillDownload, scopes: ScopeRead, own: true, group: Reporter, everyone: true, admin: true},
	{action: SkillUpload, scopes: ScopeWrite, own: true, group: Developer, admin: true, write: true},
	{action: SkillChange, scopes: ScopeWrite, own: true, group: Maintainer, author: true, admin: true, write: true},
	{action: SkillReview, scopes: ScopeReview, group: Maintainer, notAuthor: true, admin: true},
	{action: SkillComment, scopes: ScopeWrite | ScopeReview, own: true, group: Developer, admin: true, write: true},
	{action: SkillDismiss, scopes: ScopeReview, group: Owner, notAuthor: true, admin: true, write: true},
	{action: SkillPublish, scopes: ScopeWrite, own: true, group: Maintainer, admin: true, write: true},
	{action: SkillHide, scopes: ScopeWrite, own: true, group: Maintainer, author: true, admin: true, write: true},
	{action: SkillDelete, scopes: ScopeWrite, own: true, group: Maintainer, author: true, admin: true, write: true},

	{action: KindRead, scopes: readScopes, own: true, group: Reporter, everyone: true, admin: true},
	{action: KindUse, scopes: useScopes, own: true, group: Reporter, everyone: true},
	{action: KindApply, scopes: ScopeWrite, own: true, group: Developer, admin: true, write: true},
	{action: KindDelete, scopes: ScopeWrite, own: true, group: Maintainer, author: true, admin: true, write: true},
	{action: ServerApply, scopes: ScopeWrite, own: true, group: Maintainer, admin: true, write: true},
	{action: MCPConnect, scopes: ScopeMCP, own: true, group: Reporter, everyone: true},

	{action: SessionRead, scopes: ScopeRead | ScopeChat, own: true},
	{action: SessionWrite, scopes: ScopeChat, own: true},
	{action: SessionStop, scopes: ScopeChat | ScopeAdmin, own: true, admin: true},
	{action: SessionDelete, scopes: ScopeChat, own: true},
	{action: SessionShare, scopes: ScopeChat, own: true},
	{action: ShareRead, scopes: ScopeRead | ScopeChat, own: true, everyone: true},
	{action: ShareList, scopes: ScopeRead | ScopeChat, own: true, admin: true},
	{action: ShareRevoke, scopes: ScopeChat | ScopeAdmin, own: true, admin: true},
	{action: ApprovalAnswer, scopes: ScopeChat, own: true},
	{action: DefaultWrite, scopes: ScopeWrite, own: true, write: true},
	{action: NotificationRead, scopes: ScopeRead, own: true},

	{action: GrantRead, scopes: ScopeRead, own: true, group: Maintainer, admin: true},
	{action: GrantWrite, scopes: ScopeReview, own: true, group: Maintainer, write: true},
	{action: SecretList, scopes: ScopeRead, own: true, group: Maintainer},
	{action: SecretWrite, scopes: ScopeWrite, own: true, group: Maintainer, write: true},
	{action: SecretGrant, scopes: ScopeReview, own: true, group: Maintainer, write: true},

	{action: GroupCreate, scopes: ScopeAdmin, admin: true}, // members get the group's defaults, so users must not add others to their own groups
	{action: GroupRead, scopes: ScopeRead, group: Reporter, admin: true},
	{action: GroupMembers, scopes: ScopeAdmin, group: Maintainer, admin: true},
	{action: GroupManage, scopes: ScopeAdmin, group: Owner, admin: true},
	{action: GroupDelete, scopes: ScopeAdmin, group: Owner, admin: true},

	{action: InvitationManage, scopes: ScopeAdmin, group: Owner, admin: true},
	{action: InvitationAccept, scopes: ScopeAdmin, own: true},

	{action: UserList, scopes: ScopeRead, everyone: true, admin: true},
	{action: UserRead, scopes: ScopeRead, own: true, admin: true},
	{action: UserWrite, scopes: ScopeAdmin, own: true, admin: true},
	{action: UserManage, scopes: ScopeAdmin, admin: true},
	{action: TokenList, scopes: ScopeRead, own: true, admin: true},
	{action: TokenCreate, scopes: ScopeAdmin, own: true},
	{action: TokenRevoke, scopes: ScopeAdmin, own: true, admin: true},

	{action: SettingsRead, scopes: ScopeRead, own: true, group: Reporter, everyone: true, admin: true},
	{action: SettingsWrite, scopes: ScopeAdmin, own: true, group: Maintainer, admin: true, write: true},
	{action: UsageRead, scopes: ScopeRead, own: true, group: Reporter, admin: true},
	{action: MeterRead, scopes: ScopeRead, own: true, group: Maintainer, admin: true},
	{action: AuditRead, scopes: ScopeRead, own: true, group: Owner, admin: true},
	{action: HubOperate, scopes: ScopeRead | ScopeAdmin},
}

// findRule returns the rule for an action, or nil if there is none.
func findRule(a Action) *rule {
	for i := range rules {
		if rules[i].action == a {
			return &rules[i]
		}
	}
	return nil
}

// Actions returns all actions.
func Actions() []Action {
	var all []Action
	for _, r := range rules {
		all = append(all, r.action)
	}
	return all
}

// Can reports whether a principal may perform an action on a resource. Unknown
// actions are always denied.
func Can(p Principal, a Action, r Resource) bool {
	rule := findRule(a)
	return rule != nil && rule.allowsUser(p, r) && rule.scopes&p.Scopes != 0
}

// allowsUser reports whether the user may perform the action, regardless of scopes.
func (u *rule) allowsUser(p Principal, r Resource) bool {
	switch hub := r.Owner == "" && r.Group == ""; {
	case p.Anonymous(), u.write && r.ReadOnly:
		return false
	case p.Admin && (hub || u.admin):
		return true
	case u.own && r.Owner == p.User:
		return true
	case u.everyone && r.Shared && !r.Hidden:
		return true
	}
	return u.allowsMember(p, r)
}

// allowsMember reports whether the user's role in the owning group permits the
// action.
func (u *rule) allowsMember(p Principal, r Resource) bool {
	role, made := p.Groups[r.Group], r.Author == p.User
	manages := role >= Maintainer || made && role >= Developer
	switch {
	case r.Group == "", role < Reporter, r.Hidden && !manages, u.notAuthor && made:
		return false
	case u.author && manages:
		return true
	}
	return u.group != Outsider && role >= u.group
}

// CanSetRole reports whether a principal may change a user's role in a group. The
// role Outsider means that the user is not a member. Every user may leave a group.
// A principal who manages members may change roles if neither the old nor the new
// role is higher than its own.
func CanSetRole(p Principal, g GroupID, user UserID, oldRole, newRole Role) bool {
	if p.Anonymous() || g == "" || oldRole < Outsider || newRole < Outsider || oldRole > Owner || newRole > Owner {
		return false
	}
	leaves := user == p.User && newRole == Outsider && p.Scopes&ScopeAdmin != 0
	own := p.Groups[g]
	return leaves || Can(p, GroupMembers, Resource{Group: g}) && (p.Admin || oldRole <= own && newRole <= own)
}

// DeniedError reports why an action was denied.
type DeniedError struct {
	Action Action
	// SignIn is set if the user is not signed in. Respond with status 401.
	SignIn bool
	// Scopes is set if the user may perform the action, but the token has none of
	// these scopes. Respond with status 403.
	Scopes Scopes
	// Hidden is set if the user must not learn whether the resource exists. Respond
	// with status 404 instead of 403.
	Hidden bool
}

// IsDenied reports whether an error is, or wraps, a [*DeniedError].
func IsDenied(err error) bool {
	_, ok := errors.AsType[*DeniedError](err)
	return ok
}

func (e *DeniedError) Error() string {
	switch {
	case e.SignIn:
		return fmt.Sprintf("%s: sign in first", e.Action)
	case e.Scopes != 0:
		return fmt.Sprintf("%s: the token needs scope %s", e.Action, strings.Join(e.Scopes.Names(), " or "))
	}
	return fmt.Sprintf("%s: permission denied", e.Action)
}

// Check is like [Can], but returns the reason for a denial as a [*DeniedError].
func Check(p Principal, a Action, r Resource) error {
	rule := findRule(a)
	switch {
	case Can(p, a, r):
		return nil
	case p.Anonymous():
		return &DeniedError{Action: a, SignIn: true}
	case rule != nil && rule.allowsUser(p, r):
		return &DeniedError{Action: a, Scopes: rule.scopes}
	}
	kept := r.Owner != "" || r.Group != "" || r.Hidden // the existence of hub settings is no secret
	return &DeniedError{Action: a, Hidden: kept && !findRule(SkillRead).allowsUser(p, r)}
}
