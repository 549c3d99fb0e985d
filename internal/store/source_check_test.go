package store_test

import (
	"strings"
	"testing"
	"time"

	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/store/storetest"
)

// A failure keeps the time of the first one and the newest commit, until a success.
func TestSourceChecks(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		s, other := newSkill(t, db, store.Public, "pdf"), newSkill(t, db, store.Public, "docx")
		at := func(hour int) time.Time { return time.Date(2026, 1, 1, hour, 0, 0, 0, time.UTC) }
		record := func(hour int, failure, newest string) {
			t.Helper()
			mustDo(t, db.SourceChecks.Record(ctx, store.SourceCheck{SkillID: s.ID, Checked: at(hour), Error: failure, Newest: newest}))
		}
		want := func(r store.SourceCheck) {
			t.Helper()
			r.SkillID = s.ID
			wantEqual(t, must(db.SourceChecks.Get(ctx, s.ID))(t), r)
		}
		open := func(since int) int { return len(must(db.SourceChecks.ListOpen(ctx, at(since)))(t)) }

		_, err := db.SourceChecks.Get(ctx, s.ID)
		wantError(t, err, store.ErrNotFound)
		record(1, "", "")
		want(store.SourceCheck{Checked: at(1)})
		wantEqual(t, open(9), 0)

		record(2, "", "abc")
		want(store.SourceCheck{Checked: at(2), Newest: "abc"})
		wantEqual(t, open(0), 1)
		record(3, "refused", "ignored")
		want(store.SourceCheck{Checked: at(3), FailedSince: at(3), Error: "refused", Newest: "abc"})
		record(4, "not found", "")
		want(store.SourceCheck{Checked: at(4), FailedSince: at(3), Error: "not found", Newest: "abc"})
		record(5, "", "")
		want(store.SourceCheck{Checked: at(5)})
		record(6, "refused", "")
		want(store.SourceCheck{Checked: at(6), FailedSince: at(6), Error: "refused"})
		wantEqual(t, open(5), 0)
		wantEqual(t, open(6), 1)

		mustDo(t, db.SourceChecks.Record(ctx, store.SourceCheck{SkillID: other.ID, Newest: "def"}))
		if found := must(db.SourceChecks.ListOpen(ctx, at(5)))(t); len(found) != 1 || found[other.ID].Newest != "def" || found[other.ID].Checked.IsZero() {
			t.Errorf("open: %+v", found)
		}
		mustDo(t, db.SourceChecks.Record(ctx, store.SourceCheck{SkillID: "nothing", Error: "refused"}))
		wantError(t, db.SourceChecks.Record(ctx, store.SourceCheck{SkillID: s.ID, Error: strings.Repeat("x", store.MaxSourceError+1)}), store.ErrInvalid)
		mustDo(t, db.SourceChecks.Delete(ctx, other.ID))
		mustDo(t, db.SourceChecks.Delete(ctx, other.ID))
		mustDo(t, db.Skills.Delete(ctx, s.ID))
		wantEqual(t, open(9), 0)
	})
}
