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
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/protobuf/proto"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	pb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/loadout-dev/loadout/internal/telemetry"
	"github.com/loadout-dev/loadout/llm"
	"github.com/loadout-dev/loadout/session"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// receiver takes traces, as any program does that speaks OTLP over HTTP.
type receiver struct {
	*httptest.Server
	mu     sync.Mutex
	spans  []*pb.Span
	from   map[string]string // attributes of the resource
	broken bool
}

func receive(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{from: map[string]string{}}
	r.Server = httptest.NewServer(http.HandlerFunc(r.take))
	t.Cleanup(r.Close)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", r.URL)
	return r
}

func (r *receiver) take(w http.ResponseWriter, req *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	in := io.Reader(req.Body)
	if req.Header.Get("Content-Encoding") == "gzip" {
		in, _ = gzip.NewReader(in)
	}
	data, err := io.ReadAll(in)
	var m collector.ExportTraceServiceRequest
	if err != nil || r.broken || req.URL.Path != "/v1/traces" || proto.Unmarshal(data, &m) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	for _, rs := range m.ResourceSpans {
		for _, a := range rs.Resource.Attributes {
			r.from[a.Key] = a.Value.GetStringValue()
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
	t.Fatalf("there is no span %q among %q", name, names)
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

func environment(vars map[string]string) func(string) string {
	return func(name string) string { return vars[name] }
}

func TestWanted(t *testing.T) {
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
		if got := telemetry.Wanted(environment(tt.vars)); got != tt.want {
			t.Errorf("with %v: %t, want %t", tt.vars, got, tt.want)
		}
	}
}

// Other ways to send traces are refused, and not quietly taken for this one.
func TestOtherProtocol(t *testing.T) {
	_, err := telemetry.Start(t.Context(), environment(map[string]string{"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}), telemetry.Options{})
	if err == nil || !strings.Contains(err.Error(), "http/protobuf") {
		t.Errorf("the error is %v", err)
	}
}

func TestNoTracer(t *testing.T) {
	var none *telemetry.Tracer
	ctx, end := none.Request(t.Context(), "GET", http.Header{})
	end("GET /x", 200)
	turn, watch := none.Turn(ctx, "c", "")
	watch.Step(&session.Event{})
	watch.End("done", false)
	if turn != t.Context() || none.Close(turn) != nil || none.Model(said{}) != llm.Model(said{}) {
		t.Error("a nil tracer does something")
	}
}

func TestRequest(t *testing.T) {
	r := receive(t)
	tracer := start(t, nil)
	const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	_, end := tracer.Request(t.Context(), "GET", http.Header{"Traceparent": {parent}})
	end("GET /api/v1/skills/{id}", 503)
	_, end = tracer.Request(t.Context(), "POST", nil)
	end("/", 404)
	stop(t, tracer)
	s := r.span(t, "GET /api/v1/skills/{id}")
	wantAttributes(t, s, map[string]string{"http.route": "/api/v1/skills/{id}", "http.response.status_code": "int_value:503"})
	if s.Kind != pb.Span_SPAN_KIND_SERVER || s.Status.Code != pb.Status_STATUS_CODE_ERROR || !strings.Contains(parent, hexOf(s.TraceId)) {
		t.Errorf("the span is %v", s)
	}
	if s := r.span(t, "POST"); attributes(s)["http.route"] != "" || s.Status.GetCode() == pb.Status_STATUS_CODE_ERROR {
		t.Errorf("the span of a request to nowhere is %v", s)
	}
	if r.from["service.name"] != "loadout" || r.from["service.version"] != "1.2" || r.from["service.instance.id"] != "n1" {
		t.Errorf("spans are from %v", r.from)
	}
}

func hexOf(b []byte) string {
	const digits = "0123456789abcdef"
	var out strings.Builder
	for _, c := range b {
		out.WriteByte(digits[c>>4])
		out.WriteByte(digits[c&15])
	}
	return out.String()
}

// A turn has the spans of what its model called and loaded, and nothing that was said.
func TestTurn(t *testing.T) {
	r := receive(t)
	tracer := start(t, nil)
	ctx, turn := tracer.Turn(t.Context(), "c1", "Bot/public/helper")
	model := tracer.Model(said{})
	for range model.Stream(ctx, &llm.Request{}) {
	}
	began := time.Now()
	for i, e := range []session.Event{
		{Message: &session.Message{Text: "hidden words", Calls: []session.Call{{ID: "1", Name: "load_skill", Arguments: "hidden"}, {ID: "2", Name: "call_tool"}, {ID: "3", Name: "read"}}}},
		{Started: &session.Started{Call: "1"}},
		{Loaded: &session.Loaded{Skill: session.ID{Name: "pdf", Origin: "public"}, Digest: "sha256:1", Version: "1.2", Text: "hidden"}},
		{Result: &session.Returned{Call: "1", Text: "hidden"}},
		{Result: &session.Returned{Call: "3", Text: "hidden", Denied: true}},
		{Started: &session.Started{Call: "2"}},
	} {
		e.Time = began.Add(time.Duration(i) * time.Millisecond)
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
		t.Error("the load is not in its call, or the call not in the turn")
	}
	answer := r.span(t, "chat one")
	wantAttributes(t, answer, map[string]string{"gen_ai.provider.name": "fake", "gen_ai.request.model": "one", "gen_ai.usage.input_tokens": "int_value:7", "gen_ai.usage.output_tokens": "int_value:5"})
	if !slices.Equal(answer.ParentSpanId, whole.SpanId) {
		t.Error("the answer of the model is not in the turn")
	}
	wantAttributes(t, r.span(t, "execute_tool call_tool"), map[string]string{"error.type": "broken_off"})
	if len(r.spans) != 5 {
		t.Errorf("there are %d spans, want 5", len(r.spans))
	}
	for _, s := range r.spans {
		if strings.Contains(s.String(), "hidden") {
			t.Errorf("a span tells what was said: %v", s)
		}
	}
}

// What fails is told by a word or a number, as a text may repeat what was said.
func TestModelFails(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want string
	}{
		{&llm.StatusError{Vendor: "fake", Code: 529, Message: "hidden"}, "529"},
		{context.Canceled, "cancelled"},
		{errors.New("hidden"), "unreachable"},
	} {
		t.Run(tt.want, func(t *testing.T) {
			r := receive(t)
			tracer := start(t, nil)
			for range tracer.Model(said{tt.err}).Stream(t.Context(), &llm.Request{}) {
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

// A place that takes no traces is told of once, and nothing else suffers.
func TestNobodyReceives(t *testing.T) {
	r := receive(t)
	r.broken = true
	var log strings.Builder
	tracer := start(t, slog.New(slog.NewTextHandler(&log, nil)))
	_, end := tracer.Request(t.Context(), "GET", nil)
	end("", 200)
	stop(t, tracer)
	if !strings.Contains(log.String(), "traces cannot be sent") {
		t.Errorf("the log is %q", log.String())
	}
}

func start(t *testing.T, log *slog.Logger) *telemetry.Tracer {
	t.Helper()
	tracer, err := telemetry.Start(t.Context(), environment(nil), telemetry.Options{Version: "1.2", Node: "n1", Logger: log})
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

// said is a model that says one thing, or fails.
type said struct{ err error }

func (said) Name() string { return "fake:one" }

func (s said) Stream(context.Context, *llm.Request) iter.Seq2[llm.Event, error] {
	return func(yield func(llm.Event, error) bool) {
		if s.err != nil {
			yield(nil, s.err)
			return
		}
		yield(llm.Done{Answer: llm.Answer{Stop: "end", Usage: llm.Usage{Input: 3, CacheRead: 4, Output: 5}}}, nil)
	}
}
