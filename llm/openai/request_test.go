package openai_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loadout-dev/loadout/llm"
	"github.com/loadout-dev/loadout/llm/openai"
)

type quirk = openai.Quirks

func quirks(vendor string, change func(*quirk)) *quirk {
	q := &quirk{Vendor: vendor}
	if change != nil {
		change(q)
	}
	return q
}

func user(parts ...llm.Part) llm.Message { return llm.Message{Role: llm.User, Parts: parts} }
func says(parts ...llm.Part) llm.Message { return llm.Message{Role: llm.Assistant, Parts: parts} }
func notice(text string) llm.Message {
	return llm.Message{Role: llm.Notice, Parts: []llm.Part{llm.Text(text)}}
}

var (
	searches = llm.Call{ID: "a", Name: "search", Arguments: `{"q":"x<y"}`}
	found    = llm.Result{Call: "a", Parts: []llm.Part{llm.Text("three")}}
	picture  = llm.Image{MIMEType: "image/png", Data: []byte{1, 2}}
)

func TestMessageFormat(t *testing.T) {
	const toolCall = `{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"search","arguments":"{\"q\":\"x<y\"}"}}]}`
	thinking := llm.Thinking{Vendor: "v", Text: "hm"}
	for _, c := range []struct {
		name   string
		change func(*quirk)
		have   []llm.Message
		want   string
	}{
		{"words", nil, []llm.Message{user(llm.Text("a"), llm.Text("b")), says(llm.Text("c")), user(llm.Text("d"))},
			`[{"role":"system","content":"Be kind."},{"role":"user","content":"ab"},{"role":"assistant","content":"c"},{"role":"user","content":"d"}]`},
		{"an image", nil, []llm.Message{user(llm.Text("look"), picture)},
			`[{"role":"system","content":"Be kind."},{"role":"user","content":[{"type":"text","text":"look"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AQI="}}]}]`},
		{"a call and its result", nil, []llm.Message{user(llm.Text("a")), says(searches), user(found)},
			`[{"role":"system","content":"Be kind."},{"role":"user","content":"a"},` + toolCall + `,{"role":"tool","content":"three","tool_call_id":"a"}]`},
		{"a result that failed, with more words of the person", nil, []llm.Message{says(searches), user(llm.Text("and"), llm.Result{Call: "a", Error: true, Parts: []llm.Part{llm.Text("no")}})},
			`[{"role":"system","content":"Be kind."},` + toolCall + `,{"role":"tool","content":"Error: no","tool_call_id":"a"},{"role":"user","content":"and"}]`},
		{"a result with an image", nil, []llm.Message{says(searches), user(llm.Result{Call: "a", Parts: []llm.Part{llm.Text("see"), picture}})},
			`[{"role":"system","content":"Be kind."},` + toolCall + `,{"role":"tool","content":"see\n(Its images follow in the next message.)","tool_call_id":"a"},` +
				`{"role":"user","content":[{"type":"text","text":"Images of the result of call a:"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AQI="}}]}]`},
		{"a call that nobody made", nil, []llm.Message{says(searches), user(llm.Text("never mind"))},
			`[{"role":"system","content":"Be kind."},` + toolCall + `,{"role":"tool","content":"Error: this call was not made.","tool_call_id":"a"},{"role":"user","content":"never mind"}]`},
		{"arguments that are no object", nil, []llm.Message{says(llm.Call{ID: "a", Name: "f", Arguments: `{"x":`}, llm.Call{ID: "b", Name: "g"}, llm.Call{ID: "c", Name: "h", Arguments: "null"}), user(found, llm.Result{Call: "b"}, llm.Result{Call: "c"})},
			`[{"role":"system","content":"Be kind."},{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}},{"id":"b","type":"function","function":{"name":"g","arguments":"{}"}},{"id":"c","type":"function","function":{"name":"h","arguments":"{}"}}]},` +
				`{"role":"tool","content":"three","tool_call_id":"a"},{"role":"tool","content":"","tool_call_id":"b"},{"role":"tool","content":"","tool_call_id":"c"}]`},
		{"a notice where it was said", nil, []llm.Message{user(llm.Text("a")), notice("now this"), user(llm.Text("b"))},
			`[{"role":"system","content":"Be kind."},{"role":"user","content":"a"},{"role":"system","content":"now this"},{"role":"user","content":"b"}]`},
		{"a notice between a call and its result waits", nil, []llm.Message{says(searches), notice("now this"), user(found)},
			`[{"role":"system","content":"Be kind."},` + toolCall + `,{"role":"tool","content":"three","tool_call_id":"a"},{"role":"system","content":"now this"}]`},
		{"all notices first, where a server demands it", func(q *quirk) { q.SystemFirst = true },
			[]llm.Message{user(llm.Text("a")), notice("now this"), user(llm.Text("b")), notice("and this")},
			`[{"role":"system","content":"Be kind.\n\nnow this\n\nand this"},{"role":"user","content":"a"},{"role":"user","content":"b"}]`},
		{"thoughts stay here", nil, []llm.Message{says(thinking, searches), user(found)},
			`[{"role":"system","content":"Be kind."},` + toolCall + `,{"role":"tool","content":"three","tool_call_id":"a"}]`},
		{"thoughts go back, where a server demands it", func(q *quirk) { q.Replay = true },
			[]llm.Message{says(thinking, llm.Text("Well.")), user(llm.Text("b")), says(thinking, searches), user(found)},
			`[{"role":"system","content":"Be kind."},{"role":"assistant","content":"Well.","reasoning_content":"hm"},{"role":"user","content":"b"},` +
				`{"role":"assistant","content":null,"reasoning_content":"hm","tool_calls":[{"id":"a","type":"function","function":{"name":"search","arguments":"{\"q\":\"x<y\"}"}}]},{"role":"tool","content":"three","tool_call_id":"a"}]`},
		{"thoughts go back even when there were none, and another's never", func(q *quirk) { q.Replay = true },
			[]llm.Message{says(llm.Thinking{Vendor: "other", Text: "secret"}, searches), user(found)},
			`[{"role":"system","content":"Be kind."},{"role":"assistant","content":null,"reasoning_content":"","tool_calls":[{"id":"a","type":"function","function":{"name":"search","arguments":"{\"q\":\"x<y\"}"}}]},{"role":"tool","content":"three","tool_call_id":"a"}]`},
	} {
		t.Run(c.name, func(t *testing.T) {
			body := rendered(t, "m", quirks("v", c.change), &llm.Request{Instructions: "Be kind.", Messages: c.have})
			var sent struct{ Messages json.RawMessage }
			if err := json.Unmarshal(body, &sent); err != nil {
				t.Fatal(err)
			}
			if string(sent.Messages) != c.want {
				t.Errorf("\n%s; want\n%s", sent.Messages, c.want)
			}
		})
	}
}

// Each request begins with the previous one, so that caches match.
func TestRequestsExtendThePrevious(t *testing.T) {
	all := []llm.Message{
		user(llm.Text("a"), picture), notice("n1"), says(llm.Thinking{Vendor: "v", Text: "hm"}, searches, llm.Call{ID: "b", Name: "f", Arguments: "{"}),
		notice("n2"), user(found, llm.Result{Call: "b", Parts: []llm.Part{picture}}), says(llm.Text("done")), notice("n3"), user(llm.Text("b")), says(searches), user(llm.Text("no")),
	}
	for _, q := range []*quirk{quirks("v", nil), quirks("v", func(q *quirk) { q.Replay = true })} {
		var before []byte
		for n := range all {
			if all[n].Role != llm.User {
				continue // not asked then
			}
			body := rendered(t, "m", q, &llm.Request{Instructions: "i", Tools: []llm.Tool{{Name: "search"}}, Messages: all[:n+1]})
			if !bytes.HasPrefix(body, bytes.TrimSuffix(before, []byte("]}"))) {
				t.Errorf("after message %d:\n%s\ndoes not begin with\n%s", n, body, before)
			}
			before = body
		}
	}
}

func TestParameterFormat(t *testing.T) {
	for _, c := range []struct {
		name       string
		model, url string
		ask        llm.Request
		want       map[string]any // nil means absent
	}{
		{"OpenAI", "gpt", "https://api.openai.com/v1", llm.Request{MaxTokens: 10, Thinking: 1024}, map[string]any{"max_completion_tokens": 10.0, "max_tokens": nil, "reasoning_effort": "low", "thinking": nil}},
		{"OpenAI without thinking", "gpt", "https://api.openai.com/v1", llm.Request{}, map[string]any{"max_completion_tokens": 7.0, "reasoning_effort": nil}},
		{"Azure", "gpt", "https://us.openai.azure.com/openai/v1", llm.Request{MaxTokens: 10}, map[string]any{"max_completion_tokens": 10.0, "max_tokens": nil}},
		{"DeepSeek", "deepseek-v4", "https://api.deepseek.com", llm.Request{MaxTokens: 10}, map[string]any{"max_tokens": 10.0, "max_completion_tokens": nil, "thinking": map[string]any{"type": "disabled"}}},
		{"DeepSeek, thinking", "deepseek-v4", "https://api.deepseek.com", llm.Request{Thinking: 5000}, map[string]any{"thinking": map[string]any{"type": "enabled"}, "reasoning_effort": nil}},
		{"OpenRouter", "x/y", "https://openrouter.ai/api/v1", llm.Request{MaxTokens: 10, Thinking: 5000}, map[string]any{"max_completion_tokens": 10.0, "reasoning_effort": "medium"}},
		{"Ollama", "m", "http://127.0.0.1:11434/v1", llm.Request{MaxTokens: 10, Thinking: 50000}, map[string]any{"max_tokens": 10.0, "reasoning_effort": "high"}},
		{"a server that is not known", "m", "http://gpu.example:8000/v1", llm.Request{MaxTokens: 10, Thinking: 5000}, map[string]any{"max_tokens": 10.0, "reasoning_effort": nil, "thinking": nil}},
	} {
		t.Run(c.name, func(t *testing.T) {
			q := openai.QuirksOf(c.url, c.model)
			s := serve(t, chunks(stop))
			m := newModel(t, c.model, &openai.Options{BaseURL: s.URL + "/v1", HTTP: s.Client(), MaxTokens: 7, Quirks: &q})
			if _, err := llm.Ask(t.Context(), m, &c.ask, nil); err != nil {
				t.Fatal(err)
			}
			sent := asJSON(t, s.sent(0))
			for name, want := range c.want {
				if diff := cmp.Diff(want, sent[name]); diff != "" {
					t.Errorf("%s: %s", name, diff)
				}
			}
			if sent["stream"] != true || !cmp.Equal(sent["stream_options"], map[string]any{"include_usage": true}) || sent["model"] != c.model {
				t.Errorf("%v", sent)
			}
		})
	}
	if sent := asJSON(t, rendered(t, "m", quirks("v", func(q *quirk) { q.NoUsage = true }), hello)); sent["stream_options"] != nil {
		t.Errorf("%v", sent)
	}
}

func TestQuirksDependOnHostAndModel(t *testing.T) {
	for _, c := range []struct {
		url, model string
		vendor     string
		first      bool
		replay     bool
	}{
		{"https://api.openai.com/v1", "gpt", "openai", false, false},
		{"https://API.DEEPSEEK.COM:443/v1", "deepseek-v4", "deepseek", false, true},
		{"https://openrouter.ai/api/v1", "deepseek/deepseek-v4", "openrouter", false, true},
		{"https://openrouter.ai/api/v1", "qwen/qwen3.5", "openrouter", false, false},
		{"https://dashscope.aliyuncs.com/compatible-mode/v1", "qwen-max", "dashscope", false, false},
		{"https://api.groq.com/openai/v1", "deepseek-r1-distill", "groq", false, false},
		{"https://api.together.xyz/v1", "m", "together", false, false},
		{"https://api.mistral.ai/v1", "m", "mistral", false, false},
		{"http://localhost:11434/v1", "qwen3.5:9b", "ollama", true, false},
		{"http://[::1]:1234/v1", "lmstudio-community/Qwen3.5", "lmstudio", true, false},
		{"http://gpu.example:8000/v1", "Qwen/Qwen3.5-27B", "gpu.example-8000", true, false},
		{"http://gpu.example:8000/v1", "deepseek-ai/DeepSeek-V4", "gpu.example-8000", false, true},
		{"https://notapi.openai.com.example/v1", "gpt", "notapi.openai.com.example", false, false},
	} {
		q := openai.QuirksOf(c.url, c.model)
		if q.Vendor != c.vendor || q.SystemFirst != c.first || q.Replay != c.replay {
			t.Errorf("%s at %s: %+v; want %+v", c.model, c.url, q, c)
		}
	}
}

func TestSchemasAreSentUnchanged(t *testing.T) {
	const schema = `{"type":"object","$defs":{"n":{"type":"integer","maximum":12345678901234567890}},"properties":{"z":{"$ref":"#/$defs/n"},"a":{"oneOf":[{"type":"string"},{"type":"null"}]}},"required":[],"additionalProperties":false}`
	body := rendered(t, "m", nil, &llm.Request{Messages: hello.Messages, Tools: []llm.Tool{
		{Name: "f", Description: "does <this>", InputSchema: json.RawMessage(schema)}, {Name: "g"},
	}})
	want := `"tools":[{"type":"function","function":{"name":"f","description":"does <this>","parameters":` + schema + `}},{"type":"function","function":{"name":"g","parameters":{"type":"object","properties":{}}}}]`
	if !bytes.Contains(body, []byte(want)) {
		t.Errorf("%s\nis without\n%s", body, want)
	}
	_, err := llm.Ask(t.Context(), newModel(t, "m", nil), &llm.Request{Tools: []llm.Tool{{Name: "f", InputSchema: json.RawMessage("{")}}}, nil)
	if err == nil || err.Error() != "input schema of tool f is not JSON" {
		t.Errorf("%v", err)
	}
}
