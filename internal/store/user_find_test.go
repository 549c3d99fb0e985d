package store_test

import (
	"testing"

	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/store/storetest"
)

func TestUserGroupsByName(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		ada, bob := newUser(t, db, "ada"), newUser(t, db, "bob")
		for _, name := range []string{"web", "data", "ops", "research"} {
			g := must(db.Groups.Create(ctx, store.Group{Name: name}))(t)
			member := ada
			if name == "research" {
				member = bob
			}
			mustDo(t, db.Groups.SetMember(ctx, store.Member{GroupID: g.ID, UserID: member.ID, Role: store.Reporter}))
		}
		mine := every(t, func(p store.Page) ([]store.Group, string, error) { return db.Groups.ListByUser(ctx, ada.ID, p) })
		wantEqual(t, names(mine, func(g store.Group) string { return g.Name }), []string{"data", "ops", "web"})
		none := every(t, func(p store.Page) ([]store.Group, string, error) { return db.Groups.ListByUser(ctx, "nobody", p) })
		wantEqual(t, len(none), 0)
	})
}

func TestSomeUsers(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		ada, bob := newUser(t, db, "ada"), newUser(t, db, "bob")
		newUser(t, db, "eve")
		wantEqual(t, must(db.Users.GetMany(ctx, []string{bob.ID, "nobody", ada.ID}))(t), map[string]store.User{ada.ID: ada, bob.ID: bob})
		wantEqual(t, len(must(db.Users.GetMany(ctx, nil))(t)), 0)
		_, err := db.Users.GetMany(ctx, make([]string, store.MaxPage+1))
		wantError(t, err, store.ErrInvalid)
	})
}
