// Package storetest provides real databases for tests: SQLite files, and a
// PostgreSQL server. They are copies of a migrated database. The server starts with the first test that needs it, and
// [Main] stops it. Tests that need the server are skipped if the PostgreSQL
// programs are missing.
package storetest

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib" // driver for creating databases

	"github.com/loadout-dev/loadout/internal/store"
)

// server is the PostgreSQL server shared by the tests of this process.
var server struct {
	once    sync.Once
	running *Server
	err     error

	mu        sync.Mutex
	databases int
}

// migrated is the PostgreSQL database whose copies the tests use.
const migrated = "migrated"

// Main runs the tests of a package, stops the server, and returns the exit
// code.
func Main(m *testing.M) int {
	code := m.Run()
	if server.running != nil {
		server.running.Close()
	}
	return code
}

// Each runs a test on an empty SQLite and an empty PostgreSQL database with the
// newest schema.
func Each(t *testing.T, test func(t *testing.T, db *store.DB)) {
	t.Helper()
	for _, kind := range []struct {
		name    string
		address func(testing.TB) string
	}{{"SQLite", SQLite}, {"PostgreSQL", Postgres}} {
		t.Run(kind.name, func(t *testing.T) { test(t, Open(t, kind.address(t))) })
	}
}

// Open opens a database and closes it when the test ends.
func Open(t testing.TB, address string) *store.DB {
	t.Helper()
	db, err := store.Open(context.Background(), address, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

// SQLite returns the address of an empty database file with the newest schema.
func SQLite(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "hub.db")
	CreateSQLite(t, path)
	return "sqlite:" + path
}

// CreateSQLite creates an empty database file with the newest schema, unless the
// file exists. It copies a database, because migrations take longer than most tests.
func CreateSQLite(t testing.TB, path string) {
	t.Helper()
	data, err := emptySQLite()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err == nil {
		return
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// emptySQLite returns the content of a database file with the newest schema.
var emptySQLite = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "loadout-sqlite-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "hub.db")
	if err := migrate("sqlite:" + path); err != nil {
		return nil, err
	}
	return os.ReadFile(path)
})

// migrate creates the newest schema in a database.
func migrate(address string) error {
	db, err := store.Open(context.Background(), address, nil)
	if err != nil {
		return err
	}
	return db.Close()
}

// BlankSQLite returns the address of a database file that does not exist yet.
func BlankSQLite(t testing.TB) string {
	t.Helper()
	return "sqlite:" + filepath.Join(t.TempDir(), "hub.db")
}

// DropTable drops a table of the SQLite database at an address, so that all
// later reads and writes of it fail.
func DropTable(t testing.TB, address, table string) {
	t.Helper()
	db, err := sql.Open("sqlite", strings.TrimPrefix(address, "sqlite:"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec("PRAGMA foreign_keys = OFF; DROP TABLE " + table); err != nil {
		t.Fatal(err)
	}
}

// Postgres returns the address of an empty database with the newest schema, on a
// server shared by all tests of the process. If PostgreSQL is missing, it skips the
// test, or fails it if LOADOUT_TEST_POSTGRES is set.
func Postgres(t testing.TB) string {
	t.Helper()
	return createPostgres(t, migrated)
}

// BlankPostgres is like [Postgres], for a database without a schema.
func BlankPostgres(t testing.TB) string {
	t.Helper()
	return createPostgres(t, "template0")
}

// createPostgres copies a database of the shared server, and returns the address of
// the copy.
func createPostgres(t testing.TB, template string) string {
	t.Helper()
	server.once.Do(func() {
		if server.running, server.err = StartServer(); server.err != nil {
			return
		}
		if server.err = server.running.exec("CREATE DATABASE " + migrated); server.err == nil {
			server.err = migrate(server.running.address(migrated))
		}
	})
	if server.err != nil {
		if os.Getenv("LOADOUT_TEST_POSTGRES") != "" {
			t.Fatal(server.err)
		}
		t.Skip(server.err)
	}
	server.mu.Lock()
	server.databases++
	name := fmt.Sprintf("test_%d", server.databases)
	server.mu.Unlock()
	if err := server.running.exec("CREATE DATABASE " + name + " TEMPLATE " + template); err != nil {
		t.Fatal(err)
	}
	return server.running.address(name)
}
