package anthropic

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"mime"
	"net/http"
	"strings"
	"time"

	"github.com/anthropics/anthropic-sdk-go/option"
	"github.com/anthropics/anthropic-sdk-go/packages/ssestream"

	"github.com/loadout-dev/loadout/llm"
)

// maxAnswer is the maximum size of a response in bytes. It allows for the
// longest responses of current models, with an overhead of about 130 bytes for
// each streamed piece. The vendor's library limits a line to half that size.
const maxAnswer = 64 << 20

var (
	errIdle = errors.New("server sent no data before the idle timeout: try again, or raise the timeout")
	errLong = fmt.Errorf("answer too long (limit %d MiB, or %d MiB per line)", maxAnswer>>20, maxAnswer>>21)
)

// Stream implements [llm.Model]. It does not retry; see [llm.Retry].
//
// A response is limited to 64 MiB, and each of its lines to 32 MiB. A tool name
// must be 1 to 128 of a-z, A-Z, 0-9, _ and -, and at least one message must
// have content; otherwise nothing is sent. Images other than JPEG, PNG, GIF and
// WebP are replaced by a note.
//
// [llm.Request.Thinking] is raised to at least 1,024 and limited to three
// quarters of the response limit. From version 4.6 on, models get an effort
// level instead: low up to 2,048 tokens, medium up to 8,192, high above.
func (m *model) Stream(ctx context.Context, r *llm.Request) iter.Seq2[llm.Event, error] {
	return func(yield func(llm.Event, error) bool) {
		body, err := m.render(r)
		if err != nil {
			yield(nil, err)
			return
		}
		own, stop := context.WithCancelCause(ctx)
		defer stop(nil)
		idle := time.AfterFunc(m.idle, func() { stop(errIdle) })
		defer idle.Stop()

		res, err := m.send(own, body, func() { idle.Reset(m.idle) })
		if err != nil {
			yield(nil, m.streamError(own, err))
			return
		}
		defer res.Body.Close()
		m.read(own, res, yield)
	}
}

// send sends a request and returns the response once the server has started to
// stream. The response body is limited in size. Each read from it calls alive.
func (m *model) send(ctx context.Context, body []byte, alive func()) (*http.Response, error) {
	var res *http.Response
	admit := func(req *http.Request, next option.MiddlewareNext) (*http.Response, error) {
		res, err := next(req)
		if err != nil {
			return nil, err
		}
		if err := m.checkResponse(res); err != nil {
			res.Body.Close()
			return nil, err
		}
		res.Body = &limitedBody{ReadCloser: res.Body, left: maxAnswer, alive: alive}
		return res, nil
	}
	err := m.client.Post(ctx, "v1/messages", body, &res, option.WithJSONSet("stream", true), option.WithMiddleware(admit))
	return res, err
}

// checkResponse returns an error if the response is not an event stream.
func (m *model) checkResponse(res *http.Response) error {
	if res.StatusCode != http.StatusOK {
		return m.responseError(res)
	}
	kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	if kind != "text/event-stream" {
		return fmt.Errorf("%s sent %.80q instead of an event stream: check that the base URL serves the Messages API", res.Request.URL.Host, kind)
	}
	return nil
}

// limitedBody is a response body that fails with errLong if it exceeds a given
// number of bytes.
type limitedBody struct {
	io.ReadCloser
	left  int
	alive func()
}

func (b *limitedBody) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errLong
	}
	n, err := b.ReadCloser.Read(p[:min(len(p), b.left)])
	if b.left -= n; n > 0 {
		b.alive()
	}
	return n, err
}

// read yields the events of a response until the response is complete.
func (m *model) read(ctx context.Context, res *http.Response, yield func(llm.Event, error) bool) {
	var a answer
	begun := false
	fail := func(err error) {
		switch err = m.streamError(ctx, err); {
		case begun:
			yield(nil, &llm.CutError{Answer: a.whole(), Err: err})
		case err == nil:
			yield(nil, fmt.Errorf("anthropic: connection closed before the answer: %w", io.ErrUnexpectedEOF))
		default:
			yield(nil, err)
		}
	}
	events := ssestream.NewDecoder(res)
	for events.Next() {
		e, err := m.addEvent(&a, events.Event())
		if err != nil {
			fail(err)
			return
		}
		if e != nil {
			begun = true
			if !yield(e, nil) {
				return
			}
		}
		if a.done {
			m.finish(&a, yield)
			return
		}
	}
	if err := events.Err(); err != nil || a.stop == "" {
		fail(err)
		return
	}
	a.done = true // only the final event is missing
	m.finish(&a, yield)
}

func (m *model) finish(a *answer, yield func(llm.Event, error) bool) {
	whole := a.whole()
	m.log.Debug("a model answered", "model", m.Name(), "stop", a.stop, "input", whole.Usage.Input,
		"cache_read", whole.Usage.CacheRead, "cache_write", whole.Usage.CacheWrite, "output", whole.Usage.Output)
	yield(llm.Done{Answer: whole}, nil)
}

// addEvent adds a server event to the response. It returns the event to yield,
// or nil. Unknown events are ignored.
func (m *model) addEvent(a *answer, raw ssestream.Event) (llm.Event, error) {
	data := strings.TrimSpace(string(raw.Data))
	if raw.Type == "ping" || data == "" || data == "[DONE]" {
		return nil, nil
	}
	var e event
	if err := json.Unmarshal([]byte(data), &e); err != nil {
		return nil, fmt.Errorf("anthropic: read event: %w", err)
	}
	if e.Type == "error" || raw.Type == "error" {
		return nil, m.eventError(&e)
	}
	return a.addEvent(&e)
}
