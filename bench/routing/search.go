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

// searchResult describes where the search ranked the right skill for a question.
type searchResult struct {
	question
	rank  int     // rank of the right skill, from 1; 0 if it was not found
	first string  // best hit; "" if none
	score float64 // score of the best hit
}

// depth is the maximum number of hits of a search.
const depth = 10

// runSearch searches for each question, adding the skills of one directory at a time. If
// verbose is set, it prints the wrong results with all skills.
func runSearch(ctx context.Context, questions []question, dirs []string, verbose bool) error {
	fmt.Printf("\nSearch, %d questions with a skill:\n\n", len(questions)-countWithoutSkill(questions))
	rows := [][]string{{"skills", "questions", "hit@1", "hit@3", "MRR", "nothing found"}}
	var alone, last []searchResult
	for n := range len(dirs) + 1 {
		rt, err := openRuntime(ctx, dirs[:n])
		if err != nil {
			return err
		}
		name := "bundled"
		if n > 0 {
			name = "plus " + dirs[n-1]
		}
		all, err := askSearch(ctx, rt, questions)
		name = fmt.Sprintf("%s, %d", name, len(rt.Catalog().Snapshot().ForModel()))
		rt.Close()
		if err != nil {
			return err
		}
		if last = all; n == 0 {
			alone = all
		}
		rows = append(rows, measureQuality(all).row(name, "all"))
		byLanguage := map[string][]searchResult{}
		for _, f := range all {
			byLanguage[f.Language] = append(byLanguage[f.Language], f)
		}
		for _, l := range slices.Sorted(maps.Keys(byLanguage)) {
			if q := measureQuality(byLanguage[l]); q.asked > 0 {
				rows = append(rows, q.row("", l))
			}
		}
	}
	measure.WriteMarkdown(os.Stdout, rows)
	fmt.Printf("\nBest hits, all skills:\n\n")
	measure.WriteMarkdown(os.Stdout, bestHitRows(last))
	fmt.Printf("\nConfidence, the bundled skills alone:\n\n")
	measure.WriteMarkdown(os.Stdout, confidenceRows(alone))
	if verbose {
		fmt.Println()
		measure.WriteMarkdown(os.Stdout, wrongSearchRows(last))
	}
	return nil
}

// countWithoutSkill returns the number of questions that need no skill.
func countWithoutSkill(all []question) int {
	n := 0
	for _, q := range all {
		if q.Want == "" {
			n++
		}
	}
	return n
}

func askSearch(ctx context.Context, rt *loadout.Runtime, questions []question) ([]searchResult, error) {
	var out []searchResult
	for _, q := range questions {
		hits, err := rt.Catalog().Search(ctx, q.Ask, catalog.SearchOptions{Limit: depth, ForModel: true})
		if err != nil {
			return nil, err
		}
		f := searchResult{question: q, rank: 1 + slices.IndexFunc(hits, func(h catalog.Hit) bool { return h.Name == q.Want })}
		if len(hits) > 0 {
			f.first, f.score = hits[0].Name, hits[0].Score
		}
		out = append(out, f)
	}
	return out, nil
}

// figures summarizes the results for the questions with a skill.
type figures struct {
	asked             int
	hit1, hit3, empty int
	reciprocal        float64 // sum of reciprocal ranks
}

// measureQuality computes the figures from the results for questions with a skill.
func measureQuality(all []searchResult) figures {
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
	return []string{set, fmt.Sprintf("%s, %d", language, q.asked), formatShare(q.hit1, q.asked), formatShare(q.hit3, q.asked), fmt.Sprintf("%.2f", q.reciprocal/n), formatShare(q.empty, q.asked)}
}

func formatShare(n, of int) string {
	if of == 0 {
		return ""
	}
	return fmt.Sprintf("%.2f", float64(n)/float64(of))
}

// bestHitRows shows how often the best hit is the right skill. Questions that need no skill are
// included. If the server of each best hit were started, this would be the share of started
// servers that are used.
func bestHitRows(all []searchResult) [][]string {
	rows := [][]string{{"questions", "with a hit", "best hit is right", "share"}}
	byLanguage := map[string][2]int{} // hits, right ones
	asked := map[string]int{}
	for _, f := range all {
		for _, l := range []string{"all", f.Language} {
			asked[l]++
			n := byLanguage[l]
			if f.first != "" {
				n[0]++
			}
			if f.rank == 1 {
				n[1]++
			}
			byLanguage[l] = n
		}
	}
	for _, l := range slices.Sorted(maps.Keys(byLanguage)) {
		n := byLanguage[l]
		rows = append(rows, []string{fmt.Sprintf("%s, %d", l, asked[l]), fmt.Sprint(n[0]), fmt.Sprint(n[1]), formatShare(n[1], n[0])})
	}
	return rows
}

// confidenceRows shows how well scores separate questions with a skill from those without. For
// both, it shows the proportion of questions with any hit, and of those whose best hit has at
// least a given score.
func confidenceRows(all []searchResult) [][]string {
	rows := [][]string{{"best hit", "questions with a skill", "right skill", "questions without a skill"}}
	for _, minScore := range []float64{0, 0.5, 1, 2, 3} {
		var fits, right, not, with, without int
		for _, f := range all {
			sure := f.first != "" && f.score >= minScore
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
		name := fmt.Sprintf("score of at least %.1f", minScore)
		if minScore == 0 {
			name = "any score"
		}
		rows = append(rows, []string{name, formatShare(fits, with), formatShare(right, with), formatShare(not, without)})
	}
	return rows
}

// wrongSearchRows returns a table of the questions whose first hit is wrong.
func wrongSearchRows(all []searchResult) [][]string {
	rows := [][]string{{"question", "skill", "rank", "first", "score"}}
	for _, f := range all {
		if f.rank != 1 && (f.Want != "" || f.first != "") {
			rows = append(rows, []string{f.Ask, f.Want, fmt.Sprint(f.rank), f.first, fmt.Sprintf("%.2f", f.score)})
		}
	}
	return rows
}
