package serverskill

import (
	"testing"
	"time"
)

// SetWaits sets how long List waits for a server, until the test ends.
func SetWaits(t *testing.T, first, stored time.Duration) {
	a, b := firstWait, storedWait
	firstWait, storedWait = first, stored
	t.Cleanup(func() { firstWait, storedWait = a, b })
}
