package agentapi_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout/internal/hub"
	"github.com/loadout-dev/loadout/internal/hub/agents"
	"github.com/loadout-dev/loadout/internal/hub/hubtest"
	"github.com/loadout-dev/loadout/internal/llm/demo"
	"github.com/loadout-dev/loadout/internal/store/storetest"
	"github.com/loadout-dev/loadout/internal/usage"
	"github.com/loadout-dev/loadout/llm"
)

func TestMain(m *testing.M) { os.Exit(storetest.Main(m)) }

var request = hubtest.NewRequest

var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}

// apply applies YAML documents.
func apply(t *testing.T, c *hubtest.Client, documents string) *hubtest.Response {
	t.Helper()
	return c.With("Content-Type", "application/yaml").Must("POST", "/apply", []byte(documents))
}

const team = `kind: Team
metadata: {name: crew}
spec: {members: [{botRef: lead, role: leader}, {botRef: writer}]}
---
kind: Bot
metadata: {name: lead}
spec: {ghostRef: plan, modelRef: small}
---
kind: Bot
metadata: {name: writer, description: writes}
spec: {ghostRef: plan}
---
kind: Ghost
metadata: {name: plan}
spec: {systemPrompt: Plan., skills: [prose]}
---
kind: Model
metadata: {name: small}
spec: {vendor: demo}
---
kind: Skill
metadata: {name: prose}
spec: {description: Writes., prompt: "Write.\n"}
`

func TestApply(t *testing.T) {
	c := hubtest.Open(t, hub.Options{}).Client()
	yaml := c.With("Content-Type", "text/yaml; charset=utf-8")
	yaml.Check(
		request("POST", "/apply?dry=true", []byte(team), 200, `"kept":false & "outcome":"created"`),
		request("GET", "/kinds/Team/default/crew", nil, 404, ""),
		request("POST", "/apply", []byte(team), 200, `"kept":true & "outcome":"created" & !"outcome":"updated" & "line":5`),
		request("POST", "/apply", []byte(team), 200, `"outcome":"unchanged" & !"outcome":"created"`),
		request("POST", "/apply", []byte("kind: Ghost\nmetadata: {name: plan}\nspec: {systemPrompt: \"Plan\\u200bahead.\", skills: [prose]}\n"), 200, `"outcome":"updated" & "path":"spec.systemPrompt" & \u200b`),
		request("POST", "/apply", []byte("kind: Ghost\nmetadata: {name: plan}\nspec: {skills: [prose], preload_skills: [poems]}\n"), 422, `"refused" & nothing was saved & Ghost plan (line 2) & "changes":`),
		request("POST", "/apply?dry=true", []byte("kind: Ghost\nmetadata: {name: plan}\nspec: {skills: [prose], preload_skills: [poems]}\n"), 200, `"outcome":"refused" & "kept":false`),
	)
	for kind, status := range map[string]int{"": 200, "application/yaml": 200, "application/x-yaml": 200, "text/x-yaml": 200, "application/json": 200, "text/html": 415} {
		r := c.With("Content-Type", kind).Send(t.Context(), "POST", "/apply", []byte(`{"kind": "Ghost", "metadata": {"name": "g"}}`))
		if r.Status != status {
			t.Errorf("%q: %d %s", kind, r.Status, r.Body)
		}
	}
	// At most five rejected documents are named.
	bad := func(n int) []byte {
		return []byte(strings.Repeat("kind: Ghost\nmetadata: {name: \"\"}\nspec: {systemPrompt: 7}\n---\n", n))
	}
	yaml.Check(request("POST", "/apply", bad(5), 422, "!more"), request("POST", "/apply", bad(6), 422, ", 1 more"), request("POST", "/apply", bad(7), 422, ", 2 more"))
	// A megabyte is too much.
	large := func(n int) []byte {
		head := "kind: Shell\nmetadata: {name: a}\n# "
		return []byte(head + strings.Repeat("x", n-len(head)))
	}
	yaml.Check(request("POST", "/apply", large(1<<20-1), 200, ""), request("POST", "/apply", large(1<<20), 413, "too_large"))
}

// Documents of a form are JSON in a stream of YAML. They create resources, or change
// the generation that they state.
func TestApplyNew(t *testing.T) {
	c := hubtest.Open(t, hub.Options{}).Client().With("Content-Type", "application/yaml")
	documents := func(generation, prompt, ghost string) []byte {
		return []byte("---\n{\n  \"kind\": \"Ghost\",\n  \"metadata\": {\n    \"name\": \"plan\"" + generation + "\n  },\n  \"spec\": {\n    \"systemPrompt\": \"" + prompt + "\"\n  }\n}\n" +
			"---\n{\n  \"kind\": \"Bot\",\n  \"metadata\": {\n    \"name\": \"" + ghost + "-bot\"\n  },\n  \"spec\": {\n    \"ghostRef\": {\n      \"name\": \"" + ghost + "\"\n    }\n  }\n}\n")
	}
	c.Check(
		request("POST", "/apply?new=true", documents("", `Plan.\n---\n\u2028: \"x\"`, "gone"), 422, `"refused" & "line":15 & !"document-exists"`),
		request("POST", "/apply?new=true", documents("", `Plan.\n---\n\u2028: \"x\"`, "plan"), 200, `"kept":true`),
		request("GET", "/kinds/Ghost/default/plan", nil, 200, `Plan.\n---\n`),
		request("POST", "/apply?new=true", documents("", "Other.", "plan"), 422, `"document-exists"`),
		request("POST", "/apply?new=true", documents(`, "generation": 1`, "Other.", "plan"), 200, `"outcome":"updated" & "outcome":"unchanged"`),
		request("POST", "/apply?new=true", documents(`, "generation": 1`, "Late.", "plan"), 412, `"stale"`),
		request("GET", "/kinds/Ghost/default/plan", nil, 200, `Other.`),
	)
}

// A request that applies and deletes changes all or nothing.
func TestApplyAndDelete(t *testing.T) {
	c := hubtest.Open(t, hub.Options{}).Client().With("Content-Type", "application/yaml")
	apply(t, c, team)
	bot := []byte("kind: Bot\nmetadata: {name: lead, description: leads}\nspec: {ghostRef: plan}\n")
	const crew, lead, writer, plan = "delete=Team/default/crew", "delete=Bot/default/lead", "delete=Bot/default/writer", "delete=Ghost/default/plan"
	c.Check(
		request("POST", "/apply?delete=Bot/default/writer", bot, 409, `"in_use" & Bot \"writer\" is referenced by Team \"crew\" & "name":"crew"`),
		request("GET", "/kinds/Bot/default/lead", nil, 200, `"generation":1 & !leads`),
		request("POST", "/apply?dry=true&"+plan+"&"+crew+"&"+lead, nil, 409, `Ghost \"plan\" is referenced by Bot \"writer\"`),
		request("GET", "/kinds/Team/default/crew", nil, 200, ``),
		request("POST", "/apply?dry=true&"+crew, bot, 200, `"kept":false`),
		request("GET", "/kinds/Team/default/crew", nil, 200, ``),
		request("POST", "/apply?"+crew, []byte("kind: Bot\nmetadata: {name: lead}\nspec: {ghostRef: gone}\n"), 422, `"refused"`),
		request("GET", "/kinds/Team/default/crew", nil, 200, ``),
		request("POST", "/apply?"+crew+"/2", bot, 412, `"stale" & Team crew & changed the Team \"crew\" & generation is 1, document has 2 & "generation":1`),
		request("POST", "/apply?dry=true&"+crew+"/2", bot, 200, `"kept":false & "outcome":"updated" & "outcome":"refused"`),
		request("GET", "/kinds/Bot/default/lead", nil, 200, `"generation":1`),
		request("POST", "/apply?"+crew+"/0", bot, 422, `query.delete[0]`),
		request("POST", "/apply?"+crew+"/x", bot, 422, `query.delete[0]`),
		request("POST", "/apply?"+crew+"/1", bot, 200, `"outcome":"updated" & "kept":true`),
		request("GET", "/kinds/Team/default/crew", nil, 404, ``),
		request("POST", "/apply?"+crew, bot, 200, `"outcome":"unchanged"`),
		request("POST", "/apply?"+lead, bot, 422, `"document-deleted"`),
		request("POST", "/apply?"+plan+"&"+lead+"&"+writer+"&"+lead, nil, 200, `"changes":[]`), // in any order
		request("GET", "/kinds/Ghost/default/plan", nil, 404, ``),
		request("POST", "/apply?delete=Skill/default/prose", nil, 422, `query.delete[0]`),
		request("POST", "/apply?delete=Ghost/plan", nil, 422, `KIND/NAMESPACE/NAME`),
	)
}

func TestPutKind(t *testing.T) {
	c := hubtest.Open(t, hub.Options{}).Client()
	apply(t, c, team)
	const at = "/kinds/Ghost/default/plan"
	read := c.Must("GET", at, nil)
	if read.Header.Get("ETag") != `"1"` {
		t.Errorf("ETag %q", read.Header.Get("ETag"))
	}
	changed := strings.Replace(read.Body, "Plan.", "Do.", 1)
	c.Check(
		request("PUT", at, read.Body, 200, `"outcome":"unchanged"`),
		request("PUT", at+"?dry=true", changed, 200, `"outcome":"updated" & "kept":false`),
		request("GET", at, nil, 200, `Plan.`),
		request("PUT", at, `[]`, 422, ""),
		request("PUT", at, "", 400, ""),
		request("PUT", at, `{"kind": "Bot", "metadata": {"name": "d", "namespace": "public"}}`, 422, "body.kind & body.metadata.name & body.metadata.namespace"),
		request("PUT", at, `{"kind": "Ghost", "metadata": {"name": "plan", "namespace": "public"}}`, 422, "!body.kind & !body.metadata.name\" & body.metadata.namespace"),
		request("PUT", "/kinds/Ghost/nowhere/plan", read.Body, 404, ""),
		request("PUT", "/kinds/Shell/default/plan", read.Body, 422, ""),
	)
	c.With("Content-Type", "text/yaml").Check(request("PUT", at, []byte(read.Body), 415, "text/yaml"))
	for _, etag := range []string{`"0"`, `"-1"`, `1`, `"01"`, `"x"`, `W/"1"`} {
		c.With("If-Match", etag).Check(request("PUT", at, changed, 422, "header.If-Match"))
	}
	c.With("If-Match", `"2"`).Check(request("PUT", at, changed, 412, `"stale"`))
	c.With("If-Match", `"1"`).Check(request("PUT", at, changed, 200, `"outcome":"updated"`))
	c.With("If-Match", `"1"`).Check(request("PUT", "/kinds/Skill/default/prose", c.Must("GET", "/kinds/Skill/default/prose", nil).Body, 422, "not an ETag"))
	c.Check(request("GET", at, nil, 200, `"generation":2 & Do.`))
}

func TestKinds(t *testing.T) {
	c := hubtest.Open(t, hub.Options{}).Client()
	apply(t, c, team)
	c.Check(
		request("GET", "/kinds/Bot", nil, 200, `"name":"lead" & "name":"writer" & "description":"writes" & "namespace":"default" & "generation":1`),
		request("GET", "/kinds/Bot?limit=1", nil, 200, `"name":"lead" & !"name":"writer" & "next":`),
		request("GET", "/agents", nil, 200, `"kind":"Ghost","metadata":{"name":"plan" & "name":"lead" & "description":"writes" & "kind":"Team" & "namespace":"default" & !"small" & !"spec"`),
		request("GET", "/kinds/Bot?namespace=public", nil, 200, `"items":[]`),
		request("GET", "/kinds/Bot?namespace=nowhere", nil, 404, ""),
		request("GET", "/kinds/Skill", nil, 200, `"name":"prose" & "description":"Writes." & !prompt & "namespace":"default"`),
		request("GET", "/kinds/Skill?namespace=default", nil, 200, `"name":"prose"`),
		request("GET", "/kinds/Skill?namespace=public", nil, 200, `"items":[]`),
		request("GET", "/kinds/Skill?namespace=nowhere", nil, 404, ""),
		request("GET", "/kinds/Skill/default/prose", nil, 200, `"prompt":"Write.\n" & "digest":"sha256: & "generation":1`),
		request("GET", "/kinds/Skill/default/none", nil, 404, ""),
		request("GET", "/kinds/Model/default/small", nil, 200, `"digest":"sha256:`),
		request("GET", "/kinds/Ghost/default/plan", nil, 200, `!"digest" & "systemPrompt":"Plan."`),
		request("GET", "/kinds/Ghost/default/none", nil, 404, ""),
		request("GET", "/kinds/Ghost/default/plan/referrers", nil, 200, `"name":"lead" & "name":"writer" & "slot":"ghostRef" & "namespace":"default"`),
		request("GET", "/kinds/Ghost/default/none/referrers", nil, 404, ""),
		request("GET", "/kinds/Skill/default/prose/referrers", nil, 200, `"name":"plan"`),
		request("GET", "/kinds/Skill/default/none/referrers", nil, 404, ""),
		request("GET", "/kinds/Team/default/crew/profile", nil, 200, `"kind":"Team" & "namespace":"default" & "enabled":true & "vendor":"demo" & "key":"none" & "members":[{ & "name":"writer" & "problems":[] & "servers":[]`),
		request("GET", "/kinds/Ghost/default/plan/profile", nil, 200, `"name":"prose" & "members":[] & !"model":`),
		request("GET", "/kinds/Model/default/small/profile", nil, 422, "cannot hold conversations"),
		request("GET", "/kinds/Ghost/default/none/profile", nil, 404, ""),
	)
	c.CheckFailures("/agents", "/kinds/Bot", "/kinds/Skill?namespace=default", "/kinds/Skill/default/prose", "/kinds/Model/default/small", "/kinds/Ghost/default/plan/referrers",
		"/kinds/Skill/default/prose/referrers", "/kinds/Team/default/crew/profile")
	c.Check(
		request("DELETE", "/kinds/Ghost/default/plan", nil, 409, `in_use & Bot \"lead\" & Bot \"writer\" & "references"`),
		request("DELETE", "/kinds/Ghost/default/plan?dry=true", nil, 409, "in_use"),
		request("DELETE", "/kinds/Skill/default/prose", nil, 400, "SKILL_REFERENCED"),
		request("DELETE", "/kinds/Skill/default/prose?dry=true", nil, 400, "SKILL_REFERENCED"),
		request("DELETE", "/kinds/Team/default/crew?dry=true", nil, 204, ""),
		request("DELETE", "/kinds/Team/default/crew", nil, 204, ""),
		request("DELETE", "/kinds/Team/default/crew", nil, 404, ""),
		request("DELETE", "/kinds/Bot/default/lead", nil, 204, ""),
		request("DELETE", "/kinds/Bot/default/writer", nil, 204, ""),
		request("DELETE", "/kinds/Ghost/default/plan", nil, 204, ""),
		request("DELETE", "/kinds/Skill/default/prose?dry=true", nil, 204, ""),
		request("GET", "/kinds/Skill/default/prose", nil, 200, ""),
		request("DELETE", "/kinds/Skill/default/prose", nil, 204, ""),
		request("DELETE", "/kinds/Skill/default/prose", nil, 404, ""),
	)
}

func TestModels(t *testing.T) {
	price := func(name string) (usage.Price, bool) {
		return usage.Price{Input: 1, Output: 2, CacheRead: 3, CacheWrite: 4}, name == "openai:gpt"
	}
	window := func(name string) int {
		if name == "openai:gpt" {
			return 1000
		}
		return 0
	}
	c := hubtest.Open(t, hub.Options{Price: price, Window: window}).Client()
	apply(t, c, "kind: Model\nmetadata: {name: big}\nspec: {vendor: openai, model: gpt, apiKey: \"${{secrets.big_key}}\"}\n---\nkind: Model\nmetadata: {name: small}\nspec: {vendor: demo}\n")
	model := `"price":{"input":1,"output":2,"cache_read":3,"cache_write":4},"window":1000`
	c.Check(
		request("GET", "/models", nil, 200, `"own":true,"vendor":"demo" & "key":"operator" & "name":"big" & "key":"missing" & "name":"small" & "key":"none" & `+model),
		request("GET", "/models?limit=1", nil, 200, `"own":true & "name":"big" & !"name":"small"`),
		request("GET", "/models?after="+c.Must("GET", "/models?limit=1", nil).Text("next"), nil, 200, `!"own":true & "name":"small" & !"name":"big"`),
	)
	_, rest, _ := strings.Cut(c.Must("GET", "/kinds/Model/default/big", nil).Body, `"digest":"`)
	digest, _, _ := strings.Cut(rest, `"`)
	c.Check(
		request("PUT", "/secrets/big_key", `{"value": "k3y"}`, 204, ""),
		request("POST", "/secrets/big_key/grants", `{"kind": "Model", "namespace": "default", "name": "big", "digest": "`+digest+`"}`, 204, ""),
		request("GET", "/models", nil, 200, `"key":"granted" & !"key":"missing"`),
		request("GET", "/secrets/big_key/grants", nil, 200, digest),
		request("GET", "/secrets/other/grants", nil, 200, `"items":[]`),
		request("DELETE", "/secrets/big_key/grants?digest="+digest, nil, 204, ""),
		request("GET", "/models", nil, 200, `"key":"missing" & !"key":"granted"`),
	)
	c.CheckFailures("/models", "/secrets/big_key/grants")
}

func TestSecrets(t *testing.T) {
	c := hubtest.Open(t, hub.Options{}).Client()
	c.Check(
		request("PUT", "/secrets/token", `{"value": ""}`, 422, ""),
		request("PUT", "/secrets/token", `{"value": "v4lue"}`, 204, ""),
		request("PUT", "/secrets/to-ken", `{"value": "v4lue"}`, 422, "path.secret & use letters, digits and _"),
		request("PUT", "/secrets/longest", `{"value": "`+strings.Repeat("x", 65536)+`"}`, 204, ""),
		request("PUT", "/secrets/longer", `{"value": "`+strings.Repeat("x", 65537)+`"}`, 422, ""),
		request("PUT", "/secrets/token?owner=public", `{"value": "other"}`, 204, ""),
		request("PUT", "/secrets/token?owner=nowhere", `{"value": "other"}`, 404, ""),
		request("PUT", "/secrets/token?owner=skill:none", `{"value": "other"}`, 404, ""),
		request("PUT", "/secrets/token?owner=server:none", `{"value": "other"}`, 404, ""),
		request("GET", "/secrets", nil, 200, `"name":"token" & "name":"longest" & !v4lue`),
		request("GET", "/secrets?owner=public", nil, 200, `"name":"token" & !"name":"longest"`),
		request("GET", "/secrets?owner=nowhere", nil, 404, ""),
		request("GET", "/secrets/token/grants?owner=nowhere", nil, 404, ""),
		request("POST", "/secrets/token/grants?owner=nowhere", `{"kind": "Model", "name": "x", "digest": "x"}`, 404, ""),
		request("POST", "/secrets/token/grants", `{"kind": "Model", "name": "x", "digest": "x"}`, 404, ""),
		request("DELETE", "/secrets/token/grants?owner=nowhere&digest=x", nil, 404, ""),
		request("DELETE", "/secrets/token/grants", nil, 422, ""),
		request("DELETE", "/secrets/token?owner=nowhere", nil, 404, ""),
		request("DELETE", "/secrets/none", nil, 404, ""),
	)
	c.CheckFailures("/secrets", "/secrets/token/grants")
	c.Check(request("DELETE", "/secrets/token", nil, 204, ""),
		request("GET", "/secrets", nil, 200, `!"name":"token"`),
		request("GET", "/secrets?owner=public", nil, 200, `"name":"token"`))
}

func TestSkillSettings(t *testing.T) {
	h := hubtest.Open(t, hub.Options{Accounts: true})
	root := h.SignIn("root")
	_, user := root.NewUser("ada")
	root.Must("POST", "/groups", `{"name": "crew"}`)
	root.Check(
		request("GET", "/settings/skills", nil, 200, `"enabled":true & "allow":[] & "generation":0`),
		request("PUT", "/settings/skills", `{"enabled": false, "allow": ["prose"], "generation": 0}`, 200, `"enabled":false & "allow":["prose"] & "generation":1`),
		request("GET", "/settings/skills", nil, 200, `"enabled":false & "allow":["prose"] & "generation":1`),
		request("PUT", "/settings/skills", `{"enabled": true, "allow": [], "generation": 0}`, 409, ""),
		request("PUT", "/settings/skills", `{"enabled": true, "allow": ["`+strings.Repeat("x", 10_000)+`"], "generation": 1}`, 422, "fix the allowlist or the scope"),
		request("GET", "/settings/skills?scope=crew", nil, 200, `"enabled":true`),
		request("GET", "/settings/skills?scope=nowhere", nil, 404, ""),
	)
	user.Check(request("PUT", "/settings/skills", `{"enabled": true, "allow": [], "generation": 1}`, 403, ""))
	root.CheckFailures("/settings/skills", "/settings/skills?scope=crew")
}

// wiki returns the address of an MCP server with a tool, which requires a token unless
// it is "".
func wiki(t *testing.T, token string) string {
	server := mcp.NewServer(&mcp.Implementation{Name: "wiki", Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "look", Title: "Look\u200b", Description: "Looks\u200b at a page.", Annotations: &mcp.ToolAnnotations{Title: "L\u200b", ReadOnlyHint: true}},
		func(context.Context, *mcp.CallToolRequest, struct{ Page string }) (*mcp.CallToolResult, any, error) {
			return &mcp.CallToolResult{}, nil, nil
		})
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{Stateless: true})
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if got := r.Header.Get("Authorization"); token != "" && got != "Bearer "+token {
			http.Error(w, "who is "+got+"?", http.StatusTeapot)
			return
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(web.Close)
	t.Cleanup(web.CloseClientConnections)
	return web.URL
}

func TestServers(t *testing.T) {
	url := wiki(t, "t0ken")
	h := hubtest.Open(t, hub.Options{Accounts: true, Private: loopback})
	root := h.SignIn("root")
	_, user := root.NewUser("ada")
	apply(t, user, "kind: Ghost\nmetadata: {name: reader}\nspec:\n  mcpServers:\n    wiki: {type: streamable-http, url: '"+url+"', headers: {Authorization: 'Bearer ${{user.wiki_token}}'}}\n"+
		"    tool: {command: run-it, args: [\"a\\u200bb\"], env: {KEY: \"v\\u200bw\"}}\n")
	const at = "/servers/Ghost/default/reader"
	user.Check(
		request("GET", "/servers", nil, 200, `"name":"tool" & "name":"wiki" & "kind":"Ghost" & "thing":"reader" & "namespace":"default" & "state":"waits_for_review" & "state":"ready" & "command":["run-it" & "env":{"KEY": & "decision":"pending" & wiki_token & !\u200b`),
		request("GET", at, nil, 200, `"name":"tool" & "name":"wiki" & "thing":"reader" & "urls":["`+url+`"]`),
		request("GET", "/servers/Ghost/default/none", nil, 404, ""),
		request("GET", "/kinds/Ghost/default/reader/profile", nil, 200, `"state":"not_configured" & wiki_token & "state":"waits_for_review"`),
		request("POST", "/servers/test", `{"kind": "Ghost", "name": "reader", "server": "wiki"}`, 200, `"success":false & not configured & wiki_token & "tools":[]`),
		request("POST", "/servers/test", `{"kind": "Ghost", "name": "reader", "server": "tool"}`, 200, `"success":false & another user has to review it`),
		request("POST", "/servers/test", `{"kind": "Ghost", "name": "reader", "server": "none"}`, 404, ""),
		request("POST", "/servers/test", `{}`, 422, "no server given"),
	)
	digest := digestOf(t, user.Must("GET", at, nil).Body, "wiki")
	user.Must("PUT", "/secrets/wiki_token", `{"value": "t0ken"}`)
	user.Must("POST", "/secrets/wiki_token/grants", `{"kind": "Ghost", "name": "reader", "server": "wiki", "digest": "`+digest+`"}`)
	tested := user.Must("POST", "/servers/test", `{"kind": "Ghost", "name": "reader", "server": "wiki"}`)
	for _, want := range []string{`"success":true`, `"name":"look"`, `"title":"Look"`, "Looks at a page.", `"readOnlyHint":true`, `"Page"`} {
		if !strings.Contains(tested.Body, want) || strings.Contains(tested.Body, "\u200b") {
			t.Errorf("no %s in %s", want, tested.Body)
		}
	}
	user.Must("PUT", "/secrets/wiki_token", `{"value": "wr0ng"}`)
	user.Check(
		request("GET", "/kinds/Ghost/default/reader/profile", nil, 200, `"state":"ready"`),
		request("POST", "/servers/test", `{"kind": "Ghost", "name": "reader", "server": "wiki"}`, 200, `"success":false & !wr0ng`),
		request("POST", at+"/restart", `{"server": "wiki"}`, 200, `"servers":0`),
		request("POST", at+"/restart", `{"server": "none"}`, 404, ""),
		request("POST", at+"/accept-tools", `{"server": "wiki", "digests": ["x"]}`, 409, "changed"),
		request("POST", at+"/accept-tools", `{"server": "wiki", "digests": []}`, 422, ""),
		request("POST", "/servers/operator/none/restart", nil, 403, ""),
		request("GET", "/servers/sign-ins", nil, 200, `"items":[]`),
		request("DELETE", "/servers/sign-ins/none", nil, 404, ""),
		request("DELETE", at+"/sign-in?server=wiki", nil, 200, `"signedOut":false`),
		request("POST", at+"/sign-in", `{"server": "none"}`, 404, ""),
	)
	root.Check(request("POST", "/servers/operator/none/restart", nil, 404, ""), request("POST", "/servers/operator/none/accept-tools", `{"digests": ["x"]}`, 404, ""))
	user.CheckFailures("/servers", at, "/kinds/Ghost/default/reader/profile", "/servers/sign-ins")
}

// digestOf returns the digest of a server in a list.
func digestOf(t *testing.T, list, name string) string {
	t.Helper()
	_, rest, _ := strings.Cut(list, `"name":"`+name+`"`)
	_, rest, _ = strings.Cut(rest, `"digest":"`)
	digest, _, ok := strings.Cut(rest, `"`)
	if !ok {
		t.Fatalf("no server %s in %s", name, list)
	}
	return digest
}

func TestServerDrafts(t *testing.T) {
	c := hubtest.Open(t, hub.Options{Private: loopback}).Client()
	open := hubtest.Open(t, hub.Options{}).Client()
	url := wiki(t, "")
	c.Check(
		request("POST", "/servers/test", `{"config": {"type": "streamable-http", "url": "`+url+`"}}`, 200, `"success":true & "name":"look"`),
		request("POST", "/servers/test", `{"config": {"type": "streamable-http"}}`, 200, `"success":false & ; `),
		request("POST", "/servers/test", `{"config": {"command": "run-it"}}`, 200, `"success":false & another user has to review it`),
	)
	open.Check(request("POST", "/servers/test", `{"name": "wiki", "config": {"type": "streamable-http", "url": "`+url+`"}}`, 200, `"success":false & is not public`))
}

func TestServerReview(t *testing.T) {
	h := hubtest.Open(t, hub.Options{Accounts: true})
	root := h.SignIn("root")
	ada, user := root.NewUser("ada")
	group := root.Must("POST", "/groups", `{"name": "crew"}`).Text("id")
	root.Must("PUT", "/groups/"+group+"/members/"+ada, `{"role": "maintainer"}`)
	apply(t, user, "kind: MCPServer\nmetadata: {name: tool, namespace: crew}\nspec: {command: run-it}\n")
	const at = "/servers/MCPServer/crew/tool"
	digest := digestOf(t, user.Must("GET", at, nil).Body, "tool")
	body := func(digest, decision string) string {
		return `{"digest": "` + digest + `", "decision": "` + decision + `", "note": "Read\u200b it."}`
	}
	user.Check(request("PUT", at+"/review", body(digest, "approved"), 403, ""))
	root.Check(
		request("PUT", at+"/review", body("sha256:"+strings.Repeat("0", 64), "approved"), 409, ""),
		request("PUT", at+"/review", body(digest, "perhaps"), 422, ""),
		request("PUT", at+"/review", body(digest, "approved"), 204, ""),
		request("GET", at, nil, 200, `"state":"ready" & "decision":"approved" & "note":"Read it."`),
		request("PUT", at+"/review", body(digest, "rejected"), 204, ""),
		request("GET", at, nil, 200, `"state":"rejected" & "decision":"rejected"`),
	)
}

// An administrator connects a model on the page: its server lists its models, answers
// a test, and answers the next message. A loopback address needs no permission on a
// hub without accounts.
func TestConnectModel(t *testing.T) {
	var keys []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		keys = append(keys, r.Method+" "+r.Header.Get("Authorization"))
		if r.Header.Get("Authorization") != "Bearer right-key" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		switch {
		case strings.HasPrefix(r.URL.Path, "/denied"):
			w.WriteHeader(http.StatusForbidden)
		case strings.HasPrefix(r.URL.Path, "/missing"):
			w.WriteHeader(http.StatusNotImplemented)
		case strings.HasPrefix(r.URL.Path, "/page"):
			io.WriteString(w, "<!doctype html>")
		case strings.HasPrefix(r.URL.Path, "/broken"):
			w.WriteHeader(http.StatusInternalServerError)
		default:
			io.WriteString(w, `{"data": [{"id": "fake"}]}`)
		}
	}))
	defer server.Close()
	var made []*agents.ModelChoice
	o := hub.Options{Model: func(choice *agents.ModelChoice, key string) (llm.Model, error) {
		if choice == nil {
			return demo.New(nil), nil
		}
		made = append(made, choice)
		if choice.Model.Model == "broken" {
			return nil, errors.New("no server with the key right-key")
		}
		return demo.New(nil), nil
	}}
	body := func(base, model, key string) string {
		return fmt.Sprintf(`{"vendor": "openai", "base_url": %q, "model": %q, "key": %q}`, base, model, key)
	}
	replacing := func(base, model, key string) string {
		return strings.TrimSuffix(body(base, model, key), "}") + `, "replace": true}`
	}
	h := hubtest.Open(t, o)
	c := h.Client()
	offered := func(base, key string) string {
		return fmt.Sprintf(`{"vendor": "openai", "base_url": %q, "key": %q}`, base, key)
	}
	c.Check(
		request("GET", "/models", nil, 200, `"own":true,"vendor":"demo"`),
		request("POST", "/models/offered", offered(server.URL, "right-key"), 200, `"items":["fake"]`),
		request("POST", "/models/offered", offered(server.URL, "wrong-key"), 422, `"code":"model_key_rejected" & the server rejected the API key: 401 & "next":"check the key" & !wrong-key`),
		request("POST", "/models/offered", offered(server.URL+"/denied", "right-key"), 422, `"code":"model_list" & 403`),
		request("POST", "/models/offered", offered(server.URL+"/missing", "right-key"), 422, `"code":"model_list" & 501`),
		request("POST", "/models/offered", offered(server.URL+"/page", "right-key"), 422, `"code":"model_list"`),
		request("POST", "/models/offered", offered(server.URL+"/broken", "right-key"), 422, `"code":"model" & 500`),
		request("POST", "/models/offered", offered("http://127.0.0.1:1", "right-key"), 422, `"code":"model_unreachable" & !right-key`),
		request("POST", "/models/offered", offered("http://10.0.0.7/v1", "right-key"), 422, `"code":"model_address" & not public`),
		request("PUT", "/models/default", body(server.URL, "broken", "right-key"), 422, `"code":"model" & !right-key`),
		request("GET", "/models", nil, 200, `"own":true,"vendor":"demo"`),
		request("PUT", "/models/default", body(server.URL, "fake", "right-key"), 200, `"own":true & "name":"default" & "namespace":"public" & "key":"granted" & !right-key`),
		request("GET", "/models?limit=1", nil, 200, `"own":true,"name":"default" & !"window"`),
		request("PUT", "/models/default", strings.TrimSuffix(replacing(server.URL, "fake", "right-key"), "}")+`, "window": 32000}`, 200, `"window":32000`),
		request("GET", "/models?limit=1", nil, 200, `"window":32000`),
		request("PUT", "/models/default", body("https://models.example.com/v1", "other", ""), 409, `"code":"model_exists" & the model fake at `),
		request("PUT", "/models/default", replacing("https://models.example.com/v1", "other", ""), 200, `"key":"none"`),
	)
	if m := made[len(made)-1]; !m.Local || m.BaseURL != "https://models.example.com/v1" {
		t.Errorf("the last model is %+v", m)
	}
	if want := []string{"GET Bearer right-key", "GET Bearer wrong-key", "GET Bearer right-key", "GET Bearer right-key", "GET Bearer right-key", "GET Bearer right-key"}; !slices.Equal(keys, want) {
		t.Errorf("the server got %q, want %q", keys, want)
	}
	// The new address does not get the key of the previous one.
	if r := c.Must("GET", "/secrets?owner=server:"+c.Must("PUT", "/models/default", replacing("https://models.example.com/v1", "other", "")).Text("id"), nil); strings.Contains(r.Body, "API_KEY") {
		t.Errorf("the key of the previous server remains: %s", r.Body)
	}

	o.Accounts = true
	accounts := hubtest.Open(t, o)
	root := accounts.SignIn("root")
	_, ada := root.NewUser("ada")
	ada.Check(
		request("POST", "/models/offered", offered("https://models.example.com/v1", ""), 403, ""),
		request("PUT", "/models/default", body("https://models.example.com/v1", "fake", ""), 403, ""),
		request("GET", "/models", nil, 200, `"own":true,"vendor":"demo"`),
	)
	root.Check(
		request("PUT", "/models/default", body(server.URL, "fake", "right-key"), 422, `not public`), // other users share the hub
		request("PUT", "/models/default", body("https://models.example.com/v1", "fake", "right-key"), 200, `"key":"granted"`),
	)
	ada.Check(request("GET", "/models?limit=1", nil, 200, `"name":"default" & "key":"granted"`)) // it answers everybody

	o.Model = func(*agents.ModelChoice, string) (llm.Model, error) { return named{demo.New(nil)}, nil }
	hubtest.Open(t, o).SignIn("root").Check(request("PUT", "/models/default", body("https://models.example.com/v1", "fake", ""), 409, `operator`))
}

// While a model is tested, another administrator may connect one. It is not replaced
// unasked, and who agreed to replace one Model does not replace another.
func TestConnectModelAtTheSameTime(t *testing.T) {
	var meanwhile func()
	c := hubtest.Open(t, hub.Options{Model: func(choice *agents.ModelChoice, _ string) (llm.Model, error) {
		if choice != nil && choice.Model.Model == "slow" {
			meanwhile()
		}
		return demo.New(nil), nil
	}}).Client()
	connect := func(model, more string) string {
		return fmt.Sprintf(`{"vendor": "openai", "base_url": "https://models.example.com/v1", "model": %q%s}`, model, more)
	}
	const replace = `, "replace": true`
	meanwhile = func() { c.Send(t.Context(), "PUT", "/models/default", connect("first", "")) }
	c.Check(request("PUT", "/models/default", connect("slow", ""), 409, `"code":"model_exists" & the model first at `))
	meanwhile = func() { c.Send(t.Context(), "PUT", "/models/default", connect("second", replace)) }
	r := c.Send(t.Context(), "PUT", "/models/default", connect("slow", replace))
	if r.Status != 409 || !strings.Contains(r.Body, "the model second at ") {
		t.Fatalf("%d: %s", r.Status, r.Body)
	}
	digest := fmt.Sprintf(`%s, "replace_digest": %q`, replace, r.Text("digest"))
	c.Must("PUT", "/models/default", connect("third", replace))
	c.Check(
		request("PUT", "/models/default", connect("fourth", digest), 409, `the model third at `),
		request("GET", "/models?limit=1", nil, 200, `"model":"third"`),
	)
}

// named is a model that is not the demo.
type named struct{ llm.Model }

func (named) Name() string { return "openai:ours" }
