package hub_test

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/loadout-dev/loadout/internal/account"
	"github.com/loadout-dev/loadout/internal/hub"
	"github.com/loadout-dev/loadout/internal/oauth/oauthtest"
	"github.com/loadout-dev/loadout/internal/seal"
	"github.com/loadout-dev/loadout/internal/store/storetest"
	"github.com/loadout-dev/loadout/upstream"
)

const guardedSignIn = "/api/v1/servers/MCPServer/default/guarded/sign-in"

// withIssuer is a hub with accounts that has a server which wants a sign-in, at an issuer.
func withIssuer(t testing.TB, o hub.Options) (*node, *oauthtest.Issuer, string) {
	t.Helper()
	issuer := oauthtest.New(t)
	o.First, o.Accounts, o.Private = &hub.First{Name: "root", Password: secret}, true, localhost
	return start(t, o), issuer, issuer.Serve(t)
}

// has makes a server of somebody's own.
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

// answer is where the issuer sends the browser, which agrees at once.
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

// comesBack opens an address of the hub with a browser, and returns where it ends.
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
	t.Fatalf("there is no server %s", name)
	return ""
}

// greets calls the tool of a server that wants a sign-in, as an MCP client does.
func (c caller) greets(t testing.TB, server string) string {
	t.Helper()
	return textOfResult(through(t, connectMCP(t, c.node.URL+"/mcp", c.token, olderEra, nil), server+"__greet"))
}

// K22: a person signs in on the page, by any node, and from then on a server is called with
// his own token, on every node; nobody else's is used. Signing out ends that.
func TestK22SignInToServers(t *testing.T) {
	for _, kind := range []struct {
		name    string
		address func(testing.TB) string
	}{{"SQLite", storetest.SQLite}, {"PostgreSQL", storetest.Postgres}} {
		t.Run(kind.name, func(t *testing.T) {
			o := hub.Options{Database: kind.address(t), Keys: []seal.Key{seal.NewKey()}}
			n, issuer, server := withIssuer(t, o)
			o.First, o.Accounts, o.Private = &hub.First{Name: "root", Password: secret}, true, localhost
			other := start(t, o)
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
					t.Errorf("without a sign-in the tool says %q", got)
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
				t.Errorf("the tool says %q, and %q on the other node", first, there.greets(t, "guarded"))
			}
			if got := a.signInState(t, "/MCPServer/default/guarded", "guarded"); got != "signed_in" {
				t.Errorf("the sign-in is %q", got)
			}
			if got := b.greets(t, "guarded"); !strings.Contains(got, "sign in to guarded") {
				t.Errorf("to somebody else the tool says %q", got)
			}
			b.signsIn(t, guardedSignIn)
			if got := b.greets(t, "guarded"); !strings.HasPrefix(got, "hello ") || got == first {
				t.Errorf("to somebody else who signed in the tool says %q, and %q to the first", got, first)
			}

			if out := a.send(t, "DELETE", guardedSignIn, nil).want(t, 200).body; !strings.Contains(out, `"signedOut":true,"revoked":true`) {
				t.Errorf("signing out says %s", out)
			}
			for _, c := range []caller{a, there} {
				if got := c.greets(t, "guarded"); !strings.Contains(got, "sign in to guarded") {
					t.Errorf("after signing out the tool says %q", got)
				}
			}
			if got := b.greets(t, "guarded"); !strings.HasPrefix(got, "hello ") {
				t.Errorf("to who is signed in the tool says %q", got)
			}
			if n := issuer.Good(); n != 2 {
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
}

var _ = upstream.Config{}
var _ = time.Now
