package users_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/users"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/store/storetest"
)

// inviting is a hub with the group web and its owner.
type inviting struct {
	*users.Directory
	db    *store.DB
	web   account.GroupID
	owner account.Principal
}

func newInviting(t *testing.T, db *store.DB) *inviting {
	t.Helper()
	p := core(t, db)
	web := must(p.Groups.Create(t.Context(), boss, "web", users.GroupChange{}))(t).ID
	return &inviting{p, db, web, newMember(t, p, "own", web, account.Owner)}
}

// invite creates an invitation to the group.
func (i *inviting) invite(t *testing.T, by account.Principal, n users.NewInvitation) (link string, made users.Invitation) {
	t.Helper()
	link, made, err := i.Invitations.Create(t.Context(), by, n)
	mustDo(t, err)
	return link, made
}

// accept creates a user by an invitation.
func (i *inviting) accept(t *testing.T, link, name string) (account.UserID, error) {
	t.Helper()
	login, _ := account.NewLogins(users.NewLoginStore(i.db), nil).Prepare("test")
	return i.Invitations.Accept(t.Context(), account.UserClient("guest"), link, name, password, login)
}

func (i *inviting) state(t *testing.T, id string) users.InvitationState {
	t.Helper()
	found, _, err := i.Invitations.List(t.Context(), boss, "", store.Page{})
	mustDo(t, err)
	for _, one := range found {
		if one.ID == id {
			return one.State
		}
	}
	t.Fatalf("no invitation %s", id)
	return ""
}

// Who accepts an invitation gets an account, its role and nothing else.
func TestInvitationCreatesUser(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		i := newInviting(t, db)
		link, made := i.invite(t, i.owner, users.NewInvitation{Group: i.web, Role: account.Developer, Note: "for ann"})
		if made.State != users.InvitationOpen || made.Uses != 1 || made.InviterName != "own" || made.Expires.Sub(made.Created).Hours() < 7*24-1 {
			t.Errorf("it is %+v", made)
		}
		opened := must(i.Invitations.Open(t.Context(), account.Principal{}, link))(t)
		if opened.Inviter != "own" || opened.Group.Name != "web" || opened.Role != account.Developer || opened.Member != account.Outsider {
			t.Errorf("it says %+v", opened)
		}
		// What fails uses up nothing.
		_, err := i.accept(t, link, "Ann!")
		wantInvalid(t, err, "name")
		_, err = i.accept(t, link, "own")
		wantError(t, err, store.ErrExists)
		login, _ := account.NewLogins(users.NewLoginStore(db), nil).Prepare("test")
		_, err = i.Invitations.Accept(t.Context(), account.UserClient("guest"), link, "ann", "short", login)
		if _, weak := errors.AsType[*account.WeakPasswordError](err); !weak {
			t.Errorf("a weak password: %v", err)
		}
		ann := as(t, i.Directory, must(i.accept(t, link, "ann"))(t))
		if ann.Name != "ann" || ann.Admin || len(ann.Groups) != 1 || ann.Groups[i.web] != account.Developer {
			t.Errorf("she is %+v", ann)
		}
		if logins := must(i.SignIns.List(t.Context(), ann, ann.User))(t); len(logins) != 1 {
			t.Errorf("she has %d sign-ins", len(logins))
		}
		_, err = i.accept(t, link, "bob")
		wantError(t, err, users.ErrInvitation)
		_, err = i.Invitations.Join(t.Context(), account.Principal{User: ann.User}, link) // a token without a scope for it
		if _, denied := errors.AsType[*account.DeniedError](err); !denied {
			t.Errorf("joining with a token: %v", err)
		}
		if denied := must(i.Audit.List(t.Context(), boss, store.AuditQuery{Action: string(account.InvitationAccept), Decision: "denied"}))(t); len(denied) != 1 || denied[0].Actor != string(ann.User) {
			t.Errorf("the audit log has the denials %+v", denied)
		}
		found, _, err := i.Invitations.List(t.Context(), i.owner, i.web, store.Page{})
		mustDo(t, err)
		if len(found) != 1 || found[0].State != users.InvitationUsed || found[0].Note != "for ann" || len(found[0].Users) != 1 || found[0].Users[0].Name != "ann" {
			t.Errorf("the list has %+v", found)
		}
		var log []string
		for _, r := range must(i.Audit.List(t.Context(), boss, store.AuditQuery{}))(t) {
			if strings.Contains(string(r.Details), link) || strings.Contains(r.Subject, link) {
				t.Errorf("the audit log has the link: %+v", r)
			}
			if r.Subject == made.ID {
				log = append(log, r.Action+" by "+r.Actor)
			}
		}
		if got, want := strings.Join(log, ", "), "invitation.accept by "+string(ann.User)+", invitation.manage by "+string(i.owner.User); got != want {
			t.Errorf("the audit log has %s, want %s", got, want)
		}
	})
}

// A link gives only what its inviter may give at the moment of its use.
func TestInvitationChecksInviterAtUse(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx, yes, no := t.Context(), true, false
		i := newInviting(t, db)
		other := must(i.Groups.Create(ctx, boss, "ops", users.GroupChange{}))(t).ID
		link, made := i.invite(t, i.owner, users.NewInvitation{Group: i.web, Role: account.Owner, Uses: 2})
		user := newMember(t, i.Directory, "ann", other, account.Reporter)
		refused := func(why string) {
			t.Helper()
			_, err := i.accept(t, link, "bob")
			_, joinErr := i.Invitations.Join(ctx, user, link)
			_, openErr := i.Invitations.Open(ctx, account.Principal{}, link)
			for _, err := range []error{err, joinErr, openErr} {
				if !errors.Is(err, users.ErrInvitation) {
					t.Errorf("%s: %v", why, err)
				}
			}
			if got := i.state(t, made.ID); got != users.InvitationSuspended {
				t.Errorf("%s, it is %s", why, got)
			}
		}
		for _, role := range []account.Role{account.Maintainer, account.Outsider} {
			mustDo(t, i.Groups.SetRole(ctx, boss, i.web, i.owner.User, role))
			refused("the inviter is " + role.String())
		}
		mustDo(t, i.Groups.SetRole(ctx, boss, i.web, i.owner.User, account.Owner))
		must(i.Users.Change(ctx, boss, i.owner.User, users.UserChange{Disabled: &yes}))(t)
		refused("the inviter is disabled")
		must(i.Users.Change(ctx, boss, i.owner.User, users.UserChange{Disabled: &no}))(t)
		if group := must(i.Invitations.Join(ctx, user, link))(t); group != i.web || as(t, i.Directory, user.User).Groups[i.web] != account.Owner {
			t.Errorf("she joined %s", group)
		}
		// A removed member cannot use the link again, and joining twice uses up nothing.
		must(i.Invitations.Join(ctx, user, link))(t)
		mustDo(t, i.Groups.SetRole(ctx, boss, i.web, user.User, account.Outsider))
		_, err := i.Invitations.Join(ctx, as(t, i.Directory, user.User), link)
		wantError(t, err, users.ErrInvitation)
		mustDo(t, i.Invitations.Revoke(ctx, i.owner, made.ID))
		if got := i.state(t, made.ID); got != users.InvitationRevoked {
			t.Errorf("it is %s", got)
		}
		_, err = i.accept(t, link, "bob")
		wantError(t, err, users.ErrInvitation)
	})
}

// An administrator who is none any more, or is removed, invites nobody.
func TestInvitationOfFormerAdmin(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx, no := t.Context(), false
		i := newInviting(t, db)
		amy := as(t, i.Directory, must(i.Users.Create(ctx, boss, users.NewUser{Name: "amy", Admin: true}))(t).ID)
		link, made := i.invite(t, amy, users.NewInvitation{Uses: 2})
		if ann := as(t, i.Directory, must(i.accept(t, link, "ann"))(t)); ann.Admin || len(ann.Groups) != 0 {
			t.Errorf("she is %+v", ann)
		}
		must(i.Users.Change(ctx, boss, amy.User, users.UserChange{Admin: &no}))(t)
		_, err := i.accept(t, link, "bob")
		wantError(t, err, users.ErrInvitation)
		if got := i.state(t, made.ID); got != users.InvitationSuspended {
			t.Errorf("it is %s", got)
		}
	})
}

func TestInvitationLimits(t *testing.T) {
	db := storetest.Open(t, storetest.SQLite(t))
	i := newInviting(t, db)
	for field, n := range map[string]users.NewInvitation{
		"role": {Role: account.Reporter},
		"uses": {Uses: users.MaxInvitationUses + 1},
		"days": {Days: users.MaxInvitationDays + 1},
		"note": {Note: strings.Repeat("邀", users.MaxInvitationNote+1)},
	} {
		_, _, err := i.Invitations.Create(t.Context(), boss, n)
		wantInvalid(t, err, field)
	}
	note := strings.Repeat("邀", users.MaxInvitationNote)
	for range users.MaxOpenInvitations {
		i.invite(t, i.owner, users.NewInvitation{Group: i.web, Note: note})
	}
	_, made, err := i.Invitations.Create(t.Context(), i.owner, users.NewInvitation{Group: i.web})
	wantError(t, err, store.ErrTooMany)
	if !strings.Contains(err.Error(), "revoke some") {
		t.Errorf("the error names no next step: %v", err)
	}
	_, made = i.invite(t, boss, users.NewInvitation{}) // the limit is that of each group
	mustDo(t, i.Invitations.Revoke(t.Context(), boss, made.ID))
}

// The operator limits who may invite. Existing links follow.
func TestInviters(t *testing.T) {
	db := storetest.Open(t, storetest.SQLite(t))
	i := newInviting(t, db)
	byOwner, _ := i.invite(t, i.owner, users.NewInvitation{Group: i.web, Uses: 5})
	byAdmin, _ := i.invite(t, boss, users.NewInvitation{Group: i.web, Uses: 5})
	for inviters, works := range map[users.Inviters][2]bool{users.Owners: {true, true}, users.Admins: {false, true}, users.Nobody: {false, false}} {
		d := users.New(db, users.Options{Inviters: inviters})
		for n, link := range []string{byOwner, byAdmin} {
			if _, err := d.Invitations.Open(t.Context(), account.Principal{}, link); (err == nil) != works[n] {
				t.Errorf("%s, link %d: %v", inviters, n, err)
			}
			p := []account.Principal{i.owner, boss}[n]
			_, _, err := d.Invitations.Create(t.Context(), p, users.NewInvitation{Group: i.web})
			if (err == nil) != works[n] || err != nil && !errors.Is(err, users.ErrInvitationsOff) || d.Invitations.MayInvite(p, i.web) != works[n] {
				t.Errorf("%s, inviter %d: %v", inviters, n, err)
			}
		}
	}
}

// A new user of the identity provider uses an invitation by signing in. One with an
// account does not join without a confirmation.
func TestInvitationByProvider(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		i := newInviting(t, db)
		link, made := i.invite(t, i.owner, users.NewInvitation{Group: i.web, Role: account.Reporter, Uses: 2})
		must(i.SignIns.SetRules(ctx, boss, users.Rules{Rules: []account.GroupRule{{Claimed: "web-team", Group: i.web, Role: account.Developer}}}))(t)
		signIn := func(subject, path string) (account.UserID, string, error) {
			id := &account.Identity{Issuer: "https://id.example.com", Subject: subject, Name: subject, ReturnTo: path}
			user, err := i.SignIns.ByProvider(ctx, id, false)
			return user, id.ReturnTo, err
		}
		_, _, err := signIn("ann", "/library")
		wantError(t, err, users.ErrNoAccount)
		_, _, err = signIn("ann", users.InvitationPath+link+"x")
		wantError(t, err, users.ErrInvitation)
		ann, back, err := signIn("ann", users.InvitationPath+link)
		mustDo(t, err)
		if p := as(t, i.Directory, ann); p.Groups[i.web] != account.Reporter || back != "/" {
			t.Errorf("she is %+v, and returns to %s", p, back)
		}
		rules := must(i.SignIns.Rules(ctx, boss))(t)
		rules.Rules = nil
		must(i.SignIns.SetRules(ctx, boss, rules))(t)
		other, otherMade := i.invite(t, i.owner, users.NewInvitation{Group: i.web, Role: account.Developer})
		again, back, err := signIn("ann", users.InvitationPath+other)
		mustDo(t, err)
		if again != ann || back != users.InvitationPath+other || i.state(t, otherMade.ID) != users.InvitationOpen || as(t, i.Directory, ann).Groups[i.web] != account.Reporter {
			t.Errorf("the second time, she returns to %s", back)
		}
		mustDo(t, i.Invitations.Revoke(ctx, i.owner, made.ID))
		_, _, err = signIn("bob", users.InvitationPath+link)
		wantError(t, err, users.ErrInvitation)
		if _, err := i.Users.ByName(ctx, boss, "bob"); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("an account without an invitation: %v", err)
		}
	})
}
