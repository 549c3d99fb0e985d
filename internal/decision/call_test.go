package decision_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/loadout-dev/loadout/internal/decision"
	"github.com/loadout-dev/loadout/internal/lease"
	"github.com/loadout-dev/loadout/internal/privatefile"
	"github.com/loadout-dev/loadout/policy"
)

func TestArgumentsDigest(t *testing.T) {
	same := [][]string{
		{"", "null", "{}", " { } "},
		{`{"a":1,"b":[1,{"c":"x","d":null}]}`, "{ \"b\" : [1, {\"d\":null,\"c\":\"\\u0078\"}],\n\"a\":1 }"},
		{`{"a":1,"a":2}`}, // one reader takes the first, another the last
		{`{"a":2,"a":1}`},
		{`{"a":2}`},
		{`{"a":1}`},
		{`{"a":1.0}`},
		{`{"a":"1"}`},
		{`{"A":1}`},
		{`{"a":[1,2]}`},
		{`{"a":[2,1]}`},
		{`{"a":"\ud800"}`}, // no character
		{`{"a":"\ufffd"}`},
		{"{\"a\":\"\xff\"}"},
		{"{\"a\":\"\xfe\"}"},
		{"[1 ", "[1 "},
		{"[1"},
		{"[[1],[]]", " [ [ 1 ] , [ ] ] "},
		{`{"b":{"a":1,"a":1}}`},
		{`{"b":{"a":1}}`},
		{`{"b":["\ud800"]}`},
		{`{"\ud800":1}`},
		{strings.Repeat("[", 199) + "1" + strings.Repeat("]", 199), strings.Repeat("[ ", 199) + "1" + strings.Repeat("]", 199)},
		{`{"a":`},
		{strings.Repeat(`{"a":`, 300) + "1" + strings.Repeat("}", 300)},
	}
	seen := map[policy.Digest]string{}
	for _, texts := range same {
		first := decision.ArgumentsDigest(json.RawMessage(texts[0]))
		if err := first.Check(); err != nil {
			t.Error(err)
		}
		if other, ok := seen[first]; ok {
			t.Errorf("%.50q has the digest of %.50q", texts[0], other)
		}
		seen[first] = texts[0]
		for _, text := range texts[1:] {
			if got := decision.ArgumentsDigest(json.RawMessage(text)); got != first {
				t.Errorf("%q has another digest than %q", text, texts[0])
			}
		}
	}
	a, b := digestOf("a"), digestOf("b")
	x, y := json.RawMessage(`{"x":1}`), json.RawMessage(`{"y":1}`)
	if decision.WithArguments(a, x) == a || decision.WithArguments(a, x) == decision.WithArguments(a, y) || decision.WithArguments(a, x) == decision.WithArguments(b, x) || decision.WithArguments(a, x) != decision.WithArguments(a, json.RawMessage(`{ "x": 1 }`)) {
		t.Error("the subject of a tool with arguments is not one of both")
	}
}

// Blanks never count, and arguments with one digest mean the same.
func FuzzArgumentsDigest(f *testing.F) {
	f.Add([]byte(`{"a":1,"b":[true,"x"]}`), []byte(`{"b":[true,"x"],"a":1}`))
	f.Add([]byte(`{"a":1,"a":2}`), []byte(`{"a":2}`))
	f.Add([]byte(`{"a":"<\u003c"}`), []byte(`{"a":"<<"}`))
	f.Fuzz(func(t *testing.T, a, b []byte) {
		var wide bytes.Buffer
		if unambiguous(a) && json.Indent(&wide, a, "", "  ") == nil && decision.ArgumentsDigest(a) != decision.ArgumentsDigest(wide.Bytes()) {
			t.Errorf("%q and %q have different digests", a, wide.Bytes())
		}
		if decision.ArgumentsDigest(a) == decision.ArgumentsDigest(b) && json.Valid(a) && json.Valid(b) {
			if diff := cmp.Diff(value(t, a), value(t, b)); diff != "" {
				t.Errorf("%q and %q have one digest:\n%s", a, b, diff)
			}
		}
	})
}

// unambiguous reports whether a JSON text is in the form that this program writes and
// not deeply nested, so that all readers agree on it.
func unambiguous(text []byte) bool {
	var v any
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if d.Decode(&v) != nil {
		return false
	}
	out, err := json.Marshal(v)
	return err == nil && bytes.Equal(out, text) && !bytes.Contains(text, []byte("\ufffd")) && bytes.Count(text, []byte("{"))+bytes.Count(text, []byte("[")) < 100
}

func value(t *testing.T, text []byte) any {
	t.Helper()
	if s := string(bytes.TrimSpace(text)); s == "null" {
		return map[string]any{}
	}
	var v any
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	try(t, d.Decode(&v))
	return v
}

// granted is a grant that lets Robot call a tool for Ann.
func granted(subject policy.Digest) policy.Grant {
	g := newGrant(subject)
	g.Name, g.Origin, g.Permissions = "s__t", "your MCP server s", policy.Permissions{Call: true}
	return g
}

func TestL13GrantAllowsRepeatedCall(t *testing.T) {
	asked := call("s", "t", `{"x":1}`)
	asked.Subject = digestOf("a")
	exact := granted(decision.WithArguments(asked.Subject, asked.Arguments))
	session := granted(asked.Subject)
	session.Scope, session.Session = policy.ForSession, "s1"
	run := granted(asked.Subject)
	run.Permissions = policy.Permissions{Run: true}
	for _, tt := range []struct {
		name   string
		grant  policy.Grant
		change func(*policy.ToolCall)
		who    policy.Principal
		in     string
		rules  string
		want   string
	}{
		{name: "the same call", grant: granted(asked.Subject), want: "allow"},
		{name: "with other arguments", grant: granted(asked.Subject), change: func(c *policy.ToolCall) { c.Arguments = nil }, want: "allow"},
		{name: "of another tool or server", grant: granted(digestOf("b")), want: "ask"},
		{name: "of a tool that nobody knows", grant: granted(asked.Subject), change: func(c *policy.ToolCall) { c.Subject = "" }, want: "ask"},
		{name: "by another", grant: granted(asked.Subject), who: ann, want: "ask"},
		{name: "where a rule denies", grant: granted(asked.Subject), rules: "deny mcp.s.t", want: "deny"},
		{name: "where a rule asks", grant: granted(asked.Subject), rules: "ask mcp.s.t", want: "allow"},
		{name: "with these arguments", grant: exact, want: "allow"},
		{name: "written otherwise", grant: exact, change: func(c *policy.ToolCall) { c.Arguments = json.RawMessage(` { "x" : 1 }`) }, want: "allow"},
		{name: "with these arguments and another", grant: exact, change: func(c *policy.ToolCall) { c.Arguments = json.RawMessage(`{"x":2}`) }, want: "ask"},
		{name: "with these arguments, in planning", grant: exact, change: func(c *policy.ToolCall) { c.Arguments = nil }, want: "ask"},
		{name: "in its session", grant: session, in: "s1", want: "allow"},
		{name: "in another session", grant: session, in: "s2", want: "ask"},
		{name: "in none", grant: session, want: "ask"},
		{name: "of scripts", grant: run, want: "ask"},
	} {
		store := policy.NewMemoryStore()
		_, err := store.Put(t.Context(), tt.grant)
		try(t, err)
		c, who := asked, robot
		if tt.change != nil {
			tt.change(&c)
		}
		if tt.who != (policy.Principal{}) {
			who = tt.who
		}
		var r policy.Rules
		if tt.rules != "" {
			r = rules(t, tt.rules)
		}
		d := decision.WithGrants(t.Context(), r.Decide(c), store, c, who, tt.in)
		if d.Effect != tt.want || (d.Grant != nil) != (tt.want == "allow") {
			t.Errorf("%s: %+v", tt.name, d)
		}
		rec := decision.CallRecord(d, c, who, false)
		if d.Effect == policy.Allow && (rec.Details["grant"] != d.Grant.ID || rec.Details["code"] != string(decision.Granted)) || rec.Subject != c.Subject {
			t.Errorf("%s: recorded %+v", tt.name, rec)
		}
	}
}

func TestCallGrantsExpireAndAreConsumed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := policy.NewMemoryStore()
		c := call("s", "t", `{}`)
		c.Subject = digestOf("a")
		ask := func() policy.Decision {
			return decision.WithGrants(t.Context(), policy.Rules{}.Decide(c), store, c, robot, "")
		}
		g := granted(c.Subject)
		g.Expires = time.Now().Add(time.Hour)
		_, err := store.Put(t.Context(), g)
		try(t, err)
		if ask().Effect != policy.Allow {
			t.Error("not allowed before it expires")
		}
		time.Sleep(time.Hour)
		if ask().Effect == policy.Allow {
			t.Error("allowed when it has expired")
		}
		g.Scope, g.Expires = policy.Once, time.Time{}
		_, err = store.Put(t.Context(), g)
		try(t, err)
		d := ask()
		try(t, lease.Consume(t.Context(), store, *d.Grant))
		if err := lease.Consume(t.Context(), store, *d.Grant); !errors.Is(err, policy.ErrNotGranted) {
			t.Errorf("used again: %v", err)
		}
		if ask().Effect == policy.Allow {
			t.Error("allowed when it was used up")
		}
	})
}

// A grant that lasts is used rather than one for a single call.
func TestLastingGrantIsPreferred(t *testing.T) {
	store := policy.NewMemoryStore()
	c := call("s", "t", `{"x":1}`)
	c.Subject = digestOf("a")
	once, exact := granted(c.Subject), granted(decision.WithArguments(c.Subject, c.Arguments))
	once.Scope = policy.Once
	for _, g := range []policy.Grant{exact, once} {
		_, err := store.Put(t.Context(), g)
		try(t, err)
	}
	if d := decision.WithGrants(t.Context(), (policy.Rules{}).Decide(c), store, c, robot, ""); d.Grant == nil || d.Grant.Scope != policy.Always {
		t.Errorf("%+v", d)
	}
}

func TestL10UnreadableGrantsAllowNothing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "grants")
	s := policy.NewFileStore(dir)
	other, err := s.Put(t.Context(), newGrant(digestOf("a")))
	try(t, err)
	c := call("s", "t", `{}`)
	c.Subject = digestOf("b")
	g, err := s.Put(t.Context(), granted(c.Subject))
	try(t, err)
	ask := func() policy.Decision {
		return decision.WithGrants(t.Context(), policy.Rules{}.Decide(c), s, c, robot, "")
	}
	try(t, os.WriteFile(filepath.Join(dir, other.ID+".json"), []byte("{"), 0o600))
	if ask().Effect != policy.Allow {
		t.Error("not allowed beside a damaged grant of something else")
	}
	try(t, os.WriteFile(filepath.Join(dir, g.ID+".json"), []byte(`{"version": 1}`), 0o600))
	if d := ask(); d.Effect != policy.Ask || !strings.Contains(d.Reason, "cannot read earlier approvals: ") {
		t.Errorf("%+v", d)
	}
}

func TestB6SkillsAllowOnlyWithoutUserRule(t *testing.T) {
	more, problems := policy.AllowTools([]string{"mcp.s.t"})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	for _, tt := range []struct {
		name string
		own  string
		call func(*policy.ToolCall)
		want string
	}{
		{name: "nothing is said", want: "allow"},
		{name: "denied", own: "deny mcp.s.t", want: "deny"},
		{name: "asked about", own: "ask mcp.s.*", want: "ask"},
		{name: "of a level", call: func(c *policy.ToolCall) { c.Safety = policy.High }, want: "allow"},
		{name: "marked", call: func(c *policy.ToolCall) { c.AlwaysAsk, c.OwnServer = true, true }, want: "ask"},
		{name: "marked and of a level", call: func(c *policy.ToolCall) { c.AlwaysAsk, c.Safety = true, policy.High }, want: "ask"},
		{name: "of unknown safety", call: func(c *policy.ToolCall) { c.Safety = policy.Unknown }, want: "ask"},
		{name: "another tool", call: func(c *policy.ToolCall) { c.Tool = "u" }, want: "ask"},
	} {
		c := call("s", "t", `{}`)
		if tt.call != nil {
			tt.call(&c)
		}
		var own policy.Rules
		if tt.own != "" {
			own = rules(t, tt.own)
		}
		if d := decision.ForCall(own, more, c); d.Effect != tt.want {
			t.Errorf("%s: %+v", tt.name, d)
		}
	}
	c := call("s", "t", `{}`)
	c.AlwaysAsk = true
	if d := decision.ForCall(policy.Rules{}, rules(t, "deny mcp.s.t"), c); d.Effect != policy.Deny {
		t.Errorf("a denial of a skill does not count: %+v", d)
	}
	if d := decision.ForCall(rules(t, "allow mcp.s.t"), rules(t, "deny mcp.s.t"), c); d.Effect != policy.Deny {
		t.Errorf("a denial of a skill does not count: %+v", d)
	}
}

// L13: a decision is a record, which holds no argument.
func TestL13ToolDecisionIsRecorded(t *testing.T) {
	c := call("s", "t", `{"token":"s3cr3t"}`)
	for _, r := range []policy.Rules{{}, rules(t, "deny mcp.s.t"), rules(t, "allow s__t"), {Threshold: policy.Low}} {
		d := r.Decide(c)
		rec := decision.CallRecord(d, c, policy.LocalUser(), false)
		b, err := json.Marshal(rec)
		if err != nil || strings.Contains(string(b), "s3cr3t") || rec.Decision != d.Effect || rec.Name != "mcp.s.t" || rec.Action != "call" ||
			rec.Details["code"] != string(d.Code) || !strings.HasPrefix(rec.Details["arguments"], "sha256:") {
			t.Errorf("%s %v", b, err)
		}
		if yes := decision.CallRecord(d, c, policy.LocalUser(), true); (yes.Decision == policy.Allow) != (d.Effect != policy.Deny) {
			t.Errorf("approved, it is %+v", yes)
		}
	}
}

// A store that returns a grant for something else, or fails, allows no call.
func TestWithGrantsTrustsNoFaultyStore(t *testing.T) {
	c := call("s", "t", `{"x":1}`)
	c.Subject = digestOf("a")
	right := granted(c.Subject)
	subject, principal := granted(digestOf("b")), granted(c.Subject)
	principal.Principal = ann
	for name, tt := range map[string]struct {
		store policy.Store
		allow bool
	}{
		"the right grant":       {&faulty{grant: &right}, true},
		"of another subject":    {&faulty{grant: &subject}, false},
		"of another principal":  {&faulty{grant: &principal}, false},
		"no grant and no error": {&faulty{}, false},
		"an error":              {&faulty{grant: &right, find: errors.New("disk\x1b on fire")}, false},
	} {
		d := decision.WithGrants(t.Context(), policy.Rules{}.Decide(c), tt.store, c, robot, "")
		if (d.Effect == policy.Allow) != tt.allow || !tt.allow && !strings.Contains(d.Reason, "; cannot read earlier approvals: ") || strings.Contains(d.Reason, "\x1b") {
			t.Errorf("%s: %+v", name, d)
		}
	}
	unsafe := &privatefile.UnsafeError{Path: "/grants\n", Reason: "symbolic link"}
	if d := decision.WithGrants(t.Context(), policy.Rules{}.Decide(c), &faulty{find: unsafe}, c, robot, ""); d.Hint != `check the owner and permissions of /grants\n` {
		t.Errorf("the next step is %q", d.Hint)
	}
	// A readable grant for a single call counts, although another could not be read.
	once := granted(c.Subject)
	once.Scope = policy.Once
	if d := decision.WithGrants(t.Context(), policy.Rules{}.Decide(c), onlyTool{grant: once}, c, robot, ""); d.Effect != policy.Allow || d.Grant == nil || d.Grant.Scope != policy.Once {
		t.Errorf("%+v", d)
	}
	if d := decision.WithGrants(t.Context(), policy.Rules{}.Decide(c), nil, c, robot, ""); d.Effect != policy.Ask || d.Grant != nil {
		t.Errorf("without a store: %+v", d)
	}
}

// onlyTool is a store that can only read the grant for a tool.
type onlyTool struct {
	policy.Store
	grant policy.Grant
}

func (s onlyTool) Find(_ context.Context, _ policy.Principal, subject policy.Digest, _ string) (*policy.Grant, error) {
	if subject != s.grant.Subject {
		return nil, errors.New("disk on fire")
	}
	return &s.grant, nil
}

// Only the question whether a tool may modify data is answered by the sandbox.
func TestForIsolatedCall(t *testing.T) {
	more, problems := policy.AllowTools([]string{"mcp.s.other"})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	for _, tt := range []struct {
		name   string
		own    string
		change func(*policy.ToolCall)
		want   string
	}{
		{name: "may modify data", want: "allow"},
		{name: "read-only", change: func(c *policy.ToolCall) { c.ReadOnly = true }, want: "allow"},
		{name: "a rule asks", own: "ask mcp.s.t", want: "ask"},
		{name: "a rule denies", own: "deny mcp.s.t", want: "deny"},
		{name: "marked to need approval", change: func(c *policy.ToolCall) { c.AlwaysAsk = true }, want: "ask"},
		{name: "high risk", change: func(c *policy.ToolCall) { c.Safety = policy.High }, want: "ask"},
		{name: "critical", change: func(c *policy.ToolCall) { c.Safety = policy.Critical }, want: "ask"},
		{name: "beyond all levels", change: func(c *policy.ToolCall) { c.Safety = policy.Critical + 1 }, want: "ask"},
	} {
		c := call("s", "t", `{}`)
		if tt.change != nil {
			tt.change(&c)
		}
		var own policy.Rules
		if tt.own != "" {
			own = rules(t, tt.own)
		}
		if d := decision.ForIsolatedCall(own, more, c); d.Effect != tt.want {
			t.Errorf("%s: %+v", tt.name, d)
		}
	}
	if d := decision.ForIsolatedCall(policy.Rules{}, more, call("s", "t", `{}`)); d.Code != "isolated" || d.Reason == "" {
		t.Errorf("the reason is %+v", d)
	}
}

// The rules of skills never allow calls to critical tools.
func TestSkillsAllowNoCriticalTool(t *testing.T) {
	for safety, want := range map[policy.Level]string{policy.High: "allow", policy.Critical: "ask", policy.Critical + 1: "ask"} {
		c := call("s", "t", `{}`)
		c.Safety = safety
		if d := decision.ForCall(policy.Rules{}, rules(t, "allow mcp.s.t"), c); d.Effect != want {
			t.Errorf("%v: %+v, want %s", safety, d, want)
		}
	}
}

func TestCallRecordNamesRuleAndAnswer(t *testing.T) {
	c := call("s", "t", `{}`)
	d := rules(t, "ask mcp.s.t").Decide(c)
	no, yes := decision.CallRecord(d, c, robot, false), decision.CallRecord(d, c, robot, true)
	if no.Details["rule"] == "" || no.Details["rule"] != d.Rule || no.Details["answer"] != "" || no.Decision != policy.Ask {
		t.Errorf("not approved: %+v", no)
	}
	if yes.Details["answer"] != "approved" || yes.Decision != policy.Allow {
		t.Errorf("approved: %+v", yes)
	}
	d = policy.Rules{}.Decide(c)
	if _, ok := decision.CallRecord(d, c, robot, false).Details["rule"]; ok {
		t.Error("a decision without a rule has one")
	}
	// A decision that was never made is a denial.
	if r := decision.CallRecord(policy.Decision{}, c, robot, true); r.Decision != policy.Deny {
		t.Errorf("no decision: %+v", r)
	}
}

// A skill can allow a tool whose risk is known and not critical. The user can allow
// any.
func TestSafetyOutsideItsRange(t *testing.T) {
	for safety, asks := range map[policy.Level]bool{policy.Unknown: true, policy.Low: false, policy.High: false, policy.Critical: true, policy.Critical + 1: true} {
		c := call("s", "t", `{}`)
		c.Safety = safety
		d := decision.ForCall(policy.Rules{}, rules(t, "allow mcp.s.t"), c)
		user := decision.ForCall(rules(t, "allow mcp.s.t"), policy.Rules{}, c)
		if user.Effect != policy.Allow {
			t.Errorf("%v, allowed by the user: %+v", safety, user)
		}
		if (d.Effect == policy.Allow) == asks {
			t.Errorf("%v, allowed by a skill: %+v", safety, d)
		}
	}
}
