package chat_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/loadout-dev/loadout/internal/account"
	"github.com/loadout-dev/loadout/internal/hub/chat"
	"github.com/loadout-dev/loadout/internal/store/storetest"
	"github.com/loadout-dev/loadout/llm"
)

// What waits in a conversation is done with the rights that the person has when its turn
// comes: none is done for who is disabled meanwhile.
func TestRightsAreThoseOfTheMoment(t *testing.T) {
	db := storetest.Open(t, storetest.SQLite(t))
	var disabled atomic.Bool
	begun, release := make(chan struct{}), make(chan struct{})
	slow := model(func(ctx context.Context, r *llm.Request) (*llm.Answer, error) {
		if !disabled.Load() {
			close(begun)
			<-release
		}
		return says("done"), nil
	})
	e := node(t, db, kit{model: slow}, func(o *chat.Options) {
		o.Principal = func(ctx context.Context, u account.UserID) (account.Principal, error) {
			if disabled.Load() {
				return account.Principal{}, account.ErrRefused
			}
			return principals(ctx, u)
		}
	})
	id := begin(t, e)
	first := say(t, e, id, "one")
	<-begun
	second := say(t, e, id, "two")
	disabled.Store(true)
	close(release)
	if got := end(t, e, id, first); got.Reason != chat.Done {
		t.Errorf("the first ended: %s %s", got.Reason, got.Text)
	}
	if got := end(t, e, id, second); got.Reason != chat.Failed {
		t.Errorf("the second, of who is disabled, ended: %s %s", got.Reason, got.Text)
	}
}
