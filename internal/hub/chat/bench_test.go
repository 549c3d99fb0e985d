package chat_test

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/loadout-dev/loadout/internal/bus"
	"github.com/loadout-dev/loadout/internal/hub/chat"
	"github.com/loadout-dev/loadout/internal/llm/demo"
)

// 200 conversations at the same time, on two nodes, each watched on the other one. An
// operation is one turn: load a skill, and answer.
func Benchmark200Conversations(b *testing.B) {
	for name, address := range databases {
		b.Run(name, func(b *testing.B) {
			at := address(b)
			shared := bus.New()
			own := func(o *chat.Options) {
				o.Bus, o.Poll, o.Lease = shared, time.Second, 15*time.Second
			}
			k := setupFixture{model: demo.New(nil)}
			nodes := []*chat.Engine{node(b, openAt(b, at), k, own), node(b, openAt(b, at), k, own)}
			const many = 200
			ids := make([]string, many)
			for i := range ids {
				ids[i] = begin(b, nodes[0])
			}
			var mu sync.Mutex
			var elapsed, firsts []time.Duration
			b.ResetTimer()
			var all sync.WaitGroup
			for i, id := range ids {
				turns := b.N / many
				if i < b.N%many {
					turns++
				}
				all.Go(func() {
					after := int64(0)
					for n := range turns {
						start := time.Now()
						in, err := nodes[i%2].SendMessage(b.Context(), ada, id, chat.Message{Text: fmt.Sprintf("%d: load tides", n)})
						if err != nil {
							b.Error(err)
							return
						}
						first := time.Duration(0)
						for ev, err := range nodes[(i+1)%2].Watch(b.Context(), ada, id, after) {
							if err != nil {
								b.Error(err)
								return
							}
							after = ev.Seq
							if ev.Type == chat.TurnStarted && first == 0 {
								first = time.Since(start)
							}
							if ev.Type == chat.TurnEnded && ev.Input == in {
								break
							}
						}
						mu.Lock()
						elapsed, firsts = append(elapsed, time.Since(start)), append(firsts, first)
						mu.Unlock()
					}
				})
			}
			all.Wait()
			b.StopTimer()
			slices.Sort(elapsed)
			slices.Sort(firsts)
			b.ReportMetric(float64(elapsed[len(elapsed)*95/100].Microseconds())/1000, "p95-ms/turn")
			b.ReportMetric(float64(firsts[len(firsts)/2].Microseconds())/1000, "p50-ms/begun")
			var mem runtime.MemStats
			runtime.ReadMemStats(&mem)
			b.ReportMetric(float64(mem.HeapInuse)/(1<<20), "heap-MB")
		})
	}
}

// One conversation that is alone: how long a turn takes beyond its model, which takes
// no time.
func BenchmarkTurn(b *testing.B) {
	for name, address := range databases {
		b.Run(name, func(b *testing.B) {
			e := node(b, openAt(b, address(b)), setupFixture{}, func(o *chat.Options) { o.Poll, o.Lease = time.Second, 15*time.Second })
			after, id := int64(0), begin(b, e)
			var first time.Duration
			for b.Loop() {
				if after > 500 { // or the length of the conversation would be measured
					after, id = 0, begin(b, e)
				}
				start := time.Now()
				in := say(b, e, id, "hello")
				for ev, err := range e.Watch(b.Context(), ada, id, after) {
					if err != nil {
						b.Fatal(err)
					}
					if after = ev.Seq; ev.Type == chat.Text {
						first += time.Since(start)
					}
					if ev.Type == chat.TurnEnded && ev.Input == in {
						break
					}
				}
			}
			b.ReportMetric(float64(first.Microseconds())/1000/float64(b.N), "ms/first-word")
		})
	}
}
