package hub

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/loadout-dev/loadout/internal/filelock"
)

// InUseError says that another process uses the directory of [Options.Data].
type InUseError struct{ Dir string }

func (e *InUseError) Error() string {
	return fmt.Sprintf("data directory %s is in use by another hub; give each node its own", e.Dir)
}

// lockDir locks a directory for this process.
func lockDir(dir string) (unlock func() error, err error) {
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	switch err := filelock.TryLock(f); {
	case errors.Is(err, filelock.ErrLocked):
		return nil, errors.Join(&InUseError{dir}, f.Close())
	case err != nil && !errors.Is(err, errors.ErrUnsupported): // without file locks, the user must take care
		return nil, errors.Join(err, f.Close())
	}
	return f.Close, nil
}
