package skillcheck_test

import (
	"testing"

	"github.com/loadout-dev/loadout/internal/skillcheck"
)

func TestLookalikesAreReported(t *testing.T) {
	results := []skillcheck.Validation{{Name: "рdf"}, {Name: "pdf"}, {Name: "csv-аnalysis"}, {Name: "чтение"}, {Name: ""}, {Name: "csv-analysis"}}
	skillcheck.AddLookalikes(results[:5], []string{"csv-analysis"})
	for _, v := range results {
		want := v.Name == "рdf" || v.Name == "csv-аnalysis"
		if got := len(v.Diagnostics) == 1 && v.Diagnostics[0].Code == "lookalike-name"; got != want || len(v.Diagnostics) > 1 {
			t.Errorf("%+q: %v, want reported %v", v.Name, v.Diagnostics, want)
		}
	}
}
