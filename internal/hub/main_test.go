package hub_test

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/loadout-dev/loadout/internal/hub"
	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/api"
	"github.com/loadout-dev/loadout/internal/store/storetest"
)

func TestMain(m *testing.M) {
	code := storetest.Main(m)
	if err := goleak.Find(); code == 0 && err != nil {
		os.Stderr.WriteString(err.Error() + "\n")
		code = 1
	}
	os.Exit(code)
}

// must returns a result, or ends the test.
func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// cheap is a cost at which a test need not wait.
var cheap = account.Cost{Memory: 64, Time: 1, Lanes: 1}

const secret = "a long enough one"

// node is a hub behind a server on loopback.
type node struct {
	*hub.Hub
	*httptest.Server
	log *syncBuffer
}

// syncBuffer is written to by requests, and read by tests.
type syncBuffer struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.all.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.all.String()
}

// start opens a hub. Options that are not set get values for tests.
func start(t testing.TB, o hub.Options) *node {
	t.Helper()
	log := &syncBuffer{}
	if o.Data == "" {
		o.Data = t.TempDir()
	}
	if o.Rate == 0 {
		o.Rate = -1
	}
	if o.Database == "" {
		storetest.CreateSQLite(t, filepath.Join(o.Data, hub.DatabaseFile))
	}
	o.Cost, o.Version = cheap, "test"
	if o.Logger == nil {
		o.Logger = slog.New(slog.NewTextHandler(log, nil))
	}
	var handler http.Handler
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { handler.ServeHTTP(w, r) }))
	if o.Provider != nil {
		o.Public = server.URL
	}
	h, err := hub.Open(t.Context(), o)
	if err != nil {
		server.Close()
		t.Fatal(err)
	}
	handler = h.Handler()
	n := &node{Hub: h, Server: server, log: log}
	t.Cleanup(func() {
		n.Server.Close()
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	return n
}

// team is a hub with accounts, and an administrator.
func team(t testing.TB) *node {
	t.Helper()
	return start(t, hub.Options{FirstAdmin: &hub.FirstAdmin{Name: "root", Password: secret}, Accounts: true})
}

// reply is an answer that was read.
type reply struct {
	status int
	header http.Header
	body   string
}

// into reads the body.
func (r reply) into(t testing.TB, v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(r.body), v); err != nil {
		t.Fatalf("%q: %v", r.body, err)
	}
}

func (r reply) text(t testing.TB, name string) string {
	t.Helper()
	var fields map[string]any
	r.into(t, &fields)
	text, _ := fields[name].(string)
	return text
}

// want fails the test if a response has another status.
func (r reply) want(t testing.TB, status int) reply {
	t.Helper()
	if r.status != status {
		t.Fatalf("status %d, want %d: %s", r.status, status, r.body)
	}
	return r
}

// wantProblem checks that an answer is an error with a code and a next step.
func (r reply) wantProblem(t testing.TB, status int, code string) {
	t.Helper()
	if r.status != status || r.header.Get("Content-Type") != "application/problem+json" {
		t.Errorf("status %d and %s, want a problem with %d: %s", r.status, r.header.Get("Content-Type"), status, r.body)
		return
	}
	var p api.Problem
	r.into(t, &p)
	if p.Code != code || p.Status != status || p.Title == "" || p.Detail == "" || p.Request != r.header.Get("X-Request-Id") {
		t.Errorf("problem %s, want the code %s", r.body, code)
	}
}

// caller sends requests as one and the same.
type caller struct {
	node   *node
	cookie *http.Cookie
	token  string
	header http.Header // besides
}

func (c caller) with(name, value string) caller {
	c.header = c.header.Clone()
	if c.header == nil {
		c.header = http.Header{}
	}
	c.header.Set(name, value)
	return c
}

// typed is a body that is not JSON.
type typed struct{ kind, data string }

// send sends a request; body is marshalled unless it is text.
func (c caller) send(t testing.TB, method, path string, body any) reply {
	t.Helper()
	r, err := c.node.send(c, method, path, body)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func (n *node) send(c caller, method, path string, body any) (reply, error) {
	var in io.Reader
	kind := "application/json"
	switch b := body.(type) {
	case nil:
	case string:
		in = strings.NewReader(b)
	case typed:
		in, kind = strings.NewReader(b.data), b.kind
	default:
		data, err := json.Marshal(b)
		if err != nil {
			return reply{}, err
		}
		in = bytes.NewReader(data)
	}
	req, err := http.NewRequest(method, n.URL+path, in)
	if err != nil {
		return reply{}, err
	}
	if in != nil {
		req.Header.Set("Content-Type", kind)
	}
	for name, values := range c.header {
		req.Header[name] = values
	}
	if c.cookie != nil {
		req.AddCookie(c.cookie)
	}
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	resp, err := (&http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: n.Client().Transport}).Do(req)
	if err != nil {
		return reply{}, err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	return reply{resp.StatusCode, resp.Header, string(data)}, err
}

// anybody has not signed in.
func (n *node) anybody() caller { return caller{node: n} }

// signIn returns a user with a browser.
func (n *node) signIn(t testing.TB, name, password string) caller {
	t.Helper()
	r := n.anybody().send(t, "POST", "/api/v1/login", map[string]string{"name": name, "password": password}).want(t, 200)
	return caller{node: n, cookie: cookieOf(t, r)}
}

func cookieOf(t testing.TB, r reply) *http.Cookie {
	t.Helper()
	cookies := (&http.Response{Header: r.header}).Cookies()
	if len(cookies) != 1 {
		t.Fatalf("the cookies are %v", cookies)
	}
	return cookies[0]
}

// newUser makes a user, who signs in.
func (n *node) newUser(t testing.TB, admin caller, name string) (id string, user caller) {
	t.Helper()
	r := admin.send(t, "POST", "/api/v1/users", map[string]any{"name": name, "password": secret}).want(t, 201)
	return r.text(t, "id"), n.signIn(t, name, secret)
}
