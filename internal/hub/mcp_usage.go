package hub

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/loadout-dev/loadout/internal/hub/kit"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/mcpserver"
	"github.com/loadout-dev/loadout/session"
)

// tally counts what an endpoint uses of skills until it is kept.
type tally struct {
	kit *kit.Kit

	mu  sync.Mutex
	all map[string]*store.Use // by the id of the skill
}

// add counts one use of a skill that is in the library.
func (t *tally) add(u mcpserver.Use) {
	e, err := t.kit.Runtime.Catalog().Snapshot().Get(u.Key)
	if err != nil {
		return
	}
	id := t.kit.SkillID(session.ID{Name: e.Name, Origin: e.Origin, Dir: e.Dir})
	if id == "" {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.all == nil {
		t.all = map[string]*store.Use{}
	}
	if t.all[id] == nil {
		t.all[id] = &store.Use{SkillID: id}
	}
	use := t.all[id]
	use.Used = time.Now()
	use.Tokens += int64(u.Tokens)
	if u.Kind == mcpserver.UseLoad {
		use.Loads++
	} else {
		use.Calls++
	}
	if u.Outcome != mcpserver.UseOK {
		use.Errors++
	}
}

// take returns what was counted since it was asked last.
func (t *tally) take() []store.Use {
	t.mu.Lock()
	defer t.mu.Unlock()
	var out []store.Use
	for _, id := range slices.Sorted(maps.Keys(t.all)) {
		out = append(out, *t.all[id])
	}
	t.all = nil
	return out
}

// spent is what was used as it counts for the person, by whose model nobody knows.
func (t *tally) spent(uses []store.Use) store.Spent {
	s := store.Spent{Date: time.Now(), Owner: t.kit.Person.ID}
	if p := t.kit.Profile; p != nil {
		s.Namespace, s.Agent = p.In, kit.AgentName(p.Kind, cmp.Or(p.Namespace, ownNamespace), p.Name)
	}
	for _, u := range uses {
		s.Add(store.Spent{Loads: u.Loads, Calls: u.Calls, Errors: u.Errors})
	}
	return s
}

// keepUses keeps what an endpoint used, when its client has the answer.
func (h *Hub) keepUses(ctx context.Context, t *tally) {
	uses := t.take()
	if len(uses) == 0 {
		return
	}
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), operationTime)
	defer stop()
	err := errors.Join(h.library.Record(ctx, uses...), h.db.Meter.Add(ctx, t.spent(uses)))
	if err != nil {
		h.log.Warn("what was used of skills could not be kept", "error", err)
	}
}
