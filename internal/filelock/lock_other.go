//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd || windows)

package filelock

import (
	"errors"
	"fmt"
	"os"
)

// tryLock always fails, because this system has no locks that belong to an open
// file.
func tryLock(f *os.File) error { return fmt.Errorf("lock %s: %w", f.Name(), errors.ErrUnsupported) }

func unlock(f *os.File) error { return fmt.Errorf("unlock %s: %w", f.Name(), errors.ErrUnsupported) }
