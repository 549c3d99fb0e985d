package hub_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout/internal/encryption"
	"github.com/loadout-dev/loadout/internal/hub"
	"github.com/loadout-dev/loadout/internal/store/storetest"
	"github.com/loadout-dev/loadout/internal/upstream"
)

// applied is the hub's response to documents.
type applied struct {
	Changes []struct {
		Kind, Namespace, Name, Outcome string
		Line                           int
		Diff                           []struct{ Path, Old, New string }
		Findings                       []struct{ Severity, Code, Message string }
	}
	Kept bool
	Code string
}

// onEach runs a test with a hub on each database.
func onEach(t *testing.T, test func(t *testing.T, o hub.Options)) {
	t.Run("SQLite", func(t *testing.T) { test(t, hub.Options{}) })
	t.Run("PostgreSQL", func(t *testing.T) {
		test(t, hub.Options{Database: storetest.Postgres(t), Keys: []encryption.Key{encryption.NewKey()}})
	})
}

// apply sends documents as YAML.
func (c caller) apply(t testing.TB, query, documents string) reply {
	t.Helper()
	return c.send(t, "POST", "/api/v1/apply"+query, typed{"application/yaml", documents})
}

// said returns the results of documents, a line each, with warnings and errors.
func (r reply) said(t testing.TB) string {
	t.Helper()
	var a applied
	r.into(t, &a)
	var b strings.Builder
	for _, c := range a.Changes {
		b.WriteString(c.Outcome + " " + c.Kind + "/" + c.Name)
		for _, f := range c.Findings {
			if f.Severity != "info" {
				b.WriteString("; " + f.Code)
			}
		}
		b.WriteString("\n")
	}
	return b.String()
}

func wantEqual(t testing.TB, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("got + and want -:\n%s", diff)
	}
}

// rootAndAda are an administrator, and a user.
func rootAndAda(t *testing.T, o hub.Options) (n *node, root, ada caller) {
	t.Helper()
	o.FirstAdmin, o.Accounts = &hub.FirstAdmin{Name: "root", Password: secret}, true
	n = start(t, o)
	root = n.signIn(t, "root", secret)
	_, ada = n.newUser(t, root, "ada")
	return n, root, ada
}

const weibo = `apiVersion: agent.wecode.io/v1
kind: Ghost
metadata:
  name: weibo-test
spec:
  systemPrompt: "You are a Weibo analyst"
  skills:
    - weibo
  mcpServers:
    weiboServer:
      type: streamable-http
      url: https://weibo-api.example.com
      headers:
        Authorization: Bearer ${{user.weibo_token}}
---
apiVersion: agent.wecode.io/v1
kind: Skill
metadata:
  name: weibo
spec:
  description: Reads posts of Weibo.
  mcpServers: [weiboServer]
  prompt: |
    Call getUserInfo.
`

var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}

// guarded is an MCP server that requires a token, and reports the token it got if that
// is wrong.
func guarded(t *testing.T, token string) *httptest.Server {
	server := mcp.NewServer(&mcp.Implementation{Name: "weibo", Version: "1"}, nil)
	tool := &mcp.Tool{Name: "getUserInfo", Description: "Who somebody is.", Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}}
	mcp.AddTool(server, tool, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "ada of Weibo"}}}, nil, nil
	})
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{Stateless: true})
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if got := r.Header.Get("Authorization"); got != "Bearer "+token {
			http.Error(w, "who is "+got+"?", http.StatusTeapot)
			return
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(web.Close)
	return web
}

type profile struct {
	Enabled bool
	Skills  []struct {
		Name, ID string
		Preload  bool
	}
	Servers []struct {
		Name, Kind, State, Digest, Target string
		Missing                           []string
	}
	Model    *struct{ Name, Vendor, Key string }
	Members  []struct{ Name, Role string }
	Problems []string
}

func (c caller) profile(t testing.TB, path string) (p profile) {
	t.Helper()
	c.send(t, "GET", "/api/v1/kinds/"+path+"/profile", nil).want(t, 200).into(t, &p)
	return p
}

// The documents of Wegent as they stand, from the file to the tools of their server.
func TestWegentExampleOverHTTP(t *testing.T) {
	web := guarded(t, "t0ken-of-ada")
	_, _, ada := rootAndAda(t, hub.Options{Private: loopback})
	documents := strings.Replace(weibo, "https://weibo-api.example.com", web.URL, 1)
	wantEqual(t, ada.apply(t, "", documents).want(t, 200).said(t), "created Ghost/weibo-test\ncreated Skill/weibo\n")
	wantEqual(t, ada.apply(t, "", documents).want(t, 200).said(t), "unchanged Ghost/weibo-test\nunchanged Skill/weibo\n")

	p := ada.profile(t, "Ghost/default/weibo-test")
	if len(p.Skills) != 1 || p.Skills[0].ID == "" || len(p.Problems) != 0 {
		t.Errorf("%+v", p)
	}
	s := p.Servers[0]
	if s.Name != "weiboServer" || s.State != "not_configured" || len(s.Missing) != 1 || !strings.Contains(s.Missing[0], "weibo_token") {
		t.Errorf("without a token: %+v", s)
	}
	try := map[string]any{"kind": "Ghost", "name": "weibo-test", "server": "weiboServer"}
	if r := ada.test(t, try); r.Success || !strings.Contains(r.Error, "weibo_token") {
		t.Errorf("without a token: %+v", r)
	}

	ada.send(t, "PUT", "/api/v1/secrets/weibo_token", map[string]string{"value": "t0ken-of-ada"}).want(t, 204)
	ada.send(t, "POST", "/api/v1/secrets/weibo_token/grants", map[string]string{"kind": "Ghost", "name": "weibo-test", "server": "weiboServer", "digest": s.Digest}).want(t, 204)
	if s := ada.profile(t, "Ghost/default/weibo-test").Servers[0]; s.State != "ready" || s.Missing != nil {
		t.Errorf("with a token: %+v", s)
	}
	if r := ada.test(t, try); !r.Success || len(r.Tools) != 1 || r.Tools[0].Name != "getUserInfo" {
		t.Errorf("with a token: %+v", r)
	}
}

func TestApplyOverHTTP(t *testing.T) {
	onEach(t, func(t *testing.T, o hub.Options) {
		_, _, ada := rootAndAda(t, o)
		const team = "kind: Team\nmetadata: {name: crew}\nspec: {members: [{botRef: lead, role: leader}, {botRef: writer}]}\n---\n" +
			"kind: Bot\nmetadata: {name: lead}\nspec: {ghostRef: plan, modelRef: small}\n---\nkind: Bot\nmetadata: {name: writer, description: writes}\nspec: {ghostRef: plan}\n---\n" +
			"kind: Ghost\nmetadata: {name: plan}\nspec: {systemPrompt: Plan.}\n---\nkind: Model\nmetadata: {name: small}\nspec: {vendor: demo}\n---\nkind: Shell\nmetadata: {name: Chat}\n"
		created := "created Team/crew\ncreated Bot/lead\ncreated Bot/writer\ncreated Ghost/plan\ncreated Model/small\nskipped Shell/Chat; document-skipped\n"

		// A trial keeps nothing.
		trial := ada.apply(t, "?dry=true", team).want(t, 200)
		wantEqual(t, trial.said(t), created)
		ada.send(t, "GET", "/api/v1/kinds/Team/default/crew", nil).want(t, 404)

		// If one document is refused, nothing is stored, and all errors are reported.
		bad := team + "---\nkind: Ghost\nmetadata: {name: other}\nspec: {skills: [prose], preload_skills: [poems]}\n"
		r := ada.apply(t, "", bad)
		r.wantProblem(t, 422, "refused")
		if !strings.HasSuffix(r.said(t), "refused Ghost/other; preload-unknown\n") || !strings.Contains(r.body, "preloaded skill \\\"poems\\\" is not in skills") {
			t.Errorf("%s", r.body)
		}
		wantEqual(t, ada.apply(t, "?dry=true", bad).want(t, 200).text(t, "code"), "")
		ada.send(t, "GET", "/api/v1/kinds/Team/default/crew", nil).want(t, 404)

		wantEqual(t, ada.apply(t, "", team).want(t, 200).said(t), created)
		wantEqual(t, ada.apply(t, "", team).want(t, 200).said(t), strings.ReplaceAll(created, "created", "unchanged"))
		var a applied
		ada.apply(t, "", strings.Replace(team, "Plan.", "Plan ahead.", 1)).want(t, 200).into(t, &a)
		if c := a.Changes[3]; c.Outcome != "updated" || len(c.Diff) != 1 || c.Diff[0].Path != "spec.systemPrompt" || c.Diff[0].New != `"Plan ahead."` || !a.Kept {
			t.Errorf("%+v", c)
		}

		p := ada.profile(t, "Team/default/crew")
		if len(p.Members) != 1 || p.Members[0].Name != "writer" || p.Model == nil || p.Model.Vendor != "demo" || p.Model.Key != "none" || !p.Enabled {
			t.Errorf("%+v", p)
		}
		ada.send(t, "GET", "/api/v1/kinds/Model/default/small/profile", nil).wantProblem(t, 422, "invalid")
	})
}

func TestInvalidDocuments(t *testing.T) {
	_, _, ada := rootAndAda(t, hub.Options{})
	wantEqual(t, ada.apply(t, "", "").status, 400)
	ada.apply(t, "", "kind: 'Ghost\n").wantProblem(t, 422, "refused")
	ada.apply(t, "", "a: "+strings.Repeat("x", 1<<20)).wantProblem(t, 413, "too_large")
	ada.send(t, "POST", "/api/v1/apply", typed{"text/html", "kind: Ghost"}).wantProblem(t, 415, "media_type")
	ada.send(t, "POST", "/api/v1/apply", typed{"text/yaml; charset=utf-8", "kind: Ghost\nmetadata: {name: a}\n"}).want(t, 200)
	ada.send(t, "POST", "/api/v1/apply", `{"kind": "Ghost", "metadata": {"name": "b"}}`).want(t, 200)
	for _, tt := range []struct{ path, body, code string }{
		{"Ghost/default/c", `{"kind": "Bot", "metadata": {"name": "d", "namespace": "public"}}`, "invalid"},
		{"Ghost/default/c", `[]`, "refused"},
		{"Ghost/default/c", `{"kind": "Ghost"}`, "refused"},
		{"Shell/default/c", `{"kind": "Shell", "metadata": {"name": "c"}}`, "invalid"},
	} {
		ada.send(t, "PUT", "/api/v1/kinds/"+tt.path, tt.body).wantProblem(t, 422, tt.code)
	}
}

func TestKindsOverHTTP(t *testing.T) {
	_, _, ada := rootAndAda(t, hub.Options{})
	ada.apply(t, "", "kind: Ghost\nmetadata: {name: 计划 one}\nspec: {systemPrompt: Plan., policy: [\"deny mcp.*.delete\"]}\n---\nkind: Bot\nmetadata: {name: lead}\nspec: {ghostRef: 计划 one}\n").want(t, 200)
	const ghost = "/api/v1/kinds/Ghost/default/%E8%AE%A1%E5%88%92%20one"
	r := ada.send(t, "GET", ghost, nil).want(t, 200)
	wantEqual(t, ada.send(t, "PUT", ghost, r.body).want(t, 200).said(t), "unchanged Ghost/计划 one\n")
	wantEqual(t, ada.send(t, "PUT", ghost+"?dry=true", strings.Replace(r.body, "Plan.", "Do.", 1)).want(t, 200).said(t), "updated Ghost/计划 one\n")
	wantEqual(t, ada.send(t, "GET", ghost, nil).body, r.body)
	ada.send(t, "PUT", ghost, strings.Replace(r.body, "Plan.", "Do.", 1)).want(t, 200)

	var list struct {
		Items []struct {
			Metadata struct{ Name, Namespace string }
			Status   struct{ Generation int }
		}
	}
	ada.send(t, "GET", "/api/v1/kinds/Ghost?namespace=default", nil).want(t, 200).into(t, &list)
	if len(list.Items) != 1 || list.Items[0].Metadata.Namespace != "default" || list.Items[0].Status.Generation != 2 {
		t.Errorf("%+v", list)
	}
	refs := ada.send(t, "GET", ghost+"/referrers", nil).want(t, 200).body
	if !strings.Contains(refs, `"name":"lead"`) || !strings.Contains(refs, `"slot":"ghostRef"`) {
		t.Error(refs)
	}
	for _, path := range []string{ghost, ghost + "?dry=true"} {
		r := ada.send(t, "DELETE", path, nil)
		r.wantProblem(t, 409, "in_use")
		if !strings.Contains(r.body, `Bot \"lead\"`) || !strings.Contains(r.body, `"references"`) {
			t.Error(r.body)
		}
	}
	ada.send(t, "DELETE", "/api/v1/kinds/Bot/default/lead?dry=true", nil).want(t, 204)
	ada.send(t, "DELETE", "/api/v1/kinds/Bot/default/lead", nil).want(t, 204)
	ada.send(t, "DELETE", ghost, nil).want(t, 204)
	ada.send(t, "GET", ghost, nil).wantProblem(t, 404, "not_found")
}

// A skill document creates a skill like an upload does: its code is awaiting review, and
// earlier versions remain.
func TestSkillsAsDocuments(t *testing.T) {
	n, root, ada := rootAndAda(t, hub.Options{})
	doc := func(prompt string) string {
		return "kind: Skill\nmetadata: {name: prose}\nspec: {description: Writes., version: 2, prompt: \"" + prompt + "\\n\", mcpServers: {s: {command: run}}}\n"
	}
	wantEqual(t, ada.apply(t, "?dry=true", doc("Write.")).want(t, 200).said(t), "created Skill/prose\n")
	ada.send(t, "GET", "/api/v1/kinds/Skill/default/prose", nil).want(t, 404)
	ada.apply(t, "", doc("Write.")).want(t, 200)
	read := ada.send(t, "GET", "/api/v1/kinds/Skill/default/prose", nil).want(t, 200)
	var got struct {
		Spec   struct{ Description, Prompt string }
		Status struct {
			ID         string
			Generation int64
		}
	}
	read.into(t, &got)
	wantEqual(t, got.Spec.Prompt, "Write.\n")
	v, err := n.DB().Versions.Get(t.Context(), got.Status.ID, 1)
	if err != nil || v.Review != "pending" {
		t.Errorf("%+v %v", v, err)
	}
	wantEqual(t, ada.send(t, "PUT", "/api/v1/kinds/Skill/default/prose", read.body).want(t, 200).said(t), "unchanged Skill/prose\n")

	var a applied
	ada.apply(t, "", doc("Write well.")).want(t, 200).into(t, &a)
	if c := a.Changes[0]; c.Outcome != "updated" || len(c.Diff) != 1 || c.Diff[0].Path != "spec.prompt" {
		t.Errorf("%+v", c)
	}
	ada.apply(t, "", doc("Write.")).want(t, 200) // the first one again
	ada.send(t, "GET", "/api/v1/kinds/Skill/default/prose", nil).want(t, 200).into(t, &got)
	wantEqual(t, got.Status.Generation, int64(1))
	if list := ada.send(t, "GET", "/api/v1/kinds/Skill?namespace=default", nil).want(t, 200).body; !strings.Contains(list, `"description":"Writes."`) || strings.Contains(list, "prompt") {
		t.Error(list)
	}
	root.send(t, "GET", "/api/v1/kinds/Skill/default/prose", nil).want(t, 404)
	refused := ada.apply(t, "", "kind: Skill\nmetadata: {name: \"a:b\"}\nspec: {description: d, prompt: p}\n")
	refused.wantProblem(t, 422, "refused")
	wantEqual(t, refused.said(t), "refused Skill/a:b; name-characters; skill-refused\n")
	ada.send(t, "DELETE", "/api/v1/kinds/Skill/default/prose?dry=true", nil).want(t, 204)
	ada.send(t, "DELETE", "/api/v1/kinds/Skill/default/prose", nil).want(t, 204)
	ada.send(t, "GET", "/api/v1/kinds/Skill/default/prose", nil).want(t, 404)
}

// W21: however a server is written, it is the same one.
func TestW21TransportsAreAcceptedOverHTTP(t *testing.T) {
	_, _, ada := rootAndAda(t, hub.Options{})
	for _, servers := range []string{
		`mcpServers: {s: {type: http, url: "https://s.example.com"}}`,
		`mcpServers: {s: {type: streamableHttp, url: "https://s.example.com"}}`,
		`mcp_servers: {s: {transport: streamable_http, url: "https://s.example.com"}}`,
		`mcpServers: {mcpServers: {s: {type: streamable-http, url: "https://s.example.com"}}}`,
	} {
		ada.apply(t, "", "kind: Ghost\nmetadata: {name: g}\nspec: {"+servers+"}\n").want(t, 200)
		var list struct {
			Items []struct {
				Name, Target, State string
				URLs                []string
			}
		}
		ada.send(t, "GET", "/api/v1/servers/Ghost/default/g", nil).want(t, 200).into(t, &list)
		if len(list.Items) != 1 || list.Items[0].Name != "s" || list.Items[0].Target != "s.example.com" || list.Items[0].State != "ready" {
			t.Errorf("%s: %+v", servers, list)
		}
	}
}

// W22, W26: only granted values are inserted. An unknown or ungranted variable makes its
// server "not configured"; the rest of the agent works.
func TestW22W26UnknownVariablesOverHTTP(t *testing.T) {
	_, _, ada := rootAndAda(t, hub.Options{})
	ada.apply(t, "", "kind: Ghost\nmetadata: {name: g}\nspec:\n  mcpServers:\n"+
		"    a: {url: \"https://a.example.com\", headers: {X: \"${{ model_config.api_key }}\"}}\n"+
		"    b: {url: \"https://b.example.com\", headers: {X: \"${HOME}\"}}\n"+
		"    c: {url: \"https://c.example.com\", headers: {X: \"${{secrets.NONE}}\"}}\n"+
		"    d: {url: \"https://d.example.com\"}\n").want(t, 200)
	states := map[string]string{}
	for _, s := range ada.profile(t, "Ghost/default/g").Servers {
		states[s.Name] = s.State
	}
	wantEqual(t, states, map[string]string{"a": "not_configured", "b": "not_configured", "c": "not_configured", "d": "ready"})
}

// W23: a Ghost's server is before a global one of its name, and a Bot's before that.
func TestW23PrecedenceOverHTTP(t *testing.T) {
	_, root, ada := rootAndAda(t, hub.Options{Servers: []*upstream.Config{{Name: "mail", URLs: []string{"https://operator.example.com"}, Headers: map[string]string{"X": "hidden-of-operator"}}}})
	root.apply(t, "", "kind: MCPServer\nmetadata: {name: maps, namespace: public}\nspec: {url: \"https://public.example.com\"}\n").want(t, 200)
	ada.apply(t, "", "kind: Ghost\nmetadata: {name: g}\nspec: {mcpServers: {mail: {url: \"https://ghost.example.com\"}, maps: {url: \"https://ghost.example.com\"}}}\n---\n"+
		"kind: Bot\nmetadata: {name: b}\nspec: {ghostRef: g, mcpServers: {maps: {url: \"https://bot.example.com\"}}}\n---\nkind: Ghost\nmetadata: {name: plain}\n").want(t, 200)
	targets := func(path string) map[string]string {
		out := map[string]string{}
		for _, s := range ada.profile(t, path).Servers {
			out[s.Name] = s.Target
		}
		return out
	}
	wantEqual(t, targets("Ghost/default/plain"), map[string]string{"mail": "operator.example.com", "maps": "public.example.com"})
	wantEqual(t, targets("Ghost/default/g"), map[string]string{"mail": "ghost.example.com", "maps": "ghost.example.com"})
	wantEqual(t, targets("Bot/default/b"), map[string]string{"mail": "ghost.example.com", "maps": "bot.example.com"})

	if r := ada.send(t, "GET", "/api/v1/servers?after=zzz/1", nil); r.text(t, "code") != "invalid" || !strings.Contains(r.text(t, "next"), "send the value of next") {
		t.Errorf("for a page that there is not got %s", r.body)
	}

	// All resources in pages; values of the operator's resources are not shown.
	var names []string
	for after := "?limit=1"; after != ""; {
		r := ada.send(t, "GET", "/api/v1/servers"+after, nil).want(t, 200)
		if strings.Contains(r.body, "hidden-of-operator") {
			t.Error(r.body)
		}
		var page struct {
			Items []struct{ Name, Kind, Thing string }
			Next  string
		}
		r.into(t, &page)
		if len(page.Items) == 0 && page.Next != "" {
			t.Errorf("a page is empty, and there is another one: %s", r.body)
		}
		for _, s := range page.Items {
			names = append(names, s.Kind+"/"+s.Thing+"/"+s.Name)
		}
		if after = ""; page.Next != "" {
			after = "?limit=1&after=" + page.Next
		}
	}
	wantEqual(t, names, []string{"//mail", "MCPServer/maps/maps", "Ghost/g/mail", "Ghost/g/maps", "Bot/b/maps"})
}

type tried struct {
	Success bool
	Error   string
	Tools   []struct {
		Name, Description string
		InputSchema       json.RawMessage
	}
}

// test tries a server.
func (c caller) test(t testing.TB, what any) (out tried) {
	t.Helper()
	c.send(t, "POST", "/api/v1/servers/test", what).want(t, 200).into(t, &out)
	return out
}

// W25: a test is answered with 200 whatever comes of it, and reaches nothing that is not
// public.
func TestW25ServersAreTested(t *testing.T) {
	web := guarded(t, "none")
	open := hub.Options{Private: loopback}
	_, root, ada := rootAndAda(t, open)
	config := func(c map[string]any) map[string]any { return map[string]any{"config": c} }
	for name, tt := range map[string]struct {
		what map[string]any
		err  string
	}{
		"refuses":      {config(map[string]any{"url": web.URL}), "teapot"},
		"a value":      {config(map[string]any{"url": web.URL, "headers": map[string]string{"Authorization": "Bearer ${{secrets.NONE}}"}}), "not configured"},
		"environment":  {config(map[string]any{"url": web.URL, "headers": map[string]string{"X": "${HOME}"}}), "not configured"},
		"nobody there": {config(map[string]any{"url": "http://127.0.0.1:1/mcp"}), "refused"},
		"metadata":     {config(map[string]any{"url": "http://169.254.169.254/"}), "not public"},
		"no such host": {config(map[string]any{"url": "http://nowhere.invalid/mcp"}), `host "nowhere.invalid" not found: check`},
		"a command":    {config(map[string]any{"command": "sh"}), "command not run, because it is pending"},
		"no server":    {config(map[string]any{}), "neither command nor url"},
	} {
		t.Run(name, func(t *testing.T) {
			if r := ada.test(t, tt.what); r.Success || !strings.Contains(r.Error, tt.err) || len(r.Tools) > 0 {
				t.Errorf("%+v, want %q", r, tt.err)
			}
		})
	}
	if r := ada.test(t, config(map[string]any{"url": web.URL, "headers": map[string]string{"Authorization": "Bearer ${NONE:-none}"}})); !r.Success || len(r.Tools) != 1 {
		t.Errorf("%+v", r)
	}
	ada.send(t, "POST", "/api/v1/servers/test", map[string]any{}).wantProblem(t, 422, "invalid")

	// Unless the operator allows it, this machine is not a public address either.
	_, _, eve := rootAndAda(t, hub.Options{})
	for _, host := range []string{"127.0.0.1", "localhost", "[::1]", "0x7f.1"} {
		if r := eve.test(t, config(map[string]any{"url": strings.Replace(web.URL, "127.0.0.1", host, 1)})); r.Success || strings.Contains(r.Error, "teapot") {
			t.Errorf("%s: %+v", host, r)
		}
	}

	// A command is awaiting review, and needs a sandbox.
	ada.apply(t, "", "kind: Ghost\nmetadata: {name: g}\nspec: {mcpServers: {s: {command: sh, args: [-c, \"exit 7\"]}}}\n").want(t, 200)
	var list struct {
		Items []struct {
			Digest, State string
			Command       []string
		}
	}
	ada.send(t, "GET", "/api/v1/servers/Ghost/default/g", nil).want(t, 200).into(t, &list)
	s := list.Items[0]
	if s.State != "waits_for_review" || len(s.Command) != 3 {
		t.Errorf("%+v", s)
	}
	decide := map[string]string{"server": "s", "digest": s.Digest, "decision": "approved"}
	ada.send(t, "PUT", "/api/v1/servers/Ghost/default/g/review", decide).wantProblem(t, 403, "forbidden")
	var me struct{ ID string }
	ada.send(t, "GET", "/api/v1/users/me", nil).want(t, 200).into(t, &me)
	of := "/api/v1/servers/Ghost/user:" + me.ID + "/g/review"
	root.send(t, "PUT", of, map[string]string{"server": "s", "digest": "sha256:other", "decision": "approved"}).wantProblem(t, 409, "changed")
	root.send(t, "PUT", of, decide).want(t, 204)
	if r := ada.test(t, map[string]any{"kind": "Ghost", "name": "g", "server": "s"}); r.Success || !strings.Contains(r.Error, "has no sandbox") {
		t.Errorf("%+v", r)
	}
}

// What was done to things is in the audit log in the words that it has for all.
func TestKindsAreAudited(t *testing.T) {
	n, root, ada := rootAndAda(t, hub.Options{})
	ada.apply(t, "", "kind: Ghost\nmetadata: {name: g}\n").want(t, 200)
	ada.apply(t, "", "kind: Ghost\nmetadata: {name: g, namespace: public}\n").want(t, 403)
	r := root.send(t, "GET", "/api/v1/audit?action=kind.apply", nil).want(t, 200)
	readDocument(t, n).conforms(t, "list-audit", r)
	var log struct {
		Items []struct{ Subject, Decision string }
	}
	r.into(t, &log)
	data, _ := json.Marshal(log.Items)
	wantEqual(t, string(data), `[{"Subject":"Ghost/g","Decision":"denied"},{"Subject":"Ghost/g","Decision":"allowed"}]`)
}
