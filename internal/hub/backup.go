package hub

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/loadout-dev/loadout/internal/encryption"
	"github.com/loadout-dev/loadout/internal/hub/library"
	"github.com/loadout-dev/loadout/internal/store"
)

// Check reads the whole database of a running or stopped hub, and reports
// inconsistencies. It changes nothing. It uses only the options for the database
// and the keys. It returns [fs.ErrNotExist] if there is no database, and
// [store.ErrTooOld] if the hub has not been started since an update.
func Check(ctx context.Context, o Options) (report library.Report, err error) {
	o = o.orDefaults()
	db, err := store.OpenExisting(ctx, o.Database, false)
	if err != nil {
		return report, fmt.Errorf("check hub: %w", err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	skills, err := library.New(db, nil)
	if err != nil {
		return report, fmt.Errorf("check hub: %w", err)
	}
	defer func() { err = errors.Join(err, skills.Close()) }()
	if report, err = skills.Check(ctx); err != nil {
		return report, fmt.Errorf("check hub: %w", err)
	}
	missing, err := checkKeys(ctx, db, o)
	if err != nil {
		return report, fmt.Errorf("check hub: %w", err)
	}
	if missing != "" {
		report.Problems = append(report.Problems, missing)
	}
	return report, nil
}

// checkKeys explains why the keys cannot decrypt all secrets, or returns "" if they
// can.
func checkKeys(ctx context.Context, db *store.DB, o Options) (wrong string, err error) {
	used, err := db.Secrets.KeyIDs(ctx)
	if err != nil || len(used) == 0 {
		return "", err
	}
	keys := o.Keys
	if len(keys) == 0 {
		if keys, err = encryption.LoadKeys(filepath.Join(o.Data, KeyFile)); err != nil {
			return fmt.Sprintf("no key for the stored secrets: %v", err), nil
		}
	}
	if missing, ok := errors.AsType[*KeyError](checkKeysComplete(used, keys)); ok {
		return missing.Reason, nil
	}
	return "", nil
}

// Backup copies the database of a running or stopped hub to a new file. The copy
// does not include the keys. For PostgreSQL, Backup returns [store.ErrUnsupported].
func Backup(ctx context.Context, o Options, path string) (err error) {
	db, err := store.OpenExisting(ctx, o.orDefaults().Database, true)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	return db.Backup(ctx, path)
}

// DatabaseExistsError reports that a database already exists at the restore path.
type DatabaseExistsError struct{ Path string }

func (e *DatabaseExistsError) Error() string { return fmt.Sprintf("database exists: %s", e.Path) }

// Restore checks a backup and installs it as the database of a stopped hub. If a
// database exists, it returns a [*DatabaseExistsError] unless replace is set. With
// replace, it moves that database aside and returns its new path. Restore returns
// an [*InUseError] if the hub is running.
func Restore(ctx context.Context, o Options, backup string, replace bool) (aside string, err error) {
	o = o.orDefaults()
	path := store.SQLitePath(o.Database)
	if path == "" {
		return "", fmt.Errorf("restore database: %w; use pg_restore", store.ErrUnsupported)
	}
	report, err := store.CheckBackup(ctx, backup)
	if err != nil {
		return "", err
	}
	if len(report.Problems) > 0 {
		return "", fmt.Errorf("restore database: %w: %s", store.ErrCorrupt, report.Problems[0])
	}
	if err := os.MkdirAll(o.Data, 0o700); err != nil {
		return "", err
	}
	unlock, _, err := lockDir(o.Data)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	switch _, err := os.Lstat(path); {
	case err == nil && !replace:
		return "", &DatabaseExistsError{path}
	case err == nil:
		aside = path + ".replaced"
	case !errors.Is(err, fs.ErrNotExist):
		return "", err
	}
	if err := replaceFile(backup, path, aside); err != nil {
		return "", fmt.Errorf("restore database: %w", err)
	}
	return aside, nil
}

// replaceFile atomically installs a copy of backup at path. It moves an existing
// database to the path aside, together with its -wal and -shm files, which the
// new database must not use.
func replaceFile(backup, path, aside string) error {
	whole, err := copyToTemp(backup, path)
	if err != nil {
		return err
	}
	for _, suffix := range []string{"", "-wal", "-shm"} {
		if aside == "" {
			err = os.Remove(path + suffix)
		} else {
			_ = os.Remove(aside + suffix) // from an earlier restore
			err = os.Rename(path+suffix, aside+suffix)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return errors.Join(err, os.Remove(whole))
		}
	}
	return os.Rename(whole, path)
}

// copyToTemp copies a file to a temporary file in the directory of path and syncs
// the copy to disk.
func copyToTemp(from, path string) (name string, err error) {
	in, err := os.Open(from)
	if err != nil {
		return "", err
	}
	defer in.Close()
	out, err := os.CreateTemp(filepath.Dir(path), ".restore-*") // mode 0600
	if err != nil {
		return "", err
	}
	_, err = io.Copy(out, in)
	if err = errors.Join(err, out.Sync(), out.Close()); err != nil {
		return "", errors.Join(err, os.Remove(out.Name()))
	}
	return out.Name(), nil
}
