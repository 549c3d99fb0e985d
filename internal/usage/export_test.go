package usage

import "log/slog"

// NewLogOf is NewLog with another size at which a file is set aside.
func NewLogOf(path string, half int64) *Log {
	l := NewLog(path, nil)
	l.half = half
	return l
}

// NewLogWith is like NewLogOf with a logger for the first failure.
func NewLogWith(path string, half int64, logger *slog.Logger) *Log {
	l := NewLog(path, logger)
	l.half = half
	return l
}
