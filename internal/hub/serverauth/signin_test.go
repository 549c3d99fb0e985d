package serverauth_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/encryption"
	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/agents"
	"github.com/loadout-dev/loadout/internal/hub/serverauth"
	"github.com/loadout-dev/loadout/internal/limittest"
	"github.com/loadout-dev/loadout/internal/oauth"
	"github.com/loadout-dev/loadout/internal/oauth/oauthtest"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/store/storetest"
	"github.com/loadout-dev/loadout/internal/upstream"
)

// signIns is a hub's sign-ins, with a user and a server that requires one.
type signIns struct {
	*serverauth.Servers
	t      *testing.T
	db     *store.DB
	kinds  *agents.Registry
	issuer *oauthtest.Issuer
	server string // address
	ada    account.Principal
}

var (
	guarded = agents.Subject{Kind: agents.ServerKind, Name: "guarded"}
	from    = serverauth.Redirection{URL: "http://127.0.0.1:9/servers/callback", Browser: "b1", ReturnPath: "/servers?q=x"}
)

func newSignIns(t *testing.T, page string) *signIns {
	db := storetest.Open(t, storetest.SQLite(t))
	people(t, db)
	sealer, err := encryption.New(encryption.NewKey())
	if err != nil {
		t.Fatal(err)
	}
	private := []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	s := &signIns{t: t, db: db, issuer: oauthtest.New(t), ada: account.Principal{User: "ada", Name: "ada", Scopes: account.AllScopes}}
	s.server = s.issuer.Serve(t)
	s.kinds = agents.New(db, &agents.Options{Cipher: sealer, Private: private})
	s.Servers = serverauth.New(serverauth.Options{DB: db, Kinds: s.kinds, Cipher: sealer, Private: private, Node: "node", Page: page})
	s.apply("guarded", fmt.Sprintf("{url: %q}", s.server))
	return s
}

func (s *signIns) apply(name, spec string) {
	s.t.Helper()
	text := "{kind: MCPServer, metadata: {name: " + name + "}, spec: " + spec + "}"
	r, err := s.kinds.Apply(s.t.Context(), s.ada, agents.Parse([]byte(text), "a.yaml"), false)
	if err != nil || !r.Committed {
		s.t.Fatal(r, err)
	}
}

// definition returns the server with its variables resolved.
func (s *signIns) definition() *upstream.Config {
	s.t.Helper()
	server, v, err := s.kinds.ServerForUse(s.t.Context(), s.ada, guarded)
	if err != nil {
		s.t.Fatal(err)
	}
	c, _ := server.Resolve(v)
	return c
}

// begin starts a sign-in and returns the answer of the issuer.
func (s *signIns) begin() url.Values {
	s.t.Helper()
	page, err := s.Begin(s.t.Context(), s.ada, guarded, from)
	if err != nil {
		s.t.Fatal(err)
	}
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	res, err := client.Get(page)
	if err != nil {
		s.t.Fatal(err)
	}
	res.Body.Close()
	u, err := url.Parse(res.Header.Get("Location"))
	if err != nil || !strings.HasPrefix(u.String(), from.URL) {
		s.t.Fatalf("the issuer redirects to %v, %v", u, err)
	}
	return u.Query()
}

func (s *signIns) state() serverauth.State {
	s.t.Helper()
	c := s.definition()
	all, err := s.States(s.t.Context(), "ada", []*upstream.Config{c})
	if err != nil {
		s.t.Fatal(err)
	}
	return all[c.Digest()].State
}

// audited returns the last record of the audit log.
func (s *signIns) audited() string {
	s.t.Helper()
	all, err := s.db.Audit.List(s.t.Context(), store.AuditQuery{Actor: "ada", Limit: 1})
	if err != nil || len(all) != 1 {
		s.t.Fatal(all, err)
	}
	return all[0].Action + " " + all[0].Subject + " " + all[0].Decision
}

// get sends a request with the user's token, if there is one.
func (s *signIns) get(user account.UserID) (int, error) {
	ctx, c := s.t.Context(), s.definition()
	h := s.Handler(user, c, s.server)
	req, _ := http.NewRequestWithContext(ctx, "POST", s.server, strings.NewReader("{}"))
	source, err := h.TokenSource(ctx)
	if err != nil {
		return 0, err
	}
	if source != nil {
		token, err := source.Token()
		if err != nil {
			return 0, err
		}
		token.SetAuthHeader(req)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	if res.StatusCode == http.StatusUnauthorized {
		return res.StatusCode, h.Authorize(ctx, req, res)
	}
	return res.StatusCode, nil
}

func TestSignInAndOut(t *testing.T) {
	s := newSignIns(t, "https://hub.example.com")
	ctx := t.Context()
	fingerprints := func() string {
		t.Helper()
		each, err := s.Fingerprints(ctx, "ada", []*upstream.Config{s.definition()})
		if err != nil || len(each) != 1 {
			t.Fatal(each, err)
		}
		all, err := s.Fingerprint(ctx, "ada")
		if err != nil {
			t.Fatal(err)
		}
		return each[0] + all
	}
	if s.state() != "" {
		t.Errorf("a server of which nothing is known is %q", s.state())
	}
	before := fingerprints()
	if status, err := s.get("ada"); status != http.StatusUnauthorized || err == nil || !strings.Contains(err.Error(), "https://hub.example.com/servers?q=guarded") {
		t.Errorf("without a sign-in: %d, %v", status, err)
	}
	if s.state() != serverauth.Needed {
		t.Errorf("after a refused request the sign-in is %q", s.state())
	}
	needed := fingerprints()
	back, err := s.Finish(ctx, s.ada, "b1", s.begin())
	if err != nil || back != "/servers?q=x" || s.state() != serverauth.SignedIn || s.audited() != "server.sign_in MCPServer/guarded allowed" {
		t.Errorf("signed in: %q, %v, state %q, %s", back, err, s.state(), s.audited())
	}
	signedIn := fingerprints()
	if before == needed || needed == signedIn || signedIn == before {
		t.Errorf("fingerprints %q, %q and %q", before, needed, signedIn)
	}
	if status, err := s.get("ada"); status == http.StatusUnauthorized || err != nil {
		t.Errorf("signed in: %d, %v", status, err)
	}
	for _, user := range []account.UserID{"bob", ""} { // "" is a shared connection
		if status, err := s.get(user); status != http.StatusUnauthorized || err == nil {
			t.Errorf("user %q: %d, %v", user, status, err)
		}
	}
	all, err := s.List(ctx, s.ada)
	if err != nil || len(all) != 1 || all[0].Server != s.server || all[0].State != serverauth.SignedIn {
		t.Errorf("listed %+v, %v", all, err)
	}
	digest, found, revoked, err := s.SignOut(ctx, s.ada, guarded)
	if digest != s.definition().Digest() || !found || !revoked || err != nil || s.issuer.ValidTokens() != 0 || s.audited() != "server.sign_out MCPServer/guarded allowed" {
		t.Errorf("signed out: %q, %t, %t, %v, %d tokens", digest, found, revoked, err, s.issuer.ValidTokens())
	}
	if s.state() != serverauth.Needed {
		t.Errorf("signed out the sign-in is %q", s.state())
	}
	if _, found, revoked, err := s.SignOut(ctx, s.ada, guarded); found || revoked || err != nil {
		t.Errorf("signed out again: %t, %t, %v", found, revoked, err)
	}
}

// A sign-in ends in the browser in which it began, once, for the user and the
// definition with which it began.
func TestFinishFails(t *testing.T) {
	s := newSignIns(t, "")
	ctx := t.Context()
	bob := account.Principal{User: "bob", Name: "bob", Scopes: account.AllScopes}
	answer := s.begin()
	for name, tt := range map[string]struct {
		p       account.Principal
		browser string
		answer  url.Values
	}{
		"another browser": {s.ada, "b2", answer}, "no browser": {s.ada, "", answer}, "another user": {bob, "b1", answer}, "no state": {s.ada, "b1", url.Values{}},
		"another state": {s.ada, "b1", url.Values{"state": {"x"}}},
	} {
		if back, err := s.Finish(ctx, tt.p, tt.browser, tt.answer); !errors.Is(err, serverauth.ErrNoAttempt) || back != "" {
			t.Errorf("%s: %q, %v", name, back, err)
		}
	}
	answer = s.begin()
	if _, err := s.Finish(ctx, s.ada, "b1", answer); err != nil {
		t.Error(err)
	}
	if _, err := s.Finish(ctx, s.ada, "b1", answer); !errors.Is(err, serverauth.ErrNoAttempt) {
		t.Errorf("again: %v", err)
	}
	answer = s.begin()
	answer.Set("code", "wrong")
	back, err := s.Finish(ctx, s.ada, "b1", answer)
	if e, ok := errors.AsType[*serverauth.FailedError](err); !ok || e.Error() == "" || back != from.ReturnPath || s.audited() != "server.sign_in MCPServer/guarded denied" {
		t.Errorf("a wrong code: %q, %v, %s", back, err, s.audited())
	}
	s.issuer.Deny("access_denied")
	if _, err := s.Finish(ctx, s.ada, "b1", s.begin()); err == nil || s.audited() != "server.sign_in MCPServer/guarded denied" {
		t.Errorf("denied: %v", err)
	}
	s.issuer.Deny("")
	answer = s.begin()
	s.apply("guarded", fmt.Sprintf("{url: %q, headers: {X: y}}", s.server))
	if _, err := s.Finish(ctx, s.ada, "b1", answer); !errors.Is(err, store.ErrConflict) {
		t.Errorf("another definition: %v", err)
	}
}

func TestSignInIsNotPossible(t *testing.T) {
	s := newSignIns(t, "")
	ctx := t.Context()
	s.apply("configured", fmt.Sprintf("{url: %q, headers: {authorization: '${{secrets.TOKEN}}'}}", s.server))
	configured, own := agents.Subject{Kind: agents.ServerKind, Name: "configured"}, agents.NamespaceOwner(store.UserNamespace("ada"))
	digest, err := s.kinds.SubjectDigest(ctx, s.ada, configured)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.kinds.Secrets().Set(ctx, s.ada, own, "TOKEN", "t0ken-of-ada"), s.kinds.Secrets().Grant(ctx, s.ada, own, "TOKEN", configured, digest, "")); err != nil {
		t.Fatal(err)
	}
	s.apply("unset", fmt.Sprintf("{url: %q, headers: {X: '${{user.key}}'}}", s.server))
	s.apply("gone", "{url: 'http://127.0.0.1:1/mcp'}")
	readOnly := s.ada
	readOnly.Scopes = 0
	of := func(name string) agents.Subject { return agents.Subject{Kind: agents.ServerKind, Name: name} }
	isDenied := func(err error) bool { _, ok := errors.AsType[*account.DeniedError](err); return ok }
	isFailed := func(err error) bool { _, ok := errors.AsType[*serverauth.FailedError](err); return ok }
	for name, tt := range map[string]struct {
		p     account.Principal
		of    agents.Subject
		begin func(error) bool
		end   func(error) bool
	}{
		"credentials": {s.ada, configured, func(err error) bool { return errors.Is(err, serverauth.ErrNotNeeded) }, func(err error) bool { return err == nil }},
		"no server":   {s.ada, of("none"), func(err error) bool { return err != nil }, func(err error) bool { return err != nil }},
		"no right":    {readOnly, guarded, isDenied, isDenied},
		"no answer":   {s.ada, of("gone"), isFailed, func(err error) bool { return err == nil }},
		"no value":    {s.ada, of("unset"), func(err error) bool { return errors.Is(err, serverauth.ErrNotConfigured) }, func(err error) bool { return err == nil }},
	} {
		if page, err := s.Begin(ctx, tt.p, tt.of, from); page != "" || !tt.begin(err) {
			t.Errorf("%s: begin %q, %v", name, page, err)
		}
		if _, found, _, err := s.SignOut(ctx, tt.p, tt.of); found || !tt.end(err) {
			t.Errorf("%s: sign out %t, %v", name, found, err)
		}
	}
	if _, err := s.Finish(ctx, readOnly, "b1", s.begin()); !isDenied(err) {
		t.Errorf("finish: %v", err)
	}
	if _, err := s.List(ctx, readOnly); !isDenied(err) {
		t.Errorf("list: %v", err)
	}
	if _, err := s.Forget(ctx, readOnly, "00"); !isDenied(err) {
		t.Errorf("forget: %v", err)
	}
	for _, c := range []*upstream.Config{
		{Name: "stdio", Command: "x"}, {Name: "sse", Type: "sse", URLs: []string{"https://a.example.com"}}, {Name: "user", URLs: []string{"https://u:p@a.example.com"}},
		{Name: "header", URLs: []string{"https://a.example.com"}, Headers: map[string]string{"AUTHORIZATION": "x"}}, {Name: "ftp", URLs: []string{"https://a.example.com", "ftp://a.example.com"}},
	} {
		if h := s.Handler("ada", c, "https://a.example.com"); h != nil {
			t.Errorf("%s has a sign-in", c.Name)
		}
	}
	open := &upstream.Config{Name: "open", Type: upstream.HTTP, URLs: []string{"https://a.example.com/${x}"}}
	if s.Handler("ada", open, "https://a.example.com") == nil {
		t.Error("a server without credentials has no sign-in")
	}
	if all, err := s.States(ctx, "ada", []*upstream.Config{open}); len(all) != 0 || err != nil {
		t.Errorf("a server with variables in its address: %v, %v", all, err)
	}
}

// A user can forget a sign-in by its ID, even if it cannot be read or the server is gone.
func TestForget(t *testing.T) {
	s := newSignIns(t, "")
	ctx := t.Context()
	for _, id := range []string{"", "zz", "00"} {
		if _, err := s.Forget(ctx, s.ada, id); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("ID %q: %v", id, err)
		}
	}
	if _, err := s.Finish(ctx, s.ada, "b1", s.begin()); err != nil {
		t.Fatal(err)
	}
	list := func() []serverauth.UserSignIn {
		t.Helper()
		all, err := s.List(ctx, s.ada)
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	if err := s.kinds.Delete(ctx, s.ada, agents.ServerKind, "", "guarded", false); err != nil {
		t.Fatal(err)
	}
	revoked, err := s.Forget(ctx, s.ada, list()[0].ID)
	u, _ := url.Parse(s.server)
	if !revoked || err != nil || len(list()) != 0 || s.audited() != "server.sign_out "+u.Host+" allowed" {
		t.Errorf("forgotten: %t, %v, left %v, %s", revoked, err, list(), s.audited())
	}
	if err := s.db.SignIns.Put(ctx, store.SignIn{UserID: "ada", Server: make([]byte, 32), Encrypted: []byte("unreadable"), KeyID: "x"}); err != nil {
		t.Fatal(err)
	}
	all, err := s.List(ctx, s.ada)
	if err != nil {
		return // damaged texts are an error
	}
	if len(all) != 1 || all[0].State != serverauth.Ended || all[0].Server != "" {
		t.Errorf("unreadable: %+v", all)
	}
	if revoked, err := s.Forget(ctx, s.ada, all[0].ID); revoked || err != nil || len(list()) != 0 {
		t.Errorf("unreadable: %t, %v, left %v", revoked, err, list())
	}
}

// Whichever step fails, the operation fails and leaves the sign-in as it was, and a list
// is never a part of it.
func TestStepsThatFail(t *testing.T) {
	s := newSignIns(t, "")
	limittest.CancelAtEach(t, func(ctx context.Context) error {
		page, err := s.Begin(ctx, s.ada, guarded, from)
		if err == nil && page == "" {
			t.Error("no page, without an error")
		}
		return err
	})
	if _, err := s.Finish(t.Context(), s.ada, "b1", s.begin()); err != nil {
		t.Fatal(err)
	}
	c := []*upstream.Config{s.definition()}
	limittest.CancelAtEach(t, func(ctx context.Context) error {
		all, err := s.List(ctx, s.ada)
		if err == nil && len(all) != 1 {
			t.Errorf("listed %v", all)
		}
		return err
	})
	limittest.CancelAtEach(t, func(ctx context.Context) error {
		all, err := s.States(ctx, "ada", c)
		if err == nil && len(all) != 1 {
			t.Errorf("states %v", all)
		}
		return err
	})
	limittest.CancelAtEach(t, func(ctx context.Context) error {
		all, err := s.Fingerprints(ctx, "ada", c)
		if one, err2 := s.Fingerprint(ctx, "ada"); err == nil && err2 == nil && (all[0] == "" || one == "") {
			t.Errorf("fingerprints %q and %q", all, one)
		} else if err == nil {
			err = err2
		}
		return err
	})
	limittest.CancelAtEach(t, func(ctx context.Context) error {
		_, found, _, err := s.SignOut(ctx, s.ada, guarded)
		if err == nil && !found {
			t.Error("no sign-in found, without an error")
		}
		return err
	})
	if err := s.Prune(t.Context()); err != nil {
		t.Error(err)
	}
}

// A sign-in to a server that a user configured connects to public addresses only,
// and to those that the operator allows.
func TestUserServersReachNoPrivateAddress(t *testing.T) {
	s := newSignIns(t, "")
	cipher, err := encryption.New(encryption.NewKey())
	if err != nil {
		t.Fatal(err)
	}
	for allowed, private := range map[bool][]netip.Prefix{false: nil, true: {netip.MustParsePrefix("127.0.0.0/8")}} {
		servers := serverauth.New(serverauth.Options{DB: s.db, Kinds: s.kinds, Cipher: cipher, Private: private, Node: "node"})
		page, err := servers.Begin(t.Context(), s.ada, guarded, from)
		if _, refused := errors.AsType[*oauth.PrivateAddressError](err); refused == allowed || (page != "") != allowed {
			t.Errorf("allowed %t: page %q, %v", allowed, page, err)
		}
	}
}
