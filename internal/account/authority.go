package account

import (
	"fmt"
	"strings"
)

// Action is something that may be done, as KIND.VERB.
type Action string

// Actions. What each is on is a [Resource]: the thing, or, for what is made, the
// place where it will be.
const (
	SkillRead     Action = "skill.read"     // see a skill, its files and its versions
	SkillUse      Action = "skill.use"      // load it in a conversation
	SkillRun      Action = "skill.run"      // run its code, of a version that was approved
	SkillBind     Action = "skill.bind"     // name it in an agent or a profile of one's own
	SkillRate     Action = "skill.rate"     // rate it and say why
	SkillDownload Action = "skill.download" // have its package
	SkillUpload   Action = "skill.upload"   // put a new one there, also by import
	SkillChange   Action = "skill.change"   // a new version, another current one, its source
	SkillReview   Action = "skill.review"   // approve the code of a version, or refuse it
	SkillPublish  Action = "skill.publish"  // offer it to others; there, it is an upload
	SkillHide     Action = "skill.hide"
	SkillDelete   Action = "skill.delete"

	KindRead    Action = "kind.read"  // see an agent, a team, a model, a server
	KindUse     Action = "kind.use"   // talk with it, call its tools
	KindApply   Action = "kind.apply" // make or change a Ghost, Bot or Team
	KindDelete  Action = "kind.delete"
	ServerApply Action = "server.apply" // make, change or test a Model or MCPServer
	MCPConnect  Action = "mcp.connect"  // connect an MCP client to everything, or to a profile

	SessionRead   Action = "session.read"  // read a conversation, its events and files
	SessionWrite  Action = "session.write" // begin one, say something, load and unload
	SessionStop   Action = "session.stop"  // end what runs in it
	SessionDelete Action = "session.delete"
	AskAnswer     Action = "ask.answer"    // answer what is asked in it
	DefaultWrite  Action = "default.write" // which skills a person's conversations begin with
	NoticeRead    Action = "notice.read"

	GrantRead   Action = "grant.read"
	GrantWrite  Action = "grant.write"  // let code have what it asks for, and withdraw it
	SecretList  Action = "secret.list"  // names alone: a value is never read back
	SecretWrite Action = "secret.write" // set and delete
	SecretGrant Action = "secret.grant" // let a skill or server have one

	GroupCreate  Action = "group.create"
	GroupRead    Action = "group.read"    // its members and settings
	GroupMembers Action = "group.members" // add and remove members, within CanSetRole
	GroupManage  Action = "group.manage"  // rename it
	GroupDelete  Action = "group.delete"

	UserList   Action = "user.list"   // names, to find somebody
	UserRead   Action = "user.read"   // all that is known of somebody
	UserWrite  Action = "user.write"  // one's own name and password
	UserManage Action = "user.manage" // make, disable and delete users, and make them admin
	TokenList  Action = "token.list"
	TokenMake  Action = "token.make"
	TokenEnd   Action = "token.end" // withdraw tokens and sign-ins

	SettingsRead  Action = "settings.read"
	SettingsWrite Action = "settings.write" // kill switch, allow-list, and the like
	UsageRead     Action = "usage.read"
	MeterRead     Action = "meter.read" // what conversations took
	AuditRead     Action = "audit.read"
	HubOperate    Action = "hub.operate" // metrics, backup, what a node is busy with
)

// Resource is what an action is on: whose it is and who sees it. It is one user's, or
// one group's; with neither it is the hub's own, which is the zero value, and admins
// may do everything with it and others nothing, unless it is shared.
type Resource struct {
	Owner  UserID  // whose it is, or who it is
	Group  GroupID // whose it is
	Author UserID  // who made it, in a group; for SkillReview, who uploaded the version
	Shared bool    // offered to everybody: in the public namespace, or published to all
	// Hidden has it seen by those alone who manage it. It is false where something
	// that is used already names it: that goes on.
	Hidden bool
}

// Of is the resource that is a user's own.
func Of(u UserID) Resource { return Resource{Owner: u} }

// In is the resource that is a group's, made by somebody.
func In(g GroupID, author UserID) Resource { return Resource{Group: g, Author: author} }

// rule is who may do an action. Whatever is not said is refused.
type rule struct {
	action Action
	scopes Scopes // one of which is needed

	own      bool // the user whose it is
	group    Role // the least role in the group whose it is; Outsider is none
	author   bool // also a developer of the group who made it
	others   bool // not who made it: somebody else has to look
	everyone bool // whoever signed in, where it is shared
	admin    bool // admins, where it is not the hub's own
}

const (
	reading = ScopeRead | ScopeChat | ScopeMCP
	using   = ScopeChat | ScopeMCP
)

var rules = []rule{
	{action: SkillRead, scopes: reading, own: true, group: Reporter, everyone: true, admin: true},
	{action: SkillUse, scopes: using, own: true, group: Reporter, everyone: true, admin: true},
	{action: SkillRun, scopes: ScopeRun, own: true, group: Reporter, everyone: true, admin: true},
	{action: SkillBind, scopes: ScopeWrite, own: true, group: Developer, everyone: true, admin: true},
	{action: SkillRate, scopes: ScopeWrite, group: Reporter, everyone: true, admin: true},
	{action: SkillDownload, scopes: ScopeRead, own: true, group: Reporter, admin: true},
	{action: SkillUpload, scopes: ScopeWrite, own: true, group: Developer, admin: true},
	{action: SkillChange, scopes: ScopeWrite, own: true, group: Maintainer, author: true, admin: true},
	{action: SkillReview, scopes: ScopeReview, group: Maintainer, others: true, admin: true},
	{action: SkillPublish, scopes: ScopeWrite, own: true, group: Maintainer, admin: true},
	{action: SkillHide, scopes: ScopeWrite, own: true, group: Maintainer, author: true, admin: true},
	{action: SkillDelete, scopes: ScopeWrite, own: true, group: Maintainer, author: true, admin: true},

	{action: KindRead, scopes: reading, own: true, group: Reporter, everyone: true, admin: true},
	{action: KindUse, scopes: using, own: true, group: Reporter, everyone: true},
	{action: KindApply, scopes: ScopeWrite, own: true, group: Developer, admin: true},
	{action: KindDelete, scopes: ScopeWrite, own: true, group: Maintainer, author: true, admin: true},
	{action: ServerApply, scopes: ScopeWrite, own: true, group: Maintainer, admin: true},
	{action: MCPConnect, scopes: ScopeMCP, own: true, group: Reporter, everyone: true},

	{action: SessionRead, scopes: ScopeRead | ScopeChat, own: true},
	{action: SessionWrite, scopes: ScopeChat, own: true},
	{action: SessionStop, scopes: ScopeChat | ScopeAdmin, own: true, admin: true},
	{action: SessionDelete, scopes: ScopeChat, own: true},
	{action: AskAnswer, scopes: ScopeChat, own: true},
	{action: DefaultWrite, scopes: ScopeWrite, own: true},
	{action: NoticeRead, scopes: ScopeRead, own: true},

	{action: GrantRead, scopes: ScopeRead, own: true, group: Maintainer, admin: true},
	{action: GrantWrite, scopes: ScopeReview, own: true, group: Maintainer},
	{action: SecretList, scopes: ScopeRead, own: true, group: Maintainer},
	{action: SecretWrite, scopes: ScopeWrite, own: true, group: Maintainer},
	{action: SecretGrant, scopes: ScopeReview, own: true, group: Maintainer},

	{action: GroupCreate, scopes: ScopeAdmin, admin: true}, // who is in a group has its defaults: nobody draws others into one of his own
	{action: GroupRead, scopes: ScopeRead, group: Reporter, admin: true},
	{action: GroupMembers, scopes: ScopeAdmin, group: Maintainer, admin: true},
	{action: GroupManage, scopes: ScopeAdmin, group: Owner, admin: true},
	{action: GroupDelete, scopes: ScopeAdmin, group: Owner, admin: true},

	{action: UserList, scopes: ScopeRead, everyone: true, admin: true},
	{action: UserRead, scopes: ScopeRead, own: true, admin: true},
	{action: UserWrite, scopes: ScopeAdmin, own: true, admin: true},
	{action: UserManage, scopes: ScopeAdmin, admin: true},
	{action: TokenList, scopes: ScopeRead, own: true, admin: true},
	{action: TokenMake, scopes: ScopeAdmin, own: true},
	{action: TokenEnd, scopes: ScopeAdmin, own: true, admin: true},

	{action: SettingsRead, scopes: ScopeRead, own: true, group: Reporter, everyone: true, admin: true},
	{action: SettingsWrite, scopes: ScopeAdmin, own: true, group: Maintainer, admin: true},
	{action: UsageRead, scopes: ScopeRead, own: true, group: Reporter, admin: true},
	{action: MeterRead, scopes: ScopeRead, own: true, group: Maintainer, admin: true},
	{action: AuditRead, scopes: ScopeRead, own: true, group: Owner, admin: true},
	{action: HubOperate, scopes: ScopeRead | ScopeAdmin},
}

// find is the rule of an action, nil where there is none.
func find(a Action) *rule {
	for i := range rules {
		if rules[i].action == a {
			return &rules[i]
		}
	}
	return nil
}

// Actions are all there are.
func Actions() []Action {
	var all []Action
	for _, r := range rules {
		all = append(all, r.action)
	}
	return all
}

// Can reports whether a principal may do an action on a resource. An unknown action
// nobody may.
func Can(p Principal, a Action, r Resource) bool {
	rule := find(a)
	return rule != nil && rule.person(p, r) && rule.scopes&p.Scopes != 0
}

// person is whether the person may, whatever the way in allows.
func (u *rule) person(p Principal, r Resource) bool {
	switch hub := r.Owner == "" && r.Group == ""; {
	case p.Anonymous():
		return false
	case p.Admin && (hub || u.admin):
		return true
	case u.own && r.Owner == p.User:
		return true
	case u.everyone && r.Shared && !r.Hidden:
		return true
	}
	return u.member(p, r)
}

// member is whether somebody may for his role in the group.
func (u *rule) member(p Principal, r Resource) bool {
	role, made := p.Groups[r.Group], r.Author == p.User
	manages := role >= Maintainer || made && role >= Developer
	switch {
	case r.Group == "", role < Reporter, r.Hidden && !manages, u.others && made:
		return false
	case u.author && manages:
		return true
	}
	return u.group != Outsider && role >= u.group
}

// CanSetRole reports whether a principal may change what somebody is in a group, from
// one role to another, where Outsider is no member: who manages members may, for
// roles up to his own on both sides. Anybody may leave.
func CanSetRole(p Principal, g GroupID, who UserID, from, to Role) bool {
	if p.Anonymous() || g == "" || from < Outsider || to < Outsider || from > Owner || to > Owner {
		return false
	}
	leaves := who == p.User && to == Outsider && p.Scopes&ScopeAdmin != 0
	own := p.Groups[g]
	return leaves || Can(p, GroupMembers, Resource{Group: g}) && (p.Admin || from <= own && to <= own)
}

// DeniedError says why somebody may not do something.
type DeniedError struct {
	Action Action
	// SignIn is whether nobody has signed in. Answer with 401.
	SignIn bool
	// Scopes are those of which the way in lacks one; the person may. Answer with 403.
	Scopes Scopes
	// Unseen is whether they may not even know that there is such a thing. Answer
	// with 404, as if there were none; else with 403.
	Unseen bool
}

func (e *DeniedError) Error() string {
	switch {
	case e.SignIn:
		return fmt.Sprintf("%s: sign in first", e.Action)
	case e.Scopes != 0:
		return fmt.Sprintf("%s: the token lacks the scope %s", e.Action, strings.Join(e.Scopes.Names(), " or "))
	}
	return fmt.Sprintf("%s: you have no right to", e.Action)
}

// Check is [Can] with the reason, a [*DeniedError], where it is no.
func Check(p Principal, a Action, r Resource) error {
	rule := find(a)
	switch {
	case Can(p, a, r):
		return nil
	case p.Anonymous():
		return &DeniedError{Action: a, SignIn: true}
	case rule != nil && rule.person(p, r):
		return &DeniedError{Action: a, Scopes: rule.scopes}
	}
	kept := r.Owner != "" || r.Group != "" || r.Hidden // that the hub has settings is no secret
	return &DeniedError{Action: a, Unseen: kept && !find(SkillRead).person(p, r)}
}
