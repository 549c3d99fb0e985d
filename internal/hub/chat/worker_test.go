package chat_test

import (
	"testing"
	"time"

	"github.com/loadout-dev/loadout/internal/hub/chat"
	"github.com/loadout-dev/loadout/internal/store"
)

// A node that does not get the lease of a conversation does nothing with it, and
// can close.
func TestConversationOfAnotherNodeIsNotAdopted(t *testing.T) {
	eachDatabase(t, func(t *testing.T, open func() *store.DB) {
		db := open()
		e := node(t, db, setupFixture{model: model(echo)})
		id := begin(t, e)
		if err := chat.AdoptConversation(e, t.Context(), "not a conversation"); err != nil {
			t.Errorf("another lease: %v", err)
		}
		held, err := db.Leases.Acquire(t.Context(), id, "another node", time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		if err := chat.AdoptConversation(e, t.Context(), id); err != nil {
			t.Errorf("a held lease: %v", err)
		}
		if err := db.Leases.Release(t.Context(), held); err != nil {
			t.Fatal(err)
		}
		// The message is handled, although the conversation was not adopted before.
		end(t, e, id, say(t, e, id, "hello"))
		other := open()
		if err := other.Close(); err != nil {
			t.Fatal(err)
		}
		lost := node(t, other, setupFixture{model: model(echo)})
		if err := chat.AdoptConversation(lost, t.Context(), id); err == nil {
			t.Error("a closed database is no error")
		}
		closeNode(t, lost)
	})
}
