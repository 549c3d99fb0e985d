//go:build linux

package sandboxtest

import (
	"fmt"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/loadout-dev/loadout/sandbox"
)

// resourceAttacks returns the attacks that exhaust the machine's resources.
func resourceAttacks() []attack {
	memory, disk := []string{"memory"}, []string{"disk"}
	return []attack{
		{"E01", "infinite loop", []string{"wall", "cpu"}, nil, runsForever("E01")},
		{"E02", "ignore SIGTERM and sleep", []string{"wall"}, nil, runsForever("E02")},
		{"E03", "150 processes", []string{"processes"}, []need{needLimit(unix.RLIMIT_NPROC, 1000)}, reportsBreach("E03")},
		{"E04", "400 MB in one process", memory, nil, reportsBreach("E04")},
		{"E05", "4 × 100 MB in four processes", memory, nil, reportsBreach("E05")},
		{"E06", "one file of 200 MB", []string{"file_size", "disk"}, nil, reportsBreach("E06")},
		{"E07", "640 MB in files of 4 MB", disk, nil, reportsBreach("E07")},
		{"E08", "20,000 inodes", []string{"inodes"}, nil, reportsBreach("E08")},
		{"E09", "fill /dev/shm and /tmp", []string{"disk"}, nil, reportsBreach("E09")},
		{"E10", "300 MB to stdout", []string{"output"}, nil, floodsOutput},
		{"E11", "a daemon survives", []string{"processes_visible", "kill"}, nil, outlivesClose("E11")},
		{"E12", "a grandchild keeps stdout", []string{"processes_visible", "kill"}, nil, outlivesClose("E12")},
		{"E13", "5000 descriptors", []string{"open_files"}, []need{needLimit(unix.RLIMIT_NOFILE, 5100)}, reportsBreach("E13")},
		{"E14", "two spinning processes take two processors", []string{"cores"}, []need{needCores}, usesTwoCores},
		{"E15", "150 threads", []string{"processes"}, []need{needLimit(unix.RLIMIT_NPROC, 1000)}, reportsBreach("E15")},
		{"E16", "400 MB in a memfd", memory, []need{needFeature("memfd")}, reportsBreach("E16")},
		{"E17", "2000 nested directories", disk, nil, nestsDirectories},
	}
}

// needLimit requires the test process's own limit for a resource to be at least
// minimum. A lower limit would contain the attack without the sandbox.
func needLimit(resource int, minimum uint64) need {
	return func(*scene) string {
		var l unix.Rlimit
		if err := unix.Getrlimit(resource, &l); err == nil && l.Max < minimum {
			return fmt.Sprintf("limited by the test's own limit %d (%d)", resource, l.Max)
		}
		return ""
	}
}

// runsForever runs an attack that never exits, and reports whether it outlives
// its limits.
func runsForever(id string) func(*trial) bool {
	return func(x *trial) bool {
		limits := PolicyLimits()
		limits.CPU, limits.Wall = time.Second, 2*time.Second
		x.limits = &limits
		start := time.Now()
		res, _ := x.attack(id)
		elapsed := time.Since(start)
		x.note(fmt.Sprintf("%s after %.1f s", res.Reason, elapsed.Seconds()))
		return elapsed > limits.Wall+hangTimeout/2 || res.Reason == sandbox.OK || x.hasSurvivors()
	}
}

func outlivesClose(id string) func(*trial) bool {
	return func(x *trial) bool {
		start := time.Now()
		x.attack(id)
		late := time.Since(start) > PolicyLimits().Wall+hangTimeout/2
		return x.hasSurvivors() || late
	}
}

// floodsOutput reports whether excessive output made the host store too much or
// use too much memory.
func floodsOutput(x *trial) bool {
	before := rss()
	res := x.exec(nil, "E10")
	grown := rss() - before
	x.note(fmt.Sprintf("kept %d bytes, the host grew by %d KiB", len(res.Stdout), grown>>10))
	x.requireStart(res)
	return int64(len(res.Stdout)) > PolicyLimits().Output || !res.Truncated || grown > 64<<20
}

// usesTwoCores reports whether an attack uses more CPU than allowed, or the
// backend reports that it does not limit the CPU share.
func usesTwoCores(x *trial) bool {
	x.start()
	x.state = x.box.State()
	if x.state.Enforced["cores"] == "" {
		x.note("the CPU share is not limited")
		return true
	}
	res, _ := x.attack("E14", "2")
	var cpu, wall int
	for _, line := range lines(res.Stdout) {
		fmt.Sscanf(line, "CPU %d %d", &cpu, &wall)
	}
	if wall == 0 {
		x.note("killed")
		return false
	}
	x.note(fmt.Sprintf("%d ms of CPU time in %d ms", cpu, wall))
	return float64(cpu) > 1.3*float64(wall)
}

// nestsDirectories reports whether removing deeply nested directories takes the
// host too long.
func nestsDirectories(x *trial) bool {
	before, _ := os.ReadDir(x.tmp)
	x.attack("E17")
	start := time.Now()
	x.close()
	after, _ := os.ReadDir(x.tmp)
	x.note("closed in " + strconv.FormatInt(time.Since(start).Milliseconds(), 10) + " ms")
	return len(after) > len(before) || time.Since(start) > time.Minute
}
