package openai

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/loadout-dev/loadout/llm"
)

// poster returns a function that sends the body of a request once. Only the
// caller may retry a request that may have been answered. It does not follow
// redirects, because another host must receive neither the key nor the
// conversation.
func poster(base, key string, client *http.Client) func(context.Context, []byte) (*http.Response, error) {
	once := http.Client{}
	if client != nil {
		once = *client
	}
	once.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	url := strings.TrimRight(base, "/") + "/chat/completions"
	return func(ctx context.Context, body []byte) (*http.Response, error) {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
		if err != nil {
			return nil, err
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "text/event-stream")
		if key != "" {
			r.Header.Set("Authorization", "Bearer "+key)
		}
		res, err := once.Do(r)
		if err != nil {
			return nil, err
		}
		return streaming(res)
	}
}

// send returns the response with the stream as its body.
func (m *Model) send(ctx context.Context, body []byte) (*http.Response, error) {
	res, err := m.post(ctx, body)
	switch e, ok := errors.AsType[*llm.StatusError](err); {
	case ok:
		e.Vendor, e.Message = m.quirks.Vendor, m.clean(e.Message)
		return nil, e
	case ctx.Err() != nil:
		if err == nil {
			res.Body.Close()
		}
		return nil, context.Cause(ctx)
	case err != nil:
		return nil, fmt.Errorf("connect to %s: %w", m.quirks.Vendor, err)
	}
	return res, nil
}

// clean removes the key from a server's text, because some servers repeat it.
func (m *Model) clean(text string) string {
	if m.key != "" {
		text = strings.ReplaceAll(text, m.key, "[key]")
	}
	return text
}

const (
	maxRefusal = 64 << 10 // bytes read from an error response
	maxMessage = 500      // characters shown of a text that is not a protocol error
)

// streaming returns an error for every response that is not a stream.
func streaming(res *http.Response) (*http.Response, error) {
	kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	if res.StatusCode == http.StatusOK && kind != "text/html" && kind != "application/json" {
		return res, nil // some servers send streams as plain text
	}
	defer res.Body.Close()
	b, _ := io.ReadAll(io.LimitReader(res.Body, maxRefusal)) // ignore read errors: a partial text explains more
	e := statusError(b)
	if e == nil {
		e = &llm.StatusError{Message: plain(kind, b)}
		if res.StatusCode == http.StatusOK && kind == "application/json" {
			e.Message = "it answered in one piece, where a stream was asked for"
		}
	}
	e.After = after(res.Header)
	if res.StatusCode != http.StatusOK || e.Code == 0 {
		e.Code = res.StatusCode
	}
	return nil, e
}

// plain returns a message for a response that is neither a stream nor a
// protocol error.
func plain(kind string, b []byte) string {
	if kind == "text/html" {
		return "it answered with a web page; check the base URL, which mostly ends in /v1"
	}
	text := strings.Join(strings.Fields(strings.ToValidUTF8(string(b), "")), " ")
	if text == "" {
		return "it gave no reason"
	}
	if runes := []rune(text); len(runes) > maxMessage {
		text = string(runes[:maxMessage]) + "…"
	}
	return text
}

// statusError parses the error of a response or a chunk in any of the forms
// that servers use. It returns nil if there is none.
func statusError(data []byte) *llm.StatusError {
	var reply struct {
		Error   json.RawMessage `json:"error"`
		Object  string          `json:"object"`
		Message string          `json:"message"` // sent by vLLM beside object "error"
		Type    string          `json:"type"`
		Code    json.RawMessage `json:"code"`
	}
	if json.Unmarshal(data, &reply) != nil {
		return nil
	}
	switch string(reply.Error) {
	case "", "null", `""`, "{}":
		if reply.Object != "error" {
			return nil
		}
		return newStatusError(reply.Message, reply.Type, reply.Code)
	}
	var detail struct {
		Message string          `json:"message"`
		Type    string          `json:"type"`
		Code    json.RawMessage `json:"code"`
	}
	if json.Unmarshal(reply.Error, &detail.Message) != nil && json.Unmarshal(reply.Error, &detail) != nil {
		detail.Message = plain("", reply.Error)
	}
	return newStatusError(detail.Message, detail.Type, detail.Code)
}

// newStatusError returns an error with the given fields. The code is an HTTP
// status on some servers and a name on others.
func newStatusError(msg, kind string, code json.RawMessage) *llm.StatusError {
	e := &llm.StatusError{Kind: kind, Message: plain("", []byte(msg))}
	name := string(bytes.Trim(code, `"`))
	if n, err := strconv.Atoi(name); err == nil {
		e.Code = n
	} else if e.Kind == "" && name != "null" {
		e.Kind = name
	}
	if e.Code == 0 {
		e.Code = codes[e.Kind]
	}
	return e
}

// codes maps the kinds of errors to HTTP statuses, for errors inside a stream.
var codes = map[string]int{
	"server_error": 500, "internal_server_error": 500, "overloaded_error": 503, "service_unavailable_error": 503,
	"rate_limit_error": 429, "rate_limit_exceeded": 429, "insufficient_quota": 429,
	"invalid_request_error": 400, "authentication_error": 401,
}

// maxAfter limits the delay that a server may ask for.
const maxAfter = 24 * time.Hour

// after returns how long the server asks to wait. It ignores dates, because
// clocks differ.
func after(h http.Header) time.Duration {
	for _, unit := range []struct {
		header string
		length time.Duration
	}{{"Retry-After-Ms", time.Millisecond}, {"Retry-After", time.Second}} {
		n, err := strconv.ParseFloat(h.Get(unit.header), 64)
		if err == nil && n > 0 {
			return time.Duration(min(n, float64(maxAfter/unit.length)) * float64(unit.length))
		}
	}
	return 0
}
