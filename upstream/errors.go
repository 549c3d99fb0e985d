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

// AuthError says that a server wants credentials that it was not given, or does
// not accept those that it was.
type AuthError struct {
	Server    string
	Status    int    // 401 or 403
	Challenge string // WWW-Authenticate of the answer
	Next      string // what a person can do, of a [Guide]; may be ""
	Err       error
}

func (e *AuthError) Error() string {
	next := cmp.Or(e.Next, "check its headers or sign in to it")
	return fmt.Sprintf("server %q refuses us (%d %s): %s", e.Server, e.Status, http.StatusText(e.Status), next)
}

// Unwrap gives what the transport said.
func (e *AuthError) Unwrap() error { return e.Err }

// A NotAllowedError of a [Spawner] says that it starts nothing, for now: leave is
// withdrawn. It is asked again by the next need.
type NotAllowedError struct{ Why string }

func (e *NotAllowedError) Error() string { return e.Why }

// OutcomeUnknownError says that a call was sent and not answered: nobody knows
// whether the tool has run. It is never repeated by this package.
type OutcomeUnknownError struct {
	Server string
	Tool   string
	Err    error
}

func (e *OutcomeUnknownError) Error() string {
	return fmt.Sprintf("tool %q of server %q: %v; it is not known whether it has run, and it was not called again", e.Tool, e.Server, e.Err)
}

// Unwrap gives the reason.
func (e *OutcomeUnknownError) Unwrap() error { return e.Err }

// said is an error whose text is for people, and safe to show; the chain below it
// is for programs.
type said struct {
	text   string
	err    error
	status int // of the last HTTP answer, if that was a refusal
}

func (e *said) Error() string { return e.text }
func (e *said) Unwrap() error { return e.err }

// lateError says that something did not come in time.
type lateError struct {
	what  string
	limit time.Duration
}

func (e *lateError) Error() string { return fmt.Sprintf("%s within %v", e.what, e.limit) }

// Is makes it a [context.DeadlineExceeded].
func (e *lateError) Is(target error) bool { return target == context.DeadlineExceeded }

const (
	stderrLines    = 5
	stderrLineSize = 300
)

// dialError says what was tried, how it failed, and what the server said last.
func dialError(c *Config, u, typ string, l *link, err error) error {
	status := 0
	if l != nil {
		l.mu.Lock()
		challenge := l.challenge
		status = l.status
		l.mu.Unlock()
		if (status == http.StatusUnauthorized || status == http.StatusForbidden) && !timedOut(err) {
			return &AuthError{Server: c.Name, Status: status, Challenge: clip(scrub(c, challenge), 500), Next: l.next(), Err: ofTransport(err)}
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "connecting to server %q", c.Name)
	switch {
	case u != "":
		fmt.Fprintf(&b, " at %s", shown(u))
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
	return &said{scrub(c, b.String()), err, status}
}

// reason says in a few words why there is no connection, or no longer.
func reason(c *Config, l *link, err error) string {
	var wire *jsonrpc.Error
	if errors.As(err, &wire) && !internalCode(wire) {
		return fmt.Sprintf("it answers: %s (%d)", clip(conceal(c, wire.Message), 500), wire.Code)
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
			return fmt.Sprintf("it answers %d %s", status, http.StatusText(status))
		}
		if cause := context.Cause(l.ctx); cause != nil && !errors.Is(cause, errEnded) && !timedOut(err) {
			return cause.Error()
		}
		if errors.Is(broken, io.EOF) {
			return "it closed the connection"
		}
		if broken != nil {
			return "the connection broke: " + clip(conceal(c, broken.Error()), 500)
		}
	}
	return err.Error()
}

// internalCode says whether an error of the SDK only looks like one of the server.
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

// ofTransport is an error that is not taken for one of the server, as the SDK words what
// the transport says.
func ofTransport(err error) error {
	if wire := (*jsonrpc.Error)(nil); errors.As(err, &wire) && internalCode(wire) {
		return errors.New(err.Error())
	}
	return err
}

func timedOut(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}

// triesOlder says whether a failure of streamable HTTP may be that of a server
// that knows HTTP+SSE only: 400, 404 or 405 and no error of the protocol.
func triesOlder(err error) bool {
	var wire *jsonrpc.Error
	if errors.As(err, &wire) && !internalCode(wire) {
		return false
	}
	var s *said
	if !errors.As(err, &s) || errors.Is(err, mcp.ErrSessionMissing) {
		return false
	}
	return s.status == http.StatusBadRequest || s.status == http.StatusNotFound || s.status == http.StatusMethodNotAllowed
}

// tail is the end of what a process wrote to standard error, as lines of their own.
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

// clip shortens a text to n bytes and makes it printable.
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

// shown is a URL without what may be a secret in it: scheme and host.
func shown(raw string) string {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" {
		return "a url that cannot be read"
	}
	s := u.Scheme + "://" + u.Host
	if u.Path != "" && u.Path != "/" || u.RawQuery != "" {
		s += "/…"
	}
	return s
}
