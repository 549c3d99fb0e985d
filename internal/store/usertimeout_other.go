//go:build !linux

package store

import "time"

// setUserTimeout does nothing on this system. Keepalives detect lost connections,
// except while sent data is unacknowledged.
func setUserTimeout(uintptr, time.Duration) error { return nil }
