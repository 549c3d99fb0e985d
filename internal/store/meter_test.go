package store_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/store/storetest"
)

func TestMeter(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		crew := store.GroupNamespace("crew")
		add := func(day int, s store.MeterEntry) {
			t.Helper()
			s.Date = at(12).AddDate(0, 0, day)
			mustDo(t, db.Meter.Add(ctx, s))
		}
		add(0, store.MeterEntry{Owner: "ada", Model: "demo:1", Turns: 1, Input: 10, Output: 5})
		add(0, store.MeterEntry{Owner: "ada", Model: "demo:1", Loads: 2, Calls: 3, Errors: 1, CacheRead: 7, CacheWrite: 1})
		add(1, store.MeterEntry{Owner: "ada", Namespace: crew, Agent: "Ghost/crew/sea", Model: "other", Turns: 1, Input: 100})
		add(1, store.MeterEntry{Owner: "bob", Namespace: crew, Agent: "Ghost/crew/sea", Model: "other", Turns: 2, Output: 1})
		add(-40, store.MeterEntry{Owner: "bob", Model: "demo:1", Turns: 9})
		for _, tt := range []struct {
			name string
			q    store.MeterQuery
			want []string
		}{
			{"days of one", store.MeterQuery{GroupBy: store.ByDay, Owner: "ada"}, []string{
				"2026-05-01    demo:1 1/2/3/1 10/5/7/1", "2026-05-02    other 1/0/0/0 100/0/0/0"}},
			{"users", store.MeterQuery{GroupBy: store.ByUser}, []string{
				" ada   other 1/0/0/0 100/0/0/0", " ada   demo:1 1/2/3/1 10/5/7/1", " bob   other 2/0/0/0 0/1/0/0"}},
			{"models", store.MeterQuery{GroupBy: store.ByModel}, []string{"    other 3/0/0/0 100/1/0/0", "    demo:1 1/2/3/1 10/5/7/1"}},
			{"agents of a group", store.MeterQuery{GroupBy: store.ByAgent, Namespace: crew}, []string{"  group:crew Ghost/crew/sea other 3/0/0/0 100/1/0/0"}},
		} {
			tt.q.Since = at(0)
			var got []string
			for _, s := range must(db.Meter.Sum(ctx, tt.q))(t) {
				day := ""
				if !s.Date.IsZero() {
					day = s.Date.Format(time.DateOnly)
				}
				got = append(got, fmt.Sprintf("%s %s %s %s %s %d/%d/%d/%d %d/%d/%d/%d", day, s.Owner, s.Namespace, s.Agent, s.Model,
					s.Turns, s.Loads, s.Calls, s.Errors, s.Input, s.Output, s.CacheRead, s.CacheWrite))
			}
			t.Run(tt.name, func(t *testing.T) { wantEqual(t, got, tt.want) })
		}
		_, err := db.Meter.Sum(ctx, store.MeterQuery{GroupBy: "hour"})
		wantError(t, err, store.ErrInvalid)
	})
}
