package anthropic

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/loadout-dev/loadout/llm"
)

// fault is an error as the vendor describes it.
type fault struct {
	Type    string `json:"type"`
	Message string `json:"message"`
}

// codes maps the error types to HTTP statuses, for errors that arrive inside a
// stream.
var codes = map[string]int{
	"invalid_request_error": 400, "authentication_error": 401, "billing_error": 402, "permission_error": 403,
	"not_found_error": 404, "request_too_large": 413, "rate_limit_error": 429, "api_error": 500,
	"timeout_error": 504, "overloaded_error": 529,
}

// next maps HTTP statuses to hints for the user.
var next = map[int]string{
	http.StatusUnauthorized: "the key was not taken: check ANTHROPIC_API_KEY, or the key in the configuration",
	http.StatusNotFound:     "check the name of the model, and the base URL",
}

// failed returns the error of an error event.
func (m *Model) failed(e *event) error {
	f := e.Error
	if f == nil {
		f = &fault{Message: "it did not say why"}
	}
	code, ok := codes[f.Type]
	if !ok {
		code = http.StatusInternalServerError
	}
	return m.status(code, f, 0)
}

// refused returns the error of a response that is not an answer.
func (m *Model) refused(res *http.Response) error {
	body, _ := io.ReadAll(io.LimitReader(res.Body, 64<<10))
	var said struct {
		Error *fault `json:"error"`
	}
	if err := json.Unmarshal(body, &said); err != nil || said.Error == nil {
		said.Error = &fault{Message: string(body)}
	}
	if res.StatusCode/100 == 3 {
		said.Error = &fault{Message: "it points elsewhere, where the key is not taken: give the base URL that it points to"}
	}
	return m.status(res.StatusCode, said.Error, after(res.Header))
}

func (m *Model) status(code int, f *fault, wait time.Duration) error {
	msg := plain(m.conceal(f.Message), 1000)
	if msg == "" {
		msg = http.StatusText(code)
	}
	if more, ok := next[code]; ok {
		msg += ": " + more
	}
	return &llm.StatusError{Vendor: vendor, Code: code, Kind: plain(m.conceal(f.Type), 100), Message: msg, After: wait}
}

// plain returns a server's text as one line of at most limit characters,
// without control characters.
func plain(s string, limit int) string {
	s = strings.Join(strings.FieldsFunc(s, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }), " ")
	if cut := []rune(s); len(cut) > limit {
		s = string(cut[:limit]) + "…"
	}
	return s
}

// after returns how long the vendor asks to wait.
func after(h http.Header) time.Duration {
	for name, unit := range map[string]time.Duration{"Retry-After-Ms": time.Millisecond, "Retry-After": time.Second} {
		if n, err := strconv.ParseFloat(h.Get(name), 64); err == nil && n > 0 {
			return time.Duration(min(n, 1e6) * float64(unit))
		}
	}
	if t, err := http.ParseTime(h.Get("Retry-After")); err == nil {
		return max(0, time.Until(t))
	}
	return 0
}

// why returns an error without secrets, or the context's cause if the context
// ended.
func (m *Model) why(ctx context.Context, err error) error {
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

// conceal redacts keys and header values in text.
func (m *Model) conceal(text string) string { return m.redactor.String(text) }
