package upstream

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// AuthError reports that a server requires credentials or rejected them.
type AuthError struct {
	Server    string
	Status    int    // 401 or 403
	Challenge string // WWW-Authenticate header of the answer
	Next      string // what the user can do, from a [NextStepper]; may be ""
	Err       error
}

func (e *AuthError) Error() string {
	next := cmp.Or(e.Next, "check its headers or sign in to it")
	return fmt.Sprintf("server %q refused access (%d %s): %s", e.Server, e.Status, http.StatusText(e.Status), next)
}

// Unwrap returns the transport's error.
func (e *AuthError) Unwrap() error { return e.Err }

// A NotAllowedError of a [Spawner] reports that the server may not start for
// now, because a permission was revoked. The next use tries again.
type NotAllowedError struct{ Reason string }

func (e *NotAllowedError) Error() string { return e.Reason }

// OutcomeUnknownError reports that a call was sent but not answered, so the
// tool may or may not have run. This package never repeats such a call.
type OutcomeUnknownError struct {
	Server string
	Tool   string
	Err    error
}

func (e *OutcomeUnknownError) Error() string {
	return fmt.Sprintf("tool %q of server %q: %v; it may have run and was not called again", e.Tool, e.Server, e.Err)
}

// Unwrap returns the reason.
func (e *OutcomeUnknownError) Unwrap() error { return e.Err }

// displayError has a text that is safe to display, and a chain for programs.
type displayError struct {
	text   string
	err    error
	status int // of the last HTTP answer, if it was a refusal
}

func (e *displayError) Error() string { return e.text }
func (e *displayError) Unwrap() error { return e.err }

// timeoutError reports that something exceeded a timeout.
type timeoutError struct {
	what  string
	limit time.Duration
}

func (e *timeoutError) Error() string { return fmt.Sprintf("%s within %v", e.what, e.limit) }

// Is matches [context.DeadlineExceeded].
func (e *timeoutError) Is(target error) bool { return target == context.DeadlineExceeded }

const (
	stderrLines    = 5
	stderrLineSize = 300
)

// dialError returns an error with the attempt, the reason, and the last output
// of the server.
func dialError(c *Config, u, typ string, l *link, err error) error {
	status := 0
	if l != nil {
		l.mu.Lock()
		challenge := l.challenge
		status = l.status
		l.mu.Unlock()
		if (status == http.StatusUnauthorized || status == http.StatusForbidden) && !timedOut(err) {
			return &AuthError{Server: c.Name, Status: status, Challenge: clip(scrub(c, challenge), 500), Next: l.next(), Err: transportError(err)}
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "connect to server %q", c.Name)
	switch {
	case u != "":
		fmt.Fprintf(&b, " at %s", displayURL(u))
	case c.Command != "":
		fmt.Fprintf(&b, " with the command %q", c.Command)
	}
	if typ != "" && typ != Stdio {
		fmt.Fprintf(&b, " (%s)", typ)
	}
	b.WriteString(": ")
	b.WriteString(reason(c, l, err))
	if l != nil {
		for _, w := range l.warnings()[:min(1, len(l.warnings()))] {
			b.WriteString("; " + w)
		}
		b.WriteString(tail(l.stderr()))
	}
	return &displayError{scrub(c, b.String()), err, status}
}

// reason returns a short description of why a connection failed or ended.
func reason(c *Config, l *link, err error) string {
	var wire *jsonrpc.Error
	if errors.As(err, &wire) && !internalCode(wire) {
		return fmt.Sprintf("server answered: %s (%d)", clip(conceal(c, wire.Message), 500), wire.Code)
	}
	if private := (*PrivateAddressError)(nil); errors.As(err, &private) {
		return private.Error()
	}
	if l != nil {
		l.mu.Lock()
		broken, status, proc, elsewhere := l.broken, l.status, l.proc, l.elsewhere
		l.mu.Unlock()
		if elsewhere != nil {
			return elsewhere.Error()
		}
		if ended := (*endedError)(nil); errors.Is(broken, errTooBig) || errors.As(broken, &ended) {
			return broken.Error()
		}
		if e, ok := proc.(interface{ Exited() string }); ok && broken != nil {
			if how := e.Exited(); how != "" {
				return "the command " + how
			}
		}
		if broken != nil && proc != nil {
			return "the command closed its output"
		}
		if status != 0 && !timedOut(err) {
			return fmt.Sprintf("server answered %d %s", status, http.StatusText(status))
		}
		if cause := context.Cause(l.ctx); cause != nil && !errors.Is(cause, errEnded) && !timedOut(err) {
			return cause.Error()
		}
		if errors.Is(broken, io.EOF) {
			return "server closed the connection"
		}
		if broken != nil {
			return "connection broken: " + clip(conceal(c, broken.Error()), 500)
		}
	}
	return err.Error()
}

// internalCode reports whether the SDK made up an error that looks like one of
// the server.
func internalCode(e *jsonrpc.Error) bool {
	switch e.Code {
	case -32005:
		return e.Message == "rejected by transport"
	case -32004:
		return e.Message == "server is closing"
	case -32003:
		return e.Message == "client is closing"
	}
	return false
}

// transportError hides an SDK error that looks like one of the server from
// errors.As.
func transportError(err error) error {
	if wire := (*jsonrpc.Error)(nil); errors.As(err, &wire) && internalCode(wire) {
		return errors.New(err.Error())
	}
	return err
}

func timedOut(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}

// triesOlder reports whether the server may only support HTTP+SSE: streamable
// HTTP failed with 400, 404 or 405 and no protocol error.
func triesOlder(err error) bool {
	var wire *jsonrpc.Error
	if errors.As(err, &wire) && !internalCode(wire) {
		return false
	}
	var s *displayError
	if !errors.As(err, &s) || errors.Is(err, mcp.ErrSessionMissing) {
		return false
	}
	return s.status == http.StatusBadRequest || s.status == http.StatusNotFound || s.status == http.StatusMethodNotAllowed
}

// tail returns the last lines of standard error, each on its own line.
func tail(stderr string) string {
	lines := strings.FieldsFunc(stderr, func(r rune) bool { return r == '\n' || r == '\r' })
	if len(lines) > stderrLines {
		lines = lines[len(lines)-stderrLines:]
	}
	var b strings.Builder
	for _, line := range lines {
		if line = strings.TrimSpace(line); line != "" {
			b.WriteString("\n  stderr: " + clip(line, stderrLineSize))
		}
	}
	return b.String()
}

// clip shortens a text to n bytes and replaces control characters.
func clip(s string, n int) string {
	if len(s) > n {
		s = s[:n] + "…"
	}
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' && r != '\t' || r == 0x7f {
			return '·'
		}
		return r
	}, strings.ToValidUTF8(s, "·"))
}

// displayURL returns the scheme and host of a URL. The rest may be secret.
func displayURL(raw string) string {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" {
		return "an invalid URL"
	}
	s := u.Scheme + "://" + u.Host
	if u.Path != "" && u.Path != "/" || u.RawQuery != "" {
		s += "/…"
	}
	return s
}
