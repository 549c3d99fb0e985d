//go:build linux

// Command start measures the time of `loadout version`, and of `loadout mcp` from exec to its
// first responses over standard input and output. It starts the server without skills and with
// those in each directory, with and without a saved index. It compares the times with a Go
// program that does nothing:
//
//	go run ./start -skills DIR [-skills DIR]…
//
// The run builds both programs, and the rounds of all rows alternate. The times exclude work
// after the response, such as indexing skills for the search, although that work may run
// concurrently.
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
	dirs := measure.ListFlag("skills", "`directory` with skills (repeatable)")
	rounds := flag.Int("rounds", 21, "number of rounds")
	measure.Main("start", false, func() error { return run(*dirs, *rounds) })
}

// trivial is the source of a Go program that does nothing.
const trivial = `package main

import "os"

func main() { os.Stdout.WriteString("trivial\n") }
`

// bench holds the programs, the directory and the tables of one run.
type bench struct {
	tmp, loadout, trivial string

	wall, cpu measure.Table
	cases     []*start
}

// start describes one way to start a program, and has the table rows that report its cost.
type start struct {
	name string
	// once starts the program once and returns the cost for each row.
	once func() ([]measure.Cost, error)
	wall []*measure.Row
	cpu  []*measure.Row
}

func run(dirs []string, rounds int) error {
	tmp, err := os.MkdirTemp("", "loadout-bench-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	b := &bench{tmp: tmp, wall: measure.Table{Name: "wall"}, cpu: measure.Table{Name: "CPU"}}
	if b.loadout, err = measure.BuildLoadout(tmp); err != nil {
		return err
	}
	if b.trivial, err = measure.BuildSource(tmp, "trivial", trivial); err != nil {
		return err
	}
	if err := b.addAll(dirs); err != nil {
		return err
	}
	for i := range rounds + 1 {
		for _, c := range b.cases {
			took, err := c.once()
			if err != nil {
				return fmt.Errorf("%s: %w", c.name, err)
			}
			if i == 0 {
				continue // the first round only fills the page cache and saves the indexes
			}
			for k, t := range took {
				c.wall[k].AddTime(t.Wall)
				c.cpu[k].AddTime(t.CPU)
			}
		}
	}
	fmt.Println(measure.Environment())
	fmt.Printf("\nFrom exec to the answer, %d rounds, wall time:\n\n", rounds)
	b.wall.Print(os.Stdout)
	fmt.Printf("\nCPU time until then:\n\n")
	b.cpu.Print(os.Stdout)
	return nil
}

// addAll adds all ways to start.
func (b *bench) addAll(dirs []string) error {
	baseline := b.add("baseline: a Go program that prints a word", nil, func() ([]measure.Cost, error) { return b.runProgram(b.trivial) })
	version := b.add("loadout version", baseline, func() ([]measure.Cost, error) { return b.runProgram(b.loadout, "version") })
	empty := filepath.Join(b.tmp, "empty")
	if err := os.Mkdir(empty, 0o700); err != nil {
		return err
	}
	if err := b.addMCP(empty, 0, version); err != nil {
		return err
	}
	for _, dir := range dirs {
		n, err := countSkills(dir)
		if err != nil {
			return err
		}
		if err := b.addMCP(dir, n, version); err != nil {
			return err
		}
	}
	return nil
}

// addMCP adds the ways to start `loadout mcp` with the skills in a directory.
func (b *bench) addMCP(dir string, skills int, version *start) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	saved := filepath.Join(b.tmp, fmt.Sprintf("cache%d", len(b.cases)))
	name := fmt.Sprintf("loadout mcp, %d skills", skills)
	b.addPair(name+", saved index", version, func() ([]measure.Cost, error) { return b.startMCP(dir, saved) })
	b.addPair(name+", no index", version, func() ([]measure.Cost, error) {
		fresh, err := os.MkdirTemp(b.tmp, "fresh")
		if err != nil {
			return nil, err
		}
		took, err := b.startMCP(dir, fresh)
		return took, errors.Join(err, os.RemoveAll(fresh))
	})
	return nil
}

func (b *bench) add(name string, baseline *start, once func() ([]measure.Cost, error)) *start {
	s := &start{name: name, once: once}
	b.cases = append(b.cases, s)
	b.addRow(s, name, baseline)
	return s
}

func (b *bench) addPair(name string, baseline *start, once func() ([]measure.Cost, error)) {
	s := b.add(name+": initialize", baseline, once)
	b.addRow(s, name+": initialize, tools/list", baseline)
}

func (b *bench) addRow(s *start, name string, baseline *start) {
	wall, cpu := measure.Row{Name: name, Unit: "ms"}, measure.Row{Name: name, Unit: "ms"}
	if baseline != nil {
		wall.Baseline, cpu.Baseline = baseline.wall[0], baseline.cpu[0]
	}
	s.wall, s.cpu = append(s.wall, b.wall.Row(wall)), append(s.cpu, b.cpu.Row(cpu))
}

// runProgram runs a program and waits for it to exit.
func (b *bench) runProgram(program string, args ...string) ([]measure.Cost, error) {
	cmd := b.command(filepath.Join(b.tmp, "cache"), program, args...)
	start := time.Now()
	_, err := cmd.Output()
	if err != nil {
		return nil, err
	}
	return []measure.Cost{{Wall: time.Since(start), CPU: cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()}}, nil
}

// startMCP starts the server and measures the time until its first two responses.
func (b *bench) startMCP(dir, cache string) (took []measure.Cost, err error) {
	p, err := measure.Start(b.command(cache, b.loadout, "mcp", "--skills", dir))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	for _, call := range []func() error{p.Initialize, func() error { _, err := p.Call("tools/list", struct{}{}); return err }} {
		if err := call(); err != nil {
			return nil, err
		}
		took = append(took, measure.Cost{Wall: time.Since(p.Started), CPU: p.CPU()})
	}
	return took, nil
}

// command returns a command that does not use the user's settings.
func (b *bench) command(cache, program string, args ...string) *exec.Cmd {
	cmd := exec.Command(program, args...)
	cmd.Dir = b.tmp
	cmd.Env = []string{"HOME=" + b.tmp, "PATH=" + os.Getenv("PATH"), "LOADOUT_CACHE=" + cache}
	return cmd
}

// countSkills returns the number of directories in dir that contain a SKILL.md.
func countSkills(dir string) (n int, err error) {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if _, err := os.Stat(filepath.Join(dir, e.Name(), "SKILL.md")); err == nil {
			n++
		}
	}
	return n, err
}
