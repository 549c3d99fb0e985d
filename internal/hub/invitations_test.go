package hub_test

import (
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/loadout-dev/loadout/internal/encryption"
	"github.com/loadout-dev/loadout/internal/hub"
	"github.com/loadout-dev/loadout/internal/hub/account/oidctest"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/store/storetest"
)

// invite creates an invitation, and returns the path of its operations and its ID.
func (c caller) invite(t testing.TB, body map[string]any) (path, id string) {
	t.Helper()
	r := c.send(t, "POST", "/api/v1/invitations", body).want(t, 201)
	return "/api/v1/invite/" + r.text(t, "link"), r.text(t, "id")
}

func credentials(name string) map[string]string {
	return map[string]string{"name": name, "password": secret}
}

// The owner of a group invites someone without an account and someone with one. The
// link appears in no log, in no list and in no referrer.
func TestInvitations(t *testing.T) {
	n := team(t)
	root := n.signIn(t, "root", secret)
	annID, ann := n.newUser(t, root, "ann")
	_, bob := n.newUser(t, root, "bob")
	group := root.send(t, "POST", "/api/v1/groups", map[string]string{"name": "web", "display": "Web team"}).want(t, 201).text(t, "id")
	root.send(t, "PUT", "/api/v1/groups/"+group+"/members/"+annID, map[string]string{"role": "owner"}).want(t, 204)
	path, id := ann.invite(t, map[string]any{"group": group, "role": "developer", "uses": 2, "note": "for eve"})
	link := strings.TrimPrefix(path, "/api/v1/invite/")

	page := n.anybody().with("Accept", "text/html").send(t, "GET", "/invite/"+link, nil).want(t, 200)
	if page.header.Get("Referrer-Policy") != "no-referrer" || page.header.Get("X-Robots-Tag") != "noindex, nofollow" {
		t.Errorf("the headers of the page are %v", page.header)
	}
	opened := n.anybody().send(t, "GET", path, nil).want(t, 200)
	if opened.header.Get("Cache-Control") != "no-store" || !strings.HasPrefix(opened.body, `{"inviter":"ann","group":{"id":"`+group+`","name":"web","display":"Web team"},"role":"developer"`) {
		t.Errorf("it says %s, with %v", opened.body, opened.header)
	}
	n.anybody().send(t, "POST", path, map[string]string{"name": "eve", "password": "short"}).wantProblem(t, 422, "invalid")
	n.anybody().send(t, "POST", path, credentials("bob")).wantProblem(t, 409, "exists")
	r := n.anybody().send(t, "POST", path, credentials("eve")).want(t, 200)
	eve := caller{node: n, cookie: cookieOf(t, r)}
	if !strings.Contains(r.body, `"groups":[{"group":"`+group+`","role":"developer"}]`) || eve.send(t, "GET", "/api/v1/groups/"+group, nil).want(t, 200).text(t, "role") != "developer" {
		t.Errorf("she is %s", r.body)
	}
	wantEqual(t, bob.send(t, "POST", path+"/join", nil).want(t, 200).body, `{"group":"`+group+`"}`+"\n")
	if got := bob.send(t, "GET", path, nil).want(t, 200).text(t, "member"); got != "developer" {
		t.Errorf("he is now %q", got)
	}
	n.anybody().send(t, "GET", path, nil).wantProblem(t, 404, "bad_invitation")
	n.anybody().send(t, "POST", path, credentials("mallory")).wantProblem(t, 404, "bad_invitation")

	list := ann.send(t, "GET", "/api/v1/invitations?group="+group, nil).want(t, 200)
	for _, want := range []string{`"state":"used"`, `"uses":2,"used":2`, `"name":"eve"`, `"name":"bob"`, `"note":"for eve"`} {
		if !strings.Contains(list.body, want) {
			t.Errorf("%s lacks %s", list.body, want)
		}
	}
	other, otherID := ann.invite(t, map[string]any{"group": group})
	ann.send(t, "DELETE", "/api/v1/invitations/"+otherID, nil).want(t, 204)
	n.anybody().send(t, "GET", other, nil).wantProblem(t, 404, "bad_invitation")
	audit := ann.send(t, "GET", "/api/v1/audit?namespace=group:"+group, nil).want(t, 200).body
	for action, want := range map[string]int{"invitation.manage": 3, "invitation.accept": 2} {
		if got := strings.Count(audit, `"action":"`+action+`"`); got != want {
			t.Errorf("%d records of %s, want %d: %s", got, action, want, audit)
		}
	}
	secretPart := link[11:]
	for name, text := range map[string]string{"log": n.log.String(), "list": list.body, "audit log": audit, "metrics": root.send(t, "GET", "/metrics", nil).want(t, 200).body} {
		if strings.Contains(text, secretPart) {
			t.Errorf("the %s has the link", name)
		}
	}
	if got := must(n.DB().Invitations.Get(t.Context(), id))(t); strings.Contains(string(got.Hash), secretPart) {
		t.Error("the database has the link")
	}
}

// Of concurrent requests to two nodes, one uses an invitation for one user.
func TestInvitationIsUsedOnce(t *testing.T) {
	for name, address := range map[string]func(testing.TB) string{"SQLite": storetest.SQLite, "PostgreSQL": storetest.Postgres} {
		t.Run(name, func(t *testing.T) {
			one, two := pair(t, hub.Options{Database: address(t), Keys: []encryption.Key{encryption.NewKey()}})
			root := one.signIn(t, "root", secret)
			group := root.send(t, "POST", "/api/v1/groups", map[string]string{"name": "web"}).want(t, 201).text(t, "id")
			_, ann := one.newUser(t, root, "ann")
			path, id := root.invite(t, map[string]any{"group": group})
			join := func(n *node) (reply, error) {
				return n.send(caller{node: n, cookie: ann.cookie}, "POST", path+"/join", nil)
			}
			accept := func(name string) func(n *node) (reply, error) {
				return func(n *node) (reply, error) {
					return n.send(n.anybody(), "POST", path, credentials(name))
				}
			}
			requests := []func(n *node) (reply, error){join, accept("bob"), accept("eve"), accept("kim")}
			var done sync.WaitGroup
			got := make([]reply, len(requests))
			for i, request := range requests {
				done.Go(func() {
					var err error
					if got[i], err = request([]*node{one, two}[i%2]); err != nil {
						t.Error(err)
					}
				})
			}
			done.Wait()
			used := 0
			for _, r := range got {
				if r.status == 200 {
					used++
				} else if r.status != 404 || !strings.Contains(r.body, "bad_invitation") {
					t.Errorf("refused with %d %s", r.status, r.body)
				}
			}
			members, _, err := one.DB().Groups.Members(t.Context(), group, store.Page{})
			if err != nil {
				t.Fatal(err)
			}
			if row := must(one.DB().Invitations.Get(t.Context(), id))(t); used != 1 || row.Used != 1 || len(members) != 2 {
				t.Errorf("%d requests succeeded, it counts %d, and the group has %d members", used, row.Used, len(members))
			}
		})
	}
}

// Whoever guesses links is stopped, and others are not.
func TestInvitationGuessLimit(t *testing.T) {
	n := start(t, hub.Options{FirstAdmin: &hub.FirstAdmin{Name: "root", Password: secret}, Accounts: true, Proxies: []string{"127.0.0.1"}})
	root := n.signIn(t, "root", secret)
	path, _ := root.invite(t, map[string]any{})
	guesser := n.anybody().with("X-Forwarded-For", "198.51.100.1")
	guess := strings.Replace(path, "li_", "li_x", 1)[:len(path)]
	limited := false
	for range 100 {
		if r := guesser.send(t, "GET", guess, nil); r.status == 429 {
			limited = true
			break
		} else {
			r.wantProblem(t, 404, "bad_invitation")
		}
	}
	if !limited {
		t.Error("nobody stops a guesser")
	}
	n.anybody().with("X-Forwarded-For", "203.0.113.1").send(t, "GET", path, nil).want(t, 200)
}

func TestInvitationsNeedAccounts(t *testing.T) {
	n := start(t, hub.Options{})
	user := n.anybody()
	user.send(t, "POST", "/api/v1/invitations", map[string]any{}).wantProblem(t, 409, "single")
	user.send(t, "POST", "/api/v1/groups", map[string]string{"name": "web"}).want(t, 201)
	if me := user.send(t, "GET", "/api/v1/me", nil).want(t, 200).body; !strings.Contains(me, `"invite":[]`) {
		t.Errorf("the page offers it: %s", me)
	}
}

// A hub may permit nobody to invite.
func TestInvitationsOff(t *testing.T) {
	n := start(t, hub.Options{FirstAdmin: &hub.FirstAdmin{Name: "root", Password: secret}, Accounts: true, Inviters: "off"})
	root := n.signIn(t, "root", secret)
	root.send(t, "POST", "/api/v1/invitations", map[string]any{}).wantProblem(t, 403, "invitations_disabled")
	if me := root.send(t, "GET", "/api/v1/me", nil).want(t, 200).body; !strings.Contains(me, `"invite":[]`) {
		t.Errorf("the page offers it: %s", me)
	}
}

// A new user of the identity provider joins by an invitation; a refusal is explained on
// the page.
func TestInvitationWithProvider(t *testing.T) {
	p := oidctest.New(t)
	n := start(t, hub.Options{Accounts: true, FirstAdmin: &hub.FirstAdmin{Name: "root", Password: secret},
		Provider: &hub.Provider{Issuer: p.URL, ClientID: p.ClientID, ClientSecret: p.ClientSecret}})
	root := n.signIn(t, "root", secret)
	group := root.send(t, "POST", "/api/v1/groups", map[string]string{"name": "web"}).want(t, 201).text(t, "id")
	path, _ := root.invite(t, map[string]any{"group": group})
	link := strings.TrimPrefix(path, "/api/v1/invite/")
	for _, user := range [][3]string{{"ann", "/", ""}, {"bob", "/invite/" + link, "bad_invitation"}} { // for one user
		subject, path, refused := user[0], user[1], user[2]
		p.SetUser(subject, map[string]any{"preferred_username": subject})
		visit := must(http.NewRequest("GET", n.URL+"/login/oidc?back=/invite/"+link, nil))(t)
		visit.Header.Set("Accept", "text/html")
		res := must(browser(t).Do(visit))(t)
		res.Body.Close()
		if at := res.Request.URL; at.Path != path || at.Query().Get("refused") != refused {
			t.Errorf("%s is at %s", subject, at)
		}
		if strings.Contains(n.log.String(), link[11:]) {
			t.Error("the log has the link")
		}
	}
}
