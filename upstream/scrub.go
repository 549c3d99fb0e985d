package upstream

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/loadout-dev/loadout/internal/pattern"
)

var (
	urls       = pattern.New(`\b(?:https?|wss?)://[^\s"'<>]+`)
	secretName = pattern.New(`(?i)key|token|secret|pass|auth|cred`)
)

// scrub takes out of a text what a configuration keeps secret, and all of a URL
// but its host.
func scrub(c *Config, text string) string {
	return urls().ReplaceAllStringFunc(conceal(c, text), func(u string) string {
		end := len(strings.TrimRight(u, ".,:;)]}"))
		return shown(u[:end]) + u[end:]
	})
}

// concealed stands for a secret.
const concealed = "•••"

// secrets are the values that are never shown, the longest first: those that
// variables were replaced by, those of headers and of variables whose name says so.
func (c *Config) secrets() []string {
	all := append(slices.Clone(c.hidden), c.tokens.all()...)
	add := func(v string) {
		if len(v) >= 6 {
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
		if secretName().MatchString(k) {
			add(v)
		}
	}
	for _, v := range all {
		if q := strconv.Quote(v); q[1:len(q)-1] != v {
			all = append(all, q[1:len(q)-1]) // as in an error that quotes it
		}
	}
	slices.SortFunc(all, func(a, b string) int { return cmp.Or(len(b)-len(a), cmp.Compare(a, b)) })
	return slices.Compact(all)
}

// sentTokens are the last that an OAuth handler had for a server: they are in no text
// that we show. It is safe for concurrent use, and nil has none.
type sentTokens struct {
	mu   sync.Mutex
	last []string
}

func (t *sentTokens) add(token string) {
	const most = 8 // those before have ended
	if t == nil || len(token) < minHidden {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if !slices.Contains(t.last, token) {
		t.last = append(t.last[max(0, len(t.last)-most+1):], token)
	}
}

func (t *sentTokens) all() []string {
	if t == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.last)
}

// conceal takes the secrets of a configuration out of a text.
func conceal(c *Config, text string) string { return hide(c.secrets(), text) }

func hide(secrets []string, text string) string {
	if len(secrets) == 0 {
		return text
	}
	pairs := make([]string, 0, 2*len(secrets))
	for _, v := range secrets {
		pairs = append(pairs, v, concealed)
	}
	return strings.NewReplacer(pairs...).Replace(text)
}

// concealCut is conceal for a text that was cut out of a longer one, so that it may
// begin with the end of a secret, or end with the beginning of one.
func concealCut(c *Config, text string) string {
	secrets := c.secrets()
	text = hide(secrets, text)
	for _, v := range secrets {
		for n := min(len(v)-1, len(text)); n >= minHidden; n-- {
			if strings.HasPrefix(text, v[len(v)-n:]) {
				text = concealed + text[n:]
				break
			}
		}
		for n := min(len(v)-1, len(text)); n >= minHidden; n-- {
			if strings.HasSuffix(text, v[:n]) {
				text = text[:len(text)-n] + concealed
				break
			}
		}
	}
	return text
}

// concealWire is an error of the server without secrets.
func concealWire(c *Config, e *jsonrpc.Error) *jsonrpc.Error {
	out := *e
	out.Message = conceal(c, e.Message)
	if data := conceal(c, string(e.Data)); data != string(e.Data) {
		out.Data = json.RawMessage(data)
		if !json.Valid(out.Data) { // a number was one
			out.Data = nil
		}
	}
	return &out
}

// concealing is a handler of logs that are about one server.
type concealing struct {
	slog.Handler
	c *Config
}

func (h *concealing) Handle(ctx context.Context, r slog.Record) error {
	out := slog.NewRecord(r.Time, r.Level, scrub(h.c, r.Message), r.PC)
	r.Attrs(func(a slog.Attr) bool {
		out.AddAttrs(h.attr(a))
		return true
	})
	return h.Handler.Handle(ctx, out)
}

func (h *concealing) attr(a slog.Attr) slog.Attr {
	v := a.Value.Resolve()
	switch v.Kind() {
	case slog.KindGroup:
		var in []slog.Attr
		for _, one := range v.Group() {
			in = append(in, h.attr(one))
		}
		return slog.Attr{Key: a.Key, Value: slog.GroupValue(in...)}
	case slog.KindString:
		return slog.String(a.Key, scrub(h.c, v.String()))
	case slog.KindAny:
		text := fmt.Sprint(v.Any())
		if clean := scrub(h.c, text); clean != text {
			return slog.String(a.Key, clean)
		}
	}
	return slog.Attr{Key: a.Key, Value: v}
}

func (h *concealing) WithAttrs(as []slog.Attr) slog.Handler {
	out := make([]slog.Attr, len(as))
	for n, a := range as {
		out[n] = h.attr(a)
	}
	return &concealing{h.Handler.WithAttrs(out), h.c}
}

func (h *concealing) WithGroup(name string) slog.Handler {
	return &concealing{h.Handler.WithGroup(name), h.c}
}
