package store

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"time"
)

// migrations holds the SQL files that build the schema, numbered without gaps,
// starting at 1. A released file never changes: each schema change adds a file.
//
//go:embed migrations/*.sql
var migrations embed.FS

// migration is an SQL file that changes the schema.
type migration struct {
	number int
	name   string
	sql    string
	sum    string // SHA-256 of sql
}

// appliedMigration identifies a migration that was applied to a database.
type appliedMigration struct {
	Number int
	Sum    string
}

func (a *appliedMigration) fields() []any { return []any{&a.Number, &a.Sum} }

// lockSchema is the statement that locks a PostgreSQL database during a
// migration. The number is arbitrary.
const lockSchema = "SELECT pg_advisory_xact_lock(7306916068149716736)"

// readMigrations reads the migrations in order.
func readMigrations(files fs.FS) ([]migration, error) {
	names, err := fs.Glob(files, "migrations/*.sql")
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	var out []migration
	for i, name := range names {
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, err
		}
		base := strings.TrimSuffix(strings.TrimPrefix(name, "migrations/"), ".sql")
		digits, label, _ := strings.Cut(base, "_")
		if n, err := strconv.Atoi(digits); err != nil || n != i+1 {
			return nil, fmt.Errorf("unexpected migration %s, want number %d", base, i+1)
		}
		sum := sha256.Sum256(text)
		out = append(out, migration{i + 1, label, string(text), hex.EncodeToString(sum[:])})
	}
	return out, nil
}

// migrate applies the missing migrations, all or none. Before it changes an older
// SQLite database, it saves a copy. If other nodes are migrating the same database,
// it waits for them until ctx is done.
func (db *DB) migrate(ctx context.Context, files fs.FS) error {
	known, err := readMigrations(files)
	if err != nil {
		return err
	}
	if err := db.backUpBeforeMigration(ctx, len(known)); err != nil {
		return err
	}
	for try := 1; ; try++ {
		// Not serializable: PostgreSQL would hide the changes made by the
		// previous holder of the lock.
		err := conn{db: db}.runTx(ctx, sql.LevelDefault, func(c conn) error { return c.applyMigrations(ctx, known) })
		if !errors.Is(err, ErrBusy) {
			return err
		}
		if err := backOff(ctx, try); err != nil {
			return err
		}
	}
}

// applyMigrations applies the missing migrations. The caller must be in a
// transaction.
func (c conn) applyMigrations(ctx context.Context, known []migration) error {
	if c.db.path == "" {
		if _, err := c.exec(ctx, lockSchema); err != nil {
			return err
		}
	}
	if _, err := c.exec(ctx, `CREATE TABLE IF NOT EXISTS loadout_schema (
		number BIGINT NOT NULL PRIMARY KEY, name TEXT NOT NULL, sum TEXT NOT NULL, applied BIGINT NOT NULL)`); err != nil {
		return err
	}
	applied, err := queryAll[appliedMigration](ctx, c, "SELECT number, sum FROM loadout_schema ORDER BY number")
	if err != nil {
		return err
	}
	if err := compareMigrations(known, applied); err != nil {
		return err
	}
	for _, s := range known[len(applied):] {
		if _, err := c.exec(ctx, c.db.dialect.translateDDL(s.sql)); err != nil {
			return fmt.Errorf("migration %d, %s: %w", s.number, s.name, err)
		}
		if err := c.insert(ctx, "loadout_schema", "number, name, sum, applied", []any{s.number, s.name, s.sum, timestamp(time.Now())}); err != nil {
			return err
		}
	}
	return nil
}

// compareMigrations returns an error if a migration that was applied to the
// database is unknown to the program or differs from the program's migration.
func compareMigrations(known []migration, applied []appliedMigration) error {
	if len(applied) > len(known) {
		return fmt.Errorf("%w: schema version %d, this program supports %d", ErrTooNew, len(applied), len(known))
	}
	for i, a := range applied {
		if a.Number != known[i].number || a.Sum != known[i].sum {
			return fmt.Errorf("%w: migration %d differs from the released one", ErrCorrupt, a.Number)
		}
	}
	return nil
}
