package auth

import (
	"context"
	"encoding/base64"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/api"
	"github.com/loadout-dev/loadout/internal/hub/users"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/store/storetest"
)

func TestMain(m *testing.M) { os.Exit(storetest.Main(m)) }

// hub is a hub with the users ann and boss, an administrator.
type hub struct {
	*Gate
	t         *testing.T
	directory *users.Directory
	ann, boss account.Principal
}

func newHub(t *testing.T, o Options) *hub {
	t.Helper()
	db := storetest.Open(t, storetest.SQLite(t))
	directory := users.New(db, users.Options{Passwords: account.NewPasswords(account.Cost{Memory: 64, Time: 1, Lanes: 1}, 1)})
	for _, u := range []store.User{{ID: "ann", Name: "ann"}, {ID: "boss", Name: "boss", Admin: true}} {
		if o.Single {
			break
		}
		if _, err := db.Users.Create(t.Context(), u); err != nil {
			t.Fatal(err)
		}
	}
	o.DB, o.Users = db, directory
	g, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return &hub{Gate: g, t: t, directory: directory, ann: account.Principal{User: "ann", Name: "ann", Scopes: account.AllScopes}, boss: account.Principal{User: "boss", Name: "boss", Admin: true, Scopes: account.AllScopes}}
}

func (h *hub) token(scopes account.Scopes) (text, id string) {
	h.t.Helper()
	text, row, err := h.directory.Tokens.Create(h.t.Context(), h.ann, "laptop", scopes, time.Hour)
	if err != nil {
		h.t.Fatal(err)
	}
	return text, row.ID
}

// admit authenticates a request with the given headers.
func (h *hub) admit(path string, header map[string]string) (*api.Request, *http.Cookie, error) {
	r := httptest.NewRequest("GET", "http://hub.example.com"+path, nil)
	for k, v := range header {
		r.Header.Set(k, v)
	}
	v := &api.Request{HTTP: r, Client: netip.MustParseAddr("192.0.2.1")}
	cookie, err := h.Admit(r, v)
	return v, cookie, err
}

func TestAdmit(t *testing.T) {
	h := newHub(t, Options{})
	token, id := h.token(account.ScopeRead)
	login, err := h.Logins.Start(t.Context(), "ann", "browser")
	if err != nil {
		t.Fatal(err)
	}
	cookie := login.Name + "=" + login.Value
	basic := "Basic " + base64.StdEncoding.EncodeToString([]byte("anything:"+token))
	for _, tt := range []struct {
		name, path string
		header     map[string]string
		user       account.UserID
		scopes     account.Scopes
		err        error
	}{
		{"nothing", "/", nil, "", 0, nil},
		{"token", "/", map[string]string{"Authorization": "Bearer " + token}, "ann", account.ScopeRead, nil},
		{"token as password", "/", map[string]string{"Authorization": basic}, "ann", account.ScopeRead, nil},
		{"wrong token", "/", map[string]string{"Authorization": "Bearer lo_wrong"}, "", 0, account.ErrInvalidCredentials},
		{"token of a socket", "/ws", map[string]string{"Sec-WebSocket-Protocol": tokenProtocol + token}, "ann", account.ScopeRead, nil},
		{"token of a socket elsewhere", "/x", map[string]string{"Sec-WebSocket-Protocol": tokenProtocol + token}, "", 0, nil},
		{"cookie", "/", map[string]string{"Cookie": cookie}, "ann", account.AllScopes, nil},
		{"invalid cookie", "/", map[string]string{"Cookie": login.Name + "=x"}, "", 0, nil},
		{"token and cookie", "/", map[string]string{"Authorization": "Bearer " + token, "Cookie": cookie}, "ann", account.ScopeRead, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			v, next, err := h.admit(tt.path, tt.header)
			if !errors.Is(err, tt.err) || tt.err == nil && err != nil || v.Principal.User != tt.user || tt.user != "" && v.Principal.Scopes != tt.scopes || next != nil {
				t.Errorf("%+v, cookie %v, %v", v.Principal, next, err)
			}
			byToken := tt.user != "" && tt.header["Authorization"]+tt.header["Sec-WebSocket-Protocol"] != ""
			if (v.Principal.Token == id) != byToken || (len(v.Login) > 0) != (tt.user != "" && !byToken) {
				t.Errorf("token %q, sign-in %x", v.Principal.Token, v.Login)
			}
		})
	}
}

// A page of another site must not use what a browser sends by itself.
func TestOtherSites(t *testing.T) {
	h := newHub(t, Options{})
	token, _ := h.token(account.ScopeRead)
	login, err := h.Logins.Start(t.Context(), "ann", "browser")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, header, value string
		want                error
	}{
		{"cookie", "Cookie", login.Name + "=" + login.Value, account.ErrCrossOrigin},
		{"token as password", "Authorization", "Basic " + base64.StdEncoding.EncodeToString([]byte("anything:"+token)), account.ErrCrossOrigin},
		{"token", "Authorization", "Bearer " + token, nil},
	} {
		r := httptest.NewRequest("POST", "http://hub.example.com/", nil)
		r.Header.Set("Sec-Fetch-Site", "cross-site")
		r.Header.Set("Origin", "https://elsewhere.example")
		r.Header.Set(tt.header, tt.value)
		v := &api.Request{HTTP: r}
		if _, err := h.Admit(r, v); !errors.Is(err, tt.want) || tt.want == nil && err != nil || (v.Principal.User == "") != (tt.want != nil) {
			t.Errorf("%s: %+v, %v", tt.name, v.Principal, err)
		}
	}
}

// Without accounts, everybody on this machine is the same user, and nobody else is.
func TestAdmitWithoutAccounts(t *testing.T) {
	h := newHub(t, Options{Single: true})
	if v, _, err := h.admit("/", nil); err == nil || v.Principal.User != "" {
		t.Errorf("from another machine: %+v, %v", v.Principal, err)
	}
	local := func(method string, header map[string]string) (account.Principal, error) {
		r := httptest.NewRequest(method, "http://127.0.0.1:8484/", nil)
		r.RemoteAddr = "127.0.0.1:4000"
		for k, v := range header {
			r.Header.Set(k, v)
		}
		v := &api.Request{HTTP: r}
		_, err := h.Admit(r, v)
		return v.Principal, err
	}
	p, err := local("GET", nil)
	if err != nil || p.User == "" {
		t.Errorf("from this machine: %+v, %v", p, err)
	}
	if again, err := h.PrincipalOf(t.Context(), "anybody"); err != nil || again.User != p.User {
		t.Errorf("the principal of a user: %+v, %v", again, err)
	}
	if p, err := local("POST", map[string]string{"Sec-Fetch-Site": "cross-site", "Origin": "https://elsewhere.example"}); !errors.Is(err, account.ErrCrossOrigin) || p.User != "" {
		t.Errorf("from another site: %+v, %v", p, err)
	}
}

func TestRates(t *testing.T) {
	h := newHub(t, Options{Rate: 1})
	synctest.Test(t, func(t *testing.T) { // so that no request becomes allowed meanwhile
		allowed := func(f func() error) int {
			for n := range 100 {
				if _, ok := errors.AsType[*account.RateLimitError](f()); ok {
					return n
				}
			}
			return -1
		}
		anonymous := func() error {
			_, _, err := h.admit("/", nil)
			return err
		}
		v := &api.Request{Principal: h.ann}
		user := func() error { return h.CountRequest(v) }
		for _, tt := range []struct {
			what  string
			count func() error
			want  int
		}{
			{"anonymous requests", anonymous, 4}, {"requests of a user", user, 4}, // a user has an own limit
			{"guesses of a password", func() error { return h.CountPasswordGuess(v) }, 10},
		} {
			if n := allowed(tt.count); n != tt.want {
				t.Errorf("%d %s are allowed, want %d", n, tt.what, tt.want)
			}
		}
		time.Sleep(2 * time.Second)
		if a, u := allowed(anonymous), allowed(user); a != 2 || u != 2 {
			t.Errorf("after two seconds, %d anonymous requests and %d of a user are allowed", a, u)
		}
	})
	if err := (&Gate{}).CountRequest(&api.Request{}); err != nil {
		t.Errorf("without a limit: %v", err)
	}
}

// A request with a token counts for its user.
func TestRateOfToken(t *testing.T) {
	h := newHub(t, Options{Rate: 1})
	token, _ := h.token(account.ScopeRead)
	for range 4 {
		if err := h.CountRequest(&api.Request{Client: netip.MustParseAddr("192.0.2.1")}); err != nil {
			t.Fatal(err)
		}
	}
	v, _, err := h.admit("/", map[string]string{"Authorization": "Bearer " + token})
	if err != nil || v.Principal.User != "ann" {
		t.Errorf("the limit of the network applies to a user: %+v, %v", v.Principal, err)
	}
}

// A long-running request ends with its credential, and when its user gets other
// permissions.
func TestCheckValid(t *testing.T) {
	h := newHub(t, Options{})
	token, id := h.token(account.ScopeRead)
	byToken, _, err := h.admit("/", map[string]string{"Authorization": "Bearer " + token})
	if err != nil {
		t.Fatal(err)
	}
	login, err := h.Logins.Start(t.Context(), "ann", "browser")
	if err != nil {
		t.Fatal(err)
	}
	byCookie, _, err := h.admit("/", map[string]string{"Cookie": login.Name + "=" + login.Value, "Sec-Fetch-Mode": "navigate"})
	if err != nil {
		t.Fatal(err)
	}
	w := NewCredentialWatch(h.directory)
	endedToken, stopToken := w.Watch(byToken)
	defer stopToken()
	endedLogin, stopLogin := w.Watch(byCookie)
	defer stopLogin()
	ctx, stop := w.EndWith(t.Context(), byToken.Principal)
	defer stop()
	if ended, _ := w.Watch(&api.Request{}); ended != nil {
		t.Error("watches a request without a credential")
	}
	if same, _ := w.EndWith(t.Context(), h.ann); same != t.Context() {
		t.Error("watches a principal without a token")
	}
	ended := func(c <-chan struct{}) bool {
		select {
		case <-c:
			return true
		default:
			return false
		}
	}
	valid := func(v *api.Request, want bool) {
		t.Helper()
		if err := h.CheckValid(t.Context(), v); (err == nil) != want {
			t.Errorf("check: %v, want %t", err, want)
		}
	}
	valid(byToken, true)
	valid(byCookie, true)
	if err := w.check(t.Context()); err != nil || ended(endedToken) || ended(endedLogin) || ctx.Err() != nil {
		t.Errorf("ended at once: %v", err)
	}
	if scopes, err := w.CurrentScopes(t.Context(), id); err != nil || scopes != account.ScopeRead {
		t.Errorf("scopes %v, %v", scopes, err)
	}

	admin := true
	if _, err := h.directory.Users.Change(t.Context(), h.boss, "ann", users.UserChange{Admin: &admin}); err != nil {
		t.Fatal(err)
	}
	if err := h.CheckValid(t.Context(), byCookie); err == nil || err.(*api.Problem).Code != "rights" {
		t.Errorf("with other permissions: %v", err)
	}
	if p, err := h.CurrentPrincipal(t.Context(), byCookie); err != nil || !p.Admin {
		t.Errorf("principal %+v, %v", p, err)
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if p, err := h.CurrentPrincipal(cancelled, byCookie); err != nil || p.Admin { // cannot be read, so it stays
		t.Errorf("principal %+v, %v", p, err)
	}

	if err := h.directory.Tokens.Revoke(t.Context(), h.ann, "ann", id); err != nil {
		t.Fatal(err)
	}
	valid(byToken, false)
	if err := w.check(t.Context()); err != nil || !ended(endedToken) || ended(endedLogin) {
		t.Errorf("after the token was revoked: %t, %t, %v", ended(endedToken), ended(endedLogin), err)
	}
	<-ctx.Done()
	if context.Cause(ctx) != ErrTokenEnded || EndedError(byToken) != ErrTokenEnded || EndedError(byCookie) == ErrTokenEnded {
		t.Errorf("ended with %v, %v, %v", context.Cause(ctx), EndedError(byToken), EndedError(byCookie))
	}
	if _, err := w.CurrentScopes(t.Context(), id); !errors.Is(err, account.ErrInvalidCredentials) {
		t.Errorf("scopes of a revoked token: %v", err)
	}
	if err := h.directory.SignIns.SignOut(t.Context(), h.ann, "ann", nil); err != nil {
		t.Fatal(err)
	}
	if err := w.check(t.Context()); err != nil || !ended(endedLogin) {
		t.Errorf("after the sign-in ended: %v", err)
	}
	stopToken()
	stopLogin()
	stop()
	if len(w.held) != 0 {
		t.Errorf("still watched: %v", w.held)
	}
}

func TestOptions(t *testing.T) {
	provider := &account.OIDCOptions{}
	db := storetest.Open(t, storetest.SQLite(t))
	directory := users.New(db, users.Options{})
	for name, o := range map[string]Options{
		"public address": {Public: "https://hub.example.com/path?x"}, "proxies": {Proxies: []string{"x"}}, "provider without accounts": {Single: true, Public: "https://hub.example.com", Provider: provider},
		"provider without an address": {Provider: provider},
	} {
		o.DB, o.Users = db, directory
		if _, err := New(o); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	for public, secure := range map[string]bool{"": false, "http://hub.example.com": false, "https://hub.example.com": true} {
		if g, err := New(Options{DB: db, Users: directory, Public: public}); err != nil || g.Secure != secure {
			t.Errorf("%q: %+v, %v", public, g, err)
		}
	}
	h, err := New(Options{DB: db, Users: directory, Proxies: []string{"192.0.2.0/24"}})
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest("GET", "/", nil)
	r.RemoteAddr = "192.0.2.1:1"
	r.Header.Set("X-Forwarded-For", "198.51.100.7")
	if at := h.Client(r); at.String() != "198.51.100.7" {
		t.Errorf("client %s", at)
	}
	v := &api.Request{Client: netip.MustParseAddr("2001:db8:1:2::3")}
	if got := h.ClientNetwork(v); got == "" || got == v.Client.String() {
		t.Errorf("network %s", got)
	}
}
