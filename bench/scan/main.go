//go:build linux

// Command scan measures the scan of skills: how long it takes beside reading the
// same files, how many real skills it finds something serious in, and how many
// attacks of a labelled set it finds at that severity.
//
//	go run ./bench/scan -speed DIR -real DIR… -labelled SET… -growth
//
// A labelled set is the directory benchmarks of github.com/qualixar/skillfortify, or
// bench/scan/testdata/ours.txtar: with a manifest.json that says of each folder
// whether it is malicious. -list names every real skill with a finding, and every
// attack without one. -growth compares the time for a hostile text with that for
// four times as much.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/loadout-dev/loadout/bench/internal/measure"
	"github.com/loadout-dev/loadout/scan"
)

func main() {
	speed := flag.String("speed", "", "`directory` of skills to time")
	rounds := flag.Int("rounds", 3, "rounds of timing")
	real := measure.Dirs("real", "`directory` with skills that are no attack (repeatable)")
	labelled := measure.Dirs("labelled", "`set` with a manifest.json that labels skills (repeatable)")
	growing := flag.Bool("growth", false, "compare hostile texts with longer ones")
	list := flag.Bool("list", false, "name what was found, and what was not")
	measure.Main("scan", true, func() error {
		ctx := context.Background()
		fmt.Println(measure.Where())
		if *speed != "" {
			if err := timing(ctx, *speed, *rounds); err != nil {
				return err
			}
		}
		if len(*real) > 0 {
			if err := realSkills(ctx, *real, *list); err != nil {
				return err
			}
		}
		for _, set := range *labelled {
			if err := recall(ctx, set, *list); err != nil {
				return err
			}
		}
		if *growing {
			return growth(ctx)
		}
		return nil
	})
}

// timing compares a scan of every skill with reading its files.
func timing(ctx context.Context, dir string, rounds int) error {
	skills, err := skillsIn(dir)
	if err != nil {
		return err
	}
	var t measure.Table
	limit := t.Row(measure.Row{Name: "limit: read every file", Unit: "ms"})
	scanned := t.Row(measure.Row{Name: "scan", Unit: "ms", Limit: limit, Goal: 2})
	found := 0
	for range rounds {
		took, err := measure.OfClean(func() error { return each(skills, readFiles) })
		if err != nil {
			return err
		}
		limit.AddTime(took.CPU / time.Duration(len(skills)))
		found = 0
		took, err = measure.OfClean(func() error {
			return each(skills, func(dir string) error {
				r, err := scanDir(ctx, dir)
				if err == nil {
					found += len(r.Findings)
				}
				return err
			})
		})
		if err != nil {
			return err
		}
		scanned.AddTime(took.CPU / time.Duration(len(skills)))
	}
	fmt.Printf("\n%d skills, %d findings; CPU time a skill, %d rounds:\n\n", len(skills), found, rounds)
	t.Print(os.Stdout)
	return nil
}

// realSkills counts skills by the worst that is found in them.
func realSkills(ctx context.Context, dirs []string, list bool) error {
	fmt.Println("\n| skills | high | medium | low or less | none |\n| --- | --- | --- | --- | --- |")
	total, high := 0, 0
	for _, dir := range dirs {
		skills, err := skillsIn(dir)
		if err != nil {
			return err
		}
		var worst [4]int
		none := 0
		for _, d := range skills {
			r, err := scanDir(ctx, d)
			if err != nil {
				return err
			}
			w, any := r.Worst()
			if !any {
				none++
				continue
			}
			worst[w]++
			if list {
				show(d, r, scan.Medium)
			}
		}
		total, high = total+len(skills), high+worst[scan.High]
		fmt.Printf("| %s: %d | %d | %d | %d | %d |\n", dir, len(skills), worst[scan.High], worst[scan.Medium], worst[scan.Low]+worst[scan.Info], none)
	}
	fmt.Printf("\nhigh in %d of %d skills, %.1f %%\n", high, total, 100*float64(high)/float64(max(total, 1)))
	return nil
}

func show(dir string, r *scan.Report, from scan.Severity) {
	for _, f := range r.Findings {
		if f.Severity >= from {
			fmt.Printf("  %s/%s:%d: %s %s: %s\n", dir, f.File, f.Line, f.Severity, f.Rule, f.Excerpt)
		}
	}
}
