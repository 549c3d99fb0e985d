package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/loadout-dev/loadout/internal/hub/library"
)

const (
	progressInterval    = 15 * time.Second // proxies close idle connections
	eventStream         = "text/event-stream"
	progressDescription = "With Accept: " + eventStream + ", the response is a stream of server-sent events: progress, as in the schema Progress, any number of times; then result, as in the JSON response, or problem, as in the schema Problem. Comments keep the connection open. A request that is refused before the first event gets the JSON response."
)

// WithProgress returns op with a response that reports its progress to clients that
// accept an event stream. Its handler must call functions that use
// [library.WithProgress].
func WithProgress(s *Server, op huma.Operation) huma.Operation {
	s.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[library.Progress](), true, "")
	op.Description = progressDescription
	op.Responses = map[string]*huma.Response{"200": {Content: map[string]*huma.MediaType{eventStream: {Schema: &huma.Schema{Type: huma.TypeString}}}}}
	op.Middlewares = append(op.Middlewares, func(ctx huma.Context, next func(huma.Context)) {
		r, w := humago.Unwrap(ctx)
		if !strings.Contains(r.Header.Get("Accept"), eventStream) {
			next(ctx)
			return
		}
		stream := newProgressWriter(w)
		stream.run(func() {
			next(humago.NewContext(ctx.Operation(), r.WithContext(library.WithProgress(ctx.Context(), stream.report)), stream))
		})
		RequestFrom(ctx.Context()).Failure = stream.failure()
	})
	return op
}

// progressWriter sends an event stream. The operation writes its response to memory;
// the response is the last event, or the whole response if it reports an error and no
// event was sent.
type progressWriter struct {
	http.ResponseWriter
	header  http.Header
	status  int
	content bytes.Buffer

	mu    sync.Mutex // guards the fields below and writing events
	begun bool
}

func newProgressWriter(w http.ResponseWriter) *progressWriter {
	return &progressWriter{ResponseWriter: w, header: w.Header().Clone(), status: http.StatusOK}
}

// Unwrap supports [http.ResponseController].
func (w *progressWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *progressWriter) Header() http.Header         { return w.header }
func (w *progressWriter) WriteHeader(status int)      { w.status = status }
func (w *progressWriter) Write(p []byte) (int, error) { return w.content.Write(p) }

// run calls the operation and sends its response. Until the operation ends, run sends
// heartbeats. If the operation panics, run sends no response: the connection is
// aborted, or gets an error response if no event was sent.
func (w *progressWriter) run(operation func()) {
	ended := make(chan struct{})
	var beating sync.WaitGroup
	beating.Go(func() {
		beat := time.NewTicker(progressInterval)
		defer beat.Stop()
		for {
			select {
			case <-ended:
				return
			case <-beat.C:
				w.send(":\n\n")
			}
		}
	})
	finished := false
	defer func() {
		close(ended)
		beating.Wait()
		if finished {
			w.end()
		}
	}()
	operation()
	finished = true
}

// report sends progress.
func (w *progressWriter) report(p library.Progress) {
	if data, err := json.Marshal(p); err == nil {
		w.sendEvent("progress", data)
	}
}

func (w *progressWriter) sendEvent(name string, data []byte) {
	w.send(fmt.Sprintf("event: %s\ndata: %s\n\n", name, data))
}

// send sends text of the stream. It ignores errors, which mean that the client has
// disconnected or stopped reading; the request is canceled then.
func (w *progressWriter) send(text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.begun {
		w.begun = true
		w.ResponseWriter.Header().Set("Content-Type", eventStream)
		w.ResponseWriter.Header().Set("X-Accel-Buffering", "no") // disable buffering in proxies
	}
	to := http.NewResponseController(w.ResponseWriter)
	to.SetWriteDeadline(time.Now().Add(ResponseTimeout)) // not supported by every server
	io.WriteString(w.ResponseWriter, text)
	to.Flush() // not supported by every server
}

// failure returns the status of a failure that the stream reported as its last
// event, or 0.
func (w *progressWriter) failure() int {
	if w.begun && w.status >= http.StatusBadRequest {
		return w.status
	}
	return 0
}

// end sends the response of the operation.
func (w *progressWriter) end() {
	data := bytes.TrimSpace(w.content.Bytes())
	switch {
	case w.status < http.StatusBadRequest:
		w.sendEvent("result", data)
	case w.begun:
		w.sendEvent("problem", data)
	default:
		maps.Copy(w.ResponseWriter.Header(), w.header)
		w.ResponseWriter.WriteHeader(w.status)
		w.ResponseWriter.Write(w.content.Bytes())
	}
}
