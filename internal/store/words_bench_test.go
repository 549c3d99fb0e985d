package store_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/store/storetest"
)

// wordsOf returns the distinct words of a message, with frequencies as in prose.
func wordsOf(r *rand.Rand, z *rand.Zipf, n int) map[string]int64 {
	out := map[string]int64{}
	for range n {
		out[fmt.Sprintf("w%dx%d", z.Uint64(), r.IntN(3))] = 0
	}
	return out
}

// BenchmarkSearchConversations measures searches among 2,000 conversations of 50
// messages, and how long it takes to add the words of a message.
func BenchmarkSearchConversations(b *testing.B) {
	for name, address := range addresses {
		b.Run(name, func(b *testing.B) {
			db := storetest.Open(b, address(b))
			ctx := b.Context()
			r := rand.New(rand.NewPCG(1, 2))
			z := rand.NewZipf(r, 1.1, 20, 30000)
			var last string
			for i := range 2000 {
				mustDo(b, db.Tx(ctx, func(tx *store.Tx) error {
					s := must(tx.Sessions.Create(ctx, store.Session{Owner: "ada"}))(b)
					last = s.ID
					words := map[string]int64{}
					for step := range 50 {
						for w := range wordsOf(r, z, []int{20, 180}[step%2]) {
							words[w] = int64(step + 1)
						}
					}
					if i == 3 {
						words["rare"] = 1
					}
					return tx.ConversationWords.Add(ctx, s.ID, words)
				}))
			}
			for label, words := range map[string][]string{"none": {"missing"}, "rare": {"rare"}, "common": {"w1"}, "several": {"w100", "w200", "w300", "w1"}} {
				b.Run(label, func(b *testing.B) {
					n := 0
					for range b.N {
						found, _, err := db.ConversationWords.Search(ctx, "ada", words, store.Page{Limit: 20})
						mustDo(b, err)
						n = len(found)
					}
					b.ReportMetric(float64(n), "hits")
				})
			}
			b.Run("add", func(b *testing.B) {
				for i := range b.N {
					words := wordsOf(r, z, 100)
					for w := range words {
						words[w] = int64(51 + i)
					}
					mustDo(b, db.ConversationWords.Add(ctx, last, words))
				}
			})
			sizes := must(store.QueryInts(ctx, db, "SELECT octet_length(words) FROM conversation_words"))(b)
			total := int64(0)
			for _, s := range sizes {
				total += s
			}
			b.Logf("%d parts, %d bytes", len(sizes), total)
		})
	}
}
