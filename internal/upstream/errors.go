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

// An AuthError reports that a server requires credentials or rejected them.
type AuthError struct {
	Server    string
	Status    int    // 401 or 403
	Challenge string // WWW-Authenticate header of the response
	Next      string // what the user can do, from a [NextStepper]; may be ""
	Err       error
}

func (e *AuthError) Error() string {
	next := cmp.Or(e.Next, "check its headers, or sign in to the server")
	return fmt.Sprintf("server %q refused access (%d %s): %s", e.Server, e.Status, http.StatusText(e.Status), next)
}

// Unwrap returns the transport's error.
func (e *AuthError) Unwrap() error { return e.Err }

// A NotAllowedError is returned by a [Spawner] if the server must not start
// because a permission was revoked. The next use of the server tries again.
type NotAllowedError struct{ Reason string }

func (e *NotAllowedError) Error() string { return e.Reason }

// An OutcomeUnknownError reports that a call was sent but got no response, so
// the tool may have run. This package never retries such a call.
type OutcomeUnknownError struct {
	Server string
	Tool   string
	Err    error
}

func (e *OutcomeUnknownError) Error() string {
	return fmt.Sprintf("tool %q of server %q: %v; it may have run and was not called again", e.Tool, e.Server, e.Err)
}

// Unwrap returns the reason why there was no response.
func (e *OutcomeUnknownError) Unwrap() error { return e.Err }

// displayError wraps an error with a message that is safe to display.
type displayError struct {
	text   string
	err    error
	status int // last HTTP status that rejected a request, or 0
}

func (e *displayError) Error() string { return e.text }
func (e *displayError) Unwrap() error { return e.err }

// timeoutError reports that an operation timed out.
type timeoutError struct {
	what  string
	limit time.Duration
}

func (e *timeoutError) Error() string { return fmt.Sprintf("%s within %v", e.what, e.limit) }

// Is reports whether target is [context.DeadlineExceeded].
func (e *timeoutError) Is(target error) bool { return target == context.DeadlineExceeded }

const (
	stderrLines    = 5
	stderrLineSize = 300
)

// dialError returns an error that describes a failed attempt, the reason, and
// the last lines of standard error. If the server requires credentials, it
// returns an [*AuthError].
func dialError(c *Config, u, typ string, l *link, err error) error {
	status := 0
	if l != nil {
		l.mu.Lock()
		challenge := l.challenge
		status = l.status
		l.mu.Unlock()
		if (status == http.StatusUnauthorized || status == http.StatusForbidden) && !isTimeout(err) && localError(err) == nil {
			return &AuthError{Server: c.Name, Status: status, Challenge: truncate(redactText(c, challenge), 500), Next: l.nextStep(), Err: transportError(err)}
		}
	}
	var b strings.Builder
	reason := failureReason(c, l, err)
	fmt.Fprintf(&b, "connect to server %q", c.Name)
	switch {
	case u != "":
		fmt.Fprintf(&b, " at %s", displayURL(u))
	case c.Command != "" && !strings.Contains(reason, fmt.Sprintf("command %q", c.Command)):
		fmt.Fprintf(&b, " with the command %q", c.Command)
	}
	if typ != "" && typ != Stdio {
		fmt.Fprintf(&b, " (%s)", typ)
	}
	b.WriteString(": " + reason)
	if l != nil {
		for _, w := range l.warnings()[:min(1, len(l.warnings()))] {
			b.WriteString("; " + w)
		}
		b.WriteString(lastLines(l.stderr()))
	}
	return &displayError{redactText(c, b.String()), transportError(err), status}
}

// failureReason briefly describes why a connection failed or ended.
func failureReason(c *Config, l *link, err error) string {
	if local := localError(err); local != nil {
		return local.Error()
	}
	var wire *jsonrpc.Error
	if errors.As(err, &wire) && !isSDKError(wire) {
		return fmt.Sprintf("server answered: %s (%d)", truncate(redactSecrets(c, wire.Message), 500), wire.Code)
	}
	if private := (*PrivateAddressError)(nil); errors.As(err, &private) {
		return private.Error()
	}
	if l != nil {
		l.mu.Lock()
		broken, status, proc, elsewhere := l.readErr, l.status, l.process, l.otherHostErr
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
		if status != 0 && !isTimeout(err) {
			return fmt.Sprintf("server answered %d %s", status, http.StatusText(status))
		}
		if cause := context.Cause(l.ctx); cause != nil && !errors.Is(cause, errEnded) && !isTimeout(err) {
			return cause.Error()
		}
		if errors.Is(broken, io.EOF) {
			return "server closed the connection"
		}
		if broken != nil {
			return "connection broken: " + truncate(redactSecrets(c, broken.Error()), 500)
		}
	}
	return unsentReason(err)
}

// unsentReason returns the message of err without the method and the address,
// which the SDK and package http put before the reason.
func unsentReason(err error) string {
	const rejected = "rejected by transport: "
	text := err.Error()
	i := strings.LastIndex(text, rejected)
	if i < 0 {
		return text
	}
	text = text[i+len(rejected):]
	if request, ok := errors.AsType[*url.Error](err); ok && strings.HasSuffix(text, request.Error()) {
		return request.Err.Error()
	}
	return text
}

// isSDKError reports whether the SDK created e, rather than a server. Servers
// use the SDK's error codes too, so it also compares the messages.
func isSDKError(e *jsonrpc.Error) bool {
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

// transportError wraps err so that errors.As does not find a protocol error
// that the SDK created. Callers would mistake it for an error from the server.
func transportError(err error) error {
	if wire := (*jsonrpc.Error)(nil); errors.As(err, &wire) && isSDKError(wire) {
		return &sdkError{err}
	}
	return err
}

// sdkError wraps an error whose tree contains a protocol error of the SDK, and
// hides that error from [errors.As].
type sdkError struct{ err error }

func (e *sdkError) Error() string        { return e.err.Error() }
func (e *sdkError) Is(target error) bool { return errors.Is(e.err, target) }

// As finds any error in the tree except a [*jsonrpc.Error].
func (e *sdkError) As(target any) bool {
	if _, protocol := target.(**jsonrpc.Error); protocol {
		return false
	}
	return errors.As(e.err, target)
}

func isTimeout(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}

// shouldTrySSE reports whether the server may support only HTTP+SSE: streamable
// HTTP failed with status 400, 404 or 405 and without a protocol error.
func shouldTrySSE(err error) bool {
	var wire *jsonrpc.Error
	if errors.As(err, &wire) && !isSDKError(wire) {
		return false
	}
	var s *displayError
	if !errors.As(err, &s) || errors.Is(err, mcp.ErrSessionMissing) {
		return false
	}
	return s.status == http.StatusBadRequest || s.status == http.StatusNotFound || s.status == http.StatusMethodNotAllowed
}

// lastLines formats the last lines of standard error to append to an error
// message.
func lastLines(stderr string) string {
	lines := strings.FieldsFunc(stderr, func(r rune) bool { return r == '\n' || r == '\r' })
	if len(lines) > stderrLines {
		lines = lines[len(lines)-stderrLines:]
	}
	var b strings.Builder
	for _, line := range lines {
		if line = strings.TrimSpace(line); line != "" {
			b.WriteString("\n  stderr: " + truncate(line, stderrLineSize))
		}
	}
	return b.String()
}

// truncate truncates s to n bytes and replaces control characters except
// newlines and tabs.
func truncate(s string, n int) string {
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

// displayURL returns the scheme and host of a URL for display. It omits the
// rest, which may be secret.
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
