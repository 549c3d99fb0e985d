package policy_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/loadout-dev/loadout/internal/lease"
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
		{`{"a":`},
		{strings.Repeat(`{"a":`, 300) + "1" + strings.Repeat("}", 300)},
	}
	seen := map[policy.Digest]string{}
	for _, texts := range same {
		first := policy.ArgumentsDigest(json.RawMessage(texts[0]))
		if err := first.Check(); err != nil {
			t.Error(err)
		}
		if other, ok := seen[first]; ok {
			t.Errorf("%.50q has the digest of %.50q", texts[0], other)
		}
		seen[first] = texts[0]
		for _, text := range texts[1:] {
			if got := policy.ArgumentsDigest(json.RawMessage(text)); got != first {
				t.Errorf("%q has another digest than %q", text, texts[0])
			}
		}
	}
	a, b := digestOf("a"), digestOf("b")
	x, y := json.RawMessage(`{"x":1}`), json.RawMessage(`{"y":1}`)
	if a.WithArguments(x) == a || a.WithArguments(x) == a.WithArguments(y) || a.WithArguments(x) == b.WithArguments(x) || a.WithArguments(x) != a.WithArguments(json.RawMessage(`{ "x": 1 }`)) {
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
		if unambiguous(a) && json.Indent(&wide, a, "", "  ") == nil && policy.ArgumentsDigest(a) != policy.ArgumentsDigest(wide.Bytes()) {
			t.Errorf("%q and %q have different digests", a, wide.Bytes())
		}
		if policy.ArgumentsDigest(a) == policy.ArgumentsDigest(b) && json.Valid(a) && json.Valid(b) {
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
	exact := granted(asked.Subject.WithArguments(asked.Arguments))
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
		d := r.Decide(c).WithGrants(t.Context(), store, c, who, tt.in)
		if d.Effect != tt.want || (d.Grant != nil) != (tt.want == "allow") {
			t.Errorf("%s: %+v", tt.name, d)
		}
		rec := d.Record(c, who, false)
		if d.Allowed() && (rec.Details["grant"] != d.Grant.ID || rec.Details["code"] != string(policy.Granted)) || rec.Subject != c.Subject {
			t.Errorf("%s: recorded %+v", tt.name, rec)
		}
	}
}

func TestCallGrantsExpireAndAreConsumed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := policy.NewMemoryStore()
		c := call("s", "t", `{}`)
		c.Subject = digestOf("a")
		ask := func() policy.ToolDecision {
			return policy.Rules{}.Decide(c).WithGrants(t.Context(), store, c, robot, "")
		}
		g := granted(c.Subject)
		g.Expires = time.Now().Add(time.Hour)
		_, err := store.Put(t.Context(), g)
		try(t, err)
		if !ask().Allowed() {
			t.Error("not allowed before it expires")
		}
		time.Sleep(time.Hour)
		if ask().Allowed() {
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
		if ask().Allowed() {
			t.Error("allowed when it was used up")
		}
	})
}

// A grant that lasts is used rather than one for a single call.
func TestLastingGrantIsPreferred(t *testing.T) {
	store := policy.NewMemoryStore()
	c := call("s", "t", `{"x":1}`)
	c.Subject = digestOf("a")
	once, exact := granted(c.Subject), granted(c.Subject.WithArguments(c.Arguments))
	once.Scope = policy.Once
	for _, g := range []policy.Grant{exact, once} {
		_, err := store.Put(t.Context(), g)
		try(t, err)
	}
	if d := (policy.Rules{}).Decide(c).WithGrants(t.Context(), store, c, robot, ""); d.Grant == nil || d.Grant.Scope != policy.Always {
		t.Errorf("%+v", d)
	}
}

func TestL10UnreadableGrantsAllowNothing(t *testing.T) {
	s, _, file := kept(t)
	c := call("s", "t", `{}`)
	c.Subject = digestOf("b")
	g, err := s.Put(t.Context(), granted(c.Subject))
	try(t, err)
	ask := func() policy.ToolDecision {
		return policy.Rules{}.Decide(c).WithGrants(t.Context(), s, c, robot, "")
	}
	try(t, os.WriteFile(file, []byte("{"), 0o600)) // of another
	if !ask().Allowed() {
		t.Error("not allowed beside a damaged grant of something else")
	}
	try(t, os.WriteFile(filepath.Join(filepath.Dir(file), g.ID+".json"), []byte(`{"version": 1}`), 0o600))
	if d := ask(); !d.NeedsApproval() || !strings.Contains(d.Reason, "cannot read earlier approvals: ") {
		t.Errorf("%+v", d)
	}
}

// Programs that do not know of calls ignore grants of them, and read the others as
// they were.
func TestOnlyCallGrantsHaveACall(t *testing.T) {
	dir := t.TempDir()
	s := policy.NewFileStore(dir)
	for _, tt := range []struct {
		grant policy.Grant
		want  bool
	}{{newGrant(digestOf("a")), false}, {granted(digestOf("b")), true}} {
		g, err := s.Put(t.Context(), tt.grant)
		try(t, err)
		text, err := os.ReadFile(filepath.Join(dir, g.ID+".json"))
		try(t, err)
		if got := bytes.Contains(text, []byte(`"call"`)); got != tt.want {
			t.Errorf("it says call: %t\n%s", got, text)
		}
	}
	call, run := policy.Permissions{Call: true}, policy.Permissions{Run: true}
	if call.Covers(run) || run.Covers(call) || call.Intersect(run).Call {
		t.Error("running and calling are one")
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
		if d := own.DecideWith(more, c); d.Effect != tt.want {
			t.Errorf("%s: %+v", tt.name, d)
		}
	}
	c := call("s", "t", `{}`)
	c.AlwaysAsk = true
	if d := (policy.Rules{}).DecideWith(rules(t, "deny mcp.s.t"), c); d.Effect != policy.Deny {
		t.Errorf("a denial of a skill does not count: %+v", d)
	}
	if d := rules(t, "allow mcp.s.t").DecideWith(rules(t, "deny mcp.s.t"), c); d.Effect != policy.Deny {
		t.Errorf("a denial of a skill does not count: %+v", d)
	}
}
