package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
)

// SQLitePath returns the path of the database file that an address of [Open]
// names, or "" if the address names a server.
func SQLitePath(address string) string {
	if rest, ok := strings.CutPrefix(address, "sqlite:"); ok {
		return strings.TrimPrefix(rest, "//")
	}
	if strings.Contains(address, "://") {
		return ""
	}
	return address
}

// ErrTooOld says that an older program created the schema and that no newer
// program has migrated it.
var ErrTooOld = errors.New("database was made by an older version of this program")

// OpenExisting opens an existing database like [Open], but it neither creates
// nor migrates one. An older schema fails with [ErrTooOld], unless older is
// true because the caller reads no table.
func OpenExisting(ctx context.Context, address string, older bool) (*DB, error) {
	if path := SQLitePath(address); path != "" {
		if _, err := os.Stat(path); err != nil {
			return nil, fmt.Errorf("open database: %w", err)
		}
	}
	db, err := open(ctx, address, (*Options)(nil).orDefaults())
	if err != nil {
		return nil, err
	}
	if err := db.checkSchema(ctx, older); err != nil {
		return nil, errors.Join(fmt.Errorf("open %s database: %w", db.dialect.name, err), db.Close())
	}
	return db, nil
}

// checkSchema fails if the schema differs from the one that this program knows.
func (db *DB) checkSchema(ctx context.Context, older bool) error {
	known, err := readMigrations(migrations)
	if err != nil {
		return err
	}
	there, err := queryAll[appliedMigration](ctx, conn{db: db}, "SELECT number, sum FROM loadout_schema ORDER BY number")
	if err != nil {
		if errors.Is(err, ErrUnavailable) || ctx.Err() != nil {
			return err
		}
		return fmt.Errorf("%w: not a database of this program: %w", ErrCorrupt, err)
	}
	if err := compareMigrations(known, there); err != nil {
		return err
	}
	if len(there) < len(known) && !older {
		return fmt.Errorf("%w: schema version %d, this program needs %d", ErrTooOld, len(there), len(known))
	}
	return nil
}
