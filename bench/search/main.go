//go:build linux

// Command search measures how well and how fast skills are found: the search
// of the catalog as it ships, beside the other ways that were considered, in
// one run and over the same skills, as the project itself reads them:
//
//	go run ./bench/search -queries FILE -tasks DIR -pool DIR [-pool DIR]…
//
// FILE holds {"queries": {TASK: [QUERY, …]}}. A task is a folder of DIR, the
// tasks of github.com/KaiserWhoLearns/skillsbench; a hit is a skill of a name
// that its folder carries. Searched are the skills of all tasks and of every
// pool, one per name, the first winning. Several queries of a task are fused
// by reciprocal rank.
//
// Wherever a pool's skill has an agents/openai.yaml, its author's
// default_prompt and short_description are known-item queries as well: one
// skill is right, and its name is not said. There are few tasks and hundreds
// of these.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strings"

	"github.com/loadout-dev/loadout/bench/internal/measure"
)

func main() {
	queries := flag.String("queries", "", "`file` of queries for each task")
	tasks := flag.String("tasks", "", "`directory` of task folders")
	halves := flag.Int("halves", 0, "also average over `n` random halves of the pools")
	verbose := flag.Bool("v", false, "print the ranks of each task's skills")
	pools := measure.Dirs("pool", "`directory` with skills to search as well (repeatable)")
	measure.Main("search", true, func() error {
		if *queries == "" || *tasks == "" {
			return fmt.Errorf("give -queries and -tasks")
		}
		return run(context.Background(), *queries, *tasks, *pools, *halves, *verbose)
	})
}

func run(ctx context.Context, queries, tasks string, pools []string, halves int, verbose bool) error {
	c, err := open(ctx, append([]string{tasks}, pools...), nil)
	if err != nil {
		return err
	}
	asked, err := readQueries(queries, c)
	if err != nil {
		return err
	}
	known := c.knownItems()
	fmt.Println(measure.Where())
	fmt.Printf("\n%d skills, %d tasks with %d queries, %d known items\n", len(c.docs), len(asked), len(single(asked)), len(known))
	for _, depth := range []int{100, 10} {
		fmt.Printf("\nTasks, the first %d hits of each query fused:\n\n", depth)
		err := printQuality(depth == 100, func(w way) (figures, error) {
			return judge(w, c, asked, depth)
		})
		if err != nil {
			return err
		}
	}
	if halves > 0 {
		fmt.Printf("\nTasks, the first 100 fused, mean over %d random halves of the pools:\n\n", halves)
		err := printQuality(false, func(w way) (figures, error) { return overHalves(ctx, w, c, asked, halves) })
		if err != nil {
			return err
		}
	}
	if len(known) > 0 {
		fmt.Printf("\nKnown items, one query each:\n\n")
		if err := printQuality(false, func(w way) (figures, error) { return judge(w, c, known, 100) }); err != nil {
			return err
		}
	}
	fmt.Printf("\nCost, CPU time of a query for 20 skills:\n\n")
	if err := printCosts(ctx, c, single(asked)); err != nil {
		return err
	}
	if verbose {
		fmt.Println()
		return explain(c, asked)
	}
	return nil
}

// goals are those of the shipped way.
var goals = figures{hit1: 0.66, r5: 0.68, r10: 0.79, r20: 0.88}

// printQuality prints a row for each way, and with judged also whether the
// last one, ours, is as good as it should be.
func printQuality(judged bool, of func(way) (figures, error)) error {
	rows := [][]string{{"way", "hit@1", "MRR", "recall@5", "@10", "@20"}}
	var last figures
	for _, w := range ways {
		f, err := of(w)
		if err != nil {
			return err
		}
		rows = append(rows, append([]string{w.name}, f.cells()...))
		last = f
	}
	if judged {
		goal := func(want, got float64) string {
			return measure.Verdict(fmt.Sprintf("≥ %.2f", want), got >= want-0.005)
		}
		rows = append(rows, []string{"goal", goal(goals.hit1, last.hit1), "", goal(goals.r5, last.r5), goal(goals.r10, last.r10), goal(goals.r20, last.r20)})
	}
	measure.Markdown(os.Stdout, rows)
	return nil
}

// overHalves is the mean over catalogs without about half of the pools.
func overHalves(ctx context.Context, w way, c *corpus, asked []question, n int) (sum figures, err error) {
	for seed := range n {
		half, err := c.half(ctx, uint64(seed))
		if err != nil {
			return sum, err
		}
		f, err := judge(w, half, asked, 100)
		if err != nil {
			return sum, err
		}
		sum = sum.plus(f)
	}
	return sum.over(float64(n)), nil
}

// printCosts measures building, what stays in the heap, and queries, each way
// after the other in each round.
func printCosts(ctx context.Context, c *corpus, asked []question) error {
	const rounds = 7
	type cost struct {
		build, heap measure.Row
		queries     []float64
	}
	costs := make([]cost, len(ways))
	for range rounds {
		for i, w := range ways {
			fresh, err := c.again(ctx) // what was built before is not there
			if err != nil {
				return err
			}
			k := &costs[i]
			before := measure.Heap()
			var search searcher
			took, err := measure.OfClean(func() (err error) { search, err = w.build(fresh); return err })
			if err != nil {
				return err
			}
			k.build.Add(took.CPU.Seconds() * 1e3)
			k.heap.Add(max(0, float64(measure.Heap()-before)/1e6))
			for range 5 {
				for _, q := range asked {
					took, err := measure.Of(func() error { search(q.queries[0], 20); return nil })
					if err != nil {
						return err
					}
					k.queries = append(k.queries, took.CPU.Seconds()*1e6)
				}
			}
		}
	}
	rows := [][]string{{"way", "build ms", "heap MB", "query p50 µs", "p95 µs", "goal"}}
	for i, w := range ways {
		k := &costs[i]
		p95 := measure.Quantile(k.queries, 0.95)
		goal := ""
		if i == len(ways)-1 {
			goal = measure.Verdict("p95 ≤ 1,000 µs", p95 <= 1000)
		}
		rows = append(rows, []string{w.name, measure.Number(k.build.Median()), measure.Number(k.heap.Median()),
			measure.Number(measure.Quantile(k.queries, 0.5)), measure.Number(p95), goal})
	}
	measure.Markdown(os.Stdout, rows)
	return nil
}

// explain prints where the skills of each task are found.
func explain(c *corpus, asked []question) error {
	search, err := ways[len(ways)-1].build(c)
	if err != nil {
		return err
	}
	rows := [][]string{{"task", "ranks", "of", "first"}}
	for _, q := range asked {
		all := answer(search, q, 100)
		var first []string
		for _, doc := range all[:min(len(all), 3)] {
			first = append(first, c.docs[doc].Name)
		}
		rows = append(rows, []string{q.id, fmt.Sprint(ranks(search, c, q, 100)), fmt.Sprint(len(q.want)), strings.Join(first, ", ")})
	}
	measure.Markdown(os.Stdout, rows)
	return nil
}
