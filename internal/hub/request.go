package hub

import (
	"bufio"
	"cmp"
	"crypto/rand"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/api"
)

// Handler returns the hub's HTTP handler. Requests that are running during
// [Hub.Close] fail.
func (h *Hub) Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v := &api.Request{ID: h.requestID(r), Began: time.Now(), Client: h.gate.Client(r)}
		r = r.WithContext(api.WithRequest(r.Context(), v))
		v.HTTP = r
		body := &requestBody{ReadCloser: r.Body}
		body.ended.Store(r.ContentLength == 0)
		answer := &responseRecorder{ResponseWriter: w, body: body}
		h.setHeaders(answer.Header(), v)
		http.NewResponseController(w).SetWriteDeadline(v.Began.Add(api.ResponseTimeout)) // not supported by every server
		limit := int64(api.MaxBody)
		if r.URL.Path == "/api/v1/migrate" {
			limit = api.MaxMigration
		}
		r.Body = http.MaxBytesReader(answer, body, limit)
		answer.streaming = func() func() { return h.metrics.CountStream(v.Route) }
		defer h.metrics.CountRunning()()
		ctx, traced := h.opts.Tracer.StartRequest(r.Context(), r.Method, h.traceHeader(r))
		defer func() { traced(v.Route, answer.status) }()
		r = r.WithContext(ctx)
		defer h.finishRequest(answer, r, v)
		h.serveRequest(answer, r, v)
	})
}

// serveRequest authenticates a request and serves it.
func (h *Hub) serveRequest(w http.ResponseWriter, r *http.Request, v *api.Request) {
	if open := r.URL.Path == "/healthz" || r.URL.Path == "/readyz"; !open {
		cookie, err := h.gate.Admit(r, v)
		if cookie != nil {
			http.SetCookie(w, cookie)
		}
		if err != nil {
			h.server.WriteProblem(w, r, err)
			return
		}
	}
	r = r.WithContext(account.NewContext(r.Context(), v.Principal))
	_, v.Route = h.mux.Handler(r)
	w, end := compressText(w, r)
	h.mux.ServeHTTP(w, r)
	end()
}

// finishRequest logs a request. If the handler panicked before writing anything, it
// sends an error response.
func (h *Hub) finishRequest(w *responseRecorder, r *http.Request, v *api.Request) {
	cause, begun := recover(), w.status != 0
	if cause != nil && cause != http.ErrAbortHandler {
		h.log.Error("a request panicked", "request", v.ID, "route", v.Route, "panic", fmt.Sprint(cause), "stack", string(debug.Stack()))
		if !begun {
			h.server.WriteProblem(w, r, &api.Problem{Status: 500, Code: "internal", Detail: "the hub failed", Next: "tell the operator the ID of the request"})
		}
	}
	api.LimitBodyRest(w)
	if w.status == 0 {
		w.status = http.StatusOK // as net/http does
	}
	took := time.Since(v.Began)
	status := cmp.Or(v.Failure, w.status)
	h.metrics.CountRequest(v.Route, status, took, w.finish())
	h.log.LogAttrs(r.Context(), slog.LevelInfo, "request", slog.String("request", v.ID), slog.String("method", r.Method), slog.String("route", v.Route),
		slog.Int("status", status), slog.Int64("bytes", w.bytes), slog.Duration("took", took), slog.String("user", string(v.Principal.User)), slog.String("client", v.Client.String()))
	if cause == http.ErrAbortHandler || cause != nil && begun {
		panic(http.ErrAbortHandler) // abort the connection: the response is incomplete
	}
}

// requestID returns the request ID set by a trusted proxy, or a new one.
func (h *Hub) requestID(r *http.Request) string {
	if at, err := netip.ParseAddrPort(r.RemoteAddr); err == nil && h.gate.Proxies.Trusts(at.Addr()) {
		if id := r.Header.Get("X-Request-Id"); isPlainID(id) {
			return id
		}
	}
	return rand.Text()
}

func isPlainID(id string) bool {
	for _, r := range id {
		plain := 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '-' || r == '_'
		if !plain {
			return false
		}
	}
	return id != "" && len(id) <= 64
}

// setHeaders sets the headers of all responses. Pages set their own content
// security policy.
func (h *Hub) setHeaders(header http.Header, v *api.Request) {
	header.Set("X-Request-Id", v.ID)
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("X-Frame-Options", "DENY")
	header.Set("Referrer-Policy", "same-origin")
	header.Set("Cross-Origin-Opener-Policy", "same-origin")
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
	header.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	header.Set("Cache-Control", "no-store")
	if h.gate.Secure {
		header.Set("Strict-Transport-Security", "max-age=31536000")
	}
}

// requestBody records whether a body has been read to its end.
type requestBody struct {
	io.ReadCloser
	ended atomic.Bool
}

func (b *requestBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF {
		b.ended.Store(true)
	}
	return n, err
}

// responseRecorder records the status and size of a response.
type responseRecorder struct {
	http.ResponseWriter
	body   *requestBody
	status int
	bytes  int64

	streaming func() (done func()) // called when the response turns out to be a stream
	stream    sync.Once
	done      func()
}

// SetReadDeadline sets the deadline for reading the body. It has no effect once the
// body has ended: net/http then waits for the client to close the connection, and an
// expired deadline would cancel this request and all later ones on the connection.
func (a *responseRecorder) SetReadDeadline(deadline time.Time) error {
	if a.body.ended.Load() {
		return nil
	}
	return http.NewResponseController(a.ResponseWriter).SetReadDeadline(deadline)
}

// FlushError flushes the response. A flushed response counts as a stream.
func (a *responseRecorder) FlushError() error {
	a.stream.Do(func() { a.done = a.streaming() })
	return http.NewResponseController(a.ResponseWriter).Flush()
}

// Hijack takes over the connection for a WebSocket, which counts as a stream.
func (a *responseRecorder) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(a.ResponseWriter).Hijack()
	if err == nil {
		a.stream.Do(func() { a.done = a.streaming() })
	}
	return conn, rw, err
}

// finish marks the end of the response and reports whether it was a stream.
func (a *responseRecorder) finish() bool {
	a.stream.Do(func() {})
	if a.done == nil {
		return false
	}
	a.done()
	return true
}

func (a *responseRecorder) WriteHeader(code int) {
	if a.status == 0 && code >= 200 || code == http.StatusSwitchingProtocols {
		a.status = code
	}
	a.ResponseWriter.WriteHeader(code)
}

func (a *responseRecorder) Write(b []byte) (int, error) {
	if a.status == 0 {
		a.status = http.StatusOK
	}
	n, err := a.ResponseWriter.Write(b)
	a.bytes += int64(n)
	return n, err
}

// Unwrap gives [http.ResponseController] access to the wrapped writer.
func (a *responseRecorder) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// traceHeader returns the trace headers of a request from a trusted proxy. It
// ignores those of other clients, who could otherwise add to traces or force their
// collection.
func (h *Hub) traceHeader(r *http.Request) http.Header {
	if at, err := netip.ParseAddrPort(r.RemoteAddr); err == nil && h.gate.Proxies.Trusts(at.Addr()) {
		return r.Header
	}
	return nil
}
