//go:build linux

// Command catalog measures what it costs to know many skills, beside the bare
// system calls that nobody can do without, in one process and interleaved:
//
//	genskills -n 10000 -out /tmp/sk-10000
//	genskills -n 50000 -bundle-scale 0.05 -out /tmp/sk-50000
//	go run ./bench/catalog -dir /tmp/sk-10000 -dir /tmp/sk-50000
//
// Times are CPU time of the process. With several directories, their rounds
// alternate, and what each row grows by from the first to the last is printed.
// Memory is that of a process of its own, which scans once and does nothing
// else. One skill of each directory is changed and restored.
package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"

	"github.com/loadout-dev/loadout/bench/internal/measure"
)

func main() {
	dirs := measure.Dirs("dir", "`directory` of skills, as genskills makes (repeatable)")
	rounds := flag.Int("rounds", 7, "rounds")
	once := flag.String("once", "", "print the memory after a scan of -dir: \"catalog\" or \"limit\"; for the program itself")
	measure.Main("catalog", true, func() error {
		switch {
		case len(*dirs) == 0:
			return fmt.Errorf("give -dir")
		case *once != "":
			return scanOnce(*once, (*dirs)[0])
		}
		return run(*dirs, *rounds)
	})
}

func run(dirs []string, rounds int) error {
	var benches []*bench
	for _, dir := range dirs {
		b, err := newBench(dir)
		if err != nil {
			return err
		}
		defer b.close()
		benches = append(benches, b)
	}
	ctx := context.Background()
	for range rounds {
		for _, b := range benches {
			if err := b.round(ctx); err != nil {
				return err
			}
		}
	}
	fmt.Println(measure.Where())
	for _, b := range benches {
		fmt.Printf("\n%d skills, %d rounds, CPU time:\n\n", b.skills, rounds)
		b.table.Print(os.Stdout)
		if err := b.printMemory(); err != nil {
			return err
		}
	}
	if len(benches) > 1 {
		printGrowth(benches[0], benches[len(benches)-1])
	}
	return nil
}

// printGrowth says how much more the larger directory takes than the smaller
// in the same round.
func printGrowth(small, large *bench) {
	n := float64(large.skills) / float64(small.skills)
	fmt.Printf("\nGrowth from %d to %d skills, which is %.1f times:\n\n", small.skills, large.skills, n)
	rows := [][]string{{"what", "growth", "goal"}}
	for i, r := range large.table.Rows() {
		goal := ""
		if r == large.scan {
			goal = fmt.Sprintf("≤ %.1f", n*1.1)
		}
		grown := r.Times(small.table.Rows()[i])
		if goal != "" {
			goal = measure.Verdict(goal, grown <= n*1.1)
		}
		rows = append(rows, []string{r.Name, measure.Number(grown), goal})
	}
	measure.Markdown(os.Stdout, rows)
}

// memory is what a process that scans once ends with, in bytes.
type memory struct{ heap, peak float64 }

func (b *bench) printMemory() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	fmt.Printf("\nMemory after one scan in a process of its own (%.1f MB of names and descriptions):\n\n", float64(b.text)/1e6)
	var t measure.Table
	heap := [2]*measure.Row{
		t.Row(measure.Row{Name: "limit: heap of names and descriptions", Unit: "MB"}),
		t.Row(measure.Row{Name: "heap of the catalog", Unit: "MB", Goal: 10 * float64(b.skills) / 10_000}),
	}
	peak := [2]*measure.Row{
		t.Row(measure.Row{Name: "limit: peak", Unit: "MB"}),
		t.Row(measure.Row{Name: "peak", Unit: "MB", Goal: 40 * float64(max(b.skills, 10_000)) / 10_000}),
	}
	heap[1].Limit, peak[1].Limit = heap[0], peak[0]
	for range 5 {
		for i, mode := range []string{"limit", "catalog"} {
			m, err := memoryOnce(self, mode, b.dir)
			if err != nil {
				return err
			}
			heap[i].Add(m.heap / 1e6)
			peak[i].Add(m.peak / 1e6)
		}
	}
	t.Print(os.Stdout)
	return nil
}

func memoryOnce(self, mode, dir string) (m memory, err error) {
	out, err := exec.Command(self, "-once", mode, "-dir", dir).Output()
	if err != nil {
		return m, fmt.Errorf("scan in a process of its own: %w", err)
	}
	_, err = fmt.Sscan(strings.TrimSpace(string(out)), &m.heap, &m.peak)
	return m, err
}

// scanOnce scans and prints what that added to the heap, and the peak before
// anything was collected on purpose.
func scanOnce(mode, dir string) error {
	b, err := newBench(dir)
	if err != nil {
		return err
	}
	defer b.close()
	before := measure.Heap()
	var kept any
	if mode == "limit" {
		kept, err = b.parseAll()
	} else {
		kept, err = b.open(context.Background(), "")
	}
	after, errMemory := measure.MemoryOf(os.Getpid())
	if err := cmp.Or(err, errMemory); err != nil {
		return err
	}
	fmt.Println(measure.Heap()-before, after.Peak)
	runtime.KeepAlive(kept)
	return nil
}
