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
// uses. The order depends only on the skills and on their uses before today. It
// changes at the same time on all nodes, so that the prompt caches of models stay
// valid for a day.

const (
	// orderDelay is how long after the end of a day the order changes, in UTC. By
	// then, all nodes have stored the uses of that day.
	orderDelay = time.Hour
	// maxOrder is the maximum number of skills in an order. It limits what the
	// node keeps in memory for each user.
	maxOrder = 50
	// halvingDays is the number of days without use that halves the weight of the
	// earlier uses.
	halvingDays = 30
)

// skillOrder is an order of skills for a day and a snapshot.
type skillOrder struct {
	day     time.Time // zero if there is no order
	version uint64    // version of the snapshot
	keys    []string
}

// orderDay returns the day whose order applies at the given time.
func orderDay(now time.Time) time.Time {
	return now.UTC().Add(-orderDelay).Truncate(24 * time.Hour)
}

// firstSkills returns the keys of the skills that the user used before today, the
// most used first; see [catalog.FormatOptions]. It returns none if the uses cannot
// be read from the database.
func (b *base) firstSkills() []string {
	b.orderMu.Lock()
	defer b.orderMu.Unlock()
	snap, day := b.rt.Catalog().Snapshot(), orderDay(time.Now())
	if b.order.version == snap.Version && b.order.day.Equal(day) {
		return b.order.keys
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	uses, err := b.assembler.o.DB.Usage.ListOwn(ctx, string(b.principal.User), day)
	if err != nil {
		b.assembler.o.Logger.Warn("couldn't order the skills by their use", "user", b.principal.User, "error", err)
		return nil
	}
	b.order = skillOrder{day, snap.Version, b.orderSkills(snap, day, uses)}
	return b.order.keys
}

// orderSkills returns the keys of the skills in a snapshot that were used, the most
// used first.
func (b *base) orderSkills(snap *catalog.Snapshot, day time.Time, uses []store.OwnUse) []string {
	weight := func(u store.OwnUse) int64 {
		return min(u.Uses, 1<<40) << 20 >> (int64(day.Sub(u.Last).Hours()/24) / halvingDays)
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
