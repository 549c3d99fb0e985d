package catalog

import (
	"cmp"
	"context"
	"slices"
)

// fusedDepth is the number of hits of each query that [Catalog.SearchAny] counts.
const fusedDepth = 200

// SearchAny searches with several phrasings of a task and merges the hits by
// their ranks. A skill that is the best hit for every phrasing has the score 1. Its
// fit is halfway between the mean over the phrasings and the best one, because with
// many phrasings some skill fits one of them by chance. The order of the hits does not
// depend on the limit. With one phrasing or none, SearchAny is [Catalog.Search].
func (c *Catalog) SearchAny(ctx context.Context, queries []string, o SearchOptions) ([]Hit, error) {
	const smooth = 60 // the usual constant k of reciprocal rank fusion
	switch len(queries) {
	case 0:
		return c.Search(ctx, "", o)
	case 1:
		return c.Search(ctx, queries[0], o)
	}
	limit := o.Limit
	if limit <= 0 {
		limit = 10
	}
	o.Limit = fusedDepth
	var all []Hit
	var best []float64 // highest fit of each hit
	at := map[*Entry]int{}
	for _, q := range queries {
		hits, err := c.Search(ctx, q, o)
		if err != nil {
			return nil, err
		}
		for rank, h := range hits {
			i, known := at[h.Entry]
			if !known {
				i = len(all)
				at[h.Entry] = i
				all, best = append(all, Hit{Entry: h.Entry}), append(best, 0)
			}
			all[i].Score += float64(smooth) / float64((smooth+rank)*len(queries))
			all[i].Fit += h.Fit / float64(2*len(queries))
			best[i] = max(best[i], h.Fit)
		}
	}
	for i := range all {
		all[i].Fit += best[i] / 2
	}
	slices.SortStableFunc(all, func(a, b Hit) int { return cmp.Compare(b.Score, a.Score) })
	return all[:min(len(all), limit)], nil
}
