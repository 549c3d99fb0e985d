package chat

import (
	"context"
	"slices"
	"testing"

	"github.com/loadout-dev/loadout/internal/bus"
)

// A listener gets the events that its node added without reading them, and learns
// when it has to read the stream: if an event is missing, if it is too slow, after a
// notification of another node, and if notifications may have been lost.
func TestListener(t *testing.T) {
	events := func(seqs ...int64) (out []Event) {
		for _, n := range seqs {
			out = append(out, Event{Seq: n})
		}
		return out
	}
	for name, c := range map[string]struct {
		seen  int64
		do    func(b *notifier, l *listener)
		want  []int64
		grown bool
	}{
		"in order":                 {2, func(b *notifier, _ *listener) { b.deliver("s", events(3, 4)); b.deliver("s", events(5)) }, []int64{3, 4, 5}, false},
		"with its notification":    {2, func(b *notifier, _ *listener) { b.deliver("s", events(3)); b.bus.Publish("s", 3) }, []int64{3}, false},
		"read before":              {4, func(b *notifier, _ *listener) { b.deliver("s", events(3, 4, 5)) }, []int64{5}, false},
		"of another node":          {2, func(b *notifier, _ *listener) { b.bus.Publish("s", 3) }, nil, true},
		"then of another node":     {2, func(b *notifier, _ *listener) { b.deliver("s", events(3)); b.bus.Publish("s", 4) }, []int64{3}, true},
		"after another node's":     {2, func(b *notifier, _ *listener) { b.deliver("s", events(4)) }, nil, true},
		"out of order":             {2, func(b *notifier, _ *listener) { b.deliver("s", events(4)); b.deliver("s", events(3)) }, nil, true},
		"a gap in between":         {2, func(b *notifier, _ *listener) { b.deliver("s", events(3)); b.deliver("s", events(5)) }, nil, true},
		"more than it may hold":    {0, func(b *notifier, _ *listener) { deliverMany(b, maxFresh+1) }, nil, true},
		"as many as it may hold":   {maxFresh - 1, func(b *notifier, _ *listener) { deliverMany(b, maxFresh) }, []int64{maxFresh}, false},
		"found by a poll":          {2, func(b *notifier, l *listener) { l.behind = true; l.wake() }, nil, true},
		"notifications were lost":  {2, func(b *notifier, _ *listener) { b.bus.Publish("s", 0) }, nil, true},
		"the stream was deleted":   {2, func(b *notifier, _ *listener) { b.bus.Publish("s", 1<<62) }, nil, true},
		"first old notifications":  {5, func(b *notifier, _ *listener) { b.bus.Publish("s", 4); b.bus.Publish("s", 6) }, nil, true},
		"a stream of another name": {0, func(b *notifier, _ *listener) { b.deliver("other", events(1)); b.deliver("s", events(1)) }, []int64{1}, false},
	} {
		t.Run(name, func(t *testing.T) {
			b := &notifier{bus: bus.New(), listeners: map[string]map[*listener]bool{}}
			l := b.listen("s", 0)
			defer l.close()
			c.do(b, l)
			fresh, grown, err := l.wait(t.Context(), c.seen)
			var got []int64
			for _, e := range fresh {
				got = append(got, e.Seq)
			}
			if err != nil || grown != c.grown || !slices.Equal(got, c.want) {
				t.Errorf("events %v, grown %v, %v, want %v, %v", got, grown, err, c.want, c.grown)
			}
		})
	}
}

func deliverMany(b *notifier, n int64) {
	for seq := int64(1); seq <= n; seq++ {
		b.deliver("s", []Event{{Seq: seq}})
	}
}

// Notifications of events that were read already do not wake a listener.
func TestListenerIgnoresOldNotifications(t *testing.T) {
	b := &notifier{bus: bus.New(), listeners: map[string]map[*listener]bool{}}
	l := b.listen("s", 0)
	defer l.close()
	b.bus.Publish("s", 3)
	b.deliver("s", []Event{{Seq: 2}, {Seq: 3}})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if fresh, grown, err := l.wait(ctx, 3); err == nil || grown || len(fresh) > 0 {
		t.Errorf("events %v, grown %v, %v", fresh, grown, err)
	}
}
