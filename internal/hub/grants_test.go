package hub_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/loadout-dev/loadout/internal/hub/account"
)

type grantsPage struct {
	Items []struct {
		ID, User, Name, Subject, Scope string
		Expires                        *time.Time
	}
	Next string
}

func TestGrantsOverHTTP(t *testing.T) {
	n, shop := withShop(t)
	p, token := n.newcomer(t, "ada", account.AllScopes)
	me := caller{node: n, token: token}
	for _, tt := range []struct {
		name   string
		body   args
		status int
		code   string
	}{
		{"no tool of that name", args{"tool": "till__steal", "scope": "always"}, 404, "not_found"},
		{"no such Ghost", args{"tool": "till__pay", "scope": "always", "kind": "Ghost", "name": "none"}, 404, "not_found"},
		{"half of an agent", args{"tool": "till__pay", "scope": "always", "kind": "Ghost"}, 422, "invalid"},
		{"another scope", args{"tool": "till__pay", "scope": "never"}, 422, "invalid"},
		{"a session that is not named", args{"tool": "till__pay", "scope": "session"}, 422, "invalid"},
		{"a session that does not count", args{"tool": "till__pay", "scope": "always", "session": "x"}, 422, "invalid"},
		{"over already", args{"tool": "till__pay", "scope": "always", "expires": "2020-01-01T00:00:00Z"}, 422, "invalid"},
		{"arguments that are none", args{"tool": "till__pay", "scope": "always", "arguments": 7}, 422, "invalid"},
		{"no digest", args{"tool": "till__pay", "scope": "always", "subject": "x"}, 422, "invalid"},
		{"another tool than was looked at", args{"tool": "till__pay", "scope": "always", "subject": "sha256:" + fmt.Sprintf("%064d", 0)}, 409, "changed"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			me.send(t, "POST", "/api/v1/grants", tt.body).wantProblem(t, tt.status, tt.code)
		})
	}

	ends := time.Now().Add(time.Hour).UTC().Truncate(time.Second)
	five := args{"amount": 5}
	me.send(t, "POST", "/api/v1/grants", args{"tool": "till__pay", "scope": "always", "arguments": five, "expires": ends}).want(t, 201)
	cs := connectMCP(t, n.URL+"/mcp", token, olderEra, nil)
	if res := callMCP(t, cs, "call_tool", args{"name": "till__pay", "arguments": five}); res.IsError || shop.paid.Load() != 1 {
		t.Errorf("with these arguments got %q", textOfResult(res))
	}
	if res := callMCP(t, cs, "call_tool", args{"name": "till__pay", "arguments": args{"amount": 6}}); !res.IsError || shop.paid.Load() != 1 {
		t.Errorf("with others got %q", textOfResult(res))
	}
	me.send(t, "POST", "/api/v1/grants", args{"tool": "till__pay", "scope": "once"}).want(t, 201)
	for i, refused := range []bool{false, true} {
		if res := through(t, cs, "till__pay"); res.IsError != refused {
			t.Errorf("call %d with permission for one returned %q", i+1, textOfResult(res))
		}
	}

	var all grantsPage
	me.send(t, "GET", "/api/v1/grants", nil).want(t, 200).into(t, &all)
	if len(all.Items) != 1 || all.Items[0].User != string(p.User) || all.Items[0].Name != "till__pay" || all.Items[0].Expires == nil || !all.Items[0].Expires.Equal(ends) {
		t.Errorf("what is left is %+v", all)
	}
	_, eve := n.newcomer(t, "eve", account.AllScopes)
	other := caller{node: n, token: eve}
	other.send(t, "GET", "/api/v1/grants?user="+string(p.User), nil).wantProblem(t, 404, "not_found")
	other.send(t, "DELETE", "/api/v1/grants/"+all.Items[0].ID, nil).wantProblem(t, 404, "not_found")
	var seen grantsPage
	root := n.signIn(t, "root", secret)
	root.send(t, "GET", "/api/v1/grants?user="+string(p.User), nil).want(t, 200).into(t, &seen)
	if len(seen.Items) != 1 || seen.Items[0].ID != all.Items[0].ID {
		t.Errorf("an administrator sees %+v", seen)
	}
	root.send(t, "DELETE", "/api/v1/grants/"+all.Items[0].ID, nil).wantProblem(t, 404, "not_found")
	me.send(t, "DELETE", "/api/v1/grants/"+all.Items[0].ID, nil).want(t, 204)
	me.send(t, "DELETE", "/api/v1/grants/"+all.Items[0].ID, nil).wantProblem(t, 404, "not_found")
	if res := callMCP(t, cs, "call_tool", args{"name": "till__pay", "arguments": five}); !res.IsError {
		t.Errorf("after revocation got %q", textOfResult(res))
	}
	if got := decisionsBy(t, n, p, "grant.write"); !slices.Contains(got, "allowed") {
		t.Errorf("the audit log has %v", got)
	}
}

func TestGrantPages(t *testing.T) {
	n, _ := withShop(t)
	_, token := n.newcomer(t, "ada", account.AllScopes)
	me := caller{node: n, token: token}
	for i := range 5 {
		me.send(t, "POST", "/api/v1/grants", args{"tool": "till__pay", "scope": "always", "arguments": args{"amount": i}}).want(t, 201)
	}
	var ids []string
	for after := ""; ; {
		var page grantsPage
		me.send(t, "GET", "/api/v1/grants?limit=2&after="+after, nil).want(t, 200).into(t, &page)
		for _, g := range page.Items {
			ids = append(ids, g.ID)
		}
		if after = page.Next; after == "" {
			break
		}
	}
	if slices.Sort(ids); len(slices.Compact(ids)) != 5 {
		t.Errorf("%v", ids)
	}
}
