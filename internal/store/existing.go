package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
)

// SQLitePath returns the path of the database file in an [Open] address, or ""
// if the address names a server.
func SQLitePath(address string) string {
	if rest, ok := strings.CutPrefix(address, "sqlite:"); ok {
		return strings.TrimPrefix(rest, "//")
	}
	if strings.Contains(address, "://") {
		return ""
	}
	return address
}

// ErrTooOld is returned if an older program created the schema and no newer
// program has migrated it.
var ErrTooOld = errors.New("database was created by an older version of this program")

// OpenExisting opens a database like [Open], but neither creates nor migrates
// it. It fails with [ErrTooOld] if the schema is older than the program, unless
// allowOlder is set. A caller that reads no tables may set it.
func OpenExisting(ctx context.Context, address string, allowOlder bool) (*DB, error) {
	if path := SQLitePath(address); path != "" {
		if _, err := os.Stat(path); err != nil {
			return nil, fmt.Errorf("open database: %w", err)
		}
	}
	db, err := open(ctx, address, (*Options)(nil).orDefaults())
	if err != nil {
		return nil, err
	}
	if err := db.checkSchema(ctx, allowOlder); err != nil {
		return nil, errors.Join(fmt.Errorf("open %s database: %w", db.dialect.name, err), db.Close())
	}
	return db, nil
}

// checkSchema returns an error if the schema differs from the one that this
// program creates. If allowOlder is set, it accepts an older schema too.
func (db *DB) checkSchema(ctx context.Context, allowOlder bool) error {
	known, err := readMigrations(migrations)
	if err != nil {
		return err
	}
	applied, err := queryAll[appliedMigration](ctx, conn{db: db}, "SELECT number, sum FROM loadout_schema ORDER BY number")
	if err != nil {
		if errors.Is(err, ErrUnavailable) || ctx.Err() != nil {
			return err
		}
		return fmt.Errorf("%w: not a database of this program: %w", ErrCorrupt, err)
	}
	if err := compareMigrations(known, applied); err != nil {
		return err
	}
	if len(applied) < len(known) && !allowOlder {
		return fmt.Errorf("%w: schema version %d, this program needs %d", ErrTooOld, len(applied), len(known))
	}
	return nil
}
