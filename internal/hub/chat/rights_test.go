package chat_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/chat"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/store/storetest"
	"github.com/loadout-dev/loadout/llm"
)

// disabling is a node with a model that answers after the turn, and a user with
// configurable rights.
func disabling(t *testing.T, now func(account.Principal) (account.Principal, error)) (e *chat.Engine, begun chan struct{}) {
	t.Helper()
	begun = make(chan struct{}, 1)
	slow := model(func(ctx context.Context, _ *llm.Request) (*llm.Answer, error) {
		begun <- struct{}{}
		<-ctx.Done()
		return nil, context.Cause(ctx)
	})
	e = node(t, storetest.Open(t, storetest.SQLite(t)), setupFixture{model: slow}, func(o *chat.Options) {
		o.Principal = func(ctx context.Context, u account.UserID) (account.Principal, error) {
			p, err := principals(ctx, u)
			if err != nil {
				return p, err
			}
			return now(p)
		}
	})
	return e, begun
}

// If a user is disabled, is no longer an admin or leaves a group, running turns end and
// waiting messages start none.
func TestCurrentRightsApply(t *testing.T) {
	const group = account.GroupID("team")
	for name, c := range map[string]struct {
		then, now account.Principal
		err       error
		want      string
	}{
		"disabled":     {err: account.ErrInvalidCredentials, want: "no longer permitted to use conversations"},
		"left a group": {then: account.Principal{Groups: map[account.GroupID]account.Role{group: account.Reporter}}, want: "fewer permissions"},
		"a lower role": {then: account.Principal{Groups: map[account.GroupID]account.Role{group: account.Owner}}, now: account.Principal{Groups: map[account.GroupID]account.Role{group: account.Reporter}}, want: "fewer permissions"},
		"no admin":     {then: account.Principal{Admin: true}, want: "fewer permissions"},
	} {
		t.Run(name, func(t *testing.T) {
			var changed atomic.Bool
			e, begun := disabling(t, func(p account.Principal) (account.Principal, error) {
				if !changed.Load() {
					p.Admin, p.Groups = c.then.Admin, c.then.Groups
					return p, nil
				}
				p.Admin, p.Groups = c.now.Admin, c.now.Groups
				return p, c.err
			})
			id := begin(t, e)
			first := say(t, e, id, "one")
			<-begun
			waits := say(t, e, id, "two")
			changed.Store(true)
			if got := end(t, e, id, first); got.Reason != chat.Failed || !strings.Contains(got.Text, c.want) {
				t.Errorf("what was under way ended: %s %s", got.Reason, got.Text)
			}
			if c.err != nil {
				if got := end(t, e, id, waits); got.Reason != chat.Failed || !strings.Contains(got.Text, c.want) {
					t.Errorf("what waited ended: %s %s", got.Reason, got.Text)
				}
			}
		})
	}
}

func TestTurnsContinueWithSameRights(t *testing.T) {
	for name, now := range map[string]func(p account.Principal) (account.Principal, error){
		"more":    func(p account.Principal) (account.Principal, error) { p.Admin, p.Name = true, "Ada"; return p, nil },
		"unknown": func(p account.Principal) (account.Principal, error) { return p, store.ErrUnavailable },
	} {
		t.Run(name, func(t *testing.T) {
			var asked atomic.Int32
			looked := make(chan struct{})
			e, begun := disabling(t, func(p account.Principal) (account.Principal, error) {
				switch asked.Add(1) {
				case 1: // starts the turn
					return p, nil
				case 3: // the second result counts
					close(looked)
				}
				return now(p)
			})
			id := begin(t, e)
			in := say(t, e, id, "one")
			<-begun
			<-looked
			if err := e.Cancel(t.Context(), ada, id); err != nil {
				t.Fatal(err)
			}
			if got := end(t, e, id, in); got.Reason != chat.Cancelled {
				t.Errorf("it ended: %s %s", got.Reason, got.Text)
			}
		})
	}
}
