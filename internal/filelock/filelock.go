// Package filelock provides advisory locks on open files, within a process and
// between processes. A lock is held until [Unlock] is called, its file is
// closed, or its process exits.
package filelock

import (
	"context"
	"errors"
	"os"
	"time"
)

// ErrLocked is returned if another handle holds the lock.
var ErrLocked = errors.New("file is locked by another process or handle")

// TryLock locks a file until f is closed or unlocked. If another handle holds
// the lock, the error is [ErrLocked]. If the system or the file system does not
// support locks, the error is [errors.ErrUnsupported].
func TryLock(f *os.File) error { return tryLock(f) }

// Unlock releases the lock on f. It does not close f.
func Unlock(f *os.File) error { return unlock(f) }

// Lock is like [TryLock], but if another handle holds the lock, it waits for
// the lock until ctx is done.
func Lock(ctx context.Context, f *os.File) error {
	// ctx could not interrupt a blocking system call.
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
