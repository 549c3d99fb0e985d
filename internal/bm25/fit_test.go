package bm25_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/bm25"
)

// requests are requests that a skill of a set fulfills, and requests that none
// fulfills, with three phrasings each.
type requests struct {
	Skills       []bm25.Doc
	Answerable   []request
	Unanswerable []request
}

type request struct {
	Request   string
	Phrasings []string
	Skill     string
}

// randomSkills returns skills that contain each word of the table of frequencies as
// often as published skills do.
func randomSkills(t *testing.T, n int) []bm25.Doc {
	data, err := os.ReadFile("frequencies.txt")
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(uint64(n), 0))
	docs := make([]bm25.Doc, n)
	for i := range docs {
		docs[i].Name = fmt.Sprint("skill-", i)
	}
	for line := range strings.Lines(string(data)) {
		var word string
		var perThousand int
		if _, err := fmt.Sscanf(line, "%s %d\n", &word, &perThousand); err != nil {
			continue // the comment
		}
		for i := range docs {
			switch v := r.IntN(8000); {
			case v < perThousand:
				docs[i].Description += word + " "
			case v < 8*perThousand:
				docs[i].Body += word + " "
			}
		}
	}
	return docs
}

// Whether a hit is weak does not depend on the number of skills: in sets of 17 to
// 10,000, at most one of 30 requests that a skill fulfills has a weak best hit,
// and at least 24 of 30 that none fulfills.
func TestWeakHits(t *testing.T) {
	data, err := os.ReadFile("testdata/requests.json")
	if err != nil {
		t.Fatal(err)
	}
	var asked requests
	if err := json.Unmarshal(data, &asked); err != nil {
		t.Fatal(err)
	}
	if len(asked.Answerable) < 30 || len(asked.Unanswerable) < 30 {
		t.Fatalf("%d and %d requests, want 30 or more each", len(asked.Answerable), len(asked.Unanswerable))
	}
	for _, size := range []int{17, 1_500, 10_000} {
		docs := asked.Skills
		if size > len(docs) {
			docs = slices.Concat(docs, randomSkills(t, size-len(docs)))
		}
		whole := bm25.New(slices.Values(docs))
		weak := func(q request) bool {
			x := whole
			if size < len(docs) { // the skill for the request, and others
				some := []bm25.Doc{}
				for i, d := range docs {
					if d.Name == q.Skill || (i+len(q.Request))%2 == 0 && len(some) < size {
						some = append(some, d)
					}
				}
				x = bm25.New(slices.Values(some))
			}
			hits := x.Search(q.Request, 1)
			return len(hits) == 0 || bm25.IsWeak(hits[0].Fit)
		}
		for _, c := range []struct {
			name  string
			asked []request
			ok    func(weak, of int) bool
		}{
			{"answerable", asked.Answerable, func(weak, of int) bool { return 30*weak <= of }},
			{"unanswerable", asked.Unanswerable, func(weak, of int) bool { return 30*weak >= 24*of }},
		} {
			n := 0
			for _, q := range c.asked {
				if weak(q) {
					n++
				}
			}
			t.Logf("%d skills: %d of %d %s requests are weak", size, n, len(c.asked), c.name)
			if !c.ok(n, len(c.asked)) {
				t.Errorf("%d skills: %d of %d %s requests have a weak best hit", size, n, len(c.asked), c.name)
			}
		}
	}
}

// A word counts by how much it says. If only a body contains it, it counts less; if
// no skill contains it, it is missing everywhere.
func TestFit(t *testing.T) {
	x := bm25.New(slices.Values(shelf))
	for _, tt := range []struct {
		query string
		weak  bool
	}{
		{"pdf", false},
		{"create", false}, // all of a query, although it says little
		{"text to speech", false},
		{"texttospeech", false},
		{"text-to-spe", false}, // the start of a name
		{"kubernetis", false},  // corrected
		{"please use kubernetes for me", false},
		{"kubernetes clusters rollout", false},
		{"kubernetes zebra giraffe", true},
		{"kubernetes kubernetes kubernetes zebra giraffe", true}, // once
		{"workbook", true},                                       // only in a body
		{"分析销售数据", false},
		{"请帮我分析一下销售数据", false},
		{"分析天上的星星和月亮", true},
	} {
		hits := x.Search(tt.query, 1)
		if len(hits) != 1 || bm25.IsWeak(hits[0].Fit) != tt.weak {
			t.Errorf("%q: %+v; want a hit, weak %v", tt.query, hits, tt.weak)
		}
	}
}
