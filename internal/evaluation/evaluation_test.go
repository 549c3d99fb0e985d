package evaluation

import (
	"math"
	"testing"

	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/evalfile"
)

func TestCasesAreJudgedByRank(t *testing.T) {
	entries := map[string]*catalog.Entry{}
	for _, name := range []string{"pdf", "ocr", "csv", "doc"} {
		entries[name] = &catalog.Entry{Name: name, Origin: "test", Dir: name}
	}
	for name, tt := range map[string]struct {
		trigger bool
		accept  []string
		hits    []string
		passed  bool
		rank    int
	}{
		"first":                         {true, nil, []string{"pdf", "ocr"}, true, 1},
		"third":                         {true, nil, []string{"ocr", "csv", "pdf"}, true, 3},
		"fourth":                        {true, nil, []string{"ocr", "csv", "doc", "pdf"}, false, 4},
		"not found":                     {true, nil, []string{"ocr"}, false, 0},
		"an accepted skill":             {true, []string{"ocr"}, []string{"ocr", "pdf"}, true, 1},
		"should not be loaded, first":   {false, nil, []string{"pdf"}, false, 1},
		"should not be loaded, second":  {false, nil, []string{"ocr", "pdf"}, true, 2},
		"should not be loaded, not hit": {false, nil, nil, true, 0},
		"another should be loaded":      {false, []string{"ocr"}, []string{"pdf", "ocr"}, false, 1},
	} {
		var hits []catalog.Hit
		for _, h := range tt.hits {
			hits = append(hits, catalog.Hit{Entry: entries[h]})
		}
		got := judge(evalfile.Case{Trigger: tt.trigger, Accept: tt.accept}, entries["pdf"], hits)
		if got.Passed != tt.passed || got.Rank != tt.rank || (got.Failure() == "") != tt.passed {
			t.Errorf("%s: %+v, %q", name, got, got.Failure())
		}
	}
}

// The intervals are those of published tables.
func TestWilson(t *testing.T) {
	for _, tt := range []struct {
		passed, n int
		low, high float64
	}{{0, 10, 0, 0.278}, {5, 10, 0.237, 0.763}, {10, 10, 0.722, 1}, {95, 100, 0.888, 0.978}, {1, 1, 0.207, 1}} {
		low, high := wilson(tt.passed, tt.n)
		if math.Abs(low-tt.low) > 0.001 || math.Abs(high-tt.high) > 0.001 {
			t.Errorf("%d of %d: %.3f to %.3f, want %.3f to %.3f", tt.passed, tt.n, low, high, tt.low, tt.high)
		}
	}
}

func TestClauses(t *testing.T) {
	for description, want := range map[string][]string{
		"Fill in PDF forms. Use when the user has a form; not OCR.": {"Fill in PDF forms", "the user has a form"},
		"Short. x": nil,
		"填写表格。":    {"填写表格"},
	} {
		got := clauses(description)
		if len(got) != len(want) {
			t.Errorf("%q: %q, want %q", description, got, want)
			continue
		}
		for i := range got {
			if got[i] != want[i] {
				t.Errorf("%q: %q, want %q", description, got, want)
			}
		}
	}
}
