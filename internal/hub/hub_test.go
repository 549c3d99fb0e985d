package hub_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/loadout-dev/loadout/internal/encryption"
	"github.com/loadout-dev/loadout/internal/hub"
	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/store/storetest"
)

func TestProblems(t *testing.T) {
	n := team(t)
	root := n.signIn(t, "root", secret)
	for _, tt := range []struct {
		name, method, path, body string
		status                   int
		code                     string
	}{
		{"no such path", "GET", "/api/v1/nothing", "", 404, "not_found"},
		{"no such page", "GET", "/nothing", "", 404, "not_found"},
		{"another method", "DELETE", "/api/v1/users", "", 405, "method"},
		{"no JSON", "POST", "/api/v1/groups", "{", 400, "malformed"},
		{"no body", "POST", "/api/v1/groups", "", 400, "malformed"},
		{"another type", "POST", "/api/v1/groups", `{"name": 7}`, 422, "invalid"},
		{"an unknown field", "POST", "/api/v1/groups", `{"name": "web", "color": "red"}`, 422, "invalid"},
		{"a bad name", "POST", "/api/v1/groups", `{"name": "Web Team"}`, 422, "invalid"},
		{"a reserved name", "POST", "/api/v1/groups", `{"name": "public"}`, 422, "invalid"},
		{"not text", "POST", "/api/v1/groups", "{\"name\": \"web\", \"display\": \"a\\u0007b\"}", 422, "invalid"},
		{"a page that there is not", "GET", "/api/v1/users?after=xyz", "", 422, "invalid"},
		{"a limit that is too big", "GET", "/api/v1/users?limit=100000", "", 422, "invalid"},
		{"a page of the audit log", "GET", "/api/v1/audit?after=x", "", 422, "invalid"},
		{"too large", "POST", "/api/v1/groups", `{"name": "` + strings.Repeat("x", 2<<20) + `"}`, 413, "too_large"},
		{"the last admin", "PATCH", "/api/v1/users/me", `{"admin": false}`, 409, "last_admin"},
		{"the last admin disabled", "PATCH", "/api/v1/users/me", `{"disabled": true}`, 409, "last_admin"},
		{"the last admin deleted", "DELETE", "/api/v1/users/me", "", 409, "last_admin"},
		{"a name that is taken", "POST", "/api/v1/users", `{"name": "root"}`, 422, "invalid"},
		{"a setting that was changed", "PUT", "/api/v1/settings/audit", `{"days": 3, "generation": 7}`, 409, "changed"},
		{"a rule without a group", "PUT", "/api/v1/settings/sign-in", `{"rules": [{"claimed": "x"}], "generation": 0}`, 422, "invalid"},
		{"a rule for no group", "PUT", "/api/v1/settings/sign-in", `{"rules": [{"claimed": "x", "group": "y", "role": "owner"}], "generation": 0}`, 422, "invalid"},
		{"a token for nothing", "POST", "/api/v1/tokens", `{"name": "ci", "scopes": []}`, 422, "invalid"},
		{"a token for what there is not", "POST", "/api/v1/tokens", `{"name": "ci", "scopes": ["everything"]}`, 422, "invalid"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var body any
			if tt.body != "" || tt.method == "POST" {
				body = tt.body
			}
			if tt.name == "a name that is taken" {
				root.send(t, tt.method, tt.path, `{"name": "taken"}`).want(t, 201)
				root.send(t, tt.method, tt.path, `{"name": "taken"}`).wantProblem(t, 409, "exists")
				return
			}
			r := root.send(t, tt.method, tt.path, body)
			r.wantProblem(t, tt.status, tt.code)
			if tt.status == 405 && r.header.Get("Allow") != "GET, HEAD, POST" {
				t.Errorf("allowed is %q", r.header.Get("Allow"))
			}
		})
	}
	root.with("Content-Type", "text/plain").send(t, "POST", "/api/v1/groups", `{"name": "web"}`).wantProblem(t, 415, "media_type")
	caller{node: n, token: "lo_wrong"}.send(t, "GET", "/api/v1/me", nil).wantProblem(t, 401, "bad_token")
	n.anybody().with("Authorization", "Basic cm9vdDpyb290").send(t, "GET", "/api/v1/me", nil).wantProblem(t, 401, "bad_token")
}

func TestResponsesContainNoSecrets(t *testing.T) {
	n := team(t)
	root := n.signIn(t, "root", secret)
	const typed = "hunter2hunter2"
	answers := []reply{
		root.send(t, "POST", "/api/v1/login", `{"name": "root", "password": ["`+typed+`"]}`),
		root.send(t, "POST", "/api/v1/login", `{"name": "root", "password": "`+typed+`"`),
		root.send(t, "POST", "/api/v1/users", map[string]string{"name": typed + "!", "password": typed}),
		root.send(t, "PUT", "/api/v1/users/me/password", map[string]string{"current": typed, "password": typed}),
		root.send(t, "GET", "/api/v1/users?name="+typed, nil),
		root.send(t, "GET", "/"+typed, nil),
		root.send(t, "GET", "/api/v1/users/me", nil),
		root.send(t, "GET", "/api/v1/audit", nil),
	}
	for _, r := range answers {
		if strings.Contains(r.body, typed) || strings.Contains(r.body, "argon2") {
			t.Errorf("the answer is %s", r.body)
		}
	}
	for _, secret := range []string{typed, secret, root.cookie.Value, "argon2"} {
		if log := n.log.String(); strings.Contains(log, secret) || log == "" {
			t.Errorf("the log has %q:\n%s", secret, log)
		}
	}
}

func TestPanicBecomesResponse(t *testing.T) {
	n := team(t)
	n.Mount("GET /panic", func(http.ResponseWriter, *http.Request) { panic("a detail of the program") })
	n.Mount("GET /half", func(w http.ResponseWriter, _ *http.Request) {
		w.Write([]byte("half"))
		http.NewResponseController(w).Flush()
		panic("too late")
	})
	r := n.anybody().send(t, "GET", "/panic", nil)
	r.wantProblem(t, 500, "internal")
	if strings.Contains(r.body, "detail of") || !strings.Contains(n.log.String(), "a detail of the program") {
		t.Errorf("the answer is %s, and the log\n%s", r.body, n.log)
	}
	if r, err := n.send(n.anybody(), "GET", "/half", nil); err == nil {
		t.Errorf("half of an answer is taken for a whole one: %s", r.body)
	}
}

func TestHeadersOfEveryResponse(t *testing.T) {
	n := team(t)
	for _, path := range []string{"/", "/api/v1/me", "/nothing", "/healthz"} {
		h := n.anybody().send(t, "GET", path, nil).header
		for name, want := range map[string]string{
			"X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY", "Cache-Control": "no-store",
			"Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'", "Strict-Transport-Security": "",
		} {
			if h.Get(name) != want {
				t.Errorf("%s of %s is %q, want %q", name, path, h.Get(name), want)
			}
		}
	}
}

func TestHTTPSAddressMakesCookiesSecure(t *testing.T) {
	n := start(t, hub.Options{Accounts: true, FirstAdmin: &hub.FirstAdmin{Name: "root", Password: secret}, Public: "https://hub.example.com/"})
	r := n.anybody().with("Origin", "https://hub.example.com").send(t, "POST", "/api/v1/login", map[string]string{"name": "root", "password": secret}).want(t, 200)
	if c := cookieOf(t, r); !c.Secure || !strings.HasPrefix(c.Name, "__Host-") {
		t.Errorf("the cookie is %v", c)
	}
	if r.header.Get("Strict-Transport-Security") == "" {
		t.Error("browsers are not told to stay with https")
	}
}

// The request ID and the client address are taken from trusted proxies only.
func TestForwardedHeaders(t *testing.T) {
	known := start(t, hub.Options{Accounts: true, Proxies: []string{"127.0.0.1"}})
	stranger := start(t, hub.Options{Accounts: true})
	for _, n := range []*node{known, stranger} {
		ask := func(id string) string {
			return n.anybody().with("X-Request-Id", id).with("X-Forwarded-For", "198.51.100.7").send(t, "GET", "/", nil).header.Get("X-Request-Id")
		}
		if got := ask("from-proxy-1"); (got == "from-proxy-1") != (n == known) {
			t.Errorf("the id is %s", got)
		}
		if got := ask("no id"); got == "no id" {
			t.Error("any text is an id")
		}
		if got := strings.Contains(n.log.String(), "client=198.51.100.7"); got != (n == known) {
			t.Errorf("the client is\n%s", n.log)
		}
	}
}

func TestRequestsAreLimited(t *testing.T) {
	n := start(t, hub.Options{Accounts: true, FirstAdmin: &hub.FirstAdmin{Name: "root", Password: secret}, Rate: 1})
	root := n.signIn(t, "root", secret)
	for range 10 {
		if r := n.anybody().send(t, "GET", "/", nil); r.status == 429 {
			r.wantProblem(t, 429, "too_often")
			root.send(t, "GET", "/api/v1/me", nil).want(t, 200) // who signed in has limits of his own
			n.anybody().send(t, "GET", "/healthz", nil).want(t, 200)
			return
		}
	}
	t.Error("a network may ask as often as it likes")
}

func TestMetrics(t *testing.T) {
	n := team(t)
	root := n.signIn(t, "root", secret)
	root.send(t, "GET", "/api/v1/users/some-id", nil).want(t, 404)
	root.send(t, "GET", "/made-up-by-a-stranger", nil).want(t, 404)
	got := root.send(t, "GET", "/metrics", nil).want(t, 200).body
	for _, want := range []string{
		`loadout_http_requests_total{route="GET /api/v1/users/{user}",status="404"} 1`,
		`loadout_http_requests_total{route="none",status="404"} 1`,
		`loadout_sign_ins_total{by="password",result="ok"} 1`,
		`loadout_build_info{version="test"} 1`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %s", want)
		}
	}
	if strings.Contains(got, "made-up") || strings.Contains(got, "some-id") {
		t.Errorf("what was asked for is remembered:\n%s", got)
	}
}

// Each node knows at once what happened on another.
func TestTwoNodes(t *testing.T) {
	for name, address := range map[string]func(testing.TB) string{"SQLite": storetest.SQLite, "PostgreSQL": storetest.Postgres} {
		t.Run(name, func(t *testing.T) {
			o := hub.Options{Database: address(t), Keys: []encryption.Key{encryption.NewKey()}, Accounts: true, FirstAdmin: &hub.FirstAdmin{Name: "root", Password: secret}}
			one := start(t, o)
			o.FirstAdmin = &hub.FirstAdmin{Name: "root", Password: "of another node"}
			two := start(t, o)
			root := one.signIn(t, "root", secret)
			there := caller{node: two, cookie: root.cookie}
			there.send(t, "GET", "/api/v1/me", nil).want(t, 200)
			_, bob := two.newUser(t, there, "bob")
			bob.node = one
			bob.send(t, "GET", "/api/v1/me", nil).want(t, 200)
			root.send(t, "POST", "/api/v1/logout", nil).want(t, 204)
			there.send(t, "GET", "/api/v1/me", nil).want(t, 401)
		})
	}
}

// Nodes that would make keys of their own could not read each other's secrets.
func TestPostgresNeedsAKey(t *testing.T) {
	_, err := hub.Open(t.Context(), hub.Options{Data: t.TempDir(), Database: storetest.Postgres(t)})
	if _, ok := errors.AsType[*hub.KeyError](err); !ok {
		t.Errorf("error %v", err)
	}
}

func TestKeys(t *testing.T) {
	ctx := t.Context()
	open := func(dir string, keys ...encryption.Key) (*hub.Hub, error) {
		return hub.Open(ctx, hub.Options{Data: dir, Keys: keys, Cost: cheap})
	}
	dir := t.TempDir()
	h := must(open(dir))(t)
	keys := must(encryption.LoadKeys(filepath.Join(dir, hub.KeyFile)))(t)
	sealed := must(must(encryption.New(keys...))(t).Encrypt([]byte("x"), encryption.Label{Owner: "user/1", Name: "n"}))(t)
	err := h.DB().Secrets.Put(ctx, store.Secret{Owner: "user:1", Name: "n", Encrypted: []byte(sealed), KeyID: keys[0].ID()})
	if err := errors.Join(err, h.Close()); err != nil {
		t.Fatal(err)
	}

	newer := encryption.NewKey()
	for _, tt := range []struct {
		name  string
		keys  []encryption.Key
		gone  bool
		works bool
	}{
		{"the file", nil, false, true},
		{"another key", []encryption.Key{newer}, false, false},
		{"a new key before the old one", []encryption.Key{newer, keys[0]}, false, true},
		{"the file is gone", nil, true, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.gone {
				if err := os.Remove(filepath.Join(dir, hub.KeyFile)); err != nil {
					t.Fatal(err)
				}
			}
			h, err := open(dir, tt.keys...)
			if _, wrong := errors.AsType[*hub.KeyError](err); wrong == tt.works {
				t.Errorf("error %v", err)
			}
			if h != nil && h.Close() != nil {
				t.Error("it cannot be closed")
			}
		})
	}
}

func TestMissingKeyIsFoundAmongManySecrets(t *testing.T) {
	ctx, dir, known := t.Context(), t.TempDir(), encryption.NewKey()
	o := hub.Options{Data: dir, Keys: []encryption.Key{encryption.NewKey(), known}, Cost: cheap}
	h := must(hub.Open(ctx, o))(t)
	put := func(name, key string) error {
		return h.DB().Secrets.Put(ctx, store.Secret{Owner: "user:1", Name: name, Encrypted: []byte("x"), KeyID: key})
	}
	err := put("z", encryption.NewKey().ID())
	for i := range store.MaxPage {
		err = errors.Join(err, put(fmt.Sprint(i), known.ID()))
	}
	if err := errors.Join(err, h.Close()); err != nil {
		t.Fatal(err)
	}
	h, err = hub.Open(ctx, o)
	if _, ok := errors.AsType[*hub.KeyError](err); !ok {
		t.Errorf("hub %v, error %v", h, err)
	}
}

// A stopping hub reports it, completes running requests, and accepts no new ones.
func TestServeDrains(t *testing.T) {
	h := must(hub.Open(t.Context(), hub.Options{Data: t.TempDir(), Accounts: true, Drain: time.Minute, Cost: cheap}))(t)
	defer h.Close()
	entered, leave := make(chan bool), make(chan bool)
	h.Mount("GET /slow", func(w http.ResponseWriter, r *http.Request) {
		entered <- true
		<-h.Draining()
		<-leave
		fmt.Fprint(w, "whole")
	})
	l := must(net.Listen("tcp", "127.0.0.1:0"))(t)
	ctx, end := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- h.Serve(ctx, l) }()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	type got struct {
		body string
		err  error
	}
	answer := make(chan got)
	go func() {
		res, err := client.Get("http://" + l.Addr().String() + "/slow")
		if err != nil {
			answer <- got{err: err}
			return
		}
		defer res.Body.Close()
		data, err := io.ReadAll(res.Body)
		answer <- got{string(data), err}
	}()
	<-entered
	end()
	<-h.Draining()
	leave <- true
	if a := <-answer; a.err != nil || a.body != "whole" {
		t.Errorf("what was under way got %q, %v", a.body, a.err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if _, err := client.Get("http://" + l.Addr().String() + "/healthz"); err == nil {
		t.Error("it still serves")
	}
}

// What does not end in time is cut, and waited for.
func TestServeClosesStuckRequests(t *testing.T) {
	h := must(hub.Open(t.Context(), hub.Options{Data: t.TempDir(), Accounts: true, Drain: time.Millisecond, Cost: cheap}))(t)
	defer h.Close()
	entered := make(chan bool)
	var left atomic.Bool
	h.Mount("GET /endless", func(_ http.ResponseWriter, r *http.Request) {
		entered <- true
		<-r.Context().Done()
		time.Sleep(20 * time.Millisecond) // it takes a moment to end
		left.Store(true)
	})
	l := must(net.Listen("tcp", "127.0.0.1:0"))(t)
	ctx, end := context.WithCancel(t.Context())
	ended, answered := make(chan error), make(chan error)
	go func() { ended <- h.Serve(ctx, l) }()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	go func() {
		_, err := client.Get("http://" + l.Addr().String() + "/endless")
		answered <- err
	}()
	<-entered
	end()
	if err := <-ended; err != nil || !left.Load() {
		t.Errorf("%v, and the request is over: %v", err, left.Load())
	}
	if err := <-answered; err == nil {
		t.Error("it was answered")
	}
}

func TestReadiness(t *testing.T) {
	n := team(t)
	n.anybody().send(t, "GET", "/readyz", nil).want(t, 200)
	if err := n.DB().Close(); err != nil {
		t.Fatal(err)
	}
	n.anybody().send(t, "GET", "/readyz", nil).wantProblem(t, 503, "unavailable")
	n.anybody().send(t, "GET", "/healthz", nil).want(t, 200)
}

func TestExpiredDataIsRemoved(t *testing.T) {
	n := team(t)
	ctx := t.Context()
	root := n.signIn(t, "root", secret)
	me := root.send(t, "GET", "/api/v1/me", nil).want(t, 200)
	var who struct{ User struct{ ID string } }
	me.into(t, &who)
	now := time.Now()
	for i, l := range []store.Login{{Created: now, Expires: now.Add(-time.Hour)}, {Created: now.Add(-48 * time.Hour), Expires: now.Add(time.Hour)}} {
		l.Hash, l.UserID = []byte{byte(i)}, who.User.ID
		must(n.DB().Logins.Create(ctx, l))(t)
	}
	old := store.AuditRecord{At: now.AddDate(0, 0, -31), Actor: "someone", Action: "long-ago"}
	if err := n.DB().Audit.Append(ctx, old); err != nil {
		t.Fatal(err)
	}
	p, _ := n.newcomer(t, "ada", account.AllScopes)
	skill := n.put(t, p, ownPlace(p), "pdf", "Read the PDF.").ID
	used := now.AddDate(0, 0, -store.OwnUseDays-1)
	ownUses := func() int { return len(must(n.DB().Usage.ListOwn(ctx, string(p.User), used.AddDate(0, 0, 1)))(t)) }
	for ownUses() == 0 { // unless the hub has merged the use, which then is of today
		if err := errors.Join(n.DB().Usage.Add(ctx, store.SkillUsage{SkillID: skill, Owner: string(p.User), Loads: 1, LastUsed: used}), n.DB().MergeUsage(ctx, used)); err != nil {
			t.Fatal(err)
		}
	}
	records := func() string { return root.send(t, "GET", "/api/v1/audit?action=long-ago", nil).want(t, 200).body }
	if err := n.RemoveExpired(ctx); err != nil {
		t.Fatal(err)
	}
	if ownUses() != 0 {
		t.Error("an old use is left")
	}
	if left := must(n.DB().Logins.ListByUser(ctx, who.User.ID))(t); len(left) != 1 {
		t.Errorf("%d sign-ins are left", len(left))
	}
	if !strings.Contains(records(), "long-ago") {
		t.Error("the audit log lost a record, and nobody asked for that")
	}
	root.send(t, "PUT", "/api/v1/settings/audit", map[string]int{"days": 30, "generation": 0}).want(t, 200)
	if err := n.RemoveExpired(ctx); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(records(), "long-ago") {
		t.Error("the audit log keeps what is too old")
	}
}

func TestLoggerIsOptional(t *testing.T) {
	n := start(t, hub.Options{Logger: slog.New(slog.DiscardHandler)})
	n.anybody().send(t, "GET", "/api/v1/me", nil).want(t, 200)
}

func TestMissingBodiesTimeOut(t *testing.T) {
	t.Parallel()
	n := team(t)
	conns := map[string]net.Conn{}
	for _, what := range []string{"POST /api/v1/users", "POST /mcp", "POST /nowhere", "GET /healthz"} {
		conn := must(net.Dial("tcp", n.Listener.Addr().String()))(t)
		defer conn.Close()
		must(io.WriteString(conn, what+" HTTP/1.1\r\nHost: hub\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{"))(t)
		conn.SetReadDeadline(time.Now().Add(time.Minute))
		conns[what] = conn
	}
	for what, conn := range conns {
		if got, err := io.ReadAll(conn); err != nil || !strings.HasPrefix(string(got), "HTTP/1.1 ") {
			t.Errorf("%s: %q, %v", what, got, err)
		}
	}
}
