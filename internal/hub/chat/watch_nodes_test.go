package chat_test

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/loadout-dev/loadout/internal/hub/chat"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/store/storetest"
)

// Watchers on two nodes that add events at the same time get the stored events,
// whether their own node has added them or not.
func TestWatchersOfTwoNodesGetTheStoredEvents(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		const each = chat.MaxQueued / 2
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // a watcher that misses an event waits
		defer cancel()
		nodes := []*chat.Engine{node(t, db, setupFixture{}), node(t, db, setupFixture{})}
		id := begin(t, nodes[0])
		encode := func(e chat.Event) string {
			js, err := json.Marshal(e)
			if err != nil {
				t.Error(err)
			}
			return string(js)
		}
		var all sync.WaitGroup
		got := make([][]string, 4)
		for i := range got {
			all.Go(func() {
				ended := 0
				for ev, err := range nodes[i%2].Watch(ctx, ada, id, 0) {
					if err != nil {
						t.Errorf("watcher %d, after %d events: %v", i, len(got[i]), err)
						return
					}
					got[i] = append(got[i], encode(ev))
					if ev.Type == chat.TurnEnded {
						ended++
					}
					if ended == 2*each {
						return
					}
				}
			})
		}
		for _, e := range nodes {
			all.Go(func() {
				for range each {
					if _, err := e.SendMessage(ctx, ada, id, chat.Message{Text: "hello"}); err != nil {
						t.Error(err)
					}
				}
			})
		}
		all.Wait()
		var want []string
		for ev, err := range nodes[0].ReadEvents(ctx, ada, id, 0, false) {
			if err != nil {
				t.Fatal(err)
			}
			want = append(want, encode(ev))
		}
		for i := range got {
			if !slices.Equal(got[i], want) {
				t.Errorf("watcher %d: got\n%q\nwant\n%q", i, got[i], want)
			}
		}
	})
}
