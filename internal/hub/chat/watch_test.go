package chat_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/loadout-dev/loadout/internal/bus"
	"github.com/loadout-dev/loadout/internal/hub/chat"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/store/storetest"
)

func TestWatchResumesWithoutGap(t *testing.T) {
	address := storetest.SQLite(t)
	nodes := []*chat.Engine{node(t, openAt(t, address), setupFixture{}), node(t, openAt(t, address), setupFixture{})}
	rapid.Check(t, func(rt *rapid.T) {
		id := begin(t, nodes[0])
		messages := rapid.IntRange(1, 4).Draw(rt, "messages")
		cuts := rapid.SliceOfN(rapid.IntRange(1, 7), 1, 12).Draw(rt, "events until the connection breaks")
		var all sync.WaitGroup
		all.Go(func() {
			for i := range messages {
				if _, err := nodes[i%2].SendMessage(t.Context(), ada, id, chat.Message{Text: fmt.Sprint("message ", i)}); err != nil {
					t.Error(err)
				}
			}
		})
		var got []chat.Event
		ended, last := 0, int64(0)
		for turn := 0; ended < messages; turn++ {
			left := 1 << 20 // the last connection holds
			if turn < len(cuts) {
				left = cuts[turn]
			}
			for ev, err := range nodes[turn%2].Watch(t.Context(), ada, id, last) {
				if err != nil {
					rt.Fatal(err)
				}
				got, last = append(got, ev), ev.Seq
				if ev.Type == chat.TurnEnded {
					ended++
				}
				if left--; left == 0 || ended == messages {
					break
				}
			}
		}
		all.Wait()
		var whole []chat.Event
		for ev, err := range nodes[1].Watch(t.Context(), ada, id, 0) {
			if err != nil {
				rt.Fatal(err)
			}
			if whole = append(whole, ev); ev.Seq == last {
				break
			}
		}
		if isReported(got) != isReported(whole) || len(got) != len(whole) {
			rt.Errorf("in pieces:\n%s\nat once:\n%s", isReported(got), isReported(whole))
		}
		for i, ev := range got {
			if ev.Seq != int64(i)+1 {
				rt.Errorf("event %d has the number %d", i+1, ev.Seq)
			}
		}
	})
}

// With a bus, notifications suffice without polling.
func TestBusWakesWatchers(t *testing.T) {
	address := storetest.SQLite(t)
	shared := bus.New()
	never := func(o *chat.Options) { o.Bus, o.Poll = shared, 1<<62 }
	a, b := node(t, openAt(t, address), setupFixture{}, never), node(t, openAt(t, address), setupFixture{}, never)
	id := begin(t, a)
	for i := range 3 {
		n := say(t, []*chat.Engine{a, b}[i%2], id, "hello")
		if ev := end(t, b, id, n); ev.Reason != chat.Done {
			t.Errorf("turn ended as %+v", ev)
		}
	}
}

// A watcher can read the events so far without waiting.
func TestNotifications(t *testing.T) {
	e := node(t, storetest.Open(t, storetest.SQLite(t)), setupFixture{})
	id := begin(t, e)
	end(t, e, id, say(t, e, id, "hello"))
	var got []chat.Event
	for ev, err := range e.ReadEvents(t.Context(), ada, id, 1, false) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, ev)
	}
	if len(got) == 0 || got[0].Seq != 2 || got[len(got)-1].Type != chat.TurnEnded {
		t.Errorf("events: %s", isReported(got))
	}
	for ev := range e.ReadEvents(t.Context(), ada, id, got[len(got)-1].Seq, false) {
		t.Errorf("then comes %+v", ev)
	}
}

// Watching ends with its context, its consumer and its node.
func TestWatchEnds(t *testing.T) {
	db := storetest.Open(t, storetest.SQLite(t))
	e := node(t, db, setupFixture{})
	id := begin(t, e)
	say(t, e, id, "hello")
	last := lastOf(until(t, e, id, 0, isType(chat.TurnEnded))).Seq
	why := errors.New("the client is gone")
	ctx, cancel := context.WithCancelCause(t.Context())
	ends := make(chan error, 2)
	watch := func(ctx context.Context) {
		for _, err := range e.Watch(ctx, ada, id, last) {
			ends <- err
		}
	}
	var all sync.WaitGroup
	all.Go(func() { watch(ctx) })
	cancel(why)
	if err := <-ends; !errors.Is(err, why) {
		t.Errorf("it ended with %v", err)
	}
	all.Go(func() { watch(t.Context()) })
	closeNode(t, e)
	if err := <-ends; !errors.Is(err, chat.ErrClosed) {
		t.Errorf("it ended with %v", err)
	}
	all.Wait()
	var events []int64
	for ev, err := range node(t, db, setupFixture{}).Watch(t.Context(), ada, id, -7) { // from the beginning
		if err != nil {
			t.Fatal(err)
		}
		if events = append(events, ev.Seq); ev.Seq == last {
			break
		}
	}
	if !slices.IsSorted(events) || events[0] != 1 {
		t.Errorf("events %v", events)
	}
	if _, err := db.Sessions.Get(t.Context(), id); err != nil || errors.Is(err, store.ErrNotFound) {
		t.Error(err)
	}
}
