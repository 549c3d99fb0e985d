package hub_test

import (
	"compress/gzip"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/hub"
)

// Large JSON is compressed for clients that accept it; nothing else is.
func TestLargeJSONIsCompressed(t *testing.T) {
	n := start(t, hub.Options{})
	n.Mount("GET /api/v1/test/{kind}", func(w http.ResponseWriter, r *http.Request) {
		kind := r.PathValue("kind")
		large := strings.Repeat(`{"skill": "tides"}`, 1000)
		switch kind {
		case "json":
			w.Header().Set("Content-Type", "application/json; charset=utf-8")
			w.WriteHeader(http.StatusAccepted)
			io.WriteString(w, large)
			io.WriteString(w, "the rest")
		case "small":
			w.Header().Set("Content-Type", "application/json")
			io.WriteString(w, "{}")
		case "empty":
			w.WriteHeader(http.StatusNoContent)
		case "zip":
			w.Header().Set("Content-Type", "application/zip")
			io.WriteString(w, large)
		case "stream":
			w.Header().Set("Content-Type", "text/event-stream")
			http.NewResponseController(w).Flush()
			io.WriteString(w, large)
		case "panic":
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusOK)
			panic("before the first byte")
		}
	})
	for _, tt := range []struct {
		kind, accept string
		status       int
		compressed   bool
		vary         string
	}{
		{"json", "gzip", 202, true, "Accept-Encoding"},
		{"json", "br, gzip;q=0.5", 202, true, "Accept-Encoding"},
		{"json", "identity", 202, false, ""},
		{"json", "gzip;q=0", 202, false, ""},
		{"small", "gzip", 200, false, "Accept-Encoding"},
		{"empty", "gzip", 204, false, ""},
		{"zip", "gzip", 200, false, ""},
		{"stream", "gzip", 200, false, ""},
		{"panic", "gzip", 500, false, ""},
	} {
		t.Run(tt.kind+" "+tt.accept, func(t *testing.T) {
			r := n.anybody().with("Accept-Encoding", tt.accept).send(t, "GET", "/api/v1/test/"+tt.kind, nil).want(t, tt.status)
			if got := r.header.Get("Content-Encoding") == "gzip"; got != tt.compressed || r.header.Get("Vary") != tt.vary {
				t.Fatalf("compressed %t, with the header %v", got, r.header)
			}
			if !tt.compressed {
				return
			}
			z, err := gzip.NewReader(strings.NewReader(r.body))
			if err != nil {
				t.Fatal(err)
			}
			text, err := io.ReadAll(z)
			if err != nil || !strings.HasSuffix(string(text), `"tides"}the rest`) || len(r.body) > len(text)/10 {
				t.Errorf("%d bytes for %d, %v", len(r.body), len(text), err)
			}
		})
	}
}

func TestMetricsAreCompressed(t *testing.T) {
	n := start(t, hub.Options{})
	r := n.anybody().with("Accept-Encoding", "gzip").send(t, "GET", "/metrics", nil).want(t, 200)
	z, err := gzip.NewReader(strings.NewReader(r.body))
	if err != nil {
		t.Fatalf("the response is not compressed: %v", err)
	}
	text, err := io.ReadAll(z)
	if err != nil || !strings.HasPrefix(string(text), "# HELP ") || r.header.Get("Content-Type") != "text/plain; version=0.0.4; charset=utf-8" {
		t.Errorf("the response is %q with the header %v (%v)", text, r.header, err)
	}
}
