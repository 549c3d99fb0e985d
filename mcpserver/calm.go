package mcpserver

import (
	"context"
	"log/slog"
)

// calm tells at debug what the protocol engine tells at info: each session that begins and
// ends, which is several lines for every request without a session and every turn.
type calm struct{ slog.Handler }

func calmly(l slog.Level) slog.Level {
	if l == slog.LevelInfo {
		return slog.LevelDebug
	}
	return l
}

// Enabled implements [slog.Handler].
func (c calm) Enabled(ctx context.Context, l slog.Level) bool {
	return c.Handler.Enabled(ctx, calmly(l))
}

// Handle implements [slog.Handler].
func (c calm) Handle(ctx context.Context, r slog.Record) error {
	r.Level = calmly(r.Level)
	return c.Handler.Handle(ctx, r)
}

// WithAttrs implements [slog.Handler].
func (c calm) WithAttrs(a []slog.Attr) slog.Handler { return calm{c.Handler.WithAttrs(a)} }

// WithGroup implements [slog.Handler].
func (c calm) WithGroup(name string) slog.Handler { return calm{c.Handler.WithGroup(name)} }
