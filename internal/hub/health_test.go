package hub_test

import (
	"database/sql"
	"strings"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/loadout-dev/loadout/internal/encryption"
	"github.com/loadout-dev/loadout/internal/hub"
	"github.com/loadout-dev/loadout/internal/store/storetest"
)

// A node with a full disk reports it. If there can be other nodes, they take its
// requests; a single node continues with what is possible.
func TestFullDisk(t *testing.T) {
	for name, tt := range map[string]struct {
		database func(testing.TB) string
		status   int
	}{"SQLite": {storetest.SQLite, 200}, "PostgreSQL": {storetest.Postgres, 503}} {
		t.Run(name, func(t *testing.T) {
			n := start(t, hub.Options{Database: tt.database(t), MinDisk: 2 << 20, Keys: []encryption.Key{encryption.NewKey()}})
			if got := n.anybody().send(t, "GET", "/readyz", nil).want(t, 200).body; !strings.Contains(got, "disk: ok") {
				t.Errorf("got %q", got)
			}
			n.SetDiskFree(2 << 20)
			n.anybody().send(t, "GET", "/readyz", nil).want(t, 200)
			n.SetDiskFree(1 << 20)
			got := n.anybody().send(t, "GET", "/readyz", nil)
			switch {
			case tt.status != 200:
				got.wantProblem(t, tt.status, "disk_full")
			case got.status != 200 || !strings.Contains(got.body, "disk: full"):
				t.Errorf("got %d %q", got.status, got.body)
			}
		})
	}
}

// A node whose database answers but does not complete writes is not ready.
func TestReadinessNeedsWrites(t *testing.T) {
	address := storetest.Postgres(t)
	n := start(t, hub.Options{Database: address, Keys: []encryption.Key{encryption.NewKey()}})
	db := must(sql.Open("pgx", address))(t)
	defer db.Close()
	tx := must(db.Begin())(t)
	if _, err := tx.Exec("LOCK TABLE events"); err != nil {
		t.Fatal(err)
	}
	n.anybody().send(t, "GET", "/readyz", nil).wantProblem(t, 503, "unavailable")
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	for n.anybody().send(t, "GET", "/readyz", nil).status != 200 {
		time.Sleep(20 * time.Millisecond) // nothing tells when the last check expires
	}
}
