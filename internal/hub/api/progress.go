package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"sync"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/loadout-dev/loadout/internal/hub/library"
)

const (
	eventStream         = "text/event-stream"
	progressDescription = "With Accept: " + eventStream + ", the response is a stream of server-sent events: progress, as in the schema Progress, any number of times; then result, as in the JSON response, or problem, as in the schema Problem. A request that is refused at once gets the JSON response."
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
		stream := &progressWriter{ResponseWriter: w, status: http.StatusOK}
		defer stream.end()
		next(humago.NewContext(ctx.Operation(), r.WithContext(library.WithProgress(ctx.Context(), stream.report)), stream))
	})
	return op
}

// progressWriter becomes an event stream when the operation first reports progress.
// Then it sends the response as the last event.
type progressWriter struct {
	http.ResponseWriter

	mu      sync.Mutex
	begun   bool
	status  int
	content bytes.Buffer // response of a stream
}

// Unwrap supports [http.ResponseController].
func (w *progressWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *progressWriter) WriteHeader(status int) {
	if !w.begun {
		w.ResponseWriter.WriteHeader(status)
	}
	w.status = status
}

func (w *progressWriter) Write(p []byte) (int, error) {
	if w.begun {
		return w.content.Write(p)
	}
	return w.ResponseWriter.Write(p)
}

// report sends progress. It ignores errors, which mean that the client has
// disconnected; the request is canceled then.
func (w *progressWriter) report(p library.Progress) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.begun {
		w.begun = true
		w.Header().Set("Content-Type", eventStream)
		w.Header().Set("X-Accel-Buffering", "no") // disable buffering in proxies
	}
	data, err := json.Marshal(p)
	if err == nil {
		w.send("progress", data)
	}
}

func (w *progressWriter) send(event string, data []byte) {
	fmt.Fprintf(w.ResponseWriter, "event: %s\ndata: %s\n\n", event, data)
	http.NewResponseController(w.ResponseWriter).Flush() // not supported by every server
}

// end sends the response if the operation has reported progress.
func (w *progressWriter) end() {
	if !w.begun {
		return
	}
	event := "result"
	if w.status >= http.StatusBadRequest {
		event = "problem"
	}
	w.send(event, bytes.TrimSpace(w.content.Bytes()))
}
