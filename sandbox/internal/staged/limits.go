//go:build linux

package staged

import (
	"time"

	"golang.org/x/sys/unix"

	"github.com/loadout-dev/loadout/internal/stage"
	"github.com/loadout-dev/loadout/sandbox"
)

// SpareThreads are the threads of a stage itself, which count among those of
// the sandbox.
const SpareThreads = 12

// IdleThreads are those that a stage has ready before commands start: for
// reaping, for the watch, and for collecting. Each takes a fifth of a
// millisecond to make.
const IdleThreads = 3

// Environment is that of a stage. Its runtime collects garbage when it has some,
// as it must never be ended by the limit of memory, which is its own too.
func Environment() []string {
	return []string{"GOMAXPROCS=1", "GOGC=off", "GOMEMLIMIT=24MiB", "GOTRACEBACK=single"}
}

// Rlimits are the resource limits of commands, which the stage has itself.
// Those of the processes of a user are left out where they would count
// processes that are not in the sandbox.
func Rlimits(l sandbox.Limits, processes bool) []stage.Rlimit {
	same := func(resource int, n int64) stage.Rlimit {
		return stage.Rlimit{Resource: resource, Soft: uint64(n), Hard: uint64(n)}
	}
	cpu := int64((l.CPU + time.Second - 1) / time.Second)
	out := []stage.Rlimit{
		{Resource: unix.RLIMIT_CPU, Soft: uint64(cpu), Hard: uint64(cpu + 1)},
		same(unix.RLIMIT_DATA, l.Memory),
		same(unix.RLIMIT_FSIZE, l.FileSize),
		same(unix.RLIMIT_NOFILE, int64(l.OpenFiles)),
		same(unix.RLIMIT_CORE, 0),
		same(unix.RLIMIT_MSGQUEUE, 0),
		same(unix.RLIMIT_MEMLOCK, 64<<10),
	}
	if processes {
		out = append(out, same(unix.RLIMIT_NPROC, int64(l.Processes+SpareThreads)))
	}
	return out
}

// TreeSize is the size of a file system for a tree, and how many files and
// directories it has room for.
func TreeSize(t *sandbox.Tree) (size int64, inodes int) {
	const page = 4096
	size = 1 << 20
	inodes = 64
	for _, f := range t.Files {
		size += (f.Size + 2*page - 1) / page * page
		inodes += 2
		for i := range f.Path {
			if f.Path[i] == '/' {
				inodes++
			}
		}
	}
	return size, inodes
}
