package untrusted

import (
	"context"
	"fmt"
	"log/slog"
)

// LogHandler returns a handler that makes the text of each record safe, as
// [Text.ForLog] does, and passes the record to h. It changes the message, the
// attributes that are strings, and those whose text has hidden characters, such
// as errors.
func LogHandler(h slog.Handler) slog.Handler { return logHandler{h} }

type logHandler struct{ next slog.Handler }

func (h logHandler) Enabled(ctx context.Context, level slog.Level) bool {
	return h.next.Enabled(ctx, level)
}

func (h logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return logHandler{h.next.WithAttrs(cleanAttrs(attrs))}
}

func (h logHandler) WithGroup(name string) slog.Handler { return logHandler{h.next.WithGroup(name)} }

func (h logHandler) Handle(ctx context.Context, r slog.Record) error {
	out := slog.NewRecord(r.Time, r.Level, New(r.Message).ForLog(), r.PC)
	r.Attrs(func(a slog.Attr) bool {
		out.AddAttrs(cleanAttr(a))
		return true
	})
	return h.next.Handle(ctx, out)
}

func cleanAttrs(attrs []slog.Attr) []slog.Attr {
	out := make([]slog.Attr, len(attrs))
	for i, a := range attrs {
		out[i] = cleanAttr(a)
	}
	return out
}

// cleanAttr returns an attribute with its text made safe.
func cleanAttr(a slog.Attr) slog.Attr {
	key := New(a.Key).ForLog()
	switch v := a.Value.Resolve(); v.Kind() {
	case slog.KindString:
		return slog.String(key, New(v.String()).ForLog())
	case slog.KindGroup:
		return slog.Attr{Key: key, Value: slog.GroupValue(cleanAttrs(v.Group())...)}
	case slog.KindAny:
		text := fmt.Sprintf("%+v", v.Any())
		if b, ok := v.Any().([]byte); ok {
			text = string(b)
		}
		if clean := New(text).ForLog(); clean != text {
			return slog.String(key, clean)
		}
		return slog.Attr{Key: key, Value: v}
	default:
		return slog.Attr{Key: key, Value: v}
	}
}

var _ slog.Handler = logHandler{}
var _ fmt.Formatter = Text{}
