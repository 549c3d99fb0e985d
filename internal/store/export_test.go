package store

import (
	"context"
	"database/sql"
	"fmt"
	"io/fs"
	"strings"
	"testing/fstest"
	"time"
)

// ShiftClock moves the clock of a database, as seen by db, forward or back.
func ShiftClock(db *DB, by time.Duration) {
	d := dialects[db.dialect.name]
	d.now = fmt.Sprintf("(%s + %d)", d.now, by.Milliseconds())
	db.dialect = d
	db.Tables = tables(conn{db: db})
}

var dialects = map[string]dialect{sqliteDialect.name: sqliteDialect, postgresDialect.name: postgresDialect}

// PruneSecrets is the statement of [Secrets.Prune].
const PruneSecrets = pruneSecrets

// ListAttachmentsSQL is the query of [Attachments.List].
const ListAttachmentsSQL = listAttachmentsSQL

// BranchedSQL is the query of [Events.ReadBranched].
const BranchedSQL = branchedSQL

// ListTeamSQL is the query of [Usage.ListTeam].
func ListTeamSQL(groups int) string { return listTeamSQL(groups) }

// PendingSQL is the query for the newest versions that nobody decided about.
func PendingSQL(skills int) string { return pendingSQL(skills) }

// Exec runs a statement unchanged.
func Exec(ctx context.Context, db *DB, query string, args ...any) (int64, error) {
	return conn{db: db}.exec(ctx, query, args...)
}

// OpenAt opens a database with only the first migrations.
func OpenAt(ctx context.Context, address string, number int) (*DB, error) {
	return openWith(ctx, address, first(number))
}

// OpenWith opens a database with additional migrations.
func OpenWith(ctx context.Context, address string, more map[string]string) (*DB, error) {
	files := first(Migrations())
	for name, text := range more {
		files["migrations/"+name] = &fstest.MapFile{Data: []byte(text)}
	}
	return openWith(ctx, address, files)
}

func openWith(ctx context.Context, address string, files fs.FS) (*DB, error) {
	db, err := open(ctx, address, new(Options).orDefaults())
	if err != nil {
		return nil, err
	}
	return db, db.migrate(ctx, files)
}

// Migrations is how many there are.
func Migrations() int {
	known, err := readMigrations(migrations)
	if err != nil {
		panic(err)
	}
	return len(known)
}

func first(number int) fstest.MapFS {
	files := fstest.MapFS{}
	known, err := readMigrations(migrations)
	if err != nil {
		panic(err)
	}
	for _, s := range known[:number] {
		files[fmt.Sprintf("migrations/%04d_%s.sql", s.number, s.name)] = &fstest.MapFile{Data: []byte(s.sql)}
	}
	return files
}

// Plan is how the database answers what List asks.
func Plan(ctx context.Context, db *DB, q SkillQuery) (string, error) {
	query, args := q.sql([]string{"", ""})
	return Explain(ctx, db, query, args...)
}

// Explain is how the database answers a question.
func Explain(ctx context.Context, db *DB, query string, args ...any) (string, error) {
	if db.path == "" {
		lines, err := queryScalars[string](ctx, conn{db: db}, "EXPLAIN "+query, args...)
		return strings.Join(lines, "\n"), err
	}
	steps, err := queryAll[planStep](ctx, conn{db: db}, "EXPLAIN QUERY PLAN "+query, args...)
	var lines []string
	for _, s := range steps {
		lines = append(lines, s.Detail)
	}
	return strings.Join(lines, "\n"), err
}

type planStep struct {
	ID, Parent, Unused int64
	Detail             string
}

func (s *planStep) fields() []any { return []any{&s.ID, &s.Parent, &s.Unused, &s.Detail} }

// Keys returns the keys of a page cursor.
func Keys(p Page, n int) ([]string, error) { return p.decodeCursor(n) }

// FailRead reads a row, which fails with err.
func FailRead(ctx context.Context, db *DB, err error) error {
	return conn{db: db}.query(ctx, false, func(*sql.Rows) error { return err }, "SELECT 1")
}

// CancelRead reads a row, and cancels the context before the row is scanned.
func CancelRead(ctx context.Context, db *DB) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	return conn{db: db}.query(ctx, false, func(rows *sql.Rows) error {
		cancel()
		for { // a scan succeeds until the rows have been closed
			var n int
			if err := scanRow(rows, &n); err != nil {
				return err
			}
		}
	}, "SELECT 1")
}

// QueryInts returns the results of a query with one column.
func QueryInts(ctx context.Context, db *DB, query string) ([]int64, error) {
	return queryScalars[int64](ctx, conn{db: db}, query)
}
