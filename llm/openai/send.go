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

	"github.com/loadout-dev/loadout/internal/retryafter"
	"github.com/loadout-dev/loadout/llm"
)

// newPoster returns a function that sends a request body once. The function does
// not retry, because only the caller knows whether that is safe. It does not
// follow redirects, because no other host may receive the key and the
// conversation.
func newPoster(base, key string, client *http.Client) func(context.Context, []byte) (*http.Response, error) {
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
		return checkResponse(res)
	}
}

// send sends a request and returns the response, whose body is the stream.
func (m *model) send(ctx context.Context, body []byte) (*http.Response, error) {
	res, err := m.post(ctx, body)
	switch e, ok := errors.AsType[*llm.StatusError](err); {
	case ok:
		e.Vendor, e.Message = m.quirks.Vendor, m.redactKey(e.Message)
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

// redactKey redacts the key in text returned by a server, because some servers
// echo it.
func (m *model) redactKey(text string) string {
	if m.key != "" {
		text = strings.ReplaceAll(text, m.key, "[key]")
	}
	return text
}

const (
	maxRefusal = 64 << 10 // maximum number of bytes read from an error response
	maxMessage = 500      // maximum number of characters shown of text that is not a protocol error
)

// checkResponse returns an error if the response is not a stream.
func checkResponse(res *http.Response) (*http.Response, error) {
	kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	if res.StatusCode == http.StatusOK && kind != "text/html" && kind != "application/json" {
		return res, nil // some servers send streams as text/plain
	}
	defer res.Body.Close()
	b, _ := io.ReadAll(io.LimitReader(res.Body, maxRefusal)) // partial text is more helpful than a read error
	e := statusError(b)
	if e == nil {
		e = &llm.StatusError{Message: responseText(kind, b)}
		if res.StatusCode == http.StatusOK && kind == "application/json" {
			e.Message = "response is not a stream"
		}
	}
	e.After = retryafter.Parse(res.Header)
	if res.StatusCode != http.StatusOK || e.Code == 0 {
		e.Code = res.StatusCode
	}
	return nil, e
}

// responseText returns a message for a response that is neither a stream nor a
// protocol error.
func responseText(kind string, b []byte) string {
	if kind == "text/html" {
		return "response is a web page; check the base URL, which usually ends in /v1"
	}
	text := strings.Join(strings.Fields(strings.ToValidUTF8(string(b), "")), " ")
	if text == "" {
		return "no reason given"
	}
	if runes := []rune(text); len(runes) > maxMessage {
		text = string(runes[:maxMessage]) + "…"
	}
	return text
}

// statusError parses the error in a response or a chunk, in any of the formats
// that servers use. It returns nil if there is no error.
func statusError(data []byte) *llm.StatusError {
	var reply struct {
		Error   json.RawMessage `json:"error"`
		Object  string          `json:"object"`
		Message string          `json:"message"` // vLLM sends it with object "error"
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
		detail.Message = responseText("", reply.Error)
	}
	return newStatusError(detail.Message, detail.Type, detail.Code)
}

// newStatusError returns a [*llm.StatusError]. code is an HTTP status code on
// some servers and a name on others.
func newStatusError(msg, kind string, code json.RawMessage) *llm.StatusError {
	e := &llm.StatusError{Kind: kind, Message: responseText("", []byte(msg))}
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

// codes maps error kinds to HTTP status codes, for errors in a stream.
var codes = map[string]int{
	"server_error": 500, "internal_server_error": 500, "overloaded_error": 503, "service_unavailable_error": 503,
	"rate_limit_error": 429, "rate_limit_exceeded": 429, "insufficient_quota": 429,
	"invalid_request_error": 400, "authentication_error": 401,
}
