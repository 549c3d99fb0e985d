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

// networkWatch is a log handler that records which hosts a sandbox reached. It
// forwards all records to another handler.
type networkWatch struct {
	next slog.Handler
	*reachedHosts
}

type reachedHosts struct {
	mu   sync.Mutex
	last map[string]bool // whether the last attempt succeeded, by host:port
}

var _ slog.Handler = (*networkWatch)(nil)

func newWatch(log *slog.Logger) *networkWatch {
	return &networkWatch{log.Handler(), &reachedHosts{last: map[string]bool{}}}
}

// Enabled always returns true, because all records are needed.
func (w *networkWatch) Enabled(context.Context, slog.Level) bool { return true }

// Handle records a network decision and forwards it.
func (w *networkWatch) Handle(ctx context.Context, r slog.Record) error {
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
		// The reason is the matching rule, or why an allowed host could not be
		// reached.
		w.mu.Lock()
		w.last[net.JoinHostPort(host, strconv.FormatInt(port, 10))] = strings.HasPrefix(reason, "rule ")
		w.mu.Unlock()
	}
	if !w.next.Enabled(ctx, r.Level) {
		return nil
	}
	return w.next.Handle(ctx, r)
}

// WithAttrs returns a watch that adds attrs to forwarded records.
func (w *networkWatch) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &networkWatch{w.next.WithAttrs(attrs), w.reachedHosts}
}

// WithGroup returns a watch that adds a group to forwarded records.
func (w *networkWatch) WithGroup(name string) slog.Handler {
	return &networkWatch{w.next.WithGroup(name), w.reachedHosts}
}

// unreachedHosts returns the sorted hosts that were allowed but could not be
// reached.
func (s *reachedHosts) unreachedHosts() []string {
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
