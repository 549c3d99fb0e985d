package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Backup writes a consistent copy of an SQLite database to a new file at path
// while the database is in use. Only the owner can read the file. Backup never
// overwrites a file, and removes an incomplete copy if it fails. For PostgreSQL
// it fails with [ErrUnsupported]; use pg_dump.
func (db *DB) Backup(ctx context.Context, path string) error {
	if db.path == "" {
		return fmt.Errorf("back up database: %w: use pg_dump and pg_restore instead", ErrUnsupported)
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("back up database: %w", err)
	}
	err = db.copyInto(ctx, path)
	if err == nil {
		err = errors.Join(f.Sync(), syncDir(filepath.Dir(path)))
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(fmt.Errorf("back up database: %w", err), os.Remove(path))
	}
	return nil
}

// backUpBeforeMigration saves a copy of an SQLite database whose schema is older
// than the given version. The copy is named after the database and its schema
// version, such as hub.db.schema-8, and replaces an earlier copy with that name.
func (db *DB) backUpBeforeMigration(ctx context.Context, newest int) error {
	if db.path == "" {
		return nil
	}
	version, err := (conn{db: db}).schemaVersion(ctx)
	if err != nil || version == 0 || version >= newest {
		return err
	}
	path := fmt.Sprintf("%s.schema-%d", db.path, version)
	part := path + ".part"
	if err := os.Remove(part); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("upgrade database: back up: %w", err)
	}
	if err := db.Backup(ctx, part); err != nil {
		return fmt.Errorf("upgrade database: %w", err)
	}
	if err := os.Rename(part, path); err != nil {
		return errors.Join(fmt.Errorf("upgrade database: back up: %w", err), os.Remove(part))
	}
	return syncDir(filepath.Dir(path))
}

// schemaVersion returns how many migrations were applied to an SQLite database,
// or 0 for a new database.
func (c conn) schemaVersion(ctx context.Context) (int, error) {
	found, err := queryScalar[int](ctx, c, "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = 'loadout_schema'")
	if err != nil || found == 0 {
		return 0, err
	}
	return queryScalar[int](ctx, c, "SELECT count(*) FROM loadout_schema")
}

// copyInto makes SQLite copy the database into an empty file. It opens its own
// connection because the reader connections are read-only.
func (db *DB) copyInto(ctx context.Context, path string) error {
	source, err := sql.Open("sqlite", sqliteURL(db.path, db.wait))
	if err != nil {
		return err
	}
	defer source.Close()
	_, err = source.ExecContext(ctx, "VACUUM INTO $1", path)
	return classifyError(ctx, err)
}

// syncDir flushes a directory to disk on systems that support it.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	d.Sync() // not supported on every system
	return d.Close()
}

// CheckBackup checks an SQLite file as [DB.Check] checks an open database. It
// fails with [ErrCorrupt] if the file is damaged or is not a database of this
// program, and with [ErrTooNew] if a newer program created it. It does not
// modify the file. No process may have the file open.
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
	// Immutable prevents SQLite from creating files beside the database.
	reader, err := sql.Open("sqlite", "file:"+escapePath(full)+"?immutable=1&mode=ro&_pragma=query_only(1)")
	if err != nil {
		return Report{}, err
	}
	db := &DB{dialect: sqliteDialect, reader: reader, writer: reader, path: full, wait: new(Options).orDefaults().Wait}
	db.Tables = tables(conn{db: db})
	defer func() { err = errors.Join(err, db.Close()) }()
	known, err := readMigrations(migrations)
	if err != nil {
		return Report{}, err
	}
	applied, err := queryAll[appliedMigration](ctx, conn{db: db}, "SELECT number, sum FROM loadout_schema ORDER BY number")
	if err != nil {
		return Report{}, fmt.Errorf("%w: not a database of this program: %w", ErrCorrupt, err)
	}
	if err := compareMigrations(known, applied); err != nil {
		return Report{}, err
	}
	if len(applied) < len(known) { // some tables do not exist before the first start
		return Report{}, db.checkIntegrity(ctx)
	}
	return db.Check(ctx)
}
