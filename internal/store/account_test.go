package store_test

import (
	"crypto/sha256"
	"testing"
	"time"

	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/store/storetest"
)

func TestUsers(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		ada := must(db.Users.Create(ctx, store.User{
			Name: "ada", Display: "Ada ⚙", Email: "ada@example.com", Password: "hash", Admin: true, Created: at(1), LastSeen: at(2),
		}))(t)
		wantEqual(t, must(db.Users.Get(ctx, ada.ID))(t), ada)
		wantEqual(t, must(db.Users.ByName(ctx, "ada"))(t), ada)

		_, err := db.Users.Create(ctx, store.User{Name: "ada"})
		wantError(t, err, store.ErrExists)
		_, err = db.Users.Create(ctx, store.User{ID: ada.ID, Name: "other"})
		wantError(t, err, store.ErrExists)
		_, err = db.Users.ByName(ctx, "Ada")
		wantError(t, err, store.ErrNotFound)
		_, err = db.Users.Get(ctx, "nobody")
		wantError(t, err, store.ErrNotFound)

		mustDo(t, db.Users.LinkIdentity(ctx, ada.ID, "https://id.example.com", "42"))
		wantError(t, db.Users.LinkIdentity(ctx, ada.ID, "https://id.example.com", "42"), store.ErrExists)
		wantError(t, db.Users.LinkIdentity(ctx, "nobody", "https://id.example.com", "43"), store.ErrNotFound)
		wantEqual(t, must(db.Users.ByIdentity(ctx, "https://id.example.com", "42"))(t), ada)

		if n := must(db.Users.CountAdmins(ctx))(t); n != 1 {
			t.Errorf("%d administrators", n)
		}
		ada.Display, ada.Admin, ada.Disabled = "Ada L.", false, true
		mustDo(t, db.Users.Update(ctx, ada))
		mustDo(t, db.Users.SetPassword(ctx, ada.ID, "hash 2"))
		ada.Password = "hash 2"
		wantEqual(t, must(db.Users.Get(ctx, ada.ID))(t), ada)
		wantError(t, db.Users.Update(ctx, store.User{ID: "nobody"}), store.ErrNotFound)
		if n := must(db.Users.CountAdmins(ctx))(t); n != 0 {
			t.Errorf("%d administrators", n)
		}

		mustDo(t, db.Users.Touch(ctx, ada.ID, at(2).Add(time.Second))) // too soon
		wantEqual(t, must(db.Users.Get(ctx, ada.ID))(t).LastSeen, at(2))
		mustDo(t, db.Users.Touch(ctx, ada.ID, at(3)))
		wantEqual(t, must(db.Users.Get(ctx, ada.ID))(t).LastSeen, at(3))

		for _, name := range []string{"eve", "bob", "Zoe", "émile"} {
			newUser(t, db, name)
		}
		listed := every(t, func(p store.Page) ([]store.User, string, error) { return db.Users.List(ctx, p) })
		wantEqual(t, names(listed, func(u store.User) string { return u.Name }), []string{"Zoe", "ada", "bob", "eve", "émile"})
	})
}

func TestDeletedUserKeepsSharedData(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		ada := newUser(t, db, "ada")
		own := store.UserNamespace(ada.ID)
		team := must(db.Groups.Create(ctx, store.Group{Name: "team"}))(t)
		mustDo(t, db.Groups.SetMember(ctx, store.Member{GroupID: team.ID, UserID: ada.ID, Role: store.Owner}))
		mustDo(t, db.Secrets.Put(ctx, store.Secret{Owner: string(own), Name: "key", Encrypted: []byte{1}}))
		must(db.Tokens.Create(ctx, store.Token{UserID: ada.ID, Prefix: "p", Hash: []byte{1}}))(t)
		skill := newSkill(t, db, own, "pdf")
		session := must(db.Sessions.Create(ctx, store.Session{Owner: ada.ID}))(t)

		wantError(t, db.Users.Delete(ctx, ada.ID), store.ErrReferenced)
		mustDo(t, db.Skills.Delete(ctx, skill.ID))
		wantError(t, db.Users.Delete(ctx, ada.ID), store.ErrReferenced)
		mustDo(t, db.Sessions.Delete(ctx, session.ID))
		mustDo(t, db.Users.Delete(ctx, ada.ID))

		wantError(t, db.Users.Delete(ctx, ada.ID), store.ErrNotFound)
		_, err := db.Tokens.ByPrefix(ctx, "p")
		wantError(t, err, store.ErrNotFound)
		_, err = db.Secrets.Get(ctx, string(own), "key")
		wantError(t, err, store.ErrNotFound)
		members, _, err := db.Groups.Members(ctx, team.ID, store.Page{})
		if err != nil || len(members) != 0 {
			t.Errorf("the group has %v, %v", members, err)
		}
		_, err = db.Skills.Create(ctx, store.Skill{Namespace: own, Name: "pdf"})
		wantError(t, err, store.ErrNotFound)
	})
}

func TestTokens(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		ada := newUser(t, db, "ada")
		hash := sha256.Sum256([]byte("secret"))
		token := must(db.Tokens.Create(ctx, store.Token{
			UserID: ada.ID, Name: "laptop", Prefix: "abc", Hash: hash[:], Scopes: []string{"read", "run"}, Expires: at(9),
		}))(t)
		wantEqual(t, must(db.Tokens.ByPrefix(ctx, "abc"))(t), token)
		_, err := db.Tokens.Create(ctx, store.Token{UserID: ada.ID, Prefix: "abc", Hash: hash[:]})
		wantError(t, err, store.ErrExists)
		_, err = db.Tokens.Create(ctx, store.Token{UserID: "nobody", Prefix: "x", Hash: hash[:]})
		wantError(t, err, store.ErrNotFound)
		_, err = db.Tokens.ByPrefix(ctx, "abd")
		wantError(t, err, store.ErrNotFound)

		mustDo(t, db.Tokens.Touch(ctx, token.ID, at(3)))
		mustDo(t, db.Tokens.Touch(ctx, token.ID, at(3).Add(time.Second)))
		token.LastUsed = at(3)
		bare := must(db.Tokens.Create(ctx, store.Token{UserID: ada.ID, Prefix: "no scope", Hash: hash[:]}))(t)
		wantEqual(t, must(db.Tokens.ListByUser(ctx, ada.ID))(t), []store.Token{token, bare})

		wantError(t, db.Tokens.Delete(ctx, "another", token.ID), store.ErrNotFound)
		mustDo(t, db.Tokens.Delete(ctx, ada.ID, token.ID))
		wantError(t, db.Tokens.Delete(ctx, ada.ID, token.ID), store.ErrNotFound)
	})
}

func TestLogins(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		ada := newUser(t, db, "ada")
		add := func(hash byte, created, expires time.Time) store.Login {
			return must(db.Logins.Create(ctx, store.Login{Hash: []byte{hash, 0xff}, UserID: ada.ID, Agent: "b", Created: created, Expires: expires}))(t)
		}
		one := add(1, at(1), at(9))
		wantEqual(t, must(db.Logins.Get(ctx, one.Hash))(t), one)
		_, err := db.Logins.Create(ctx, store.Login{Hash: []byte{9}, UserID: "nobody"})
		wantError(t, err, store.ErrNotFound)

		mustDo(t, db.Logins.Touch(ctx, one.Hash, at(2)))
		mustDo(t, db.Logins.Replace(ctx, one.Hash, []byte{5}))
		wantError(t, db.Logins.Replace(ctx, one.Hash, []byte{6}), store.ErrNotFound)
		_, err = db.Logins.Get(ctx, one.Hash)
		wantError(t, err, store.ErrNotFound)
		one.Hash, one.LastUsed = []byte{5}, at(2)
		two := add(2, at(3), at(9))
		wantEqual(t, must(db.Logins.ListByUser(ctx, ada.ID))(t), []store.Login{one, two})

		if n := must(db.Logins.DeleteByUser(ctx, ada.ID, two.Hash))(t); n != 1 {
			t.Errorf("ended %d", n)
		}
		wantEqual(t, must(db.Logins.ListByUser(ctx, ada.ID))(t), []store.Login{two})
		if n := must(db.Logins.DeleteByUser(ctx, ada.ID, nil))(t); n != 1 {
			t.Errorf("ended %d", n)
		}

		idle, over := add(3, at(1), at(20)), add(4, at(5), at(6))
		kept := add(7, at(5), at(20))
		if n := must(db.Logins.Prune(ctx, at(6), at(4)))(t); n != 2 {
			t.Errorf("removed %d of %v %v", n, idle, over)
		}
		wantEqual(t, must(db.Logins.ListByUser(ctx, ada.ID))(t), []store.Login{kept})
		mustDo(t, db.Logins.Delete(ctx, kept.Hash))
		mustDo(t, db.Logins.Delete(ctx, kept.Hash))
	})
}

func TestGroups(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		ada, bob := newUser(t, db, "ada"), newUser(t, db, "bob")
		team := must(db.Groups.Create(ctx, store.Group{Name: "team", Display: "The team", Created: at(1)}))(t)
		wantEqual(t, must(db.Groups.ByName(ctx, "team"))(t), team)
		_, err := db.Groups.Create(ctx, store.Group{Name: "team"})
		wantError(t, err, store.ErrExists)
		wantEqual(t, team.RequiredApprovers, int64(1))
		team.Description, team.RequiredApprovers = "all of us", 3
		mustDo(t, db.Groups.Update(ctx, team))
		wantEqual(t, must(db.Groups.Get(ctx, team.ID))(t), team)
		none := team
		none.RequiredApprovers = store.MaxRequiredApprovers + 1
		wantError(t, db.Groups.Update(ctx, none), store.ErrInvalid)
		_, err = db.Groups.Get(ctx, "none")
		wantError(t, err, store.ErrNotFound)
		_, err = db.Groups.ByName(ctx, "none")
		wantError(t, err, store.ErrNotFound)

		mustDo(t, db.Groups.SetMember(ctx, store.Member{GroupID: team.ID, UserID: ada.ID, Role: store.Owner, Since: at(1)}))
		mustDo(t, db.Groups.SetMember(ctx, store.Member{GroupID: team.ID, UserID: bob.ID, Role: store.Reporter, Since: at(1)}))
		mustDo(t, db.Groups.SetMember(ctx, store.Member{GroupID: team.ID, UserID: bob.ID, Role: store.Owner, Since: at(7)}))
		wantError(t, db.Groups.SetMember(ctx, store.Member{GroupID: team.ID, UserID: "nobody", Role: store.Owner}), store.ErrNotFound)
		wantError(t, db.Groups.SetMember(ctx, store.Member{GroupID: "none", UserID: bob.ID, Role: store.Owner}), store.ErrNotFound)
		wantError(t, db.Groups.SetMember(ctx, store.Member{GroupID: team.ID, UserID: bob.ID, Role: "king"}), store.ErrInvalid)
		if n := must(db.Groups.CountWithRole(ctx, team.ID, store.Owner))(t); n != 2 {
			t.Errorf("%d owners", n)
		}
		wantEqual(t, must(db.Groups.ListMemberships(ctx, bob.ID))(t), []store.Member{{GroupID: team.ID, UserID: bob.ID, Role: store.Owner, Since: at(1)}})
		members := every(t, func(p store.Page) ([]store.Member, string, error) { return db.Groups.Members(ctx, team.ID, p) })
		wantEqual(t, names(members, func(m store.Member) string { return m.UserID }), []string{ada.ID, bob.ID})
		mustDo(t, db.Groups.RemoveMember(ctx, team.ID, bob.ID))
		wantError(t, db.Groups.RemoveMember(ctx, team.ID, bob.ID), store.ErrNotFound)

		skill := newSkill(t, db, store.Public, "pdf")
		mustDo(t, db.Skills.Publish(ctx, skill.ID, store.GroupNamespace(team.ID), ada.ID))
		wantError(t, db.Groups.Delete(ctx, team.ID), store.ErrReferenced)
		mustDo(t, db.Skills.Unpublish(ctx, skill.ID, store.GroupNamespace(team.ID)))
		mustDo(t, db.Groups.Delete(ctx, team.ID))
		groups := every(t, func(p store.Page) ([]store.Group, string, error) { return db.Groups.List(ctx, p) })
		wantEqual(t, names(groups, func(g store.Group) string { return g.Name }), []string{})
	})
}

func TestNamespaces(t *testing.T) {
	for _, tc := range []struct {
		n           store.Namespace
		user, group string
	}{
		{store.UserNamespace("u"), "u", ""},
		{store.GroupNamespace("g"), "", "g"},
		{store.Public, "", ""},
	} {
		if tc.n.User() != tc.user || tc.n.Group() != tc.group {
			t.Errorf("%s is of user %q and group %q", tc.n, tc.n.User(), tc.n.Group())
		}
	}
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		for _, n := range []store.Namespace{"", "user:", "other", "user:nobody", "group:none"} {
			_, err := db.Skills.Create(t.Context(), store.Skill{Namespace: n, Name: "pdf"})
			if err == nil {
				t.Errorf("a skill in %q is stored", n)
			}
		}
	})
}
