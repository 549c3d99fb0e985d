package accountapi_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/hub"
	"github.com/loadout-dev/loadout/internal/hub/hubtest"
	"github.com/loadout-dev/loadout/internal/store/storetest"
)

func TestMain(m *testing.M) { os.Exit(storetest.Main(m)) }

var request = hubtest.NewRequest

func TestUsers(t *testing.T) {
	h := hubtest.Open(t, hub.Options{Accounts: true})
	root := h.SignIn("root")
	ada, user := root.NewUser("ada")
	bob, other := root.NewUser("bob")
	root.Check(
		request("GET", "/users", nil, 200, `"name":"ada" & "name":"bob" & "name":"root" & "account":{`),
		request("GET", "/users?limit=1", nil, 200, `"name":"ada" & !"name":"bob" & "next":`),
		request("GET", "/users?name=bob", nil, 200, `"name":"bob" & !"name":"ada"`),
		request("GET", "/users?name=eve", nil, 404, ""),
		request("GET", "/users/"+ada, nil, 200, `"id":"`+ada+`" & "password":true & "admin":false & "seen":`),
		request("GET", "/users/none", nil, 404, ""),
		request("POST", "/users", `{"name": "ada", "password": "`+hubtest.Password+`"}`, 409, ""),
		request("POST", "/users", `{"name": "eve", "password": "short"}`, 422, ""),
		request("POST", "/users", `{"name": "eve", "display": "Eve", "email": "eve@example.com", "admin": true}`, 201, `"display":"Eve" & eve@example.com & "admin":true & "password":false`),
		request("PATCH", "/users/"+bob, `{"display": "Bob B."}`, 200, `"display":"Bob B."`),
		request("PATCH", "/users/none", `{"display": "x"}`, 404, ""),
	)
	user.Check(
		request("GET", "/users/"+bob, nil, 404, ""),
		request("GET", "/users/me", nil, 200, `"account"`),
		request("PATCH", "/users/me", `{"email": "ada@example.com"}`, 200, `ada@example.com`),
		request("PATCH", "/users/me", `{"admin": true}`, 403, ""),
		request("POST", "/users", `{"name": "mallory"}`, 403, ""),
		request("DELETE", "/users/"+bob, nil, 404, ""),
		request("GET", "/users/"+bob+"/sign-ins", nil, 404, ""),
		request("GET", "/users/me/sign-ins", nil, 200, `"current":true & !"current":false`),
	)
	again := h.SignIn("ada")
	user.Check(request("GET", "/users/me/sign-ins", nil, 200, `"current":true & "current":false`),
		request("DELETE", "/users/me/sign-ins", nil, 204, ""),
		request("GET", "/me", nil, 200, `"name":"ada"`))
	again.Check(request("GET", "/me", nil, 401, ""))

	// A user's own password needs the current one, and the browser stays signed in with
	// the new cookie only. An administrator needs none, and gets no cookie.
	user.Check(request("PUT", "/users/me/password", `{"password": "another long one"}`, 401, "wrong_password"))
	changed := user.Must("PUT", "/users/me/password", `{"current": "`+hubtest.Password+`", "password": "another long one", "revoke_tokens": true}`)
	cookie, _, _ := strings.Cut(changed.Header.Get("Set-Cookie"), ";")
	user.Check(request("GET", "/me", nil, 401, ""))
	h.Client().With("Cookie", cookie).Check(request("GET", "/me", nil, 200, `"name":"ada"`))
	if r := root.Must("PUT", "/users/"+ada+"/password", `{"password": "`+hubtest.Password+`"}`); r.Header.Get("Set-Cookie") != "" {
		t.Error("setting another user's password sets a cookie")
	}
	root.Check(request("PUT", "/users/none/password", `{"password": "another long one"}`, 404, ""))

	root.Check(request("PATCH", "/users/"+bob, `{"disabled": true}`, 200, `"disabled":true`))
	other.Check(request("GET", "/me", nil, 401, ""))
	root.Check(request("DELETE", "/users/"+bob, nil, 204, ""), request("GET", "/users/"+bob, nil, 404, ""))
	root.CheckFailures("/users", "/users?name=ada", "/users/"+ada, "/users/"+ada+"/sign-ins", "/me")
}

func TestGroups(t *testing.T) {
	h := hubtest.Open(t, hub.Options{Accounts: true})
	root := h.SignIn("root")
	ada, user := root.NewUser("ada")
	_, stranger := root.NewUser("bob")
	group := root.Must("POST", "/groups", `{"name": "crew", "display": "The crew", "description": "All hands.", "requiredApprovers": 2}`).Text("id")
	at := "/groups/" + group
	root.Check(
		request("POST", "/groups", `{"name": "crew"}`, 409, ""),
		request("POST", "/groups", `{"name": "x", "requiredApprovers": 0}`, 422, ""),
		request("POST", "/groups", `{"name": "ten", "requiredApprovers": 10}`, 201, ""),
		request("POST", "/groups", `{"name": "eleven", "requiredApprovers": 11}`, 422, ""),
		request("GET", "/groups", nil, 200, `"name":"crew" & "name":"ten"`),
		request("GET", "/groups?limit=1", nil, 200, `"name":"crew" & !"name":"ten" & "next":`),
		request("GET", at, nil, 200, `"display":"The crew" & "description":"All hands." & "requiredApprovers":2`),
		request("GET", "/groups/none", nil, 404, ""),
		request("PATCH", at, `{"display": "Crew", "requiredApprovers": 1}`, 200, `"display":"Crew"`),
		request("PATCH", "/groups/none", `{"display": "x"}`, 404, ""),
		request("PUT", at+"/members/"+ada, `{"role": "owner"}`, 204, ""),
		request("PUT", at+"/members/none", `{"role": "owner"}`, 404, ""),
		request("PUT", at+"/members/"+ada, `{"role": "king"}`, 422, ""),
	)
	user.Check(
		request("GET", at+"/members", nil, 200, `"role":"owner" & "name":"ada" & "since":"20`),
		request("GET", "/me", nil, 200, `"groups":[{"group":"`+group+`","role":"owner"}] & "members":["`+group+`"] & "new_groups":false & "upload":["default","`+group+`"] & "review":["`+group+`"] & "servers":["default","`+group+`"] & "admin":false & "chat":true`),
	)
	root.Check(request("GET", "/me", nil, 200, `"new_groups":true & "review":["public", & "*"] & "members":[ & "upload":["default","public" & "admin":true`))
	stranger.Check(
		request("GET", at, nil, 404, ""),
		request("GET", at+"/members", nil, 404, ""),
		request("PUT", at+"/members/me", `{"role": "owner"}`, 404, ""),
		request("POST", "/groups", `{"name": "mine"}`, 403, ""),
		request("GET", "/me", nil, 200, `"groups":[] & "members":[] & "review":[] & "upload":["default"]`),
	)
	root.CheckFailures("/groups", at, at+"/members")
	user.Check(
		request("DELETE", at+"/members/me", nil, 204, ""),
		request("GET", at, nil, 404, ""),
	)
	root.Check(request("DELETE", at, nil, 204, ""), request("GET", at, nil, 404, ""), request("DELETE", at, nil, 404, ""))
}

func TestTokens(t *testing.T) {
	h := hubtest.Open(t, hub.Options{Accounts: true})
	root := h.SignIn("root")
	ada, user := root.NewUser("ada")
	for days, status := range map[int]int{-1: 422, 0: 201, 1: 201, 3650: 201, 3651: 422} {
		r := user.Send(t.Context(), "POST", "/tokens", fmt.Sprintf(`{"name": "days", "scopes": ["read"], "days": %d}`, days))
		if r.Status != status || (r.Text("expires") != "") != (status == 201 && days > 0) {
			t.Errorf("%d days: %d %s", days, r.Status, r.Body)
		}
	}
	made := user.Must("POST", "/tokens", `{"name": "for\u200b work", "scopes": ["read", "chat"], "days": 2}`)
	if made.Text("token") == "" || !strings.HasPrefix(made.Text("token"), made.Text("prefix")) || !strings.Contains(made.Body, `"scopes":["read","chat"]`) || strings.Contains(made.Body, "\u200b") {
		t.Errorf("made %s", made.Body)
	}
	user.Check(
		request("GET", "/tokens", nil, 200, `"id":"`+made.Text("id")+`" & !"token":`),
		request("POST", "/tokens", `{"name": "x", "scopes": []}`, 422, ""),
		request("POST", "/tokens", `{"name": "x", "scopes": ["all"]}`, 422, ""),
		request("POST", "/tokens", `{"name": "", "scopes": ["read"]}`, 422, ""),
		request("DELETE", "/tokens/none", nil, 404, ""),
	)
	token := h.Client().With("Authorization", "Bearer "+made.Text("token"))
	token.Check(
		request("GET", "/me", nil, 200, `"scopes":["read","chat"] & "chat":true & "upload":[] & "account":{`),
		request("PATCH", "/users/me", `{"display": "x"}`, 403, ""),
	)
	chat := h.Client().With("Authorization", "Bearer "+user.Must("POST", "/tokens", `{"name": "chat", "scopes": ["chat"]}`).Text("token"))
	chat.Check(request("GET", "/me", nil, 200, `"name":"ada" & !"account":{`))
	user.Check(request("GET", "/tokens", nil, 200, `"used":"20`))
	root.Check(request("GET", "/tokens?user="+ada, nil, 200, made.Text("id")),
		request("GET", "/tokens", nil, 200, `"items":[]`),
		request("DELETE", "/tokens/"+made.Text("id")+"?user="+ada, nil, 204, ""))
	token.Check(request("GET", "/me", nil, 401, ""))
	user.CheckFailures("/tokens")
}

func TestAudit(t *testing.T) {
	h := hubtest.Open(t, hub.Options{Accounts: true})
	root := h.SignIn("root")
	ada, user := root.NewUser("ada")
	user.Check(request("POST", "/groups", `{"name": "mine"}`, 403, ""))
	root.Check(
		request("GET", "/audit", nil, 200, `"actor":"`+ada+`" & "decision":"denied" & "decision":"allowed"`),
		request("GET", "/audit?decision=denied", nil, 200, `"decision":"denied" & !"decision":"allowed"`),
		request("GET", "/audit?actor=me", nil, 200, `!"actor":"`+ada),
		request("GET", "/audit?namespace=user:"+ada, nil, 200, `"namespace":"user:`+ada+`"`),
		request("GET", "/audit?since=2020-01-01T00:00:00Z&until=2100-01-01T00:00:00Z", nil, 200, `"actor":"`+ada+`"`),
		request("GET", "/audit?since=2100-01-01T00:00:00Z", nil, 200, `"items":[]`),
		request("GET", "/audit?until=2020-01-01T00:00:00Z", nil, 200, `"items":[]`),
		request("GET", "/audit?since=yesterday", nil, 422, ""),
		request("GET", "/audit?limit=500&after=1", nil, 200, `"items":[] & !"next"`),
		request("GET", "/audit?limit=501", nil, 422, ""),
		request("GET", "/audit?after=0", nil, 422, "invalid page position"),
		request("GET", "/audit?after=-1", nil, 422, ""),
		request("GET", "/audit?after=x", nil, 422, ""),
	)
	user.Check(request("GET", "/audit", nil, 200, `"actor":"`+ada+`"`),
		request("GET", "/audit?actor=me&namespace=user:"+ada, nil, 200, `"actor":"`+ada+`"`))
	if all := user.Must("GET", "/audit", nil).Body; strings.Count(all, `"actor":`) != strings.Count(all, `"actor":"`+ada+`"`) {
		t.Errorf("a user sees records of others: %s", all)
	}
	// Pages follow each other without a gap, and the last one has no next.
	whole, pages := strings.Count(root.Must("GET", "/audit?limit=500", nil).Body, `"actor":`), 0
	for next := ""; ; {
		r := root.Must("GET", "/audit?limit=2&after="+next, nil)
		pages += strings.Count(r.Body, `"actor":`)
		if next = r.Text("next"); next == "" {
			break
		}
	}
	if pages != whole || whole < 3 {
		t.Errorf("%d records on all pages, want %d", pages, whole)
	}
	root.CheckFailures("/audit")
}

func TestSettings(t *testing.T) {
	h := hubtest.Open(t, hub.Options{Accounts: true})
	root := h.SignIn("root")
	ada, user := root.NewUser("ada")
	quotas := func(overrides string) string {
		return `{"user": {"bytes": 7, "skills": 3, "sessions": 9}, "group": {"bytes": 8, "skills": 5, "sessions": 0}, "overrides": ` + overrides + `, "generation": 0}`
	}
	root.Check(
		request("GET", "/settings/audit", nil, 200, `"days": & "generation":0`),
		request("PUT", "/settings/audit", `{"days": 36500, "generation": 0}`, 200, `"days":36500 & "generation":1`),
		request("PUT", "/settings/audit", `{"days": 36501, "generation": 1}`, 422, ""),
		request("PUT", "/settings/audit", `{"days": -1, "generation": 1}`, 422, ""),
		request("PUT", "/settings/audit", `{"days": 7, "generation": 0}`, 409, ""),
		request("GET", "/settings/audit", nil, 200, `"days":36500`),
		request("GET", "/settings/sign-in", nil, 200, `"generation":0`),
		request("PUT", "/settings/sign-in", `{"rules": [], "generation": 7}`, 409, ""),
		request("GET", "/settings/quotas", nil, 200, `"overrides":[] & "generation":0`),
		request("PUT", "/settings/quotas", quotas(`[{"namespace": "user:`+ada+`", "limits": {"bytes": 1, "skills": 4, "sessions": 2}}]`), 200, `"user":{ & "skills":3 & "skills":5 & user:`+ada+` & "generation":1`),
		request("PUT", "/settings/quotas", quotas("[]"), 409, ""),
		request("GET", "/usage/storage?namespace=public", nil, 200, `"namespace":"public" & "skills":5`),
	)
	user.Check(
		request("GET", "/settings/audit", nil, 403, ""), request("GET", "/settings/sign-in", nil, 403, ""), request("GET", "/settings/quotas", nil, 403, ""),
		request("PUT", "/settings/audit", `{"days": 1, "generation": 1}`, 403, ""),
		request("GET", "/usage/storage", nil, 200, `"namespace":"user:`+ada+`" & "skills":4`),
	)
	root.CheckFailures("/settings/audit", "/settings/sign-in", "/settings/quotas", "/usage/storage")
}

func TestSignIn(t *testing.T) {
	h := hubtest.Open(t, hub.Options{Accounts: true})
	anybody := h.Client()
	body := func(name, password string) string { return fmt.Sprintf(`{"name": %q, "password": %q}`, name, password) }
	anybody.Check(
		request("GET", "/login", nil, 200, `"mode":"accounts" & "setup":false & "password":true & !"provider"`),
		request("POST", "/login", body("root", "wrong"), 401, ""),
		request("POST", "/login", body("nobody", hubtest.Password), 401, ""),
		request("POST", "/login", body("", hubtest.Password), 422, ""),
		request("POST", "/setup", `{"link": "x", "name": "eve", "password": "`+hubtest.Password+`"}`, 403, "bad_link"),
		request("GET", "/me", nil, 401, ""),
	)
	first := h.SignIn("root")
	first.Check(request("GET", "/me", nil, 200, `"name":"root"`))
	// Signing in again ends the sign-in of the same browser.
	first.Check(request("POST", "/login", body("root", hubtest.Password), 200, `"user":{`), request("GET", "/me", nil, 401, ""))
	second := h.SignIn("root")
	if r := second.Must("POST", "/logout", nil); !strings.Contains(r.Header.Get("Set-Cookie"), "Max-Age=0") {
		t.Errorf("signed out with the cookie %q", r.Header.Get("Set-Cookie"))
	}
	second.Check(request("GET", "/me", nil, 401, ""))

	single := hubtest.Open(t, hub.Options{}).Client()
	single.Check(
		request("GET", "/login", nil, 200, `"mode":"single" & "password":false`),
		request("POST", "/login", body("root", hubtest.Password), 409, "without sign-in"),
		request("POST", "/setup", `{"link": "x", "name": "eve", "password": "`+hubtest.Password+`"}`, 409, "without sign-in"),
		request("GET", "/me", nil, 200, `"admin":true`),
	)
}
