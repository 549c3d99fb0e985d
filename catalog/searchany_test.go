package catalog_test

import (
	"context"
	"slices"
	"testing"

	"github.com/loadout-dev/loadout/catalog"
)

// A skill that contains little of what a query says is a weak hit, whatever the
// number of skills.
func TestWeakHitsAreMarked(t *testing.T) {
	c := open(t, dir(library(t)))
	for query, want := range map[string]bool{
		"fill in pdf forms":                   false,
		"pdf":                                 false,
		"excel":                               false, // a tag
		"pivot columns of tables":             false, // partly in the instructions
		"pivot columns":                       true,  // only in the instructions
		"表格数据":                                false,
		"read my palm and tell the future":    true,
		"merge lanes on the motorway at dusk": true,
		"预订今晚的餐厅并分析菜单":                        true,
	} {
		hits, err := c.Search(t.Context(), query, catalog.SearchOptions{Limit: 1})
		must(t, err)
		if len(hits) != 1 || hits[0].Weak() != want {
			t.Errorf("%q: %+v; want a hit whose Weak is %v", query, hits, want)
		}
	}
}

// Whether a skill fits is decided by all phrasings of a task.
func TestHitsOfSeveralPhrasings(t *testing.T) {
	c := open(t, dir(library(t)))
	got := map[string]bool{}
	hits, err := c.SearchAny(t.Context(), []string{"read my palm and the cards", "merge pdf"}, catalog.SearchOptions{})
	must(t, err)
	for _, h := range hits {
		got[h.Name] = h.Weak()
	}
	if weak, ok := got["pdf"]; !ok || weak {
		t.Errorf("pdf: found %v, weak %v", ok, weak)
	}
	if weak, ok := got["csv"]; !ok || !weak {
		t.Errorf("csv: found %v, weak %v", ok, weak)
	}
	for n := range hits {
		first, err := c.SearchAny(t.Context(), []string{"read my palm and the cards", "merge pdf"}, catalog.SearchOptions{Limit: n + 1})
		must(t, err)
		if !slices.Equal(first, hits[:n+1]) {
			t.Errorf("the first %d hits are %v, want %v", n+1, first, hits[:n+1])
		}
	}
}

// In a large catalog, the ranking of the program that embeds it says which hits
// are weak.
func TestRankedHitsMayBeWeak(t *testing.T) {
	m := source("m", catalog.User)
	for i := range 201 {
		m.add("skill" + string(rune('a'+i/26)) + string(rune('a'+i%26)))
	}
	c, err := catalog.New([]catalog.Source{m}, &catalog.Options{Search: func(context.Context, string, int) ([]catalog.Match, error) {
		return []catalog.Match{{Name: "skillaa", Fit: 1.5}, {Name: "unknown"}, {Name: "skillab", Fit: 0.2}}, nil
	}})
	must(t, err)
	must(t, c.Reload(t.Context()))
	hits, err := c.Search(t.Context(), "anything", catalog.SearchOptions{})
	must(t, err)
	if len(hits) != 2 || hits[0].Weak() || !hits[1].Weak() {
		t.Errorf("got %+v", hits)
	}
}
