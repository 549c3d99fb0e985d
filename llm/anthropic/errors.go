package anthropic

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/loadout-dev/loadout/llm"
)

// fault is an error in the vendor's words.
type fault struct {
	Type    string `json:"type"`
	Message string `json:"message"`
}

// codes are what the kinds of errors have as HTTP status, where they come in a
// stream that began well.
var codes = map[string]int{
	"invalid_request_error": 400, "authentication_error": 401, "billing_error": 402, "permission_error": 403,
	"not_found_error": 404, "request_too_large": 413, "rate_limit_error": 429, "api_error": 500,
	"timeout_error": 504, "overloaded_error": 529,
}

// next is what may help.
var next = map[int]string{
	http.StatusUnauthorized: "the key was not taken: check ANTHROPIC_API_KEY, or the key in the configuration",
	http.StatusNotFound:     "check the name of the model, and the base URL",
}

// failed is an error that came as an event.
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

// refused is what a response that is no answer says.
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

// plain is a text of a server as one line of limited length, without what could
// move a terminal's cursor.
func plain(s string, limit int) string {
	s = strings.Join(strings.FieldsFunc(s, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }), " ")
	if cut := []rune(s); len(cut) > limit {
		s = string(cut[:limit]) + "…"
	}
	return s
}

// after is how long the vendor asks to wait.
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

// why is an error without secrets; the context's cause where that ended it.
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

const concealed = "•••"

// conceal takes what is secret out of a text, the longest first.
func (m *Model) conceal(text string) string {
	secrets := slices.Clone(m.secrets)
	slices.SortFunc(secrets, func(a, b string) int { return len(b) - len(a) })
	for _, s := range secrets {
		if len(s) >= 4 {
			text = strings.ReplaceAll(text, s, concealed)
		}
	}
	return text
}
