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

// lockDir locks a directory for this process. It returns a function to unlock it,
// and the identity of the locked file, or "" if it is unknown or the system does not
// lock files.
func lockDir(dir string) (unlock func() error, id string, err error) {
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, "", err
	}
	switch err := filelock.TryLock(f); {
	case errors.Is(err, filelock.ErrLocked):
		return nil, "", errors.Join(&InUseError{dir}, f.Close())
	case errors.Is(err, errors.ErrUnsupported): // users must avoid starting two hubs
		return f.Close, "", nil
	case err != nil:
		return nil, "", errors.Join(err, f.Close())
	}
	info, err := f.Stat()
	if err != nil {
		return nil, "", errors.Join(err, f.Close())
	}
	return f.Close, fileID(info), nil
}
