package store_test

import (
	"encoding/json"
	"testing"

	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/store/storetest"
)

// What is found of a name comes in the order of the namespaces, and of no others.
func TestKindsFind(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		u := newUser(t, db, "ada")
		g := must(db.Groups.Create(t.Context(), store.Group{Name: "team"}))(t)
		mine, ours := store.UserNamespace(u.ID), store.GroupNamespace(g.ID)
		for _, k := range []store.Kind{
			{Kind: "Ghost", Namespace: mine, Name: "a"}, {Kind: "Ghost", Namespace: ours, Name: "a"}, {Kind: "Ghost", Namespace: store.Public, Name: "a"},
			{Kind: "Bot", Namespace: mine, Name: "a"}, {Kind: "Ghost", Namespace: mine, Name: "A"},
		} {
			k.Spec = json.RawMessage(`{}`)
			must(db.Kinds.Create(t.Context(), k))(t)
		}
		where := func(in ...store.Namespace) []string {
			return names(must(db.Kinds.Find(t.Context(), "Ghost", "a", in))(t), func(k store.Kind) string { return string(k.Namespace) })
		}
		wantEqual(t, where(store.Public, mine, mine), []string{string(store.Public), string(mine)})
		wantEqual(t, where(ours), []string{string(ours)})
		wantEqual(t, where(), []string{})
	})
}
