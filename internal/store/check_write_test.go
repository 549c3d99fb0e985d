package store_test

import (
	"testing"

	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/store/storetest"
)

// Checks of writes leave nothing behind, however many nodes come and go.
func TestCheckWriteLeavesNoRows(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		for _, node := range []string{"one", "two", "two"} {
			mustDo(t, db.CheckWrite(t.Context(), node))
		}
		n, err := store.Exec(t.Context(), db, "DELETE FROM leases")
		mustDo(t, err)
		wantEqual(t, n, int64(0))
	})
}
