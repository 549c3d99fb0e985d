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

// migrations holds the steps of the schema, numbered from 1 without gaps. A
// released step never changes; a new step follows it.
//
//go:embed migrations/*.sql
var migrations embed.FS

// migration is one step of the schema.
type migration struct {
	number int
	name   string
	sql    string
	sum    string // SHA-256 of sql
}

// appliedMigration is a step that a database has applied.
type appliedMigration struct {
	Number int
	Sum    string
}

func (a *appliedMigration) fields() []any { return []any{&a.Number, &a.Sum} }

// lockSchema locks the schema of a PostgreSQL database during migration. The
// number is used for nothing else.
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
			return nil, fmt.Errorf("migration %s is not number %d", base, i+1)
		}
		sum := sha256.Sum256(text)
		out = append(out, migration{i + 1, label, string(text), hex.EncodeToString(sum[:])})
	}
	return out, nil
}

// migrate applies the missing steps, all or none. It waits for other nodes that
// migrate the same database until ctx is done.
func (db *DB) migrate(ctx context.Context, files fs.FS) error {
	known, err := readMigrations(files)
	if err != nil {
		return err
	}
	for try := 1; ; try++ {
		// Not serializable: PostgreSQL would hide the changes of the node that
		// held the lock before.
		err := conn{db: db}.runTx(ctx, sql.LevelDefault, func(c conn) error { return c.applyMigrations(ctx, known) })
		if !errors.Is(err, ErrBusy) {
			return err
		}
		if err := backOff(ctx, try); err != nil {
			return err
		}
	}
}

// applyMigrations applies the missing steps. It needs a transaction.
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
	there, err := queryAll[appliedMigration](ctx, c, "SELECT number, sum FROM loadout_schema ORDER BY number")
	if err != nil {
		return err
	}
	if err := compareMigrations(known, there); err != nil {
		return err
	}
	for _, s := range known[len(there):] {
		if _, err := c.exec(ctx, c.db.dialect.ddl(s.sql)); err != nil {
			return fmt.Errorf("migration %d, %s: %w", s.number, s.name, err)
		}
		if err := c.insert(ctx, "loadout_schema", "number, name, sum, applied", []any{s.number, s.name, s.sum, timestamp(time.Now())}); err != nil {
			return err
		}
	}
	return nil
}

// compareMigrations compares the migrations of a database with those of the program.
func compareMigrations(known []migration, there []appliedMigration) error {
	if len(there) > len(known) {
		return fmt.Errorf("%w: schema version %d, this program supports %d", ErrTooNew, len(there), len(known))
	}
	for i, a := range there {
		if a.Number != known[i].number || a.Sum != known[i].sum {
			return fmt.Errorf("%w: migration %d differs from the released one", ErrCorrupt, a.Number)
		}
	}
	return nil
}
