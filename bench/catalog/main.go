//go:build linux

// Command catalog measures a catalog of many skills. It compares each operation with the plain
// system calls that every implementation needs, interleaved in one process:
//
//	go run ./genskills -n 10000 -out /tmp/sk-10000
//	go run ./genskills -n 50000 -bundle-scale 0.05 -out /tmp/sk-50000
//	go run ./catalog -dir /tmp/sk-10000 -dir /tmp/sk-50000 [-peer NAME=PROGRAM]…
//
// Times are CPU times of the process. With several directories, the rounds alternate, and the
// program prints the growth of each row from the first directory to the last. It measures
// memory in a separate process that scans once. It modifies and restores one skill in each
// directory. A peer is another implementation; the type [peer] describes its program.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"

	"github.com/loadout-dev/loadout/bench/internal/measure"
)

func main() {
	dirs := measure.ListFlag("dir", "`directory` of skills (repeatable)")
	rounds := flag.Int("rounds", 7, "number of rounds")
	peers := measure.PeersFlag()
	once := flag.String("once", "", "print the memory after a scan of -dir: \"catalog\" or \"baseline\"; for internal use")
	measure.Main("catalog", true, func() error {
		switch {
		case len(*dirs) == 0:
			return errors.New("missing -dir")
		case *once != "":
			return scanOnce(*once, (*dirs)[0])
		}
		return run(*dirs, peers, *rounds)
	})
}

func run(dirs []string, peers map[string]string, rounds int) (err error) {
	var benches []*bench
	for _, dir := range dirs {
		b, errOpen := newBench(dir)
		if errOpen != nil {
			return errOpen
		}
		defer func() { err = errors.Join(err, b.close()) }()
		for _, name := range slices.Sorted(maps.Keys(peers)) {
			if err := b.addPeer(name, peers[name]); err != nil {
				return err
			}
		}
		benches = append(benches, b)
	}
	ctx := context.Background()
	for range rounds {
		for _, b := range benches {
			if err := b.runRound(ctx); err != nil {
				return err
			}
		}
	}
	fmt.Println(measure.Environment())
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

// printGrowth prints the ratio of the larger directory's cost to the smaller one's, within the
// same round.
func printGrowth(small, large *bench) {
	n := float64(large.skills) / float64(small.skills)
	fmt.Printf("\nGrowth from %d to %d skills (%.1f times):\n\n", small.skills, large.skills, n)
	rows := [][]string{{"what", "growth"}}
	for i, r := range large.table.Rows() {
		rows = append(rows, []string{r.Name, measure.FormatNumber(r.RatioTo(small.table.Rows()[i]))})
	}
	measure.WriteMarkdown(os.Stdout, rows)
}

// memory holds the heap size and the peak memory, in bytes, of a process that ran
// one scan.
type memory struct{ heap, peak float64 }

func (b *bench) printMemory() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	fmt.Printf("\nMemory after one scan in a separate process (%.1f MB of names and descriptions):\n\n", float64(b.text)/1e6)
	t := measure.Table{Name: "memory"}
	heap := [2]*measure.Row{
		t.Row(measure.Row{Name: "baseline: heap of names and descriptions", Unit: "MB"}),
		t.Row(measure.Row{Name: "heap of the catalog", Unit: "MB"}),
	}
	peak := [2]*measure.Row{
		t.Row(measure.Row{Name: "baseline: peak", Unit: "MB"}),
		t.Row(measure.Row{Name: "peak", Unit: "MB"}),
	}
	heap[1].Baseline, peak[1].Baseline = heap[0], peak[0]
	for range 5 {
		for i, mode := range []string{"baseline", "catalog"} {
			m, err := measureMemory(self, mode, b.dir)
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

func measureMemory(self, mode, dir string) (m memory, err error) {
	out, err := exec.Command(self, "-once", mode, "-dir", dir).Output()
	if err != nil {
		return m, fmt.Errorf("scan in a separate process: %w", err)
	}
	_, err = fmt.Sscan(strings.TrimSpace(string(out)), &m.heap, &m.peak)
	return m, err
}

// scanOnce scans a directory. It prints the growth of the heap, and the peak
// memory usage before a forced garbage collection.
func scanOnce(mode, dir string) error {
	b, err := newBench(dir)
	if err != nil {
		return err
	}
	defer b.close()
	before := measure.HeapInUse()
	var kept any
	if mode == "baseline" {
		kept, err = b.parseAll()
	} else {
		kept, err = b.openCatalog(context.Background(), "")
	}
	after, errMemory := measure.MemoryOf(os.Getpid())
	if err := cmp.Or(err, errMemory); err != nil {
		return err
	}
	fmt.Println(measure.HeapInUse()-before, after.Peak)
	runtime.KeepAlive(kept)
	return nil
}
