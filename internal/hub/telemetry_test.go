package hub_test

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	pb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/loadout-dev/loadout/internal/hub"
	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/chat"
	"github.com/loadout-dev/loadout/internal/telemetry"
)

// spans collects the spans that an OTLP receiver got.
type spans struct {
	mu  sync.Mutex
	all []*pb.Span
}

func (s *spans) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	in := io.Reader(r.Body)
	if r.Header.Get("Content-Encoding") == "gzip" {
		in, _ = gzip.NewReader(in)
	}
	data, err := io.ReadAll(in)
	var m pb.TracesData // the wire form of ExportTraceServiceRequest
	if err != nil || proto.Unmarshal(data, &m) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, rs := range m.ResourceSpans {
		for _, ss := range rs.ScopeSpans {
			s.all = append(s.all, ss.Spans...)
		}
	}
}

// named are the spans of a name.
func (s *spans) named(name string) []*pb.Span {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []*pb.Span
	for _, one := range s.all {
		if one.Name == name {
			out = append(out, one)
		}
	}
	return out
}

// Requests and turns are traced and counted, without any text of messages.
func TestTracesAndMetrics(t *testing.T) {
	taken := &spans{}
	receiver := httptest.NewServer(taken)
	defer receiver.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", receiver.URL)
	tracer, err := telemetry.Start(t.Context(), os.Getenv, telemetry.Options{Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	n := start(t, hub.Options{Tracer: tracer})
	me := n.anybody()
	me.with("Traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01").send(t, "GET", "/api/v1/me?q=geheim", nil).want(t, 200)
	talk(t, n, "please load the skill csv-analysis, geheim")
	counted := me.send(t, "GET", "/metrics", nil).want(t, 200).body
	if err := tracer.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"GET /api/v1/me", "invoke_agent", "chat rules", "execute_tool load_skill", "load_skill csv-analysis"} {
		if len(taken.named(name)) == 0 {
			t.Errorf("no span %q", name)
		}
	}
	for _, s := range taken.named("GET /api/v1/me") {
		if strings.HasPrefix(string(s.TraceId), "\x0a\xf7\x65") {
			t.Error("a stranger says which trace a request is part of")
		}
	}
	for _, s := range taken.all {
		if strings.Contains(s.String(), "geheim") {
			t.Errorf("a span tells what was said: %v", s)
		}
	}
	for _, want := range []string{`loadout_turns_total{kind="message",reason="done"} 1`, `loadout_model_requests_total{outcome="ok",vendor="demo"}`} {
		if !strings.Contains(counted, want) {
			t.Errorf("no %s", want)
		}
	}
}

// talk sends a message as the user of a single-user hub and waits for the end of the
// turn.
func talk(t *testing.T, n *node, text string) {
	t.Helper()
	engine, who := n.Chat(), account.SinglePrincipal()
	c, err := engine.Create(t.Context(), who, "", "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := engine.SendMessage(t.Context(), who, c.ID, chat.Message{Text: text}); err != nil {
		t.Fatal(err)
	}
	for ev, err := range engine.Watch(t.Context(), who, c.ID, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if ev.Type == chat.TurnEnded {
			if ev.Reason != chat.Done {
				t.Errorf("the turn ended with %s: %s", ev.Reason, ev.Text)
			}
			return
		}
	}
}

// The page about the hub names each metric of ours, and no other.
func TestMetricsAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/hub.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := regexp.MustCompile("`(loadout_\\w+)`").FindAllStringSubmatch(string(page), -1)
	var names []string
	for _, m := range documented {
		names = append(names, m[1])
	}
	all, err := os.ReadFile("metrics/testdata/metrics.txt") // metrics.TestMetricsMatchFile checks it
	if err != nil {
		t.Fatal(err)
	}
	var there []string
	for _, m := range regexp.MustCompile(`(?m)^# TYPE (loadout_\S+)`).FindAllStringSubmatch(string(all), -1) {
		there = append(there, m[1])
	}
	for _, name := range there {
		if !slices.Contains(names, name) {
			t.Errorf("docs/hub.md does not name %s", name)
		}
	}
	for _, name := range names {
		if !slices.Contains(there, name) {
			t.Errorf("docs/hub.md names %s, which there is not", name)
		}
	}
}

// Open streams are counted, and are not reported as slow requests.
func TestStreamsAreCounted(t *testing.T) {
	n := start(t, hub.Options{})
	goOn, streaming := make(chan struct{}), make(chan struct{})
	n.Mount("GET /stream", func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, "a")
		http.NewResponseController(w).Flush()
		close(streaming)
		<-goOn
	})
	ended := make(chan error, 1)
	go func() {
		_, err := n.send(n.anybody(), "GET", "/stream", nil)
		ended <- err
	}()
	<-streaming
	if got := n.anybody().send(t, "GET", "/metrics", nil).body; !strings.Contains(got, `loadout_http_streams{route="GET /stream"} 1`) {
		t.Error("the stream is not counted")
	}
	close(goOn)
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	got := n.anybody().send(t, "GET", "/metrics", nil).body
	if !strings.Contains(got, `loadout_http_streams{route="GET /stream"} 0`) || strings.Contains(got, `loadout_http_request_seconds_count{route="GET /stream"}`) {
		t.Error("the stream goes on, or is taken for a slow request")
	}
}
