//go:build linux

// Command sandbox measures the cost of isolation. It runs commands without a sandbox, with a
// common bubblewrap command line, and with our backends, each in a new and in a prepared
// sandbox. It also measures a script of a skill, run by `loadout run` and over MCP, cached
// WebAssembly modules, and the memory of a sandbox's first process.
//
//	go run ./sandbox [-rounds 101]
//
// The rounds of all rows alternate. Run it as root and as another user, because control groups
// are usually available only to root.
package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/loadout-dev/loadout/bench/internal/measure"
	"github.com/loadout-dev/loadout/internal/sandbox/bwrap"
	"github.com/loadout-dev/loadout/internal/sandbox/execute"
	"github.com/loadout-dev/loadout/internal/sandbox/native"
	"github.com/loadout-dev/loadout/sandbox"
)

func main() {
	rounds := flag.Int("rounds", 101, "number of rounds")
	measure.Main("sandbox", false, func() error { return run(*rounds) })
}

// bench holds the rows and resources of one run.
type bench struct {
	tmp, loadout string
	wall, cpu    measure.Table
	record       bool // false in the first round, which only fills the caches
	cases        []benchmark
	closers      []func() error
}

// benchmark is an operation with its rows. The operation returns its CPU time, or 0 if it is not
// known, because its processes are not children of this one.
type benchmark struct {
	wall, cpu *measure.Row
	do        func() (time.Duration, error)
}

func run(rounds int) error {
	tmp, err := os.MkdirTemp("", "loadout-bench-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	b := &bench{tmp: tmp, wall: measure.Table{Name: "wall"}, cpu: measure.Table{Name: "CPU"}}
	defer func() {
		for _, c := range b.closers {
			c()
		}
	}()
	if b.loadout, err = measure.BuildLoadout(tmp); err != nil {
		return err
	}
	if err := os.Chmod(tmp, 0o755); err != nil {
		return err
	}
	if err := b.addAll(); err != nil {
		return err
	}
	for i := range rounds + 1 {
		b.record = i > 0
		for _, c := range b.cases {
			began := time.Now()
			cpu, err := c.do()
			took := time.Since(began)
			if err != nil {
				return fmt.Errorf("%s: %w", c.wall.Name, err)
			}
			if !b.record {
				continue
			}
			c.wall.AddTime(took)
			if cpu > 0 {
				c.cpu.AddTime(cpu)
			}
		}
	}
	fmt.Println(measure.Environment())
	fmt.Printf("\nWall time, %d rounds, as user %d:\n\n", rounds, os.Getuid())
	b.wall.Print(os.Stdout)
	fmt.Print("\nCPU time of commands and their children:\n\n")
	b.cpu.Print(os.Stdout)
	return b.printMemory()
}

func (b *bench) add(name string, baseline *benchmark, do func() (time.Duration, error)) *benchmark {
	wall, cpu := measure.Row{Name: name, Unit: "ms"}, measure.Row{Name: name, Unit: "ms"}
	if baseline != nil {
		wall.Baseline, cpu.Baseline = baseline.wall, baseline.cpu
	}
	c := benchmark{b.wall.Row(wall), b.cpu.Row(cpu), do}
	b.cases = append(b.cases, c)
	return &c
}

// addSandboxed adds an operation that does not report its CPU time.
func (b *bench) addSandboxed(name string, baseline *benchmark, do func() error) *benchmark {
	return b.add(name, baseline, func() (time.Duration, error) { return 0, do() })
}

// runCommand runs a command and returns its CPU time, including that of its children.
func runCommand(cmd *exec.Cmd) (time.Duration, error) {
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Run(); err != nil {
		return 0, fmt.Errorf("%w\n%.2000s", err, &output)
	}
	return cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), nil
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
		plain := b.add(name+": plain exec", nil, func() (time.Duration, error) { return runCommand(exec.Command(args[0], args[1:]...)) })
		if path, err := exec.LookPath("bwrap"); err == nil {
			b.add(name+": plain bwrap", plain, func() (time.Duration, error) { return runCommand(plainBwrap(path, args)) })
			b.addSandboxed(name+": backend bwrap", plain, func() error { return runNew(hardened, args) })
		}
		b.addSandboxed(name+": native", plain, func() error { return runNew(ungrouped, args) })
		if os.Getuid() == 0 {
			b.addSandboxed(name+": native with control groups", plain, func() error { return runNew(grouped, args) })
		}
		s, spec, err := b.prepare(ungrouped, &sandbox.Spec{})
		if err != nil {
			return err
		}
		b.addSandboxed(name+": in a prepared sandbox", plain, func() error { return runIn(s, spec, args) })
	}
	if err := b.addScript(); err != nil {
		return err
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

// plainBwrap returns a command with a common bubblewrap command line: the whole system
// read-only, all namespaces, no seccomp filter and no limits. For root this is not a security
// boundary.
func plainBwrap(path string, args []string) *exec.Cmd {
	return exec.Command(path, append([]string{"--unshare-all", "--die-with-parent", "--new-session", "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev",
		"--tmpfs", "/tmp", "--clearenv", "--"}, args...)...)
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
	children, err := measure.Children()
	if err != nil {
		return err
	}
	size, err := measure.PssOf(slices.Max(children))
	if err != nil {
		return err
	}
	fmt.Printf("\nMemory of the first process of a native sandbox: %d KiB proportional (Pss)\n", size>>10)
	return nil
}
