//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd || windows)

package filelock

import (
	"errors"
	"fmt"
	"os"
)

// This system has no locks that end with an opening.
func try(f *os.File) error { return fmt.Errorf("lock %s: %w", f.Name(), errors.ErrUnsupported) }

func unlock(f *os.File) error { return fmt.Errorf("unlock %s: %w", f.Name(), errors.ErrUnsupported) }
