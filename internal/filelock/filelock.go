// Package filelock locks files between openings of them, in one process or in
// several. A lock ends with the opening that took it, also when its process is
// killed, and with [Unlock].
package filelock

import (
	"context"
	"errors"
	"os"
	"time"
)

// ErrLocked says that another opening holds the lock.
var ErrLocked = errors.New("the file is locked by another")

// Try takes the file for this opening of it alone, until it is closed. It fails
// with [ErrLocked] where another has it, and with [errors.ErrUnsupported] where
// the system or the file system has no such locks.
func Try(f *os.File) error { return try(f) }

// Unlock gives the lock of this opening back, which stays open.
func Unlock(f *os.File) error { return unlock(f) }

// Wait is [Try] that waits while another has the lock, until ctx ends.
func Wait(ctx context.Context, f *os.File) error {
	// A system call that waits could not be ended by ctx.
	for pause := time.Millisecond; ; pause = min(2*pause, 16*time.Millisecond) {
		err := try(f)
		if !errors.Is(err, ErrLocked) {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(pause):
		}
	}
}
