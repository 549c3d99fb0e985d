package assembly

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/store"
)

// Lists of skills that are too long for a model begin with the skills that the user
// uses. The order depends only on the skills and on the uses that were counted before
// today, in UTC. It changes at the same time on all nodes, so that the prompt caches
// of models stay valid for a day.

const (
	// maxOrder is the maximum number of skills in an order. It limits what the
	// node keeps in memory for each user.
	maxOrder = 50
	// halvingDays is the number of days without use that halves the weight of the
	// earlier uses.
	halvingDays = 30
	// orderTimeout is the maximum time to read the uses from the database.
	orderTimeout = 2 * time.Second
	// orderRetry is how long to wait after a failure before reading the uses
	// again, so that a user's requests do not all wait for a database that
	// hangs.
	orderRetry = 10 * time.Second
)

// skillOrder is the order in which a catalog snapshot lists its skills on a
// given day.
type skillOrder struct {
	day     time.Time // zero if there is no order
	version uint64    // version of the snapshot
	keys    []string
}

// orderDay returns the day whose skill order applies at the given time.
func orderDay(now time.Time) time.Time { return now.UTC().Truncate(24 * time.Hour) }

// firstSkills returns the keys of the skills in a snapshot that the user used before
// the given day, most used first; see [catalog.FormatOptions]. If the database fails,
// ok is false, and the caller must not cache the unordered list.
func (b *base) firstSkills(ctx context.Context, snap *catalog.Snapshot, day time.Time) (keys []string, ok bool) {
	b.orderMu.Lock()
	last, retry := b.order, b.orderRetry
	b.orderMu.Unlock()
	if last.version == snap.Version && last.day.Equal(day) {
		return last.keys, true
	}
	if time.Now().Before(retry) {
		return nil, false
	}
	limited, cancel := context.WithTimeout(ctx, orderTimeout)
	defer cancel()
	uses, err := b.assembler.o.DB.Usage.ListOwn(limited, string(b.principal.User), day) // without the lock, because it may take long
	if err != nil && ctx.Err() != nil {
		return nil, false // the caller gave up
	}
	b.orderMu.Lock()
	defer b.orderMu.Unlock()
	if err != nil {
		b.orderRetry = time.Now().Add(orderRetry)
		b.assembler.o.Logger.Warn("couldn't order the skills by their use", "user", b.principal.User, "error", err)
		return nil, false
	}
	b.order = skillOrder{day, snap.Version, b.orderSkills(snap, day, uses)}
	return b.order.keys, true
}

// orderSkills returns the keys of the skills in a snapshot that were used, most
// used first.
func (b *base) orderSkills(snap *catalog.Snapshot, day time.Time, uses []store.OwnUse) []string {
	weight := func(u store.OwnUse) int64 {
		unused := max(0, day.Sub(u.Last)) // a node's clock may have been ahead
		return min(u.Uses, 1<<40) << 20 >> (int64(unused.Hours()/24) / halvingDays)
	}
	slices.SortStableFunc(uses, func(u, v store.OwnUse) int {
		return cmp.Or(cmp.Compare(weight(v), weight(u)), cmp.Compare(u.Name, v.Name))
	})
	var keys []string
	for _, u := range uses {
		e := snap.ByName(u.Name)
		if e == nil || e.DisableModelInvocation || b.skillID(e.Origin, e.Dir) != u.SkillID {
			continue // it is not in lists
		}
		if keys = append(keys, e.Key()); len(keys) == maxOrder {
			break
		}
	}
	return keys
}
