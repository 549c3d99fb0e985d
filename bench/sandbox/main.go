//go:build linux

// Command sandbox measures the cost of isolation. It runs commands without a sandbox, with a
// common bubblewrap command line, and with our backends, each in a new and in a prepared
// sandbox. It also measures cached WebAssembly modules, and the memory of a sandbox's first
// process.
//
//	go run ./sandbox [-rounds 101]
//
// The run builds loadout as released, with CGO_ENABLED=0; -cgo builds it with the defaults of
// go build. The rounds of all rows alternate. Run it as root and as another user, because
// control groups are usually available only to root.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/loadout-dev/loadout/bench/internal/measure"
	"github.com/loadout-dev/loadout/internal/sandbox/bwrap"
	"github.com/loadout-dev/loadout/internal/sandbox/execute"
	"github.com/loadout-dev/loadout/internal/sandbox/native"
	"github.com/loadout-dev/loadout/sandbox"
)

func main() {
	rounds := flag.Int("rounds", 101, "number of rounds")
	cgo := flag.Bool("cgo", false, "build with cgo, the default of go build if there is a C compiler")
	measure.Main("sandbox", false, func() error { return run(*rounds, *cgo) })
}

// bench holds the rows and resources of one run.
type bench struct {
	tmp, loadout string
	table        measure.Table
	cases        []benchmark
	closers      []func() error
}

// benchmark is a table row with the operation it measures.
type benchmark struct {
	row *measure.Row
	do  func() error
}

func run(rounds int, cgo bool) error {
	tmp, err := os.MkdirTemp("", "loadout-bench-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	b := &bench{tmp: tmp}
	defer func() {
		for _, c := range b.closers {
			c()
		}
	}()
	if !cgo {
		os.Setenv("CGO_ENABLED", "0")
	}
	if b.loadout, err = measure.BuildLoadout(tmp); err != nil {
		return err
	}
	if err := errors.Join(os.Chmod(tmp, 0o755), os.Chmod(b.loadout, 0o755)); err != nil {
		return err
	}
	if err := b.addAll(); err != nil {
		return err
	}
	for i := range rounds + 1 {
		for _, c := range b.cases {
			began := time.Now()
			if err := c.do(); err != nil {
				return fmt.Errorf("%s: %w", c.row.Name, err)
			}
			if took := time.Since(began); i > 0 { // the first round only fills the caches
				c.row.AddTime(took)
			}
		}
	}
	fmt.Println(measure.Environment())
	fmt.Printf("\nWall time, %d rounds, as user %d:\n\n", rounds, os.Getuid())
	b.table.Print(os.Stdout)
	return b.printMemory()
}

func (b *bench) add(name string, baseline *measure.Row, goal float64, do func() error) *measure.Row {
	row := b.table.Row(measure.Row{Name: name, Unit: "ms", Baseline: baseline, Goal: goal, Over: true})
	b.cases = append(b.cases, benchmark{row, do})
	return row
}

// addAll adds a row for each way to run a command.
func (b *bench) addAll() error {
	ungrouped := native.New(&native.Options{Stage: b.loadout, NoGroups: true})
	grouped := native.New(&native.Options{Stage: b.loadout})
	hardened := bwrap.New(&bwrap.Options{Stage: b.loadout})
	python, err := exec.LookPath("/usr/bin/python3")
	if err != nil {
		return err
	}
	for _, args := range [][]string{{"/bin/true"}, {python, "-c", "pass"}} {
		name := filepath.Base(args[0])
		plain := b.add(name+": plain exec", nil, 0, func() error { return exec.Command(args[0], args[1:]...).Run() })
		if path, err := exec.LookPath("bwrap"); err == nil {
			b.add(name+": plain bwrap", plain, 0, func() error { return runPlainBwrap(path, args) })
			b.add(name+": backend bwrap", plain, 0, func() error { return runNew(hardened, args) })
		}
		b.add(name+": native", plain, 8, func() error { return runNew(ungrouped, args) })
		if os.Getuid() == 0 {
			b.add(name+": native with control groups (v1)", plain, 0, func() error { return runNew(grouped, args) })
		}
		s, spec, err := b.prepare(ungrouped, &sandbox.Spec{})
		if err != nil {
			return err
		}
		b.add(name+": in a prepared sandbox", plain, 1, func() error { return runIn(s, spec, args) })
	}
	return b.addWASM(ungrouped)
}

// prepare starts a sandbox that runs until the end of the benchmark.
func (b *bench) prepare(be sandbox.Backend, spec *sandbox.Spec) (sandbox.Sandbox, *sandbox.Spec, error) {
	s, err := be.Start(context.Background(), spec)
	if err != nil {
		return nil, nil, err
	}
	b.closers = append(b.closers, s.Close)
	return s, spec, nil
}

// runNew runs a command in a new sandbox.
func runNew(be sandbox.Backend, args []string) error {
	res, err := execute.Run(context.Background(), be, &sandbox.Spec{}, &sandbox.Cmd{Args: args}, nil)
	return checkResult(res, err)
}

// runIn runs a command in a prepared sandbox.
func runIn(s sandbox.Sandbox, spec *sandbox.Spec, args []string) error {
	res, err := execute.RunIn(context.Background(), s, spec, &sandbox.Cmd{Args: args}, nil)
	return checkResult(res, err)
}

// checkResult returns an error if the command could not be run or failed.
func checkResult(res *execute.Result, err error) error {
	if err == nil && res.Reason != sandbox.OK {
		err = fmt.Errorf("sandbox: %s, exit code %d: %s%s", res.Reason, res.ExitCode, res.Detail, res.Stderr)
	}
	return err
}

// runPlainBwrap runs a command with a common bubblewrap command line: the whole system
// read-only, all namespaces, no seccomp filter and no limits. For root this is not a security
// boundary.
func runPlainBwrap(path string, args []string) error {
	return exec.Command(path, append([]string{"--unshare-all", "--die-with-parent", "--new-session", "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev",
		"--tmpfs", "/tmp", "--clearenv", "--"}, args...)...).Run()
}

// printMemory prints the memory of a sandbox's first process. Much of it is the program file,
// which is shared.
func (b *bench) printMemory() error {
	s, spec, err := b.prepare(native.New(&native.Options{Stage: b.loadout, NoGroups: true}), &sandbox.Spec{})
	if err != nil {
		return err
	}
	if err := runIn(s, spec, []string{"/bin/true"}); err != nil {
		return err
	}
	pid, err := newestChild()
	if err != nil {
		return err
	}
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		return err
	}
	fmt.Printf("\nMemory of the first process of a native sandbox: %s KiB proportional (Pss), %s KiB private\n", findField(data, "Pss"), findField(data, "Private_Dirty"))
	return nil
}

// newestChild returns the highest process ID among this process's children.
func newestChild() (newest int, err error) {
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", os.Getpid()))
	for _, f := range files {
		b, _ := os.ReadFile(f)
		for word := range strings.FieldsSeq(string(b)) {
			if n, err := strconv.Atoi(word); err == nil {
				newest = max(newest, n)
			}
		}
	}
	if newest == 0 && err == nil {
		err = errors.New("no child process found")
	}
	return newest, err
}

func findField(data []byte, name string) string {
	for line := range strings.Lines(string(data)) {
		if rest, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.Fields(rest)[0]
		}
	}
	return "?"
}
