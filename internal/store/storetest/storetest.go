// Package storetest provides real databases for tests: SQLite files, and a
// PostgreSQL server. The server starts with the first test that needs it, and
// [Main] stops it. Tests that need the server are skipped if the PostgreSQL
// programs are missing.
package storetest

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib" // driver for creating schemas

	"github.com/loadout-dev/loadout/internal/store"
)

// server is the PostgreSQL server shared by the tests of this process.
var server struct {
	once    sync.Once
	running *Server
	err     error

	mu      sync.Mutex
	schemas int
}

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

// SQLite returns the address of a database file that does not exist yet.
func SQLite(t testing.TB) string {
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

// Postgres returns the address of an empty schema on a server shared by all
// tests of the process. If PostgreSQL is missing, it skips the test, or fails
// it if LOADOUT_TEST_POSTGRES is set.
func Postgres(t testing.TB) string {
	t.Helper()
	server.once.Do(func() { server.running, server.err = StartServer() })
	if server.err != nil {
		if os.Getenv("LOADOUT_TEST_POSTGRES") != "" {
			t.Fatal(server.err)
		}
		t.Skip(server.err)
	}
	server.mu.Lock()
	server.schemas++
	schema := fmt.Sprintf("test_%d", server.schemas)
	server.mu.Unlock()
	base, err := sql.Open("pgx", server.running.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer base.Close()
	if _, err := base.Exec("CREATE SCHEMA " + schema); err != nil {
		t.Fatal(err)
	}
	return server.running.URL() + "&search_path=" + url.QueryEscape(schema)
}
