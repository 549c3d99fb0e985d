package oauth_test

import (
	"errors"
	"net/http"
	"net/url"
	"path/filepath"
	"testing"
	"time"

	"github.com/loadout-dev/loadout/internal/oauth"
	"github.com/loadout-dev/loadout/internal/oauth/oauthtest"
	"github.com/loadout-dev/loadout/internal/upstream"
)

// K22: a sign-in registers a client, uses PKCE, and has a state that is valid once.
func TestK22SignIn(t *testing.T) {
	issuer := oauthtest.New(t)
	server := issuer.Serve(t)
	s := oauth.NewStore(oauth.FileStorage(filepath.Join(t.TempDir(), "oauth")), "me")
	seen := map[string]bool{}
	for range 2 {
		var asked url.Values
		l := signIn(t, server)
		l.Show = func(page string) {
			u, err := url.Parse(page)
			if err != nil {
				t.Error(err)
				return
			}
			asked = u.Query()
			go func() {
				if status, err := oauthtest.Browse(page); err != nil || status != http.StatusOK {
					t.Errorf("the browser sees %d, %v", status, err)
				}
			}()
		}
		if _, err := s.Login(t.Context(), l); err != nil {
			t.Fatal(err)
		}
		if asked.Get("client_id") == "" || asked.Get("code_challenge") == "" || asked.Get("code_challenge_method") != "S256" || asked.Get("resource") != server {
			t.Errorf("it asks with %v", asked)
		}
		for _, once := range []string{asked.Get("state"), asked.Get("code_challenge")} {
			if once == "" || seen[once] {
				t.Errorf("%q is used again", once)
			}
			seen[once] = true
		}
		if status, err := oauthtest.Browse(asked.Get("redirect_uri") + "?code=later&state=" + url.QueryEscape(asked.Get("state"))); err == nil && status == http.StatusOK {
			t.Error("the state is taken a second time")
		}
	}
}

// K22: a user is signed in to a server, not yet, or no longer. The last two say what to
// do, and no other user's token is used.
func TestK22ThreeStates(t *testing.T) {
	issuer := oauthtest.New(t)
	server := issuer.Serve(t)
	dir := filepath.Join(t.TempDir(), "oauth")
	state := func(person string) string {
		t.Helper()
		_, err := oauth.NewStore(oauth.FileStorage(dir), person).Handler(server, next).TokenSource(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if token(t, oauth.NewStore(oauth.FileStorage(dir), person), server) == "" {
			return "none"
		}
		return "signed in"
	}
	if got := state("me"); got != "none" {
		t.Errorf("before the sign-in it is %s", got)
	}
	login(t, oauth.NewStore(oauth.FileStorage(dir), "me"), server)
	if got := state("me") + ", " + state("you"); got != "signed in, none" {
		t.Errorf("after the sign-in it is %s", got)
	}
	issuer.SetLifetime(time.Second)
	login(t, oauth.NewStore(oauth.FileStorage(dir), "me"), server)
	issuer.RejectRefresh()
	err := connect(t, dir, server)
	if refused, ok := errors.AsType[*upstream.AuthError](err); !ok || refused.Next != next {
		t.Errorf("with a token that is over and not renewed: %v", err)
	}
	if got := state("me"); got != "none" {
		t.Errorf("after the refusal it is %s", got)
	}
}
