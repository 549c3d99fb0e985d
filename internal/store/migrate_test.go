package store_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/store/storetest"
)

// addresses are a database without a schema of each kind.
var addresses = map[string]func(testing.TB) string{"SQLite": storetest.BlankSQLite, "PostgreSQL": storetest.BlankPostgres}

func eachAddress(t *testing.T, test func(t *testing.T, address string)) {
	for name, address := range addresses {
		t.Run(name, func(t *testing.T) { test(t, address(t)) })
	}
}

func TestMigrationFromEveryStep(t *testing.T) {
	for number := 1; number < store.Migrations(); number++ {
		t.Run(fmt.Sprint(number), func(t *testing.T) {
			eachAddress(t, func(t *testing.T, address string) {
				ctx := t.Context()
				old := must(store.OpenAt(ctx, address, number))(t)
				ada := newUser(t, old, "ada")
				mustDo(t, old.Close())

				db := storetest.Open(t, address)
				wantEqual(t, must(db.Users.Get(ctx, ada.ID))(t), ada)
				newSkill(t, db, store.UserNamespace(ada.ID), "pdf")
				mustDo(t, db.Audit.Append(ctx, store.AuditRecord{Actor: "ada"}))
			})
		})
	}
}

func TestMigrationSavesCopy(t *testing.T) {
	ctx := t.Context()
	address, number := storetest.BlankSQLite(t), store.Migrations()-1
	path := store.SQLitePath(address)
	copied := fmt.Sprintf("%s.schema-%d", path, number)
	old := must(store.OpenAt(ctx, address, number))(t)
	ada := newUser(t, old, "ada")
	mustDo(t, old.Close())

	// Without a copy, the schema stays as it is.
	mustDo(t, os.MkdirAll(filepath.Join(copied, "occupied"), 0o700))
	if db, err := store.Open(ctx, address, nil); err == nil || !strings.Contains(err.Error(), "upgrade database: back up") {
		t.Errorf("Open without a place for the copy returned %v, %v", db, err)
	}
	_, err := store.OpenExisting(ctx, address, false)
	wantError(t, err, store.ErrTooOld)
	mustDo(t, os.RemoveAll(copied))

	for range 2 { // nothing to migrate the second time
		mustDo(t, must(store.Open(ctx, address, nil))(t).Close())
	}
	files := must(filepath.Glob(path + ".schema-*"))(t)
	wantEqual(t, files, []string{copied})
	_, err = store.OpenExisting(ctx, copied, false)
	wantError(t, err, store.ErrTooOld)
	db := must(store.OpenExisting(ctx, copied, true))(t)
	wantEqual(t, must(db.Users.Get(ctx, ada.ID))(t), ada)
	mustDo(t, db.Close())
}

func TestNewerSchemaIsRefused(t *testing.T) {
	eachAddress(t, func(t *testing.T, address string) {
		ctx := t.Context()
		name := fmt.Sprintf("%04d_later.sql", store.Migrations()+1)
		newer := must(store.OpenWith(ctx, address, map[string]string{name: "CREATE TABLE later (id TEXT)"}))(t)
		mustDo(t, newer.Close())
		_, err := store.Open(ctx, address, nil)
		wantError(t, err, store.ErrTooNew)
	})
}

func TestFailedMigrationChangesNothing(t *testing.T) {
	eachAddress(t, func(t *testing.T, address string) {
		ctx := t.Context()
		name := fmt.Sprintf("%04d_bad.sql", store.Migrations()+1)
		db, err := store.OpenWith(ctx, address, map[string]string{name: "CREATE TABLE half (id TEXT); CREATE TABLE nonsense;"})
		if err == nil || !strings.Contains(err.Error(), "bad") {
			t.Errorf("error is %v", err)
		}
		mustDo(t, db.Close())
		good := must(store.OpenWith(ctx, address, map[string]string{name: "CREATE TABLE half (id TEXT)"}))(t)
		mustDo(t, good.Close())
	})
}

func TestEditedMigrationIsRefused(t *testing.T) {
	eachAddress(t, func(t *testing.T, address string) {
		ctx := t.Context()
		db := must(store.Open(ctx, address, nil))(t)
		must(store.Exec(ctx, db, "UPDATE loadout_schema SET sum = 'other' WHERE number = 2"))(t)
		mustDo(t, db.Close())
		_, err := store.Open(ctx, address, nil)
		wantError(t, err, store.ErrCorrupt)
	})
}

func TestNodesStartConcurrently(t *testing.T) {
	eachAddress(t, func(t *testing.T, address string) {
		var wg sync.WaitGroup
		for range 6 {
			wg.Go(func() {
				db, err := store.Open(t.Context(), address, nil)
				if err == nil {
					_, err = db.Users.CountAdmins(t.Context())
					err = errors.Join(err, db.Close())
				}
				if err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
	})
}

func TestAddresses(t *testing.T) {
	ctx := t.Context()
	dir := t.TempDir()
	for _, path := range []string{"plain.db", "with space.db", "a%20b?c#d&e=f.db", "ü.db"} {
		path = filepath.Join(dir, path)
		for _, address := range []string{path, "sqlite:" + path, "sqlite://" + path} {
			db := must(store.Open(ctx, address, nil))(t)
			if db.Kind() != "SQLite" {
				t.Errorf("kind is %s", db.Kind())
			}
			mustDo(t, db.Close())
			info := must(os.Stat(path))(t)
			if info.Mode().Perm() != 0o600 {
				t.Errorf("%s is readable by others: %v", path, info.Mode())
			}
		}
	}
	for _, address := range []string{
		"", "sqlite:", "sqlite::memory:", "mysql://u:secret@db.example.com/x?password=hunter2",
		"postgres://u:secret@[bad/x?password=hunter2", "postgres://u:secret@127.0.0.1:1/x?password=hunter2&connect_timeout=1",
	} {
		_, err := store.Open(ctx, address, nil)
		if err == nil {
			t.Fatalf("%q is opened", address)
		}
		for _, private := range []string{"secret", "hunter2", "u:", "user"} {
			if strings.Contains(err.Error(), private) {
				t.Errorf("the error for %q returned %q: %v", address, private, err)
			}
		}
	}
	mustDo(t, os.WriteFile(filepath.Join(dir, "text"), []byte(strings.Repeat("this is no database", 100)), 0o600))
	_, err := store.Open(ctx, filepath.Join(dir, "text"), nil)
	wantError(t, err, store.ErrCorrupt)
}
