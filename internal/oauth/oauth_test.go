package oauth_test

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout/internal/oauth"
	"github.com/loadout-dev/loadout/internal/oauth/oauthtest"
	"github.com/loadout-dev/loadout/internal/upstream"
)

const next = "sign in with: loadout servers login guarded"

// signIn is a user whose browser grants everything.
func signIn(t *testing.T, server string) *oauth.Login {
	return &oauth.Login{Target: oauth.Target{Server: server}, Print: func(string) {}, Show: func(page string) {
		go func() {
			if _, err := oauthtest.Browse(page); err != nil {
				t.Error(err)
			}
		}()
	}}
}

func login(t *testing.T, s *oauth.Store, server string) *oauth.Info {
	t.Helper()
	g, err := s.Login(t.Context(), signIn(t, server))
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// connect lists the tools of a server with a new store, like another process.
func connect(t *testing.T, dir, server string) error {
	t.Helper()
	s := pool(t, dir).Server(&upstream.Config{Name: "guarded", URLs: []string{server}}, "")
	return s.Connect(t.Context())
}

func pool(t *testing.T, dir string) *upstream.Pool {
	p := upstream.NewPool(&upstream.PoolOptions{Dialer: &upstream.Dialer{OAuth: func(_ *upstream.Config, at string) auth.OAuthHandler {
		return oauth.NewStore(oauth.FileStorage(dir), "me").Handler(at, next)
	}}})
	t.Cleanup(func() { p.Close() })
	return p
}

// token is what would be sent, "" for none.
func token(t *testing.T, s *oauth.Store, server string) string {
	t.Helper()
	source, err := s.Handler(server, next).TokenSource(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if source == nil {
		return ""
	}
	k, err := source.Token()
	if err != nil {
		t.Fatal(err)
	}
	return k.AccessToken
}

// files returns the files of a store except its locks.
func files(t *testing.T, dir string) []string {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestLoginPersists(t *testing.T) {
	issuer := oauthtest.New(t)
	server := issuer.Serve(t)
	dir := filepath.Join(t.TempDir(), "oauth")
	s := pool(t, dir).Server(&upstream.Config{Name: "guarded", URLs: []string{server}}, "")
	if err := s.Connect(t.Context()); err == nil || !strings.Contains(err.Error(), next) {
		t.Fatalf("before the sign-in: %v; want it to name the command", err)
	}
	if st := s.Status(); st.State != upstream.Dead || !strings.Contains(st.Error, next) {
		t.Errorf("before the sign-in: %s, %q", st.State, st.Error)
	}
	g := login(t, oauth.NewStore(oauth.FileStorage(dir), "me"), server)
	if g.Issuer != issuer.URL || !g.Renewed || g.Expiry.IsZero() || len(g.Scopes) != 1 {
		t.Errorf("granted %+v", g)
	}
	if err := connect(t, dir, server); err != nil {
		t.Error(err)
	}
	s.Retry() // the refused call now works without a restart
	res, err := s.Call(t.Context(), &mcp.CallToolParams{Name: "greet"}, nil)
	if err != nil || len(res.Content) != 1 {
		t.Errorf("a call answers %v, %v", res, err)
	}
	if issuer.RefreshCount() != 0 {
		t.Error("a token that is good was renewed")
	}
}

func TestFilesArePrivate(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("modes are of Unix")
	}
	issuer := oauthtest.New(t)
	server := issuer.Serve(t)
	dir := filepath.Join(t.TempDir(), "oauth")
	s := oauth.NewStore(oauth.FileStorage(dir), "me")
	login(t, s, server)
	for path, want := range map[string]fs.FileMode{dir: 0o700, files(t, dir)[0]: 0o600} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s has mode %v, %v; want %v", path, info.Mode(), err, want)
		}
	}
	if err := os.Chmod(files(t, dir)[0], 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Handler(server, next).TokenSource(t.Context()); err == nil || !strings.Contains(err.Error(), "readable by others") {
		t.Errorf("a file that others can read: %v", err)
	}
}

func TestK22TokensAreBoundToUserAndServer(t *testing.T) {
	issuer := oauthtest.New(t)
	one, other := issuer.Serve(t), issuer.Serve(t)
	dir := filepath.Join(t.TempDir(), "oauth")
	s := oauth.NewStore(oauth.FileStorage(dir), "me")
	login(t, s, one)
	if token(t, s, one) == "" {
		t.Error("no token for the server that was signed in to")
	}
	if got := token(t, s, other); got != "" {
		t.Error("another server of the same issuer gets the token")
	}
	if got := token(t, oauth.NewStore(oauth.FileStorage(dir), "you"), one); got != "" {
		t.Error("another person gets the token")
	}
	// A file under the name of another server is not taken either.
	login(t, s, other)
	all := files(t, dir)
	a, err := os.ReadFile(all[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(all[1], a, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err1 := s.Handler(one, next).TokenSource(t.Context())
	_, err2 := s.Handler(other, next).TokenSource(t.Context())
	if (err1 == nil) == (err2 == nil) {
		t.Errorf("after a file took the place of the other: %v, %v; want one error", err1, err2)
	}
}

func TestK22RefreshedOnce(t *testing.T) {
	issuer := oauthtest.New(t)
	server := issuer.Serve(t)
	dir := filepath.Join(t.TempDir(), "oauth")
	issuer.SetLifetime(time.Second) // shorter than a request may take, so that it counts as ended
	login(t, oauth.NewStore(oauth.FileStorage(dir), "me"), server)
	issuer.SetLifetime(time.Hour)
	tokens := make([]string, 8)
	var running sync.WaitGroup
	for i := range tokens {
		running.Go(func() { tokens[i] = token(t, oauth.NewStore(oauth.FileStorage(dir), "me"), server) })
	}
	running.Wait()
	for _, k := range tokens {
		if k == "" || k != tokens[0] {
			t.Fatal("users at once got different tokens")
		}
	}
	if n := issuer.RefreshCount(); n != 1 {
		t.Errorf("the refresh token was spent %d times, want once", n)
	}
	if f := issuer.LastRefresh(); f.Get("resource") != server {
		t.Errorf("the renewal is for %q, want %q", f.Get("resource"), server)
	}
	if err := connect(t, dir, server); err != nil {
		t.Error(err)
	}

	// The new refresh token was kept: a server that takes none of the tokens of
	// before is reached with one more renewal.
	issuer.RevokeAccess()
	if err := connect(t, dir, server); err != nil {
		t.Error(err)
	}
	if n := issuer.RefreshCount(); n != 2 {
		t.Errorf("%d renewals, want 2", n)
	}
}

func TestRefreshRefused(t *testing.T) {
	issuer := oauthtest.New(t)
	server := issuer.Serve(t)
	dir := filepath.Join(t.TempDir(), "oauth")
	issuer.SetLifetime(time.Second)
	login(t, oauth.NewStore(oauth.FileStorage(dir), "me"), server)
	issuer.RejectRefresh()
	s := pool(t, dir).Server(&upstream.Config{Name: "guarded", URLs: []string{server}}, "")
	err := s.Connect(t.Context())
	if _, ok := errors.AsType[*upstream.AuthError](err); !ok || !strings.Contains(err.Error(), next) {
		t.Errorf("error %v; want an AuthError that names the command", err)
	}
	if st := s.Status(); st.State != upstream.Dead || !strings.Contains(st.Error, next) {
		t.Errorf("state %s, %q", st.State, st.Error)
	}
	for _, f := range files(t, dir) { // it holds who the issuer was, and nothing to sign in with
		if b, err := os.ReadFile(f); err != nil || strings.Contains(string(b), "access-") || strings.Contains(string(b), "refresh-") {
			t.Errorf("what was refused is still in %s, %v", f, err)
		}
	}
}

// An issuer that does not answer takes nothing away.
func TestRefreshFails(t *testing.T) {
	issuer := oauthtest.New(t)
	server := issuer.Serve(t)
	dir := filepath.Join(t.TempDir(), "oauth")
	issuer.SetLifetime(time.Second)
	login(t, oauth.NewStore(oauth.FileStorage(dir), "me"), server)
	issuer.Close()
	_, err := oauth.NewStore(oauth.FileStorage(dir), "me").Handler(server, next).TokenSource(t.Context())
	if err == nil || strings.Contains(err.Error(), "refresh-") || strings.Contains(err.Error(), "access-") {
		t.Errorf("error %v; want one without a token", err)
	}
	if len(files(t, dir)) != 1 {
		t.Error("the sign-in is gone")
	}
}

func TestLogout(t *testing.T) {
	issuer := oauthtest.New(t)
	server := issuer.Serve(t)
	dir := filepath.Join(t.TempDir(), "oauth")
	s := oauth.NewStore(oauth.FileStorage(dir), "me")
	if found, _, err := s.Logout(t.Context(), server); found || err != nil {
		t.Errorf("without a sign-in: %v, %v", found, err)
	}
	login(t, s, server)
	found, revoked, err := s.Logout(t.Context(), server)
	if !found || !revoked || err != nil {
		t.Errorf("found %v, revoked %v, %v", found, revoked, err)
	}
	if issuer.ValidTokens() != 0 || len(files(t, dir)) != 0 {
		t.Errorf("%d tokens are good, and %v are there", issuer.ValidTokens(), files(t, dir))
	}
	login(t, s, server)
	issuer.Close()
	if found, revoked, err := s.Logout(t.Context(), server); !found || revoked || err != nil || len(files(t, dir)) != 0 {
		t.Errorf("without an issuer: found %v, revoked %v, %v", found, revoked, err)
	}
}

func TestLoginFails(t *testing.T) {
	issuer := oauthtest.New(t)
	server := issuer.Serve(t)
	plain := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(plain.Close)
	for _, tt := range []struct {
		name string
		l    func(*oauth.Login)
		want string
	}{
		{"the person says no", func(*oauth.Login) { issuer.Deny("access_denied") }, "sign-in denied: access_denied"},
		{"nobody comes", func(l *oauth.Login) { l.Show, l.Timeout = func(string) {}, time.Millisecond }, "sign-in timed out (limit 1ms)"},
		{"no sign-in is wanted", func(l *oauth.Login) { l.Server = plain.URL + "/mcp" }, "sign-in not required"},
		{"not https", func(l *oauth.Login) { l.Server = "http://192.0.2.1/mcp?key=s3cret" }, "does not use https"},
		{"a redirect elsewhere", func(l *oauth.Login) { l.Redirect = "https://example.com/callback" }, "want a loopback URL"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "oauth")
			l := signIn(t, server)
			tt.l(l)
			_, err := oauth.NewStore(oauth.FileStorage(dir), "me").Login(t.Context(), l)
			issuer.Deny("")
			if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "s3cret") {
				t.Errorf("error %v, want %q", err, tt.want)
			}
			if all := files(t, dir); len(all) != 0 {
				t.Errorf("it left %v", all)
			}
		})
	}
}

// A redirect without the state of the sign-in is refused, and the sign-in continues.
func TestStateIsChecked(t *testing.T) {
	issuer := oauthtest.New(t)
	server := issuer.Serve(t)
	l := signIn(t, server)
	l.Show = func(page string) {
		u, err := url.Parse(page)
		if err != nil {
			t.Error(err)
			return
		}
		go func() {
			for _, query := range []string{"?code=evil&state=other", "?code=evil", "?error=access_denied&state=other", ""} {
				if status, err := oauthtest.Browse(u.Query().Get("redirect_uri") + query); err != nil || status != http.StatusBadRequest {
					t.Errorf("%q is answered %d, %v", query, status, err)
				}
			}
			if status, err := oauthtest.Browse(page); err != nil || status != http.StatusOK {
				t.Errorf("the browser sees %d, %v", status, err)
			}
		}()
	}
	if _, err := oauth.NewStore(oauth.FileStorage(filepath.Join(t.TempDir(), "oauth")), "me").Login(t.Context(), l); err != nil {
		t.Error(err)
	}
}

// If the browser is on another machine, the user pastes the final address.
func TestPaste(t *testing.T) {
	issuer := oauthtest.New(t)
	server := issuer.Serve(t)
	typed, person := pipe(t)
	var said []string
	l := &oauth.Login{Target: oauth.Target{Server: server}, Paste: typed, Print: func(s string) { said = append(said, s) }, Show: func(page string) {
		client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
		res, err := client.Get(page)
		if err != nil {
			t.Error(err)
			return
		}
		res.Body.Close()
		at := res.Header.Get("Location")
		u, err := url.Parse(at)
		if err != nil {
			t.Error(err)
			return
		}
		go person("\nhttp://127.0.0.1/callback?code=evil&state=other\n" + u.Query().Get("code") + "\n" + at + "\n")
	}}
	if _, err := oauth.NewStore(oauth.FileStorage(filepath.Join(t.TempDir(), "oauth")), "me").Login(t.Context(), l); err != nil {
		t.Error(err)
	}
	if len(said) != 2 {
		t.Errorf("got %q, want a line about each that is not the address", said)
	}
}

func pipe(t *testing.T) (*os.File, func(string)) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(); w.Close() })
	return r, func(s string) { _, _ = w.WriteString(s) }
}

func TestInterruptedLogin(t *testing.T) {
	issuer := oauthtest.New(t)
	why := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	l := signIn(t, issuer.Serve(t))
	l.Show = func(string) { cancel(why) }
	if _, err := oauth.NewStore(oauth.FileStorage(t.TempDir()), "me").Login(ctx, l); !errors.Is(err, why) {
		t.Errorf("error %v, want the cause", err)
	}
}

// What a server misses in a token is asked for at the next sign-in.
func TestMissedScopes(t *testing.T) {
	issuer := oauthtest.New(t)
	server := issuer.Serve(t)
	s := oauth.NewStore(oauth.FileStorage(filepath.Join(t.TempDir(), "oauth")), "me")
	scopes := func() (out string) {
		l := signIn(t, server)
		show := l.Show
		l.Show = func(page string) {
			u, err := url.Parse(page)
			if err != nil {
				t.Error(err)
				return
			}
			out = u.Query().Get("scope")
			show(page)
		}
		if _, err := s.Login(t.Context(), l); err != nil {
			t.Fatal(err)
		}
		return out
	}
	if got := scopes(); got != "tools" {
		t.Errorf("scopes %q, want those that the server names", got)
	}
	req := httptest.NewRequest(http.MethodPost, server, nil)
	req.Header.Set("Authorization", "Bearer "+token(t, s, server))
	res := &http.Response{StatusCode: http.StatusForbidden, Body: http.NoBody, Header: http.Header{
		"Www-Authenticate": {`Bearer error="insufficient_scope", scope="tools admin"`},
	}}
	if err := s.Handler(server, next).Authorize(t.Context(), req, res); err == nil || err.Error() != next {
		t.Errorf("error %v, want the next step", err)
	}
	if got := strings.Fields(scopes()); len(got) != 2 || !slices.Contains(got, "admin") {
		t.Errorf("scopes %q, want what the server missed too", got)
	}
	if n := issuer.RefreshCount(); n != 0 {
		t.Errorf("%d renewals: another token of the same scopes is not a help", n)
	}
}
