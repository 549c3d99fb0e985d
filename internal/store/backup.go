package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Backup writes a copy of an SQLite database, as it is at one moment, to a new file
// at path, readable by its owner only, while others go on working. One that is there
// is not written to. Where it fails no file is left. With PostgreSQL it fails with
// [ErrUnsupported]: pg_dump does it.
func (db *DB) Backup(ctx context.Context, path string) error {
	if db.path == "" {
		return fmt.Errorf("back up the database: %w: use pg_dump, and pg_restore to get it back", ErrUnsupported)
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("back up the database: %w", err)
	}
	err = db.copyInto(ctx, path)
	if err == nil {
		err = errors.Join(f.Sync(), syncDir(filepath.Dir(path)))
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(fmt.Errorf("back up the database: %w", err), os.Remove(path))
	}
	return nil
}

// copyInto has SQLite copy itself into an empty file. The readers of the database may
// not write at all.
func (db *DB) copyInto(ctx context.Context, path string) error {
	source, err := sql.Open("sqlite", sqliteURL(db.path, db.wait))
	if err != nil {
		return err
	}
	defer source.Close()
	_, err = source.ExecContext(ctx, "VACUUM INTO $1", path)
	return classify(ctx, err)
}

// syncDir has the system write down that a file is there, where a directory can be
// told so.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	d.Sync() // some systems cannot
	return d.Close()
}

// CheckBackup reads an SQLite file through, and reports what [DB.Check] does. It
// fails where the file is none that this program could go on with: with
// [ErrCorrupt] where it is damaged or something else, with [ErrTooNew] where a newer
// program made it. The file stays as it is; only one that nobody has open is checked.
func CheckBackup(ctx context.Context, path string) (Report, error) {
	report, err := checkBackup(ctx, path)
	if err != nil {
		return Report{}, fmt.Errorf("check backup %q: %w", path, err)
	}
	return report, nil
}

func checkBackup(ctx context.Context, path string) (_ Report, err error) {
	if _, err := os.Stat(path); err != nil {
		return Report{}, err
	}
	full, err := filepath.Abs(path)
	if err != nil {
		return Report{}, err
	}
	// Immutable: nothing is written, beside the file neither.
	reader, err := sql.Open("sqlite", "file:"+escapePath(full)+"?immutable=1&mode=ro&_pragma=query_only(1)")
	if err != nil {
		return Report{}, err
	}
	db := &DB{dialect: sqliteDialect, reader: reader, writer: reader, path: full, wait: new(Options).orDefaults().Wait}
	db.Tables = tables(conn{db: db})
	defer func() { err = errors.Join(err, db.Close()) }()
	known, err := steps(migrations)
	if err != nil {
		return Report{}, err
	}
	there, err := all[applied](ctx, conn{db: db}, "SELECT number, sum FROM loadout_schema ORDER BY number")
	if err != nil {
		return Report{}, fmt.Errorf("%w: it is no database of this program: %w", ErrCorrupt, err)
	}
	if err := agree(known, there); err != nil {
		return Report{}, err
	}
	if len(there) < len(known) { // then some tables are not there; the first start brings them
		return Report{}, db.integrity(ctx)
	}
	return db.Check(ctx)
}
