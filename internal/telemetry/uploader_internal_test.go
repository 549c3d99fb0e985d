package telemetry

import (
	"compress/gzip"
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	pb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// oneSpan is a batch of one span, named "one".
func oneSpan() []sdk.ReadOnlySpan {
	return tracetest.SpanStubs{{Name: "one"}}.Snapshots()
}

// upload sends one span to a handler, with millisecond delays between attempts.
func upload(t *testing.T, vars map[string]string, h http.HandlerFunc) error {
	t.Helper()
	server := httptest.NewServer(h)
	defer server.Close()
	vars = maps.Clone(vars)
	if vars == nil {
		vars = map[string]string{}
	}
	vars["ENDPOINT"] = server.URL
	s, _ := settingsFor(vars)
	u := newUploader(s, "v1.2")
	u.backoff = backoff{initial: time.Millisecond, limit: 2 * time.Millisecond, total: 5 * time.Second}
	err := u.ExportSpans(t.Context(), oneSpan())
	if err := u.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	return err
}

func TestUploadSendsHeadersAndSpans(t *testing.T) {
	for _, compression := range []string{"", "gzip", "none"} {
		vars := map[string]string{"HEADERS": "X-Key=one%20two, Other = 3", "COMPRESSION": compression}
		err := upload(t, vars, func(_ http.ResponseWriter, r *http.Request) {
			in := io.Reader(r.Body)
			if r.Header.Get("Content-Encoding") == "gzip" {
				in, _ = gzip.NewReader(in)
			}
			data, _ := io.ReadAll(in)
			var m pb.TracesData
			if err := proto.Unmarshal(data, &m); err != nil || m.ResourceSpans[0].ScopeSpans[0].Spans[0].Name != "one" {
				t.Errorf("received %v (%v)", &m, err)
			}
			if r.Header.Get("X-Key") != "one two" || r.Header.Get("Other") != "3" || r.Header.Get("Content-Type") != "application/x-protobuf" ||
				r.Header.Get("User-Agent") != "Loadout/v1.2" || (r.Header.Get("Content-Encoding") == "gzip") != (compression == "gzip") {
				t.Errorf("headers are %v", r.Header)
			}
		})
		if err != nil {
			t.Error(err)
		}
	}
}

func TestUploadRetriesTemporaryFailures(t *testing.T) {
	for _, status := range []int{429, 502, 503, 504} {
		attempts := 0
		err := upload(t, nil, func(w http.ResponseWriter, _ *http.Request) {
			if attempts++; attempts < 3 {
				w.WriteHeader(status)
			}
		})
		if err != nil || attempts != 3 {
			t.Errorf("status %d: %d attempts, error %v", status, attempts, err)
		}
	}
}

func TestUploadGivesUp(t *testing.T) {
	for _, status := range []int{400, 401, 500} {
		attempts := 0
		err := upload(t, nil, func(w http.ResponseWriter, _ *http.Request) {
			attempts++
			http.Error(w, "reason", status)
		})
		if err == nil || !strings.Contains(err.Error(), "reason") || attempts != 1 {
			t.Errorf("status %d: %d attempts, error %v", status, attempts, err)
		}
	}
	attempts := 0
	err := upload(t, nil, func(w http.ResponseWriter, _ *http.Request) {
		attempts++
		w.Header().Set("Retry-After", "60") // longer than the total of the test
		w.WriteHeader(503)
	})
	if err == nil || attempts != 1 {
		t.Errorf("%d attempts, error %v", attempts, err)
	}
}

func TestUploadWaitsForRetryAfter(t *testing.T) {
	var times []time.Time
	err := upload(t, nil, func(w http.ResponseWriter, _ *http.Request) {
		if times = append(times, time.Now()); len(times) == 1 {
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(429)
		}
	})
	if err != nil || len(times) != 2 || times[1].Sub(times[0]) < time.Second {
		t.Errorf("attempts at %v, error %v", times, err)
	}
}

func TestShutdownCancelsUpload(t *testing.T) {
	u := newUploader(settings{timeout: time.Minute}, "")
	u.Shutdown(t.Context())
	if err := u.ExportSpans(t.Context(), oneSpan()); !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v", err)
	}
}

func TestPartialSuccessIsAnError(t *testing.T) {
	partial := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), 7)
	partial = protowire.AppendString(protowire.AppendTag(partial, 2, protowire.BytesType), "too old")
	message := protowire.AppendFixed32(protowire.AppendTag(nil, 9, protowire.Fixed32Type), 1) // an unknown field
	message = protowire.AppendBytes(protowire.AppendTag(message, 1, protowire.BytesType), partial)
	for _, tt := range []struct{ contentType, answer, want string }{
		{"application/x-protobuf", "", ""},
		{"application/x-protobuf", string(message), `rejected 7 spans: "too old"`},
		{"application/x-protobuf", string(message[:len(message)-1]), "read response"},
		{"application/x-protobuf", "\x0c", "unsupported wire type 4"},
		{"application/json", `{}`, ""},
		{"application/json", `{"partialSuccess":{"rejectedSpans":"7","errorMessage":"too old"}}`, `rejected 7 spans: "too old"`},
		{"application/json", `{"partialSuccess":{"rejectedSpans":7}}`, `rejected 7 spans: ""`},
		{"application/json", `{`, "read response"},
		{"text/plain", "rejected", ""},
	} {
		err := upload(t, nil, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", tt.contentType)
			io.WriteString(w, tt.answer)
		})
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s %q: error %v, want %q", tt.contentType, tt.answer, err, tt.want)
		}
	}
}

func TestUploadLimitsResponse(t *testing.T) {
	err := upload(t, nil, func(w http.ResponseWriter, _ *http.Request) { w.Write(make([]byte, maxResponseSize+1)) })
	if err == nil || !strings.Contains(err.Error(), "too large") {
		t.Errorf("error is %v", err)
	}
}

func TestCertificateVariables(t *testing.T) {
	received := 0
	server := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { received++ }))
	defer server.Close()
	file := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	s, log := settingsFor(map[string]string{"ENDPOINT": server.URL, "TRACES_CERTIFICATE": file})
	u := newUploader(s, "")
	if err := u.ExportSpans(t.Context(), oneSpan()); err != nil || received != 1 {
		t.Errorf("received %d, error %v, log %s", received, err, log)
	}
	u.Shutdown(t.Context())
	s, _ = settingsFor(map[string]string{"ENDPOINT": "http://h", "CERTIFICATE": file})
	if err := s.check(); err == nil {
		t.Error("certificates for an insecure endpoint are accepted")
	}
}

func TestTemporaryNetworkErrors(t *testing.T) {
	slow := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-slow }))
	defer server.Close()
	defer close(slow)
	endpoint, _ := url.Parse(server.URL)
	u := newUploader(settings{endpoint: *endpoint, timeout: 20 * time.Millisecond}, "")
	defer u.Shutdown(t.Context())
	err := u.send(t.Context(), nil)
	if _, ok := errors.AsType[*temporaryError](err); !ok {
		t.Errorf("a timeout is %v", err)
	}
	server.CloseClientConnections()
	u.endpoint = url.URL{Scheme: "http", Host: "127.0.0.1:1"}
	if _, ok := errors.AsType[*temporaryError](u.send(t.Context(), nil)); ok {
		t.Error("a refused connection is tried again")
	}
	if err := fmt.Sprint(&temporaryError{err: io.EOF}); err != "EOF" {
		t.Error(err)
	}
}
