package api

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/approval"
	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/chat"
	"github.com/loadout-dev/loadout/internal/hub/library"
	"github.com/loadout-dev/loadout/internal/hub/serverauth"
	"github.com/loadout-dev/loadout/internal/oauth"
	"github.com/loadout-dev/loadout/internal/remote"
	"github.com/loadout-dev/loadout/internal/store"
)

func TestChatAndSignInProblems(t *testing.T) {
	signIn := func(err error) error { return &serverauth.FailedError{Err: fmt.Errorf("sign in: %w", err)} }
	for _, tt := range []struct {
		err           error
		status        int
		code          string
		header, value string
	}{
		{&approval.ResolvedError{ID: "a"}, 409, "settled", "", ""},
		{&approval.NotAllowedError{ID: "a"}, 404, "not_found", "", ""},
		{approval.ErrNotFound, 404, "not_found", "", ""},
		{&chat.DraftLimitError{Count: 2, MaxCount: 1}, 409, "too_many_drafts", "", ""},
		{&chat.CommandError{Reason: chat.Cancelled}, 409, "cancelled", "", ""},
		{&chat.CommandError{Reason: chat.Failed, Text: "out of memory"}, 409, "failed", "", ""},
		{chat.ErrQueueFull, 429, "waiting", "Retry-After", "5"},
		{chat.ErrClosed, 503, "closing", "Retry-After", "5"},
		{chat.ErrNoRequestID, 422, "no_request_id", "Retry-After", ""},
		{chat.ErrNoRequest, 404, "no_request", "", ""},
		{chat.ErrKeyUsed, 422, "key_used", "", ""},
		{signIn(&oauth.DeniedError{Code: "access_denied"}), 403, "signin_denied", "", ""},
		{signIn(&oauth.IssuerError{Issuer: "https://a.example", Want: "https://b.example"}), 409, "signin_issuer", "", ""},
		{signIn(&oauth.PrivateAddressError{Host: "a.example"}), 422, "signin_address", "", ""},
		{signIn(&oauth.NotRequiredError{Status: 200, Err: errors.New("x")}), 409, "signin_unwanted", "", ""},
		{signIn(&net.DNSError{Name: "a.example"}), 502, "signin_failed", "", ""},
		{&account.DeniedError{SignIn: true}, 401, "sign_in", "Www-Authenticate", `Bearer realm="loadout"`},
		{account.ErrInvalidCredentials, 401, "bad_token", "Www-Authenticate", `Bearer realm="loadout"`},
		{&account.DeniedError{Scopes: account.ScopeWrite}, 403, "scope", "Www-Authenticate", ""},
		{store.ErrTooMany, 409, "too_many", "Www-Authenticate", ""},
		{store.ErrBusy, 503, "busy", "Retry-After", "5"},
	} {
		p := newProblem(tt.err)
		if p == nil || p.Status != tt.status || p.Code != tt.code || p.Detail == "" || p.Next == "" || tt.header != "" && p.Header.Get(tt.header) != tt.value {
			t.Errorf("%T %v: %+v, want %d %s, %s %q", tt.err, tt.err, p, tt.status, tt.code, tt.header, tt.value)
		}
	}
	for always, want := range map[bool]string{true: "use another host", false: "or ask the operator"} {
		if p := newProblem(&remote.AddressError{Host: "x", AlwaysBlocked: always}); !strings.Contains(p.Next, want) {
			t.Errorf("always blocked %t: %s", always, p.Next)
		}
	}
	for host, want := range map[string]string{"git.example.com": "/secrets/git_git_example_com", "a.-b": "no credential can be stored"} {
		if p := newProblem(&remote.DeniedError{Host: host}); !strings.Contains(p.Next, want) {
			t.Errorf("denied by %s: %s", host, p.Next)
		}
	}
}

// A source that is not found may be private, if a credential for its host can be
// stored.
func TestWithSource(t *testing.T) {
	missing := fmt.Errorf("import: %w", &remote.NotFoundError{What: "repository"})
	for source, hint := range map[string]bool{
		"https://git.example.com/team/skills.git": true, "team/skills": true, "https://a.-b/skills.git": false, "::": false, "": false,
	} {
		p, ok := errors.AsType[*Problem](WithSource(source, missing))
		if ok != hint || ok && (p.Code != "source_not_found" || !strings.Contains(p.Next, "if it is private, store")) {
			t.Errorf("%q: %+v", source, p)
		}
	}
	if err := WithSource("team/skills", ErrTimeout); err != ErrTimeout {
		t.Errorf("another error: %v", err)
	}
	other := errors.New("no problem of a request")
	if err := PartialImport(&library.ImportResult{Created: make([]library.ImportChange, 1)}, other); err != other {
		t.Errorf("partial import: %v", err)
	}
}

func TestChangedPath(t *testing.T) {
	for _, tt := range []struct{ path, template, want string }{
		{"/api/v1/sessions/x/skills", "/api/v1/sessions/{id}/skills", "/api/v1/sessions/x"},
		{"/api/v1/sessions/x", "/api/v1/sessions/{id}", "/api/v1/sessions/x"},
		{"/api/v1/groups/g/members/m/role", "/api/v1/groups/{group}/members/{member}/role", "/api/v1/groups/g/members/m"},
		{"/api/v1/sessions", "/api/v1/sessions", ""},
		{"/api/v1/sessions", "/api/v1/sessions/{id}", ""},
	} {
		if got := changedPath(tt.path, tt.template); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.path, got, tt.want)
		}
	}
}

func TestMatches(t *testing.T) {
	for _, tt := range []struct {
		template, path string
		want           bool
	}{
		{"/things/{id}", "/things/7", true}, {"/things/{id}", "/things/", false}, {"/things/{id}", "/things", false}, {"/things/{id}", "/others/7", false},
		{"/things", "/things", true}, {"/things", "/things/7", false}, {"/things/{id}/parts", "/things/7/parts", true}, {"/things/{id}/parts", "/things/7/others", false},
	} {
		if got := matches(strings.Split(tt.template, "/"), strings.Split(tt.path, "/")); got != tt.want {
			t.Errorf("%s, %s: %t", tt.template, tt.path, got)
		}
	}
}
