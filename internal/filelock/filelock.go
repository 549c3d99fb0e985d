// Package filelock locks files between open file handles, in one process or in
// several. A lock lasts until [Unlock], until its handle is closed, or until
// its process ends.
package filelock

import (
	"context"
	"errors"
	"os"
	"time"
)

// ErrLocked is returned if another handle holds the lock.
var ErrLocked = errors.New("file is locked by another process or handle")

// TryLock locks the file for this handle until the handle is closed. It returns
// [ErrLocked] if another handle holds the lock, and [errors.ErrUnsupported] if
// the system or the file system has no such locks.
func TryLock(f *os.File) error { return tryLock(f) }

// Unlock releases the lock of this handle, which stays open.
func Unlock(f *os.File) error { return unlock(f) }

// Lock locks the file like [TryLock], but waits while another handle holds the
// lock, until ctx ends.
func Lock(ctx context.Context, f *os.File) error {
	// A blocking system call could not be interrupted by ctx.
	for pause := time.Millisecond; ; pause = min(2*pause, 16*time.Millisecond) {
		err := tryLock(f)
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
