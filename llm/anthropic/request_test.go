package anthropic_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loadout-dev/loadout/llm"
	"github.com/loadout-dev/loadout/llm/anthropic"
)

// sent returns the body of a request.
func sent(t testing.TB, model string, o *anthropic.Options, r *llm.Request) string {
	t.Helper()
	body, err := send(model, o, r)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// keeper keeps the body of a request, and answers nothing.
type keeper struct{ body string }

var errKept = errors.New("kept")

func (k *keeper) RoundTrip(r *http.Request) (*http.Response, error) {
	data, _ := io.ReadAll(r.Body)
	k.body = string(data)
	return nil, errKept
}

func send(model string, o *anthropic.Options, r *llm.Request) (string, error) {
	if o == nil {
		o = &anthropic.Options{}
	}
	k := &keeper{}
	o.Key, o.HTTP = "sk-ant-s3cret", &http.Client{Transport: k}
	m, err := anthropic.New(model, o)
	if err != nil {
		return "", err
	}
	if _, err := llm.Ask(context.Background(), m, r, nil); !errors.Is(err, errKept) {
		return "", err
	}
	return k.body, nil
}

// member is a member of a JSON object in its written form.
func member(t testing.TB, body, name string) string {
	t.Helper()
	var all map[string]json.RawMessage
	if err := json.Unmarshal([]byte(body), &all); err != nil {
		t.Fatal(err)
	}
	return string(all[name])
}

func user(parts ...llm.Part) llm.Message { return llm.Message{Role: llm.User, Parts: parts} }
func assistant(parts ...llm.Part) llm.Message {
	return llm.Message{Role: llm.Assistant, Parts: parts}
}
func notice(text string) llm.Message {
	return llm.Message{Role: llm.Notice, Parts: []llm.Part{llm.Text(text)}}
}

func TestMessages(t *testing.T) {
	call, result := llm.Call{ID: "c1", Name: "look", Arguments: `{"at": 1}`}, llm.Result{Call: "c1", Parts: []llm.Part{llm.Text("seen")}}
	for name, c := range map[string]struct {
		messages []llm.Message
		system   bool // Options.SystemNotices
		want     string
	}{
		"one": {[]llm.Message{user(llm.Text("a"))}, false, `user(text:a)`},
		"roles alternate": {
			[]llm.Message{user(llm.Text("a")), user(llm.Text("b")), assistant(llm.Text("c")), assistant(llm.Text("d")), user(llm.Text("e"))}, false,
			`user(text:a text:b) assistant(text:c text:d) user(text:e)`},
		"results come first": {
			[]llm.Message{user(llm.Text("a")), assistant(llm.Text("b"), call), user(llm.Text("more"), result), user(llm.Text("still more"))}, false,
			`user(text:a) assistant(text:b tool_use:{"at":1}) user(tool_result:seen text:more text:still more)`},
		"nothing is left out": {
			[]llm.Message{user(llm.Text("a")), assistant(llm.Text(" \n")), user(llm.Text(""), llm.Text("b")), assistant(), user()}, false,
			`user(text:a text:b)`},
		"thoughts": {
			[]llm.Message{user(llm.Text("a")), assistant(llm.Thinking{Vendor: "anthropic", Text: "t", Signature: "s"}, llm.Thinking{Vendor: "anthropic", Redacted: "r"}, llm.Text("b")), user(llm.Text("c"))}, false,
			`user(text:a) assistant(thinking:t/s redacted_thinking:r text:b) user(text:c)`},
		"thoughts that would be refused": {
			[]llm.Message{user(llm.Text("a")), assistant(llm.Thinking{Vendor: "openai", Text: "t", Signature: "s"}, llm.Thinking{Vendor: "anthropic", Text: "cut"}), user(llm.Text("c"))}, false,
			`user(text:a text:c)`},
		"thoughts that are not shown": {
			[]llm.Message{user(llm.Text("a")), assistant(llm.Thinking{Vendor: "anthropic", Signature: "s"}, llm.Text("b"))}, false,
			`user(text:a) assistant(thinking:/s text:b)`},
		"arguments": {
			[]llm.Message{user(llm.Text("a")), assistant(llm.Call{ID: "1", Name: "f"}, llm.Call{ID: "2", Name: "f", Arguments: `{"z":1,"a":2.50}`}, llm.Call{ID: "3", Name: "f", Arguments: `{"pa`}, llm.Call{ID: "4", Name: "f", Arguments: `[1]`})}, false,
			`user(text:a) assistant(tool_use:{} tool_use:{"z":1,"a":2.50} tool_use:{"INVALID_JSON":"{\"pa"} tool_use:{"INVALID_JSON":"[1]"})`},
		"a failure says something": {
			[]llm.Message{user(llm.Text("a")), assistant(call), user(llm.Result{Call: "c1", Error: true})}, false,
			`user(text:a) assistant(tool_use:{"at":1}) user(tool_result!:(no error text))`},
		"a result may be empty": {
			[]llm.Message{user(llm.Text("a")), assistant(call), user(llm.Result{Call: "c1", Parts: []llm.Part{llm.Text("")}})}, false,
			`user(text:a) assistant(tool_use:{"at":1}) user(tool_result:)`},
		"images": {
			[]llm.Message{user(llm.Image{MIMEType: "image/png", Data: []byte("x")}, llm.Image{MIMEType: "image/svg+xml", Data: []byte("x")})}, false,
			`user(image:eA== text:[an image of type "image/svg+xml" was omitted: the model accepts JPEG, PNG, GIF and WebP])`},
		"a notice of the user": {
			[]llm.Message{user(llm.Text("a")), assistant(llm.Text("b")), notice("n"), user(llm.Text("c"))}, false,
			"user(text:a) assistant(text:b) user(text:<notice>\nn\n</notice> text:c)"},
		"a notice of the system": {
			[]llm.Message{user(llm.Text("a")), assistant(llm.Text("b")), notice("n"), user(llm.Text("c")), assistant(llm.Text("d"))}, true,
			`user(text:a) assistant(text:b) user(text:c) system(text:n) assistant(text:d)`},
		"a notice after results": {
			[]llm.Message{user(llm.Text("a")), assistant(call), user(result), notice("n"), notice("m")}, true,
			`user(text:a) assistant(tool_use:{"at":1}) user(tool_result:seen) system(text:n text:m)`},
		"a notice before everything": { // the vendor refuses a first message of the system
			[]llm.Message{notice("n"), user(llm.Text("a"))}, true,
			`user(text:a) system(text:n)`},
		"a notice alone": { // and one that does not follow the user's
			[]llm.Message{user(llm.Text("a")), assistant(llm.Text("b")), notice("n")}, true,
			"user(text:a) assistant(text:b) user(text:<notice>\nn\n</notice>)"},
		"a notice before an answer of nothing": { // and one that the user's follows
			[]llm.Message{user(llm.Text("a")), notice("n"), assistant(llm.Text("")), user(llm.Text("b"))}, true,
			`user(text:a text:b) system(text:n)`},
	} {
		t.Run(name, func(t *testing.T) {
			body := sent(t, "claude-opus-5", &anthropic.Options{BaseURL: "http://127.0.0.1:11434", SystemNotices: c.system}, &llm.Request{Messages: c.messages})
			if d := cmp.Diff(c.want, outline(t, body)); d != "" {
				t.Errorf("(-want +got):\n%s\n%s", d, body)
			}
		})
	}
}

// outline tells the messages of a body in short.
func outline(t *testing.T, body string) string {
	t.Helper()
	type block struct {
		Type, Text, Thinking, Signature, Data string
		Input                                 json.RawMessage
		Content                               []struct{ Text string }
		Source                                struct{ Data string }
		Error                                 bool `json:"is_error"`
	}
	var messages []struct {
		Role    string
		Content []block
	}
	if err := json.Unmarshal([]byte(member(t, body, "messages")), &messages); err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, m := range messages {
		var blocks []string
		for _, b := range m.Content {
			text := b.Text + b.Data + string(b.Input) + b.Source.Data
			if b.Type == "thinking" {
				text = b.Thinking + "/" + b.Signature
			}
			for _, c := range b.Content {
				text += c.Text
			}
			if b.Error {
				b.Type += "!"
			}
			blocks = append(blocks, b.Type+":"+text)
		}
		out = append(out, m.Role+"("+strings.Join(blocks, " ")+")")
	}
	return strings.Join(out, " ")
}

func TestForeignCallIDsKeepTheirResults(t *testing.T) {
	body := sent(t, "claude-opus-5", nil, &llm.Request{Messages: []llm.Message{
		user(llm.Text("a")), assistant(llm.Call{ID: "functions.look:0", Name: "look"}), user(llm.Result{Call: "functions.look:0"}),
	}})
	if strings.Count(body, `"functions_look_0"`) != 2 {
		t.Errorf("the IDs do not match, or would be refused: %s", body)
	}
}

// Notices are part of the conversation only for models that support them.
func TestNoticesByModel(t *testing.T) {
	r := &llm.Request{Instructions: "I", Messages: []llm.Message{user(llm.Text("a")), notice("n")}}
	for model, native := range map[string]bool{
		"claude-opus-4-8": true, "claude-opus-5": true, "claude-opus-5-5": true, "claude-sonnet-5-5": true, "claude-haiku-5-5": true,
		"claude-fable-5": true, "claude-mythos-5-1": true, "claude-opus-6": true,
		"claude-opus-4-7": false, "claude-sonnet-5": false, "claude-haiku-4-5-20251001": false, "claude-sonnet-4-20250514": false,
		"claude-mythos-preview": false, "claude-3-7-sonnet-20250219": false, "deepseek-chat": false,
	} {
		body := sent(t, model, nil, r)
		if got := strings.Contains(body, `"role":"system"`); got != native {
			t.Errorf("%s: native %v: %s", model, got, body)
		}
		if !same(t, member(t, body, "system"), `[{"type":"text","text":"I","cache_control":{"type":"ephemeral"}}]`) {
			t.Errorf("%s: the instructions are %s", model, member(t, body, "system"))
		}
	}
	if body := sent(t, "claude-opus-5", &anthropic.Options{BaseURL: "http://127.0.0.1:11434"}, r); strings.Contains(body, `"role":"system"`) {
		t.Errorf("a server that may not take it gets a system message: %s", body)
	}
}

func TestThinkingByModel(t *testing.T) {
	for _, c := range []struct {
		model            string
		tokens, limit    int
		thinking, config string
	}{
		{"claude-sonnet-4-5", 0, 0, ``, ``},
		{"claude-opus-5", 0, 0, ``, ``},
		{"claude-sonnet-4-5", 4000, 8000, `{"budget_tokens":4000,"type":"enabled"}`, ``},
		{"claude-sonnet-4-20250514", 100, 8000, `{"budget_tokens":1024,"type":"enabled"}`, ``},
		{"claude-3-7-sonnet-20250219", 9000, 8000, `{"budget_tokens":6000,"type":"enabled"}`, ``},
		{"claude-sonnet-4-5", 4000, 1000, ``, ``}, // no budget left for thinking
		{"qwen3", 4000, 8000, `{"budget_tokens":4000,"type":"enabled"}`, ``},
		{"claude-opus-4-6", 2000, 8000, `{"display":"summarized","type":"adaptive"}`, `{"effort":"low"}`},
		{"claude-opus-4-8", 8000, 8000, `{"display":"summarized","type":"adaptive"}`, `{"effort":"medium"}`},
		{"claude-haiku-5-5", 32000, 8000, `{"display":"summarized","type":"adaptive"}`, `{"effort":"high"}`},
	} {
		body := sent(t, c.model, nil, &llm.Request{Messages: hello.Messages, Thinking: c.tokens, MaxTokens: c.limit})
		if !same(t, member(t, body, "thinking"), c.thinking) || !same(t, member(t, body, "output_config"), c.config) {
			t.Errorf("%s, %d of %d: %s", c.model, c.tokens, c.limit, body)
		}
		if strings.Contains(body, "temperature") || strings.Contains(body, "top_p") {
			t.Errorf("newer models refuse it: %s", body)
		}
	}
}

// same reports whether two texts are the same JSON, or both nothing.
func same(t *testing.T, a, b string) bool {
	t.Helper()
	if a == "" || b == "" {
		return a == b
	}
	var va, vb any
	if err := errors.Join(json.Unmarshal([]byte(a), &va), json.Unmarshal([]byte(b), &vb)); err != nil {
		t.Fatal(err)
	}
	return reflect.DeepEqual(va, vb)
}

func TestMaxTokens(t *testing.T) {
	for _, c := range []struct{ option, request, want int }{{0, 0, 16384}, {500, 0, 500}, {500, 70, 70}} {
		body := sent(t, "claude-opus-5", &anthropic.Options{MaxTokens: c.option}, &llm.Request{Messages: hello.Messages, MaxTokens: c.request})
		if got := member(t, body, "max_tokens"); got != fmt.Sprint(c.want) {
			t.Errorf("%+v: %s", c, got)
		}
	}
}

func TestSchemasAreSentUnchanged(t *testing.T) {
	const whole = `{"type":"object","$defs":{"z":{"type":"string"},"a":{"$ref":"#/$defs/z"}},"properties":{"p":{"oneOf":[{"$ref":"#/$defs/a"},{"type":"null"}]}},"additionalProperties":false,"required":["p"],"x-more":1.50}`
	for schema, want := range map[string]string{
		whole:              whole,
		"":                 `{"type":"object"}`,
		"{}":               `{"type":"object"}`,
		` { "anyOf":[] } `: `{"type":"object","anyOf":[]}`,
	} {
		body := sent(t, "m", nil, &llm.Request{Messages: hello.Messages, Tools: []llm.Tool{{Name: "t", InputSchema: json.RawMessage(schema)}}})
		if !strings.Contains(body, `"input_schema":`+want) {
			t.Errorf("%q is sent as %s", schema, body)
		}
	}
}

func TestUnsendableRequests(t *testing.T) {
	tool := func(name, schema string) *llm.Request {
		return &llm.Request{Messages: hello.Messages, Tools: []llm.Tool{{Name: name, InputSchema: json.RawMessage(schema)}}}
	}
	for want, r := range map[string]*llm.Request{
		`invalid tool name "read file"`: tool("read file", "{}"),
		`invalid tool name ""`:          tool("", "{}"),
		"tool a: input":                 tool("a", "[]"),
		"tool b: input":                 tool("b", "null"),
		"tool c: input":                 tool("c", "{"),
		"1 to 128 of a-z":               tool(strings.Repeat("x", 129), "{}"),
		"contains no text":              {},
		"conversation contains no text": {Instructions: "I", Messages: []llm.Message{user(llm.Text(" "))}},
	} {
		if _, err := send("m", nil, r); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

func TestLongestToolName(t *testing.T) {
	name := strings.Repeat("x", 128)
	body, err := send("m", nil, &llm.Request{Messages: hello.Messages, Tools: []llm.Tool{{Name: name}}})
	if err != nil || !strings.Contains(body, name) {
		t.Errorf("got %s, %v", body, err)
	}
}

// marks returns the positions of blocks with a cache breakpoint in the prompt, and the
// number of blocks.
func marks(t *testing.T, body string) (at []int, blocks int) {
	t.Helper()
	type marked struct {
		Mark    json.RawMessage `json:"cache_control"`
		Content []marked
	}
	var r struct{ Tools, System, Messages []marked }
	if err := json.Unmarshal([]byte(body), &r); err != nil {
		t.Fatal(err)
	}
	all := append(r.Tools, r.System...)
	for _, m := range r.Messages {
		all = append(all, m.Content...)
	}
	for i, b := range all {
		if b.Mark != nil {
			at = append(at, i)
		}
	}
	return at, len(all)
}

// What one request had kept, the next one finds: it has a mark at the same place, at
// most 4 of them, and one near its own end.
func TestCacheMarksMatchCachedPrefix(t *testing.T) {
	r := &llm.Request{Instructions: "I", Tools: []llm.Tool{{Name: "a"}, {Name: "b"}}, Messages: hello.Messages}
	var before []int
	for step := range 30 {
		body := sent(t, "claude-opus-5", nil, r)
		at, blocks := marks(t, body)
		if len(at) > 4 || at[0] != 2 || at[len(at)-1] < blocks-2 {
			t.Fatalf("step %d: marks at %v of %d blocks", step, at, blocks)
		}
		if before != nil && !slices.Contains(at, before[len(before)-1]) {
			t.Errorf("step %d: marks at %v, and before at %v", step, at, before)
		}
		before = at
		var calls, results []llm.Part
		for i := range step * 3 { // soon more than the 20 blocks that the vendor looks back
			id := fmt.Sprintf("c%d_%d", step, i)
			calls, results = append(calls, llm.Call{ID: id, Name: "a"}), append(results, llm.Result{Call: id})
		}
		r.Messages = append(r.Messages, assistant(append(calls, llm.Text("x"))...), user(append(results, llm.Text("go on"))...), notice("n"))
	}
}

func TestCacheMarkWithoutInstructions(t *testing.T) {
	at, _ := marks(t, sent(t, "m", nil, &llm.Request{Tools: []llm.Tool{{Name: "a"}, {Name: "b"}}, Messages: hello.Messages}))
	if d := cmp.Diff([]int{1, 2}, at); d != "" {
		t.Error(d)
	}
}
