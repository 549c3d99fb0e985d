package users_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/users"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/store/storetest"
)

func wantDenied(t testing.TB, err error) {
	t.Helper()
	if _, ok := errors.AsType[*account.DeniedError](err); !ok {
		t.Errorf("error is %v, want a denial", err)
	}
}

// wantInvalid checks the name of the invalid field.
func wantInvalid(t testing.TB, err error, field string) {
	t.Helper()
	if invalid, ok := errors.AsType[*users.InvalidError](err); !ok || invalid.Field != field {
		t.Errorf("error is %v, want that %s is invalid", err, field)
	}
}

// newMember creates a user with a role in a group.
func newMember(t testing.TB, p *users.Directory, name string, g account.GroupID, role account.Role) account.Principal {
	t.Helper()
	u := must(p.Users.Create(t.Context(), boss, users.NewUser{Name: name}))(t)
	if role != account.Outsider {
		mustDo(t, p.Groups.SetRole(t.Context(), boss, g, u.ID, role))
	}
	return as(t, p, u.ID)
}

func groupNames(groups []users.Group) string {
	var names []string
	for _, g := range groups {
		names = append(names, fmt.Sprintf("%s:%s", g.Name, g.Role))
	}
	return strings.Join(names, " ")
}

func TestGroupsAreVisibleToMembersAndAdmins(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx, p := t.Context(), core(t, db)
		display, description := "Web", "the web team"
		web := must(p.Groups.Create(ctx, boss, "web", users.GroupChange{Display: &display, Description: &description}))(t)
		must(p.Groups.Create(ctx, boss, "ops", users.GroupChange{}))(t)
		ann := newMember(t, p, "ann", web.ID, account.Reporter)
		bob := newMember(t, p, "bob", web.ID, account.Outsider)

		for _, tt := range []struct {
			by   account.Principal
			want string
		}{{as(t, p, boss.User), "ops:owner web:owner"}, {ann, "web:reporter"}, {bob, ""}} {
			got, next, err := p.Groups.List(ctx, tt.by, store.Page{})
			if err != nil || next != "" || groupNames(got) != tt.want {
				t.Errorf("%s lists %q %q %v, want %q", tt.by.Name, groupNames(got), next, err, tt.want)
			}
		}
		got := must(p.Groups.Get(ctx, ann, web.ID))(t)
		if got.Name != "web" || got.Display != display || got.Description != description || got.Role != account.Reporter || got.RequiredApprovers != 1 {
			t.Errorf("a member sees %+v", got)
		}
		if _, err := p.Groups.Get(ctx, boss, web.ID); err != nil {
			t.Errorf("an administrator: %v", err)
		}
		_, err := p.Groups.Get(ctx, bob, web.ID)
		wantDenied(t, err)
		_, _, err = p.Groups.Members(ctx, bob, web.ID, store.Page{})
		wantDenied(t, err)
		_, err = p.Groups.Get(ctx, boss, "missing")
		wantError(t, err, store.ErrNotFound)
		_, _, err = p.Groups.Members(ctx, boss, "missing", store.Page{})
		wantError(t, err, store.ErrNotFound)
	})
}

func TestGroupValues(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx, p := t.Context(), core(t, db)
		web := must(p.Groups.Create(ctx, boss, "web", users.GroupChange{}))(t)
		text := func(n int) *string { s := strings.Repeat("x", n); return &s }
		number := func(n int64) *int64 { return &n }
		for _, tt := range []struct {
			change users.GroupChange
			field  string // the invalid one
		}{
			{users.GroupChange{Display: text(users.MaxDisplay)}, ""},
			{users.GroupChange{Display: text(users.MaxDisplay + 1)}, "display"},
			{users.GroupChange{Description: text(users.MaxDescription)}, ""},
			{users.GroupChange{Description: text(users.MaxDescription + 1)}, "description"},
			{users.GroupChange{RequiredApprovers: number(0)}, "requiredApprovers"},
			{users.GroupChange{RequiredApprovers: number(store.MaxRequiredApprovers)}, ""},
			{users.GroupChange{RequiredApprovers: number(store.MaxRequiredApprovers + 1)}, "requiredApprovers"},
		} {
			_, err := p.Groups.Change(ctx, boss, web.ID, tt.change)
			_, newErr := p.Groups.Create(ctx, boss, "other", tt.change)
			for _, err := range []error{err, newErr} {
				if tt.field != "" {
					wantInvalid(t, err, tt.field)
				} else if err != nil && !errors.Is(err, store.ErrExists) {
					t.Error(err)
				}
			}
		}
		got := must(p.Groups.Get(ctx, boss, web.ID))(t)
		if len(got.Display) != users.MaxDisplay || len(got.Description) != users.MaxDescription || got.RequiredApprovers != store.MaxRequiredApprovers {
			t.Errorf("changes of other fields are lost: %d %d %d", len(got.Display), len(got.Description), got.RequiredApprovers)
		}
		_, err := p.Groups.Create(ctx, boss, "web", users.GroupChange{})
		wantError(t, err, store.ErrExists)
		_, err = p.Groups.Change(ctx, boss, "missing", users.GroupChange{})
		wantError(t, err, store.ErrNotFound)
		_, err = p.Groups.Change(ctx, newMember(t, p, "ann", web.ID, account.Developer), web.ID, users.GroupChange{Display: text(1)})
		wantDenied(t, err)
	})
}

func TestNamesOfUsersAndGroups(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx, p := t.Context(), core(t, db)
		for _, tt := range []struct {
			name  string
			valid bool
		}{
			{"a", true}, {"0a-b.c_d", true}, {strings.Repeat("a", users.MaxName), true}, {strings.Repeat("a", users.MaxName+1), false},
			{"", false}, {"-a", false}, {".a", false}, {"_a", false}, {"Ann", false}, {"a b", false}, {"ä", false}, {"a/b", false}, {"public", false}, {"local", false}, {"me", false},
		} {
			_, err := p.Users.Create(ctx, boss, users.NewUser{Name: tt.name})
			_, groupErr := p.Groups.Create(ctx, boss, tt.name, users.GroupChange{})
			for _, err := range []error{err, groupErr} {
				if !tt.valid {
					wantInvalid(t, err, "name")
				} else if err != nil {
					t.Errorf("%q: %v", tt.name, err)
				}
			}
		}
	})
}

func TestMembersLeaveAndAreManaged(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx, p := t.Context(), core(t, db)
		web := must(p.Groups.Create(ctx, boss, "web", users.GroupChange{}))(t).ID
		ann := newMember(t, p, "ann", web, account.Maintainer)
		bob := newMember(t, p, "bob", web, account.Reporter)
		eve := newMember(t, p, "eve", web, account.Outsider)

		members, next, err := p.Groups.Members(ctx, bob, web, store.Page{})
		if err != nil || next != "" || len(members) != 3 {
			t.Fatalf("members are %+v %q %v", members, next, err)
		}
		roles := map[string]account.Role{}
		for _, m := range members {
			roles[m.User.Name] = m.Role
			if m.Since.IsZero() || m.User.Full != (m.User.ID == bob.User) {
				t.Errorf("a member sees %+v", m)
			}
		}
		if roles["boss"] != account.Owner || roles["ann"] != account.Maintainer || roles["bob"] != account.Reporter {
			t.Errorf("roles are %v", roles)
		}

		wantDenied(t, p.Groups.SetRole(ctx, bob, web, eve.User, account.Reporter))
		wantDenied(t, p.Groups.SetRole(ctx, eve, web, eve.User, account.Outsider)) // not a member
		wantDenied(t, p.Groups.SetRole(ctx, bob, web, bob.User, account.Maintainer))
		mustDo(t, p.Groups.SetRole(ctx, ann, web, eve.User, account.Developer))
		mustDo(t, p.Groups.SetRole(ctx, ann, web, eve.User, account.Developer)) // no change
		mustDo(t, p.Groups.SetRole(ctx, bob, web, bob.User, account.Outsider))
		if got := as(t, p, bob.User).Groups[web]; got != account.Outsider {
			t.Errorf("who left is %s", got)
		}
		if got := as(t, p, eve.User).Groups[web]; got != account.Developer {
			t.Errorf("who was added is %s", got)
		}
		wantError(t, p.Groups.SetRole(ctx, ann, web, bob.User, account.Outsider), store.ErrNotFound)
		wantDenied(t, p.Groups.Delete(ctx, ann, web))
		mustDo(t, p.Groups.Delete(ctx, boss, web))
		_, err = p.Groups.Get(ctx, boss, web)
		wantError(t, err, store.ErrNotFound)
	})
}

// The approvers of a group may come from a group that its owner can see. In the group
// itself, only its reviewers can approve.
func TestApproverGroup(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx, p := t.Context(), core(t, db)
		web := must(p.Groups.Create(ctx, boss, "web", users.GroupChange{}))(t)
		security := must(p.Groups.Create(ctx, boss, "security", users.GroupChange{}))(t)
		owner := newMember(t, p, "ann", web.ID, account.Owner)
		change := func(group, role string) error {
			_, err := p.Groups.Change(ctx, owner, web.ID, users.GroupChange{ApproverGroup: &group, ApproverRole: &role})
			return err
		}
		wantInvalid(t, change(string(security.ID), "reporter"), "approverGroup") // not a member
		wantInvalid(t, change("none", "reporter"), "approverGroup")
		wantInvalid(t, change("", "developer"), "approverRole")
		wantInvalid(t, change("", "boss"), "approverRole")
		mustDo(t, change("", "owner"))
		mustDo(t, p.Groups.SetRole(ctx, boss, security.ID, owner.User, account.Reporter))
		owner = as(t, p, owner.User)
		mustDo(t, change(string(security.ID), "reporter"))
		got := must(p.Groups.Get(ctx, owner, web.ID))(t)
		if got.ApproverGroup != security.ID || got.ApproverRole != store.Reporter || got.RequiredApprovers != 1 {
			t.Errorf("the group is %+v", got)
		}

		three, display := int64(3), "Web"
		_, err := p.Groups.Change(ctx, owner, web.ID, users.GroupChange{RequiredApprovers: &three})
		wantInvalid(t, err, "approverGroup")               // only the owner and the administrator could approve
		newMember(t, p, "max", web.ID, account.Maintainer) // but not in the other group
		newMember(t, p, "moe", security.ID, account.Owner) // but not a reviewer
		_, err = p.Groups.Change(ctx, owner, web.ID, users.GroupChange{RequiredApprovers: &three})
		wantInvalid(t, err, "approverGroup")
		both := newMember(t, p, "bea", web.ID, account.Maintainer)
		mustDo(t, p.Groups.SetRole(ctx, boss, security.ID, both.User, account.Reporter))
		must(p.Groups.Change(ctx, owner, web.ID, users.GroupChange{RequiredApprovers: &three}))(t)

		wantError(t, p.Groups.Delete(ctx, boss, security.ID), store.ErrReferenced)
		mustDo(t, p.Groups.SetRole(ctx, boss, security.ID, owner.User, account.Outsider))
		owner = as(t, p, owner.User)
		must(p.Groups.Change(ctx, owner, web.ID, users.GroupChange{Display: &display}))(t) // the rule stays
		wantInvalid(t, change(string(security.ID), "reporter"), "approverGroup")
		mustDo(t, change("", "maintainer"))
		mustDo(t, p.Groups.Delete(ctx, boss, security.ID))
	})
}
