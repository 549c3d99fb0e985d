//go:build !unix

package store

// nothingToRead cannot tell: a connection that was idle for a second is asked by the
// driver.
func nothingToRead(uintptr) bool { return true }
