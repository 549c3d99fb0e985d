//go:build linux

// Command scan measures the skill scanner: its time compared with reading the same files, the
// proportion of real skills with high findings, and the proportion of attacks in a labeled set
// with high findings.
//
//	go run ./scan -speed DIR -real DIR… -labelled SET… -growth
//
// A labeled set is the directory benchmarks of
// github.com/qualixar/skillfortify, or bench/scan/testdata/ours.txtar. Its
// manifest.json lists the malicious directories. -list prints every real skill
// with a finding and every attack without one. -growth compares the scan times
// of hostile inputs at two sizes.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/loadout-dev/loadout/bench/internal/measure"
	"github.com/loadout-dev/loadout/internal/scan"
)

func main() {
	speed := flag.String("speed", "", "`directory` of skills to time")
	rounds := flag.Int("rounds", 3, "number of timing rounds")
	real := measure.ListFlag("real", "`directory` with harmless skills (repeatable)")
	labelled := measure.ListFlag("labelled", "`set` with a manifest.json that labels skills (repeatable)")
	growing := flag.Bool("growth", false, "measure how the time grows with hostile texts")
	list := flag.Bool("list", false, "print findings and missed attacks")
	measure.Main("scan", true, func() error {
		ctx := context.Background()
		fmt.Println(measure.Environment())
		if *speed != "" {
			if err := measureTime(ctx, *speed, *rounds); err != nil {
				return err
			}
		}
		if len(*real) > 0 {
			if err := countRealSkills(ctx, *real, *list); err != nil {
				return err
			}
		}
		for _, set := range *labelled {
			if err := measureRecall(ctx, set, *list); err != nil {
				return err
			}
		}
		if *growing {
			return printGrowth(ctx)
		}
		return nil
	})
}

// measureTime compares the time for scanning every skill with that for reading its files.
func measureTime(ctx context.Context, dir string, rounds int) error {
	skills, err := findSkills(dir)
	if err != nil {
		return err
	}
	var t measure.Table
	baseline := t.Row(measure.Row{Name: "baseline: read every file", Unit: "ms"})
	scanned := t.Row(measure.Row{Name: "scan", Unit: "ms", Baseline: baseline})
	found := 0
	for range rounds {
		took, err := measure.RunClean(func() error { return forEach(skills, readFiles) })
		if err != nil {
			return err
		}
		baseline.AddTime(took.CPU / time.Duration(len(skills)))
		found = 0
		took, err = measure.RunClean(func() error {
			return forEach(skills, func(dir string) error {
				r, err := scanSkill(ctx, dir)
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
	fmt.Printf("\n%d skills, %d findings; CPU time per skill, %d rounds:\n\n", len(skills), found, rounds)
	t.Print(os.Stdout)
	return nil
}

// countRealSkills counts skills by the severity of their worst finding.
func countRealSkills(ctx context.Context, dirs []string, list bool) error {
	fmt.Println("\n| skills | high | medium | low or less | none |\n| --- | --- | --- | --- | --- |")
	total, high := 0, 0
	for _, dir := range dirs {
		skills, err := findSkills(dir)
		if err != nil {
			return err
		}
		var worst [4]int
		none := 0
		for _, d := range skills {
			r, err := scanSkill(ctx, d)
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
				printFindings(d, r, scan.Medium)
			}
		}
		total, high = total+len(skills), high+worst[scan.High]
		fmt.Printf("| %s: %d | %d | %d | %d | %d |\n", dir, len(skills), worst[scan.High], worst[scan.Medium], worst[scan.Low]+worst[scan.Info], none)
	}
	fmt.Printf("\nHigh in %d of %d skills, %.1f %%\n", high, total, 100*float64(high)/float64(max(total, 1)))
	return nil
}

// printFindings prints the findings with at least the given severity.
func printFindings(dir string, r *scan.Report, from scan.Severity) {
	for _, f := range r.Findings {
		if f.Severity >= from {
			fmt.Printf("  %s/%s:%d: %s %s: %s\n", dir, f.File, f.Line, f.Severity, f.Rule, f.Excerpt)
		}
	}
}
