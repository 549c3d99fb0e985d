package mcpapi

import (
	"cmp"
	"context"
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

// uses adds up the uses of skills.
type uses struct {
	skills usage.Tally
	agents map[store.MeterEntry]*store.MeterEntry // sums by day, owner and agent
}

// add adds one use of a skill to the skill's total, and to the total of the
// day, owner and agent in entry. The counts in entry must be zero.
func (u *uses) add(use store.SkillUsage, entry store.MeterEntry) {
	u.skills.Add(use)
	if u.agents == nil {
		u.agents = map[store.MeterEntry]*store.MeterEntry{}
	}
	sum := u.agents[entry]
	if sum == nil {
		sum = new(entry)
		u.agents[entry] = sum
	}
	sum.Add(store.MeterEntry{Loads: use.Loads, Calls: use.Calls, Errors: use.Errors})
}

// storeUses stores uses in one transaction, because a transaction for each use
// took a seventh of the time of a call. If that fails, they are lost.
func (h *Handlers) storeUses(ctx context.Context, all *uses) {
	ctx, stop := context.WithTimeout(ctx, api.OperationTimeout)
	defer stop()
	skills := all.skills.Drain()
	var agents []store.MeterEntry
	for _, e := range all.agents {
		agents = append(agents, *e)
	}
	err := h.DB.Tx(ctx, func(tx *store.Tx) error {
		if err := tx.Usage.Add(ctx, skills...); err != nil {
			return err
		}
		return tx.Meter.Add(ctx, agents...)
	})
	if err != nil {
		h.Log.Warn("couldn't save the use of skills", "error", err)
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
	h.uses.Update(func(all *uses) { all.add(use, entry) })
}
