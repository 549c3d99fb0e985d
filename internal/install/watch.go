package install

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

// watch learns from the log of a sandbox's network which hosts were reached, and
// passes the log on.
type watch struct {
	next slog.Handler
	*sight
}

type sight struct {
	mu   sync.Mutex
	last map[string]bool // host:port: whether it was reached the last time
}

var _ slog.Handler = (*watch)(nil)

func newWatch(log *slog.Logger) *watch {
	return &watch{log.Handler(), &sight{last: map[string]bool{}}}
}

// Enabled is always true, for the watch itself.
func (w *watch) Enabled(context.Context, slog.Level) bool { return true }

// Handle notes one decision.
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
		// The reason is the rule, or else why an allowed host was not reached.
		w.mu.Lock()
		w.last[net.JoinHostPort(host, strconv.FormatInt(port, 10))] = strings.HasPrefix(reason, "rule ")
		w.mu.Unlock()
	}
	if !w.next.Enabled(ctx, r.Level) {
		return nil
	}
	return w.next.Handle(ctx, r)
}

// WithAttrs is the same watch with another log behind it.
func (w *watch) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &watch{w.next.WithAttrs(attrs), w.sight}
}

// WithGroup is the same watch with another log behind it.
func (w *watch) WithGroup(name string) slog.Handler { return &watch{w.next.WithGroup(name), w.sight} }

// unreached are the hosts that were allowed and were not reached, sorted.
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
