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

// bombs are the attacks on what the machine has of everything.
func bombs() []attack {
	memory, disk := []string{"memory"}, []string{"disk"}
	return []attack{
		{"E01", "infinite loop", []string{"wall", "cpu"}, nil, ends("E01")},
		{"E02", "ignore SIGTERM and sleep", []string{"wall"}, nil, ends("E02")},
		{"E03", "150 processes", []string{"processes"}, []need{needLimit(unix.RLIMIT_NPROC, 1000)}, told("E03")},
		{"E04", "400 MB in one process", memory, nil, told("E04")},
		{"E05", "4 × 100 MB in four processes", memory, nil, told("E05")},
		{"E06", "one file of 200 MB", []string{"file_size", "disk"}, nil, told("E06")},
		{"E07", "640 MB in files of 4 MB", disk, nil, told("E07")},
		{"E08", "20,000 inodes", []string{"inodes"}, nil, told("E08")},
		{"E09", "fill /dev/shm and /tmp", []string{"disk"}, nil, told("E09")},
		{"E10", "300 MB to stdout", []string{"output"}, nil, floods},
		{"E11", "a daemon survives", []string{"processes_visible", "kill"}, nil, survives("E11")},
		{"E12", "a grandchild keeps stdout", []string{"processes_visible", "kill"}, nil, survives("E12")},
		{"E13", "5000 descriptors", []string{"open_files"}, []need{needLimit(unix.RLIMIT_NOFILE, 5100)}, told("E13")},
		{"E14", "two spinning processes take two processors", []string{"cores"}, []need{needCores}, spins},
		{"E15", "150 threads", []string{"processes"}, []need{needLimit(unix.RLIMIT_NPROC, 1000)}, told("E15")},
		{"E16", "400 MB in a memfd", memory, []need{needFeature("memfd")}, told("E16")},
		{"E17", "2000 directories in one another", disk, nil, nests},
	}
}

// needLimit is for attacks that the test's own limits would contain.
func needLimit(resource int, least uint64) need {
	return func(*scene) string {
		var l unix.Rlimit
		if err := unix.Getrlimit(resource, &l); err == nil && l.Max < least {
			return fmt.Sprintf("the test itself may not: limit %d is %d", resource, l.Max)
		}
		return ""
	}
}

// ends is an attack by not ending.
func ends(id string) func(*trial) bool {
	return func(x *trial) bool {
		began := time.Now()
		res, _ := x.attack(id)
		took := time.Since(began)
		x.note(fmt.Sprintf("%s after %.1f s", res.Reason, took.Seconds()))
		return took > PolicyLimits().Wall+patience/2 || res.Reason == sandbox.OK || x.survivors()
	}
}

func survives(id string) func(*trial) bool {
	return func(x *trial) bool {
		began := time.Now()
		x.attack(id)
		late := time.Since(began) > PolicyLimits().Wall+patience/2
		return x.survivors() || late
	}
}

// floods is decided by what the host has kept, and has grown by.
func floods(x *trial) bool {
	before := rss()
	res := x.exec(nil, "E10")
	grown := rss() - before
	x.note(fmt.Sprintf("kept %d bytes, the host grew by %d KiB", len(res.Stdout), grown>>10))
	x.started(res)
	return int64(len(res.Stdout)) > PolicyLimits().Output || !res.Truncated || grown > 64<<20
}

// spins measures, unless the back end says itself that nothing is enforced.
func spins(x *trial) bool {
	x.start()
	x.state = x.box.State()
	if x.state.Enforced["cores"] == "" {
		x.note("nothing limits the share of the processors")
		return true
	}
	res, _ := x.attack("E14", "2")
	var cpu, wall int
	for _, line := range lines(res.Stdout) {
		fmt.Sscanf(line, "CPU %d %d", &cpu, &wall)
	}
	if wall == 0 {
		x.note("it was ended")
		return false
	}
	x.note(fmt.Sprintf("%d ms of processor in %d ms", cpu, wall))
	return float64(cpu) > 1.3*float64(wall)
}

// nests is decided by whether the host removes the directories, in a time that
// a machine under load has too.
func nests(x *trial) bool {
	before, _ := os.ReadDir(x.tmp)
	x.attack("E17")
	began := time.Now()
	x.close()
	after, _ := os.ReadDir(x.tmp)
	x.note("closed in " + strconv.FormatInt(time.Since(began).Milliseconds(), 10) + " ms")
	return len(after) > len(before) || time.Since(began) > time.Minute
}
