//go:build linux

// Command build measures the size of the program, and the time for building it with an empty
// build cache and downloaded modules. It compares them with a program that only links the
// standard HTTP server:
//
//	go run ./build [-rounds 3]
//
// Without rounds, it measures only the sizes.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/loadout-dev/loadout/bench/internal/measure"
)

func main() {
	rounds := flag.Int("rounds", 0, "number of builds with an empty cache")
	measure.Main("build", false, func() error { return run(*rounds) })
}

const httpServer = `package main

import "net/http"

func main() { panic(http.ListenAndServe("127.0.0.1:0", nil)) }
`

// bench holds the directories and tables of one run.
type bench struct {
	tmp, root        string
	wall, cpu, sizes measure.Table
}

func run(rounds int) (err error) {
	b := &bench{wall: measure.Table{Name: "wall"}, cpu: measure.Table{Name: "CPU"}, sizes: measure.Table{Name: "size"}}
	if b.root, err = measure.Root(); err != nil {
		return err
	}
	if b.tmp, err = os.MkdirTemp("", "loadout-bench-*"); err != nil {
		return err
	}
	defer os.RemoveAll(b.tmp)
	peer := filepath.Join(b.tmp, "peer")
	if err := errors.Join(os.Mkdir(peer, 0o700), os.WriteFile(filepath.Join(peer, "main.go"), []byte(httpServer), 0o600),
		os.WriteFile(filepath.Join(peer, "go.mod"), []byte("module peer\n\ngo 1.26\n"), 0o600)); err != nil {
		return err
	}
	if err := b.measureColdBuilds(peer, rounds); err != nil {
		return err
	}
	if err := b.measureSizes(peer); err != nil {
		return err
	}
	fmt.Println(measure.Environment())
	if rounds > 0 {
		fmt.Printf("\nCold build, %d rounds, wall time:\n\n", rounds)
		b.wall.Print(os.Stdout)
		fmt.Printf("\nCPU time:\n\n")
		b.cpu.Print(os.Stdout)
	}
	fmt.Printf("\nSize of the program:\n\n")
	b.sizes.Print(os.Stdout)
	return nil
}

func (b *bench) measureColdBuilds(peer string, rounds int) error {
	names := []string{"baseline: a program that links net/http", "loadout"}
	var wall, cpu [2]*measure.Row
	for i, name := range names {
		wall[i], cpu[i] = b.wall.Row(measure.Row{Name: name, Unit: "s"}), b.cpu.Row(measure.Row{Name: name, Unit: "s"})
	}
	wall[1].Baseline, cpu[1].Baseline = wall[0], cpu[0]
	for range rounds {
		for i, pkg := range []string{".", "./cmd/loadout"} {
			cache, err := os.MkdirTemp(b.tmp, "cache")
			if err != nil {
				return err
			}
			took, err := build([]string{peer, b.root}[i], pkg, filepath.Join(b.tmp, "cold"), []string{"GOCACHE=" + cache})
			if err := errors.Join(err, os.RemoveAll(cache)); err != nil {
				return err
			}
			wall[i].Add(took.Wall.Seconds())
			cpu[i].Add(took.CPU.Seconds())
		}
	}
	return nil
}

// measureSizes measures the sizes of the programs as they are released.
func (b *bench) measureSizes(peer string) error {
	other := filepath.Join(b.tmp, "other")
	if _, err := build(peer, ".", other, []string{"CGO_ENABLED=0"}, "-trimpath", "-ldflags=-s -w"); err != nil {
		return err
	}
	ours, err := measure.BuildLoadout(b.tmp)
	if err != nil {
		return err
	}
	var baseline *measure.Row
	for i, file := range []string{other, ours} {
		fi, err := os.Stat(file)
		if err != nil {
			return err
		}
		row := b.sizes.Row(measure.Row{Name: []string{"baseline: a program that links net/http", "loadout"}[i], Unit: "MB", Baseline: baseline})
		row.Add(float64(fi.Size()) / 1e6)
		baseline = row
	}
	return nil
}

func build(dir, pkg, out string, env []string, flags ...string) (measure.Cost, error) {
	cmd := exec.Command("go", append(append([]string{"build", "-buildvcs=false", "-o", out}, flags...), pkg)...)
	cmd.Dir, cmd.Stderr = dir, os.Stderr
	cmd.Env = append(os.Environ(), env...)
	start := time.Now()
	if err := cmd.Run(); err != nil {
		return measure.Cost{}, fmt.Errorf("build %s: %w", pkg, err)
	}
	s := cmd.ProcessState
	return measure.Cost{Wall: time.Since(start), CPU: s.UserTime() + s.SystemTime()}, nil
}
