package api

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loadout-dev/loadout/internal/hub/library"
)

// An event stream ends with the response of the operation, whatever came before.
func TestProgressEndsWithTheResponse(t *testing.T) {
	report := func(w *progressWriter) { w.report(library.Progress{Phase: library.Importing, Done: 1, Total: 2}) }
	const progress = "event: progress\ndata: {\"phase\":\"import\",\"done\":1,\"total\":2}\n\n"
	for _, tt := range []struct {
		name      string
		operation func(w *progressWriter)
		status    int
		kind      string
		want      string
	}{
		{"a result", func(w *progressWriter) { report(w); io.WriteString(w, "{}\n") }, 200, eventStream, progress + "event: result\ndata: {}\n\n"},
		{"a result without progress", func(w *progressWriter) { io.WriteString(w, "{}\n") }, 200, eventStream, "event: result\ndata: {}\n\n"},
		{"a failure", func(w *progressWriter) { report(w); w.WriteHeader(502); io.WriteString(w, "{}\n") }, 200, eventStream, progress + "event: problem\ndata: {}\n\n"},
		{"a refusal", func(w *progressWriter) { w.WriteHeader(422); io.WriteString(w, "{}\n") }, 422, "application/json", "{}\n"},
		{"a slow operation", func(*progressWriter) { time.Sleep(2*progressInterval + time.Second) }, 200, eventStream, ":\n\n:\n\nevent: result\ndata: \n\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := httptest.NewRecorder()
				w := newProgressWriter(r)
				w.run(func() {
					w.Header().Set("Content-Type", "application/json")
					tt.operation(w)
				})
				if got := r.Body.String(); got != tt.want || r.Code != tt.status || r.Header().Get("Content-Type") != tt.kind {
					t.Errorf("the response is %d %s\n%s\nwant %d %s\n%s", r.Code, r.Header().Get("Content-Type"), got, tt.status, tt.kind, tt.want)
				}
				// Metrics count a failure in the stream with its own status.
				if want := map[string]int{"a failure": 502}[tt.name]; w.failure() != want {
					t.Errorf("the failure in the stream is %d, want %d", w.failure(), want)
				}
			})
		})
	}
}

// A panic is no success: nothing follows the progress.
func TestProgressOfAPanic(t *testing.T) {
	r := httptest.NewRecorder()
	w := newProgressWriter(r)
	defer func() {
		if recover() == nil || strings.Contains(r.Body.String(), "result") {
			t.Errorf("the response is %s", r.Body)
		}
	}()
	w.run(func() {
		w.report(library.Progress{Phase: library.Fetching})
		panic("broken")
	})
}

// Each event is sent at once, while the operation runs.
func TestProgressIsFlushed(t *testing.T) {
	release := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		stream := newProgressWriter(w)
		stream.run(func() {
			stream.report(library.Progress{Phase: library.Fetching})
			<-release
		})
	}))
	defer server.Close()
	defer close(release)
	resp, err := server.Client().Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text := make([]byte, len("event: progress\n"))
	if _, err := io.ReadFull(resp.Body, text); err != nil || string(text) != "event: progress\n" {
		t.Errorf("while the operation runs, the client got %q, %v", text, err)
	}
}
