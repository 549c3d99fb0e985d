//go:build !unix

package store

// hasNoInput always returns true: the driver checks connections that were idle
// for a second.
func hasNoInput(uintptr) bool { return true }
