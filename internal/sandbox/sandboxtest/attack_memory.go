//go:build linux

package sandboxtest

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/loadout-dev/loadout/sandbox"
)

// memoryAttacks returns the attacks that allocate more memory than the limit,
// each with a different kind of memory. They are not included in AttackCount,
// so that results of different versions remain comparable.
func memoryAttacks() []attack {
	memory, filter := []string{"memory"}, []string{"syscalls"}
	return []attack{
		{"M01", "private memory of eight processes", memory, nil, exhaustsMemory("M01")},
		{"M02", "page tables", memory, nil, exhaustsMemory("M02")},
		{"M03", "shared memory, unmapped by MADV_DONTNEED", memory, nil, exhaustsMemory("M03")},
		{"M04", "shared mappings of /dev/zero, shrunk", memory, nil, exhaustsMemory("M04")},
		{"M05", "memfds", memory, []need{needFeature("memfd")}, exhaustsMemory("M05")},
		{"M06", "message queues", filter, nil, exhaustsMemory("M06")},
		{"M07", "System V segments, unmapped by MADV_DONTNEED", filter, nil, exhaustsMemory("M07")},
		{"M08", "buffers of Unix sockets", memory, nil, exhaustsMemory("M08")},
		{"M09", "buffers of TCP connections", memory, nil, exhaustsMemory("M09")},
		{"M10", "huge pages in pipes", filter, []need{needHugePages, needLimit(unix.RLIMIT_NOFILE, 128)}, exhaustsMemory("M10")},
		{"M11", "memory of processes without a first thread", memory, nil, exhaustsMemory("M11")},
		{"M12", "pages of files in sockets, by splice", filter, nil, exhaustsMemory("M12")},
		{"M13", "pages of files in sockets, by sendfile", filter, nil, exhaustsMemory("M13")},
	}
}

// exhaustsMemory runs an attack that tries to allocate three times the limit. It
// reports whether the attack held more than one and a half times the limit at
// once without being killed. Less is tolerated, because a backend that polls
// the memory use detects a burst only at its next check. The limit is low, so
// that a successful attack does little harm to the machine.
func exhaustsMemory(id string) func(*trial) bool {
	return func(x *trial) bool {
		const limit, children = 128, 8 // MiB
		limits := PolicyLimits()
		limits.Memory, limits.Work, limits.Tmp, limits.Shm = limit<<20, 8<<20, 8<<20, 4<<20
		x.limits = &limits
		res, _ := x.attack(id, strconv.Itoa(3*limit), strconv.Itoa(children))
		written, rest, _ := strings.Cut(string(res.Stdout), "!\n")
		killed, _, _ := strings.Cut(rest, "\n")
		taken := 0
		for child := 'A'; child < 'A'+children; child++ {
			if !strings.ContainsRune(killed, child) { // a killed child holds nothing
				taken += strings.Count(written, string(child))
			}
		}
		x.note(fmt.Sprintf("had %d MiB at a limit of %d MiB", taken, limit))
		return 2*taken > 3*limit && res.Reason != sandbox.OOM
	}
}

func needHugePages(*scene) string {
	b, _ := os.ReadFile("/sys/kernel/mm/transparent_hugepage/enabled")
	if len(b) == 0 || strings.Contains(string(b), "[never]") {
		return "the kernel provides no huge pages"
	}
	return ""
}
