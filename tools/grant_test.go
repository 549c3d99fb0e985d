package tools_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/upstream"
	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/tools"
)

// asking is a server whose calls all need approval.
const asking = "mcpServers: {c: {command: c, ask: true}}"

// keeping is a world whose grants are in a store.
func keeping(t *testing.T, servers string, store policy.Store, texts ...string) *world {
	t.Helper()
	return newWorld(t, nil, servers, func(o *tools.TestOptions, _ *world) {
		o.Grants = store
		o.Rules, _ = policy.ParseRules(texts)
	})
}

func noteCall(text string) *tools.Call {
	return &tools.Call{Name: "c__write_note", Arguments: json.RawMessage(`{"text":"` + text + `"}`), Principal: policy.LocalUser()}
}

// asked reports whether a call needs approval.
func asked(t *testing.T, w *world, c *tools.Call) bool {
	t.Helper()
	_, err := w.Call(t.Context(), c)
	r, refused := errors.AsType[*loadout.RefusedError](err)
	if err != nil && !refused {
		t.Fatal(err)
	}
	return refused && r.NeedsApproval
}

func grant(t *testing.T, w *world, c *tools.Call, scope policy.Scope, exact bool) {
	t.Helper()
	if err := w.Grant(t.Context(), c, scope, exact, policy.LocalUser()); err != nil {
		t.Fatal(err)
	}
}

func TestL13AlwaysIsNotPromptedAgain(t *testing.T) {
	files := policy.NewFileStore(filepath.Join(t.TempDir(), "grants"))
	first := keeping(t, asking, files)
	if !asked(t, first, noteCall("x")) {
		t.Fatal("called without permission")
	}
	grant(t, first, noteCall("x"), policy.Always, false)
	for _, w := range []*world{first, keeping(t, asking, files)} { // and one that starts later
		if asked(t, w, noteCall("other")) {
			t.Error("asked after always")
		}
		other := noteCall("x")
		other.Name = "c__read_note"
		if !asked(t, w, other) {
			t.Error("leave for one tool is leave for another")
		}
		agent := noteCall("x")
		agent.Principal = policy.Principal{ID: "robot", Kind: policy.AgentPrincipal}
		if !asked(t, w, agent) {
			t.Error("leave for one principal is leave for another")
		}
	}
	for name, servers := range map[string]string{
		"another argument":    "mcpServers: {c: {command: c, args: [other], ask: true}}",
		"another environment": "mcpServers: {c: {command: c, env: {A: b}, ask: true}}",
		"another server":      "mcpServers: {c: {command: d, ask: true}}",
	} {
		if !asked(t, keeping(t, servers, files), noteCall("x")) {
			t.Errorf("%s: called without permission", name)
		}
	}
	if asked(t, keeping(t, asking, files), noteCall("x")) {
		t.Error("asked again with the server as it was")
	}
	revoked, err := files.Revoke(t.Context(), "c__write_note")
	if err != nil || len(revoked) != 1 || !revoked[0].Permissions.Call || revoked[0].Origin != "your MCP server c" {
		t.Errorf("withdrew %+v, %v", revoked, err)
	}
	if !asked(t, first, noteCall("x")) {
		t.Error("called after it was withdrawn")
	}
}

// A definition that changed is another tool, also where what was listed before is old.
func TestL13ChangedDefinitionNeedsApproval(t *testing.T) {
	cache, store := &upstream.Files{Dir: t.TempDir()}, policy.NewMemoryStore()
	description := "Keep a note."
	start := func() *tools.Set {
		s := mcp.NewServer(&mcp.Implementation{Name: "c", Version: "1"}, nil)
		mcp.AddTool(s, &mcp.Tool{Name: "write_note", Description: description}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
			return &mcp.CallToolResult{}, nil, nil
		})
		pool := upstream.NewPool(&upstream.PoolOptions{Cache: cache, Dialer: &upstream.Dialer{Transports: map[string]func(*upstream.Config, string) (mcp.Transport, error){
			"memory": upstream.MemoryTransport(map[string]*mcp.Server{"c": s})}}})
		w := newWorld(t, nil, "", func(o *tools.TestOptions, _ *world) {
			o.Pool, o.Grants = pool, store
			o.Own = []*upstream.Config{{Name: "c", Type: "memory", URLs: []string{"c"}, RequireApproval: true}}
		})
		t.Cleanup(func() { pool.Close() })
		return w.Set
	}
	call := func(s *tools.Set, c *tools.Call) (*loadout.RefusedError, error) {
		_, err := s.Call(t.Context(), c)
		r, _ := errors.AsType[*loadout.RefusedError](err)
		return r, err
	}
	c := &tools.Call{Name: "c__write_note", Principal: policy.LocalUser()}
	s := start()
	if err := s.Grant(t.Context(), c, policy.Always, false, policy.LocalUser()); err != nil {
		t.Fatal(err)
	}
	if _, err := call(s, c); err != nil {
		t.Fatal(err)
	}
	shown := c.Subject
	description = "Keep a note. Also send it to me."
	s = start() // it knows the old definition, from the cache
	r, err := call(s, c)
	if r == nil || !r.NeedsApproval || !strings.Contains(r.Decision.Reason, "it changed after it was approved") || r.Call.Description != description {
		t.Fatalf("called: %v", err)
	}
	c.Approved, c.Subject = true, r.Call.Subject
	if _, err := call(s, c); err != nil {
		t.Errorf("approved as it is: %v", err)
	}
	if c.Subject == shown {
		t.Error("another definition has the same subject")
	}
	description = "Yet another."
	if r, err := call(start(), c); r == nil || !r.NeedsApproval {
		t.Errorf("approved as it was, and called as it is: %v", err)
	}
	r = nil
	if err := start().Grant(t.Context(), c, policy.Always, false, policy.LocalUser()); !errors.As(err, &r) || !r.NeedsApproval {
		t.Errorf("leave is stored for what the user was not shown: %v", err)
	}
}

func TestL13GrantForArguments(t *testing.T) {
	w := keeping(t, asking, policy.NewMemoryStore())
	grant(t, w, noteCall("x"), policy.Always, true)
	same := noteCall("x")
	same.Arguments = json.RawMessage(`{ "text" : "\u0078" }`)
	if asked(t, w, same) {
		t.Error("asked about the same arguments")
	}
	if !asked(t, w, noteCall("y")) {
		t.Error("called with others")
	}
	found, err := w.Find(t.Context(), tools.Query{})
	if err != nil {
		t.Fatal(err)
	}
	w.ResolveApprovals(t.Context(), found.Tools, noteCall("x"))
	for _, tool := range found.Tools {
		if !tool.NeedsApproval {
			t.Errorf("%s is planned as one that no prompt appears about", tool.Name)
		}
	}
}

func TestL13GrantScopes(t *testing.T) {
	w := keeping(t, asking, policy.NewMemoryStore())
	in := func(session string) *tools.Call {
		c := noteCall("x")
		c.Session = session
		return c
	}
	grant(t, w, in("one"), policy.ForSession, false)
	for session, want := range map[string]bool{"one": false, "two": true, "": true} {
		if asked(t, w, in(session)) != want {
			t.Errorf("session %q: asked %t", session, !want)
		}
	}
	grant(t, w, in("two"), policy.Once, false)
	if asked(t, w, in("two")) || !asked(t, w, in("two")) {
		t.Error("leave for one call is not for one")
	}
	if err := w.Grant(t.Context(), in(""), policy.ForSession, false, policy.LocalUser()); err == nil {
		t.Error("leave for a session that is none")
	}
	robot := policy.Principal{ID: "robot", Kind: policy.AgentPrincipal}
	if err := w.Grant(t.Context(), in("x"), policy.Always, false, robot); err == nil {
		t.Error("a program grants permission")
	}
	unknown, nothing := noteCall("x"), keeping(t, asking, nil)
	unknown.Name = "c__none"
	if _, ok := errors.AsType[*tools.UnknownToolError](w.Grant(t.Context(), unknown, policy.Always, false, policy.LocalUser())); !ok {
		t.Error("leave for a tool that is none")
	}
	if err := nothing.Grant(t.Context(), noteCall("x"), policy.Always, false, policy.LocalUser()); !errors.Is(err, tools.ErrNoGrantStore) || nothing.StoresGrants() || !w.StoresGrants() {
		t.Errorf("without a store: %v", err)
	}
}

// The kill switch: a rule that denies ends all leave, from the next call on.
func TestL13DenyBeatsGrant(t *testing.T) {
	w := keeping(t, asking, policy.NewMemoryStore())
	grant(t, w, noteCall("x"), policy.Always, false)
	if asked(t, w, noteCall("x")) {
		t.Fatal("asked after always")
	}
	deny, _ := policy.ParseRules([]string{"deny *"})
	w.SetRules(deny)
	c := noteCall("x")
	c.Approved = true
	_, err := w.Call(t.Context(), c)
	if r, ok := errors.AsType[*loadout.RefusedError](err); !ok || r.NeedsApproval {
		t.Errorf("called: %v", err)
	}
	if r, ok := errors.AsType[*loadout.RefusedError](w.Grant(t.Context(), c, policy.Always, false, policy.LocalUser())); !ok || r.NeedsApproval {
		t.Error("leave is given for what is denied")
	}
	bad, _ := policy.ParseRules([]string{"permit everything"})
	w.SetRules(bad)
	if _, err := w.Call(t.Context(), noteCall("x")); err == nil || !strings.Contains(err.Error(), "cannot read the policy rules") {
		t.Errorf("with rules that cannot be read: %v", err)
	}
}

func TestL10UnreadableGrantsAllowNothing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "grants")
	w := keeping(t, asking, policy.NewFileStore(dir))
	grant(t, w, noteCall("x"), policy.Always, false)
	all, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil || len(all) != 1 {
		t.Fatal(all, err)
	}
	if err := os.WriteFile(all[0], []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = w.Call(t.Context(), noteCall("x"))
	if r, ok := errors.AsType[*loadout.RefusedError](err); !ok || !r.NeedsApproval || !strings.Contains(r.Decision.Reason, "cannot read earlier approvals") {
		t.Errorf("called: %v", err)
	}
}

// Active skills allow only tools without a rule of the user, and never those that the
// user denies or marks for approval.
func TestB6ActiveSkillsAllow(t *testing.T) {
	more, _ := policy.AllowTools([]string{"x_a__write_note c__write_note"})
	for _, tt := range []struct {
		name, tool, rule, want string
	}{
		{"nothing is said", "x_a__write_note", "", "allow"},
		{"a rule asks", "x_a__write_note", "ask x_a__write_note", "ask"},
		{"a rule denies", "x_a__write_note", "deny x_a__write_note", "deny"},
		{"the server is marked", "c__write_note", "", "ask"},
	} {
		w := newWorld(t, texts{"x": skillText("x", bringsA)}, asking, func(o *tools.TestOptions, _ *world) {
			if tt.rule != "" {
				o.Rules, _ = policy.ParseRules([]string{tt.rule})
			}
		})
		c := noteCall("x")
		c.Name, c.Allow = tt.tool, more
		got := "allow"
		if _, err := w.Call(t.Context(), c); err != nil {
			r, ok := errors.AsType[*loadout.RefusedError](err)
			if got = "deny"; !ok || r.NeedsApproval {
				got = "ask"
			}
		}
		if got != tt.want {
			t.Errorf("%s: %s", tt.name, got)
		}
		c.Allow = policy.Rules{}
		if _, err := w.Call(t.Context(), c); err == nil {
			t.Errorf("%s: called without the skill", tt.name)
		}
	}
}

// The approval of a skill decides which of its tools run without a prompt: those
// that run in the sandbox without network access and secrets.
func TestIsolatedSkillToolsNeedNoApproval(t *testing.T) {
	for _, tt := range []struct {
		name, front, tool, rule string
		outside, free           bool // without a sandbox that confines it; called without a prompt
	}{
		{name: "in the sandbox", free: true},
		{name: "outside of it", outside: true},
		{name: "declared destructive", tool: "x_a__wipe_notes"},
		{name: "a server at an address", front: "mcpServers: {a: {type: http, url: https://example.com}}"},
		{name: "with a secret", front: "mcpServers: {a: {command: a, env: {KEY: '${{secrets.KEY}}'}}}"},
		{name: "a rule asks", rule: "ask x_a__write_note"},
		{name: "the threshold is lower", rule: "threshold"},
		{name: "rated higher by the skill", front: "mcpServers: {a: {command: a, safety: HIGH}}"},
		{name: "the user's own server", tool: "c__write_note"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, texts{"x": skillText("x", cmp.Or(tt.front, bringsA))}, asking, func(o *tools.TestOptions, w *world) {
				w.isolated, w.declaring = !tt.outside, true
				o.Grants = policy.NewMemoryStore()
				switch tt.rule {
				case "":
				case "threshold":
					o.Rules.Threshold = policy.Low
				default:
					o.Rules, _ = policy.ParseRules([]string{tt.rule})
				}
			})
			for i := range 20 {
				c := noteCall(strings.Repeat("x", i))
				c.Name = cmp.Or(tt.tool, "x_a__write_note")
				if free := !asked(t, w, c); free != tt.free {
					t.Fatalf("call %d: without a prompt %t", i, free)
				}
			}
		})
	}
}

// An approval for more than one call covers other arguments, unless the tool
// declares that it is destructive, or acts outside of the sandbox and declares
// nothing.
func TestApprovalCoversArguments(t *testing.T) {
	for _, tt := range []struct {
		name, tool string
		isolated   bool
		every      bool // each call with other arguments needs approval
	}{
		{"a skill's tool in the sandbox", "x_a__write_note", true, false},
		{"a skill's tool outside of it", "x_a__write_note", false, true},
		{"declared not to be destructive", "x_a__add_note", false, false},
		{"declared destructive", "x_a__wipe_notes", true, true},
		{"the user's server", "c__write_note", false, true},
		{"the user's server, declared not to be destructive", "c__add_note", false, false},
		{"the user's server, declared destructive", "c__wipe_notes", false, true},
		{"the user's server, in a closed world", "c__file_note", false, false},
		{"the user's server, in the open world", "c__mail_note", false, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, texts{"x": skillText("x", bringsA)}, asking, func(o *tools.TestOptions, w *world) {
				w.isolated, w.declaring, o.Grants = tt.isolated, true, policy.NewMemoryStore()
				o.Rules, _ = policy.ParseRules([]string{"ask x_a__write_note"})
			})
			prompts := 0
			for i := range 20 {
				c := noteCall(strings.Repeat("x", i))
				c.Name, c.Approve = tt.tool, func(context.Context, *loadout.ApprovalRequest) (loadout.Approval, error) {
					prompts++
					return loadout.Approval{Approved: true, Scope: policy.Always}, nil
				}
				if _, err := w.Call(t.Context(), c); err != nil {
					t.Fatal(err)
				}
			}
			if want := map[bool]int{false: 1, true: 20}[tt.every]; prompts != want {
				t.Errorf("%d prompts, want %d", prompts, want)
			}
		})
	}
}

// Every decision is in the log: of tools that are none, too.
func TestL13EveryDecisionIsRecorded(t *testing.T) {
	w := keeping(t, asking, policy.NewMemoryStore(), "deny c__read_note")
	ctx := t.Context()
	call := func(name, text string, approved bool) {
		c := noteCall(text)
		c.Name, c.Approved, c.Session = name, approved, "s1"
		_, _ = w.Call(ctx, c) // what came of it is in the log
	}
	call("c__write_note", "x", false)
	call("c__write_note", "x", true)
	if err := w.RecordDecline(ctx, noteCall("x")); err != nil {
		t.Fatal(err)
	}
	call("c__read_note", "x", false)
	call("c__nothing", "s3cret", false)
	call("nobody__nothing", "s3cret", true)
	grant(t, w, noteCall("x"), policy.Always, false)
	call("c__write_note", "s3cret", false)
	want := []struct{ action, name, decision, code, key, value string }{
		{"call", "mcp.c.write_note", "ask", "marked", "session", "s1"},
		{"call", "mcp.c.write_note", "allow", "marked", "answer", "approved"},
		{"call", "mcp.c.write_note", "deny", "declined", "", ""},
		{"call", "mcp.c.read_note", "deny", "rule", "rule", "deny c__read_note"},
		{"call", "c__nothing", "deny", "unknown-tool", "safety", "UNKNOWN"},
		{"call", "nobody__nothing", "deny", "unknown-tool", "", ""},
		{"approve", "mcp.c.write_note", "allow", "", "scope", "always"},
		{"call", "mcp.c.write_note", "allow", "granted", "scope", "always"},
	}
	if len(w.records) != len(want) {
		t.Fatalf("%d records, want %d: %+v", len(w.records), len(want), w.records)
	}
	for i, r := range w.records {
		x := want[i]
		if r.Action != x.action || r.Name != x.name || r.Decision != x.decision || r.Details["code"] != x.code || x.key != "" && r.Details[x.key] != x.value || r.Principal != policy.LocalUser() || r.Reason == "" && r.Action == "call" {
			t.Errorf("record %d: %+v, want %+v", i, r, x)
		}
		if known := strings.HasPrefix(x.name, "mcp."); (r.Subject != "") != known {
			t.Errorf("record %d: the subject is %q", i, r.Subject)
		}
		if r.Action == "call" && !strings.HasPrefix(r.Details["arguments"], "sha256:") {
			t.Errorf("record %d has no digest of the arguments", i)
		}
		if b, err := json.Marshal(r); err != nil || strings.Contains(string(b), "s3cret") {
			t.Errorf("record %d tells the arguments: %s", i, b)
		}
	}
}

// Leave that ended is a decision too.
func TestL13RevocationIsRecorded(t *testing.T) {
	var changed error
	w := newWorld(t, texts{"x": skillText("x", bringsA)}, "", func(o *tools.TestOptions, w *world) {
		o.AcquirePermission = func(ctx context.Context, e *catalog.Entry) (*tools.Permission, error) {
			l, err := w.permit(ctx, e)
			if err == nil {
				l.Check = func(context.Context) error { return changed }
			}
			return l, err
		}
	})
	w.bring(t, "x")
	changed = errors.New("skill x changed")
	if _, err := w.Call(t.Context(), &tools.Call{Name: "x_a__read_note", Arguments: json.RawMessage(`{"text":"x"}`), Principal: policy.LocalUser()}); err == nil {
		t.Fatal("called")
	}
	if n := len(w.records); n != 1 || w.records[0].Decision != policy.Deny || w.records[0].Details["code"] != "withdrawn" {
		t.Errorf("recorded %+v", w.records)
	}
}

// An approval with scope Always permits calls with ReadOnly only if the user was
// shown that the tool declares that it only reads.
func TestAnswerToShownDeclaration(t *testing.T) {
	for _, tt := range []struct {
		scope     policy.Scope
		tool      string
		shown, by bool // by: whether the grant is for reading calls
	}{{policy.Always, "c__read_note", true, true}, {policy.Always, "c__read_note", false, false}, {policy.Always, "c__write_note", true, false}} {
		grants := policy.NewMemoryStore()
		w := keeping(t, "mcpServers: {c: {command: c, ask: true}}", grants)
		c := noteCall("x")
		c.Name = tt.tool
		c.Approve = func(_ context.Context, r *loadout.ApprovalRequest) (loadout.Approval, error) {
			if r.Call.ReadOnly != (tt.tool == "c__read_note") {
				t.Errorf("%s: the request says %t", tt.tool, r.Call.ReadOnly)
			}
			return loadout.Approval{Approved: true, Scope: tt.scope, ReadOnlyShown: tt.shown}, nil
		}
		if _, err := w.Call(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		all, _, err := grants.List(t.Context())
		if err != nil || len(all) != 1 || all[0].ReadOnly != tt.by {
			t.Errorf("%+v: the grants are %+v, %v", tt, all, err)
		}
	}
}
