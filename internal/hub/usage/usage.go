// Package usage counts what a hub's users consume: the use of skills, and the
// turns, calls and tokens of conversations and MCP clients.
//
// It never stores anything: callers write the counts, in the same transaction as the
// counted steps or from a [Buffer]. Start reading at [SkillCounter] and [Meter].
package usage

import (
	"cmp"
	"maps"
	"slices"
	"sync"

	"github.com/loadout-dev/loadout/internal/store"
)

// Tally adds up the uses of skills. The zero value is empty. It is safe for
// concurrent use.
type Tally struct {
	mu  sync.Mutex
	all map[tallyKey]*store.SkillUsage
}

type tallyKey struct{ skill, owner string }

// Add adds one use of a skill. It ignores a use that has no skill ID.
func (t *Tally) Add(u store.SkillUsage) {
	if u.SkillID == "" {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.all == nil {
		t.all = map[tallyKey]*store.SkillUsage{}
	}
	key := tallyKey{u.SkillID, u.Owner}
	if t.all[key] == nil {
		t.all[key] = &store.SkillUsage{SkillID: u.SkillID, Owner: u.Owner}
	}
	sum := t.all[key]
	sum.Loads += u.Loads
	sum.Calls += u.Calls
	sum.Errors += u.Errors
	sum.Tokens += u.Tokens
	sum.LastUsed = u.LastUsed
}

// Drain returns the sums for each skill and owner, sorted, and resets them.
func (t *Tally) Drain() []store.SkillUsage {
	t.mu.Lock()
	defer t.mu.Unlock()
	var out []store.SkillUsage
	byKey := func(a, b tallyKey) int { return cmp.Or(cmp.Compare(a.skill, b.skill), cmp.Compare(a.owner, b.owner)) }
	for _, key := range slices.SortedFunc(maps.Keys(t.all), byKey) {
		out = append(out, *t.all[key])
	}
	t.all = nil
	return out
}
