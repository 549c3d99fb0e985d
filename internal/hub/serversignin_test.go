package hub_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout/internal/encryption"
	"github.com/loadout-dev/loadout/internal/hub"
	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/oauth/oauthtest"
	"github.com/loadout-dev/loadout/internal/store/storetest"
	"github.com/loadout-dev/loadout/internal/upstream"
)

const guardedSignIn = "/api/v1/servers/MCPServer/default/guarded/sign-in"

// withIssuer is a hub with accounts that has a server which wants a sign-in, at an issuer.
func withIssuer(t testing.TB, o hub.Options) (*node, *oauthtest.Issuer, string) {
	t.Helper()
	issuer := oauthtest.New(t)
	o.FirstAdmin, o.Accounts, o.Private = &hub.FirstAdmin{Name: "root", Password: secret}, true, localhost
	return start(t, o), issuer, issuer.Serve(t)
}

// onTwoNodes runs a test on two nodes of one database, once on each kind of it.
func onTwoNodes(t *testing.T, f func(t *testing.T, n, other *node, issuer *oauthtest.Issuer, server string)) {
	for name, address := range map[string]func(testing.TB) string{"SQLite": storetest.SQLite, "PostgreSQL": storetest.Postgres} {
		t.Run(name, func(t *testing.T) {
			o := hub.Options{Database: address(t), Keys: []encryption.Key{encryption.NewKey()}}
			n, issuer, server := withIssuer(t, o)
			o.FirstAdmin, o.Accounts, o.Private = &hub.FirstAdmin{Name: "root", Password: secret}, true, localhost
			f(t, n, start(t, o), issuer, server)
		})
	}
}

// has creates a server of a user.
func (n *node) has(t testing.TB, p account.Principal, name, at string) {
	t.Helper()
	n.write(t, p, fmt.Sprintf("{apiVersion: loadout/v1, kind: MCPServer, metadata: {name: %s}, spec: {url: %q}}", name, at))
}

// begun is a sign-in that waits for the browser.
type begun struct {
	page    string
	browser *http.Cookie
}

func (c caller) beginSignIn(t testing.TB, path string) begun {
	t.Helper()
	r := c.send(t, "POST", path, map[string]string{"back": "/servers/MCPServer/default/guarded?q=x"}).want(t, 200)
	return begun{r.text(t, "url"), cookieOf(t, r)}
}

// answer returns the address to which the issuer redirects the browser, which grants
// immediately.
func (b begun) answer(t testing.TB) string {
	t.Helper()
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	res, err := client.Get(b.page)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	u, err := url.Parse(res.Header.Get("Location"))
	if err != nil || u.Path != "/servers/callback" {
		t.Fatalf("the issuer answers %d and %q, %v", res.StatusCode, u, err)
	}
	return u.RequestURI()
}

// comesBack opens an address of the hub with a browser and returns the final address.
func (c caller) comesBack(t testing.TB, at string, browser *http.Cookie) string {
	t.Helper()
	c = c.with("Accept", "text/html")
	if browser != nil {
		c.cookie = browser
	}
	return c.send(t, "GET", at, nil).want(t, 303).header.Get("Location")
}

// signsIn does all of it.
func (c caller) signsIn(t testing.TB, path string) {
	t.Helper()
	b := c.beginSignIn(t, path)
	if got := c.comesBack(t, b.answer(t), b.browser); !strings.Contains(got, "signin=done") {
		t.Fatalf("the browser ends at %s", got)
	}
}

// signInState is how it is with the sign-in to a server of a list.
func (c caller) signInState(t testing.TB, path, name string) string {
	t.Helper()
	var list struct {
		Items []struct {
			Name   string
			SignIn *struct{ State, Issuer string }
		}
	}
	c.send(t, "GET", "/api/v1/servers"+path, nil).want(t, 200).into(t, &list)
	for _, s := range list.Items {
		if s.Name == name {
			if s.SignIn == nil {
				return ""
			}
			return s.SignIn.State
		}
	}
	t.Fatalf("no server %s", name)
	return ""
}

// greets calls the tool of a server that wants a sign-in, as an MCP client does.
func (c caller) greets(t testing.TB, server string) string {
	t.Helper()
	return textOfResult(through(t, connectMCP(t, c.node.URL+"/mcp", c.token, olderEra, nil), server+"__greet"))
}

// K22: a user signs in on the page, on any node. From then on the server is called with
// the user's own token on every node, and with nobody else's. Signing out ends that.
func TestK22SignInToServers(t *testing.T) {
	onTwoNodes(t, func(t *testing.T, n, other *node, issuer *oauthtest.Issuer, server string) {
		ada, adasToken := n.newcomer(t, "ada", account.AllScopes)
		bob, bobsToken := n.newcomer(t, "bob", account.AllScopes)
		n.has(t, ada, "guarded", server)
		n.has(t, bob, "guarded", server)
		a, b := caller{node: n, token: adasToken}, caller{node: n, token: bobsToken}
		there := caller{node: other, token: adasToken}

		if got := a.signInState(t, "", "guarded"); got != "" {
			t.Errorf("before anybody asked it the sign-in is %q", got)
		}
		for _, c := range []caller{a, there} {
			if got := c.greets(t, "guarded"); !strings.Contains(got, "sign in to guarded") || !strings.Contains(got, "/servers?q=guarded") {
				t.Errorf("without a sign-in the tool returned %q", got)
			}
		}
		if got := there.signInState(t, "", "guarded"); got != "needed" {
			t.Errorf("after that the sign-in is %q", got)
		}

		begun := a.beginSignIn(t, guardedSignIn)
		back := there.comesBack(t, strings.Replace(begun.answer(t), n.URL, other.URL, 1), begun.browser)
		if back != "/servers/MCPServer/default/guarded?q=x&signin=done" {
			t.Errorf("the browser ends at %s", back)
		}
		first := a.greets(t, "guarded")
		if !strings.HasPrefix(first, "hello ") || there.greets(t, "guarded") != first {
			t.Errorf("the tool returned %q, and %q on the other node", first, there.greets(t, "guarded"))
		}
		if got := a.signInState(t, "/MCPServer/default/guarded", "guarded"); got != "signed_in" {
			t.Errorf("the sign-in is %q", got)
		}
		if got := b.greets(t, "guarded"); !strings.Contains(got, "sign in to guarded") {
			t.Errorf("for another user the tool returned %q", got)
		}
		b.signsIn(t, guardedSignIn)
		if got := b.greets(t, "guarded"); !strings.HasPrefix(got, "hello ") || got == first {
			t.Errorf("for another signed-in user the tool returned %q, and %q to the first", got, first)
		}

		if out := a.send(t, "DELETE", guardedSignIn, nil).want(t, 200).body; !strings.Contains(out, `"signedOut":true,"revoked":true`) {
			t.Errorf("signing out returned %s", out)
		}
		for _, c := range []caller{a, there} {
			if got := c.greets(t, "guarded"); !strings.Contains(got, "sign in to guarded") {
				t.Errorf("after signing out the tool returned %q", got)
			}
		}
		if got := b.greets(t, "guarded"); !strings.HasPrefix(got, "hello ") {
			t.Errorf("for a signed-in user the tool returned %q", got)
		}
		if n := issuer.ValidTokens(); n != 2 {
			t.Errorf("%d tokens are good, want the two of who is signed in", n)
		}
		for action, want := range map[string][]string{"server.sign_in": {"allowed"}, "server.sign_out": {"allowed"}} {
			if got := decisionsBy(t, n, ada, action); !slices.Equal(got, want) {
				t.Errorf("of %s is recorded %q", action, got)
			}
		}
		for _, log := range []string{n.log.String(), other.log.String()} {
			if strings.Contains(log, "access-") || strings.Contains(log, "refresh-") {
				t.Error("a token is in the log")
			}
		}
	})
}

// K22: a code reports the result of a sign-in. A state is valid once, for the user who
// began it, in the same browser, from the issuer it was sent to.
func TestK22SignInRefused(t *testing.T) {
	n, issuer, server := withIssuer(t, hub.Options{})
	ada, adasToken := n.newcomer(t, "ada", account.AllScopes)
	eve, evesToken := n.newcomer(t, "eve", account.AllScopes)
	n.has(t, ada, "guarded", server)
	n.has(t, eve, "guarded", server)
	a, e := caller{node: n, token: adasToken}, caller{node: n, token: evesToken}
	own := "/servers/MCPServer/default/guarded?q=x&signin="
	other := e.beginSignIn(t, guardedSignIn)
	for _, tt := range []struct {
		name string
		who  caller
		at   func(b begun) (string, *http.Cookie)
		want string
	}{
		{"another person", e, func(b begun) (string, *http.Cookie) { return b.answer(t), b.browser }, "/servers?signin=signin_unknown"},
		{"another person in a browser that waits", e, func(b begun) (string, *http.Cookie) { return b.answer(t), other.browser }, "/servers?signin=signin_unknown"},
		{"nobody", n.anybody(), func(b begun) (string, *http.Cookie) { return b.answer(t), b.browser }, "/servers?signin=sign_in"},
		{"another browser", a, func(b begun) (string, *http.Cookie) { return b.answer(t), other.browser }, "/servers?signin=signin_unknown"},
		{"no cookie", a, func(b begun) (string, *http.Cookie) { return b.answer(t), nil }, "/servers?signin=signin_unknown"},
		{"no state", a, func(b begun) (string, *http.Cookie) { return "/servers/callback?code=x", b.browser }, "/servers?signin=signin_unknown"},
		{"another issuer", a, func(b begun) (string, *http.Cookie) {
			return strings.Replace(b.answer(t), url.QueryEscape(issuer.URL), url.QueryEscape("https://login.example.com"), 1), b.browser
		}, own + "signin_issuer"},
		{"a code of another", a, func(b begun) (string, *http.Cookie) {
			at, err := url.Parse(b.answer(t))
			if err != nil {
				t.Fatal(err)
			}
			q := at.Query()
			q.Set("code", "of-another")
			return at.Path + "?" + q.Encode(), b.browser
		}, own + "signin_failed"},
		{"the person says no", a, func(b begun) (string, *http.Cookie) {
			issuer.Deny("access_denied")
			defer issuer.Deny("")
			return b.answer(t), b.browser
		}, own + "signin_denied"},
	} {
		at, browser := tt.at(a.beginSignIn(t, guardedSignIn))
		if got := tt.who.comesBack(t, at, browser); got != tt.want {
			t.Errorf("%s: the browser ends at %s, want %s", tt.name, got, tt.want)
		}
	}
	if got := a.signInState(t, "", "guarded"); got == "signed_in" || issuer.ValidTokens() != 0 {
		t.Errorf("after that the sign-in is %q, and %d tokens are good", got, issuer.ValidTokens())
	}
	b := a.beginSignIn(t, guardedSignIn)
	at := b.answer(t)
	for _, want := range []string{"done", "signin_unknown"} {
		if got := a.comesBack(t, at, b.browser); !strings.HasSuffix(got, "signin="+want) {
			t.Errorf("the browser ends at %s, want %s", got, want)
		}
	}
	if got := decisionsBy(t, n, ada, "server.sign_in"); !slices.Equal(got, []string{"denied", "denied", "denied", "allowed"}) {
		t.Errorf("recorded is %q", got)
	}
}

// K22: one of many concurrent callers on two nodes uses a refresh token, which is valid
// once. If it is refused, the sign-in ends, which is reported.
func TestK22OneNodeRefreshes(t *testing.T) {
	onTwoNodes(t, func(t *testing.T, n, other *node, issuer *oauthtest.Issuer, server string) {
		ada, token := n.newcomer(t, "ada", account.AllScopes)
		n.has(t, ada, "guarded", server)
		a := caller{node: n, token: token}
		issuer.SetLifetime(time.Second) // shorter than a request may take, so that it counts as over
		a.signsIn(t, guardedSignIn)
		issuer.SetLifetime(time.Hour)
		var running sync.WaitGroup
		for i := range 8 {
			cs := connectMCP(t, []*node{n, other}[i%2].URL+"/mcp", token, olderEra, nil)
			running.Go(func() {
				res, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "call_tool", Arguments: args{"name": "guarded__greet"}})
				if err != nil || !strings.HasPrefix(textOfResult(res), "hello ") {
					t.Errorf("the tool returned %v, %v", res, err)
				}
			})
		}
		running.Wait()
		if got := issuer.RefreshCount(); got != 1 {
			t.Errorf("the refresh token was spent %d times, want once", got)
		}
		issuer.RevokeAccess()
		issuer.RejectRefresh()
		if got := a.greets(t, "guarded"); !strings.Contains(got, "sign in to guarded") {
			t.Errorf("with a token that is refused the tool returned %q", got)
		}
		if got := a.signInState(t, "", "guarded"); got != "ended" {
			t.Errorf("after that the sign-in is %q", got)
		}
	})
}

// K22: a server of the operator is for everybody, and each is there as himself.
func TestK22OperatorServerIsCalledAsUser(t *testing.T) {
	issuer := oauthtest.New(t)
	n := start(t, hub.Options{FirstAdmin: &hub.FirstAdmin{Name: "root", Password: secret}, Accounts: true, Servers: []*upstream.Config{{Name: "guarded", URLs: []string{issuer.Serve(t)}}}})
	path := "/api/v1/servers/operator/guarded/sign-in"
	said := map[string]bool{}
	for _, name := range []string{"ada", "bob"} {
		_, token := n.newcomer(t, name, account.AllScopes)
		c := caller{node: n, token: token}
		if got := c.greets(t, "guarded"); !strings.Contains(got, "sign in to guarded") {
			t.Errorf("to %s, who has not signed in, the tool returned %q", name, got)
		}
		c.signsIn(t, path)
		got := c.greets(t, "guarded")
		if !strings.HasPrefix(got, "hello ") || said[got] {
			t.Errorf("to %s the tool returned %q", name, got)
		}
		said[got] = true
		if state := c.signInState(t, "", "guarded"); state != "signed_in" {
			t.Errorf("the sign-in of %s is %q", name, state)
		}
	}
	_, token := n.newcomer(t, "eve", account.AllScopes)
	eve := caller{node: n, token: token}
	if got := eve.greets(t, "guarded"); !strings.Contains(got, "sign in to guarded") {
		t.Errorf("without a sign-in the tool returned %q", got)
	}
	if out := eve.send(t, "DELETE", path, nil).want(t, 200).body; !strings.Contains(out, `"signedOut":false`) {
		t.Errorf("signing out returned %s", out)
	}
}

func TestK22SignInIsBoundToServerConfiguration(t *testing.T) {
	n, _, server := withIssuer(t, hub.Options{})
	ada, token := n.newcomer(t, "ada", account.AllScopes)
	a := caller{node: n, token: token}
	n.has(t, ada, "guarded", server)
	a.signsIn(t, guardedSignIn)
	waits := a.beginSignIn(t, guardedSignIn)
	n.write(t, ada, fmt.Sprintf("{apiVersion: loadout/v1, kind: MCPServer, metadata: {name: guarded}, spec: {url: %q, headers: {X-Team: a}}}", server))
	if got := a.greets(t, "guarded"); !strings.Contains(got, "sign in to guarded") {
		t.Errorf("as it is defined now the tool returned %q", got)
	}
	if got := a.comesBack(t, waits.answer(t), waits.browser); !strings.HasSuffix(got, "signin=changed") {
		t.Errorf("who signs in to what it was ends at %s", got)
	}
	a.signsIn(t, guardedSignIn)
	if got := a.greets(t, "guarded"); !strings.HasPrefix(got, "hello ") {
		t.Errorf("after signing in again the tool returned %q", got)
	}
}

func TestSignInIsFinishedByItsUserOnly(t *testing.T) {
	n, _, _ := withIssuer(t, hub.Options{})
	for range 100 {
		n.anybody().send(t, "GET", "/servers/callback?state=x", nil).want(t, 401)
	}
	n.signIn(t, "root", secret)
}

func TestSignInRedirects(t *testing.T) {
	n, _, server := withIssuer(t, hub.Options{})
	ada, token := n.newcomer(t, "ada", account.AllScopes)
	a := caller{node: n, token: token}
	n.has(t, ada, "guarded", server)
	for back, want := range map[string]string{
		"/chat/1":               "/chat/1?signin=done",
		"":                      "/?signin=done",
		"//evil.example.com":    "/?signin=done",
		"https://example.com/x": "/?signin=done",
		`/\evil.example.com`:    "/?signin=done",
		"/servers?signin=x":     "/servers?signin=done",
	} {
		r := a.send(t, "POST", guardedSignIn, map[string]string{"back": back}).want(t, 200)
		b := begun{r.text(t, "url"), cookieOf(t, r)}
		if got := a.comesBack(t, b.answer(t), b.browser); got != want {
			t.Errorf("from %q the browser ends at %s, want %s", back, got, want)
		}
	}
	// Servers have to send browsers back to an address that the hub knows.
	r := httptest.NewRequest("POST", guardedSignIn, strings.NewReader("{}"))
	r.Host = "hub.example.com"
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	n.Handler().ServeHTTP(w, r)
	if w.Code != 409 || !strings.Contains(w.Body.String(), "no_public") {
		t.Errorf("by an address that may be anybody's it answers %d %s", w.Code, w.Body)
	}
}

// Where a server is at no public address nothing is sent there to sign in, either.
func TestSignInsUsePublicAddressesOnly(t *testing.T) {
	var reached atomic.Int64
	private := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Add(1) }))
	t.Cleanup(private.Close)
	o := hub.Options{Database: storetest.SQLite(t), Keys: []encryption.Key{encryption.NewKey()}}
	n, _, _ := withIssuer(t, o)
	ada, token := n.newcomer(t, "ada", account.AllScopes)
	n.has(t, ada, "guarded", private.URL+"/mcp") // which was let through then
	r := caller{node: start(t, o), token: token}.send(t, "POST", guardedSignIn, map[string]string{})
	r.wantProblem(t, 422, "signin_address")
	if reached.Load() > 0 {
		t.Errorf("it was reached %d times, and the answer is %s", reached.Load(), r.body)
	}
}

func TestServersAreTestedAsUser(t *testing.T) {
	n, _, server := withIssuer(t, hub.Options{})
	ada, token := n.newcomer(t, "ada", account.AllScopes)
	a := caller{node: n, token: token}
	n.has(t, ada, "guarded", server)
	test := func() (out struct {
		Success, SignIn bool
		Error           string
	}) {
		a.send(t, "POST", "/api/v1/servers/test", map[string]string{"kind": "MCPServer", "name": "guarded"}).want(t, 200).into(t, &out)
		return out
	}
	if got := test(); got.Success || !got.SignIn || !strings.Contains(got.Error, "sign in to guarded") {
		t.Errorf("without a sign-in a test returned %+v", got)
	}
	a.signsIn(t, guardedSignIn)
	if got := test(); !got.Success || got.SignIn {
		t.Errorf("with a sign-in a test returned %+v", got)
	}
}

func TestSignInsSurviveServerDeletion(t *testing.T) {
	n, issuer, server := withIssuer(t, hub.Options{})
	ada, token := n.newcomer(t, "ada", account.AllScopes)
	_, bobs := n.newcomer(t, "bob", account.AllScopes)
	n.has(t, ada, "guarded", server)
	a, b := caller{node: n, token: token}, caller{node: n, token: bobs}
	a.signsIn(t, guardedSignIn)
	a.send(t, "DELETE", "/api/v1/kinds/MCPServer/default/guarded", nil).want(t, 204)
	a.send(t, "DELETE", guardedSignIn, nil).want(t, 404)

	var mine struct {
		Items []struct {
			ID, Server string
			SignIn     struct{ State, Issuer string }
		}
	}
	a.send(t, "GET", "/api/v1/servers/sign-ins", nil).want(t, 200).into(t, &mine)
	if len(mine.Items) != 1 || mine.Items[0].Server != server || mine.Items[0].SignIn.State != "signed_in" || mine.Items[0].SignIn.Issuer == "" {
		t.Fatalf("for a server that is gone got %+v", mine.Items)
	}
	one := "/api/v1/servers/sign-ins/" + mine.Items[0].ID
	b.send(t, "DELETE", one, nil).want(t, 404)
	if got := issuer.ValidTokens(); got != 2 {
		t.Errorf("%d tokens are valid after another user's try", got)
	}
	if out := a.send(t, "DELETE", one, nil).want(t, 200).body; !strings.Contains(out, `"signedOut":true,"revoked":true`) {
		t.Errorf("it answers %s", out)
	}
	if got := issuer.ValidTokens(); got != 0 {
		t.Errorf("%d tokens are good", got)
	}
	a.send(t, "DELETE", one, nil).want(t, 404)
	a.send(t, "GET", "/api/v1/servers/sign-ins", nil).want(t, 200).into(t, &mine)
	if len(mine.Items) != 0 {
		t.Errorf("there are still %+v", mine.Items)
	}
	if got := decisionsBy(t, n, ada, "server.sign_out"); !slices.Equal(got, []string{"allowed"}) {
		t.Errorf("of it is recorded %q", got)
	}
}
