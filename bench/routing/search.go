//go:build linux

package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/bench/internal/measure"
	"github.com/loadout-dev/loadout/catalog"
)

// found is what a search came to for a question that a skill is for, or not.
type found struct {
	question
	rank  int     // of the right skill, from 1; 0 where it is not among the hits
	first string  // the best hit, "" for none
	score float64 // of the first
}

// depth is how many hits are looked at.
const depth = 10

// bySearch asks the search of ever larger sets. Verbose, it prints what led elsewhere in
// the largest.
func bySearch(ctx context.Context, questions []question, dirs []string, verbose bool) error {
	fmt.Printf("\nSearch, %d questions for which there is a skill:\n\n", len(questions)-none(questions))
	rows := [][]string{{"skills", "questions", "hit@1", "hit@3", "MRR", "nothing found"}}
	var alone, last []found
	for n := range len(dirs) + 1 {
		rt, err := open(ctx, dirs[:n])
		if err != nil {
			return err
		}
		name := "the bundled"
		if n > 0 {
			name = "and those of " + dirs[n-1]
		}
		all, err := askSearch(ctx, rt, questions)
		name = fmt.Sprintf("%s, %d", name, len(rt.Catalog().Snapshot().Offered()))
		rt.Close()
		if err != nil {
			return err
		}
		if last = all; n == 0 {
			alone = all
		}
		rows = append(rows, quality(all).row(name, "all"))
		byLanguage := map[string][]found{}
		for _, f := range all {
			byLanguage[f.Language] = append(byLanguage[f.Language], f)
		}
		for _, l := range slices.Sorted(maps.Keys(byLanguage)) {
			if q := quality(byLanguage[l]); q.asked > 0 {
				rows = append(rows, q.row("", l))
			}
		}
	}
	measure.Markdown(os.Stdout, rows)
	fmt.Printf("\nConfidence, the bundled skills alone:\n\n")
	measure.Markdown(os.Stdout, confidence(alone))
	if verbose {
		fmt.Println()
		measure.Markdown(os.Stdout, elsewhere(last))
	}
	return nil
}

func none(all []question) int {
	n := 0
	for _, q := range all {
		if q.Want == "" {
			n++
		}
	}
	return n
}

func askSearch(ctx context.Context, rt *loadout.Runtime, questions []question) ([]found, error) {
	var out []found
	for _, q := range questions {
		hits, err := rt.Catalog().Search(ctx, q.Ask, catalog.SearchOptions{Limit: depth, ForModel: true})
		if err != nil {
			return nil, err
		}
		f := found{question: q, rank: 1 + slices.IndexFunc(hits, func(h catalog.Hit) bool { return h.Name == q.Want })}
		if len(hits) > 0 {
			f.first, f.score = hits[0].Name, hits[0].Score
		}
		out = append(out, f)
	}
	return out, nil
}

// figures are those of questions that a skill is for.
type figures struct {
	asked             int
	hit1, hit3, empty int
	reciprocal        float64 // sum
}

func quality(all []found) figures {
	var q figures
	for _, f := range all {
		if f.Want == "" {
			continue
		}
		q.asked++
		if f.rank > 0 {
			q.reciprocal += 1 / float64(f.rank)
		}
		if f.rank == 1 {
			q.hit1++
		}
		if f.rank > 0 && f.rank <= 3 {
			q.hit3++
		}
		if f.first == "" {
			q.empty++
		}
	}
	return q
}

func (q figures) row(set, language string) []string {
	n := float64(q.asked)
	return []string{set, fmt.Sprintf("%s, %d", language, q.asked), share(q.hit1, q.asked), share(q.hit3, q.asked), fmt.Sprintf("%.2f", q.reciprocal/n), share(q.empty, q.asked)}
}

func share(n, of int) string {
	if of == 0 {
		return ""
	}
	return fmt.Sprintf("%.2f", float64(n)/float64(of))
}

// confidence says how far scores tell questions that a skill is for from those that
// none is: the shares of both with something found, and with a best hit that has at
// least a score.
func confidence(all []found) [][]string {
	rows := [][]string{{"the best hit", "of questions with a skill", "right", "of questions without one"}}
	for _, least := range []float64{0, 0.5, 1, 2, 3} {
		var fits, right, not, with, without int
		for _, f := range all {
			sure := f.first != "" && f.score >= least
			switch {
			case f.Want == "":
				without++
				if sure {
					not++
				}
			default:
				with++
				if sure {
					fits++
				}
				if sure && f.rank == 1 {
					right++
				}
			}
		}
		name := fmt.Sprintf("has a score of %.1f", least)
		if least == 0 {
			name = "is there"
		}
		rows = append(rows, []string{name, share(fits, with), share(right, with), share(not, without)})
	}
	return rows
}

// elsewhere are the questions that did not lead to their skill, or to one though none
// is for them.
func elsewhere(all []found) [][]string {
	rows := [][]string{{"question", "skill", "rank", "first", "score"}}
	for _, f := range all {
		if f.rank != 1 && (f.Want != "" || f.first != "") {
			rows = append(rows, []string{f.Ask, f.Want, fmt.Sprint(f.rank), f.first, fmt.Sprintf("%.2f", f.score)})
		}
	}
	return rows
}
