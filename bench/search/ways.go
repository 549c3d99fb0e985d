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

// searcher returns the indexes of the best documents for a query.
type searcher func(query string, limit int) []int

// way is a search method. The last one is in use; the others are for comparison.
type way struct {
	name  string
	build func(*corpus) (searcher, error)
}

var ways = []way{
	{"number of words contained", rankByWordCount},
	{"BM25, name + description", indexMetadata},
	{"BM25, with the body in one text", indexAll},
	{"both, fused by rank", fuseByRank},
	{"both, added: the default", searchCatalog},
}

// searchCatalog searches with the catalog. Building it includes reading the
// start of every skill, whereas the other methods receive the text.
func searchCatalog(c *corpus) (searcher, error) {
	ctx := context.Background()
	if err := c.catalog.Warm(ctx); err != nil {
		return nil, err
	}
	return func(query string, limit int) []int {
		hits, err := c.catalog.Search(ctx, query, catalog.SearchOptions{Limit: limit})
		if err != nil {
			return nil // cannot happen, because ctx is never cancelled
		}
		out := make([]int, len(hits))
		for i, h := range hits {
			out[i] = c.index[h.Name]
		}
		return out
	}, nil
}

func newBM25(docs []bm25.Doc) searcher {
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

// indexMetadata indexes the name, description and tags.
func indexMetadata(c *corpus) (searcher, error) {
	return newBM25(mapDocs(c.docs, func(d *bm25.Doc) { d.Body = "" })), nil
}

// indexAll indexes the metadata and the start of the body as one text.
func indexAll(c *corpus) (searcher, error) {
	return newBM25(mapDocs(c.docs, func(d *bm25.Doc) {
		head := []rune(d.Body)
		head = head[:min(len(head), bm25.BodyHead)]
		d.Tags, d.Body = append(slices.Clip(d.Tags), string(head)), ""
	})), nil
}

func mapDocs(docs []bm25.Doc, change func(*bm25.Doc)) []bm25.Doc {
	docs = slices.Clone(docs)
	for i := range docs {
		change(&docs[i])
	}
	return docs
}

// fuseByRank fuses the results of indexMetadata and indexAll.
func fuseByRank(c *corpus) (searcher, error) {
	m, err := indexMetadata(c)
	if err != nil {
		return nil, err
	}
	f, err := indexAll(c)
	return func(query string, limit int) []int {
		return fuseByReciprocalRank([][]int{m(query, max(limit, 100)), f(query, max(limit, 100))}, limit)
	}, err
}

// rankByWordCount ranks skills by the number of query words in the name and
// description.
func rankByWordCount(c *corpus) (searcher, error) {
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
		return topScores(score, limit)
	}, nil
}

// fuseByReciprocalRank ranks documents by the sum of 1/(60 + rank) over the lists.
func fuseByReciprocalRank(lists [][]int, limit int) []int {
	score := map[int]float64{}
	for _, list := range lists {
		for i, doc := range list {
			score[doc] += 1 / float64(60+i+1)
		}
	}
	return topScores(score, limit)
}

// topScores returns the documents with the highest scores.
func topScores[S cmp.Ordered](score map[int]S, limit int) []int {
	var docs []int
	for doc := range score {
		docs = append(docs, doc)
	}
	slices.SortFunc(docs, func(a, b int) int {
		return cmp.Or(cmp.Compare(score[b], score[a]), cmp.Compare(a, b))
	})
	return docs[:min(len(docs), limit)]
}
