package store_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/store/storetest"
)

func TestAudit(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		for i, r := range []store.AuditRecord{
			{Actor: "ada", Action: "upload", Namespace: store.Public, Subject: "pdf", Decision: "allow", Details: json.RawMessage(`{"n":1}`)},
			{Actor: "bob", Action: "upload", Namespace: store.Public, Subject: "pdf", Decision: "deny"},
			{Actor: "ada", Action: "run", Subject: "pdf", Decision: "ask"},
		} {
			r.At = at(9 - i) // the clock goes back; the order stays chronological
			mustDo(t, db.Audit.Append(ctx, r))
		}
		what := func(r store.AuditRecord) string { return r.Actor + " " + r.Action }
		list := func(q store.AuditQuery) []string { return names(must(db.Audit.List(ctx, q))(t), what) }
		wantEqual(t, list(store.AuditQuery{}), []string{"ada run", "bob upload", "ada upload"})
		wantEqual(t, list(store.AuditQuery{Actor: "ada"}), []string{"ada run", "ada upload"})
		wantEqual(t, list(store.AuditQuery{Actor: "ada", Action: "upload"}), []string{"ada upload"})
		wantEqual(t, list(store.AuditQuery{Namespace: store.Public, Subject: "pdf", Limit: 1}), []string{"bob upload"})
		wantEqual(t, list(store.AuditQuery{Decision: "deny"}), []string{"bob upload"})
		wantEqual(t, list(store.AuditQuery{Since: at(8)}), []string{"bob upload", "ada upload"})
		wantEqual(t, list(store.AuditQuery{Since: at(8), Until: at(9)}), []string{"bob upload"})
		all := must(db.Audit.List(ctx, store.AuditQuery{}))(t)
		wantEqual(t, list(store.AuditQuery{Before: all[1].Seq}), []string{"ada upload"})
		all[2].Seq = 0
		wantEqual(t, all[2], store.AuditRecord{At: at(9), Actor: "ada", Action: "upload", Namespace: store.Public, Subject: "pdf", Decision: "allow", Details: json.RawMessage(`{"n":1}`)})
		if n := must(db.Audit.Prune(ctx, at(9)))(t); n != 2 {
			t.Errorf("removed %d", n)
		}
	})
}

func TestUsage(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		a, b, c := newSkill(t, db, store.Public, "a"), newSkill(t, db, store.Public, "b"), newSkill(t, db, store.Public, "c")
		day := 24 * time.Hour
		mustDo(t, db.Usage.Add(ctx,
			store.SkillUsage{SkillID: b.ID, Loads: 1, Tokens: 10, LastUsed: at(1)},
			store.SkillUsage{SkillID: a.ID, Loads: 1, Calls: 2, Errors: 1, Tokens: 100, LastUsed: at(5)},
			store.SkillUsage{SkillID: a.ID, Loads: 2, LastUsed: at(3)},
			store.SkillUsage{SkillID: "gone", Loads: 5, LastUsed: at(3)},
			store.SkillUsage{SkillID: a.ID, Loads: 4, LastUsed: at(3).Add(-day)},
		))
		wantEqual(t, must(db.Usage.Sum(ctx, []string{a.ID, b.ID, c.ID}, at(0)))(t), map[string]store.SkillUsage{
			a.ID: {SkillID: a.ID, Loads: 3, Calls: 2, Errors: 1, Tokens: 100, LastUsed: at(5)},
			b.ID: {SkillID: b.ID, Loads: 1, Tokens: 10, LastUsed: at(1)},
		})
		wantEqual(t, must(db.Usage.ListDays(ctx, a.ID, at(0).Add(-7*day)))(t), []store.UsageDay{
			{Date: at(0).Add(-day), SkillUsage: store.SkillUsage{SkillID: a.ID, Loads: 4, LastUsed: at(3).Add(-day)}},
			{Date: at(0), SkillUsage: store.SkillUsage{SkillID: a.ID, Loads: 3, Calls: 2, Errors: 1, Tokens: 100, LastUsed: at(5)}},
		})
		soon := time.Now().Add(day)
		mustDo(t, db.Usage.Add(ctx, store.SkillUsage{SkillID: b.ID, Loads: 1, LastUsed: soon}))
		unused := func(since time.Time) []string {
			return skillNames(every(t, func(p store.Page) ([]store.Skill, string, error) {
				return db.Usage.ListUnused(ctx, []store.Namespace{store.Public}, since, p)
			}))
		}
		wantEqual(t, unused(soon), []string{"a", "c"})
		wantEqual(t, unused(at(0)), []string{}) // all were made later
		mustDo(t, db.Skills.Delete(ctx, a.ID))
		wantEqual(t, len(must(db.Usage.ListDays(ctx, a.ID, at(0)))(t)), 0)
	})
}

// The secrets of a session are deleted with it, or later if an older version of the
// hub deleted it.
func TestSecretsOfSessions(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		first := must(db.Sessions.Create(ctx, store.Session{Owner: "a"}))(t)
		second := must(db.Sessions.Create(ctx, store.Session{Owner: "a"}))(t)
		owners := []string{"session:" + first.ID, "session:" + second.ID, "session:gone", "user:a"}
		for _, owner := range owners {
			mustDo(t, db.Secrets.Put(ctx, store.Secret{Owner: owner, Name: "variable.x", Encrypted: []byte{1}}))
		}
		list := func() (found []string) {
			for _, owner := range owners {
				if len(must(db.Secrets.List(ctx, owner))(t)) > 0 {
					found = append(found, owner)
				}
			}
			return found
		}
		mustDo(t, db.Sessions.Delete(ctx, first.ID))
		wantEqual(t, must(db.Secrets.Prune(ctx))(t), int64(1))
		wantEqual(t, list(), []string{owners[1], "user:a"})
	})
}

func TestSecrets(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		mustDo(t, db.Secrets.Put(ctx, store.Secret{Owner: "user:a", Name: "token", Encrypted: []byte{0, 0xff, 1}, KeyID: "k1", UpdatedBy: "a"}))
		mustDo(t, db.Secrets.Put(ctx, store.Secret{Owner: "user:b", Name: "token", Encrypted: []byte{2}, KeyID: "k2"}))
		got := must(db.Secrets.Get(ctx, "user:a", "token"))(t)
		wantEqual(t, got, store.Secret{Owner: "user:a", Name: "token", Encrypted: []byte{0, 0xff, 1}, KeyID: "k1", UpdatedBy: "a", Updated: got.Updated})
		list := must(db.Secrets.List(ctx, "user:a"))(t)
		if len(list) != 1 || list[0].Encrypted != nil || list[0].Name != "token" {
			t.Errorf("list is %v", list)
		}

		wantEqual(t, must(db.Secrets.KeyIDs(ctx))(t), []string{"k1", "k2"})

		wantError(t, db.Secrets.Put(ctx, store.Secret{Owner: "o", Name: "n"}), store.ErrInvalid)
		wantError(t, db.Secrets.Put(ctx, store.Secret{Owner: "o", Name: "n", Encrypted: make([]byte, store.MaxEncrypted+1)}), store.ErrInvalid)
		mustDo(t, db.Secrets.Delete(ctx, "user:a", "token"))
		wantError(t, db.Secrets.Delete(ctx, "user:a", "token"), store.ErrNotFound)
		if n := must(db.Secrets.DeleteByOwner(ctx, "user:b"))(t); n != 1 {
			t.Errorf("forgot %d", n)
		}
	})
}

func TestSettings(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		s := store.Setting{Scope: "hub", Name: "skills.enabled", Value: json.RawMessage("false"), UpdatedBy: "root"}
		if g := must(db.Settings.Set(ctx, s))(t); g != 1 {
			t.Errorf("generation %d", g)
		}
		_, err := db.Settings.Set(ctx, s) // as if it were not set
		wantError(t, err, store.ErrConflict)
		s.Generation, s.Value = 1, json.RawMessage("true")
		must(db.Settings.Set(ctx, s))(t)
		_, err = db.Settings.Set(ctx, s)
		wantError(t, err, store.ErrConflict)
		got := must(db.Settings.Get(ctx, "hub", "skills.enabled"))(t)
		wantEqual(t, got, store.Setting{Scope: "hub", Name: "skills.enabled", Value: json.RawMessage("true"), Generation: 2, UpdatedBy: "root", Updated: got.Updated})
		must(db.Settings.Set(ctx, store.Setting{Scope: "group:g", Name: "allow", Value: json.RawMessage("[]")}))(t)
		wantEqual(t, names(must(db.Settings.List(ctx, "group:g", "hub"))(t), func(s store.Setting) string { return s.Name }), []string{"allow", "skills.enabled"})
		mustDo(t, db.Settings.Unset(ctx, "hub", "skills.enabled"))
		wantError(t, db.Settings.Unset(ctx, "hub", "skills.enabled"), store.ErrNotFound)
		if r := must(db.Revisions(ctx))(t); r[store.SettingsRevision] != 4 {
			t.Errorf("revisions are %v", r)
		}
	})
}

func TestNotifications(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		ada := newUser(t, db, "ada")
		tell := func(subject string) bool {
			return must(db.Notifications.Add(ctx, store.Notification{UserID: ada.ID, Kind: "newer", Subject: subject, Data: json.RawMessage(`{}`)}))(t)
		}
		for _, subject := range []string{"pdf@2", "pdf@3", "pdf@4"} {
			if !tell(subject) || tell(subject) {
				t.Errorf("%s is not told once", subject)
			}
		}
		_, err := db.Notifications.Add(ctx, store.Notification{UserID: "nobody", Kind: "newer"})
		wantError(t, err, store.ErrNotFound)
		listed := func(q store.NotificationQuery) []store.Notification {
			q.UserID = ada.ID
			return every(t, func(p store.Page) ([]store.Notification, string, error) {
				q.Page = p
				return db.Notifications.List(ctx, q)
			})
		}
		list := func(unseen bool) []store.Notification { return listed(store.NotificationQuery{Unseen: unseen}) }
		subject := func(n store.Notification) string { return n.Subject }
		wantEqual(t, names(list(true), subject), []string{"pdf@4", "pdf@3", "pdf@2"})
		id := list(true)[1].ID
		wantError(t, db.Notifications.MarkSeen(ctx, "another", id), store.ErrNotFound)
		mustDo(t, db.Notifications.MarkSeen(ctx, ada.ID, id))
		wantEqual(t, names(list(true), subject), []string{"pdf@4", "pdf@2"})
		wantEqual(t, len(list(false)), 3)
		wantEqual(t, names(listed(store.NotificationQuery{SubjectPrefix: "pdf@3"}), subject), []string{"pdf@3"})
		wantEqual(t, len(listed(store.NotificationQuery{SubjectPrefix: "docx"})), 0)
		wantEqual(t, len(listed(store.NotificationQuery{Kind: "newer"})), 3)
		wantEqual(t, len(listed(store.NotificationQuery{Kind: "new"})), 0)
		if tell("pdf@3") {
			t.Error("what was seen is reported again")
		}
		if n := must(db.Notifications.Prune(ctx, time.Now().Add(time.Hour)))(t); n != 1 {
			t.Errorf("forgot %d", n)
		}
		for _, subject := range []string{"pdf@20 x", "pdf!", "pdf@2 y", "pdf"} {
			tell(subject)
		}
		mustDo(t, db.Notifications.DeletePrefix(ctx, "new", "pdf@"))
		mustDo(t, db.Notifications.DeletePrefix(ctx, "newer", "pdf@2 "))
		wantEqual(t, names(list(false), subject), []string{"pdf", "pdf!", "pdf@20 x", "pdf@4", "pdf@2"})
		mustDo(t, db.Notifications.DeletePrefix(ctx, "newer", "pdf@"))
		wantEqual(t, names(list(false), subject), []string{"pdf", "pdf!"})
	})
}

func TestRatings(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		s := newSkill(t, db, store.Public, "pdf")
		for i, stars := range []int64{1, 5, 4} {
			u := newUser(t, db, fmt.Sprint("user ", i))
			mustDo(t, db.Ratings.Put(ctx, store.Rating{SkillID: s.ID, UserID: u.ID, Stars: 3}))
			mustDo(t, db.Ratings.Put(ctx, store.Rating{SkillID: s.ID, UserID: u.ID, Stars: stars, Review: "fine"}))
			wantError(t, db.Ratings.Put(ctx, store.Rating{SkillID: s.ID, UserID: u.ID, Stars: 6}), store.ErrInvalid)
			wantError(t, db.Ratings.Put(ctx, store.Rating{SkillID: "none", UserID: u.ID, Stars: 3}), store.ErrNotFound)
		}
		wantEqual(t, must(db.Ratings.Scores(ctx, []string{s.ID, "none"}))(t), map[string]store.Score{s.ID: {SkillID: s.ID, Count: 3, Stars: 10}})
		list := every(t, func(p store.Page) ([]store.Rating, string, error) { return db.Ratings.List(ctx, s.ID, p) })
		wantEqual(t, len(list), 3)
		mustDo(t, db.Ratings.Delete(ctx, s.ID, list[0].UserID))
		wantError(t, db.Ratings.Delete(ctx, s.ID, list[0].UserID), store.ErrNotFound)
	})
}

// W10: the default skills of a user.
func TestW10Defaults(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		ada := newUser(t, db, "ada")
		mine := store.UserNamespace(ada.ID)
		s := newSkill(t, db, store.Public, "pdf")
		d := store.Default{Namespace: mine, SkillID: s.ID, Exceptions: json.RawMessage(`[{"type":"mode"}]`), CreatedBy: ada.ID, Created: at(1)}
		mustDo(t, db.Defaults.Put(ctx, d))
		d.Preload = true
		mustDo(t, db.Defaults.Put(ctx, d))
		wantEqual(t, must(db.Defaults.List(ctx, []store.Namespace{mine, store.Public}))(t), []store.Default{d})
		wantEqual(t, must(db.Defaults.ListBySkill(ctx, s.ID))(t), []store.Default{d})
		wantError(t, db.Defaults.Put(ctx, store.Default{Namespace: mine, SkillID: "none"}), store.ErrNotFound)
		wantError(t, db.Defaults.Put(ctx, store.Default{Namespace: "user:nobody", SkillID: s.ID}), store.ErrNotFound)
		mustDo(t, db.Defaults.Delete(ctx, mine, s.ID))
		wantError(t, db.Defaults.Delete(ctx, mine, s.ID), store.ErrNotFound)
	})
}
