package hub_test

import (
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/loadout-dev/loadout/internal/encryption"
	"github.com/loadout-dev/loadout/internal/hub"
	"github.com/loadout-dev/loadout/internal/hub/account/oidctest"
	"github.com/loadout-dev/loadout/internal/store/storetest"
)

func TestSignInAndOut(t *testing.T) {
	n := team(t)
	r := n.anybody().send(t, "POST", "/api/v1/login", map[string]string{"name": "Root", "password": secret}).want(t, 200) // names are folded
	cookie := cookieOf(t, r)
	if !cookie.HttpOnly || cookie.SameSite != http.SameSiteLaxMode || cookie.Path != "/" {
		t.Errorf("the cookie is %v", cookie)
	}
	root := caller{node: n, cookie: cookie}
	var me struct {
		User struct {
			Name    string
			Account struct{ Admin bool }
		}
		Scopes []string
	}
	root.send(t, "GET", "/api/v1/me", nil).want(t, 200).into(t, &me)
	if me.User.Name != "root" || !me.User.Account.Admin || len(me.Scopes) != 7 {
		t.Errorf("he is %+v", me)
	}
	gone := cookieOf(t, root.send(t, "POST", "/api/v1/logout", nil).want(t, 204))
	if gone.MaxAge >= 0 || gone.Value != "" {
		t.Errorf("the browser keeps %v", gone)
	}
	root.send(t, "GET", "/api/v1/me", nil).wantProblem(t, 401, "sign_in")
	root.send(t, "POST", "/api/v1/logout", nil).want(t, 204)
}

func TestSigningInAgainEndsPreviousSignIn(t *testing.T) {
	n := team(t)
	root := n.signIn(t, "root", secret)
	next := root
	next.cookie = cookieOf(t, root.send(t, "POST", "/api/v1/login", map[string]string{"name": "root", "password": secret}).want(t, 200))
	root.send(t, "GET", "/api/v1/me", nil).want(t, 401)
	next.send(t, "GET", "/api/v1/me", nil).want(t, 200)
}

func TestSignInRefused(t *testing.T) {
	n := team(t)
	root := n.signIn(t, "root", secret)
	bob, _ := n.newUser(t, root, "bob")
	try := func(name, password string) reply {
		return n.anybody().send(t, "POST", "/api/v1/login", map[string]string{"name": name, "password": password})
	}
	try("bob", "not the password").wantProblem(t, 401, "wrong_password")
	try("nobody", secret).wantProblem(t, 401, "wrong_password")
	try("bo\x00b", secret).wantProblem(t, 401, "wrong_password")
	try("", secret).wantProblem(t, 422, "invalid")
	root.send(t, "PATCH", "/api/v1/users/"+bob, map[string]bool{"disabled": true}).want(t, 200)
	try("bob", "not the password").wantProblem(t, 401, "wrong_password")
	try("bob", secret).wantProblem(t, 403, "disabled")

	audit := root.send(t, "GET", "/api/v1/audit?action=sign-in&namespace=user:"+bob, nil).want(t, 200)
	if got := strings.Count(audit.body, `"decision":"denied"`); got != 3 {
		t.Errorf("%d refusals are recorded: %s", got, audit.body)
	}
}

// Whoever guesses is stopped, by the name that he tries and by where he comes from,
// without stopping others.
func TestSignInAttemptLimit(t *testing.T) {
	n := start(t, hub.Options{FirstAdmin: &hub.FirstAdmin{Name: "root", Password: secret}, Accounts: true, Proxies: []string{"127.0.0.1"}})
	guess := func(from, name string) reply {
		return n.anybody().with("X-Forwarded-For", from).send(t, "POST", "/api/v1/login", map[string]string{"name": name, "password": "a guess"})
	}
	limited := func(from string, name func(i int) string) bool {
		for i := range 100 {
			if r := guess(from, name(i)); r.status == 429 {
				r.wantProblem(t, 429, "too_often")
				if r.header.Get("Retry-After") == "" {
					t.Error("it is missing when to try again")
				}
				return true
			}
		}
		return false
	}
	if !limited("198.51.100.7", func(int) string { return "root" }) {
		t.Error("one name is guessed on and on")
	}
	if !limited("198.51.100.8", itoa) {
		t.Error("one network guesses on and on")
	}
	guess("203.0.113.9", "another").wantProblem(t, 401, "wrong_password")
}

// A stranger cannot lock a user out, neither from one network nor from many.
func TestStrangerDoesNotLockUserOut(t *testing.T) {
	for name, address := range map[string]func(testing.TB) string{"SQLite": storetest.SQLite, "PostgreSQL": storetest.Postgres} {
		t.Run(name, func(t *testing.T) {
			o := hub.Options{FirstAdmin: &hub.FirstAdmin{Name: "root", Password: secret}, Accounts: true, Proxies: []string{"127.0.0.1"}, Database: address(t), Keys: []encryption.Key{encryption.NewKey()}}
			n := start(t, o)
			try := func(from, name, password string) int {
				return n.anybody().with("X-Forwarded-For", from).send(t, "POST", "/api/v1/login", map[string]string{"name": name, "password": password}).status
			}
			const home = "198.51.100.7"
			if got := try(home, "root", secret); got != 200 {
				t.Fatalf("status %d", got)
			}
			for try("127.0.0.9", "root", "a guess") != 429 {
			}
			for range 31 {
				if got := try(home, "Root", secret); got != 200 {
					t.Fatalf("after a stranger's guesses, the owner gets %d", got)
				}
			}
			guessed := 0
			for i := range 300 {
				if try(fmt.Sprintf("100.64.%d.%d", i/250, i%250), "root", "a guess") != 429 {
					guessed++
				}
			}
			if guessed > 100 {
				t.Errorf("%d of 300 distributed guesses were checked", guessed)
			}
			if got := try("203.0.113.5", "root", secret); got != 200 {
				t.Errorf("from a new network, the owner gets %d", got)
			}
			for range 3 {
				if got := try(home, "root", "a slip"); got != 401 {
					t.Errorf("from a known network, a wrong password gets %d", got)
				}
			}
			if got := try(home, "root", secret); got != 200 {
				t.Errorf("from a known network, the owner gets %d", got)
			}
			if known, err := n.People().SignIns.KnowsNetwork(t.Context(), "root", netip.MustParsePrefix("203.0.113.5/32")); !known || err != nil {
				t.Errorf("the network of a sign-in: %v, %v", known, err)
			}
			root := n.signIn(t, "root", secret)
			bob, _ := n.newUser(t, root, "bob")
			root.send(t, "DELETE", "/api/v1/users/"+bob, nil).want(t, 204)
		})
	}
}

// While strangers fill the queue of sign-ins of an account under attack, the owner gets
// in from a known network, and a refusal does not use up the attempt from a new one.
func TestFloodOfSignInsDoesNotLockUserOut(t *testing.T) {
	n := start(t, hub.Options{FirstAdmin: &hub.FirstAdmin{Name: "root", Password: secret}, Accounts: true, Proxies: []string{"127.0.0.1"}})
	try := func(from, name, password string) reply {
		r, err := n.send(n.anybody().with("X-Forwarded-For", from), "POST", "/api/v1/login", map[string]string{"name": name, "password": password})
		if err != nil {
			t.Error(err)
		}
		return r
	}
	const home, away = "198.51.100.7", "203.0.113.5"
	try(home, "root", secret).want(t, 200)
	for i := range 100 {
		try(fmt.Sprintf("100.%d.0.1", i), "root", "a guess")
	}
	release := must(n.HoldPasswords(t.Context()))(t)
	var all sync.WaitGroup
	const flood = 60
	busy := make(chan reply, flood)
	for i := range flood {
		all.Go(func() {
			if r := try(fmt.Sprintf("10.%d.0.1", i), itoa(i), "a guess"); r.status != 401 {
				busy <- r
			}
		})
	}
	eventually(t, func() bool { return n.WaitingSignIns()+len(busy) == flood })
	waiting := n.WaitingSignIns()
	for range 3 {
		r := try(away, "root", secret)
		r.wantProblem(t, 503, "busy")
		if r.header.Get("Retry-After") == "" {
			t.Error("a busy hub does not say when to try again")
		}
	}
	all.Go(func() { try(home, "root", secret).want(t, 200) })
	eventually(t, func() bool { return n.WaitingSignIns() > waiting })
	release()
	all.Wait()
	try(away, "root", secret).want(t, 200)
}

// A change of the password gives the browser another cookie. Streams and sockets of the
// earlier sign-ins end soon, and a token's continue.
func TestPasswordChangeEndsConnections(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, o hub.Options) {
		o.FirstAdmin, o.Accounts = &hub.FirstAdmin{Name: "root", Password: secret}, true
		n := start(t, o)
		talker(t, n)
		root := n.signIn(t, "root", secret)
		_, here := n.newUser(t, root, "bob")
		there := n.signIn(t, "bob", secret)
		session := here.begin(t)
		var sockets []*wire
		var streams []*stream
		for _, c := range []caller{here, there} {
			sockets, streams = append(sockets, c.socket(t)), append(streams, c.open(t, session+"/events?after=1000"))
		}
		token := caller{node: n, token: here.send(t, "POST", "/api/v1/tokens", map[string]any{"name": "ci", "scopes": []string{"read"}}).want(t, 201).text(t, "token")}
		stays := token.socket(t)
		old := here.cookie.Value
		here.cookie = cookieOf(t, here.send(t, "PUT", "/api/v1/users/me/password", map[string]string{"password": "quite another one", "current": secret}).want(t, 204))
		if here.cookie.Value == old {
			t.Error("the cookie is the same")
		}
		for i := range sockets {
			if m := sockets[i].until(ofType("error")); m.Code != "sign_in" {
				t.Errorf("the socket got %+v", m)
			}
			if e, ok := streams[i].next(); !ok || e.name != "problem" || !strings.Contains(e.data, "sign_in") {
				t.Errorf("the stream got %+v", e)
			}
		}
		here.send(t, "GET", "/api/v1/me", nil).want(t, 200)
		here.socket(t).answered(map[string]any{"type": "attach", "session": id(session)})
		if m := stays.answered(map[string]any{"type": "attach", "session": id(session)}); m.Type != "ok" {
			t.Errorf("the socket of a token got %+v", m)
		}
	})
}

func TestSignInsOfUnknownUser(t *testing.T) {
	n := team(t)
	root := n.signIn(t, "root", secret)
	root.send(t, "GET", "/api/v1/users/nobody/sign-ins", nil).wantProblem(t, 404, "not_found")
	root.send(t, "DELETE", "/api/v1/users/nobody/sign-ins", nil).wantProblem(t, 404, "not_found")
}

func TestDisabledUserIsSignedOutImmediately(t *testing.T) {
	n := team(t)
	root := n.signIn(t, "root", secret)
	id, bob := n.newUser(t, root, "bob")
	program := caller{node: n, token: bob.send(t, "POST", "/api/v1/tokens", map[string]any{"name": "ci", "scopes": []string{"read"}}).want(t, 201).text(t, "token")}
	program.send(t, "GET", "/api/v1/me", nil).want(t, 200)
	root.send(t, "PATCH", "/api/v1/users/"+id, map[string]bool{"disabled": true}).want(t, 200)
	bob.send(t, "GET", "/api/v1/me", nil).wantProblem(t, 401, "sign_in")
	program.send(t, "GET", "/api/v1/me", nil).wantProblem(t, 401, "bad_token")
}

func TestPasswordChangeEndsOtherSignIns(t *testing.T) {
	n := team(t)
	root := n.signIn(t, "root", secret)
	_, here := n.newUser(t, root, "bob")
	there := n.signIn(t, "bob", secret)
	const next = "quite another one"
	here.send(t, "PUT", "/api/v1/users/me/password", map[string]string{"password": next}).wantProblem(t, 401, "wrong_password")
	here.send(t, "PUT", "/api/v1/users/me/password", map[string]string{"password": "short", "current": secret}).wantProblem(t, 422, "invalid")
	changed := here.send(t, "PUT", "/api/v1/users/me/password", map[string]string{"password": next, "current": secret}).want(t, 204)
	here.send(t, "GET", "/api/v1/me", nil).want(t, 401)
	here.cookie = cookieOf(t, changed)
	here.send(t, "GET", "/api/v1/me", nil).want(t, 200)
	there.send(t, "GET", "/api/v1/me", nil).want(t, 401)
	n.anybody().send(t, "POST", "/api/v1/login", map[string]string{"name": "bob", "password": secret}).want(t, 401)
	n.signIn(t, "bob", next)
}

// Sign-ins with the old password that wait while the password changes are refused, or
// end with the change.
func TestNoSignInWithOldPasswordSurvivesChange(t *testing.T) {
	n := start(t, hub.Options{FirstAdmin: &hub.FirstAdmin{Name: "root", Password: secret}, Accounts: true, Proxies: []string{"127.0.0.1"}})
	root := n.signIn(t, "root", secret)
	var all sync.WaitGroup
	var mu sync.Mutex
	var old []caller
	started := make(chan bool, 1)
	for i := range 8 {
		all.Go(func() {
			for {
				r := n.anybody().with("X-Forwarded-For", fmt.Sprintf("100.64.%d.1", i)).send(t, "POST", "/api/v1/login", map[string]string{"name": "root", "password": secret})
				if r.status == 401 || r.status == 429 {
					return
				}
				if r.status != 200 {
					continue
				}
				c := caller{node: n, cookie: (&http.Response{Header: r.header}).Cookies()[0]}
				mu.Lock()
				old = append(old, c)
				mu.Unlock()
				select {
				case started <- true:
				default:
				}
			}
		})
	}
	<-started
	root.send(t, "PUT", "/api/v1/users/me/password", map[string]string{"password": "quite another one", "current": secret}).want(t, 204)
	all.Wait()
	for _, c := range old {
		c.send(t, "GET", "/api/v1/me", nil).want(t, 401)
	}
}

// A change of password revokes API tokens on request, and ends what uses them.
func TestPasswordChangeRevokesTokens(t *testing.T) {
	for name, address := range map[string]func(testing.TB) string{"SQLite": storetest.SQLite, "PostgreSQL": storetest.Postgres} {
		t.Run(name, func(t *testing.T) {
			n := start(t, hub.Options{FirstAdmin: &hub.FirstAdmin{Name: "root", Password: secret}, Accounts: true, Database: address(t), Keys: []encryption.Key{encryption.NewKey()}})
			root := n.signIn(t, "root", secret)
			id, bob := n.newUser(t, root, "bob")
			token := func() caller {
				return caller{node: n, token: bob.send(t, "POST", "/api/v1/tokens", map[string]any{"name": "ci", "scopes": []string{"read"}}).want(t, 201).text(t, "token")}
			}
			kept := token()
			const next = "quite another one"
			bob.cookie = cookieOf(t, bob.send(t, "PUT", "/api/v1/users/me/password", map[string]any{"password": next, "current": secret}).want(t, 204))
			kept.send(t, "GET", "/api/v1/me", nil).want(t, 200)
			bob.send(t, "PUT", "/api/v1/users/me/password", map[string]any{"password": secret, "current": "wrong", "revoke_tokens": true}).want(t, 401)
			kept.send(t, "GET", "/api/v1/me", nil).want(t, 200)
			bob.cookie = cookieOf(t, bob.send(t, "PUT", "/api/v1/users/me/password", map[string]any{"password": secret, "current": next, "revoke_tokens": true}).want(t, 204))
			kept.send(t, "GET", "/api/v1/me", nil).wantProblem(t, 401, "bad_token")
			bob.send(t, "GET", "/api/v1/me", nil).want(t, 200)
			another, mine := token(), caller{node: n, token: root.send(t, "POST", "/api/v1/tokens", map[string]any{"name": "ci", "scopes": []string{"read"}}).want(t, 201).text(t, "token")}
			root.send(t, "PUT", "/api/v1/users/"+id+"/password", map[string]any{"password": next, "revoke_tokens": true}).want(t, 204)
			another.send(t, "GET", "/api/v1/me", nil).wantProblem(t, 401, "bad_token")
			bob.send(t, "GET", "/api/v1/me", nil).want(t, 401)
			mine.send(t, "GET", "/api/v1/me", nil).want(t, 200)
		})
	}
}

// Names of administrators are listed only for those who share a group with them, and
// found by those who add members.
func TestAdministratorsAreNotListed(t *testing.T) {
	n := team(t)
	root := n.signIn(t, "root", secret)
	id, ada := n.newUser(t, root, "ada")
	_, eve := n.newUser(t, root, "eve")
	listed := func(c caller, query string) (names []string) {
		var list struct{ Items []struct{ Name string } }
		c.send(t, "GET", "/api/v1/users"+query, nil).want(t, 200).into(t, &list)
		for _, u := range list.Items {
			names = append(names, u.Name)
		}
		return names
	}
	wantSame(t, "for a user", listed(eve, ""), []string{"ada", "eve"})
	wantSame(t, "for an administrator", listed(root, ""), []string{"ada", "eve", "root"})
	eve.send(t, "GET", "/api/v1/users?name=root", nil).wantProblem(t, 404, "not_found")
	group := root.send(t, "POST", "/api/v1/groups", map[string]string{"name": "team"}).want(t, 201).text(t, "id")
	root.send(t, "PUT", "/api/v1/groups/"+group+"/members/"+id, map[string]string{"role": "owner"}).want(t, 204)
	wantSame(t, "for a member of the same group", listed(ada, ""), []string{"ada", "eve", "root"})
	root.send(t, "DELETE", "/api/v1/groups/"+group+"/members/me", nil).want(t, 204)
	wantSame(t, "for an owner of a group", listed(ada, ""), []string{"ada", "eve"})
	wantSame(t, "for an owner who adds a member", listed(ada, "?name=root"), []string{"root"})
	eve.send(t, "GET", "/api/v1/users?name=root", nil).wantProblem(t, 404, "not_found")
}

// Cross-site requests that a browser would send with its cookie are refused, including
// sign-ins. Requests with a token are not made by a browser.
func TestCrossSitePages(t *testing.T) {
	n := team(t)
	root := n.signIn(t, "root", secret)
	token := root.send(t, "POST", "/api/v1/tokens", map[string]any{"name": "ci", "scopes": []string{"admin"}}).want(t, 201).text(t, "token")
	group := map[string]string{"name": "web"}
	for name, value := range map[string]string{"Origin": "https://evil.example.com", "Sec-Fetch-Site": "cross-site"} {
		root.with(name, value).send(t, "POST", "/api/v1/groups", group).wantProblem(t, 403, "cross_origin")
		n.anybody().with(name, value).send(t, "POST", "/api/v1/login", map[string]string{"name": "root", "password": secret}).wantProblem(t, 403, "cross_origin")
	}
	caller{node: n, token: token}.with("Origin", "https://evil.example.com").send(t, "POST", "/api/v1/groups", group).want(t, 201)
	root.with("Origin", n.URL).send(t, "POST", "/api/v1/groups", map[string]string{"name": "own"}).want(t, 201)
}

func TestFirstAdminByLink(t *testing.T) {
	n := start(t, hub.Options{Accounts: true})
	path := must(n.SetupPath(t.Context()))(t)
	link, ok := strings.CutPrefix(path, "/setup/")
	if !ok || strings.Trim(link, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.-_") != "" {
		t.Fatalf("the path is %q", path)
	}
	ways := n.anybody().send(t, "GET", "/api/v1/login", nil).want(t, 200).body
	if !strings.Contains(ways, `"setup":true`) {
		t.Errorf("the ways to sign in are %s", ways)
	}
	if page := n.anybody().send(t, "GET", path, nil).want(t, 200); !strings.Contains(page.body, "/api/v1/setup") || strings.Contains(page.body, link) {
		t.Errorf("the page returned %s", page.body)
	}
	try := func(link, name, password string) reply {
		return n.anybody().send(t, "POST", "/api/v1/setup", map[string]string{"link": link, "name": name, "password": password})
	}
	try("x"+link, "ada", secret).wantProblem(t, 403, "bad_link")
	try(link, "ada", "ada").wantProblem(t, 422, "invalid")
	try(link, "Ada L", secret).wantProblem(t, 422, "invalid")
	ada := caller{node: n, cookie: cookieOf(t, try(link, "ada", secret).want(t, 200))}
	ada.send(t, "POST", "/api/v1/users", map[string]string{"name": "bob"}).want(t, 201)
	try(link, "eve", secret).wantProblem(t, 409, "has_admin")
	n.anybody().send(t, "GET", path, nil).wantProblem(t, 409, "has_admin")
	if again := must(n.SetupPath(t.Context()))(t); again != "" {
		t.Errorf("there is another link: %s", again)
	}
	for _, told := range []string{link, secret} {
		if strings.Contains(n.log.String(), told) {
			t.Errorf("the log has %q:\n%s", told, n.log)
		}
	}
}

// Of several who have the link one becomes the administrator.
func TestOnlyOneFirstAdmin(t *testing.T) {
	n := start(t, hub.Options{Accounts: true})
	link := strings.TrimPrefix(must(n.SetupPath(t.Context()))(t), "/setup/")
	statuses := make(chan int, 4)
	for i := range cap(statuses) {
		go func() {
			r, err := n.send(n.anybody(), "POST", "/api/v1/setup", map[string]string{"link": link, "name": "a" + itoa(i), "password": secret})
			if err != nil {
				t.Error(err)
			}
			statuses <- r.status
		}()
	}
	made := 0
	for range cap(statuses) {
		switch s := <-statuses; s {
		case 200:
			made++
		case 409:
		default:
			t.Errorf("status %d", s)
		}
	}
	if n := must(n.DB().Users.CountAdmins(t.Context()))(t); made != 1 || n != 1 {
		t.Errorf("%d were made, and there are %d", made, n)
	}
}

func TestSingleUser(t *testing.T) {
	n := start(t, hub.Options{})
	if !n.Single() {
		t.Fatal("the hub has accounts")
	}
	me := n.anybody()
	if body := me.send(t, "GET", "/api/v1/me", nil).want(t, 200).body; !strings.Contains(body, `"ways":{"mode":"single"`) {
		t.Errorf("the user is %s, want the ways to sign in", body)
	}
	me.send(t, "POST", "/api/v1/groups", map[string]string{"name": "web"}).want(t, 201)
	me.send(t, "POST", "/api/v1/tokens", map[string]any{"name": "ci", "scopes": []string{"read"}}).want(t, 201)
	me.with("X-Forwarded-For", "198.51.100.7").send(t, "GET", "/api/v1/me", nil).wantProblem(t, 403, "not_local")
	me.with("Origin", "https://evil.example.com").send(t, "POST", "/api/v1/groups", nil).wantProblem(t, 403, "cross_origin")
	me.send(t, "POST", "/api/v1/login", map[string]string{"name": "local", "password": secret}).wantProblem(t, 409, "single")
	if ways := me.send(t, "GET", "/api/v1/login", nil).want(t, 200).body; !strings.Contains(ways, `"mode":"single"`) {
		t.Errorf("the ways to sign in are %s", ways)
	}
}

func TestSingleUserAcceptsLoopbackNamesOnly(t *testing.T) {
	n := start(t, hub.Options{})
	for _, path := range []string{"/", "/api/v1/me", "/metrics", "/openapi.json"} {
		req := must(http.NewRequest("GET", n.URL+path, nil))(t)
		req.Host = "evil.example.com"
		res := must(n.Client().Do(req))(t)
		io.Copy(io.Discard, res.Body)
		res.Body.Close()
		if res.StatusCode != 403 {
			t.Errorf("%s: %d", path, res.StatusCode)
		}
	}
}

func TestAccountsDisableSingleUser(t *testing.T) {
	db := "sqlite:" + filepath.Join(t.TempDir(), "hub.db")
	before := start(t, hub.Options{Database: db})
	before.anybody().send(t, "GET", "/api/v1/me", nil).want(t, 200)
	start(t, hub.Options{Database: db, Accounts: true, FirstAdmin: &hub.FirstAdmin{Name: "root", Password: secret}})
	before.anybody().send(t, "GET", "/api/v1/me", nil).wantProblem(t, 409, "has_admin")
	after := start(t, hub.Options{Database: db})
	if after.Single() {
		t.Error("the hub has one user again")
	}
	after.anybody().send(t, "GET", "/api/v1/me", nil).wantProblem(t, 401, "sign_in")
	after.signIn(t, "root", secret)
}

func browser(t *testing.T) *http.Client {
	t.Helper()
	b := must(oidctest.Browser())(t)
	t.Cleanup(b.CloseIdleConnections)
	return b
}

func get(t *testing.T, b *http.Client, page string) (status int, body string, at *url.URL) {
	t.Helper()
	res := must(b.Get(page))(t)
	defer res.Body.Close()
	data := must(io.ReadAll(res.Body))(t)
	return res.StatusCode, string(data), res.Request.URL
}

func TestSignInWithProvider(t *testing.T) {
	p := oidctest.New(t)
	n := start(t, hub.Options{Accounts: true, FirstAdmin: &hub.FirstAdmin{Name: "root", Password: secret},
		Provider: &hub.Provider{Issuer: p.URL, ClientID: p.ClientID, ClientSecret: p.ClientSecret}})
	root := n.signIn(t, "root", secret)
	group := root.send(t, "POST", "/api/v1/groups", map[string]string{"name": "web"}).want(t, 201).text(t, "id")
	p.SetUser("ann-1", map[string]any{"preferred_username": "Ann.Lee@example.com", "email": "ann@example.com", "email_verified": true, "groups": []string{"eng"}})

	if status, body, _ := get(t, browser(t), n.URL+"/login/oidc"); status != 403 || !strings.Contains(body, "no_account") {
		t.Fatalf("who has no account: %d %s", status, body)
	}
	root.send(t, "PUT", "/api/v1/settings/sign-in", map[string]any{"generation": 0,
		"rules": []any{map[string]any{"claimed": "eng", "group": group, "role": "developer"}, map[string]any{"claimed": "it", "admin": true}}}).want(t, 200)

	ann := browser(t)
	status, body, at := get(t, ann, n.URL+"/login/oidc?back=/api/v1/me")
	if status != 200 || at.Path != "/api/v1/me" || !strings.Contains(body, `"name":"ann.lee"`) || !strings.Contains(body, group) || !strings.Contains(body, `"role":"developer"`) {
		t.Errorf("she is %d %s at %s", status, body, at.Path)
	}
	p.SetUser("ann-1", map[string]any{"preferred_username": "renamed", "groups": []string{"it"}}) // she is found by her subject
	if _, body, _ = get(t, ann, n.URL+"/login/oidc?back=/api/v1/me"); !strings.Contains(body, `"name":"ann.lee"`) || strings.Contains(body, group) || !strings.Contains(body, `"admin":true`) {
		t.Errorf("with other groups she is %s", body)
	}
	p.Deny("access_denied")
	if status, body, _ = get(t, browser(t), n.URL+"/login/oidc"); status != 403 || !strings.Contains(body, "provider_denied") {
		t.Errorf("who says no: %d %s", status, body)
	}
	visit := must(http.NewRequest("GET", n.URL+"/login/oidc?back=/library", nil))(t)
	visit.Header.Set("Accept", "text/html")
	res := must(browser(t).Do(visit))(t)
	res.Body.Close()
	if q := res.Request.URL.Query(); res.StatusCode != 200 || res.Request.URL.Path != "/" || q.Get("refused") != "provider_denied" || q.Get("request") == "" {
		t.Errorf("a user is reported it at %s, with status %d", res.Request.URL, res.StatusCode)
	}
}

func TestProviderOpenToEveryone(t *testing.T) {
	p := oidctest.New(t)
	n := start(t, hub.Options{Accounts: true, Provider: &hub.Provider{Issuer: p.URL, ClientID: p.ClientID, ClientSecret: p.ClientSecret, Everyone: true}})
	names := map[string]string{"1": "", "2": "Ann", "3": "ann", "4": "hub", "5": "Änne Ö", "6": "..", "7": strings.Repeat("x", 300)}
	seen := map[string]bool{}
	for subject, name := range names {
		p.SetUser(subject, map[string]any{"preferred_username": name})
		status, body, _ := get(t, browser(t), n.URL+"/login/oidc?back=/api/v1/me")
		if status != 200 || seen[body] {
			t.Errorf("who wants to be called %q: %d %s", name, status, body)
		}
		seen[body] = true
	}
	p.SetDown(true)
	if status, body, _ := get(t, browser(t), n.URL+"/login/oidc"); status == 200 {
		t.Errorf("without a provider: %s", body)
	}
}
