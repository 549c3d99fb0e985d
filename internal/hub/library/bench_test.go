package library_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/library"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/store/storetest"
)

// A hub with 10,000 skills and 200 users: half of the skills are public, the others the
// users' own. They are put there once for all benchmarks of a run.
const (
	manySkills = 10_000
	manyUsers  = 200
)

type crowd struct {
	*fixture
	users []account.Principal
}

var subjects = []string{"invoices", "forms", "spreadsheets", "slides", "tickets", "logs", "maps", "contracts", "recipes", "images"}

func newCrowd(b *testing.B, address string) *crowd {
	b.Helper()
	w := newFixture(b, storetest.Open(b, address), nil)
	w.ctx = b.Context()
	c := &crowd{fixture: w}
	for i := range manyUsers {
		u := must(w.db.Users.Create(w.ctx, store.User{Name: fmt.Sprint("user", i)}))(b)
		c.users = append(c.users, account.Principal{User: account.UserID(u.ID), Name: u.Name, Scopes: account.AllScopes})
	}
	hash := must(w.db.Blobs.Put(w.ctx, []byte("body")))(b)[0]
	for done := 0; done < manySkills; {
		mustDo(b, w.db.Tx(w.ctx, func(tx *store.Tx) error {
			for i := done; i < done+500; i++ {
				in := store.Public
				if i%2 == 1 {
					in = ownNamespace(c.users[i/2%manyUsers])
				}
				s, err := tx.Skills.Create(w.ctx, store.Skill{Namespace: in, Name: fmt.Sprintf("%s-%05d", subjects[i%len(subjects)], i), CreatedBy: "x"})
				if err != nil {
					return err
				}
				v := store.Version{SkillID: s.ID, Digest: fmt.Sprintf("sha256:%064d", i), Tags: []string{subjects[i/7%len(subjects)]}, Meta: []byte(`{"tokens":100}`),
					Description: fmt.Sprintf("Reads and writes %s, with %s where they are needed; number %d.", subjects[i%len(subjects)], subjects[i/3%len(subjects)], i)}
				if _, err := tx.Versions.Add(w.ctx, v, []store.File{{Path: "SKILL.md", SHA256: hash, Size: 4}}, nil); err != nil {
					return err
				}
				if err := tx.Skills.SetCurrent(w.ctx, s.ID, 1); err != nil {
					return err
				}
			}
			return nil
		}))
		done += 500
	}
	return c
}

func BenchmarkHub(b *testing.B) {
	for _, kind := range []struct {
		name    string
		address func(testing.TB) string
	}{{"SQLite", storetest.SQLite}, {"PostgreSQL", storetest.Postgres}} {
		b.Run(kind.name, func(b *testing.B) {
			c := newCrowd(b, kind.address(b))
			must(c.lib.Search(c.ctx, c.users[0], "maps", 1))(b) // has read everything
			b.Run("first look at all skills", func(b *testing.B) {
				for b.Loop() {
					l := c.node(nil)
					sources := must(l.Sources(c.ctx, c.users[0]))(b)
					must(sources[0].List(c.ctx))(b)
				}
			})
			b.Run("list page", func(b *testing.B) {
				i := 0
				for b.Loop() {
					i++
					_, err := c.lib.List(c.ctx, c.users[i%manyUsers], library.Query{})
					mustDo(b, err)
				}
			})
			b.Run("list page with a text", func(b *testing.B) {
				i := 0
				for b.Loop() {
					i++
					_, err := c.lib.List(c.ctx, c.users[i%manyUsers], library.Query{Text: subjects[i%len(subjects)]})
					mustDo(b, err)
				}
			})
			b.Run("search", func(b *testing.B) {
				i := 0
				for b.Loop() {
					i++
					must(c.lib.Search(c.ctx, c.users[i%manyUsers], subjects[i%len(subjects)]+" with tables", 10))(b)
				}
			})
			b.Run("sources of a user", func(b *testing.B) {
				i := 0
				for b.Loop() {
					i++
					for _, s := range must(c.lib.Sources(c.ctx, c.users[i%manyUsers]))(b) {
						must(s.List(c.ctx))(b)
					}
				}
			})
			b.Run("catalog of a user", func(b *testing.B) {
				i := 0
				for b.Loop() {
					i++
					cat := must(catalog.New(must(c.lib.Sources(c.ctx, c.users[i%manyUsers]))(b), nil))(b)
					mustDo(b, cat.Reload(c.ctx))
				}
			})
			b.Run("list page of 16 users at once", func(b *testing.B) {
				for b.Loop() {
					var wg sync.WaitGroup
					for i := range 16 {
						wg.Go(func() {
							if _, err := c.lib.List(c.ctx, c.users[i], library.Query{}); err != nil {
								b.Error(err)
							}
						})
					}
					wg.Wait()
				}
			})
		})
	}
}
