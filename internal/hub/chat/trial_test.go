package chat_test

import (
	"errors"
	"testing"

	"github.com/loadout-dev/loadout/internal/hub/chat"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/store/storetest"
)

func TestTrialReplacesTheOldest(t *testing.T) {
	db := storetest.Open(t, storetest.SQLite(t))
	e := node(t, db, setupFixture{})
	saved := begin(t, e)
	var trials []string
	for range chat.MaxTrials + 1 {
		c, err := e.CreateTrial(t.Context(), ada, "", "", []byte("{}"))
		if err != nil {
			t.Fatal(err)
		}
		trials = append(trials, c.ID)
	}
	if _, err := e.Get(t.Context(), ada, trials[0]); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("the oldest of %d trials: %v, want %v", len(trials), err, store.ErrNotFound)
	}
	records, err := db.Audit.List(t.Context(), store.AuditQuery{Action: "session.delete", Namespace: store.UserNamespace(string(ada.User))})
	if err != nil || len(records) != 1 || records[0].Subject != "session/"+trials[0] || records[0].Actor != "" {
		t.Errorf("the deletion in the owner's audit log: %+v, %v", records, err)
	}
	for _, id := range append(trials[1:], saved) {
		if _, err := e.Get(t.Context(), ada, id); err != nil {
			t.Error(err)
		}
	}
}
