//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
)

// question is a test case: one or more queries for one goal, and the names of the right skills.
type question struct {
	id      string
	queries []string
	want    map[string]bool
}

// splitQueries returns a separate test case for each query.
func splitQueries(asked []question) []question {
	var out []question
	for _, q := range asked {
		for _, s := range q.queries {
			out = append(out, question{q.id, []string{s}, q.want})
		}
	}
	return out
}

func readQueries(file string, c *corpus) ([]question, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var f struct{ Queries map[string][]string }
	if err := json.Unmarshal(data, &f); err != nil {
		return nil, fmt.Errorf("read queries from %s: %w", file, err)
	}
	var asked []question
	for task, queries := range f.Queries {
		want := c.taskSkills(task)
		if len(want) == 0 {
			return nil, fmt.Errorf("no skills found for task %s", task)
		}
		asked = append(asked, question{task, queries, want})
	}
	slices.SortFunc(asked, func(a, b question) int { return strings.Compare(a.id, b.id) })
	return asked, nil
}

// figures holds quality measures, averaged over questions.
type figures struct{ hit1, mrr, r5, r10, r20 float64 }

func (f figures) formatCells() []string {
	return []string{fmt.Sprintf("%.2f", f.hit1), fmt.Sprintf("%.3f", f.mrr), fmt.Sprintf("%.2f", f.r5), fmt.Sprintf("%.2f", f.r10), fmt.Sprintf("%.2f", f.r20)}
}

func (f figures) add(g figures) figures {
	return figures{f.hit1 + g.hit1, f.mrr + g.mrr, f.r5 + g.r5, f.r10 + g.r10, f.r20 + g.r20}
}

func (f figures) divide(n float64) figures {
	return figures{f.hit1 / n, f.mrr / n, f.r5 / n, f.r10 / n, f.r20 / n}
}

// judge returns the quality measures of a search method, averaged over all
// questions.
func judge(w way, c *corpus, asked []question, depth int) (sum figures, err error) {
	search, err := w.build(c)
	if err != nil {
		return sum, err
	}
	for _, q := range asked {
		sum = sum.add(score(findRanks(search, c, q, depth), len(q.want)))
	}
	return sum.divide(float64(len(asked))), nil
}

// score computes the figures for one question from the ranks of the right skills that were
// found.
func score(at []int, wanted int) figures {
	within := func(k int) float64 {
		n := 0
		for _, r := range at {
			if r <= k {
				n++
			}
		}
		return float64(n) / float64(wanted)
	}
	f := figures{r5: within(5), r10: within(10), r20: within(20)}
	if len(at) > 0 {
		f.mrr = 1 / float64(at[0])
		if at[0] == 1 {
			f.hit1 = 1
		}
	}
	return f
}

// findRanks returns the ranks of the right skills in the fused results. The
// first rank is 1.
func findRanks(search searcher, c *corpus, q question, depth int) []int {
	var at []int
	for i, doc := range searchFused(search, q, depth) {
		if q.want[c.docs[doc].Name] {
			at = append(at, i+1)
		}
	}
	return at
}

// searchFused searches for each query of a question and fuses the results.
func searchFused(search searcher, q question, depth int) []int {
	var lists [][]int
	for _, s := range q.queries {
		lists = append(lists, search(s, depth))
	}
	return fuseByReciprocalRank(lists, 1000)
}
