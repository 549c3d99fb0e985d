package mcpserver

import (
	"context"
	"log/slog"
)

// quietHandler logs the SDK's info messages at debug level. The SDK logs the
// start and end of each session, which is several lines for every request
// without a session.
type quietHandler struct{ slog.Handler }

func demoteLevel(l slog.Level) slog.Level {
	if l == slog.LevelInfo {
		return slog.LevelDebug
	}
	return l
}

// Enabled implements [slog.Handler].
func (c quietHandler) Enabled(ctx context.Context, l slog.Level) bool {
	return c.Handler.Enabled(ctx, demoteLevel(l))
}

// Handle implements [slog.Handler].
func (c quietHandler) Handle(ctx context.Context, r slog.Record) error {
	r.Level = demoteLevel(r.Level)
	return c.Handler.Handle(ctx, r)
}

// WithAttrs implements [slog.Handler].
func (c quietHandler) WithAttrs(a []slog.Attr) slog.Handler {
	return quietHandler{c.Handler.WithAttrs(a)}
}

// WithGroup implements [slog.Handler].
func (c quietHandler) WithGroup(name string) slog.Handler {
	return quietHandler{c.Handler.WithGroup(name)}
}
