package store_test

import (
	"encoding/json"
	"fmt"
	"strings"
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
		mustDo(t, db.Attachments.Put(ctx, store.Attachment{Session: talk.ID, Path: "a", SHA256: file.SHA256}, make([]byte, 60)))
		mustDo(t, db.Attachments.Put(ctx, store.Attachment{Session: talk.ID, Path: "a", Step: 1, SHA256: file.SHA256}, make([]byte, 40))) // keeps the other version
		mustDo(t, db.Drafts.Add(ctx, store.Draft{Session: talk.ID, Name: "x", Digest: "y"}, make([]byte, 1000)))
		wantEqual(t, measure(own), [3]int64{19 + 1100, 1, 2})
		for i, stream := range []string{talk.ID, talk.ID + "/in", talk.ID + "/out", "other"} {
			last := must(db.Events.Append(ctx, stream, 0, store.Event{Kind: "x", Data: json.RawMessage(`"` + strings.Repeat("x", 98) + `"`)}, store.Event{Kind: "x"}))(t)
			must(db.Events.Append(ctx, stream, last, store.Event{Kind: "x", Data: json.RawMessage(fmt.Sprint(10 + i))}))(t)
		}
		_, err := db.Events.Append(ctx, talk.ID, 1, store.Event{Kind: "late", Data: json.RawMessage(`1`)})
		wantError(t, err, store.ErrConflict)
		wantEqual(t, measure(own), [3]int64{19 + 1100 + 3*102, 1, 2})
		for _, owner := range []string{string(own), "skill:" + s.ID, "session:" + talk.ID, string(team)} {
			for _, text := range []string{"longer", "text"} { // the second one replaces the first
				mustDo(t, db.Secrets.Put(ctx, store.Secret{Owner: owner, Name: "key", Encrypted: []byte(text)}))
			}
		}
		wantEqual(t, measure(own), [3]int64{19 + 1100 + 3*102 + 12, 1, 2})
		wantEqual(t, measure(team), [3]int64{4, 0, 0})
		mustDo(t, db.Events.Delete(ctx, talk.ID+"/in"))
		wantEqual(t, measure(own), [3]int64{19 + 1100 + 2*102 + 12, 1, 2})
		mustDo(t, db.Events.Delete(ctx, talk.ID+"/out"))
		must(db.Secrets.DeleteByOwner(ctx, string(team)))(t)

		theirs := newSkill(t, db, team, "tides")
		newVersion(t, db, theirs.ID, "second")
		wantEqual(t, measure(team), [3]int64{6, 1, 0})
		wantEqual(t, measure(store.UserNamespace(bob.ID)), [3]int64{})
		wantEqual(t, measure(store.Public), [3]int64{})

		mustDo(t, db.Sessions.Delete(ctx, talk.ID))
		mustDo(t, db.Skills.Delete(ctx, s.ID))
		wantEqual(t, measure(own), [3]int64{8 + 4, 0, 1})
	})
}

// The events of conversations that an earlier program stored count too.
func TestMigrationMeasuresStreams(t *testing.T) {
	eachAddress(t, func(t *testing.T, address string) {
		ctx := t.Context()
		old := must(store.OpenAt(ctx, address, streamSizes-1))(t)
		ada := newUser(t, old, "ada")
		talk := store.Session{ID: "talk"}
		must(store.Exec(ctx, old, "INSERT INTO sessions (id, owner, title, agent, data, generation, created, updated) VALUES ('talk', '"+ada.ID+"', '', '', '', 1, 1, 1)"))(t)
		for i, stream := range []string{talk.ID, talk.ID + "/in", talk.ID + "/out", talk.ID + "/out", "other"} {
			must(store.Exec(ctx, old, fmt.Sprintf("INSERT INTO events (stream, seq, kind, data, created) VALUES ('%s', %d, 'x', '\"\u00e9\"', 1)", stream, i)))(t)
		}
		mustDo(t, old.Close())
		db := storetest.Open(t, address)
		wantEqual(t, must(db.Storage.Bytes(ctx, store.UserNamespace(ada.ID)))(t), int64(4*4))
		must(db.Events.Append(ctx, talk.ID+"/out", 3, store.Event{Kind: "x", Data: json.RawMessage(`1234`)}))(t)
		wantEqual(t, must(db.Storage.Bytes(ctx, store.UserNamespace(ada.ID)))(t), int64(5*4))
	})
}

// streamSizes is the number of the migration that measures streams.
const streamSizes = 12
