package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
)

// SQLitePath is the path of the file that an address of [Open] names, "" where it names
// a server.
func SQLitePath(address string) string {
	if rest, ok := strings.CutPrefix(address, "sqlite:"); ok {
		return strings.TrimPrefix(rest, "//")
	}
	if strings.Contains(address, "://") {
		return ""
	}
	return address
}

// ErrTooOld says that an older program made the schema of a database, and none of this
// one has brought it up to date.
var ErrTooOld = errors.New("the database is of an older version of this program")

// OpenAsIs is [Open] for who looks at a database that is there: it makes none, and leaves
// the schema as it is. One that is older is [ErrTooOld] unless older are welcome, for
// what reads no table.
func OpenAsIs(ctx context.Context, address string, older bool) (*DB, error) {
	if path := SQLitePath(address); path != "" {
		if _, err := os.Stat(path); err != nil {
			return nil, fmt.Errorf("open the database: %w", err)
		}
	}
	db, err := open(ctx, address, (*Options)(nil).orDefaults())
	if err != nil {
		return nil, err
	}
	if err := db.current(ctx, older); err != nil {
		return nil, errors.Join(fmt.Errorf("open the %s database: %w", db.dialect.name, err), db.Close())
	}
	return db, nil
}

// current fails where the schema is not the one that this program knows.
func (db *DB) current(ctx context.Context, older bool) error {
	known, err := steps(migrations)
	if err != nil {
		return err
	}
	there, err := all[applied](ctx, conn{db: db}, "SELECT number, sum FROM loadout_schema ORDER BY number")
	if err != nil {
		if errors.Is(err, ErrUnavailable) || ctx.Err() != nil {
			return err
		}
		return fmt.Errorf("%w: it is no database of this program: %w", ErrCorrupt, err)
	}
	if err := agree(known, there); err != nil {
		return err
	}
	if len(there) < len(known) && !older {
		return fmt.Errorf("%w: its schema is number %d, this one knows %d", ErrTooOld, len(there), len(known))
	}
	return nil
}
