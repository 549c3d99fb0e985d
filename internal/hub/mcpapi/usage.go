package mcpapi

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/loadout-dev/loadout/internal/hub/api"
	"github.com/loadout-dev/loadout/internal/hub/assembly"
	"github.com/loadout-dev/loadout/internal/hub/usage"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/mcpserver"
	"github.com/loadout-dev/loadout/session"
)

// usageTime is how long the uses of skills are collected before they are
// stored.
const usageTime = 200 * time.Millisecond

// usageBuffer collects the uses of skills and stores all uses within usageTime in
// one transaction, because a separate transaction for each use took a seventh of
// the time of a call. A node that is killed loses the uses that were not stored
// yet. A usageBuffer is safe for concurrent use.
type usageBuffer struct {
	db  *store.DB
	log *slog.Logger

	mu     sync.Mutex // guards the fields below
	skills usage.Tally
	agents map[store.MeterEntry]*store.MeterEntry // sums by day, owner and agent
	timer  *time.Timer                            // nil if nothing is collected

	storing sync.Mutex // held while uses are stored
}

// add adds one use of a skill to the skill's total, and to the total of the
// day, owner and agent in entry. The counts in entry must be zero.
func (b *usageBuffer) add(use store.SkillUsage, entry store.MeterEntry) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.skills.Add(use)
	if b.agents == nil {
		b.agents = map[store.MeterEntry]*store.MeterEntry{}
	}
	sum := b.agents[entry]
	if sum == nil {
		sum = new(entry)
		b.agents[entry] = sum
	}
	sum.Add(store.MeterEntry{Loads: use.Loads, Calls: use.Calls, Errors: use.Errors})
	if b.timer == nil {
		b.timer = time.AfterFunc(usageTime, b.flush)
	}
}

// flush stores the collected uses. If another flush is running, it first waits
// for that one.
func (b *usageBuffer) flush() {
	b.storing.Lock()
	defer b.storing.Unlock()
	b.mu.Lock()
	skills, agents := b.skills.Drain(), slices.Collect(maps.Values(b.agents))
	if b.timer != nil {
		b.timer.Stop()
	}
	b.agents, b.timer = nil, nil
	b.mu.Unlock()
	if len(skills) == 0 {
		return
	}
	ctx, stop := context.WithTimeout(context.Background(), api.OperationTimeout)
	defer stop()
	err := b.db.Tx(ctx, func(tx *store.Tx) error {
		if err := tx.Usage.Add(ctx, skills...); err != nil {
			return err
		}
		entries := make([]store.MeterEntry, len(agents))
		for i, e := range agents {
			entries[i] = *e
		}
		return tx.Meter.Add(ctx, entries...)
	})
	if err != nil {
		b.log.Warn("couldn't save the use of skills", "error", err)
	}
}

// countUse counts the use of a library skill.
func (h *Handlers) countUse(e *endpoint, u mcpserver.Use) {
	s, err := e.setup.Runtime.Catalog().Snapshot().Get(u.Key)
	if err != nil {
		return
	}
	now := time.Now()
	use := store.SkillUsage{SkillID: e.setup.SkillID(session.ID{Name: s.Name, Origin: s.Origin, Dir: s.Dir}), Owner: string(e.user), Tokens: int64(u.Tokens), LastUsed: now}
	if use.SkillID == "" {
		return
	}
	if u.Kind == "load" {
		use.Loads = 1
	} else {
		use.Calls = 1
	}
	if u.Refused || u.Failed {
		use.Errors = 1
	}
	// The model of an MCP client is unknown.
	entry := store.MeterEntry{Date: now.UTC().Truncate(24 * time.Hour), Owner: e.setup.Principal.ID}
	if p := e.setup.Profile; p != nil {
		entry.Namespace, entry.Agent = p.In, assembly.AgentName(p.Kind, cmp.Or(p.Namespace, api.OwnNamespace), p.Name)
	}
	h.uses.add(use, entry)
}
