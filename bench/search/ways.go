//go:build linux

package main

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/bm25"
)

// A searcher returns the places of the best skills for a query.
type searcher func(query string, limit int) []int

// A way to search. The last is what ships; the others differ in what they
// index and are here to be compared.
type way struct {
	name  string
	build func(*corpus) (searcher, error)
}

var ways = []way{
	{"count of words contained", contained},
	{"BM25, name + description", meta},
	{"BM25, with the body in one text", full},
	{"both, fused by rank", fusedByRank},
	{"both, added: as it ships", shipped},
}

// shipped searches the catalog. Building it includes reading the beginning of
// every skill, which the other ways are given.
func shipped(c *corpus) (searcher, error) {
	ctx := context.Background()
	if err := c.catalog.Warm(ctx); err != nil {
		return nil, err
	}
	return func(query string, limit int) []int {
		hits, err := c.catalog.Search(ctx, query, catalog.SearchOptions{Limit: limit})
		if err != nil {
			return nil // ctx never ends
		}
		out := make([]int, len(hits))
		for i, h := range hits {
			out[i] = c.place[h.Name]
		}
		return out
	}, nil
}

func bm25Of(docs []bm25.Doc) searcher {
	x := bm25.New(slices.Values(docs))
	return func(query string, limit int) []int {
		hits := x.Search(query, limit)
		out := make([]int, len(hits))
		for i, h := range hits {
			out[i] = h.Doc
		}
		return out
	}
}

func meta(c *corpus) (searcher, error) {
	return bm25Of(changed(c.docs, func(d *bm25.Doc) { d.Body = "" })), nil
}

func full(c *corpus) (searcher, error) {
	return bm25Of(changed(c.docs, func(d *bm25.Doc) {
		head := []rune(d.Body)
		head = head[:min(len(head), bm25.BodyHead)]
		d.Tags, d.Body = append(slices.Clip(d.Tags), string(head)), ""
	})), nil
}

func changed(docs []bm25.Doc, change func(*bm25.Doc)) []bm25.Doc {
	docs = slices.Clone(docs)
	for i := range docs {
		change(&docs[i])
	}
	return docs
}

func fusedByRank(c *corpus) (searcher, error) {
	m, err := meta(c)
	if err != nil {
		return nil, err
	}
	f, err := full(c)
	return func(query string, limit int) []int {
		return fuse([][]int{m(query, max(limit, 100)), f(query, max(limit, 100))}, limit)
	}, err
}

// contained ranks by how many words of the query occur anywhere in name and
// description.
func contained(c *corpus) (searcher, error) {
	texts := make([]string, len(c.docs))
	for i, d := range c.docs {
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
	}, nil
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
