package library_test

import (
	"testing"
	"time"

	"github.com/loadout-dev/loadout/internal/hub/library"
	"github.com/loadout-dev/loadout/internal/store"
)

func TestRatings(t *testing.T) {
	each(t, func(t *testing.T, w *fixture) {
		s := w.upload(w.ada, w.team, "pdf", "")
		mustDo(t, w.lib.Rate(w.ctx, w.bob, s.ID, 2, "so so"))
		mustDo(t, w.lib.Rate(w.ctx, w.bob, s.ID, 5, "good"))
		mustDo(t, w.lib.Rate(w.ctx, w.meg, s.ID, 4, ""))
		for _, stars := range []int{0, 6, -1} {
			wantError(t, w.lib.Rate(w.ctx, w.bob, s.ID, stars, ""), library.ErrInvalid)
		}
		wantError(t, w.lib.Rate(w.ctx, w.eve, s.ID, 5, ""), library.ErrNotFound)
		mine := w.upload(w.ada, ownNamespace(w.ada), "mine", "")
		wantDenied(t, w.lib.Rate(w.ctx, w.ada, mine.ID, 5, "best"))
		wantEqual(t, must(w.lib.Score(w.ctx, w.bob, s.ID))(t), &library.Score{Count: 2, Stars: 4.5})
		_, err := w.lib.Score(w.ctx, w.bob, mine.ID)
		wantError(t, err, library.ErrNotFound)
		mustDo(t, w.lib.RemoveRating(w.ctx, w.bob, s.ID))
		wantError(t, w.lib.RemoveRating(w.ctx, w.bob, s.ID), library.ErrNotFound)
		rows, _, err := w.lib.Ratings(w.ctx, w.bob, s.ID, store.Page{})
		mustDo(t, err)
		wantEqual(t, len(rows), 1)
	})
}

func TestUsage(t *testing.T) {
	each(t, func(t *testing.T, w *fixture) {
		s := w.upload(w.ada, w.team, "pdf", "")
		w.upload(w.ada, w.team, "docx", "")
		day := time.Now().UTC().Add(24 * time.Hour).Truncate(time.Second)
		mustDo(t, w.db.Usage.Add(w.ctx, library.Usage{SkillID: s.ID, Loads: 1, Tokens: 100, LastUsed: day}, library.Usage{SkillID: "gone", Loads: 1, LastUsed: day}))
		mustDo(t, w.db.Usage.Add(w.ctx, library.Usage{SkillID: s.ID, Calls: 2, Errors: 1, Tokens: 5, LastUsed: day}))
		got := must(w.lib.Usage(w.ctx, w.bob, []string{s.ID}, day))(t)
		wantEqual(t, got, map[string]library.Usage{s.ID: {SkillID: s.ID, Loads: 1, Calls: 2, Errors: 1, Tokens: 105, LastUsed: day}})
		wantEqual(t, len(must(w.lib.Usage(w.ctx, w.eve, []string{s.ID}, day))(t)), 0)
		wantEqual(t, len(must(w.lib.UsageDays(w.ctx, w.bob, s.ID, day))(t)), 1)
		_, err := w.lib.UsageDays(w.ctx, w.eve, s.ID, day)
		wantError(t, err, library.ErrNotFound)
		unused, _, err := w.lib.ListUnused(w.ctx, w.bob, nil, day, store.Page{})
		mustDo(t, err)
		wantEqual(t, skillNames(unused), []string{"docx"})
		_, _, err = w.lib.ListUnused(w.ctx, w.eve, []store.Namespace{w.team}, day, store.Page{})
		wantError(t, err, library.ErrNotFound)
	})
}

func TestUsersAreNotifiedOfVersions(t *testing.T) {
	each(t, func(t *testing.T, w *fixture) {
		s := w.upload(w.ada, w.team, "pdf", "one")
		mustDo(t, w.lib.Publish(w.ctx, w.root, s.ID, store.Public))
		w.ghost(ownNamespace(w.eve), "helper", store.Reference{ToName: "pdf"})
		mustDo(t, w.lib.SetDefault(w.ctx, w.bob, library.Default{Namespace: ownNamespace(w.bob), SkillID: s.ID}))
		w.version(w.ada, s, "two")
		for _, p := range []struct {
			name string
			n    int
			list func() ([]library.Notification, string, error)
		}{
			{"bob, who has it as a default", 1, func() ([]library.Notification, string, error) {
				return w.lib.Notifications(w.ctx, w.bob, "", true, store.Page{})
			}},
			{"eve, whose agent names it", 1, func() ([]library.Notification, string, error) {
				return w.lib.Notifications(w.ctx, w.eve, "", true, store.Page{})
			}},
			{"meg, who looks after it", 1, func() ([]library.Notification, string, error) {
				return w.lib.Notifications(w.ctx, w.meg, "", true, store.Page{})
			}},
			{"ada, who did it", 0, func() ([]library.Notification, string, error) {
				return w.lib.Notifications(w.ctx, w.ada, "", true, store.Page{})
			}},
		} {
			notifications, _, err := p.list()
			mustDo(t, err)
			if len(notifications) != p.n || p.n == 1 && (notifications[0].Kind != library.VersionAdded || notifications[0].Details.From != 1 || notifications[0].Details.Number != 2) {
				t.Errorf("%s got %+v", p.name, notifications)
			}
		}
		notifications, _, err := w.lib.Notifications(w.ctx, w.eve, "", true, store.Page{})
		mustDo(t, err)
		wantError(t, w.lib.MarkNotificationSeen(w.ctx, w.bob, notifications[0].ID), library.ErrNotFound)
		mustDo(t, w.lib.MarkNotificationSeen(w.ctx, w.eve, notifications[0].ID))
		notifications, _, err = w.lib.Notifications(w.ctx, w.eve, "", true, store.Page{})
		mustDo(t, err)
		wantEqual(t, len(notifications), 0)
	})
}
