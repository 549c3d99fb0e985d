package assembly_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/assembly"
	"github.com/loadout-dev/loadout/internal/hub/chat"
	"github.com/loadout-dev/loadout/internal/store"
)

const (
	manySkills = 10_000
	manyKits   = 200
)

// fill puts many public skills into a hub, and returns users.
func (w *fixture) fill(b *testing.B) []account.Principal {
	b.Helper()
	ctx := b.Context()
	body := []byte("---\nname: x\ndescription: x\n---\nbody\n")
	hash, err := w.db.Blobs.Put(ctx, body)
	must(b, err)
	for done := 0; done < manySkills; done += 500 {
		must(b, w.db.Tx(ctx, func(tx *store.Tx) error {
			for i := done; i < done+500; i++ {
				s, err := tx.Skills.Create(ctx, store.Skill{Namespace: store.Public, Name: fmt.Sprintf("skill-%05d", i), CreatedBy: "x"})
				if err != nil {
					return err
				}
				v := store.Version{SkillID: s.ID, Digest: fmt.Sprintf("sha256:%064d", i), Meta: []byte(`{"tokens":100}`),
					Description: fmt.Sprintf("Reads and writes tables of the kind %d, where they are needed; number %d.", i%17, i)}
				if _, err := tx.Versions.Add(ctx, v, []store.File{{Path: "SKILL.md", SHA256: hash[0], Size: int64(len(body))}}, nil); err != nil {
					return err
				}
				if err := tx.Skills.SetCurrent(ctx, s.ID, 1); err != nil {
					return err
				}
			}
			return nil
		}))
	}
	var users []account.Principal
	for i := range manyKits {
		u, err := w.db.Users.Create(ctx, store.User{Name: fmt.Sprint("user", i)})
		must(b, err)
		p := account.Principal{User: account.UserID(u.ID), Name: u.Name, Scopes: account.AllScopes}
		w.people[p.User] = p
		users = append(users, p)
	}
	return users
}

func heap() float64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc) / (1 << 20)
}

// Measures the memory of assemblies of 200 users over 10,000 skills, and the time to
// open one again, to find a skill, and to begin a turn.
func BenchmarkKits(b *testing.B) {
	w := sqlite(b)
	users := w.fill(b)
	first := w.open(assembly.Request{Principal: users[0], Session: "x"}) // has read everything
	before := heap()
	start := time.Now()
	for _, p := range users[1:] {
		w.open(assembly.Request{Principal: p, Session: "x"})
	}
	opened := time.Since(start)
	each := (heap() - before) / (manyKits - 1)
	b.Run("open first", func(b *testing.B) {
		for b.Loop() {
		}
		b.ReportMetric(each, "MiB/kit")
		b.ReportMetric(before, "MiB/skills")
		b.ReportMetric(float64(opened.Microseconds())/1000/(manyKits-1), "ms/kit")
	})
	b.Run("open again", func(b *testing.B) {
		for b.Loop() {
			k, err := w.kits.Open(b.Context(), assembly.Request{Principal: users[0], Session: "y"})
			must(b, err)
			must(b, k.Close())
		}
	})
	b.Run("search", func(b *testing.B) {
		for b.Loop() {
			_, err := first.Runtime.Catalog().Search(b.Context(), "tables of the kind 7", catalog.SearchOptions{ForModel: true})
			must(b, err)
		}
	})
	b.Run("turn", func(b *testing.B) {
		id, seen := w.begin(users[0], ""), int64(0)
		for b.Loop() {
			in, err := w.chat.SendMessage(b.Context(), users[0], id, chat.Message{Text: "hello"})
			must(b, err)
			for ev, err := range w.chat.WatchAsClient(b.Context(), users[0], id, seen) {
				must(b, err)
				if seen = ev.Seq; ev.Type == chat.TurnEnded && ev.Input == in {
					break
				}
			}
		}
	})
	b.Run("conversations at once", func(b *testing.B) {
		started := make(chan struct{}, manyKits)
		w.model.answer = blocking(started)
		before := heap()
		for _, p := range users {
			id := w.begin(p, "")
			_, err := w.chat.SendMessage(b.Context(), p, id, chat.Message{Text: "hello"})
			must(b, err)
		}
		for range users {
			<-started
		}
		each := (heap() - before) / manyKits
		w.chat.StopTurns(func(chat.Conversation) bool { return true }, "the end")
		for b.Loop() {
		}
		b.ReportMetric(each, "MiB/conversation")
	})
}
