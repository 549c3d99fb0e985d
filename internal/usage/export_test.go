package usage

// NewLogOf is NewLog with another size at which a file is set aside.
func NewLogOf(path string, half int64) *Log {
	l := NewLog(path, nil)
	l.half = half
	return l
}
