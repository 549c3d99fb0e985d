package packages

import (
	"context"
	"log/slog"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// watch records the hosts that a sandbox reached, according to its network log,
// and forwards the log.
type watch struct {
	next slog.Handler
	*sight
}

type sight struct {
	mu   sync.Mutex
	last map[string]bool // host:port: whether the last attempt succeeded
}

var _ slog.Handler = (*watch)(nil)

func newWatch(log *slog.Logger) *watch {
	return &watch{log.Handler(), &sight{last: map[string]bool{}}}
}

// Enabled always returns true, because the watch needs every record.
func (w *watch) Enabled(context.Context, slog.Level) bool { return true }

// Handle records one network decision.
func (w *watch) Handle(ctx context.Context, r slog.Record) error {
	var host, reason string
	var port int64
	var allowed bool
	r.Attrs(func(a slog.Attr) bool {
		switch a.Key {
		case "host":
			host = a.Value.String()
		case "port":
			port = a.Value.Int64()
		case "allowed":
			allowed = a.Value.Bool()
		case "reason":
			reason = a.Value.String()
		}
		return true
	})
	if allowed && host != "" {
		// The reason is the rule, or why an allowed host was not reached.
		w.mu.Lock()
		w.last[net.JoinHostPort(host, strconv.FormatInt(port, 10))] = strings.HasPrefix(reason, "rule ")
		w.mu.Unlock()
	}
	if !w.next.Enabled(ctx, r.Level) {
		return nil
	}
	return w.next.Handle(ctx, r)
}

// WithAttrs returns the same watch with another log handler.
func (w *watch) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &watch{w.next.WithAttrs(attrs), w.sight}
}

// WithGroup returns the same watch with another log handler.
func (w *watch) WithGroup(name string) slog.Handler { return &watch{w.next.WithGroup(name), w.sight} }

// unreached returns the hosts that were allowed but not reached, sorted.
func (s *sight) unreached() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for _, host := range slices.Sorted(maps.Keys(s.last)) {
		if !s.last[host] {
			out = append(out, host)
		}
	}
	return out
}
