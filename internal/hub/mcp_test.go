package hub_test

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout/internal/hub"
	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/account/oidctest"
	"github.com/loadout-dev/loadout/internal/hub/api"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/upstream"
)

func TestMCPRequiresToken(t *testing.T) {
	n := team(t)
	browser := n.signIn(t, "root", secret)
	_, good := n.newcomer(t, "ada", account.ScopeMCP)
	_, chat := n.newcomer(t, "bob", account.ScopeChat)
	nobody := n.anybody()
	for _, tt := range []struct {
		name   string
		c      caller
		path   string
		status int
		says   string // WWW-Authenticate
	}{
		{"nothing", nobody, "/mcp", 401, `resource_metadata="` + n.URL + `/.well-known/oauth-protected-resource/mcp", scope="mcp"`},
		{"nothing, for a Ghost", nobody, "/mcp/p/x", 401, `resource_metadata="` + n.URL + `/.well-known/oauth-protected-resource/mcp/p/x", scope="mcp"`},
		{"another token", n.wired("lo_wrong"), "/mcp", 401, `error="invalid_token"`},
		{"a browser that signed in", browser, "/mcp", 401, `resource_metadata=`},
		{"a token for something else", n.wired(chat), "/mcp", 403, `error="insufficient_scope"`},
		{"a page of another site, with a token", n.wired(good).with("Origin", "https://evil.example"), "/mcp", 403, ""},
		{"a page of another site, with a cookie", browser.with("Origin", "https://evil.example"), "/mcp", 403, ""},
		{"a Ghost that there is not", n.wired(good), "/mcp/p/none", 404, ""},
		{"a path below", n.wired(good), "/mcp/x", 404, ""},
		{"a token", n.wired(good), "/mcp", 200, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := tt.c.with("Accept", "application/json, text/event-stream").send(t, "POST", tt.path, initializeMCP).want(t, tt.status)
			got := r.header.Get("WWW-Authenticate")
			if (tt.says == "") != (got == "") || !strings.Contains(got, tt.says) || tt.says != "" && !strings.HasPrefix(got, "Bearer ") {
				t.Errorf("challenged by %q, want %q in it", got, tt.says)
			}
			if tt.status == 200 {
				return
			}
			var p api.Problem
			if r.into(t, &p); p.Next == "" {
				t.Errorf("no next step in %s", r.body)
			}
		})
	}
}

func TestMCPNeedsNoTokenInSingleMode(t *testing.T) {
	n := start(t, hub.Options{})
	c := n.wired("")
	c.send(t, "POST", "/mcp", initializeMCP).want(t, 200)
	c.with("Origin", "https://evil.example").send(t, "POST", "/mcp", initializeMCP).wantProblem(t, 403, "cross_origin")
	c.with("X-Forwarded-For", "192.0.2.1").send(t, "POST", "/mcp", initializeMCP).wantProblem(t, 403, "not_local")
}

func TestMCPResourceMetadata(t *testing.T) {
	n := team(t)
	for path, resource := range map[string]string{"": "/mcp", "/mcp": "/mcp", "/mcp/p/weibo": "/mcp/p/weibo", "/mcp/p/web/weibo": "/mcp/p/web/weibo", "/mcp/p/%E5%BE%AE": "/mcp/p/%E5%BE%AE"} {
		r := n.anybody().send(t, "GET", "/.well-known/oauth-protected-resource"+path, nil).want(t, 200)
		var got map[string]any
		r.into(t, &got)
		if got["resource"] != n.URL+resource || got["authorization_servers"] != nil || fmt.Sprint(got["scopes_supported"]) != "[run mcp]" {
			t.Errorf("of %s: %s", path, r.body)
		}
	}
	public := start(t, hub.Options{Accounts: true, Public: "https://hub.example.com"})
	r := public.anybody().send(t, "GET", "/.well-known/oauth-protected-resource/mcp", nil).want(t, 200)
	if got := r.text(t, "resource"); got != "https://hub.example.com/mcp" {
		t.Errorf("behind a proxy it is %s", got)
	}
}

// Clients of both eras ask by turns the one and the other of two nodes, and see the same.
func TestMCPAlternatesBetweenNodes(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, address string) {
		a, b, url, _ := twoNodes(t, address)
		p, token := a.newcomer(t, "ada", account.ScopeMCP)
		a.put(t, p, ownPlace(p), "pdf", "Read the PDF.")
		for _, era := range eras {
			cs := connectMCP(t, url+"/mcp", token, era, nil)
			var lists []string
			for range 4 {
				list := must(cs.ListTools(t.Context(), nil))(t)
				lists = append(lists, string(must(json.Marshal(list.Tools))(t)))
				if got := textOfResult(callMCP(t, cs, "load_skill", args{"name": "pdf"})); !strings.Contains(got, "Read the PDF.") {
					t.Errorf("%s: the skill is %q", era, got)
				}
				if got := textOfResult(through(t, cs, "shop__look")); got != "many things" {
					t.Errorf("%s: the tool returned %q", era, got)
				}
				if got := textOfResult(callMCP(t, cs, "read_tool", args{"name": "shop__look"})); got != "many things" {
					t.Errorf("%s: read_tool returned %q", era, got)
				}
				pay := callMCP(t, cs, "read_tool", args{"name": "till__pay", "arguments": args{"amount": 5}})
				if !pay.IsError || !strings.HasSuffix(textOfResult(pay), `call_tool {"name":"till__pay","arguments":{"amount":5}}`) {
					t.Errorf("%s: read_tool returned %q", era, textOfResult(pay))
				}
			}
			if !strings.Contains(lists[0], `Servers:\n- shop: [shared]\n- till: [shared]\n`) {
				t.Errorf("%s: no line for a server:\n%s", era, lists[0])
			}
			if slices.Sort(lists); lists[0] != lists[3] || !strings.Contains(lists[0], "- pdf: Does what pdf does.") {
				t.Errorf("%s: lists differ, or have no skill:\n%s\n%s", era, lists[0], lists[3])
			}
		}
		if a.MCPEndpoints() != 1 || b.MCPEndpoints() != 1 {
			t.Errorf("%d and %d endpoints are stored for one user", a.MCPEndpoints(), b.MCPEndpoints())
		}
	})
}

func TestMCPApprovalAcrossNodes(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, address string) {
		a, b, _, shop := twoNodes(t, address)
		_, token := a.newcomer(t, "ada", account.ScopeMCP)
		_, eve := a.newcomer(t, "eve", account.ScopeMCP)
		asked := a.pay(t, token, "")
		if asked.Result.Type != "input_required" || asked.Result.State == "" {
			t.Fatalf("no prompt appears: %+v", asked)
		}
		if got := b.pay(t, eve, asked.Result.State); got.Result.Type != "input_required" {
			t.Errorf("another user answers: %+v", got)
		}
		if got := b.pay(t, token, asked.Result.State); got.Result.Type != "complete" || shop.paid.Load() != 1 {
			t.Errorf("the answer at the other node gives %+v, and %d are paid", got, shop.paid.Load())
		}
		for _, n := range []*node{a, b} {
			if got := n.pay(t, token, asked.Result.State); got.Result.Type != "input_required" || shop.paid.Load() != 1 {
				t.Errorf("the same answer again gives %+v, and %d are paid", got, shop.paid.Load())
			}
		}
	})
}

// paid is a raw response of the modern era.
type paid struct {
	Result struct {
		Type  string `json:"resultType"`
		State string `json:"requestState"`
	}
	Error *struct{ Message string }
}

// pay calls a tool that needs approval, and approves it when prompted.
func (n *node) pay(t *testing.T, token, state string) (out paid) {
	t.Helper()
	params := args{"name": "call_tool", "arguments": args{"name": "till__pay", "arguments": args{"amount": 5}}, "_meta": args{
		"io.modelcontextprotocol/protocolVersion": newerEra, "io.modelcontextprotocol/clientInfo": args{"name": "wire", "version": "1"},
		"io.modelcontextprotocol/clientCapabilities": args{"elicitation": args{"form": args{}}}}}
	if state != "" {
		params["requestState"] = state
		params["inputResponses"] = args{"loadout/approve": args{"action": "accept", "content": args{"decision": "once"}}}
	}
	c := n.wired(token).with("MCP-Protocol-Version", newerEra).with("Mcp-Method", "tools/call").with("Mcp-Name", "call_tool")
	r := c.send(t, "POST", "/mcp", args{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).want(t, 200)
	if _, data, ok := strings.Cut(r.body, "data: "); ok {
		r.body, _, _ = strings.Cut(data, "\n")
	}
	if r.into(t, &out); out.Error != nil {
		t.Fatalf("the answer is %s", r.body)
	}
	return out
}

func TestK21ApprovalGateOverMCP(t *testing.T) {
	n, shop := withShop(t)
	for i, era := range eras {
		t.Run(era, func(t *testing.T) {
			p, token := n.newcomer(t, fmt.Sprint("ada", i), account.ScopeMCP|account.ScopeReview)
			_, other := n.newcomer(t, fmt.Sprint("eve", i), account.ScopeMCP)
			cs := connectMCP(t, n.URL+"/mcp", token, era, nil)
			before := shop.paid.Load()
			res := through(t, cs, "till__pay")
			how := regexp.MustCompile(`POST (\S+) with (\{.*?\})`).FindStringSubmatch(textOfResult(res))
			if !res.IsError || how == nil || shop.paid.Load() != before {
				t.Fatalf("without permission got %q, and %d are paid", textOfResult(res), shop.paid.Load())
			}
			me := caller{node: n, token: token}
			id := me.send(t, "POST", how[1], how[2]).want(t, 201).text(t, "id")
			if res := through(t, cs, "till__pay"); res.IsError || shop.paid.Load() != before+1 {
				t.Errorf("with permission got %q, and %d are paid", textOfResult(res), shop.paid.Load())
			}
			if res := through(t, connectMCP(t, n.URL+"/mcp", other, era, nil), "till__pay"); !res.IsError {
				t.Errorf("for another user got %q", textOfResult(res))
			}
			me.send(t, "DELETE", "/api/v1/grants/"+id, nil).want(t, 204)
			if res := through(t, cs, "till__pay"); !res.IsError || shop.paid.Load() != before+1 {
				t.Errorf("after revocation got %q, and %d are paid", textOfResult(res), shop.paid.Load())
			}
			if got := decisionsBy(t, n, p, "tool.call"); !slices.Equal(got, []string{"asked", "allowed", "asked"}) {
				t.Errorf("the audit log has %v", got)
			}
			if got := decisionsBy(t, n, p, string(account.MCPConnect)); len(got) == 0 {
				t.Error("the connection is not in the audit log")
			}
		})
	}
}

func TestMCPAsksThroughTheClient(t *testing.T) {
	n, shop := withShop(t)
	_, token := n.newcomer(t, "ada", account.ScopeMCP)
	answer := ""
	cs := connectMCP(t, n.URL+"/mcp", token, newerEra, &mcp.ClientOptions{ElicitationHandler: func(_ context.Context, req *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		if !strings.Contains(req.Params.Message, "till__pay") {
			t.Errorf("the question is %q", req.Params.Message)
		}
		return &mcp.ElicitResult{Action: "accept", Content: args{"decision": answer}}, nil
	}})
	for _, tt := range []struct {
		answer  string
		paid    int64
		refused bool
	}{{"no", 0, true}, {"once", 1, false}, {"no", 1, true}, {"always", 2, false}, {"no", 3, false}} {
		answer = tt.answer
		if res := through(t, cs, "till__pay"); res.IsError != tt.refused || shop.paid.Load() != tt.paid {
			t.Errorf("with %q got %q, and %d are paid, want %d", tt.answer, textOfResult(res), shop.paid.Load(), tt.paid)
		}
	}
}

// Names of tools are as every client takes them.
func TestK20ToolNamesOverMCP(t *testing.T) {
	n, _ := withShop(t)
	_, token := n.newcomer(t, "ada", account.ScopeMCP)
	cs := connectMCP(t, n.URL+"/mcp", token, newerEra, nil)
	plain := regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)
	for tool, err := range cs.Tools(t.Context(), nil) {
		if err != nil || !plain.MatchString(tool.Name) {
			t.Errorf("%v, %v", tool, err)
		}
	}
	found := textOfResult(callMCP(t, cs, "find_tools", args{}))
	for _, name := range []string{"shop__look", "shop__wait", "till__pay"} {
		if !strings.Contains(found, name) {
			t.Errorf("%s is not in %s", name, found)
		}
	}
}

// A hub is an MCP server by Streamable HTTP with a token, to our own client too.
func TestK19HubAsUpstream(t *testing.T) {
	n, _ := withShop(t)
	p, token := n.newcomer(t, "ada", account.ScopeMCP)
	n.put(t, p, ownPlace(p), "pdf", "Read the PDF.")
	pool := upstream.NewPool(&upstream.PoolOptions{Dialer: &upstream.Dialer{}})
	defer pool.Close()
	c := &upstream.Config{Name: "hub", URLs: []string{n.URL + "/mcp"}, Headers: map[string]string{"Authorization": "Bearer ${{secrets.TOKEN}}"}}
	resolved, unset := c.Resolve(upstream.Variables{Secret: func(string) (string, bool) { return token, true }})
	if len(unset) > 0 {
		t.Fatal(unset)
	}
	s := pool.Server(resolved, "")
	defer s.Release()
	if list := must(s.Tools(t.Context()))(t); len(list.Tools) < 5 {
		t.Errorf("%d tools", len(list.Tools))
	}
	res := must(s.Call(t.Context(), &mcp.CallToolParams{Name: "load_skill", Arguments: args{"name": "pdf"}}, nil))(t)
	if !strings.Contains(textOfResult(res), "Read the PDF.") {
		t.Errorf("got %q", textOfResult(res))
	}
}

const weiboGhost = `apiVersion: agent.wecode.io/v1
kind: Ghost
metadata:
  name: weibo
spec:
  systemPrompt: You are an analyst of posts.
  skills: [pdf]
`

// A Ghost is served with its prompt and its skills, and to who sees it alone.
func TestMCPGhost(t *testing.T) {
	n, _ := withShop(t)
	p, token := n.newcomer(t, "ada", account.ScopeMCP)
	_, eve := n.newcomer(t, "eve", account.ScopeMCP)
	n.put(t, p, ownPlace(p), "pdf", "Read the PDF.")
	n.put(t, n.root(t), store.Public, "csv", "Read the CSV.") // one of his own would be a default of his
	n.write(t, p, weiboGhost)
	paths := []string{"/mcp/p/weibo", "/mcp/p/" + string(ownPlace(p)) + "/weibo"}
	for _, era := range eras {
		for _, path := range append(paths, "/mcp/p/default/weibo") {
			cs := connectMCP(t, n.URL+path, token, era, nil)
			if got := cs.InitializeResult().Instructions; !strings.HasPrefix(got, "You are an analyst of posts.") {
				t.Errorf("%s at %s: the instructions are %q", era, path, got)
			}
			tools := string(must(json.Marshal(must(cs.ListTools(t.Context(), nil))(t).Tools))(t))
			if !strings.Contains(tools, "- pdf: ") || strings.Contains(tools, "- csv: ") {
				t.Errorf("%s at %s: the tools are %s", era, path, tools)
			}
			if res := callMCP(t, cs, "load_skill", args{"name": "csv"}); !res.IsError {
				t.Errorf("%s at %s: another skill is loaded: %q", era, path, textOfResult(res))
			}
		}
	}
	for _, path := range paths {
		n.wired(eve).send(t, "POST", path, initializeMCP).wantProblem(t, 404, "not_found")
	}
}

func TestMCPUsesCurrentRights(t *testing.T) {
	n, _ := withShop(t)
	p, token := n.newcomer(t, "ada", account.ScopeMCP)
	group := must(n.DB().Groups.Create(t.Context(), store.Group{Name: "web"}))(t).ID
	if err := n.DB().Groups.SetMember(t.Context(), store.Member{GroupID: group, UserID: string(p.User), Role: store.Reporter}); err != nil {
		t.Fatal(err)
	}
	n.put(t, n.root(t), store.GroupNamespace(group), "pdf", "Read the PDF.")
	var clients []*mcp.ClientSession
	for _, era := range eras {
		cs := connectMCP(t, n.URL+"/mcp", token, era, nil)
		if res := callMCP(t, cs, "load_skill", args{"name": "pdf"}); res.IsError {
			t.Errorf("%s: a member got %q", era, textOfResult(res))
		}
		clients = append(clients, cs)
	}
	if err := n.DB().Groups.RemoveMember(t.Context(), group, string(p.User)); err != nil {
		t.Fatal(err)
	}
	for _, cs := range clients {
		if res := callMCP(t, cs, "load_skill", args{"name": "pdf"}); !res.IsError {
			t.Errorf("who left got %q", textOfResult(res))
		}
	}
	if n.MCPEndpoints() != 1 {
		t.Errorf("%d endpoints are stored for one user", n.MCPEndpoints())
	}
}

func TestMCPUsageCounts(t *testing.T) {
	n := team(t)
	p, token := n.newcomer(t, "ada", account.ScopeMCP)
	s := n.put(t, p, ownPlace(p), "pdf", "Read the PDF.")
	cs := connectMCP(t, n.URL+"/mcp", token, newerEra, nil)
	for range 3 {
		callMCP(t, cs, "load_skill", args{"name": "pdf"})
	}
	var got store.SkillUsage
	eventually(t, func() bool {
		got = must(n.DB().Usage.Sum(t.Context(), []string{s.ID}, s.Created.AddDate(0, 0, -1)))(t)[s.ID]
		return got.Loads == 3
	})
	if got.Tokens == 0 || got.Errors != 0 {
		t.Errorf("counted: %+v", got)
	}
	sums := must(n.DB().Meter.Sum(t.Context(), store.MeterQuery{GroupBy: store.ByUser, Since: s.Created.AddDate(0, 0, -1)}))(t)
	if len(sums) != 1 || sums[0].Owner != string(p.User) || sums[0].Loads != 3 {
		t.Errorf("sums are %+v", sums)
	}
}

func TestMCPUsageIsStoredAtClose(t *testing.T) {
	dir, skillID := t.TempDir(), ""
	t.Cleanup(func() { // after the hub is closed
		ctx := context.Background()
		db := must(store.Open(ctx, "sqlite:"+filepath.Join(dir, "hub.db"), nil))(t)
		defer db.Close()
		if got := must(db.Usage.Sum(ctx, []string{skillID}, time.Now().AddDate(0, 0, -1)))(t)[skillID]; got.Loads != 1 {
			t.Errorf("counted: %+v", got)
		}
	})
	n := start(t, hub.Options{Data: dir, FirstAdmin: &hub.FirstAdmin{Name: "root", Password: secret}, Accounts: true})
	p, token := n.newcomer(t, "ada", account.ScopeMCP)
	skillID = n.put(t, p, ownPlace(p), "pdf", "Read the PDF.").ID
	callMCP(t, connectMCP(t, n.URL+"/mcp", token, newerEra, nil), "load_skill", args{"name": "pdf"})
}

// An access token of the identity provider is accepted at the MCP endpoint that it was
// issued for, and nowhere else. Only users who have an account have access.
func TestMCPAcceptsAccessTokensOfTheProvider(t *testing.T) {
	p := oidctest.New(t)
	n := start(t, hub.Options{Accounts: true, FirstAdmin: &hub.FirstAdmin{Name: "root", Password: secret},
		Provider: &hub.Provider{Issuer: p.URL, ClientID: p.ClientID, ClientSecret: p.ClientSecret, Everyone: true}})
	p.SetUser("ann-1", map[string]any{"preferred_username": "ann"})
	if status, body, _ := get(t, browser(t), n.URL+"/login/oidc?back=/api/v1/me"); status != 200 {
		t.Fatal(status, body)
	}
	past := time.Now().Add(-time.Hour).Unix()
	other := oidctest.New(t) // signs with other keys
	endpoint := n.URL + "/mcp"
	for name, tt := range map[string]struct {
		token  string
		path   string
		status int
	}{
		"for the endpoint":           {p.AccessToken(t, map[string]any{"sub": "ann-1", "aud": endpoint}), "/mcp", 200},
		"for several resources":      {p.AccessToken(t, map[string]any{"sub": "ann-1", "aud": []string{"https://other.example", endpoint}}), "/mcp", 200},
		"for another service":        {p.AccessToken(t, map[string]any{"sub": "ann-1", "aud": "https://other.example/mcp"}), "/mcp", 401},
		"for the sign-in":            {p.AccessToken(t, map[string]any{"sub": "ann-1", "aud": p.ClientID}), "/mcp", 401},
		"for nothing":                {p.AccessToken(t, map[string]any{"sub": "ann-1"}), "/mcp", 401},
		"for another endpoint":       {p.AccessToken(t, map[string]any{"sub": "ann-1", "aud": n.URL + "/mcp/p/x"}), "/mcp", 401},
		"of a user without account":  {p.AccessToken(t, map[string]any{"sub": "bob-1", "aud": endpoint}), "/mcp", 401},
		"without a user":             {p.AccessToken(t, map[string]any{"aud": endpoint}), "/mcp", 401},
		"expired":                    {p.AccessToken(t, map[string]any{"sub": "ann-1", "aud": endpoint, "exp": past}), "/mcp", 401},
		"of another provider":        {other.AccessToken(t, map[string]any{"sub": "ann-1", "aud": endpoint}), "/mcp", 401},
		"signed by another provider": {other.AccessToken(t, map[string]any{"sub": "ann-1", "aud": endpoint, "iss": p.URL}), "/mcp", 401},
		"no token":                   {"a.b.c", "/mcp", 401},
		"for the API":                {p.AccessToken(t, map[string]any{"sub": "ann-1", "aud": n.URL + "/api/v1/me"}), "/api/v1/me", 401},
		"at the API":                 {p.AccessToken(t, map[string]any{"sub": "ann-1", "aud": endpoint}), "/api/v1/me", 401},
	} {
		method, body := "POST", any(initializeMCP)
		if tt.path != "/mcp" {
			method, body = "GET", nil
		}
		r := n.wired(tt.token).with("Accept", "application/json, text/event-stream").send(t, method, tt.path, body)
		if r.status != tt.status {
			t.Errorf("%s: %d %s, want %d", name, r.status, r.body, tt.status)
		}
	}
	// Invalid tokens with unknown keys are limited, because each causes a request to the
	// provider. Valid ones are not.
	valid, forged := n.wired(p.AccessToken(t, map[string]any{"sub": "ann-1", "aud": endpoint})), n.wired(other.AccessToken(t, map[string]any{"sub": "ann-1", "aud": endpoint, "iss": p.URL}))
	initialize := func(c caller) int { return c.send(t, "POST", "/mcp", initializeMCP).status }
	for range 100 {
		if status := initialize(valid); status != 200 {
			t.Fatalf("a valid token: %d", status)
		}
	}
	const tries = 100
	for i := 0; initialize(forged) != 429; i++ {
		if i == tries {
			t.Fatalf("%d forged tokens were checked with the provider, %d requests for keys", tries, p.Requests("/keys"))
		}
	}
	if status := initialize(valid); status != 200 {
		t.Errorf("a valid token after forged ones of the same network: %d", status)
	}
	meta := n.anybody().send(t, "GET", "/.well-known/oauth-protected-resource/mcp", nil).want(t, 200)
	if !strings.Contains(meta.body, `"authorization_servers":["`+p.URL+`"]`) {
		t.Errorf("metadata %s, want the provider", meta.body)
	}
}
