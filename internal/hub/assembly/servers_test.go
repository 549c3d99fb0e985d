package assembly_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout/internal/approval"
	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/agents"
	"github.com/loadout-dev/loadout/internal/hub/assembly"
	"github.com/loadout-dev/loadout/internal/hub/chat"
	"github.com/loadout-dev/loadout/internal/hub/library"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/store/storetest"
	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/tools"
)

// remote is an MCP server over HTTP that records the identities of its clients.
type remote struct {
	*httptest.Server
	mu   sync.Mutex
	auth map[string]bool
}

// newRemote returns a server with read-only tools, which return their name and the
// server's, and one that modifies something.
func newRemote(t testing.TB, name string, reading ...string) *remote {
	t.Helper()
	s := mcp.NewServer(&mcp.Implementation{Name: name, Version: "1"}, nil)
	add := func(tool string, reads bool) {
		mcp.AddTool(s, &mcp.Tool{Name: tool, Description: "Does " + tool + ".", Annotations: &mcp.ToolAnnotations{ReadOnlyHint: reads}},
			func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
				return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: tool + " of " + name}}}, nil, nil
			})
	}
	for _, tool := range reading {
		add(tool, true)
	}
	add("change", false)
	r := &remote{auth: map[string]bool{}}
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, &mcp.StreamableHTTPOptions{Stateless: true})
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		r.mu.Lock()
		r.auth[req.Header.Get("Authorization")] = true
		r.mu.Unlock()
		handler.ServeHTTP(w, req)
	}))
	t.Cleanup(func() {
		r.CloseClientConnections() // the node keeps listening
		r.Close()
	})
	return r
}

func (r *remote) saw(auth string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.auth[auth]
}

// call returns a line that makes the model call a tool of a server.
func call(tool string) string { return fmt.Sprintf(`call call_tool {"name":%q}`, tool) }

const weibo = `
apiVersion: agent.wecode.io/v1
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
      url: %s
      headers:
        Authorization: Bearer ${{user.weibo_token}}
    other:
      type: streamable-http
      url: %s
---
apiVersion: loadout/v1
kind: Bot
metadata: {name: weibo}
spec: {ghostRef: {name: weibo-test}}
`

// W18, W26: the tools of a skill are there after it is loaded, and in the next step; only
// the servers that it means are connected, with the token of who acts. Where there is
// none the load says so, and the skill loads.
func TestW18W26ToolsOfLoadedSkill(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		w := newFixture(t, db)
		server, other := newRemote(t, "weibo", "getUserInfo"), newRemote(t, "other", "nothing")
		w.upload(w.ada, own(w.ada), "weibo", tree("weibo", "description: Reads Weibo.\nmcpServers: [weiboServer]", "Call getUserInfo."))
		w.apply(w.ada, fmt.Sprintf(weibo, server.URL, other.URL))
		id := w.begin(w.ada, "Bot/default/weibo")
		w.ask(w.ada, id, `call load_skill {"name":"weibo"}`, "Call getUserInfo.", "not configured", "weibo_token")
		if system := w.model.last().Instructions; !strings.Contains(system, "You are a Weibo analyst") {
			t.Errorf("the model got first %q", system)
		}
		w.grant(w.ada, "weibo_token", "s3cret-token", agents.Subject{Kind: agents.GhostKind, Namespace: "default", Name: "weibo-test", Server: "weiboServer"})
		id = w.begin(w.ada, "Bot/default/weibo")
		w.ask(w.ada, id, `call load_skill {"name":"weibo"}`+"\n"+call("weiboServer__getUserInfo"), "getUserInfo of weibo")
		if !server.saw("Bearer s3cret-token") || len(other.auth) > 0 {
			t.Errorf("the servers saw %v and %v", server.auth, other.auth)
		}
	})
}

// grant stores a secret of a user and grants it to a server.
func (w *fixture) grant(p account.Principal, name, value string, to agents.Subject) {
	w.t.Helper()
	ctx := w.t.Context()
	owner := agents.NamespaceOwner(own(p))
	must(w.t, w.kinds.Secrets().Set(ctx, p, owner, name, value))
	digest, err := w.kinds.SubjectDigest(ctx, p, to)
	must(w.t, err)
	must(w.t, w.kinds.Secrets().Grant(ctx, p, owner, name, to, digest, ""))
}

// W23: a Bot's server overrides a Ghost's server of the same name, which overrides a
// global one. A skill's server is named SKILL_SERVER and overrides none.
func TestW23PrecedenceOfServers(t *testing.T) {
	w := sqlite(t)
	global, ghost, bot, mine := newRemote(t, "global", "who"), newRemote(t, "ghost", "who"), newRemote(t, "bot", "who"), newRemote(t, "skill", "who")
	w.apply(w.ada, fmt.Sprintf(`
{apiVersion: loadout/v1, kind: MCPServer, metadata: {name: a}, spec: {url: %[1]q}}
---
{apiVersion: loadout/v1, kind: MCPServer, metadata: {name: b}, spec: {url: %[1]q}}
---
{apiVersion: loadout/v1, kind: MCPServer, metadata: {name: c}, spec: {url: %[1]q}}
---
{apiVersion: loadout/v1, kind: Ghost, metadata: {name: g}, spec: {mcpServers: {b: {url: %[2]q}, c: {url: %[2]q}}}}
---
{apiVersion: loadout/v1, kind: Bot, metadata: {name: bot}, spec: {ghostRef: {name: g}, mcpServers: {c: {url: %[3]q}}}}
`, global.URL, ghost.URL, bot.URL))
	s := w.upload(w.ada, own(w.ada), "s", tree("s", "description: Has a server.\nmcpServers: {c: {url: "+mine.URL+"}}", "Use it."))
	w.review(s, library.Approved)
	id := w.begin(w.ada, "Bot/default/bot")
	load := `call load_skill {"name":"s"}` + "\n"
	for tool, want := range map[string]string{"a__who": "who of global", "b__who": "who of ghost", "c__who": "who of bot", "s_c__who": "who of skill"} {
		w.ask(w.ada, id, load+call(tool), want)
	}
	for tool, want := range map[string]string{"a__who": "who of global", "c__who": "who of global"} {
		w.ask(w.ada, w.begin(w.ada, ""), call(tool), want) // without an agent
	}
	w.ask(w.eve, w.begin(w.eve, ""), call("a__who"), "not found")
}

// The request for approval of a skill names what each of its servers starts or connects
// to.
func TestApprovalRequestShowsHosts(t *testing.T) {
	w := sqlite(t)
	w.upload(w.ada, own(w.ada), "s", tree("s", `description: Has servers.
mcpServers: {near: {command: near}, far: {url: "https://api.example.com/mcp"}}`, "Use them."))
	k := w.open(assembly.Request{Principal: w.ada})
	r, err := k.Runtime.ReadApprovalRequest(t.Context(), "s")
	must(t, err)
	if len(r.Services) != 2 || !slices.Equal(r.Services[0].Hosts, []string{"api.example.com"}) || !slices.Equal(r.Services[1].Command, []string{"near"}) {
		t.Errorf("a reviewer sees %+v", r.Services)
	}
}

// W24: a failing server affects no others, and the model is told which one failed and
// why.
func TestW24OneServerFails(t *testing.T) {
	w := sqlite(t)
	good := newRemote(t, "good", "who")
	bad := httptest.NewServer(http.NotFoundHandler())
	bad.Close()
	w.upload(w.ada, own(w.ada), "s", tree("s", "description: Uses two servers.\nmcpServers: [good, bad]", "Use both."))
	w.apply(w.ada, fmt.Sprintf(`{apiVersion: loadout/v1, kind: Ghost, metadata: {name: g}, spec: {skills: [s], mcpServers: {good: {url: %q}, bad: {url: %q}}}}`, good.URL, bad.URL))
	id := w.begin(w.ada, "Ghost/default/g")
	w.ask(w.ada, id, `call load_skill {"name":"s"}`, "Use both.", "good__who", "connect to server")
	w.ask(w.ada, id, call("good__who"), "who of good")
	w.ask(w.ada, id, call("bad__who"), "not found")
}

// W19: a tool of an unknown provider is skipped with a warning, and the others work.
func TestW19UnknownProvider(t *testing.T) {
	w := sqlite(t)
	good := newRemote(t, "good", "who")
	w.apply(w.ada, fmt.Sprintf(`{apiVersion: loadout/v1, kind: MCPServer, metadata: {name: good}, spec: {url: %q}}`, good.URL))
	w.upload(w.ada, own(w.ada), "s", tree("s", "description: Has tools.\nmcpServers: [good]\ntools: [{name: draw, provider: nowhere}]", "Draw."))
	id := w.begin(w.ada, "")
	w.ask(w.ada, id, `call load_skill {"name":"s"}`, "Draw.", "draw skipped", "good__who")
}

// pyServer is an MCP server on standard input and output, with one tool.
const pyServer = `import sys, json
for line in sys.stdin:
    m = json.loads(line)
    if "id" not in m: continue
    r = {}
    if m["method"] == "initialize": r = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "py", "version": "1"}}
    elif m["method"] == "tools/list": r = {"tools": [{"name": "where", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}}]}
    elif m["method"] == "tools/call":
        import os, socket
        try: socket.create_connection(("127.0.0.1", 9), 1); net = "net"
        except OSError as e: net = type(e).__name__
        r = {"content": [{"type": "text", "text": "uid %d, home %s, outside %s, token %s" % (os.getuid(), os.environ.get("HOME"), os.path.exists(sys.argv[-1]), os.environ.get("TOKEN"))}]}
    elif m["method"] != "ping":
        print(json.dumps({"jsonrpc": "2.0", "id": m["id"], "error": {"code": -32601, "message": "no"}}), flush=True)
        continue
    print(json.dumps({"jsonrpc": "2.0", "id": m["id"], "result": r}), flush=True)
`

// The command of a document's server runs in the sandbox while it is approved. Its
// secrets are shown to nobody.
func TestServerCommands(t *testing.T) {
	w := sqlite(t, sandboxed(t))
	code, err := json.Marshal(pyServer)
	must(t, err)
	outside := filepath.Join(t.TempDir(), "outside") // of the sandbox
	must(t, os.WriteFile(outside, nil, 0o644))
	w.apply(w.ada, fmt.Sprintf(`{apiVersion: loadout/v1, kind: Ghost, metadata: {name: g, namespace: team}, spec: {mcpServers: {py: {command: python3, args: ["-c", %s, %q], env: {TOKEN: "${{secrets.T}}"}}}}}`, code, outside))
	py := agents.Subject{Kind: agents.GhostKind, Namespace: "team", Name: "g", Server: "py"}
	w.grant(w.bob, "T", "a-secret-value", py)
	w.ask(w.bob, w.begin(w.bob, "Ghost/team/g"), call("py__where"), "not found")

	w.reviewServer(py, store.Approved)
	id := w.begin(w.bob, "Ghost/team/g")
	got := w.ask(w.bob, id, call("py__where"), "uid ", "outside False")
	if strings.Contains(got, "a-secret-value") || !strings.Contains(got, "token") {
		t.Errorf("a tool tells the secret of its configuration: %q", got)
	}
	k := w.open(assembly.Request{Principal: w.bob, Kind: agents.GhostKind, Namespace: "team", Name: "g"})
	w.reviewServer(py, store.Rejected)
	w.ask(w.bob, w.begin(w.bob, "Ghost/team/g"), call("py__where"), "not found")
	_, err = k.Tools.Call(t.Context(), &tools.Call{Name: "py__where", Principal: k.Principal})
	if err == nil || !strings.Contains(err.Error(), "rejected in review") {
		t.Errorf("a kit that was open calls it: %v", err)
	}
}

// reviewServer keeps a review of a maintainer.
func (w *fixture) reviewServer(s agents.Subject, r store.Review) {
	w.t.Helper()
	digest, err := w.kinds.SubjectDigest(w.t.Context(), w.meg, s)
	must(w.t, err)
	must(w.t, w.kinds.ReviewServer(w.t.Context(), w.meg, s, digest, r, ""))
}

// A modifying call needs approval, which any node accepts, and a permanent approval is
// stored in the database.
func TestApprovals(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		w := newFixture(t, db)
		server := newRemote(t, "s", "read")
		w.apply(w.ada, fmt.Sprintf(`{apiVersion: loadout/v1, kind: Ghost, metadata: {name: g}, spec: {policy: ["deny mcp.s.read"], mcpServers: {s: {url: %q}}}}`, server.URL))
		id := w.begin(w.ada, "Ghost/default/g")
		asked := 0
		answering := func(scope policy.Scope) func(chat.Event) {
			return func(e chat.Event) {
				if e.Type == chat.ApprovalRequested {
					asked++
					must(t, w.chat.AnswerApproval(t.Context(), w.ada, e.ApprovalRequest.ID, approval.Answer{Outcome: approval.Accepted, Scope: scope}))
				}
			}
		}
		if got := answer(w.say(w.ada, id, call("s__change"), onlyNew(answering(policy.Always)))); !strings.Contains(got, "change of s") {
			t.Errorf("it answers %q", got)
		}
		if got := answer(w.say(w.ada, w.begin(w.ada, "Ghost/default/g"), call("s__change"), answering(""))); !strings.Contains(got, "change of s") || asked != 1 {
			t.Errorf("it answers %q after %d questions", got, asked)
		}
		w.ask(w.ada, id, call("s__read"), "is not allowed")
		all, problems, err := assembly.NewGrantStore(db, policy.Principal{ID: string(w.ada.User), Kind: policy.UserPrincipal}).List(t.Context())
		if err != nil || len(problems) > 0 || len(all) != 1 || all[0].Name != "s__change" || all[0].Scope != policy.Always {
			t.Errorf("kept are %+v, %v, %v", all, problems, err)
		}
		records, err := db.Audit.List(t.Context(), store.AuditQuery{Actor: string(w.ada.User), Action: "tool.call"})
		must(t, err)
		var decisions []string
		for _, r := range records {
			decisions = append(decisions, r.Decision)
		}
		if len(records) < 3 || records[0].Decision != "denied" || records[0].Namespace != own(w.ada) {
			t.Errorf("the audit log has %v: %+v", decisions, records)
		}
	})
}

// onlyNew calls f once for each question.
func onlyNew(f func(chat.Event)) func(chat.Event) {
	seen := map[string]bool{}
	return func(e chat.Event) {
		if e.ApprovalRequest != nil && !seen[e.ApprovalRequest.ID] {
			seen[e.ApprovalRequest.ID] = true
			f(e)
		}
	}
}

// A model sees what each server is for, and which servers someone else configured.
func TestServersOfOthersAreMarked(t *testing.T) {
	w := sqlite(t)
	w.apply(w.ada, "apiVersion: loadout/v1\nkind: MCPServer\nmetadata: {name: mine, description: Knows fish.}\nspec: {url: 'https://mine.example.com/mcp'}\n")
	w.apply(w.meg, "apiVersion: loadout/v1\nkind: MCPServer\nmetadata: {name: ours, namespace: team}\nspec: {url: 'https://ours.example.com/mcp', description: Knows birds.}\n")
	if got, want := w.marks(w.ada), map[string]string{"mine": "false Knows fish", "ours": "true Knows birds"}; !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// marks returns which servers of a principal are marked as shared, with their
// purpose.
func (w *fixture) marks(p account.Principal) map[string]string {
	out := map[string]string{}
	for _, s := range w.open(assembly.Request{Principal: p}).Tools.ConfiguredSummaries() {
		out[s.Name] = fmt.Sprint(s.Shared, " ", s.Purpose)
	}
	return out
}

// The only user of a hub without accounts configured all its servers.
func TestSingleUserSharesNoServers(t *testing.T) {
	w := newFixture(t, storetest.Open(t, storetest.SQLite(t)), func(o *assembly.Options) { o.Single = true })
	local := account.SinglePrincipal()
	_, err := w.db.Users.Create(t.Context(), store.User{ID: string(local.User), Name: local.Name})
	must(t, err)
	for name, namespace := range map[string]string{"mine": "default", "everyone": "public"} {
		w.apply(local, fmt.Sprintf("apiVersion: loadout/v1\nkind: MCPServer\nmetadata: {name: %s, namespace: %s}\nspec: {url: 'https://%s.example.com/mcp', description: Knows fish.}\n", name, namespace, name))
	}
	if got, want := w.marks(local), map[string]string{"mine": "false Knows fish", "everyone": "false Knows fish"}; !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
