package session

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// lockFile takes the file for this opening of it alone, until it is closed. The
// byte that stands for it is far behind its end, as locks bind readers here.
func lockFile(f *os.File) error {
	at := &windows.Overlapped{OffsetHigh: 1 << 30}
	err := windows.LockFileEx(windows.Handle(f.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, at)
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		return ErrInUse
	}
	return err
}
