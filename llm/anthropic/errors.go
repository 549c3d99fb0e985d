package anthropic

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
	"unicode"

	"github.com/loadout-dev/loadout/internal/retryafter"
	"github.com/loadout-dev/loadout/llm"
)

// fault is an error in the vendor's JSON format.
type fault struct {
	Type    string `json:"type"`
	Message string `json:"message"`
}

// codes maps the vendor's error types to HTTP status codes, for errors in a
// stream.
var codes = map[string]int{
	"invalid_request_error": 400, "authentication_error": 401, "billing_error": 402, "permission_error": 403,
	"not_found_error": 404, "request_too_large": 413, "rate_limit_error": 429, "api_error": 500,
	"timeout_error": 504, "overloaded_error": 529,
}

// hints maps HTTP status codes to hints for the user.
var hints = map[int]string{
	http.StatusUnauthorized: "the key was rejected: check ANTHROPIC_API_KEY, or the key in the configuration",
	http.StatusNotFound:     "check the name of the model, and the base URL",
}

// eventError converts an error event to an error.
func (m *model) eventError(e *event) error {
	f := e.Error
	if f == nil {
		f = &fault{Message: "no reason given"}
	}
	code, ok := codes[f.Type]
	if !ok {
		code = http.StatusInternalServerError
	}
	return m.statusError(code, f, 0)
}

// responseError converts a failed HTTP response to an error.
func (m *model) responseError(res *http.Response) error {
	body, _ := io.ReadAll(io.LimitReader(res.Body, 64<<10))
	var said struct {
		Error *fault `json:"error"`
	}
	if err := json.Unmarshal(body, &said); err != nil || said.Error == nil {
		said.Error = &fault{Message: string(body)}
	}
	if res.StatusCode/100 == 3 {
		said.Error = &fault{Message: "redirects are not followed, because the key must not go to another host: use the base URL of the redirect"}
	}
	return m.statusError(res.StatusCode, said.Error, retryafter.Parse(res.Header))
}

func (m *model) statusError(code int, f *fault, wait time.Duration) error {
	msg := plainLine(m.conceal(f.Message), 1000)
	if msg == "" {
		msg = http.StatusText(code)
	}
	if more, ok := hints[code]; ok {
		msg += ": " + more
	}
	return &llm.StatusError{Vendor: vendor, Code: code, Kind: plainLine(m.conceal(f.Type), 100), Message: msg, After: wait}
}

// plainLine removes control characters and line breaks from server text and
// truncates it to limit characters.
func plainLine(s string, limit int) string {
	s = strings.Join(strings.FieldsFunc(s, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }), " ")
	if cut := []rune(s); len(cut) > limit {
		s = string(cut[:limit]) + "…"
	}
	return s
}

// streamError redacts secrets in an error. If ctx is done, it returns the cause
// of ctx instead.
func (m *model) streamError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		err = context.Cause(ctx)
		if errors.Is(err, errIdle) {
			return fmt.Errorf("anthropic: %w", err)
		}
		return err
	}
	if errors.Is(err, bufio.ErrTooLong) {
		return errLong
	}
	if err == nil {
		return nil
	}
	if text := err.Error(); m.conceal(text) != text {
		return errors.New(m.conceal(text))
	}
	return err
}

// conceal redacts the key and the header values in text.
func (m *model) conceal(text string) string { return m.redactor.String(text) }
