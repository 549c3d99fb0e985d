package upstream

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/loadout-dev/loadout/internal/lazyregexp"
	"github.com/loadout-dev/loadout/internal/redact"
)

var (
	urls       = lazyregexp.New(`\b(?:https?|wss?)://[^\s"'<>]+`)
	secretName = lazyregexp.New(`(?i)key|token|secret|pass|auth|cred`)
)

// redactText redacts the configuration's secrets in text, and the path and
// query of each URL.
func redactText(c *Config, text string) string {
	return urls.ReplaceAllStringFunc(redactSecrets(c, text), func(u string) string {
		end := len(strings.TrimRight(u, ".,:;)]}"))
		return displayURL(u[:end]) + u[end:]
	})
}

// secrets returns the values to redact: the values of configuration variables,
// tokens, headers, and environment variables whose names contain KEY, TOKEN or
// similar words.
func (c *Config) secrets() []string {
	all := append(slices.Clone(c.hidden), c.tokens.values()...)
	add := func(v string) {
		if len(v) >= redact.MinLength {
			all = append(all, v)
		}
	}
	for _, v := range c.Headers {
		add(v)
		if _, token, ok := strings.Cut(v, " "); ok {
			add(token)
		}
	}
	if c.OAuth != nil {
		add(c.OAuth.Secret)
	}
	for k, v := range c.Env {
		if secretName.MatchString(k) {
			add(v)
		}
	}
	for _, v := range all {
		if q := strconv.Quote(v); q[1:len(q)-1] != v {
			all = append(all, q[1:len(q)-1]) // as quoted in errors
		}
	}
	return all
}

// sentTokens holds the latest access tokens from an OAuth handler, so that they
// can be redacted. It is safe for concurrent use. A nil *sentTokens is empty.
type sentTokens struct {
	mu   sync.Mutex
	last []string
}

func (t *sentTokens) add(token string) {
	const most = 8 // earlier tokens have expired
	if t == nil || len(token) < minHidden {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if !slices.Contains(t.last, token) {
		t.last = append(t.last[max(0, len(t.last)-most+1):], token)
	}
}

func (t *sentTokens) values() []string {
	if t == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.last)
}

func (c *Config) redactor() *redact.Redactor { return redact.Values(c.secrets()...) }

// redactSecrets redacts the configuration's secrets in text.
func redactSecrets(c *Config, text string) string { return c.redactor().String(text) }

// redactFragment is like redactSecrets for a fragment, which may start or end
// within a secret.
func redactFragment(c *Config, text string) string { return c.redactor().Fragment(text) }

// redactWireError returns a copy of a server's error with secrets redacted.
func redactWireError(c *Config, e *jsonrpc.Error) *jsonrpc.Error {
	out := *e
	out.Message = redactSecrets(c, e.Message)
	if data := redactSecrets(c, string(e.Data)); data != string(e.Data) {
		out.Data = json.RawMessage(data)
		if !json.Valid(out.Data) { // redacting a number makes JSON invalid
			out.Data = nil
		}
	}
	return &out
}

// redactHandler is a [slog.Handler] that redacts the secrets in a server's
// configuration.
type redactHandler struct {
	slog.Handler
	c *Config
}

func (h *redactHandler) Handle(ctx context.Context, r slog.Record) error {
	out := slog.NewRecord(r.Time, r.Level, redactText(h.c, r.Message), r.PC)
	r.Attrs(func(a slog.Attr) bool {
		out.AddAttrs(h.attr(a))
		return true
	})
	return h.Handler.Handle(ctx, out)
}

func (h *redactHandler) attr(a slog.Attr) slog.Attr {
	v := a.Value.Resolve()
	switch v.Kind() {
	case slog.KindGroup:
		var in []slog.Attr
		for _, one := range v.Group() {
			in = append(in, h.attr(one))
		}
		return slog.Attr{Key: a.Key, Value: slog.GroupValue(in...)}
	case slog.KindString:
		return slog.String(a.Key, redactText(h.c, v.String()))
	case slog.KindAny:
		text := fmt.Sprint(v.Any())
		if clean := redactText(h.c, text); clean != text {
			return slog.String(a.Key, clean)
		}
	}
	return slog.Attr{Key: a.Key, Value: v}
}

func (h *redactHandler) WithAttrs(as []slog.Attr) slog.Handler {
	out := make([]slog.Attr, len(as))
	for n, a := range as {
		out[n] = h.attr(a)
	}
	return &redactHandler{h.Handler.WithAttrs(out), h.c}
}

func (h *redactHandler) WithGroup(name string) slog.Handler {
	return &redactHandler{h.Handler.WithGroup(name), h.c}
}
