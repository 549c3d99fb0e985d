// Package usage counts what a hub's users consume: the use of skills, and the
// turns, calls and tokens of conversations and MCP clients.
//
// It never stores anything: callers write the counts in the same transaction as
// the counted steps. Start reading at [SkillCounter] and [Meter].
package usage

import (
	"maps"
	"slices"
	"sync"

	"github.com/loadout-dev/loadout/internal/store"
)

// Tally sums up the use of skills. The zero value is empty. It is safe for
// concurrent use.
type Tally struct {
	mu  sync.Mutex
	all map[string]*store.SkillUsage // by skill ID
}

// Add adds a single use. It ignores a use without a skill ID.
func (t *Tally) Add(u store.SkillUsage) {
	if u.SkillID == "" {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.all == nil {
		t.all = map[string]*store.SkillUsage{}
	}
	if t.all[u.SkillID] == nil {
		t.all[u.SkillID] = &store.SkillUsage{SkillID: u.SkillID}
	}
	sum := t.all[u.SkillID]
	sum.Loads += u.Loads
	sum.Calls += u.Calls
	sum.Errors += u.Errors
	sum.Tokens += u.Tokens
	sum.LastUsed = u.LastUsed
}

// Drain returns the sums, sorted by skill ID, and resets them.
func (t *Tally) Drain() []store.SkillUsage {
	t.mu.Lock()
	defer t.mu.Unlock()
	var out []store.SkillUsage
	for _, id := range slices.Sorted(maps.Keys(t.all)) {
		out = append(out, *t.all[id])
	}
	t.all = nil
	return out
}
