package store_test

import (
	"encoding/json"
	"testing"

	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/store/storetest"
)

// eachFilled runs a benchmark on both databases, with 10,000 skills and 200 users.
func eachFilled(b *testing.B, bench func(b *testing.B, db *store.DB)) {
	for name, address := range addresses {
		b.Run(name, func(b *testing.B) {
			db := storetest.Open(b, address(b))
			fill(b, db)
			b.ResetTimer()
			bench(b, db)
		})
	}
}

func BenchmarkListPage(b *testing.B) {
	eachFilled(b, func(b *testing.B, db *store.DB) {
		for i := range b.N {
			skills, _, err := db.Skills.List(b.Context(), store.SkillQuery{Namespaces: visible(i % manyUsers)})
			if err != nil || len(skills) != 50 {
				b.Fatal(len(skills), err)
			}
		}
	})
}

func BenchmarkAllVisible(b *testing.B) {
	eachFilled(b, func(b *testing.B, db *store.DB) {
		for i := range b.N {
			must(listAll(b.Context(), db, visible(i%manyUsers)))(b)
		}
	})
}

func BenchmarkFind(b *testing.B) {
	eachFilled(b, func(b *testing.B, db *store.DB) {
		for i := range b.N {
			must(db.Skills.Find(b.Context(), skillName(i%manySkills), visible(i%manyUsers)))(b)
		}
	})
}

func BenchmarkAllChanges(b *testing.B) {
	eachFilled(b, func(b *testing.B, db *store.DB) {
		for range b.N {
			for after := int64(0); ; {
				changes := must(db.Skills.Changes(b.Context(), after))(b)
				if len(changes) == 0 {
					break
				}
				after = changes[len(changes)-1].Revision
			}
		}
	})
}

func BenchmarkAppend(b *testing.B) {
	eachFilled(b, func(b *testing.B, db *store.DB) {
		data := json.RawMessage(`{"type":"text","text":"some words of an answer"}`)
		last := int64(0)
		for range b.N {
			last = must(db.Events.Append(b.Context(), "s", last, store.Event{Kind: "text", Data: data}))(b)
		}
	})
}

func BenchmarkReadFile(b *testing.B) {
	eachFilled(b, func(b *testing.B, db *store.DB) {
		hash := must(db.Blobs.Put(b.Context(), noise(1<<20)))(b)[0]
		b.SetBytes(1 << 20)
		for range b.N {
			must(db.Blobs.Read(b.Context(), hash))(b)
		}
	})
}
