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

// Check reads the whole database of a hub, running or not, and reports
// inconsistencies. It changes nothing. It uses only the options for the
// database and the key. It fails with [fs.ErrNotExist] if there is no database,
// and with [store.ErrTooOld] if the hub has not been started since an update.
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

// checkKeys describes what is wrong with the keys of secrets, or returns "" if
// they can decrypt all secrets.
func checkKeys(ctx context.Context, db *store.DB, o Options) (wrong string, err error) {
	sealed, err := db.Secrets.ListByOtherKeys(ctx, "", 1)
	if err != nil || len(sealed) == 0 {
		return "", err
	}
	keys := o.Keys
	if len(keys) == 0 {
		if keys, err = encryption.LoadKeys(filepath.Join(o.Data, KeyFile)); err != nil {
			return fmt.Sprintf("no key for the stored secrets: %v", err), nil
		}
	}
	err = checkKeysComplete(ctx, db, keys)
	if missing, ok := errors.AsType[*KeyError](err); ok {
		return missing.Reason, nil
	}
	return "", err
}

// Backup writes a copy of the database of a hub, running or not, to a new file.
// The copy does not include the keys. For PostgreSQL it fails with
// [store.ErrUnsupported].
func Backup(ctx context.Context, o Options, path string) (err error) {
	db, err := store.OpenExisting(ctx, o.orDefaults().Database, true)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	return db.Backup(ctx, path)
}

// DatabaseExistsError says that there is a database at the path to restore to.
type DatabaseExistsError struct{ Path string }

func (e *DatabaseExistsError) Error() string { return fmt.Sprintf("database exists: %s", e.Path) }

// Restore checks a backup and installs it as the database of a hub that does
// not run. It fails with a [*DatabaseExistsError] if there is a database,
// unless replace is set: then it moves that database aside and returns its new
// path. It fails with an [*InUseError] if the hub runs.
func Restore(ctx context.Context, o Options, backup string, replace bool) (aside string, err error) {
	o = o.orDefaults()
	path := store.SQLitePath(o.Database)
	if path == "" {
		return "", fmt.Errorf("restore database: %w: use pg_restore", store.ErrUnsupported)
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
	unlock, err := lockDir(o.Data)
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

// replaceFile atomically installs a copy of a file at path. It moves an
// existing database aside together with the files that SQLite keeps beside it,
// because another database must not use those.
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

// copyToTemp copies a file to a temporary file in the directory of path and
// syncs it to disk.
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
