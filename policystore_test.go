package loadout_test

import (
	"database/sql"
	"path/filepath"
	"testing"

	"github.com/loadout-dev/loadout/loadouttest"
	"github.com/loadout-dev/loadout/policy"
)

func TestExampleTableIsAPolicyStore(t *testing.T) {
	loadouttest.PolicyStore(t, func(t *testing.T) policy.Store {
		db, err := sql.Open("sqlite", filepath.Join(t.TempDir(), "grants.db"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { db.Close() })
		db.SetMaxOpenConns(1) // no busy errors
		if _, err := db.Exec("CREATE TABLE grants (id TEXT PRIMARY KEY, data BLOB)"); err != nil {
			t.Fatal(err)
		}
		return policy.NewStore(grantTable{db})
	})
}
