package hub

import (
	"bufio"
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"runtime/debug"
	"sync"
	"time"

	"github.com/loadout-dev/loadout/internal/account"
)

const (
	// maxBody bounds the body of any request; most operations take much less.
	maxBody = 32 << 20
	// answerTime is how long the answer to a request may take to be written. Who streams
	// moves it on by an [http.ResponseController].
	answerTime = time.Minute
	// restTime is how long what nobody reads of a body may take to come: without, who sends
	// none of it holds a connection for good, also where he has not signed in.
	restTime = 5 * time.Second
)

// visit is what is known of a request besides what is in it.
type visit struct {
	id      string
	began   time.Time
	request *http.Request
	client  netip.Addr // behind the proxies that are trusted
	route   string     // as the mux has it, once it is known
	by      account.Principal
	login   []byte // the hash of the sign-in, where it was a cookie that let the request in
	crowded bool   // the body was ended for how many values it has
}

type visitKey struct{}

// visitOf is the visit of a context, an empty one where it has none.
func visitOf(ctx context.Context) *visit {
	if v, ok := ctx.Value(visitKey{}).(*visit); ok {
		return v
	}
	return &visit{}
}

// Handler serves the hub. Requests under way when [Hub.Close] is called fail.
func (h *Hub) Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v := &visit{id: h.requestID(r), began: time.Now(), client: h.door.client(r)}
		r = r.WithContext(context.WithValue(r.Context(), visitKey{}, v))
		v.request = r
		answer := &answer{ResponseWriter: w}
		h.dress(answer.Header(), v)
		http.NewResponseController(w).SetWriteDeadline(v.began.Add(answerTime)) // not with every server
		r.Body = http.MaxBytesReader(answer, r.Body, maxBody)
		answer.streaming = func() func() { return h.metrics.streaming(v.route) }
		h.metrics.under.Inc()
		defer h.metrics.under.Dec()
		ctx, traced := h.opts.Tracer.Request(r.Context(), r.Method, h.traceOf(r))
		defer func() { traced(v.route, answer.status) }()
		r = r.WithContext(ctx)
		defer h.leave(answer, r, v)
		h.enter(answer, r, v)
	})
}

// enter lets a request in, or not, and has it served.
func (h *Hub) enter(w http.ResponseWriter, r *http.Request, v *visit) {
	if open := r.URL.Path == "/healthz" || r.URL.Path == "/readyz"; !open {
		cookie, err := h.door.open(r, v)
		if cookie != nil {
			http.SetCookie(w, cookie)
		}
		if err != nil {
			h.refuse(w, r, err)
			return
		}
	}
	r = r.WithContext(account.NewContext(r.Context(), v.by))
	_, v.route = h.mux.Handler(r)
	h.mux.ServeHTTP(w, r)
}

// leave notes what became of a request. Where it panicked that is an answer too, if
// nothing was written yet.
func (h *Hub) leave(w *answer, r *http.Request, v *visit) {
	cause, begun := recover(), w.status != 0
	if cause != nil && cause != http.ErrAbortHandler {
		h.log.Error("a request panicked", "request", v.id, "route", v.route, "panic", fmt.Sprint(cause), "stack", string(debug.Stack()))
		if !begun {
			h.refuse(w, r, &Problem{Status: 500, Code: "internal", Detail: "the hub failed", Next: "tell the operator the id of the request"})
		}
	}
	if r.ContentLength != 0 {
		hurry(w)
	}
	if w.status == 0 {
		w.status = http.StatusOK // as net/http does
	}
	took := time.Since(v.began)
	h.metrics.answered(v.route, w.status, took, w.ended())
	h.log.LogAttrs(r.Context(), slog.LevelInfo, "request", slog.String("request", v.id), slog.String("method", r.Method), slog.String("route", v.route),
		slog.Int("status", w.status), slog.Int64("bytes", w.bytes), slog.Duration("took", took), slog.String("user", string(v.by.User)), slog.String("client", v.client.String()))
	if cause == http.ErrAbortHandler || cause != nil && begun {
		panic(http.ErrAbortHandler) // the connection is cut: the answer is not whole
	}
}

// hurry bounds how long the rest of a body is waited for.
func hurry(w http.ResponseWriter) {
	http.NewResponseController(w).SetReadDeadline(time.Now().Add(restTime)) // not with every server
}

// requestID is the id that a proxy of ours gave a request, or a new one.
func (h *Hub) requestID(r *http.Request) string {
	if at, err := netip.ParseAddrPort(r.RemoteAddr); err == nil && h.door.proxies.Trusts(at.Addr()) {
		if id := r.Header.Get("X-Request-Id"); plainID(id) {
			return id
		}
	}
	return rand.Text()
}

func plainID(id string) bool {
	for _, r := range id {
		plain := 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '-' || r == '_'
		if !plain {
			return false
		}
	}
	return id != "" && len(id) <= 64
}

// dress sets the headers of every answer. Pages set a policy of their own.
func (h *Hub) dress(header http.Header, v *visit) {
	header.Set("X-Request-Id", v.id)
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("X-Frame-Options", "DENY")
	header.Set("Referrer-Policy", "same-origin")
	header.Set("Cross-Origin-Opener-Policy", "same-origin")
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
	header.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	header.Set("Cache-Control", "no-store")
	if h.door.secure {
		header.Set("Strict-Transport-Security", "max-age=31536000")
	}
}

// answer knows what was written.
type answer struct {
	http.ResponseWriter
	status int
	bytes  int64

	streaming func() (done func()) // called when the answer turns out to be a stream
	stream    sync.Once
	done      func()
}

// FlushError is for [http.ResponseController]: what is flushed before its end is a stream.
func (a *answer) FlushError() error {
	a.stream.Do(func() { a.done = a.streaming() })
	return http.NewResponseController(a.ResponseWriter).Flush()
}

// Hijack is for [http.ResponseController]: the connection is a WebSocket from then on.
func (a *answer) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(a.ResponseWriter).Hijack()
	if err == nil {
		a.stream.Do(func() { a.done = a.streaming() })
	}
	return conn, rw, err
}

// ended notes that the answer is over, and reports whether it was a stream.
func (a *answer) ended() bool {
	a.stream.Do(func() {})
	if a.done == nil {
		return false
	}
	a.done()
	return true
}

func (a *answer) WriteHeader(code int) {
	if a.status == 0 && code >= 200 || code == http.StatusSwitchingProtocols {
		a.status = code
	}
	a.ResponseWriter.WriteHeader(code)
}

func (a *answer) Write(b []byte) (int, error) {
	if a.status == 0 {
		a.status = http.StatusOK
	}
	n, err := a.ResponseWriter.Write(b)
	a.bytes += int64(n)
	return n, err
}

// Unwrap is for [http.ResponseController].
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }
