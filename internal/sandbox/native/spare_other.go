//go:build !linux

package native

// spares is empty, because this backend runs only on Linux.
type spares struct{}

func (*spares) close() {}
