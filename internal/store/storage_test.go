package store_test

import (
	"encoding/json"
	"testing"

	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/store/storetest"
)

// Everything that a user or group stores counts, and only for its owner. Deleting it
// makes space again.
func TestStorage(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		ada, bob := newUser(t, db, "ada"), newUser(t, db, "bob")
		group := must(db.Groups.Create(ctx, store.Group{Name: "team"}))(t)
		own, team := store.UserNamespace(ada.ID), store.GroupNamespace(group.ID)
		measure := func(n store.Namespace) [3]int64 {
			t.Helper()
			return [3]int64{must(db.Storage.Bytes(ctx, n))(t), must(db.Storage.Skills(ctx, n))(t), must(db.Storage.Sessions(ctx, n))(t)}
		}
		wantEqual(t, measure(own), [3]int64{})

		s := newSkill(t, db, own, "tides")
		newVersion(t, db, s.ID, "first")
		newVersion(t, db, s.ID, "second")
		wantEqual(t, measure(own), [3]int64{5 + 6, 1, 0})
		file := store.File{Path: "SKILL.md", SHA256: must(db.Blobs.Put(ctx, []byte("first")))(t)[0], Size: 5}
		v := must(db.Versions.Add(ctx, store.Version{SkillID: s.ID, Digest: "third", Meta: json.RawMessage(`{"a":1}`)}, []store.File{file}, json.RawMessage(`{"é":2}`)))(t)
		wantEqual(t, measure(own), [3]int64{11 + 5 + 7 + 8, 1, 0})
		mustDo(t, db.Versions.Delete(ctx, s.ID, v.Number))

		must(db.Kinds.Create(ctx, store.Kind{Kind: "Ghost", Namespace: own, Name: "sea", Spec: json.RawMessage(`{"x":10}`)}))(t)
		wantEqual(t, measure(own), [3]int64{11 + 8, 1, 0})
		talk := must(db.Sessions.Create(ctx, store.Session{Owner: ada.ID}))(t)
		must(db.Sessions.Create(ctx, store.Session{Owner: ada.ID}))(t)
		mustDo(t, db.Attachments.Put(ctx, store.Attachment{Session: talk.ID, Path: "a", SHA256: file.SHA256}, make([]byte, 100)))
		mustDo(t, db.Drafts.Add(ctx, store.Draft{Session: talk.ID, Name: "x", Digest: "y"}, make([]byte, 1000)))
		wantEqual(t, measure(own), [3]int64{19 + 1100, 1, 2})

		theirs := newSkill(t, db, team, "tides")
		newVersion(t, db, theirs.ID, "second")
		wantEqual(t, measure(team), [3]int64{6, 1, 0})
		wantEqual(t, measure(store.UserNamespace(bob.ID)), [3]int64{})
		wantEqual(t, measure(store.Public), [3]int64{})

		mustDo(t, db.Sessions.Delete(ctx, talk.ID))
		mustDo(t, db.Skills.Delete(ctx, s.ID))
		wantEqual(t, measure(own), [3]int64{8, 0, 1})
	})
}
