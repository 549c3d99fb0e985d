package chat_test

import (
	"errors"
	"testing"
	"time"

	"github.com/loadout-dev/loadout/internal/hub/chat"
	"github.com/loadout-dev/loadout/internal/hub/quota"
	"github.com/loadout-dev/loadout/internal/store/storetest"
	"github.com/loadout-dev/loadout/session"
)

// A conversation over the quota is refused before it is written.
func TestImportChecksQuotaFirst(t *testing.T) {
	e := node(t, storetest.Open(t, storetest.SQLite(t)), setupFixture{}, func(o *chat.Options) { o.Quotas.Default.User.Sessions = 1 })
	begin(t, e)
	i, err := e.OpenImporter(t.Context(), ada)
	if err != nil {
		t.Fatal(err)
	}
	defer i.Close()
	err = i.Import(t.Context(), chat.Imported{Key: "x", Title: "X"}, func(session.Log) error {
		t.Error("the conversation was written")
		return nil
	})
	if _, ok := errors.AsType[*quota.ExceededError](err); !ok {
		t.Errorf("error %v", err)
	}
}

// A conversation is found again when the time of its last message is no longer in the
// future, and therefore known.
func TestImportIsFoundOnceItsTimeIsKnown(t *testing.T) {
	e := node(t, storetest.Open(t, storetest.SQLite(t)), setupFixture{})
	i, err := e.OpenImporter(t.Context(), ada)
	if err != nil {
		t.Fatal(err)
	}
	defer i.Close()
	unknown := chat.Imported{Key: "x", Title: "X"}
	known := chat.Imported{Key: "x", Title: "X", Last: time.Now()}
	if id, err := i.Find(t.Context(), known); id != "" || err != nil {
		t.Errorf("before: %q, %v", id, err)
	}
	if err := i.Import(t.Context(), unknown, func(session.Log) error { return nil }); err != nil {
		t.Fatal(err)
	}
	for _, c := range []chat.Imported{unknown, known} {
		if id, err := i.Find(t.Context(), c); id != i.ID(unknown) || err != nil {
			t.Errorf("%v: %q, %v", c.Last, id, err)
		}
	}
}
