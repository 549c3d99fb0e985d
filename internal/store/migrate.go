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

// migrations are the steps of the schema, numbered from 1 without a gap. One that
// was released is never changed: another follows it.
//
//go:embed migrations/*.sql
var migrations embed.FS

// step is one migration.
type step struct {
	number int
	name   string
	sql    string
	sum    string // of sql
}

// applied is a step that a database has.
type applied struct {
	Number int
	Sum    string
}

func (a *applied) fields() []any { return []any{&a.Number, &a.Sum} }

// lockSchema is what nodes that migrate one PostgreSQL database lock: a number that
// is nobody else's.
const lockSchema = "SELECT pg_advisory_xact_lock(7306916068149716736)"

// steps reads the migrations in their order.
func steps(files fs.FS) ([]step, error) {
	names, err := fs.Glob(files, "migrations/*.sql")
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	var out []step
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
		out = append(out, step{i + 1, label, string(text), hex.EncodeToString(sum[:])})
	}
	return out, nil
}

// migrate applies the steps that a database lacks, all or none. Others that do the
// same at this moment are waited for, as long as ctx lasts.
func (db *DB) migrate(ctx context.Context, files fs.FS) error {
	known, err := steps(files)
	if err != nil {
		return err
	}
	for try := 1; ; try++ {
		// Not as if alone: PostgreSQL would not show what was done by the one who had
		// the lock before.
		err := conn{db: db}.once(ctx, sql.LevelDefault, func(c conn) error { return c.apply(ctx, known) })
		if !errors.Is(err, ErrBusy) {
			return err
		}
		if err := pause(ctx, try); err != nil {
			return err
		}
	}
}

// apply applies in a transaction what is lacking.
func (c conn) apply(ctx context.Context, known []step) error {
	if c.db.path == "" {
		if _, err := c.exec(ctx, lockSchema); err != nil {
			return err
		}
	}
	if _, err := c.exec(ctx, `CREATE TABLE IF NOT EXISTS loadout_schema (
		number BIGINT NOT NULL PRIMARY KEY, name TEXT NOT NULL, sum TEXT NOT NULL, applied BIGINT NOT NULL)`); err != nil {
		return err
	}
	there, err := all[applied](ctx, c, "SELECT number, sum FROM loadout_schema ORDER BY number")
	if err != nil {
		return err
	}
	if err := agree(known, there); err != nil {
		return err
	}
	for _, s := range known[len(there):] {
		if _, err := c.exec(ctx, c.db.dialect.ddl(s.sql)); err != nil {
			return fmt.Errorf("migration %d, %s: %w", s.number, s.name, err)
		}
		if err := c.insert(ctx, "loadout_schema", "number, name, sum, applied", []any{s.number, s.name, s.sum, stamp(time.Now())}); err != nil {
			return err
		}
	}
	return nil
}

// agree compares what a database has with what the program knows.
func agree(known []step, there []applied) error {
	if len(there) > len(known) {
		return fmt.Errorf("%w: its schema is number %d, this one knows %d", ErrTooNew, len(there), len(known))
	}
	for i, a := range there {
		if a.Number != known[i].number || a.Sum != known[i].sum {
			return fmt.Errorf("%w: its migration %d is not the one that was released", ErrCorrupt, a.Number)
		}
	}
	return nil
}
