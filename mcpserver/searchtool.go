package mcpserver

import (
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

// maxQueries is the maximum number of queries of a search.
const maxQueries = 8

// weakMark precedes the description of a skill that probably does not fit.
const weakMark = "[weak match] "

type searchHit struct {
	Name        untrusted.Text `json:"name"`
	Origin      untrusted.Text `json:"origin"`
	Description untrusted.Text `json:"description"`
	Score       float64        `json:"score"`
	Weak        bool           `json:"weak,omitempty"`
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
	if len(queries) > maxQueries {
		return errorResult(fmt.Sprintf("too many queries (%d, limit %d)", len(queries), maxQueries)), nil, nil
	}
	hits, err := s.rt.Catalog().SearchAny(ctx, queries, catalog.SearchOptions{Limit: skip + limit + 1, ForModel: true})
	if err != nil {
		return nil, nil, err
	}
	out := &searchResult{Hits: []searchHit{}}
	hits = hits[min(skip, len(hits)):]
	if len(hits) > limit {
		hits, out.Next = hits[:limit], encodeCursor(skip+limit)
	}
	var b strings.Builder
	fits := false
	for _, h := range hits {
		hit := searchHit{untrusted.New(h.Name), untrusted.New(h.Origin), untrusted.New(h.Description), math.Round(1000*h.Score) / 1000, h.Weak()}
		out.Hits = append(out.Hits, hit)
		mark := ""
		if h.Weak() {
			mark = weakMark
		} else {
			fits = true
		}
		fmt.Fprintf(&b, "- %s: %s%s\n", hit.Name.ForModel(), mark, untrusted.MarkOrigin(h.Scope.String(), hit.Description.ForModel()))
	}
	if len(hits) > 0 && !fits {
		b.WriteString("No skill clearly fits. Load one only if its description fits the task.\n")
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
