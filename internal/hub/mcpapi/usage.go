package mcpapi

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/loadout-dev/loadout/internal/hub/api"
	"github.com/loadout-dev/loadout/internal/hub/assembly"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/mcpserver"
	"github.com/loadout-dev/loadout/session"
)

// usageTally counts the use of skills through an endpoint until it is saved.
type usageTally struct {
	kit *assembly.Setup

	mu  sync.Mutex
	all map[string]*store.SkillUsage // by skill id
}

// add counts one use of a skill of the library.
func (t *usageTally) add(u mcpserver.Use) {
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
		t.all = map[string]*store.SkillUsage{}
	}
	if t.all[id] == nil {
		t.all[id] = &store.SkillUsage{SkillID: id}
	}
	use := t.all[id]
	use.LastUsed = time.Now()
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

// drain returns and resets the counts.
func (t *usageTally) drain() []store.SkillUsage {
	t.mu.Lock()
	defer t.mu.Unlock()
	var out []store.SkillUsage
	for _, id := range slices.Sorted(maps.Keys(t.all)) {
		out = append(out, *t.all[id])
	}
	t.all = nil
	return out
}

// entries returns the consumption of the user. The model of an MCP client is
// unknown.
func (t *usageTally) entries(uses []store.SkillUsage) store.MeterEntry {
	s := store.MeterEntry{Date: time.Now(), Owner: t.kit.Principal.ID}
	if p := t.kit.Profile; p != nil {
		s.Namespace, s.Agent = p.In, assembly.AgentName(p.Kind, cmp.Or(p.Namespace, api.OwnNamespace), p.Name)
	}
	for _, u := range uses {
		s.Add(store.MeterEntry{Loads: u.Loads, Calls: u.Calls, Errors: u.Errors})
	}
	return s
}

// saveUses saves the use of skills through an endpoint.
func (h *Handlers) saveUses(ctx context.Context, t *usageTally) {
	uses := t.drain()
	if len(uses) == 0 {
		return
	}
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), api.OperationTimeout)
	defer stop()
	err := errors.Join(h.Library.RecordUsage(ctx, uses...), h.DB.Meter.Add(ctx, t.entries(uses)))
	if err != nil {
		h.Log.Warn("couldn't save the use of skills", "error", err)
	}
}
