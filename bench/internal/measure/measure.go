//go:build linux

// Package measure is what the programs under bench share: CPU clocks, memory
// of a process, samples with their median and range beside a limit of the same
// run, and the table they are printed as.
package measure

import (
	"bytes"
	"flag"
	"fmt"
	"log"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// CPU is the CPU time of this process so far, user and system.
func CPU() time.Duration { return clock(unix.CLOCK_PROCESS_CPUTIME_ID) }

// CPUOf is the CPU time of a running process so far, 0 where there is none.
func CPUOf(pid int) time.Duration {
	const cpuClockSched = 2 // the kernel's clock of a process is ~pid<<3 | this
	return clock(int32(^pid<<3 | cpuClockSched))
}

func clock(id int32) time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(id, &ts); err != nil {
		return 0
	}
	return time.Duration(ts.Nano())
}

// Cost is what something took.
type Cost struct{ Wall, CPU time.Duration }

// Of runs f and returns what it took.
func Of(f func() error) (Cost, error) {
	start, cpu := time.Now(), CPU()
	err := f()
	return Cost{time.Since(start), CPU() - cpu}, err
}

// OfClean is Of after a garbage collection, so that f does not pay for what
// came before it.
func OfClean(f func() error) (Cost, error) {
	runtime.GC()
	return Of(f)
}

// Memory is what a process holds, in bytes.
type Memory struct {
	Resident  int64 // with the pages of the program's file
	Anonymous int64 // of these, what is the process's own
	Peak      int64 // most that was resident since exec
}

// MemoryOf reads the memory of a running process. Unlike the maximum that a
// parent is told, which begins with the parent's own, it is that of the process.
func MemoryOf(pid int) (Memory, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return Memory{}, err
	}
	field := func(name string) int64 {
		_, rest, _ := bytes.Cut(data, []byte("\n"+name+":"))
		words := strings.Fields(string(rest[:min(len(rest), 64)]))
		if len(words) == 0 {
			return 0
		}
		n, _ := strconv.ParseInt(words[0], 10, 64) // always a number
		return n << 10
	}
	return Memory{field("VmRSS"), field("RssAnon"), field("VmHWM")}, nil
}

// Heap is what is in use after a garbage collection, in bytes.
func Heap() int64 {
	runtime.GC()
	runtime.GC() // what finalizers and pools let go
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// Dirs is a flag that can be repeated.
func Dirs(name, usage string) *[]string {
	var dirs []string
	flag.Func(name, usage, func(s string) error {
		dirs = append(dirs, s)
		return nil
	})
	return &dirs
}

// Main reads the flags and runs a program that prints a table. collect is
// whether it runs with the garbage collector as `loadout mcp` sets it.
func Main(name string, collect bool, run func() error) {
	log.SetFlags(0)
	log.SetPrefix(name + ": ")
	flag.Parse()
	if flag.NArg() > 0 {
		flag.Usage()
		os.Exit(2)
	}
	if collect {
		debug.SetGCPercent(400)
	}
	if err := run(); err != nil {
		log.Fatal(err)
	}
}

// Where is the line that says what was measured on what.
func Where() string {
	return fmt.Sprintf("%s, %d CPUs, load %s, %s", runtime.Version(), runtime.NumCPU(), load(), time.Now().Format(time.DateOnly))
}

// load is how many processes of the machine wanted to run of late: what a
// figure on a shared machine is to be read with.
func load() string {
	data, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	first, _, _ := strings.Cut(string(data), " ")
	return first
}
