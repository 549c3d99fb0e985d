//go:build linux

// Package measure provides shared code for the programs under bench: CPU clocks, process
// memory, samples with median and range, and tables that compare them with a baseline measured in
// the same run. With the flag -json, tables are printed as one [Record] a line. It works only on
// Linux.
//
// Start reading at [Main] and [Table].
package measure

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
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

// CPU returns the user and system CPU time of this process.
func CPU() time.Duration { return readClock(unix.CLOCK_PROCESS_CPUTIME_ID) }

// CPUOf returns the CPU time of a running process, or 0 if no process has the ID pid.
func CPUOf(pid int) time.Duration {
	const cpuClockSched = 2 // the kernel numbers the clock of a process ~pid<<3 | cpuClockSched
	return readClock(int32(^pid<<3 | cpuClockSched))
}

func readClock(id int32) time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(id, &ts); err != nil {
		return 0
	}
	return time.Duration(ts.Nano())
}

// Cost is the wall time and CPU time of an operation.
type Cost struct{ Wall, CPU time.Duration }

// Run runs f and returns its cost.
func Run(f func() error) (Cost, error) {
	start, cpu := time.Now(), CPU()
	err := f()
	return Cost{time.Since(start), CPU() - cpu}, err
}

// RunClean is like [Run], but first runs a garbage collection, so that the cost of f does
// not include that of collecting earlier garbage.
func RunClean(f func() error) (Cost, error) {
	runtime.GC()
	return Run(f)
}

// Memory holds the memory usage of a process, in bytes.
type Memory struct {
	Resident  int64 // includes pages of the program file
	Anonymous int64 // part of Resident that is not mapped from files
	Peak      int64 // maximum of Resident since exec
}

// MemoryOf returns the memory usage of a running process. Its Peak counts only the process,
// unlike the maximum in an exit status, which starts with the parent's memory.
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

// HeapInUse returns the size of the heap in use, in bytes, after a garbage collection.
func HeapInUse() int64 {
	runtime.GC()
	runtime.GC() // frees what finalizers and pools released
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// ListFlag defines a repeatable flag and returns a pointer to its values.
func ListFlag(name, usage string) *[]string {
	var values []string
	flag.Func(name, usage, func(s string) error {
		values = append(values, s)
		return nil
	})
	return &values
}

// PeersFlag defines the repeatable flag -peer. It returns the programs to compare with, by name.
func PeersFlag() map[string]string {
	peers := map[string]string{}
	flag.Func("peer", "`NAME=PROGRAM` to compare with (repeatable)", func(s string) error {
		name, program, ok := strings.Cut(s, "=")
		if !ok {
			return errors.New("want NAME=PROGRAM")
		}
		peers[name] = program
		return nil
	})
	return peers
}

// The values of the flags that all programs have.
var (
	records *json.Encoder // nil without -json
	loadout string
)

// Main parses the flags, calls run, and exits with status 1 if run returns an error. If asMCP
// is set, it tunes the garbage collector as `loadout mcp` does. All programs have the flags
// -json and -loadout.
func Main(name string, asMCP bool, run func() error) {
	log.SetFlags(0)
	log.SetPrefix(name + ": ")
	asJSON := flag.Bool("json", false, "print the rows of tables as JSON, and other text on standard error")
	flag.StringVar(&loadout, "loadout", "", "`program` to measure instead of one built from this repository")
	flag.Parse()
	if *asJSON {
		records = json.NewEncoder(os.Stdout)
		os.Stdout = os.Stderr
	}
	if flag.NArg() > 0 {
		flag.Usage()
		os.Exit(2)
	}
	if asMCP {
		debug.SetGCPercent(400)
	}
	if err := run(); err != nil {
		log.Fatal(err)
	}
}

// Environment returns a line that describes the Go version, the machine, its load and
// the date.
func Environment() string {
	return fmt.Sprintf("%s, %d CPUs, load %s, %s", runtime.Version(), runtime.NumCPU(), LoadAverage(), time.Now().Format(time.DateOnly))
}

// LoadAverage returns the load average of the last minute. On a shared machine it shows how
// reliable the results are.
func LoadAverage() string {
	data, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	first, _, _ := strings.Cut(string(data), " ")
	return first
}

// Machine returns a line with the processor, the number of cores, the kernel and the Go version.
func Machine() string {
	info, _ := os.ReadFile("/proc/cpuinfo")
	_, rest, _ := bytes.Cut(info, []byte("\nmodel name\t: "))
	model, _, _ := bytes.Cut(rest, []byte("\n"))
	kernel, _ := os.ReadFile("/proc/sys/kernel/osrelease")
	release, _, _ := strings.Cut(strings.TrimSpace(string(kernel)), "-")
	return fmt.Sprintf("%s, %d cores, Linux %s, %s", cmp.Or(string(model), runtime.GOARCH), runtime.NumCPU(), cmp.Or(release, "unknown"), runtime.Version())
}
