// Package storetest gives tests real databases: SQLite in a file, and a PostgreSQL
// server of their own, started when the first test wants it and stopped by [Main]. It
// needs the programs of PostgreSQL, and says so where a test is skipped without them.
package storetest

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver that schemas are made with

	"github.com/loadout-dev/loadout/internal/store"
)

// server is the one of this process.
var server struct {
	once    sync.Once
	running *Server
	err     error

	mu      sync.Mutex
	schemas int
}

// Main runs the tests of a package, stops the server that they used, and returns the
// code to exit with.
func Main(m *testing.M) int {
	code := m.Run()
	if server.running != nil {
		server.running.Close()
	}
	return code
}

// Each runs a test on both databases, each empty, with the newest schema.
func Each(t *testing.T, test func(t *testing.T, db *store.DB)) {
	t.Helper()
	for _, kind := range []struct {
		name    string
		address func(testing.TB) string
	}{{"SQLite", SQLite}, {"PostgreSQL", Postgres}} {
		t.Run(kind.name, func(t *testing.T) { test(t, Open(t, kind.address(t))) })
	}
}

// Open opens a database and closes it when the test is over.
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

// SQLite is the address of a database that is not there yet.
func SQLite(t testing.TB) string {
	t.Helper()
	return "sqlite:" + filepath.Join(t.TempDir(), "hub.db")
}

// Postgres is the address of an empty schema of a server that all tests of the process
// share. The test is skipped where there is no PostgreSQL, unless
// LOADOUT_TEST_POSTGRES says that there has to be.
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
