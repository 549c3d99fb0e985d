package store_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/store/storetest"
)

func TestTrialAgents(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		plain := must(db.Sessions.Create(ctx, store.Session{Owner: "ada", Title: "plain"}))(t)
		trial := must(db.Sessions.Create(ctx, store.Session{Owner: "ada", Title: "trial"}))(t)
		wantError(t, db.TrialAgents.Add(ctx, trial.ID, bytes.Repeat([]byte{1}, store.MaxValue+1)), store.ErrInvalid)
		wantError(t, db.TrialAgents.Add(ctx, "nothing", []byte("x")), store.ErrNotFound)
		mustDo(t, db.TrialAgents.Add(ctx, trial.ID, []byte("kind: Ghost")))
		wantError(t, db.TrialAgents.Add(ctx, trial.ID, []byte("kind: Bot")), store.ErrExists)
		wantEqual(t, string(must(db.TrialAgents.Documents(ctx, trial.ID))(t)), "kind: Ghost")

		listed, _, err := db.Sessions.List(ctx, store.SessionQuery{Owner: "ada"})
		if err != nil || len(listed) != 1 || listed[0].ID != plain.ID {
			t.Errorf("conversations: %v, %v; want only %s", listed, err, plain.ID)
		}
		if found := must(db.TrialAgents.List(ctx, "ada"))(t); len(found) != 1 || found[0].ID != trial.ID {
			t.Errorf("trials: %v", found)
		}
		if found := must(db.TrialAgents.ListUnchanged(ctx, trial.Updated))(t); len(found) != 0 {
			t.Errorf("a trial that changed is old: %v", found)
		}
		if found := must(db.TrialAgents.ListUnchanged(ctx, trial.Updated.Add(time.Second)))(t); len(found) != 1 {
			t.Errorf("an old trial is missing: %v", found)
		}
		mustDo(t, db.Sessions.Delete(ctx, trial.ID))
		_, err = db.TrialAgents.Documents(ctx, trial.ID)
		wantError(t, err, store.ErrNotFound)
	})
}
