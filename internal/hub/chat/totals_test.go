package chat_test

import (
	"errors"
	"testing"
	"time"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/chat"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/store/storetest"
)

// Users get their own totals, and only administrators those of another user.
func TestTotalsOfAnotherUser(t *testing.T) {
	db := storetest.Open(t, storetest.SQLite(t))
	e := node(t, db, setupFixture{})
	now := time.Now()
	for owner, turns := range map[account.UserID]int64{ada.User: 1, bob.User: 2} {
		if err := db.Meter.Add(t.Context(), store.MeterEntry{Date: now, Owner: string(owner), Model: "echo:1", Turns: turns}); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		name string
		p    account.Principal
		user account.UserID
		want int64 // turns; 0 means that it is denied
	}{
		{"own", ada, "", 1}, {"own by name", ada, ada.User, 1}, {"of another", ada, bob.User, 0},
		{"of one, by an administrator", admin, bob.User, 2}, {"of all, by an administrator", admin, "", 3},
	} {
		sums, err := e.Totals(t.Context(), tt.p, chat.TotalsQuery{By: store.ByUser, User: tt.user, Since: now.Add(-time.Hour)})
		_, denied := errors.AsType[*account.DeniedError](err)
		turns := int64(0)
		for _, s := range sums {
			turns += s.Turns
		}
		if turns != tt.want || (tt.want == 0) != denied {
			t.Errorf("%s: %d turns, %v; want %d", tt.name, turns, err, tt.want)
		}
	}
}
