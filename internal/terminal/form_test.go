package terminal

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/approval"
	"github.com/loadout-dev/loadout/policy"
)

// press types keys: names of them, or letters.
func press(d dialog, keys string) *approval.Answer {
	for k := range strings.FieldsSeq(keys) {
		if a := d.key(k, map[bool]string{true: k}[len([]rune(k)) == 1]); a != nil {
			return a
		}
	}
	return nil
}

func TestForm(t *testing.T) {
	three := `{"properties":{"a":{"type":"integer","title":"How many?"},"b":{"type":"string","default":"tea"},"c":{"type":"string","enum":["x","y"]}},"required":["a"]}`
	for _, tt := range []struct {
		name, schema, keys string
		want               approval.Outcome
		content            string
	}{
		{"yes", "", "y enter", approval.Accepted, ""},
		{"no", "", "n enter", approval.Declined, ""},
		{"nothing is chosen by itself", "", "enter", "", ""},
		{"field after field", three, "4 enter enter down enter", approval.Accepted, `{"a":4,"b":"tea","c":"x"}`},
		{"what does not fit is not taken", three, "x enter backspace 7 enter c enter enter", approval.Accepted, `{"a":7,"b":"c"}`},
		{"what is needed is not left out", three, "enter enter enter", "", ""},
		{"back to a field", three, "1 enter shift+tab 2 enter enter enter", approval.Accepted, `{"a":2,"b":"tea"}`},
		{"left", three, "4 enter esc", approval.Cancelled, ""},
		{"refused", three, "4 ctrl+x", approval.Declined, ""},
		{"a decision", `{"properties":{"decision":{"type":"string","enum":["once","always","no"]}}}`, "a enter", approval.Accepted, `{"decision":"always"}`},
		{"the decision no", `{"properties":{"decision":{"type":"string","enum":["once","always","no"]}}}`, "n enter", approval.Declined, ""},
		{"no decision is none", `{"properties":{"decision":{"type":"string","enum":["once","always","no"]}}}`, "enter", "", ""},
		{"several", `{"properties":{"t":{"type":"array","items":{"enum":["red","green"]}}},"required":["t"]}`, "r , g enter", approval.Accepted, `{"t":["red","green"]}`},
		{"a boolean", `{"properties":{"ok":{"type":"boolean","default":true}}}`, "enter", approval.Accepted, `{"ok":true}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f, err := newForm(&approval.Request{Kind: approval.KindElicitation, Message: "Say it.", Schema: json.RawMessage(tt.schema)})
			if err != nil {
				t.Fatal(err)
			}
			got := press(f, tt.keys)
			if got == nil {
				got = &approval.Answer{}
			}
			if got.Outcome != tt.want || string(got.Content) != tt.content {
				t.Errorf("%s %s, want %s %s", got.Outcome, got.Content, tt.want, tt.content)
			}
		})
	}
}

// What is secret is not shown.
func TestSecretField(t *testing.T) {
	f, err := newForm(&approval.Request{Message: "Sign in", Schema: json.RawMessage(`{"properties":{"p":{"type":"string","format":"password"}}}`)})
	if err != nil {
		t.Fatal(err)
	}
	press(f, "s e c r e t")
	lines, _, _ := f.show(40, 20)
	text := strings.Join((palette{none: true}).paintAll(lines), "\n")
	if strings.Contains(text, "secret") || !strings.Contains(text, "••••••") {
		t.Error(text)
	}
}

func TestUnsupportedForms(t *testing.T) {
	for name, schema := range map[string]string{"no object": `{"properties":[]}`, "too many": `{"properties":{` + strings.TrimSuffix(strings.Repeat(`"a":{},`, 1), ",") + many(maxFields+1) + `}}`} {
		if _, err := newForm(&approval.Request{Schema: json.RawMessage(schema)}); err == nil {
			t.Errorf("%s is shown", name)
		}
	}
}

func many(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(`,"f` + strings.Repeat("x", i) + `":{}`)
	}
	return b.String()
}

func request(t *testing.T, tool, args string) *approval.Request {
	t.Helper()
	payload, err := json.Marshal(map[string]any{"tool": tool, "server": "workspace", "reason": "it is HIGH", "arguments": json.RawMessage(args)})
	if err != nil {
		t.Fatal(err)
	}
	return &approval.Request{ID: "s.1", Kind: approval.KindApproval, Session: "s", Payload: payload, Message: "Call it?"}
}

func TestApproval(t *testing.T) {
	for _, tt := range []struct {
		name, keys string
		want       approval.Outcome
		scope      policy.Scope
		content    string
	}{
		{"yes", "y", approval.Accepted, "", ""},
		{"no", "n", approval.Declined, "", ""},
		{"for this conversation", "s", approval.Accepted, policy.ForSession, ""},
		{"always", "a", approval.Accepted, policy.Always, ""},
		{"leaving it is no yes", "esc", approval.Declined, "", ""},
		{"nothing is allowed by Enter", "enter space x", "", "", ""},
		{"changed arguments", "e ctrl+home ctrl+w enter y", approval.Accepted, "", `{}`},
		{"changes that are left", "e ctrl+w esc y", approval.Accepted, "", ""},
		{"changes that are no JSON", "e x enter y", "", "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := newApproval(request(t, "run_command", `{}`), nil)
			got := press(d, tt.keys)
			if tt.name == "changed arguments" {
				d = newApproval(request(t, "run_command", `{"a":1}`), nil)
				press(d, "e")
				d.input.set(`{}`)
				got = press(d, "enter y")
			}
			if got == nil {
				got = &approval.Answer{}
			}
			if got.Outcome != tt.want || got.Scope != tt.scope || string(got.Content) != tt.content {
				t.Errorf("%+v %s, want %s %s %s", got, got.Content, tt.want, tt.scope, tt.content)
			}
		})
	}
}

// The arguments are edited as they read, and are not changed by that alone.
func TestArgumentsAreEditedAsShown(t *testing.T) {
	d := newApproval(request(t, "run_command", `{"command":"a < b && c > d # \u00e9\ud83d\ude00 \u202e\u0007 \\u003c \u0022"}`), nil)
	press(d, "e")
	if want := "{\n  \"command\": \"a < b && c > d # é😀 \\u202e\\u0007 \\\\u003c \\u0022\"\n}"; d.input.String() != want {
		t.Errorf("it is\n%s\nwant\n%s", d.input.String(), want)
	}
	if got := press(d, "enter y"); got == nil || got.Content != nil {
		t.Errorf("what was not changed comes back as %+v", got)
	}
}

// However JSON is spelled, it says the same.
func FuzzSpelled(f *testing.F) {
	for _, s := range []string{`"\u003c"`, `"\\u003c"`, `{"\u0061":"\ud83d\ude00\ud83d"}`, `["\u0022\u005c\u202e", 1]`, `"\u00"`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var was, is any
		if json.Unmarshal([]byte(text), &was) != nil {
			unescapeJSON(text) // does not panic
			return
		}
		if err := json.Unmarshal([]byte(unescapeJSON(text)), &is); err != nil || !reflect.DeepEqual(was, is) {
			t.Errorf("%s is %v, and spelled %s it is %v, %v", text, was, unescapeJSON(text), is, err)
		}
	})
}

// The dialog fits the screen and shows the end of the request as well as its beginning,
// because the end may be dangerous.
func TestApprovalFitsScreen(t *testing.T) {
	content := strings.Repeat("line\\n", 200) + "rm -rf /"
	d := newApproval(request(t, "write_file", `{"path":"a.sh","content":"`+content+`"}`), nil)
	for _, width := range []int{30, 39, 79} {
		lines, _, y := d.show(width, 16)
		text := strings.Join((palette{none: true}).paintAll(lines), "\n")
		if len(lines) > 18 || y >= len(lines) {
			t.Errorf("it has %d lines, the cursor is on %d", len(lines), y)
		}
		for _, part := range []string{"write_file", "path: a.sh", "rm -rf /", "more lines", "y yes"} {
			if !strings.Contains(text, part) {
				t.Errorf("at %d columns no %q in\n%s", width, part, text)
			}
		}
	}
}
