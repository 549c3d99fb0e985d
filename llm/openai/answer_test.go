package openai_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loadout-dev/loadout/llm"
)

const stop = `{"delta":{},"finish_reason":"stop"}`

func TestResponseArrivesInParts(t *testing.T) {
	a, events, err := ask(t, chunks(`{"delta":{"role":"assistant","content":""}}`, `{"delta":{"content":"Hel"}}`, `{"delta":{"content":"lo"}}`, stop))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]llm.Event{llm.TextDelta("Hel"), llm.TextDelta("lo")}, events); diff != "" {
		t.Error(diff)
	}
	if a.Message.Text() != "Hello" || a.Stop != llm.StopEnd || a.Model != "real-model" || a.Message.Role != llm.Assistant {
		t.Errorf("%+v", a)
	}
}

func TestParallelCallsAreSeparated(t *testing.T) {
	fragment := func(s string) string { return `{"delta":{"tool_calls":[` + s + `]}}` }
	const ends = `{"delta":{},"finish_reason":"tool_calls"}`
	for _, c := range []struct {
		name      string
		fragments []string
		want      string
	}{
		{"as they should be", []string{
			fragment(`{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":""}}`), fragment(`{"index":0,"function":{"arguments":"{\"x\":"}}`),
			fragment(`{"index":0,"function":{"arguments":"1}"}}`), fragment(`{"index":1,"id":"b","function":{"name":"g","arguments":"{}"}}`),
		}, `a f {"x":1}; b g {}`},
		{"one after the other and back", []string{
			fragment(`{"index":0,"id":"a","function":{"name":"f","arguments":"{"}}`), fragment(`{"index":1,"id":"b","function":{"name":"g","arguments":"{"}}`),
			fragment(`{"index":0,"function":{"arguments":"}"}}`), fragment(`{"index":1,"function":{"arguments":"}"}}`),
		}, `a f {}; b g {}`},
		{"two in one piece", []string{fragment(`{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}},{"index":1,"id":"b","function":{"name":"g","arguments":"{}"}}`)}, `a f {}; b g {}`},
		{"without index", []string{fragment(`{"id":"a","function":{"name":"f","arguments":"{}"}}`), fragment(`{"id":"b","function":{"name":"g","arguments":"{}"}}`)}, `a f {}; b g {}`},
		{"without index, in pieces", []string{
			fragment(`{"id":"a","function":{"name":"f","arguments":"{\"x\""}}`), fragment(`{"function":{"arguments":":1}"}}`),
			fragment(`{"id":"b","function":{"name":"g","arguments":"{"}}`), fragment(`{"id":"a","function":{"arguments":""}}`), fragment(`{"id":"b","function":{"arguments":"}"}}`),
		}, `a f {"x":1}; b g {}`},
		{"both with index 0", []string{fragment(`{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}`), fragment(`{"index":0,"id":"b","function":{"name":"g","arguments":"{}"}}`)}, `a f {}; b g {}`},
		{"both with index 0 and one tool", []string{fragment(`{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":1}"}}`), fragment(`{"index":0,"id":"b","function":{"name":"f","arguments":"{\"x\":2}"}}`)}, `a f {"x":1}; b f {"x":2}`},
		{"both with index 0 and no id", []string{fragment(`{"index":0,"function":{"name":"f","arguments":"{}"}}`), fragment(`{"index":0,"function":{"name":"g","arguments":"{}"}}`)}, `call_1_0 f {}; call_1_1 g {}`},
		{"without anything, one tool twice", []string{fragment(`{"function":{"name":"f","arguments":"{\"x\":\"}\"}"}}`), fragment(`{"function":{"name":"f","arguments":"{}"}}`)}, `call_1_0 f {"x":"}"}; call_1_1 f {}`},
		{"the name in every piece", []string{
			fragment(`{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":"}}`), fragment(`{"index":0,"id":"a","function":{"name":"f","arguments":"1"}}`),
			fragment(`{"index":0,"function":{"name":"f","arguments":"}"}}`),
		}, `a f {"x":1}`},
		{"the name in every piece, without ids", []string{fragment(`{"index":0,"function":{"name":"f","arguments":"{\"x\":{"}}`), fragment(`{"index":0,"function":{"name":"f","arguments":"}}"}}`), fragment(`{"index":0,"function":{"name":"f","arguments":""}}`)}, `call_1_0 f {"x":{}}`},
		{"an id that changes in each piece", []string{fragment(`{"index":0,"id":"a","function":{"name":"f","arguments":"{"}}`), fragment(`{"index":0,"id":"b","function":{"arguments":"}"}}`)}, `a f {}`},
		{"one id for all", []string{fragment(`{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}},{"index":1,"id":"a","function":{"name":"g","arguments":"{"}}`), fragment(`{"index":1,"id":"a","function":{"arguments":"}"}}`)}, `a f {}; call_1_1 g {}`},
		{"the name after the id", []string{fragment(`{"index":0,"id":"a"}`), fragment(`{"index":0,"function":{"name":"f"}}`), fragment(`{"index":0,"function":{"arguments":"{}"}}`)}, `a f {}`},
		{"arguments that are none", []string{fragment(`{"index":0,"id":"a","function":{"name":"f","arguments":"not JSON"}}`)}, `a f not JSON`},
		{"null for what is missing", []string{fragment(`{"index":0,"id":"a","function":{"name":"f","arguments":null}}`), fragment(`{"index":0,"id":null,"function":{"name":null,"arguments":"{}"}}`)}, `a f {}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, events, err := ask(t, chunks(append(c.fragments, ends)...))
			if err != nil {
				t.Fatal(err)
			}
			if got := calls(a); got != c.want || a.Stop != llm.StopTools {
				t.Errorf("%s, %s; want %s", got, a.Stop, c.want)
			}
			if got := fromDeltas(t, events); got != c.want {
				t.Errorf("told piece by piece: %s; want %s", got, c.want)
			}
		})
	}
}

// fromDeltas puts calls together as a consumer does.
func fromDeltas(t *testing.T, events []llm.Event) string {
	var names, arguments []string
	for _, e := range events {
		d := e.(llm.CallDelta)
		if d.Name != "" {
			if d.Index != len(names) {
				t.Errorf("call %d begins after %d", d.Index, len(names))
			}
			names, arguments = append(names, d.ID+" "+d.Name+" "), append(arguments, "")
		}
		arguments[d.Index] += d.Arguments
	}
	for i := range names {
		names[i] += arguments[i]
	}
	return strings.Join(names, "; ")
}

func TestFinishReasons(t *testing.T) {
	const call = `{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"delete_file","arguments":"{\"path\":\"/tm"}}]}}`
	for _, c := range []struct {
		name   string
		chunks []string
		stop   llm.Stop
		words  string
		calls  int
	}{
		{"done", []string{`{"delta":{"content":"yes"}}`, stop}, llm.StopEnd, "yes", 0},
		{"calls, said to be done", []string{`{"delta":{"tool_calls":[{"id":"a","function":{"name":"f","arguments":"{}"}}]},"finish_reason":"stop"}`}, llm.StopTools, "", 1},
		{"calls, and there are none", []string{`{"delta":{"content":"yes"},"finish_reason":"tool_calls"}`}, llm.StopEnd, "yes", 0},
		{"a limit in the middle of a call", []string{call, `{"delta":{},"finish_reason":"length"}`}, llm.StopLength, "", 0},
		{"filtered", []string{`{"delta":{"content":"Well"}}`, `{"delta":{},"finish_reason":"content_filter"}`}, llm.StopRefuse, "Well", 0},
		{"refused", []string{`{"delta":{"refusal":"I will "}}`, `{"delta":{"refusal":"not."}}`, stop}, llm.StopRefuse, "I will not.", 0},
		{"a reason of its own", []string{`{"delta":{"content":"yes"},"finish_reason":"eos"}`}, llm.StopEnd, "yes", 0},
		{"another choice is none of ours", []string{`{"index":1,"delta":{"content":"no"},"finish_reason":"length"}`, `{"index":0,"delta":{"content":"yes"},"finish_reason":"stop"}`}, llm.StopEnd, "yes", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, _, err := ask(t, chunks(c.chunks...))
			if err != nil {
				t.Fatal(err)
			}
			if a.Stop != c.stop || a.Message.Text() != c.words || len(a.Calls()) != c.calls {
				t.Errorf("%s, %q, %d calls; want %s, %q, %d", a.Stop, a.Message.Text(), len(a.Calls()), c.stop, c.words, c.calls)
			}
		})
	}
}

func TestTruncatedResponseIsAnErrorWithItsText(t *testing.T) {
	const half = `{"delta":{"content":"half"}}`
	const call = `{"delta":{"tool_calls":[{"id":"a","function":{"name":"f","arguments":"{}"}}]}}`
	for _, c := range []struct {
		name   string
		answer http.HandlerFunc
		words  string
		says   string
	}{
		{"the connection breaks", cut(wrapped([]string{half})...), "half", "EOF"},
		{"the connection breaks in a line", cut(append(wrapped([]string{half}), `data: {"choices":[{"del`)...), "half", "interrupted"},
		{"the stream just ends", stream(wrapped([]string{half})...), "half", "[DONE]"},
		{"no [DONE]", stream(wrapped([]string{half, stop})...), "half", "[DONE]"},
		{"no reason", chunks(half), "half", "finish_reason"},
		{"calls and no reason", chunks(half, call), "half", "finish_reason"},
		{"calls and a reason that is not known", chunks(half, call, `{"delta":{},"finish_reason":"insufficient_system_resource"}`), "half", "insufficient_system_resource"},
		{"what is no JSON", chunks(half, `{"delta":`), "half", "parse response chunk"},
		{"an error on the way", stream(append(wrapped([]string{half}), `data: {"error":{"message":"out of memory","type":"server_error","code":null}}`, "data: [DONE]")...), "half", "out of memory"},
		{"an error on the way, by a number", stream(append(wrapped([]string{half}), `data: {"id":"x","error":{"code":502,"message":"upstream is gone"},"choices":[{"delta":{"content":""},"finish_reason":"error"}]}`)...), "half", "502"},
		{"an error on the way, as a text", stream(append(wrapped([]string{half}), `data: {"error":"out of memory"}`)...), "half", "out of memory"},
		{"a call without a name", chunks(half, `{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{}"}}]},"finish_reason":"tool_calls"}`), "half", "has no name"},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, _, err := ask(t, c.answer)
			cut, ok := isCut(err)
			if !ok {
				t.Fatalf("%+v, %v", a, err)
			}
			if got := cut.Answer.Message.Text(); got != c.words || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%q, %v; want %q and %q", got, err, c.words, c.says)
			}
		})
	}
}

// Nothing was shown, so the caller may repeat the request.
func TestEmptyStreamIsNotTruncated(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{
		"nothing at all": stream(), "the end alone": stream("data: [DONE]"), "comments": stream(": wait", ": wait"), "a cut": cut(": wait"), "no JSON": stream("data: <html>"),
	} {
		_, _, err := ask(t, answer)
		if _, ok := isCut(err); ok || err == nil || !strings.Contains(err.Error(), "no answer from") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestServersWithoutDoneMarker(t *testing.T) {
	s := serve(t, stream(wrapped([]string{`{"delta":{"content":"all"}}`, stop})...), stream(wrapped([]string{`{"delta":{"content":"half"}}`})...))
	m := s.model(t, quirks("x", func(q *quirk) { q.NoDone = true }))
	a, err := llm.Ask(t.Context(), m, hello, nil)
	if err != nil || a.Message.Text() != "all" {
		t.Errorf("%+v, %v", a, err)
	}
	if _, err := llm.Ask(t.Context(), m, hello, nil); err == nil {
		t.Error("a stream without a reason is whole")
	}
}

func TestLastUsageWins(t *testing.T) {
	const usage = `"usage":{"prompt_tokens":100,"completion_tokens":`
	for _, c := range []struct {
		name   string
		chunks []string
		want   llm.Usage
	}{
		{"after the end", []string{`{"choices":[{"delta":{"content":"a"},"finish_reason":"stop"}],"usage":null}`, `{"choices":[],` + usage + `7}}`}, llm.Usage{Input: 100, Output: 7}},
		{"with every chunk", []string{`{"choices":[{"delta":{"content":"a"}}],` + usage + `6}}`, `{"choices":[{"delta":{"content":"b"},"finish_reason":"stop"}],` + usage + `7}}`}, llm.Usage{Input: 100, Output: 7}},
		{"with a cache", []string{`{"choices":[{"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":100,"completion_tokens":7,"prompt_tokens_details":{"cached_tokens":60,"cache_write_tokens":30}}}`}, llm.Usage{Input: 10, CacheRead: 60, CacheWrite: 30, Output: 7}},
		{"with DeepSeek's cache", []string{`{"choices":[{"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":100,"completion_tokens":7,"prompt_cache_hit_tokens":64,"prompt_cache_miss_tokens":36}}`}, llm.Usage{Input: 36, CacheRead: 64, Output: 7}},
		{"that contradicts itself", []string{`{"choices":[{"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":10,"completion_tokens":-1,"prompt_tokens_details":{"cached_tokens":60,"cache_write_tokens":30}}}`}, llm.Usage{CacheRead: 10}},
		{"of none", []string{`{"choices":[{"delta":{},"finish_reason":"stop"}]}`}, llm.Usage{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var lines []string
			for _, l := range c.chunks {
				lines = append(lines, "data: "+l)
			}
			a, _, err := ask(t, stream(append(lines, "data: [DONE]")...))
			if err != nil || a.Usage != c.want {
				t.Errorf("%+v, %v; want %+v", a, err, c.want)
			}
		})
	}
}

func TestTextAroundResponseIsDropped(t *testing.T) {
	line := `data: {"id":"%s","choices":[{"delta":{"content":"%s"}}],"error":null}`
	a, _, err := ask(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain") // of a proxy that does not know better
		io.WriteString(w, ": OPENROUTER PROCESSING\n\n:\nevent: message\nid: 1\n")
		fmt.Fprintf(w, line+"\r\n\r\n", "a", "one ")
		fmt.Fprintf(w, line+"\n"+line+"\n", "b", "error ", "c", "three") // ids change, no blank line between
		io.WriteString(w, "data:\n\n: keep alive\n\ndata:{\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]")
	})
	if err != nil || a.Message.Text() != "one error three" {
		t.Errorf("%+v, %v", a, err)
	}
}

func TestThinkingIsSeparated(t *testing.T) {
	for name, field := range map[string]string{
		"reasoning_content": `"reasoning_content":"hm"`, "reasoning": `"reasoning":"hm"`, "both with the same words": `"reasoning_content":"hm","reasoning":"hm"`,
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, chunks(`{"delta":{`+field+`}}`, `{"delta":{"content":"yes"}}`, stop))
			var events []llm.Event
			a, err := llm.Ask(t.Context(), s.model(t, quirks("thinker", nil)), hello, func(e llm.Event) { events = append(events, e) })
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]llm.Part{llm.Thinking{Vendor: "thinker", Text: "hm"}, llm.Text("yes")}, a.Message.Parts); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff([]llm.Event{llm.ThinkingDelta("hm"), llm.TextDelta("yes")}, events); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestResponseLimit(t *testing.T) {
	endless := func(piece string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			for {
				if _, err := io.WriteString(w, piece); err != nil {
					return
				}
			}
		}
	}
	big := strings.Repeat("x", 1<<20)
	for _, c := range []struct {
		name   string
		answer http.HandlerFunc
	}{
		{"a line", endless(big)},
		{"the text", endless(`data: {"choices":[{"delta":{"content":"` + big + `"}}]}` + "\n\n")},
		{"the number of calls", endless(`data: {"choices":[{"delta":{"tool_calls":[{"function":{"name":"f","arguments":"{}"}}]}}]}` + "\n\n")},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, _, err := ask(t, c.answer); err == nil || !strings.Contains(err.Error(), "too long") {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestStreamEndsWithConsumer(t *testing.T) {
	done := make(chan struct{})
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		stream(wrapped([]string{`{"delta":{"content":"one"}}`})...)(w, r)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
		close(done)
	})
	for e, err := range s.model(t, nil).Stream(t.Context(), hello) {
		if e != llm.TextDelta("one") || err != nil {
			t.Fatal(e, err)
		}
		break
	}
	<-done
}

func TestStreamEndsWithContext(t *testing.T) {
	why := errors.New("enough")
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		stream(wrapped([]string{`{"delta":{"content":"one"}}`})...)(w, r)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	ctx, cancel := context.WithCancelCause(t.Context())
	_, err := llm.Ask(ctx, s.model(t, nil), hello, func(llm.Event) { cancel(why) })
	if cut, ok := isCut(err); !ok || !errors.Is(err, why) || cut.Answer.Message.Text() != "one" {
		t.Errorf("in the middle: %v", err)
	}
	if _, err := llm.Ask(ctx, s.model(t, nil), hello, nil); err != why {
		t.Errorf("before the start: %v", err)
	}
}
