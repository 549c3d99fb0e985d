package telemetry

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"time"

	sdk "go.opentelemetry.io/otel/sdk/trace"

	"github.com/loadout-dev/loadout/internal/retryafter"
)

const (
	maxRequestSize  = 64 << 20 // size of a batch before compression, in bytes
	maxResponseSize = 4 << 20
)

// backoff holds the delays between attempts to send a batch.
type backoff struct {
	initial, limit time.Duration // first and maximum delay, before randomization
	total          time.Duration // time after the first attempt during which further attempts may start
}

var defaultBackoff = backoff{initial: 5 * time.Second, limit: 30 * time.Second, total: time.Minute}

// uploader sends batches of spans with OTLP over HTTP. OpenTelemetry's own exporter would
// link gRPC and html/template, which make the linker keep every exported method of the
// program. An uploader is safe for concurrent use.
type uploader struct {
	settings
	version string // of the program
	client  *http.Client
	backoff backoff
	stopped context.Context // done once Stop is called
	stop    context.CancelFunc
}

var _ sdk.SpanExporter = (*uploader)(nil)

func newUploader(s settings, version string) *uploader {
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, TLSClientConfig: s.tls, ForceAttemptHTTP2: true, IdleConnTimeout: 90 * time.Second}
	u := &uploader{settings: s, version: version, client: &http.Client{Transport: transport, Timeout: s.timeout}, backoff: defaultBackoff}
	u.stopped, u.stop = context.WithCancel(context.Background())
	return u
}

// Shutdown implements [sdk.SpanExporter]. It cancels uploads in progress.
func (u *uploader) Shutdown(ctx context.Context) error {
	u.stop()
	u.client.CloseIdleConnections()
	return ctx.Err()
}

// ExportSpans implements [sdk.SpanExporter]. It retries temporary failures with increasing
// delays, but not before the receiver's Retry-After.
func (u *uploader) ExportSpans(ctx context.Context, spans []sdk.ReadOnlySpan) error {
	if err := u.stopped.Err(); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(u.stopped, cancel)()
	body, err := u.encode(spans)
	if err != nil {
		return err
	}
	start := time.Now()
	for delay := u.backoff.initial; ; delay = min(delay*3/2, u.backoff.limit) {
		err := u.send(ctx, body)
		temporary, ok := errors.AsType[*temporaryError](err)
		if !ok {
			return err
		}
		elapsed := time.Since(start)
		if elapsed > u.backoff.total || temporary.retryAfter > u.backoff.total-elapsed {
			return fmt.Errorf("stopped retrying after %s: %w", u.backoff.total, err)
		}
		random := delay/2 + rand.N(delay)
		select {
		case <-ctx.Done():
			return fmt.Errorf("cancelled before the next attempt: %w", err)
		case <-time.After(max(random, temporary.retryAfter)):
		}
	}
}

// encode returns the body of a request.
func (u *uploader) encode(spans []sdk.ReadOnlySpan) ([]byte, error) {
	body := encodeRequest(spans)
	if len(body) > maxRequestSize {
		return nil, fmt.Errorf("batch of spans too large (%d bytes, limit %d)", len(body), maxRequestSize)
	}
	if !u.gzip {
		return body, nil
	}
	var zipped bytes.Buffer
	w := gzip.NewWriter(&zipped)
	_, err := w.Write(body)
	if err := errors.Join(err, w.Close()); err != nil {
		return nil, fmt.Errorf("compress spans: %w", err)
	}
	return zipped.Bytes(), nil
}

// temporaryError is a failure that a retry may resolve.
type temporaryError struct {
	err        error
	retryAfter time.Duration // delay requested by the receiver, or 0
}

func (e *temporaryError) Error() string { return e.err.Error() }
func (e *temporaryError) Unwrap() error { return e.err }

// send makes a single attempt. It fails with a *temporaryError if a retry may succeed.
func (u *uploader) send(ctx context.Context, body []byte) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, u.endpoint.String(), bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("User-Agent", "Loadout/"+u.version)
	for name, value := range u.headers {
		r.Header.Set(name, value)
	}
	r.Header.Set("Content-Type", "application/x-protobuf")
	if u.gzip {
		r.Header.Set("Content-Encoding", "gzip")
	}
	resp, err := u.client.Do(r)
	if failed, ok := errors.AsType[*url.Error](err); ok && failed.Temporary() {
		return &temporaryError{err: err}
	}
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxResponseSize+1))
	if err != nil {
		return fmt.Errorf("read response: %w", err)
	}
	if len(answer) > maxResponseSize {
		return fmt.Errorf("response from %s too large (limit %d bytes)", &u.endpoint, maxResponseSize)
	}
	if resp.StatusCode >= 200 && resp.StatusCode <= 299 {
		return checkPartialSuccess(resp.Header.Get("Content-Type"), answer)
	}
	err = fmt.Errorf("send to %s: %s: %s", &u.endpoint, resp.Status, strings.TrimSpace(string(answer)))
	switch resp.StatusCode {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return &temporaryError{err, retryafter.Parse(resp.Header)}
	}
	return err
}

// checkPartialSuccess returns an error if the receiver accepted the request but rejected
// spans or returned a message. It ignores responses with other content types.
func checkPartialSuccess(contentType string, answer []byte) error {
	var rejected int64
	var reason string
	switch contentType {
	case "application/x-protobuf":
		// An ExportTraceServiceResponse with an ExportTracePartialSuccess.
		err := message(answer).forEachField(func(field, _ uint64, partial []byte) error {
			if field != 1 {
				return nil
			}
			return message(partial).forEachField(func(field, v uint64, b []byte) error {
				switch field {
				case 1:
					rejected = int64(v)
				case 2:
					reason = string(b)
				}
				return nil
			})
		})
		if err != nil {
			return fmt.Errorf("read response: %w", err)
		}
	case "application/json":
		if len(answer) == 0 {
			return nil
		}
		var response struct {
			PartialSuccess struct {
				RejectedSpans json.Number `json:"rejectedSpans"` // a string or a number
				ErrorMessage  string      `json:"errorMessage"`
			} `json:"partialSuccess"`
		}
		if err := json.Unmarshal(answer, &response); err != nil {
			return fmt.Errorf("read response: %w", err)
		}
		rejected, _ = response.PartialSuccess.RejectedSpans.Int64()
		reason = response.PartialSuccess.ErrorMessage
	}
	if rejected == 0 && reason == "" {
		return nil
	}
	return fmt.Errorf("receiver rejected %d spans: %q", rejected, reason)
}
