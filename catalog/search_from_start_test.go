package catalog

import (
	"sort"
	"testing"
)

func TestSearchFromStart(t *testing.T) {
	for n := range 70 {
		for want := range n + 1 {
			most := 0
			f := func(i int) bool {
				if i < 0 || i >= n {
					t.Fatalf("called with %d of %d", i, n)
				}
				most = max(most, i)
				return i >= want
			}
			if got := searchFromStart(n, f); got != sort.Search(n, func(i int) bool { return i >= want }) {
				t.Errorf("%d of %d: got %d", want, n, got)
			}
			if most > 2*want {
				t.Errorf("%d of %d: called with %d", want, n, most)
			}
		}
	}
}
