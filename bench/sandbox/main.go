//go:build linux

// Command sandbox measures what isolation costs: commands run plainly, by a
// plain bubblewrap as people write it, and by our back ends, each from nothing
// and in a sandbox that is prepared; WebAssembly from its cache; and the memory
// that the first process of a sandbox adds.
//
//	go run ./bench/sandbox [-rounds 101]
//
// The stage is the whole loadout program as it is released (CGO_ENABLED=0),
// built by this run; -cgo builds it as go build does. The rounds of all rows
// alternate. It runs as root and as any other user, which differ: as root there
// are control groups, as a user usually none.
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
	"github.com/loadout-dev/loadout/sandbox"
	"github.com/loadout-dev/loadout/sandbox/bwrap"
	"github.com/loadout-dev/loadout/sandbox/native"
)

func main() {
	rounds := flag.Int("rounds", 101, "rounds")
	cgo := flag.Bool("cgo", false, "build with cgo, as go build does where there is a C compiler")
	measure.Main("sandbox", false, func() error { return run(*rounds, *cgo) })
}

// bench holds the rows and what they need.
type bench struct {
	tmp, loadout string
	table        measure.Table
	cases        []one
	closers      []func() error
}

// one is a row and what it measures.
type one struct {
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
	if b.loadout, err = measure.Build(tmp, "./cmd/loadout"); err != nil {
		return err
	}
	if err := errors.Join(os.Chmod(tmp, 0o755), os.Chmod(b.loadout, 0o755)); err != nil {
		return err
	}
	if err := b.plan(); err != nil {
		return err
	}
	for i := range rounds + 1 {
		for _, c := range b.cases {
			began := time.Now()
			if err := c.do(); err != nil {
				return fmt.Errorf("%s: %w", c.row.Name, err)
			}
			if took := time.Since(began); i > 0 { // the first fills caches
				c.row.AddTime(took)
			}
		}
	}
	fmt.Println(measure.Where())
	fmt.Printf("\nWall time, %d rounds, as user %d:\n\n", rounds, os.Getuid())
	b.table.Print(os.Stdout)
	return b.memory()
}

func (b *bench) add(name string, limit *measure.Row, goal float64, do func() error) *measure.Row {
	row := b.table.Row(measure.Row{Name: name, Unit: "ms", Limit: limit, Goal: goal, Over: true})
	b.cases = append(b.cases, one{row, do})
	return row
}

// plan lists what is measured.
func (b *bench) plan() error {
	ungrouped := native.New(&native.Options{Stage: b.loadout, NoGroups: true})
	grouped := native.New(&native.Options{Stage: b.loadout})
	hardened := bwrap.New(&bwrap.Options{Stage: b.loadout})
	python, err := exec.LookPath("/usr/bin/python3")
	if err != nil {
		return err
	}
	for _, args := range [][]string{{"/bin/true"}, {python, "-c", "pass"}} {
		what := filepath.Base(args[0])
		plain := b.add(what+": plain exec", nil, 0, func() error { return exec.Command(args[0], args[1:]...).Run() })
		if path, err := exec.LookPath("bwrap"); err == nil {
			b.add(what+": plain bwrap", plain, 0, func() error { return plainBwrap(path, args) })
			b.add(what+": back end bwrap", plain, 0, func() error { return once(hardened, args) })
		}
		b.add(what+": native", plain, 8, func() error { return once(ungrouped, args) })
		if os.Getuid() == 0 {
			b.add(what+": native with control groups (v1)", plain, 0, func() error { return once(grouped, args) })
		}
		s, spec, err := b.prepared(ungrouped, &sandbox.Spec{})
		if err != nil {
			return err
		}
		b.add(what+": in a prepared sandbox", plain, 1, func() error { return again(s, spec, args) })
	}
	return b.planWASM(ungrouped)
}

// prepared is a sandbox that stays until the end.
func (b *bench) prepared(be sandbox.Backend, spec *sandbox.Spec) (sandbox.Sandbox, *sandbox.Spec, error) {
	s, err := be.Start(context.Background(), spec)
	if err != nil {
		return nil, nil, err
	}
	b.closers = append(b.closers, s.Close)
	return s, spec, nil
}

func once(be sandbox.Backend, args []string) error {
	res, err := sandbox.Run(context.Background(), be, &sandbox.Spec{}, &sandbox.Cmd{Args: args}, nil)
	return ok(res, err)
}

func again(s sandbox.Sandbox, spec *sandbox.Spec, args []string) error {
	res, err := sandbox.RunIn(context.Background(), s, spec, &sandbox.Cmd{Args: args}, nil)
	return ok(res, err)
}

func ok(res *sandbox.Result, err error) error {
	if err == nil && res.Reason != sandbox.OK {
		err = fmt.Errorf("%s, exit code %d: %s%s", res.Reason, res.ExitCode, res.Detail, res.Stderr)
	}
	return err
}

// plainBwrap is bubblewrap as people write it: the whole system read-only,
// every namespace, no seccomp, no limits. As root it is no boundary, and is
// measured only.
func plainBwrap(path string, args []string) error {
	return exec.Command(path, append([]string{"--unshare-all", "--die-with-parent", "--new-session", "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev",
		"--tmpfs", "/tmp", "--clearenv", "--"}, args...)...).Run()
}

// memory tells what the first process of a sandbox adds, of which much is the
// program's file and shared.
func (b *bench) memory() error {
	s, spec, err := b.prepared(native.New(&native.Options{Stage: b.loadout, NoGroups: true}), &sandbox.Spec{})
	if err != nil {
		return err
	}
	if err := again(s, spec, []string{"/bin/true"}); err != nil {
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
	fmt.Printf("\nMemory of the first process of a native sandbox: %s KiB in proportion (Pss), %s KiB of its own\n", field(data, "Pss"), field(data, "Private_Dirty"))
	return nil
}

// newestChild is the process that this one started last.
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
		err = errors.New("the first process of the sandbox is not found")
	}
	return newest, err
}

func field(data []byte, name string) string {
	for line := range strings.Lines(string(data)) {
		if rest, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.Fields(rest)[0]
		}
	}
	return "?"
}
