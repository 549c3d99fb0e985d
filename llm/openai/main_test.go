package openai_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/loadout-dev/loadout/llm"
	"github.com/loadout-dev/loadout/llm/openai"
)

func TestMain(m *testing.M) {
	// What a process has for itself must reach no model.
	for name, value := range map[string]string{
		"OPENAI_API_KEY": "sk-environment", "OPENAI_ADMIN_KEY": "sk-admin", "OPENAI_BASE_URL": "http://127.0.0.1:1/environment",
		"OPENAI_ORG_ID": "org-environment", "OPENAI_PROJECT_ID": "project-environment", "OPENAI_CUSTOM_HEADERS": "X-Environment: environment",
	} {
		os.Setenv(name, value)
	}
	goleak.VerifyTestMain(m)
}

// server answers each request with the next response, repeats the last one, and records
// the requests.
type server struct {
	*httptest.Server
	answers []http.HandlerFunc

	mu      sync.Mutex
	headers []http.Header
	bodies  [][]byte
}

func serve(t *testing.T, answers ...http.HandlerFunc) *server {
	s := &server{answers: answers}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || r.Method != http.MethodPost || r.URL.Path != "/v1/chat/completions" {
			t.Errorf("%s %s: %v", r.Method, r.URL, err)
		}
		s.mu.Lock()
		n := len(s.bodies)
		s.headers, s.bodies = append(s.headers, r.Header), append(s.bodies, body)
		s.mu.Unlock()
		s.answers[min(n, len(s.answers)-1)](w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *server) sent(i int) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bodies[i]
}

func (s *server) header(i int) http.Header {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.headers[i]
}

func (s *server) requests() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.bodies)
}

// model is a model at the server, with the quirks given.
func (s *server) model(t *testing.T, q *openai.Quirks) llm.Model {
	return newModel(t, "some-model", &openai.Options{Key: "sk-given", BaseURL: s.URL + "/v1", HTTP: s.Client(), Quirks: q})
}

func newModel(t *testing.T, name string, opts *openai.Options) llm.Model {
	t.Helper()
	m, err := openai.New(name, opts)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// stream answers with these lines, each followed by a blank one.
func stream(lines ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for _, l := range lines {
			io.WriteString(w, l+"\n\n")
		}
	}
}

// chunks answers with chunks of one choice and then as it should be done.
func chunks(choices ...string) http.HandlerFunc {
	return stream(append(wrapped(choices), "data: [DONE]")...)
}

func wrapped(choices []string) []string {
	var out []string
	for _, c := range choices {
		out = append(out, `data: {"id":"x","model":"real-model","choices":[`+c+`]}`)
	}
	return out
}

// cut answers with lines, and breaks the connection.
func cut(lines ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		stream(lines...)(w, r)
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}
}

func refuse(code int, kind, body string, header ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		for i := 0; i < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(code)
		io.WriteString(w, body)
	}
}

var hello = &llm.Request{Messages: []llm.Message{{Role: llm.User, Parts: []llm.Part{llm.Text("hello")}}}}

func ask(t *testing.T, answer http.HandlerFunc) (*llm.Answer, []llm.Event, error) {
	t.Helper()
	s := serve(t, answer)
	var events []llm.Event
	a, err := llm.Ask(t.Context(), s.model(t, nil), hello, func(e llm.Event) { events = append(events, e) })
	return a, events, err
}

func calls(a *llm.Answer) string {
	var out []string
	for _, c := range a.Calls() {
		out = append(out, c.ID+" "+c.Name+" "+c.Arguments)
	}
	return strings.Join(out, "; ")
}

func asJSON(t *testing.T, b []byte) map[string]any {
	t.Helper()
	var v map[string]any
	if err := json.Unmarshal(b, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// rendered is the body of one request.
func rendered(t *testing.T, name string, q *openai.Quirks, r *llm.Request) []byte {
	t.Helper()
	s := serve(t, chunks(`{"delta":{"content":"ok"},"finish_reason":"stop"}`))
	m := newModel(t, name, &openai.Options{BaseURL: s.URL + "/v1", HTTP: s.Client(), Quirks: q})
	if _, err := llm.Ask(context.Background(), m, r, nil); err != nil {
		t.Fatal(err)
	}
	return s.sent(0)
}

func isCut(err error) (*llm.CutError, bool) { return errors.AsType[*llm.CutError](err) }
