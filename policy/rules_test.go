package policy_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/loadout-dev/loadout/internal/decision"
	"github.com/loadout-dev/loadout/internal/upstream"
	"github.com/loadout-dev/loadout/policy"
)

func rules(t *testing.T, texts ...string) policy.Rules {
	t.Helper()
	r, problems := policy.ParseRules(texts)
	if len(problems) > 0 {
		t.Fatalf("%q: %v", texts, problems)
	}
	return r
}

// call is a call of a tool of another's server that only computes.
func call(server, tool, arguments string) policy.ToolCall {
	return policy.ToolCall{Server: server, Tool: tool, Arguments: json.RawMessage(arguments), Safety: policy.Medium}
}

func TestL9ToolNames(t *testing.T) {
	for _, tt := range []struct {
		name         string
		server, tool string
		want         bool
	}{
		{"mcp.github.search", "github", "search", true},
		{"mcp.search", "github", "search", true},
		{"github__search", "github", "search", true},
		{"mcp__github__search", "github", "search", true},
		{"mcp__github", "github", "search", true},
		{"mcp.github.*", "github", "search", true},
		{"mcp.*.search", "github", "search", true},
		{"github__s*h", "github", "search", true},
		{"mcp.*", "github", "search", true},
		{"*", "github", "search", true},
		{"*", "", "Bash", true},
		{"Bash", "", "Bash", true},
		{"B*", "", "Bash", true},

		{"mcp.github.search", "github", "searches", false},
		{"mcp.github.search", "evil", "search", false},
		{"mcp.github", "github", "search", false}, // the tool github
		{"search", "github", "search", false},
		{"Bash", "evil", "Bash", false},
		{"mcp.github.search", "evil", "github.search", false}, // a tool with the name of another server's
		{"mcp.github.*", "evil", "github.search", false},
		{"github__*", "github__search", "x", false},
		{"mcp.GitHub.search", "github", "search", false},
		{"mcp.*", "", "Bash", false},
	} {
		got := rules(t, "allow "+tt.name).Decide(call(tt.server, tt.tool, "")).Effect == policy.Allow
		if got != tt.want {
			t.Errorf("allow %s: %s %s is %v, want %v", tt.name, tt.server, tt.tool, got, tt.want)
		}
	}
}

// What denies is read widely.
func TestL9DenialsCatchEverySpelling(t *testing.T) {
	for _, name := range []string{"mcp.github.delete", "mcp.delete", "github__delete", "mcp__github__delete", "delete", "mcp.github", "mcp__github",
		"MCP.github.delete", "mcp.GITHUB.Delete", "GitHub__*", "mcp.*.del*", "*"} {
		name = strings.Replace(name, "MCP.", "mcp.", 1)
		if d := rules(t, "allow *", "deny "+name).Decide(call("github", "delete", "")); d.Effect != policy.Deny {
			t.Errorf("deny %s: %+v", name, d)
		}
	}
	named := call("git hub", "dele te", "")
	named.Name = "git_hub__dele_te"
	if d := rules(t, "deny git_hub__dele_te").Decide(named); d.Effect != policy.Deny {
		t.Errorf("by the name that is shown: %+v", d)
	}
}

func TestRulesFirstMatchAndDenyBeatsAll(t *testing.T) {
	r := rules(t, "ask mcp.a.x", "allow mcp.a.*", "deny mcp.a.y", "ask mcp.a.z")
	for tool, want := range map[string]string{"x": "ask", "y": "deny", "z": "allow", "w": "allow"} {
		d := r.Decide(call("a", tool, ""))
		if d.Effect != want || d.Code != decision.ByRule || d.Rule == "" {
			t.Errorf("%s: %+v, want %s", tool, d, want)
		}
	}
	if d := r.Decide(call("b", "x", "")); d.Rule != "" {
		t.Errorf("no rule is about it: %+v", d)
	}
	// A skill's own list comes behind, and denials of anybody count.
	skill, problems := policy.AllowTools([]string{"mcp.a.x mcp.b.x", "bad(", "mcp.a.y"})
	if len(problems) != 1 || problems[0].Where != "tool 2, column 4" {
		t.Error(problems)
	}
	more := r.Append(skill)
	for name, want := range map[string]string{"a.x": "ask", "a.y": "deny", "b.x": "allow"} {
		server, tool, _ := strings.Cut(name, ".")
		if d := more.Decide(call(server, tool, "")); d.Effect != want {
			t.Errorf("%s: %+v, want %s", name, d, want)
		}
	}
	if got := rules(t, "allow *", "deny mcp.a.y", "ask B").Denials().List(); len(got) != 1 || got[0] != "deny mcp.a.y" {
		t.Error(got)
	}
}

// DenialsFor omits no rule that denies a call of a tool with a plain name.
func TestDenialsFor(t *testing.T) {
	texts := []string{"deny mcp.git.push", "deny mcp.other.push", "deny other__push", "deny mcp__other", "deny write_file", "deny *_push", "deny mcp.g*.push",
		"deny GIT__push", "deny Bash", "allow mcp.git.pull", "deny mcp.git.a.b", "deny my_server__push_12345678", "deny mcp.workspace.run_command"}
	for server, want := range map[string]string{
		"git":       "mcp.git.push write_file *_push mcp.g*.push GIT__push Bash",
		"elsewhere": "write_file *_push Bash",
		"my.server": "write_file *_push Bash my_server__push_12345678",
		"workspace": "other__push write_file *_push GIT__push Bash my_server__push_12345678 mcp.workspace.run_command",
	} {
		var got []string
		for _, r := range rules(t, texts...).DenialsFor(server).List() {
			got = append(got, strings.TrimPrefix(r, "deny "))
		}
		if got := strings.Join(got, " "); got != want {
			t.Errorf("%s: %q, want %q", server, got, want)
		}
	}
	part := rapid.SampledFrom([]string{"a", "b", "ab", "A", "_", "__", ".", "*", "mcp.", "mcp__", "/", "é", "workspace", "Bash"})
	rapid.Check(t, func(t *rapid.T) {
		text := "deny " + strings.Join(rapid.SliceOfN(part, 1, 6).Draw(t, "rule"), "")
		server := strings.Join(rapid.SliceOfN(part, 1, 4).Draw(t, "server"), "")
		tool := strings.ReplaceAll(strings.ReplaceAll(strings.Join(rapid.SliceOfN(part, 1, 4).Draw(t, "tool"), ""), ".", ""), "_", "")
		all, problems := policy.ParseRules([]string{text})
		if len(problems) > 0 || tool == "" {
			t.Skip("not a rule")
		}
		c := policy.ToolCall{Server: server, Tool: tool, Name: upstream.ToolName(server, tool), OwnServer: true, Safety: policy.Low}
		if all, some := all.Decide(c).Effect, all.DenialsFor(server).Decide(c).Effect; all != some {
			t.Errorf("%q, %q: %s by all rules, %s by those for the server", text, c.Name, all, some)
		}
	})
}

func TestB2Patterns(t *testing.T) {
	bash := func(command string) policy.ToolCall {
		args, _ := json.Marshal(map[string]any{"command": command, "description": "whatever"})
		return call("", "Bash", string(args))
	}
	read := func(path string) policy.ToolCall {
		args, _ := json.Marshal(map[string]any{"path": path, "limit": 10})
		return call("fs", "read", string(args))
	}
	workspace := call("workspace", "run_command", `{"command":"git status"}`)
	workspace.OwnServer = true
	for _, tt := range []struct {
		rule        string
		call        policy.ToolCall
		allow, deny bool // effect of the rule as one that allows and as one that denies
	}{
		{"Bash(git:*)", bash("git status"), true, true},
		{"Bash(git:*)", bash("git"), true, true},
		{"Bash(git:*)", workspace, true, true},
		{"Bash(git:*)", bash("github x"), false, false},
		{"Bash(git:*)", bash("git status; rm -rf /"), false, true},
		{"Bash(git:*)", bash("git log | sh"), false, true},
		{"Bash(git:*)", bash("git log $(rm x)"), false, true},
		{"Bash(git:*)", bash("git log\nrm x"), false, true},
		{"Bash(git:*)", bash("git log > x"), false, true},
		{"Bash(rm:*)", bash("echo a; rm -rf /"), false, true},
		{"Bash(rm:*)", bash("A=b sudo /bin/rm -rf /"), false, true},
		{"Bash(rm:*)", bash("echo `RM x`"), false, true},
		{"Bash(git add:*, git commit:*)", bash("git commit -m x"), true, true},
		{"Bash(git add:*, git commit:*)", bash("git push"), false, false},
		{"Bash(python:a,b)", bash("b"), false, false},
		{"Bash(npm run test)", bash("npm run test"), true, true},
		{"Bash(npm run test)", bash("npm run tests"), false, false},
		{"Bash(f(a)(b))", bash("f(a)(b)"), true, true},
		{"Bash(*)", bash("a; b"), true, true},
		{"Bash", bash("a; b"), true, true},
		{`Bash(ls \*)`, bash("ls *"), true, true},
		{`Bash(ls \*)`, bash("ls x"), false, false},
		{"mcp.fs.read(/home/me/*)", read("/home/me/x/y"), true, true},
		{"mcp.fs.read(/home/me/*)", read("/home/you/x"), false, false},
		{"mcp.fs.read(/home/me/*)", read("/home/me/../you/x"), false, true},
		{"mcp.fs.*(*.md)", read("x.md"), true, true},
		{"mcp.fs.read(/a/*)", call("fs", "read", `{"path":"/a/x","other":"/b"}`), false, true},
		{"mcp.fs.read(/a/*)", call("fs", "read", `{"path":"/a/x","path":"/b"}`), false, true},
		{"mcp.fs.read(/a/*)", call("fs", "read", `{"in":{"deep":["/a/x"]},"n":1}`), true, true},
		{"mcp.fs.read(/a/*)", call("fs", "read", `{broken`), false, true},
		{"mcp.fs.read(/a/*)", call("fs", "read", `{"path":"`+strings.Repeat("a", 1<<20)+`"}`), false, true},
		{"mcp.db.get(3)", call("db", "get", `{"id":3}`), true, true},
		{"mcp.db.get(3)", call("db", "get", `{"id":4}`), false, false},
		{"WebFetch(domain:example.com)", call("", "WebFetch", `{"url":"https://Api.Example.com:8443/x","prompt":"p"}`), true, true},
		{"WebFetch(domain:example.com)", call("", "WebFetch", `{"url":"https://example.com@evil.org/x"}`), false, false},
		{"WebFetch(domain:example.com)", call("", "WebFetch", `{"url":"https://example.com.evil.org"}`), false, false},
	} {
		if got := rules(t, "allow "+tt.rule).Decide(tt.call).Rule != ""; got != tt.allow {
			t.Errorf("allow %s: %.100s is %v, want %v", tt.rule, tt.call.Arguments, got, tt.allow)
		}
		if got := rules(t, "deny "+tt.rule).Decide(tt.call).Effect == policy.Deny; got != tt.deny {
			t.Errorf("deny %s: %.100s is %v, want %v", tt.rule, tt.call.Arguments, got, tt.deny)
		}
	}
}

// Every real spelling of allowed-tools gives the same rules.
func TestB9ToolSpellings(t *testing.T) {
	want := []string{"allow Read", "allow Bash(python:f(a,b))", "allow mcp__docs__search"}
	for _, texts := range [][]string{
		{"Read Bash(python:f(a,b)) mcp__docs__search"},
		{"Read, Bash(python:f(a,b)), mcp__docs__search"},
		{"Read,Bash(python:f(a,b)),mcp__docs__search,"},
		{" Read\n\tBash( python:f(a,b) )\nmcp__docs__search "},
		{"Read", "Bash(python:f(a,b))", "mcp__docs__search"},
	} {
		r, problems := policy.AllowTools(texts)
		if diff := cmp.Diff(want, r.List()); diff != "" || len(problems) > 0 {
			t.Errorf("%q: %v\n%s", texts, problems, diff)
		}
	}
}

func TestUnreadableRulesDeny(t *testing.T) {
	for _, tt := range []struct{ text, where, message string }{
		{"", "rule 2, column 1", "want allow, ask or deny"},
		{"permit x", "rule 2, column 1", "want allow, ask or deny"},
		{"  forbid x", "rule 2, column 3", `unknown effect "forbid"`},
		{"deny", "rule 2, column 5", "no tool named"},
		{"deny a b(", "rule 2, column 9", "unmatched ("},
		{"deny a)", "rule 2, column 7", "unmatched )"},
		{"deny a(b)c", "rule 2, column 7", "unexpected text"},
		{"deny a()", "rule 2, column 7", "empty"},
		{"deny a;b", "rule 2, column 7", "invalid tool name"},
		{"deny (x)", "rule 2, column 6", "missing"},
		{"deny a(\x00)", "rule 2, column 8", "unprintable"},
		{"deny \xff", "rule 2, column 1", "UTF-8"},
		{"deny " + strings.Repeat("a", 5000), "rule 2, column 1", "limit 4096"},
	} {
		r, problems := policy.ParseRules([]string{"allow *", tt.text})
		if len(problems) != 1 || problems[0].Where != tt.where || !strings.Contains(problems[0].Message, tt.message) {
			t.Errorf("%.50q: %v, want %s: %s", tt.text, problems, tt.where, tt.message)
		}
		if d := r.Decide(call("a", "b", "")); d.Effect != policy.Deny || d.Code != decision.InvalidRules || d.Hint == "" {
			t.Errorf("%.50q: %+v", tt.text, d)
		}
		if d := (policy.Rules{}).Append(r.Denials()).Decide(call("a", "b", "")); d.Effect != policy.Deny {
			t.Errorf("%.50q, as denials: %+v", tt.text, d)
		}
	}
	many := make([]string, 2000)
	for i := range many {
		many[i] = fmt.Sprintf("allow a%d", i)
	}
	if _, problems := policy.ParseRules(many); len(problems) != 1 {
		t.Errorf("2000 rules: %v", problems)
	}
	if _, problems := policy.ParseRules([]string{"allow " + strings.Repeat("a,", 2000)}); len(problems) != 1 {
		t.Errorf("2000 tools: %v", problems)
	}
}

func TestL10DefaultsAndThreshold(t *testing.T) {
	for _, tt := range []struct {
		name      string
		call      policy.ToolCall
		threshold policy.Level
		want      string
		code      string
	}{
		{"a tool that may change something asks", policy.ToolCall{Safety: policy.Medium}, 0, "ask", "may-change"},
		{"even a safe one", policy.ToolCall{Safety: policy.Safe}, 0, "ask", "may-change"},
		{"one that only reads does not", policy.ToolCall{Safety: policy.Medium, ReadOnly: true}, 0, "allow", "read-only"},
		{"of the person's own server neither", policy.ToolCall{Safety: policy.Medium, OwnServer: true}, 0, "allow", "own-server"},
		{"unless it is marked", policy.ToolCall{Safety: policy.Medium, OwnServer: true, AlwaysAsk: true}, 0, "ask", "marked"},
		{"marked, and only reads", policy.ToolCall{Safety: policy.Low, ReadOnly: true, AlwaysAsk: true}, 0, "ask", "marked"},
		{"from HIGH on", policy.ToolCall{Safety: policy.High, OwnServer: true, ReadOnly: true}, 0, "ask", "level"},
		{"CRITICAL", policy.ToolCall{Safety: policy.Critical, OwnServer: true}, 0, "ask", "level"},
		{"another threshold", policy.ToolCall{Safety: policy.High, OwnServer: true}, policy.Critical, "allow", "own-server"},
		{"a lower one", policy.ToolCall{Safety: policy.Low, OwnServer: true, ReadOnly: true}, policy.Low, "ask", "level"},
		{"unknown is denied, and asked about", policy.ToolCall{OwnServer: true, ReadOnly: true}, 0, "ask", "unknown-safety"},
		{"what is no level too", policy.ToolCall{OwnServer: true, ReadOnly: true, Safety: 99}, policy.Critical, "ask", "unknown-safety"},
	} {
		tt.call.Server, tt.call.Tool = "s", "t"
		d := policy.Rules{Threshold: tt.threshold}.Decide(tt.call)
		if d.Effect != tt.want || d.Code != tt.code || d.Reason == "" {
			t.Errorf("%s: %+v", tt.name, d)
		}
		if d.Effect == policy.Ask && d.Hint != `to allow it always, add the rule "allow mcp.s.t" to policy.rules` {
			t.Errorf("%s: the next step is %q", tt.name, d.Hint)
		}
	}
}

func TestL10Levels(t *testing.T) {
	names := []string{"SAFE", "LOW", "MEDIUM", "HIGH", "CRITICAL"}
	last := policy.Unknown
	for _, name := range names {
		l, err := policy.ParseLevel(" " + strings.ToLower(name))
		if err != nil || l <= last || l.String() != name {
			t.Errorf("%s: %v %v", name, l, err)
		}
		var back policy.Level
		b, _ := json.Marshal(l)
		if err := json.Unmarshal(b, &back); err != nil || back != l || string(b) != `"`+name+`"` {
			t.Errorf("%s: %s %v", name, b, err)
		}
		last = l
	}
	for _, bad := range []string{"", "UNKNOWN", "3", "HIGHER"} {
		if l, err := policy.ParseLevel(bad); err == nil || l != policy.Unknown {
			t.Errorf("%q: %v", bad, l)
		}
	}
}

// FuzzRules checks that printed rules can be parsed again, and that a pattern denies at
// least what it allows.
func FuzzRules(f *testing.F) {
	for _, seed := range [][4]string{
		{"Bash(git:*), Read", "", "Bash", `{"command":"git x"}`},
		{"mcp.a.b(/x/*) a__*", "a", "b", `{"p":"/x/y"}`},
		{"WebFetch(domain:a.b) mcp__s", "s", "t", `{"u":["https://a.b/"]}`},
		{`x(\*, (a:*,b:*))`, "", "x", `"a b"`},
		{"*", "workspace", "run_command", `{"command":"a;b"}`},
	} {
		f.Add(seed[0], seed[1], seed[2], seed[3])
	}
	f.Fuzz(func(t *testing.T, text, server, tool, arguments string) {
		allow, problems := policy.AllowTools([]string{text})
		var again, deny []string
		for _, r := range allow.List() {
			again = append(again, strings.TrimPrefix(r, "allow "))
			deny = append(deny, "deny "+strings.TrimPrefix(r, "allow "))
		}
		back, more := policy.AllowTools(again)
		if diff := cmp.Diff(fmt.Sprint(allow.List()), fmt.Sprint(back.List())); diff != "" || len(more) > 0 {
			t.Fatalf("%q: %v, again %v\n%s", text, problems, more, diff)
		}
		c := policy.ToolCall{Server: server, Tool: tool, Name: tool, OwnServer: true, Arguments: json.RawMessage(arguments)}
		denials, bad := policy.ParseRules(deny)
		if len(bad) > 0 {
			t.Fatalf("%q: %v", deny, bad)
		}
		if allow.Decide(c).Effect == policy.Allow && denials.Decide(c).Effect != policy.Deny {
			t.Errorf("%q allows what it does not deny: %+v", text, c)
		}
	})
}
