package mcpserver

import (
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/printable"
	"github.com/loadout-dev/loadout/internal/untrusted"
)

type searchArgs struct {
	Query   string   `json:"query,omitempty" jsonschema:"a few words on the task"`
	Queries []string `json:"queries,omitempty" jsonschema:"other phrasings"`
	Limit   int      `json:"limit,omitempty" jsonschema:"default 10, at most 50"`
	Cursor  string   `json:"cursor,omitempty" jsonschema:"next of the page before"`
}

// phrasings returns the distinct nonempty queries.
func (a *searchArgs) phrasings() []string {
	var all []string
	for _, q := range append([]string{a.Query}, a.Queries...) {
		if q = printable.OneLine(q); q != "" && !slices.Contains(all, q) {
			all = append(all, q)
		}
	}
	return all
}

// maxQueries is the maximum number of queries of a search. fusedDepth is the
// number of hits of each query that count.
const (
	maxQueries = 8
	fusedDepth = 200
)

// searchFused searches with each query and merges the hits by their ranks. A skill
// that is the best hit for every query has the score 1. The order of the hits does
// not depend on limit.
func (s *Server) searchFused(ctx context.Context, queries []string, limit int) ([]catalog.Hit, error) {
	const smooth = 60 // the usual constant k of reciprocal rank fusion
	var all []catalog.Hit
	at := map[*catalog.Entry]int{}
	for _, q := range queries {
		hits, err := s.rt.Catalog().Search(ctx, q, catalog.SearchOptions{Limit: fusedDepth, ForModel: true})
		if err != nil {
			return nil, err
		}
		for rank, h := range hits {
			i, known := at[h.Entry]
			if !known {
				i = len(all)
				at[h.Entry] = i
				all = append(all, catalog.Hit{Entry: h.Entry})
			}
			all[i].Score += float64(smooth) / float64((smooth+rank)*len(queries))
		}
	}
	slices.SortStableFunc(all, func(a, b catalog.Hit) int { return cmp.Compare(b.Score, a.Score) })
	return all[:min(len(all), limit)], nil
}

type searchHit struct {
	Name        untrusted.Text `json:"name"`
	Origin      untrusted.Text `json:"origin"`
	Description untrusted.Text `json:"description"`
	Score       float64        `json:"score"`
}

type searchResult struct {
	Hits []searchHit `json:"hits"`
	Next string      `json:"next,omitempty"`
	notice
}

func (s *Server) searchSkills(ctx context.Context, in searchArgs) (*mcp.CallToolResult, *searchResult, error) {
	if s.view().snap.Disabled {
		return errorResult(skillsDisabled), nil, nil
	}
	limit := in.Limit
	if limit <= 0 {
		limit = 10
	}
	limit = min(limit, 50)
	skip, err := decodeCursor(in.Cursor)
	if err != nil {
		return errorResult(err.Error()), nil, nil
	}
	queries := in.phrasings()
	var hits []catalog.Hit
	switch {
	case len(queries) > maxQueries:
		return errorResult(fmt.Sprintf("too many queries (%d, limit %d)", len(queries), maxQueries)), nil, nil
	case len(queries) > 1:
		hits, err = s.searchFused(ctx, queries, skip+limit+1)
	default:
		hits, err = s.rt.Catalog().Search(ctx, strings.Join(queries, ""), catalog.SearchOptions{Limit: skip + limit + 1, ForModel: true})
	}
	if err != nil {
		return nil, nil, err
	}
	out := &searchResult{Hits: []searchHit{}}
	hits = hits[min(skip, len(hits)):]
	if len(hits) > limit {
		hits, out.Next = hits[:limit], encodeCursor(skip+limit)
	}
	var b strings.Builder
	for _, h := range hits {
		hit := searchHit{untrusted.New(h.Name), untrusted.New(h.Origin), untrusted.New(h.Description), math.Round(1000*h.Score) / 1000}
		out.Hits = append(out.Hits, hit)
		fmt.Fprintf(&b, "- %s: %s\n", hit.Name.ForModel(), untrusted.MarkOrigin(h.Scope.String(), hit.Description.ForModel()))
	}
	switch {
	case len(hits) > 0:
	case skip > 0:
		b.WriteString("There are no more.\n")
	case len(queries) == 0:
		b.WriteString("There are no skills.\n")
	default:
		b.WriteString("No skill fits. Try other words, or an empty query for the whole list.\n")
	}
	if out.Next != "" {
		fmt.Fprintf(&b, "There are more: search again with cursor %q.\n", out.Next)
	}
	return textResult(b.String()), out, nil
}

func encodeCursor(n int) string { return base64.RawURLEncoding.EncodeToString([]byte(strconv.Itoa(n))) }

func decodeCursor(c string) (int, error) {
	if c == "" {
		return 0, nil
	}
	b, err := base64.RawURLEncoding.DecodeString(c)
	if err == nil {
		if n, err := strconv.Atoi(string(b)); err == nil && n >= 0 && n <= 1_000_000 {
			return n, nil
		}
	}
	return 0, fmt.Errorf("unknown cursor %q; start again without a cursor", c)
}
