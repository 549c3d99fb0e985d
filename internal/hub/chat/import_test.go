package chat_test

import (
	"errors"
	"testing"

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
