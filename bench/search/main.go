// Command search measures how well and how fast skills are found, each way that was considered beside the one that is
// used, in one run:
//
//	go run ./bench/search -queries FILE -tasks DIR -pool DIR [-pool DIR]…
//
// FILE holds {"queries": {TASK: [QUERY, …]}}. A task is a folder of DIR, the tasks of
// github.com/KaiserWhoLearns/skillsbench; a hit is a skill of a name that its folder carries. Searched are the skills of
// all tasks and of every pool, one per name, the first winning. Several queries of a task are fused by reciprocal rank.
//
// Wherever a pool's skill has an agents/openai.yaml, its author's default_prompt and short_description are known-item
// queries as well: one skill is right, and its name is not said. There are few tasks and hundreds of these.
package main

import (
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/loadout-dev/loadout/internal/bm25"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("search: ")
	queries := flag.String("queries", "", "`file` of queries for each task")
	tasks := flag.String("tasks", "", "`directory` of task folders")
	halves := flag.Int("halves", 0, "also average over `n` random halves of the pools")
	verbose := flag.Bool("v", false, "print the ranks of each task's skills")
	var pools []string
	flag.Func("pool", "`directory` with skills to search as well (repeatable)", func(dir string) error {
		pools = append(pools, dir)
		return nil
	})
	flag.Parse()
	if *queries == "" || *tasks == "" || flag.NArg() > 0 {
		flag.Usage()
		os.Exit(2)
	}
	if err := run(*queries, *tasks, pools, *halves, *verbose); err != nil {
		log.Fatal(err)
	}
}

func run(queries, tasks string, pools []string, halves int, verbose bool) error {
	c, err := load(tasks, pools)
	if err != nil {
		return err
	}
	asked, err := readQueries(queries, tasks)
	if err != nil {
		return err
	}
	fmt.Printf("%d skills (%d of tasks), %d tasks with %d queries, %d known items\n",
		len(c.docs), c.ofTasks, len(asked), len(single(asked)), len(c.known))

	for _, depth := range []int{100, 10} {
		fmt.Printf("\nTasks, the first %d hits of each query fused:\n\n", depth)
		table("way\thit@1\tMRR\trecall@5\t@10\t@20", func(row func(string, ...any)) {
			for _, w := range ways {
				row("%s\t%s", w.name, judge(w.build(c.docs), c.docs, asked, depth))
			}
		})
	}
	if halves > 0 {
		fmt.Printf("\nTasks, the first 100 fused, mean over %d random halves of the pools:\n\n", halves)
		table("way\thit@1\tMRR\trecall@5\t@10\t@20", func(row func(string, ...any)) {
			for _, w := range ways {
				var sum figures
				for seed := range halves {
					docs := c.half(uint64(seed))
					sum = sum.plus(judge(w.build(docs), docs, asked, 100))
				}
				row("%s\t%s", w.name, sum.over(float64(halves)))
			}
		})
	}
	if len(c.known) > 0 {
		fmt.Printf("\nKnown items, one query each:\n\n")
		table("way\thit@1\tMRR\trecall@5\t@10\t@20", func(row func(string, ...any)) {
			for _, w := range ways {
				row("%s\t%s", w.name, judge(w.build(c.docs), c.docs, c.known, 100))
			}
		})
	}
	fmt.Printf("\nCost:\n\n")
	table("way\tbuild ms\theap MB\tquery p50 us\tp95 us", func(row func(string, ...any)) {
		for _, w := range ways {
			build, heap, p50, p95 := costs(w, c.docs, single(asked))
			row("%s\t%.0f\t%.1f\t%.0f\t%.0f", w.name, build, heap, p50, p95)
		}
	})
	if verbose {
		fmt.Println()
		explain(ways[len(ways)-1].build(c.docs), c.docs, asked)
	}
	return nil
}

func table(header string, rows func(row func(format string, args ...any))) {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, header)
	rows(func(format string, args ...any) { fmt.Fprintf(w, format+"\n", args...) })
	w.Flush()
}

// A searcher returns the places of the best texts for a query.
type searcher func(query string, limit int) []int

// A way to search. The last is ours; the others differ in what they index and are here to be compared.
type way struct {
	name  string
	build func([]bm25.Doc) searcher
}

var ways = []way{
	{"count of words contained", contained},
	{"BM25, name + description", meta},
	{"BM25, with the body in one text", full},
	{"both, fused by rank", fusedByRank},
	{"both, added (ours)", ours},
}

func ours(docs []bm25.Doc) searcher {
	x := bm25.New(slices.Values(docs))
	return func(query string, limit int) []int { return places(x.Search(query, limit)) }
}

func meta(docs []bm25.Doc) searcher {
	return ours(changed(docs, func(d *bm25.Doc) { d.Body = "" }))
}

func full(docs []bm25.Doc) searcher {
	return ours(changed(docs, func(d *bm25.Doc) {
		head := []rune(d.Body)
		head = head[:min(len(head), bm25.BodyHead)]
		d.Tags, d.Body = append(slices.Clip(d.Tags), string(head)), ""
	}))
}

func fusedByRank(docs []bm25.Doc) searcher {
	m, f := meta(docs), full(docs)
	return func(query string, limit int) []int {
		return fuse([][]int{m(query, max(limit, 100)), f(query, max(limit, 100))}, limit)
	}
}

// contained ranks by how many words of the query occur anywhere in name and description.
func contained(docs []bm25.Doc) searcher {
	texts := make([]string, len(docs))
	for i, d := range docs {
		texts[i] = strings.ToLower(d.Name + " " + d.Description)
	}
	return func(query string, limit int) []int {
		score := map[int]int{}
		for w := range strings.FieldsSeq(strings.ToLower(query)) {
			for i, t := range texts {
				if strings.Contains(t, w) {
					score[i]++
				}
			}
		}
		return best(score, limit)
	}
}

func changed(docs []bm25.Doc, change func(*bm25.Doc)) []bm25.Doc {
	docs = slices.Clone(docs)
	for i := range docs {
		change(&docs[i])
	}
	return docs
}

func places(hits []bm25.Hit) []int {
	out := make([]int, len(hits))
	for i, h := range hits {
		out[i] = h.Doc
	}
	return out
}

// fuse orders texts by the sum of 1/(60 + rank) over the lists.
func fuse(lists [][]int, limit int) []int {
	score := map[int]float64{}
	for _, list := range lists {
		for i, doc := range list {
			score[doc] += 1 / float64(60+i+1)
		}
	}
	return best(score, limit)
}

func best[S cmp.Ordered](score map[int]S, limit int) []int {
	var docs []int
	for doc := range score {
		docs = append(docs, doc)
	}
	slices.SortFunc(docs, func(a, b int) int {
		return cmp.Or(cmp.Compare(score[b], score[a]), cmp.Compare(a, b))
	})
	return docs[:min(len(docs), limit)]
}

// A question is what is asked for one end, and the names that are right.
type question struct {
	id      string
	queries []string
	want    map[string]bool
}

// single asks each query by itself.
func single(asked []question) []question {
	var out []question
	for _, q := range asked {
		for _, s := range q.queries {
			out = append(out, question{q.id, []string{s}, q.want})
		}
	}
	return out
}

func readQueries(file, tasks string) ([]question, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var f struct{ Queries map[string][]string }
	if err := json.Unmarshal(data, &f); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	var asked []question
	for task, queries := range f.Queries {
		q := question{task, queries, map[string]bool{}}
		skills, err := readSkills(tasks + "/" + task)
		if err != nil {
			return nil, err
		}
		for _, s := range skills {
			q.want[s.doc.Name] = true
		}
		if len(q.want) == 0 {
			return nil, fmt.Errorf("task %s has no skills", task)
		}
		asked = append(asked, q)
	}
	slices.SortFunc(asked, func(a, b question) int { return strings.Compare(a.id, b.id) })
	return asked, nil
}

// corpus is what is searched.
type corpus struct {
	docs    []bm25.Doc
	ofTasks int // the first so many are the tasks' own
	known   []question
}

func load(tasks string, pools []string) (*corpus, error) {
	c := &corpus{}
	seen := map[string]bool{}
	for i, dir := range append([]string{tasks}, pools...) {
		skills, err := readSkills(dir)
		if err != nil {
			return nil, err
		}
		for _, s := range skills {
			if seen[s.doc.Name] {
				continue
			}
			seen[s.doc.Name] = true
			c.docs = append(c.docs, s.doc)
			for _, prompt := range s.prompts {
				c.known = append(c.known, question{s.doc.Name, []string{prompt}, map[string]bool{s.doc.Name: true}})
			}
		}
		if i == 0 {
			c.ofTasks = len(c.docs)
		}
	}
	return c, nil
}

// half is the corpus with about half of its pools left out.
func (c *corpus) half(seed uint64) []bm25.Doc {
	r := rand.New(rand.NewPCG(seed, 0))
	docs := slices.Clone(c.docs[:c.ofTasks])
	for _, d := range c.docs[c.ofTasks:] {
		if r.IntN(2) == 0 {
			docs = append(docs, d)
		}
	}
	return docs
}

// figures are means over questions.
type figures struct{ hit1, mrr, r5, r10, r20 float64 }

func (f figures) String() string {
	return fmt.Sprintf("%.2f\t%.3f\t%.2f\t%.2f\t%.2f", f.hit1, f.mrr, f.r5, f.r10, f.r20)
}

func (f figures) plus(g figures) figures {
	return figures{f.hit1 + g.hit1, f.mrr + g.mrr, f.r5 + g.r5, f.r10 + g.r10, f.r20 + g.r20}
}

func (f figures) over(n float64) figures {
	return figures{f.hit1 / n, f.mrr / n, f.r5 / n, f.r10 / n, f.r20 / n}
}

func judge(search searcher, docs []bm25.Doc, asked []question, depth int) figures {
	var sum figures
	for _, q := range asked {
		at := ranks(search, docs, q, depth)
		within := func(k int) float64 {
			n := 0.0
			for _, r := range at {
				if r <= k {
					n++
				}
			}
			return n / float64(len(q.want))
		}
		f := figures{r5: within(5), r10: within(10), r20: within(20)}
		if len(at) > 0 {
			f.mrr = 1 / float64(at[0])
			if at[0] == 1 {
				f.hit1 = 1
			}
		}
		sum = sum.plus(f)
	}
	return sum.over(float64(len(asked)))
}

// ranks are the places, from 1, that the skills wanted have in the fused list.
func ranks(search searcher, docs []bm25.Doc, q question, depth int) []int {
	var at []int
	for i, doc := range answer(search, q, depth) {
		if q.want[docs[doc].Name] {
			at = append(at, i+1)
		}
	}
	return at
}

func answer(search searcher, q question, depth int) []int {
	var lists [][]int
	for _, s := range q.queries {
		lists = append(lists, search(s, depth))
	}
	return fuse(lists, 1000)
}

func explain(search searcher, docs []bm25.Doc, asked []question) {
	table("task\tranks\tof\tfirst", func(row func(string, ...any)) {
		for _, q := range asked {
			var first []string
			for _, doc := range fuse([][]int{answer(search, q, 100)}, 3) {
				first = append(first, docs[doc].Name)
			}
			row("%s\t%v\t%d\t%s", q.id, ranks(search, docs, q, 100), len(q.want), strings.Join(first, ", "))
		}
	})
}

// costs measures building (best of 5), what stays in the heap, and the time of a query.
func costs(w way, docs []bm25.Doc, asked []question) (build, heap, p50, p95 float64) {
	var builds, times []float64
	var search searcher
	for range 5 {
		search = nil
		before := inUse()
		start := time.Now()
		search = w.build(docs)
		builds = append(builds, time.Since(start).Seconds()*1e3)
		heap = float64(inUse()-before) / 1e6
	}
	for range 20 {
		for _, q := range asked {
			start := time.Now()
			search(q.queries[0], 20)
			times = append(times, time.Since(start).Seconds()*1e6)
		}
	}
	slices.Sort(builds)
	slices.Sort(times)
	return builds[0], max(0, heap), times[len(times)/2], times[len(times)*95/100]
}

func inUse() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
