package library

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/loadout-dev/loadout/internal/bm25"
	"github.com/loadout-dev/loadout/internal/hub/account"
)

const (
	// nearEqual is the difference in score, as a share of the best score, below which
	// two hits are nearly equal: chance decides which of them is better.
	nearEqual = 0.02
	// usesPeriod is the period whose uses order nearly equal hits.
	usesPeriod = 90 * 24 * time.Hour
)

// orderNearEqual orders nearly equal search results that follow each other: first
// those that the principal and the members of its groups use most, then those that
// were updated last.
func (l *Library) orderNearEqual(ctx context.Context, p account.Principal, found []rankedSkill) error {
	var uses map[string]int64
	for from := 0; from < len(found); {
		to := from + 1
		for to < len(found) && areNearEqual(found[from], found[to]) {
			to++
		}
		if to-from > 1 {
			if uses == nil {
				var err error
				if uses, err = l.countTeamUses(ctx, p, time.Now().Add(-usesPeriod)); err != nil {
					return err
				}
				if uses == nil { // the principal may not see them
					uses = map[string]int64{}
				}
			}
			updated := l.index.updateTimes(found[from:to])
			slices.SortStableFunc(found[from:to], func(a, b rankedSkill) int {
				return cmp.Or(cmp.Compare(uses[b.id], uses[a.id]), updated[b.id].Compare(updated[a.id]))
			})
		}
		from = to
	}
	return nil
}

// areNearEqual reports whether two hits of a namespace are nearly equal. Scores of different
// namespaces cannot be compared.
func areNearEqual(a, b rankedSkill) bool {
	return a.in == b.in && bm25.IsWeak(a.fit) == bm25.IsWeak(b.fit) && a.share-b.share < nearEqual && b.share-a.share < nearEqual
}

// updateTimes returns the times of the last updates of skills, by ID.
func (s *skillIndex) updateTimes(of []rankedSkill) map[string]time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := map[string]time.Time{}
	for _, r := range of {
		if k := s.skills[r.id]; k != nil {
			out[r.id] = k.updated
		}
	}
	return out
}
