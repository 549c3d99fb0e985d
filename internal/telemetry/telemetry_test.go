package telemetry_test

import (
	"compress/gzip"
	"context"
	"errors"
	"io"
	"iter"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/protobuf/proto"

	pb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/loadout-dev/loadout/internal/telemetry"
	"github.com/loadout-dev/loadout/llm"
	"github.com/loadout-dev/loadout/session"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// receiver is an OTLP receiver over HTTP that stores the spans it gets.
type receiver struct {
	*httptest.Server
	mu       sync.Mutex
	spans    []*pb.Span
	resource map[string]string // its attributes
	broken   bool
}

func startReceiver(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{resource: map[string]string{}}
	r.Server = httptest.NewServer(http.HandlerFunc(r.serveTraces))
	t.Cleanup(r.Close)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", r.URL)
	return r
}

func (r *receiver) serveTraces(w http.ResponseWriter, req *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	in := io.Reader(req.Body)
	if req.Header.Get("Content-Encoding") == "gzip" {
		in, _ = gzip.NewReader(in)
	}
	data, err := io.ReadAll(in)
	var m pb.TracesData // the wire form of ExportTraceServiceRequest
	if err != nil || r.broken || req.URL.Path != "/v1/traces" || proto.Unmarshal(data, &m) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	for _, rs := range m.ResourceSpans {
		for _, a := range rs.Resource.Attributes {
			r.resource[a.Key] = a.Value.GetStringValue()
		}
		for _, ss := range rs.ScopeSpans {
			r.spans = append(r.spans, ss.Spans...)
		}
	}
}

func (r *receiver) span(t *testing.T, name string) *pb.Span {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	var names []string
	for _, s := range r.spans {
		if s.Name == name {
			return s
		}
		names = append(names, s.Name)
	}
	t.Fatalf("no span %q, got %q", name, names)
	return nil
}

func attributes(s *pb.Span) map[string]string {
	out := map[string]string{}
	for _, a := range s.Attributes {
		out[a.Key] = strings.Trim(strings.TrimPrefix(a.Value.String(), "string_value:"), `"`)
	}
	return out
}

func wantAttributes(t *testing.T, s *pb.Span, want map[string]string) {
	t.Helper()
	got := attributes(s)
	for name, v := range want {
		if got[name] != v {
			t.Errorf("span %q has %s %q, want %q", s.Name, name, got[name], v)
		}
	}
}

func fakeEnv(vars map[string]string) func(string) string {
	return func(name string) string { return vars[name] }
}

func TestEnabled(t *testing.T) {
	const at = "http://127.0.0.1:4318"
	for _, tt := range []struct {
		vars map[string]string
		want bool
	}{
		{nil, false},
		{map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": at}, true},
		{map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": at}, true},
		{map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": at, "OTEL_SDK_DISABLED": "true"}, false},
		{map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": at, "OTEL_TRACES_EXPORTER": "none"}, false},
	} {
		if got := telemetry.Enabled(fakeEnv(tt.vars)); got != tt.want {
			t.Errorf("with %v: %t, want %t", tt.vars, got, tt.want)
		}
	}
}

func TestUnsupportedProtocolIsRefused(t *testing.T) {
	_, err := telemetry.Start(t.Context(), fakeEnv(map[string]string{"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}), telemetry.Options{})
	if err == nil || !strings.Contains(err.Error(), "http/protobuf") {
		t.Errorf("the error is %v", err)
	}
}

func TestNilTracer(t *testing.T) {
	var none *telemetry.Tracer
	ctx, end := none.StartRequest(t.Context(), "GET", http.Header{})
	end("GET /x", 200)
	turn, watch := none.StartTurn(ctx, "c", "")
	watch.Step(&session.Event{})
	watch.End("done", false)
	if turn != t.Context() || none.Close(turn) != nil || none.TraceModel(fakeModel{}) != llm.Model(fakeModel{}) {
		t.Error("a nil tracer does something")
	}
}

func TestRequest(t *testing.T) {
	r := startReceiver(t)
	tracer := start(t, nil)
	const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	_, end := tracer.StartRequest(t.Context(), "GET", http.Header{"Traceparent": {parent}})
	end("GET /api/v1/skills/{id}", 503)
	_, end = tracer.StartRequest(t.Context(), "POST", nil)
	end("/", 404)
	stop(t, tracer)
	s := r.span(t, "GET /api/v1/skills/{id}")
	wantAttributes(t, s, map[string]string{"http.route": "/api/v1/skills/{id}", "http.response.status_code": "int_value:503"})
	if s.Kind != pb.Span_SPAN_KIND_SERVER || s.Status.Code != pb.Status_STATUS_CODE_ERROR || !strings.Contains(parent, formatHex(s.TraceId)) {
		t.Errorf("the span is %v", s)
	}
	if s := r.span(t, "POST"); attributes(s)["http.route"] != "" || s.Status.GetCode() == pb.Status_STATUS_CODE_ERROR {
		t.Errorf("the span of an unrouted request is %v", s)
	}
	if r.resource["service.name"] != "loadout" || r.resource["service.version"] != "1.2" || r.resource["service.instance.id"] != "n1" {
		t.Errorf("resource attributes are %v", r.resource)
	}
}

func formatHex(b []byte) string {
	const digits = "0123456789abcdef"
	var out strings.Builder
	for _, c := range b {
		out.WriteByte(digits[c>>4])
		out.WriteByte(digits[c&15])
	}
	return out.String()
}

// A turn contains the spans of its model requests, tool calls and loads, and no content.
func TestTurn(t *testing.T) {
	r := startReceiver(t)
	tracer := start(t, nil)
	ctx, turn := tracer.StartTurn(t.Context(), "c1", "Bot/public/helper")
	model := tracer.TraceModel(fakeModel{})
	for range model.Stream(ctx, &llm.Request{}) {
	}
	start := time.Now()
	for i, e := range []session.Event{
		{Message: &session.Message{Text: "hidden words", Calls: []llm.Call{{ID: "1", Name: "load_skill", Arguments: "hidden"}, {ID: "2", Name: "call_tool"}, {ID: "3", Name: "read"}}}},
		{CallStarted: &session.CallStart{Call: "1"}},
		{Loaded: &session.SkillLoad{Skill: session.ID{Name: "pdf", Origin: "public"}, Digest: "sha256:1", Version: "1.2", Text: "hidden"}},
		{Result: &session.CallResult{Call: "1", Text: "hidden"}},
		{Result: &session.CallResult{Call: "3", Text: "hidden", Denied: true}},
		{CallStarted: &session.CallStart{Call: "2"}},
	} {
		e.Time = start.Add(time.Duration(i) * time.Millisecond)
		turn.Step(&e)
	}
	turn.End("cancelled", true)
	stop(t, tracer)
	whole := r.span(t, "invoke_agent Bot/public/helper")
	wantAttributes(t, whole, map[string]string{"gen_ai.conversation.id": "c1", "gen_ai.operation.name": "invoke_agent", "loadout.turn.reason": "cancelled"})
	tool := r.span(t, "execute_tool load_skill")
	wantAttributes(t, tool, map[string]string{"gen_ai.tool.name": "load_skill", "gen_ai.operation.name": "execute_tool", "gen_ai.tool.call.id": "1"})
	load := r.span(t, "load_skill pdf")
	wantAttributes(t, load, map[string]string{"gen_ai.skill.name": "pdf", "gen_ai.skill.version": "1.2", "gen_ai.skill.digest": "sha256:1", "gen_ai.skill.origin": "public"})
	if !slices.Equal(load.ParentSpanId, tool.SpanId) || !slices.Equal(tool.ParentSpanId, whole.SpanId) || load.StartTimeUnixNano != tool.StartTimeUnixNano {
		t.Error("the load is not a child of its call, or the call not of the turn")
	}
	answer := r.span(t, "chat one")
	wantAttributes(t, answer, map[string]string{"gen_ai.provider.name": "fake", "gen_ai.request.model": "one", "gen_ai.usage.input_tokens": "int_value:7", "gen_ai.usage.output_tokens": "int_value:5"})
	if !slices.Equal(answer.ParentSpanId, whole.SpanId) {
		t.Error("the model request is not a child of the turn")
	}
	wantAttributes(t, r.span(t, "execute_tool call_tool"), map[string]string{"error.type": "broken_off"})
	if len(r.spans) != 5 {
		t.Errorf("got %d spans, want 5", len(r.spans))
	}
	for _, s := range r.spans {
		if strings.Contains(s.String(), "hidden") {
			t.Errorf("a span contains content: %v", s)
		}
	}
}

// An error is recorded as a word or a status code, as its text may repeat content.
func TestModelError(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want string
	}{
		{&llm.StatusError{Vendor: "fake", Code: 529, Message: "hidden"}, "529"},
		{context.Canceled, "cancelled"},
		{errors.New("hidden"), "unreachable"},
	} {
		t.Run(tt.want, func(t *testing.T) {
			r := startReceiver(t)
			tracer := start(t, nil)
			for range tracer.TraceModel(fakeModel{tt.err}).Stream(t.Context(), &llm.Request{}) {
			}
			stop(t, tracer)
			s := r.span(t, "chat one")
			wantAttributes(t, s, map[string]string{"error.type": tt.want})
			if strings.Contains(s.String(), "hidden") {
				t.Errorf("the span repeats the error: %v", s)
			}
		})
	}
}

func TestFailingReceiverIsLogged(t *testing.T) {
	r := startReceiver(t)
	r.broken = true
	var log strings.Builder
	tracer := start(t, slog.New(slog.NewTextHandler(&log, nil)))
	_, end := tracer.StartRequest(t.Context(), "GET", nil)
	end("", 200)
	stop(t, tracer)
	if !strings.Contains(log.String(), "couldn't send traces") {
		t.Errorf("the log is %q", log.String())
	}
}

func start(t *testing.T, log *slog.Logger) *telemetry.Tracer {
	t.Helper()
	tracer, err := telemetry.Start(t.Context(), os.Getenv, telemetry.Options{Version: "1.2", Node: "n1", Logger: log})
	if err != nil {
		t.Fatal(err)
	}
	return tracer
}

func stop(t *testing.T, tracer *telemetry.Tracer) {
	t.Helper()
	if err := tracer.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// fakeModel answers with no text, or fails with err.
type fakeModel struct{ err error }

func (fakeModel) Name() string { return "fake:one" }

func (m fakeModel) Stream(context.Context, *llm.Request) iter.Seq2[llm.Event, error] {
	return func(yield func(llm.Event, error) bool) {
		if m.err != nil {
			yield(nil, m.err)
			return
		}
		yield(llm.Done{Answer: llm.Answer{Stop: "end", Usage: llm.Usage{Input: 3, CacheRead: 4, Output: 5}}}, nil)
	}
}
