package hub

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/loadout-dev/loadout/internal/hub/library"
	"github.com/loadout-dev/loadout/internal/seal"
	"github.com/loadout-dev/loadout/internal/store"
)

// Check reads through all that a hub keeps, whether it runs or not, and reports what does
// not fit together. It changes nothing. Of the options those of the database and the key
// count. The error is [fs.ErrNotExist] where there is no database, and [store.ErrTooOld]
// where one has not been started yet since the program was updated.
func Check(ctx context.Context, o Options) (report library.Report, err error) {
	o = o.orDefaults()
	db, err := store.OpenAsIs(ctx, o.Database, false)
	if err != nil {
		return report, fmt.Errorf("check the hub: %w", err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	skills, err := library.New(db, nil)
	if err != nil {
		return report, fmt.Errorf("check the hub: %w", err)
	}
	defer func() { err = errors.Join(err, skills.Close()) }()
	if report, err = skills.Check(ctx); err != nil {
		return report, fmt.Errorf("check the hub: %w", err)
	}
	missing, err := checkKeys(ctx, db, o)
	if err != nil {
		return report, fmt.Errorf("check the hub: %w", err)
	}
	if missing != "" {
		report.Problems = append(report.Problems, missing)
	}
	return report, nil
}

// checkKeys says what is wrong with the keys of secrets, "" where each can be opened.
func checkKeys(ctx context.Context, db *store.DB, o Options) (wrong string, err error) {
	sealed, err := db.Secrets.NotSealedBy(ctx, "", 1)
	if err != nil || len(sealed) == 0 {
		return "", err
	}
	keys := o.Keys
	if len(keys) == 0 {
		if keys, err = seal.LoadKeys(filepath.Join(o.Data, KeyFile)); err != nil {
			return fmt.Sprintf("there are secrets, and nothing to open them with: %v", err), nil
		}
	}
	err = opensAll(ctx, db, keys)
	if missing, ok := errors.AsType[*KeyError](err); ok {
		return missing.Why, nil
	}
	return "", err
}

// Backup writes a copy of the database of a hub to a new file, while it runs or not. The
// keys are not in it. With PostgreSQL it fails with [store.ErrUnsupported].
func Backup(ctx context.Context, o Options, path string) (err error) {
	db, err := store.OpenAsIs(ctx, o.orDefaults().Database, true)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	return db.Backup(ctx, path)
}

// ThereError says that there is a database where another would be put.
type ThereError struct{ Path string }

func (e *ThereError) Error() string { return fmt.Sprintf("there is a database in %s", e.Path) }

// Restore puts a backup in the place of the database of a hub that does not run, after it
// was checked. One that is there is a [*ThereError] unless it is to be replaced: then it
// stays beside the other, at the path that is returned. A hub that runs is an
// [*InUseError].
func Restore(ctx context.Context, o Options, backup string, replace bool) (aside string, err error) {
	o = o.orDefaults()
	path := store.SQLitePath(o.Database)
	if path == "" {
		return "", fmt.Errorf("restore the database: %w: use pg_restore", store.ErrUnsupported)
	}
	report, err := store.CheckBackup(ctx, backup)
	if err != nil {
		return "", err
	}
	if len(report.Problems) > 0 {
		return "", fmt.Errorf("restore the database: %w: %s", store.ErrCorrupt, report.Problems[0])
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
		return "", &ThereError{path}
	case err == nil:
		aside = path + ".replaced"
	case !errors.Is(err, fs.ErrNotExist):
		return "", err
	}
	if err := putInPlace(backup, path, aside); err != nil {
		return "", fmt.Errorf("restore the database: %w", err)
	}
	return aside, nil
}

// putInPlace copies a file to a path, at once, and moves what is there aside, with what
// SQLite keeps beside it: another database must not be given that.
func putInPlace(backup, path, aside string) error {
	whole, err := copyBeside(backup, path)
	if err != nil {
		return err
	}
	for _, suffix := range []string{"", "-wal", "-shm"} {
		if aside == "" {
			err = os.Remove(path + suffix)
		} else {
			_ = os.Remove(aside + suffix) // of an earlier time
			err = os.Rename(path+suffix, aside+suffix)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return errors.Join(err, os.Remove(whole))
		}
	}
	return os.Rename(whole, path)
}

// copyBeside copies a file into one of no name yet, beside a path, and has it on disk.
func copyBeside(from, path string) (name string, err error) {
	in, err := os.Open(from)
	if err != nil {
		return "", err
	}
	defer in.Close()
	out, err := os.CreateTemp(filepath.Dir(path), ".restore-*") // 0600
	if err != nil {
		return "", err
	}
	_, err = io.Copy(out, in)
	if err = errors.Join(err, out.Sync(), out.Close()); err != nil {
		return "", errors.Join(err, os.Remove(out.Name()))
	}
	return out.Name(), nil
}
