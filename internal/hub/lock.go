package hub

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/loadout-dev/loadout/internal/filelock"
)

// InUseError reports that another process is using the directory [Options.Data].
type InUseError struct{ Dir string }

func (e *InUseError) Error() string {
	return fmt.Sprintf("data directory %s is in use by another hub; give each node its own", e.Dir)
}

// lockDir locks a directory for this process. It returns a function to unlock it.
func lockDir(dir string) (unlock func() error, err error) {
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	switch err := filelock.TryLock(f); {
	case errors.Is(err, filelock.ErrLocked):
		return nil, errors.Join(&InUseError{dir}, f.Close())
	case err != nil && !errors.Is(err, errors.ErrUnsupported): // without file locks, users must avoid starting two hubs
		return nil, errors.Join(err, f.Close())
	}
	return f.Close, nil
}
