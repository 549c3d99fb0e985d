package anthropic_test

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/loadout-dev/loadout/llm"
	"github.com/loadout-dev/loadout/llm/anthropic"
)

func TestNew(t *testing.T) {
	for name, c := range map[string]struct {
		model string
		o     *anthropic.Options
		want  string // of the error
	}{
		"all right":             {"claude-opus-5", &anthropic.Options{Key: "k"}, ""},
		"a server of one's own": {"qwen", &anthropic.Options{BaseURL: "http://127.0.0.1:11434/"}, ""},
		"no model":              {"", &anthropic.Options{Key: "k"}, "missing model name"},
		"no key":                {"claude-opus-5", nil, "ANTHROPIC_API_KEY"},
		"no URL":                {"m", &anthropic.Options{BaseURL: "localhost:11434"}, "invalid base URL"},
		"a file":                {"m", &anthropic.Options{BaseURL: "file:///etc"}, "invalid base URL"},
		"a key in the URL":      {"m", &anthropic.Options{BaseURL: "https://me:s3cret@example.org"}, "example.org must contain only"},
		"a key in the query":    {"m", &anthropic.Options{BaseURL: "https://example.org/?key=s3cret"}, "pass the key separately"},
	} {
		m, err := anthropic.New(c.model, c.o)
		switch {
		case c.want == "" && (err != nil || m.Name() != "anthropic:"+c.model):
			t.Errorf("%s: %v, %v", name, m, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "s3cret")):
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// Users of a process must not use its keys, and servers must not receive them.
func TestEnvironmentIsNotRead(t *testing.T) {
	dir := t.TempDir()
	profile := `{"version":"1","base_url":"http://127.0.0.1:1","authentication":{"type":"api_key","api_key":"env-s3cret"}}`
	for _, name := range []string{"configs/default.json", "default.json", "configs/p.json"} {
		p := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(p), 0o700), os.WriteFile(p, []byte(profile), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	for name, value := range map[string]string{
		"ANTHROPIC_API_KEY": "env-s3cret", "ANTHROPIC_AUTH_TOKEN": "env-s3cret", "ANTHROPIC_BASE_URL": "http://127.0.0.1:1",
		"ANTHROPIC_CUSTOM_HEADERS": "X-Env: env-s3cret", "ANTHROPIC_CONFIG_DIR": dir, "ANTHROPIC_PROFILE": "p",
		"ANTHROPIC_IDENTITY_TOKEN": "env-s3cret", "ANTHROPIC_FEDERATION_RULE_ID": "fdrl_env", "ANTHROPIC_ORGANIZATION_ID": "org-env",
	} {
		t.Setenv(name, value)
	}
	var seen http.Header
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen = r.Header
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, text("hi")+end("end_turn", 1))
	}))
	defer server.Close()
	for key, want := range map[string]string{"": "", "sk-mine": "sk-mine"} {
		m, err := anthropic.New("m", &anthropic.Options{BaseURL: server.URL, Key: key, HTTP: server.Client()})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := llm.Ask(t.Context(), m, hello, nil); err != nil {
			t.Fatal(err)
		}
		if seen.Get("X-Api-Key") != want || seen.Get("Authorization") != "" || seen.Get("X-Env") != "" {
			t.Errorf("with the key %q: %v", key, seen)
		}
		for name, values := range seen {
			if strings.Contains(strings.Join(values, " "), "env") {
				t.Errorf("%s is of the environment: %v", name, values)
			}
		}
	}
	if _, err := anthropic.New("claude-opus-5", nil); err == nil {
		t.Error("the key of the environment is used")
	}
}

func TestRequest(t *testing.T) {
	var got *http.Request
	m := modelAt(t, answers(func(r *http.Request) *http.Response {
		got = r
		return events(strings.NewReader(text("hi") + end("end_turn", 1)))
	}), &anthropic.Options{BaseURL: "https://gateway.example/anthropic/v1/", Headers: map[string]string{"X-Team": "blue"}})
	if _, err := llm.Ask(t.Context(), m, hello, nil); err != nil {
		t.Fatal(err)
	}
	if got.Method != "POST" || got.URL.String() != "https://gateway.example/anthropic/v1/messages" {
		t.Errorf("%s %s", got.Method, got.URL)
	}
	for name, want := range map[string]string{"X-Api-Key": "sk-ant-s3cret", "X-Team": "blue", "Anthropic-Version": "2023-06-01", "Content-Type": "application/json"} {
		if v := got.Header.Get(name); v != want {
			t.Errorf("%s = %q, want %q", name, v, want)
		}
	}
}

// refusal returns a transport that responds with a status, a body and headers.
func refusal(code int, body string, header ...string) http.RoundTripper {
	return answers(func(*http.Request) *http.Response {
		h := http.Header{}
		for i := 0; i < len(header); i += 2 {
			h.Set(header[i], header[i+1])
		}
		return &http.Response{StatusCode: code, Header: h, Body: io.NopCloser(strings.NewReader(body))}
	})
}

func TestRefusals(t *testing.T) {
	said := func(kind, message string) string {
		return `{"type":"error","error":{"type":"` + kind + `","message":"` + message + `"},"request_id":"req_1"}`
	}
	for name, c := range map[string]struct {
		server http.RoundTripper
		kind   string
		want   string
		after  time.Duration
		again  bool
	}{
		"a wrong key":          {refusal(401, said("authentication_error", "invalid x-api-key sk-ant-s3cret")), "authentication_error", "invalid x-api-key •••: the key was rejected: check ANTHROPIC_API_KEY", 0, false},
		"no such model":        {refusal(404, said("not_found_error", "model: claude-opus-55")), "not_found_error", "model: claude-opus-55: check the name of the model", 0, false},
		"too many":             {refusal(429, said("rate_limit_error", "slow down"), "Retry-After", "30"), "rate_limit_error", "slow down", 30 * time.Second, true},
		"too many, in ms":      {refusal(429, said("rate_limit_error", "slow down"), "Retry-After-Ms", "1500"), "rate_limit_error", "slow down", 1500 * time.Millisecond, true},
		"a wait that is none":  {refusal(429, said("rate_limit_error", "slow down"), "Retry-After", "-3"), "rate_limit_error", "slow down", 0, true},
		"overloaded":           {refusal(529, said("overloaded_error", "Overloaded")), "overloaded_error", "Overloaded", 0, true},
		"a page":               {refusal(502, "<html>\n<b>Bad\x1b[2J Gateway</b>sk-ant-s3cret</html>"), "", "<html> <b>Bad [2J Gateway</b>•••</html>", 0, true},
		"nothing":              {refusal(503, ""), "", "Service Unavailable", 0, true},
		"another form":         {refusal(400, `{"error":"no model"}`), "", `{"error":"no model"}`, 0, false},
		"words without end":    {refusal(400, strings.Repeat("x", 1<<20)), "", strings.Repeat("x", 1000) + "…", 0, false},
		"the key at the limit": {refusal(400, strings.Repeat("x", 990)+"sk-ant-s3cret"), "", strings.Repeat("x", 990) + "•••", 0, false},
	} {
		_, err := llm.Ask(t.Context(), modelAt(t, c.server, nil), hello, nil)
		var refused *llm.StatusError
		if !errors.As(err, &refused) {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if refused.Kind != c.kind || !strings.HasPrefix(refused.Message, c.want) || refused.After != c.after || refused.Temporary() != c.again || refused.Vendor != "anthropic" {
			t.Errorf("%s: %+v", name, refused)
		}
		if strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: the key is in the error: %v", name, err)
		}
	}
}

func TestRetryAfterDate(t *testing.T) {
	_, err := llm.Ask(t.Context(), modelAt(t, refusal(429, "", "Retry-After", time.Now().Add(time.Hour).UTC().Format(http.TimeFormat)), nil), hello, nil)
	var refused *llm.StatusError
	if !errors.As(err, &refused) || refused.After < 50*time.Minute || refused.After > time.Hour {
		t.Errorf("got %+v", refused)
	}
}

// A redirect would take the key and the conversation to another host.
func TestRedirectsAreNotFollowed(t *testing.T) {
	reached := false
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached = true }))
	defer other.Close()
	server := httptest.NewServer(http.RedirectHandler(other.URL, http.StatusTemporaryRedirect))
	defer server.Close()
	m, err := anthropic.New("m", &anthropic.Options{BaseURL: server.URL, Key: "sk-ant-s3cret", HTTP: server.Client()})
	if err != nil {
		t.Fatal(err)
	}
	_, err = llm.Ask(t.Context(), m, hello, nil)
	if err == nil || reached || !strings.Contains(err.Error(), "redirects are not followed") {
		t.Errorf("reached %v, %v", reached, err)
	}
}

// refuser is a transport that fails with its text.
type refuser string

func (r refuser) RoundTrip(*http.Request) (*http.Response, error) { return nil, errors.New(string(r)) }

func TestSecretsAreInNoErrorOrLog(t *testing.T) {
	var log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	headers := func() map[string]string { return map[string]string{"Authorization": "Bearer gate-s3cret"} }
	for name, transport := range map[string]http.RoundTripper{
		"transport": refuser("proxy refused sk-ant-s3cret and gate-s3cret"),
		"refusal":   refusal(403, "Bearer gate-s3cret, sk-ant-s3cret"),
		"event": answers(func(*http.Request) *http.Response {
			return events(strings.NewReader(text("hi") + stream(`{"type":"error","error":{"type":"gate-s3cret","message":"sk-ant-s3cret"}}`)))
		}),
		"answer": answers(func(*http.Request) *http.Response { return events(strings.NewReader(text("hi") + end("end_turn", 1))) }),
	} {
		m := modelAt(t, transport, &anthropic.Options{Logger: logger, Headers: headers()})
		if _, err := llm.Ask(t.Context(), m, hello, nil); err != nil && strings.Contains(err.Error(), "s3cret") || err == nil != (name == "answer") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if !strings.Contains(log.String(), "a model answered") || strings.Contains(log.String(), "s3cret") || strings.Contains(log.String(), "Hello") {
		t.Errorf("logged: %s", log.String())
	}
}
