package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
)

// single is a database with one connection.
func single(t *testing.T, name string) *sql.DB {
	t.Helper()
	db, err := openSQL("file:" + escapePath(name))
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	t.Cleanup(func() { db.Close() })
	return db
}

func change(t *testing.T, db *sql.DB, query string, args ...any) {
	t.Helper()
	if _, err := db.Exec(query, args...); err != nil {
		t.Fatal(err)
	}
}

func count(t *testing.T, db *sql.DB) (n int) {
	t.Helper()
	if err := db.QueryRow("SELECT count(*) FROM t").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestStatementsAreCached(t *testing.T) {
	name := filepath.Join(t.TempDir(), "db")
	db := single(t, name)
	change(t, db, "CREATE TABLE t (a INTEGER PRIMARY KEY); CREATE TABLE u (b INTEGER)")
	for i := range 3 {
		change(t, db, "INSERT INTO t VALUES ($1)", i)
	}

	t.Run("within itself", func(t *testing.T) {
		c, err := db.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		var read func(depth int) int
		read = func(depth int) int {
			rows, err := c.QueryContext(t.Context(), "SELECT a FROM t WHERE a >= $1 ORDER BY a", depth)
			if err != nil {
				t.Fatal(err)
			}
			defer rows.Close()
			found := 0
			for rows.Next() {
				if found++; depth < 2 {
					found += read(depth + 1)
				}
			}
			return found
		}
		if got := read(0); got != 3+3*(2+2*1) {
			t.Errorf("%d rows, want 15", got)
		}
	})
	t.Run("with a limit", func(t *testing.T) {
		const query = "SELECT a FROM t ORDER BY a LIMIT $1"
		if got := fixedPlan(query); got != "SELECT a FROM t ORDER BY a LIMIT 0+$1" {
			t.Errorf("prepared %q, which is prepared again for each value", got)
		}
		for want := range 3 {
			rows, err := db.Query(query, want)
			if err != nil {
				t.Fatal(err)
			}
			got := 0
			for rows.Next() {
				got++
			}
			rows.Close()
			if got != want {
				t.Errorf("%d rows, want %d", got, want)
			}
		}
	})
	t.Run("after a failure", func(t *testing.T) {
		if _, err := db.Exec("INSERT INTO t VALUES ($1)", 1); err == nil {
			t.Error("one key was taken twice")
		}
		change(t, db, "INSERT INTO t VALUES ($1)", 3)
		if n := count(t, db); n != 4 {
			t.Errorf("%d rows, want 4", n)
		}
	})
	t.Run("after cancellation", func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		rows, err := db.QueryContext(ctx, "SELECT a FROM t ORDER BY a")
		if err != nil || !rows.Next() {
			t.Fatal(err)
		}
		stop()
		for rows.Next() {
		}
		if err := rows.Err(); err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		rows.Close()
		if n := count(t, db); n != 4 {
			t.Errorf("%d rows, want 4", n)
		}
	})
	t.Run("after the table changed", func(t *testing.T) {
		before := count(t, db)
		change(t, single(t, name), "ALTER TABLE t ADD COLUMN more TEXT DEFAULT 'x'")
		var a int
		var more string
		if err := db.QueryRow("SELECT * FROM t WHERE a = 0").Scan(&a, &more); err != nil || more != "x" {
			t.Errorf("%q, %v", more, err)
		}
		if n := count(t, db); n != before {
			t.Errorf("%d rows, want %d", n, before)
		}
	})
	t.Run("more than the limit", func(t *testing.T) {
		held, err := db.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer held.Close()
		rows, err := held.QueryContext(t.Context(), "SELECT a FROM t ORDER BY a")
		if err != nil || !rows.Next() {
			t.Fatal(err)
		}
		defer rows.Close()
		for i := range maxStatements + 10 {
			var got int
			if err := held.QueryRowContext(t.Context(), fmt.Sprint("SELECT ", i)).Scan(&got); err != nil || got != i {
				t.Fatalf("%d, %v; want %d", got, err, i)
			}
		}
		left := 0
		for rows.Next() {
			left++
		}
		if left != 3 || rows.Err() != nil {
			t.Errorf("%d rows were left, %v; want 3", left, rows.Err())
		}
		held.Raw(func(c any) error {
			if n := len(c.(*cachingConn).statements); n > maxStatements {
				t.Errorf("%d are stored", n)
			}
			return nil
		})
	})
}
