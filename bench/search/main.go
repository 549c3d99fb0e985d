//go:build linux

// Command search measures the quality and speed of the catalog search. It compares the search
// with alternatives that were considered, on the same skills in the same run:
//
//	go run ./search -queries FILE -tasks DIR -pool DIR [-pool DIR]…
//
// FILE contains {"queries": {TASK: [QUERY, …]}}. A task is a directory in DIR, the tasks of
// github.com/KaiserWhoLearns/skillsbench. The right skills for a task are those in its
// directory. The search covers the skills of all tasks and pools. Of several skills with the
// same name, the first is used. The results for several queries of a task are fused by
// reciprocal rank.
//
// With -frequencies, it writes the table of frequent words that decides which hits are weak:
//
//	go run ./search -frequencies -pool DIR [-pool DIR]… > ../internal/bm25/frequencies.txt
//
// If a pool skill has an agents/openai.yaml, its default_prompt and short_description become
// known-item queries: only that skill is right, and the query does not name it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"

	"github.com/loadout-dev/loadout/bench/internal/measure"
)

func main() {
	queries := flag.String("queries", "", "`file` with the queries of each task")
	tasks := flag.String("tasks", "", "`directory` of tasks")
	halves := flag.Int("halves", 0, "also average over `n` random halves of the pools")
	verbose := flag.Bool("v", false, "print the ranks of the skills of each task")
	frequencies := flag.Bool("frequencies", false, "write the table of frequent words of the pools, internal/bm25/frequencies.txt, to standard output")
	pools := measure.ListFlag("pool", "`directory` with more skills (repeatable)")
	measure.Main("search", true, func() error {
		if *frequencies {
			return writeFrequencies(context.Background(), os.Stdout, *pools)
		}
		if *queries == "" || *tasks == "" {
			return errors.New("missing -queries or -tasks")
		}
		return run(context.Background(), *queries, *tasks, *pools, *halves, *verbose)
	})
}

func run(ctx context.Context, queries, tasks string, pools []string, halves int, verbose bool) error {
	c, err := openCorpus(ctx, append([]string{tasks}, pools...), nil)
	if err != nil {
		return err
	}
	asked, err := readQueries(queries, c)
	if err != nil {
		return err
	}
	known := c.knownItemQuestions()
	fmt.Println(measure.Environment())
	fmt.Printf("\n%d skills, %d tasks with %d queries, %d known items\n", len(c.docs), len(asked), len(splitQueries(asked)), len(known))
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
		err := printQuality(false, func(w way) (figures, error) { return judgeHalves(ctx, w, c, asked, halves) })
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
	if err := printCosts(ctx, c, splitQueries(asked)); err != nil {
		return err
	}
	if verbose {
		fmt.Println()
		return printRanks(c, asked)
	}
	return nil
}

// goals holds the targets for the default ranking.
var goals = figures{hit1: 0.66, r5: 0.68, r10: 0.79, r20: 0.88}

// printQuality prints a row for each search method. If withGoals is set, it also compares the
// last method, which is the one in use, with the goals.
func printQuality(withGoals bool, of func(way) (figures, error)) error {
	rows := [][]string{{"way", "hit@1", "MRR", "recall@5", "@10", "@20"}}
	var last figures
	for _, w := range ways {
		f, err := of(w)
		if err != nil {
			return err
		}
		rows = append(rows, append([]string{w.name}, f.formatCells()...))
		last = f
	}
	if withGoals {
		goal := func(want, got float64) string {
			return measure.FormatVerdict(fmt.Sprintf("≥ %.2f", want), got >= want-0.005)
		}
		rows = append(rows, []string{"goal", goal(goals.hit1, last.hit1), "", goal(goals.r5, last.r5), goal(goals.r10, last.r10), goal(goals.r20, last.r20)})
	}
	measure.WriteMarkdown(os.Stdout, rows)
	return nil
}

// judgeHalves returns the mean quality measures over n corpora, each without a random half of
// the skills that belong to no task.
func judgeHalves(ctx context.Context, w way, c *corpus, asked []question, n int) (sum figures, err error) {
	for seed := range n {
		half, err := c.dropHalf(ctx, uint64(seed))
		if err != nil {
			return sum, err
		}
		f, err := judge(w, half, asked, 100)
		if err != nil {
			return sum, err
		}
		sum = sum.add(f)
	}
	return sum.divide(float64(n)), nil
}

// printCosts prints the time for building an index, its heap size and the time for queries,
// for each search method. The order of the methods alternates between rounds.
func printCosts(ctx context.Context, c *corpus, asked []question) error {
	const rounds = 7
	type cost struct {
		build, heap measure.Row
		queries     []float64
	}
	costs := make([]cost, len(ways))
	for range rounds {
		for i, w := range ways {
			fresh, err := c.withoutIndex(ctx) // without the index of the previous round
			if err != nil {
				return err
			}
			k := &costs[i]
			before := measure.HeapInUse()
			var search searcher
			took, err := measure.RunClean(func() (err error) { search, err = w.build(fresh); return err })
			if err != nil {
				return err
			}
			k.build.Add(took.CPU.Seconds() * 1e3)
			k.heap.Add(max(0, float64(measure.HeapInUse()-before)/1e6))
			for range 5 {
				for _, q := range asked {
					took, err := measure.Run(func() error { search(q.queries[0], 20); return nil })
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
			goal = measure.FormatVerdict("p95 ≤ 1,000 µs", p95 <= 1000)
		}
		rows = append(rows, []string{w.name, measure.FormatNumber(k.build.Median()), measure.FormatNumber(k.heap.Median()),
			measure.FormatNumber(measure.Quantile(k.queries, 0.5)), measure.FormatNumber(p95), goal})
	}
	measure.WriteMarkdown(os.Stdout, rows)
	return nil
}

// printRanks prints, for each task, the ranks of its skills with the search
// method in use.
func printRanks(c *corpus, asked []question) error {
	search, err := ways[len(ways)-1].build(c)
	if err != nil {
		return err
	}
	rows := [][]string{{"task", "ranks", "of", "first"}}
	for _, q := range asked {
		all := searchFused(search, q, 100)
		var first []string
		for _, doc := range all[:min(len(all), 3)] {
			first = append(first, c.docs[doc].Name)
		}
		rows = append(rows, []string{q.id, fmt.Sprint(findRanks(search, c, q, 100)), fmt.Sprint(len(q.want)), strings.Join(first, ", ")})
	}
	measure.WriteMarkdown(os.Stdout, rows)
	return nil
}
