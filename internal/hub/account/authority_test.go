package account_test

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/loadout-dev/loadout/internal/hub/account"
)

var update = flag.Bool("update", false, "write the table of authority anew")

const (
	me    account.UserID  = "me"
	other account.UserID  = "other"
	team  account.GroupID = "team"
)

// person has all scopes and a role in the team.
func person(r account.Role) account.Principal {
	p := account.Principal{User: me, Scopes: account.AllScopes}
	if r != account.Outsider {
		p.Groups = map[account.GroupID]account.Role{team: r}
	}
	return p
}

func admin() account.Principal {
	return account.Principal{User: me, Admin: true, Scopes: account.AllScopes}
}

// people lists the users in the table, with the fewest permissions first.
var people = []struct {
	name string
	who  account.Principal
}{
	{"anonymous", account.Principal{Scopes: account.AllScopes}},
	{"anybody", person(account.Outsider)},
	{"reporter", person(account.Reporter)},
	{"developer", person(account.Developer)},
	{"maintainer", person(account.Maintainer)},
	{"owner", person(account.Owner)},
}

var columns = []struct {
	title    string
	resource account.Resource
}{
	{"one's own", account.OwnedBy(me)},
	{"another's", account.OwnedBy(other)},
	{"a group's", account.OwnedByGroup(team, other)},
	{"… made by oneself", account.OwnedByGroup(team, me)},
	{"… hidden", account.Resource{Group: team, Author: other, Hidden: true}},
	{"… hidden, by oneself", account.Resource{Group: team, Author: me, Hidden: true}},
	{"… shared with all", account.Resource{Group: team, Author: other, Shared: true}},
	{"the hub's, shared", account.Resource{Shared: true}},
	{"… hidden", account.Resource{Shared: true, Hidden: true}},
	{"… read-only", account.Resource{Shared: true, ReadOnly: true}},
	{"… its own", account.Resource{}},
}

const about = `# Who may do what

Written by a test, which asks of every action and everybody. A column is what the action is on: a skill, a conversation,
a secret, an account; the hub's own are settings, the audit log and accounts. A cell is who may: the role named in the
group whose it is, and every higher one; *anybody* is whoever signed in; *admin* where admins may as such. Who has not
signed in may do nothing. A token needs one of the scopes besides.

`

// TestPermissionTable prints the permissions as a table for reviewers. It calls Can
// instead of printing the rules.
func TestPermissionTable(t *testing.T) {
	var b strings.Builder
	b.WriteString(about + "| action | scopes |")
	for _, c := range columns {
		fmt.Fprintf(&b, " %s |", c.title)
	}
	fmt.Fprintf(&b, "\n|%s\n", strings.Repeat(" --- |", len(columns)+2))
	for _, a := range account.Actions() {
		fmt.Fprintf(&b, "| %s | %s |", a, strings.Join(scopesOf(a), ", "))
		for _, c := range columns {
			fmt.Fprintf(&b, " %s |", whoMay(t, a, c.resource))
		}
		b.WriteByte('\n')
	}
	path := filepath.Join("testdata", "authority.md")
	if *update {
		if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(b.String(), "\n")); diff != "" {
		t.Errorf("the table is another (-want +got); if it should be, write it with -update\n%s", diff)
	}
}

// whoMay names the user with the fewest permissions who may do it, and the admin.
func whoMay(t *testing.T, a account.Action, r account.Resource) string {
	cell := ""
	for _, p := range people {
		may := account.Can(p.who, a, r)
		if may && cell == "" {
			cell = p.name
		}
		if !may && cell != "" {
			t.Errorf("%s on %+v: %s may, and %s may not", a, r, cell, p.name)
		}
	}
	if account.Can(admin(), a, r) {
		cell = strings.TrimPrefix(cell+", admin", ", ")
	}
	return strings.ReplaceAll(cell, "anybody, admin", "anybody")
}

// scopesOf returns the scopes that alone allow it to a user with all permissions.
func scopesOf(a account.Action) []string {
	var names []string
	for _, name := range account.AllScopes.Names() {
		s, err := account.ParseScopes(name)
		if err != nil {
			panic(err)
		}
		if account.Can(account.Principal{User: me, Admin: true, Scopes: s}, a, account.Resource{}) {
			names = append(names, name)
		}
	}
	return names
}

// W9: the owner, admins and maintainers of the group manage; a reporter uses; a
// developer binds.
func TestW9RolesOfAGroup(t *testing.T) {
	skill := account.OwnedByGroup(team, other)
	for role, want := range map[account.Role][]account.Action{
		account.Outsider:   nil,
		account.Reporter:   {account.SkillRead, account.SkillUse},
		account.Developer:  {account.SkillRead, account.SkillUse, account.SkillBind},
		account.Maintainer: {account.SkillRead, account.SkillUse, account.SkillBind, account.SkillChange, account.SkillDelete},
		account.Owner:      {account.SkillRead, account.SkillUse, account.SkillBind, account.SkillChange, account.SkillDelete},
	} {
		for _, a := range []account.Action{account.SkillRead, account.SkillUse, account.SkillBind, account.SkillChange, account.SkillDelete} {
			if got := account.Can(person(role), a, skill); got != slices.Contains(want, a) {
				t.Errorf("%s as %s: %v", a, role, got)
			}
		}
	}
}

// W20: who uploaded code does not approve it himself.
func TestW20NobodyReviewsTheirOwnCode(t *testing.T) {
	for _, r := range []account.Role{account.Developer, account.Maintainer, account.Owner} {
		if account.Can(person(r), account.SkillReview, account.OwnedByGroup(team, me)) || account.Can(person(r), account.SkillReview, account.OwnedBy(me)) {
			t.Errorf("a %s approves what he uploaded", r)
		}
	}
	if !account.Can(person(account.Maintainer), account.SkillReview, account.OwnedByGroup(team, other)) || !account.Can(account.SinglePrincipal(), account.SkillReview, account.OwnedBy("local")) {
		t.Error("nobody approves anything")
	}
}

// W30: hidden skills are not visible. Unlike in the earlier system, users can also
// download the package of a public skill, because they can use the skill.
func TestW30HiddenAndPublic(t *testing.T) {
	public, hidden := account.Resource{Shared: true}, account.Resource{Shared: true, Hidden: true}
	user := person(account.Outsider)
	if !account.Can(user, account.SkillUse, public) || !account.Can(user, account.SkillDownload, public) || !account.Can(admin(), account.SkillDownload, public) {
		t.Error("of a public skill")
	}
	if account.Can(user, account.SkillRead, hidden) || account.Can(user, account.SkillUse, hidden) || account.Can(user, account.SkillDownload, hidden) || !account.Can(admin(), account.SkillUse, hidden) {
		t.Error("of a hidden skill")
	}
}

func TestCanSetRole(t *testing.T) {
	const none, rep, dev, main, own = account.Outsider, account.Reporter, account.Developer, account.Maintainer, account.Owner
	reader := person(own)
	reader.Scopes = account.ScopeRead
	tests := []struct {
		name     string
		p        account.Principal
		who      account.UserID
		from, to account.Role
		want     bool
	}{
		{"a developer adds nobody", person(dev), other, none, rep, false},
		{"a maintainer adds a developer", person(main), other, none, dev, true},
		{"a maintainer adds a maintainer", person(main), other, none, main, true},
		{"a maintainer makes no owner", person(main), other, main, own, false},
		{"a maintainer removes no owner", person(main), other, own, none, false},
		{"an owner makes one", person(own), other, dev, own, true},
		{"nobody rises by himself", person(main), me, main, own, false},
		{"a reporter leaves", person(rep), me, rep, none, true},
		{"a reporter removes nobody", person(rep), other, rep, none, false},
		{"an admin may all", admin(), other, none, own, true},
		{"an outsider nothing", person(none), me, none, rep, false},
		{"anonymous nothing", account.Principal{Scopes: account.AllScopes}, "", rep, none, false},
		{"a token needs its scope", reader, other, none, rep, false},
		{"no role above", admin(), other, none, own + 1, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := account.CanSetRole(tt.p, team, tt.who, tt.from, tt.to); got != tt.want {
				t.Errorf("%v, want %v", got, tt.want)
			}
		})
	}
}

func TestRefusalReasons(t *testing.T) {
	reader := person(account.Owner)
	reader.Scopes = account.ScopeRead
	tests := []struct {
		name string
		p    account.Principal
		a    account.Action
		r    account.Resource
		want account.DeniedError
	}{
		{"not signed in", account.Principal{}, account.SkillRead, account.OwnedBy(me), account.DeniedError{SignIn: true}},
		{"no scope", reader, account.SkillUpload, account.OwnedByGroup(team, ""), account.DeniedError{Scopes: account.ScopeWrite}},
		{"seen, and not for him", person(account.Reporter), account.SkillDelete, account.OwnedByGroup(team, other), account.DeniedError{}},
		{"another's", person(account.Owner), account.SkillRead, account.OwnedBy(other), account.DeniedError{Hidden: true}},
		{"another group's", person(account.Owner), account.SkillDelete, account.OwnedByGroup("others", other), account.DeniedError{Hidden: true}},
		{"hidden", person(account.Outsider), account.SkillRead, account.Resource{Shared: true, Hidden: true}, account.DeniedError{Hidden: true}},
		{"the hub's", person(account.Owner), account.AuditRead, account.Resource{}, account.DeniedError{}},
		{"an unknown action", admin(), "skill.sell", account.OwnedBy(me), account.DeniedError{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, ok := errors.AsType[*account.DeniedError](account.Check(tt.p, tt.a, tt.r))
			tt.want.Action = tt.a
			if !ok || *got != tt.want {
				t.Errorf("%+v, want %+v", got, tt.want)
			}
		})
	}
	if err := account.Check(admin(), account.SkillRead, account.OwnedBy(other)); err != nil {
		t.Error(err)
	}
}

var (
	users  = []account.UserID{"", me, other, "third"}
	groups = []account.GroupID{"", team, "others"}
	roles  = []account.Role{account.Outsider, account.Reporter, account.Developer, account.Maintainer, account.Owner}
)

func anyPrincipal(t *rapid.T) account.Principal {
	return account.Principal{
		User:   rapid.SampledFrom(users).Draw(t, "user"),
		Admin:  rapid.Bool().Draw(t, "admin"),
		Groups: rapid.MapOf(rapid.SampledFrom(groups), rapid.SampledFrom(roles)).Draw(t, "groups"),
		Scopes: account.Scopes(rapid.Uint8().Draw(t, "scopes")),
	}
}

func anyResource(t *rapid.T) account.Resource {
	return account.Resource{
		Owner: rapid.SampledFrom(users).Draw(t, "owner"), Group: rapid.SampledFrom(groups).Draw(t, "group"), Author: rapid.SampledFrom(users).Draw(t, "author"),
		Shared: rapid.Bool().Draw(t, "shared"), Hidden: rapid.Bool().Draw(t, "hidden"),
	}
}

// A higher role, one more group, more scopes, being an admin: none takes a right away.
func TestHigherRolesKeepPermissions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, r := anyPrincipal(t), anyResource(t)
		a := rapid.SampledFrom(account.Actions()).Draw(t, "action")
		if !account.Can(p, a, r) {
			return
		}
		more := p
		more.Scopes |= account.Scopes(rapid.Uint8().Draw(t, "more scopes"))
		more.Admin = p.Admin || rapid.Bool().Draw(t, "more admin")
		more.Groups = map[account.GroupID]account.Role{}
		for _, g := range groups {
			more.Groups[g] = max(p.Groups[g], rapid.SampledFrom(roles).Draw(t, "more role"))
		}
		if !account.Can(more, a, r) {
			t.Errorf("%+v may %s on %+v, and with more %+v may not", p, a, r, more)
		}
	})
}

// A scope allows nothing that its user could not do without a token, and no scope allows
// nothing.
func TestScopesAddNoPermissions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, r := anyPrincipal(t), anyResource(t)
		a := rapid.SampledFrom(account.Actions()).Draw(t, "action")
		whole, nothing := p, p
		whole.Scopes, nothing.Scopes = account.AllScopes, 0
		if account.Can(p, a, r) && !account.Can(whole, a, r) || account.Can(nothing, a, r) {
			t.Errorf("%+v %s %+v", p, a, r)
		}
		limit := account.Scopes(rapid.Uint8().Draw(t, "limit"))
		if account.Can(p.LimitedTo(limit), a, r) && !account.Can(p, a, r) {
			t.Errorf("limited to %s, %+v may %s", limit, p, a)
		}
	})
}

func TestOutsidersReadNothingPrivate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, r := anyPrincipal(t), anyResource(t)
		a := rapid.SampledFrom(append(account.Actions(), "", "skill.sell")).Draw(t, "action")
		p.Admin = p.Admin && p.User == "" // owned by nobody
		private := !r.Shared && (r.Owner != p.User || r.Owner == "")
		if delete(p.Groups, r.Group); (private || p.User == "") && account.Can(p, a, r) {
			t.Errorf("%+v may %s on %+v", p, a, r)
		}
	})
}

func TestConversationsAndSecretsBelongToTheirOwners(t *testing.T) {
	for _, a := range []account.Action{account.SessionRead, account.SessionWrite, account.ApprovalAnswer, account.SecretList, account.SecretWrite, account.SecretGrant, account.GrantWrite, account.TokenCreate, account.KindUse} {
		if account.Can(admin(), a, account.OwnedBy(other)) {
			t.Errorf("an admin may %s for another", a)
		}
		if !account.Can(person(account.Outsider), a, account.OwnedBy(me)) {
			t.Errorf("nobody may %s", a)
		}
	}
}

func TestRoleAndScopeNames(t *testing.T) {
	for _, r := range roles[1:] {
		if got, err := account.ParseRole(r.String()); got != r || err != nil {
			t.Errorf("%s: %s, %v", r, got, err)
		}
	}
	for _, bad := range []string{"", "outsider", "Owner", "admin", "no role"} {
		if _, err := account.ParseRole(bad); err == nil {
			t.Errorf("%q is a role", bad)
		}
	}
	if s := account.Role(9).String(); s != "no role" {
		t.Error(s)
	}
	if s, err := account.ParseScopes("read, mcp run"); err != nil || s != account.ScopeRead|account.ScopeMCP|account.ScopeRun || s.String() != "read run mcp" {
		t.Errorf("%s, %v", s, err)
	}
	for _, bad := range []string{"", " ", "all", "read everything"} {
		if s, err := account.ParseScopes(bad); err == nil || s != 0 {
			t.Errorf("%q is %s", bad, s)
		}
	}
	if !account.ScopeRead.IsSubsetOf(account.AllScopes) || account.AllScopes.IsSubsetOf(account.ScopeRead) {
		t.Error("within")
	}
}

func TestPrincipalInContext(t *testing.T) {
	if p := account.FromContext(t.Context()); !p.Anonymous() {
		t.Errorf("nobody is %+v", p)
	}
	if p := account.FromContext(account.NewContext(t.Context(), admin())); p.User != me || !p.Admin {
		t.Errorf("%+v", p)
	}
}

func ExampleCan() {
	p := account.Principal{User: "ann", Groups: map[account.GroupID]account.Role{"docs": account.Reporter}, Scopes: account.ScopeRead}
	skill := account.OwnedByGroup("docs", "bob")
	fmt.Println(account.Can(p, account.SkillRead, skill), account.Can(p, account.SkillDelete, skill))
	fmt.Println(account.Check(p, account.SkillUse, skill))
	// Output:
	// true false
	// skill.use: the token needs scope chat or mcp
}
