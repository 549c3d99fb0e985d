package hub_test

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/loadout-dev/loadout/internal/hub"
	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/agents"
	"github.com/loadout-dev/loadout/internal/hub/users"
	"github.com/loadout-dev/loadout/internal/llm/demo"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/llm"
)

// authority lists the statuses of every operation by acting user, for the group in
// question, another user, and the user's own items.
//
// The columns are: not signed in, outside of the group, the four roles, and an admin
// outside of the group. The last column is for tokens of an admin who owns the group:
// the status for tokens with one of the scopes; others get 403.
var authority = slices.Concat(authorityOfPeople, authorityOfSkills, authorityOfVersions, authorityOfImports, authorityOfKinds, authorityOfSessions, authorityOfMCP)

var authorityOfPeople = []row{
	// operation, on what                    nobody out rep dev mai own adm
	{"get-ways-to-sign-in", "", nil, nil, "200 200 200 200 200 200 200", "200 any"},
	{"sign-in", "", nil, theirPassword, "200 200 200 200 200 200 200", "200 any"},
	{"make-first-admin", "with a link of another", nil, anotherLink, "403 403 403 403 403 403 403", "403 any"},
	{"sign-out", "", nil, nil, "204 204 204 204 204 204 204", "204 any"},
	{"get-me", "", nil, nil, "401 200 200 200 200 200 200", "200 read write run chat review admin"},
	{"get-about", "", nil, nil, "401 200 200 200 200 200 200", "200 read write run chat review admin"},

	{"list-users", "", nil, nil, "401 200 200 200 200 200 200", "200 read"},
	{"make-user", "", nil, aUser, "401 403 403 403 403 403 201", "201 admin"},
	{"get-user", "", nil, nil, "401 404 404 404 404 404 200", "200 read"},
	{"get-user", "oneself", mine, nil, "401 200 200 200 200 200 200", "200 read"},
	{"change-user", "", nil, aDisplay, "401 404 404 404 404 404 200", "200 admin"},
	{"change-user", "oneself", mine, aDisplay, "401 200 200 200 200 200 200", "200 admin"},
	{"change-user", "oneself, to be an admin", mine, anAdmin, "401 403 403 403 403 403 200", "200 admin"},
	{"delete-user", "", nil, nil, "401 404 404 404 404 404 204", "204 admin"},
	{"delete-user", "oneself, but the last owner", mine, nil, "401 403 403 403 403 403 204", "204 admin"},
	{"set-password", "", nil, aPassword, "401 404 404 404 404 404 204", "204 admin"},
	{"set-password", "oneself", mine, aPassword, "401 204 204 204 204 204 204", "204 admin"},
	{"list-sign-ins", "", nil, nil, "401 404 404 404 404 404 200", "200 read"},
	{"list-sign-ins", "oneself", mine, nil, "401 200 200 200 200 200 200", "200 read"},
	{"end-sign-ins", "", nil, nil, "401 404 404 404 404 404 204", "204 admin"},
	{"end-sign-ins", "oneself", mine, nil, "401 204 204 204 204 204 204", "204 admin"},

	{"list-groups", "", nil, nil, "401 200 200 200 200 200 200", "200 read"},
	{"make-group", "", nil, aGroup, "401 403 403 403 403 403 201", "201 admin"},
	{"get-group", "", nil, nil, "401 404 200 200 200 200 200", "200 read"},
	{"change-group", "", nil, aDisplay, "401 404 403 403 403 200 200", "200 admin"},
	{"delete-group", "", nil, nil, "401 404 403 403 403 204 204", "204 admin"},
	{"list-members", "", nil, nil, "401 404 200 200 200 200 200", "200 read"},
	{"set-member", "a reporter", nil, asReporter, "401 404 403 403 204 204 204", "204 admin"},
	{"set-member", "an owner", nil, asOwner, "401 404 403 403 403 204 204", "204 admin"},
	{"remove-member", "a reporter", theReporter, nil, "401 404 403 403 204 204 204", "204 admin"},
	{"remove-member", "an owner, the last for the admin", theOwner, nil, "401 404 403 403 403 204 409", "204 admin"},
	{"remove-member", "oneself", mine, nil, "401 404 204 204 204 204 404", "204 admin"},

	{"list-invitations", "of the group", toThatGroup, nil, "401 404 403 403 403 200 200", "200 admin"},
	{"list-invitations", "of the hub", nil, nil, "401 403 403 403 403 403 200", "200 admin"},
	{"create-invitation", "to the group", nil, toGroup, "401 404 403 403 403 201 201", "201 admin"},
	{"create-invitation", "to the hub", nil, toHub, "401 403 403 403 403 403 201", "201 admin"},
	{"revoke-invitation", "to the group", anInvitation, nil, "401 404 403 403 403 204 204", "204 admin"},
	{"revoke-invitation", "to the hub", aHubInvitation, nil, "401 404 404 404 404 404 204", "204 admin"},
	{"get-invitation", "", anInvitation, nil, "200 200 200 200 200 200 200", "200 any"},
	{"accept-invitation", "", anInvitation, newCredentials, "200 200 200 200 200 200 200", "200 any"},
	{"join-group", "", anInvitation, nil, "401 200 200 200 200 200 200", "200 admin"},

	{"list-tokens", "", theirs, nil, "401 404 404 404 404 404 200", "200 read"},
	{"list-tokens", "of oneself", nil, nil, "401 200 200 200 200 200 200", "200 read"},
	{"make-token", "", nil, aToken, "401 201 201 201 201 201 201", "201 admin"},
	{"make-token", "with more than one has", nil, aReadToken, "401 201 201 201 201 201 201", "403 any"},
	{"end-token", "", theirs, nil, "401 404 404 404 404 404 204", "204 admin"},

	{"list-audit", "of the hub, or of oneself", nil, nil, "401 200 200 200 200 200 200", "200 read"},
	{"list-audit", "of the group", ofTheGroup, nil, "401 404 403 403 403 200 200", "200 read"},
	{"list-audit", "of a user", ofTheUser, nil, "401 404 404 404 404 404 200", "200 read"},
	{"list-audit", "of oneself", byMyself, nil, "401 200 200 200 200 200 200", "200 read"},

	{"get-sign-in-rules", "", nil, nil, "401 403 403 403 403 403 200", "200 read"},
	{"set-sign-in-rules", "", nil, rules, "401 403 403 403 403 403 200", "200 admin"},
	{"get-audit-retention", "", nil, nil, "401 403 403 403 403 403 200", "200 read"},
	{"set-audit-retention", "", nil, retention, "401 403 403 403 403 403 200", "200 admin"},

	{"get-quotas", "", nil, nil, "401 403 403 403 403 403 200", "200 read"},
	{"set-quotas", "", nil, quotas, "401 403 403 403 403 403 200", "200 admin"},
	{"get-storage", "of oneself", nil, nil, "401 200 200 200 200 200 200", "200 read"},
	{"get-storage", "of the group", ofTheGroup, nil, "401 404 200 200 200 200 200", "200 read"},
	{"get-storage", "of a user", ofTheUser, nil, "401 404 404 404 404 404 200", "200 read"},

	{"GET /metrics", "", nil, nil, "401 403 403 403 403 403 200", "200 read admin"},
	{"GET /healthz", "", nil, nil, "200 200 200 200 200 200 200", "200 any"},
	{"GET /readyz", "", nil, nil, "200 200 200 200 200 200 200", "200 any"},
	{"GET /openapi.json", "", nil, nil, "200 200 200 200 200 200 200", "200 any"},
	{"GET /", "", nil, nil, "200 200 200 200 200 200 200", "200 any"},
	{"GET /api/v1/nowhere", "", nil, nil, "404 404 404 404 404 404 404", "404 any"},
}

type row struct {
	op, on string
	params func(s *scene) map[string]string // values of path and query in addition to those of the scene
	body   func(s *scene) any
	roles  string
	token  string
}

func mine(*scene) map[string]string { return map[string]string{"user": "me"} }
func theirs(s *scene) map[string]string {
	return map[string]string{"?user": s.victim}
}
func theReporter(s *scene) map[string]string { return map[string]string{"user": s.reporter} }
func theOwner(s *scene) map[string]string    { return map[string]string{"user": s.owner} }
func ofTheGroup(s *scene) map[string]string {
	return map[string]string{"?namespace": "group:" + s.group}
}
func ofTheUser(s *scene) map[string]string {
	return map[string]string{"?namespace": "user:" + s.victim}
}
func byMyself(*scene) map[string]string { return map[string]string{"?actor": "me"} }

func theirPassword(s *scene) any {
	return map[string]string{"name": s.victimName, "password": secret}
}
func anotherLink(*scene) any {
	return map[string]string{"link": "x", "name": "eve", "password": secret}
}
func aUser(s *scene) any    { return map[string]string{"name": s.name("u")} }
func aDisplay(*scene) any   { return map[string]string{"display": "Someone"} }
func anAdmin(*scene) any    { return map[string]bool{"admin": true} }
func aPassword(*scene) any  { return map[string]string{"password": "another long one"} }
func aGroup(s *scene) any   { return map[string]string{"name": s.name("g")} }
func asReporter(*scene) any { return map[string]string{"role": "reporter"} }
func asOwner(*scene) any    { return map[string]string{"role": "owner"} }
func aToken(*scene) any     { return map[string]any{"name": "ci", "scopes": []string{"admin"}} }
func aReadToken(*scene) any { return map[string]any{"name": "ci", "scopes": []string{"read", "chat"}} }
func rules(s *scene) any {
	return map[string]any{"rules": []any{}, "generation": s.generation("sign_in")}
}
func retention(s *scene) any {
	return map[string]any{"days": 30, "generation": s.generation("audit")}
}

func toThatGroup(s *scene) map[string]string { return map[string]string{"?group": s.group} }
func toGroup(s *scene) any                   { return map[string]string{"group": s.group, "role": "developer"} }
func toHub(*scene) any                       { return map[string]int{"uses": 2} }
func newCredentials(s *scene) any {
	return map[string]string{"name": s.name("new"), "password": secret}
}

func anInvitation(s *scene) map[string]string { return s.invitation(s.owner, s.group) }
func aHubInvitation(s *scene) map[string]string {
	return s.invitation(s.user("boss", true), "")
}

// invitation creates an invitation of a user.
func (s *scene) invitation(by, group string) map[string]string {
	s.t.Helper()
	d := users.New(s.node.DB(), users.Options{})
	p := must(d.SignIns.Principal(s.t.Context(), account.UserID(by)))(s.t)
	link, made, err := d.Invitations.Create(s.t.Context(), p, users.NewInvitation{Group: account.GroupID(group)})
	if err != nil {
		s.t.Fatal(err)
	}
	return map[string]string{"invitation": made.ID, "link": link}
}

func quotas(s *scene) any {
	none := map[string]any{"bytes": 0, "skills": 0, "sessions": 0}
	return map[string]any{"user": none, "group": none, "generation": s.generation("quotas")}
}

// scene is a group and its users for one cell of the table.
type scene struct {
	t      *testing.T
	node   *node
	number int

	group, reporter, owner      string
	victim, victimName, tokenID string
}

func (s *scene) name(prefix string) string { return prefix + strconv.Itoa(s.number) }

func (s *scene) generation(name string) int64 {
	row, err := s.node.DB().Settings.Get(s.t.Context(), "hub", name)
	if err != nil {
		return 0
	}
	return row.Generation
}

func (s *scene) user(name string, admin bool) string {
	return must(s.node.DB().Users.Create(s.t.Context(), store.User{Name: s.name(name), Admin: admin}))(s.t).ID
}

func (s *scene) member(user string, role store.Role) {
	if err := s.node.DB().Groups.SetMember(s.t.Context(), store.Member{GroupID: s.group, UserID: user, Role: role}); err != nil {
		s.t.Fatal(err)
	}
}

func (s *scene) token(user string, scopes account.Scopes) (text, id string) {
	text, token, err := account.NewTokens(users.NewTokenStore(s.node.DB())).Create(s.t.Context(), account.Principal{User: account.UserID(user), Scopes: account.AllScopes}, "test", scopes, time.Hour)
	if err != nil {
		s.t.Fatal(err)
	}
	return text, token.ID
}

// stage creates a scene for a user, and returns how the user sends requests.
func stage(t *testing.T, n *node, number int, role string, scopes account.Scopes) (*scene, caller) {
	s := &scene{t: t, node: n, number: number}
	s.group = must(n.DB().Groups.Create(t.Context(), store.Group{Name: s.name("team")}))(t).ID
	s.reporter, s.owner = s.user("rep", false), s.user("own", false)
	s.member(s.reporter, store.Reporter)
	s.member(s.owner, store.Owner)
	s.victimName = s.name("victim")
	s.victim = s.user("victim", false)
	passwords := account.NewPasswords(cheap, 1)
	hash := must(passwords.Hash(t.Context(), account.UserClient("victim"), s.victimName, secret))(t)
	if err := n.DB().Users.SetPassword(t.Context(), s.victim, hash); err != nil {
		t.Fatal(err)
	}
	_, s.tokenID = s.token(s.victim, account.AllScopes)
	everywhere := n.anybody().with("X-Forwarded-For", fmt.Sprintf("198.51.%d.%d", number/250, number%250)) // as each network has its limits
	if role == "anonymous" {
		return s, everywhere
	}
	actor := s.user("actor", role == "admin" || role == "admin and owner")
	switch role {
	case "outsider", "admin":
	case "admin and owner":
		s.member(actor, store.Owner)
	default:
		s.member(actor, store.Role(role))
	}
	text, _ := s.token(actor, scopes)
	everywhere.token = text
	return s, everywhere
}

// ask sends the request of a row.
func (r row) ask(s *scene, c caller, paths map[string]string) reply {
	method, path, _ := strings.Cut(r.op, " ")
	if path == "" {
		method, path, _ = strings.Cut(paths[r.op], " ")
	}
	params := map[string]string{"user": s.victim, "group": s.group, "token": s.tokenID}
	if r.params != nil {
		maps.Copy(params, r.params(s))
	}
	query := ""
	for name, value := range params {
		path = strings.ReplaceAll(path, "{"+name+"}", value)
		if key, ok := strings.CutPrefix(name, "?"); ok {
			query = "?" + key + "=" + value
		}
	}
	var body any
	if r.body != nil {
		body = r.body(s)
	}
	return c.send(s.t, method, path+query, body)
}

var roles = []string{"anonymous", "outsider", "reporter", "developer", "maintainer", "owner", "admin"}

func TestPermissionsOfEveryOperation(t *testing.T) {
	answers := func(*agents.ModelChoice, string) (llm.Model, error) { return demo.New(nil), nil }
	n := start(t, hub.Options{FirstAdmin: &hub.FirstAdmin{Name: "root", Password: secret}, Accounts: true, Proxies: []string{"127.0.0.1"}, Model: answers, Sharing: hub.SharingLinks})
	doc := readDocument(t, n)
	paths := doc.operations()
	for id := range paths {
		if !slices.ContainsFunc(authority, func(r row) bool { return r.op == id }) {
			t.Errorf("who may do %s is not in the table", id)
		}
	}
	number := 0
	for _, r := range authority {
		if _, ok := paths[r.op]; !ok && !strings.Contains(r.op, " /") {
			t.Errorf("no operation %s", r.op)
			continue
		}
		want := strings.Fields(r.roles)
		for i, role := range roles {
			number++
			s, c := stage(t, n, number, role, account.AllScopes)
			got := r.ask(s, c, paths)
			if itoa(got.status) != want[i] {
				t.Errorf("%s (%s) as %s: %d, want %s", r.op, r.on, role, got.status, want[i])
			}
			doc.conforms(t, r.op, got)
		}
		allowed := strings.Fields(r.token)
		for _, scope := range account.AllScopes.Names() {
			number++
			s, c := stage(t, n, number, "admin and owner", must(account.ParseScopes(scope))(t))
			want := "403"
			if slices.Contains(allowed[1:], scope) || allowed[1] == "any" {
				want = allowed[0]
			}
			got := r.ask(s, c, paths)
			if itoa(got.status) != want {
				t.Errorf("%s (%s) with a token for %s: %d, want %s", r.op, r.on, scope, got.status, want)
			}
			doc.conforms(t, r.op, got)
		}
	}
	t.Logf("%d requests", number)
}

// operations are the method and the path of each by its id.
func (d *document) operations() map[string]string {
	out := map[string]string{}
	for path, item := range d.Paths {
		for method, op := range item {
			out[op.OperationID] = strings.ToUpper(method) + " " + path
		}
	}
	return out
}

func itoa(n int) string { return strconv.Itoa(n) }

func TestHiddenAndMissingLookTheSame(t *testing.T) {
	n := team(t)
	root := n.signIn(t, "root", secret)
	victim, _ := n.newUser(t, root, "victim")
	_, eve := n.newUser(t, root, "eve")
	group := root.send(t, "POST", "/api/v1/groups", map[string]string{"name": "secret-group"}).want(t, 201).text(t, "id")
	for _, pair := range [][2]string{
		{"/api/v1/users/" + victim, "/api/v1/users/nobody"},
		{"/api/v1/groups/" + group, "/api/v1/groups/nothing"},
		{"/api/v1/groups/" + group + "/members", "/api/v1/groups/nothing/members"},
		{"/api/v1/tokens?user=" + victim, "/api/v1/tokens?user=nobody"},
		{"/api/v1/audit?namespace=group:" + group, "/api/v1/audit?namespace=group:nothing"},
	} {
		var bodies []string
		for _, path := range pair {
			r := eve.send(t, http.MethodGet, path, nil).want(t, 404)
			bodies = append(bodies, strings.ReplaceAll(r.body, r.header.Get("X-Request-Id"), "ID"))
		}
		if bodies[0] != bodies[1] {
			t.Errorf("%s returned %s, and what is missing %s", pair[0], bodies[0], bodies[1])
		}
	}
}
