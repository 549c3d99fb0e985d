package openai_test

import (
	"errors"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/loadout-dev/loadout/llm"
	"github.com/loadout-dev/loadout/llm/openai"
)

func TestEnvironmentIsNotSent(t *testing.T) {
	s := serve(t, chunks(stop))
	for _, key := range []string{"sk-given", ""} {
		m := newModel(t, "m", &openai.Options{Key: key, BaseURL: s.URL + "/v1/", HTTP: s.Client()})
		if _, err := llm.Ask(t.Context(), m, hello, nil); err != nil {
			t.Fatal(err)
		}
	}
	for i, want := range []string{"Bearer sk-given", ""} {
		if got := s.header(i).Get("Authorization"); got != want {
			t.Errorf("key %q; want %q", got, want)
		}
		for name, values := range s.header(i) {
			if strings.Contains(strings.Join(values, " "), "environment") || strings.HasPrefix(name, "Openai-") {
				t.Errorf("%s: %s is sent", name, values)
			}
		}
	}
}

func TestRefusalsAreReported(t *testing.T) {
	for _, c := range []struct {
		name   string
		answer http.HandlerFunc
		want   llm.StatusError
		again  bool
	}{
		{"a wrong key, which is repeated", refuse(401, "application/json", `{"error":{"message":"Incorrect API key provided: sk-given.","type":"invalid_request_error","code":"invalid_api_key"}}`),
			llm.StatusError{Code: 401, Kind: "invalid_request_error", Message: "Incorrect API key provided: [key]."}, false},
		{"too much", refuse(429, "application/json", `{"error":{"message":"slow down","type":"rate_limit_exceeded"}}`, "Retry-After", "2.5"),
			llm.StatusError{Code: 429, Kind: "rate_limit_exceeded", Message: "slow down", After: 2500 * time.Millisecond}, true},
		{"too much, in milliseconds and for ever", refuse(429, "application/json", `{"error":{"message":"slow down","type":null,"code":"quota"}}`, "Retry-After-Ms", "1e300"),
			llm.StatusError{Code: 429, Kind: "quota", Message: "slow down", After: 24 * time.Hour}, true},
		{"zero is no time", refuse(503, "application/json", `{"error":"busy"}`, "Retry-After", "0"), llm.StatusError{Code: 503, Message: "busy"}, true},
		{"vLLM", refuse(400, "application/json", `{"object":"error","message":"System message must be at the beginning.","type":"BadRequestError","param":null,"code":400}`),
			llm.StatusError{Code: 400, Kind: "BadRequestError", Message: "System message must be at the beginning."}, false},
		{"a page", refuse(502, "text/html; charset=utf-8", "<html><h1>Bad gateway</h1>"), llm.StatusError{Code: 502, Message: "response is a web page; check the base URL, which usually ends in /v1"}, true},
		{"a page that looks fine", refuse(200, "text/html", "<html>Welcome"), llm.StatusError{Code: 200, Message: "response is a web page; check the base URL, which usually ends in /v1"}, false},
		{"plain words", refuse(404, "text/plain", "404 page\nnot found"), llm.StatusError{Code: 404, Message: "404 page not found"}, false},
		{"no words", refuse(500, "application/json", ""), llm.StatusError{Code: 500, Message: "no reason given"}, true},
		{"many words", refuse(500, "text/plain", strings.Repeat("é", 1<<20)), llm.StatusError{Code: 500, Message: strings.Repeat("é", 500) + "…"}, true},
		{"an error that is called fine", refuse(200, "application/json", `{"error":{"message":"no such model","code":404}}`), llm.StatusError{Code: 404, Message: "no such model"}, false},
		{"no stream", refuse(200, "application/json", `{"choices":[{"message":{"content":"hi"}}]}`), llm.StatusError{Code: 200, Message: "response is not a stream"}, false},
		{"an error as the first of a stream", stream(`data: {"error":{"message":"the engine is overloaded, sk-given","type":"server_error"}}`), llm.StatusError{Code: 500, Kind: "server_error", Message: "the engine is overloaded, [key]"}, true},
		{"an answer that is somewhere else", refuse(304, "text/plain", ""), llm.StatusError{Code: 304, Message: "no reason given"}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := serve(t, c.answer)
			_, err := llm.Ask(t.Context(), s.model(t, quirks("v", nil)), hello, nil)
			got, ok := errors.AsType[*llm.StatusError](err)
			if !ok {
				t.Fatal(err)
			}
			c.want.Vendor = "v"
			if diff := cmp.Diff(&c.want, got); diff != "" || got.Temporary() != c.again {
				t.Errorf("%s again: %t", diff, got.Temporary())
			}
			if strings.Contains(err.Error(), "sk-given") {
				t.Errorf("the key is in %q", err)
			}
			if n := s.requests(); n != 1 {
				t.Errorf("%d requests: what may have been answered was sent again", n)
			}
		})
	}
}

func TestKeyIsSentToItsServerOnly(t *testing.T) {
	other := serve(t, chunks(stop))
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL+"/v1/chat/completions", http.StatusTemporaryRedirect)
	})
	if _, err := llm.Ask(t.Context(), s.model(t, nil), hello, nil); err == nil || other.requests() > 0 {
		t.Errorf("%v, and %d requests went elsewhere", err, other.requests())
	}
}

func TestUnreachableServer(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	m := newModel(t, "m", &openai.Options{Key: "sk-given", BaseURL: "http://" + l.Addr().String() + "/v1", HTTP: &http.Client{Transport: &http.Transport{}}})
	_, err = llm.Ask(t.Context(), m, hello, nil)
	if err == nil || !strings.Contains(err.Error(), "connect to") || strings.Contains(err.Error(), "sk-given") {
		t.Errorf("%v", err)
	}
}

func TestNewRefusesInvalidOptions(t *testing.T) {
	for _, c := range []struct {
		model string
		opts  openai.Options
		says  string
	}{
		{"", openai.Options{}, "missing model name"},
		{"m", openai.Options{BaseURL: "localhost:11434"}, "unsupported base URL"},
		{"m", openai.Options{BaseURL: "https://me:secret@example.com/v1"}, "contains a user name or password"},
		{"m", openai.Options{BaseURL: "https://example.com/v1?api-version=1"}, "query"},
		{"m", openai.Options{BaseURL: "https://me:secret@exa mple.com/v1"}, "invalid base URL"},
		{"m", openai.Options{Quirks: &openai.Quirks{}}, "without a colon"},
	} {
		_, err := openai.New(c.model, &c.opts)
		if err == nil || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%+v: %v; want %q", c, err, c.says)
		}
	}
	if name := newModel(t, "gpt-x", nil).Name(); name != "openai:gpt-x" {
		t.Error(name)
	}
}
